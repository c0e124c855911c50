(** * Pauses

    docs/theory/pauses.md, "Prices": which bounds by prices hold where requests may be interrupted, keep
    their tokens, give their memory back and go on later. *)

From Coq Require Import ZArith List Lia Bool.
From KV Require Import Problem Sums Memory Services Prices.
Import ListNotations.
Open Scope Z_scope.

(** ** The problem with pauses *)

(** A request, its active times t_1, t_2, ..., and the worker that it is on at each of them. *)
Record paused := Paused { request_of : request; active_times : list (Z * nat) }.

(** [a] < t_1 < t_2 < ... *)
Fixpoint increasing (a : Z) (times : list Z) : Prop :=
  match times with
  | [] => True
  | t :: rest => a < t /\ increasing t rest
  end.

(** "Request i is active at o_i times after its arrival, not necessarily in a row" *)
Definition allowed (r : request) (times : list Z) : Prop :=
  length times = Z.to_nat (output r) /\ increasing (arrival r) times.

(** "At t_j it holds s + j tokens, at other times none": what is held on worker [w] at time [t],
    where the first of the active times that are given is the [j]-th. *)
Fixpoint held (r : request) (j : Z) (active_times : list (Z * nat)) (w : nat) (t : Z) : Z :=
  match active_times with
  | [] => 0
  | (u, v) :: rest =>
      (if (u =? t) && Nat.eqb v w then prompt r + j else 0) + held r (j + 1) rest w t
  end.

Definition paused_holds (p : paused) : nat -> Z -> Z := held (request_of p) 1 (active_times p).

(** The last active time is the completion. *)
Definition paused_latency (r : request) (times : list Z) : Z := last times 0 - arrival r.

Definition times_of (p : paused) : list Z := map fst (active_times p).

Definition paused_total_latency (s : list paused) : Z :=
  total (fun p => paused_latency (request_of p) (times_of p)) s.

(** A request may return on another worker than the one it was on. *)
Record feasible_with_pauses (I : instance) (s : list paused) : Prop := {
  paused_serves_all : map request_of s = requests I;
  paused_allowed : Forall (fun p => allowed (request_of p) (times_of p)) s;
  paused_on_a_worker :
    Forall (fun p => Forall (fun x => (snd x < workers I)%nat) (active_times p)) s;
  paused_fits : forall w t, total (fun p => paused_holds p w t) s <= memory I
}.

(** "A schedule without pauses is one of these, with t_j = k + j." *)
Definition in_one_piece (p : placement) : paused :=
  Paused (what p)
    (map (fun t => (t, worker p)) (rounds (start p + 1) (Z.to_nat (output (what p))))).

Lemma increasing_rounds a b n : a < b -> increasing a (rounds b n).
Proof.
  revert a b. induction n as [|n IH]; intros a b H; cbn; [auto|]. split; [auto|apply IH; lia].
Qed.

Lemma last_rounds b n : (1 <= n)%nat -> last (rounds b n) 0 = b + Z.of_nat n - 1.
Proof.
  revert b. induction n as [|[|n] IH]; intros b H; [lia|cbn; lia|].
  change (last (rounds b (S (S n))) 0) with (last (rounds (b + 1) (S n)) 0).
  rewrite IH by lia. lia.
Qed.

Lemma held_in_one_piece r v w t n j b :
  held r j (map (fun u => (u, v)) (rounds b n)) w t
  = if Nat.eqb v w && (b <=? t) && (t <? b + Z.of_nat n) then prompt r + j + (t - b) else 0.
Proof.
  revert j b. induction n as [|n IH]; intros j b; cbn [rounds map held].
  - destruct (Nat.eqb v w); cbn [andb]; [|lia].
    destruct (Z.leb_spec b t), (Z.ltb_spec t (b + Z.of_nat 0)); cbn [andb]; lia.
  - rewrite IH. destruct (Nat.eqb v w); rewrite ?andb_false_r; cbn [andb]; [|lia].
    rewrite andb_true_r.
    destruct (Z.eqb_spec b t), (Z.leb_spec (b + 1) t), (Z.leb_spec b t),
      (Z.ltb_spec t (b + 1 + Z.of_nat n)), (Z.ltb_spec t (b + Z.of_nat (S n)));
      cbn [andb]; lia.
Qed.

Lemma last_cons (u : Z) (l : list Z) d : last (u :: l) d = last l u.
Proof.
  revert u d. induction l as [|v l IH]; intros u d; [reflexivity|].
  change (last (u :: v :: l) d) with (last (v :: l) d). now rewrite !IH.
Qed.

Lemma increasing_in a times u : increasing a times -> In u times -> a < u.
Proof.
  revert a. induction times as [|t l IH]; intros a H Hin; [destruct Hin|].
  destruct H as [Ht H], Hin as [<-|Hin]; [auto|]. specialize (IH t H Hin). lia.
Qed.

Lemma increasing_last a times u : increasing a times -> In u times -> u <= last times 0.
Proof.
  revert a u. induction times as [|t l IH]; intros a u H Hin; [destruct Hin|]. destruct H as [Ht H].
  destruct l as [|v l].
  - destruct Hin as [<-|[]]. cbn. lia.
  - change (last (t :: v :: l) 0) with (last (v :: l) 0). destruct Hin as [<-|Hin]; [|eauto].
    transitivity v; [destruct H; lia|]. apply (IH t); [exact H|now left].
Qed.

Lemma held_elsewhere r j steps w t : ~ In t (map fst steps) -> held r j steps w t = 0.
Proof.
  revert j. induction steps as [|[u v] l IH]; intros j H; cbn [held map fst In] in *; [lia|].
  rewrite IH by tauto. replace (u =? t) with false by (symmetry; apply Z.eqb_neq; tauto).
  cbn [andb]. lia.
Qed.

Theorem runs_are_paused_runs (I : instance) (s : schedule) :
  well_formed I ->
  feasible I s ->
  feasible_with_pauses I (map in_one_piece s)
  /\ paused_total_latency (map in_one_piece s) = total_latency s.
Proof.
  intros [_ Hr] [Hs Ha Hw Hf]. rewrite <- Hs in Hr. rewrite Forall_map in Hr.
  rewrite Forall_forall in Hr, Ha, Hw.
  assert (Htimes : forall p, times_of (in_one_piece p)
                   = rounds (start p + 1) (Z.to_nat (output (what p)))).
  { intros p. unfold times_of, in_one_piece. cbn [active_times]. rewrite map_map. apply map_id. }
  split; [constructor|].
  - rewrite map_map. exact Hs.
  - rewrite Forall_map, Forall_forall. intros p Hp. rewrite Htimes. split.
    + apply rounds_length.
    + apply increasing_rounds. specialize (Ha p Hp). cbn in *. lia.
  - rewrite Forall_map, Forall_forall. intros p Hp. cbn [in_one_piece active_times].
    rewrite Forall_map, Forall_forall. intros t _. now apply Hw.
  - intros w t. rewrite total_map. specialize (Hf w t). unfold load in Hf.
    erewrite total_ext; [exact Hf|]. intros p Hp. specialize (Hr p Hp). cbn beta in Hr.
    unfold paused_holds, in_one_piece, holds, completion. cbn [request_of active_times].
    rewrite held_in_one_piece.
    destruct (Nat.eqb (worker p) w); cbn [andb]; [|lia].
    destruct (Z.leb_spec (start p + 1) t), (Z.ltb_spec (start p) t),
      (Z.leb_spec t (start p + output (what p))),
      (Z.ltb_spec t (start p + 1 + Z.of_nat (Z.to_nat (output (what p))))); cbn [andb]; lia.
  - unfold paused_total_latency, total_latency. rewrite total_map. apply total_ext.
    intros p Hp. specialize (Hr p Hp). cbn beta in Hr.
    rewrite Htimes. unfold paused_latency, latency, completion. cbn [in_one_piece request_of].
    rewrite last_rounds by lia. lia.
Qed.

(** ** Prices *)

(** The sum of p_(t_j) (s + j), where the first of the times that are given is the [j]-th. *)
Fixpoint paid (price : Z -> Z) (r : request) (j : Z) (times : list Z) : Z :=
  match times with
  | [] => 0
  | t :: rest => price t * (prompt r + j) + paid price r (j + 1) rest
  end.

Lemma paid_nonneg price r j times :
  (forall t, 0 <= price t) -> 0 <= prompt r -> 1 <= j -> 0 <= paid price r j times.
Proof.
  intros Hp Hr. revert j. induction times as [|t l IH]; intros j Hj; cbn [paid]; [lia|].
  specialize (IH (j + 1) ltac:(lia)). specialize (Hp t). nia.
Qed.

Definition paused_cost (D : Z) (price : Z -> Z) (r : request) (times : list Z) : Z :=
  D * paused_latency r times + paid price r 1 times.

(** [c] is at most the minimum C_i over all paused runs of the request. *)
Definition least_paused_cost (D : Z) (price : Z -> Z) (r : request) (c : Z) : Prop :=
  forall times, allowed r times -> c <= paused_cost D price r times.

(** Of a sum over a range of which one member alone counts. *)
Lemma total_one (f : Z -> Z) (u first : Z) (n : nat) :
  (~ (first <= u < first + Z.of_nat n) -> f u = 0) ->
  total (fun t => if u =? t then f t else 0) (rounds first n) = f u.
Proof.
  intros Hout.
  transitivity (total (fun t => if u =? t then f t else 0) (rounds u 1)).
  - apply total_ranges. intros t Ht. destruct (u =? t) eqn:E; [|lia].
    replace t with u in * by lia.
    destruct (Z_le_gt_dec first u); destruct (Z_lt_le_dec u (first + Z.of_nat n)); try lia;
      exfalso; apply Ht, Hout; lia.
  - cbn [rounds total]. rewrite Z.eqb_refl. lia.
Qed.

(** What a request pays, sorted by worker and time. *)
Lemma paid_by_time price first n r m steps j :
  (forall t, ~ (first <= t < first + Z.of_nat n) -> price t = 0) ->
  Forall (fun x => (snd x < m)%nat) steps ->
  paid price r j (map fst steps)
  = total (fun t => price t * total (fun w => held r j steps w t) (seq 0 m)) (rounds first n).
Proof.
  intros Hp. revert j. induction steps as [|[u v] steps IH]; intros j Hw; cbn [map paid held fst].
  - symmetry. apply total_zero. intros t _. rewrite (total_zero (fun _ => 0)); [lia|auto].
  - inversion Hw as [|? ? Hv Hrest]; subst. cbn [snd] in Hv. rewrite (IH (j + 1) Hrest).
    rewrite <- (total_one (fun t => price t * (prompt r + j)) u first n).
    2: { intros Hu. rewrite Hp by auto. lia. }
    rewrite <- total_plus. apply total_ext. intros t _. rewrite total_plus.
    destruct (u =? t); cbn [andb].
    + rewrite total_one_worker by auto. lia.
    + rewrite (total_zero (fun _ => 0)) by auto. lia.
Qed.

(** As Services.v has it. *)
Definition with_pauses : service paused := {|
  asks := request_of;
  first p := hd 0 (times_of p);
  done p := last (times_of p) 0;
  uses := paused_holds;
  proper m p := allowed (request_of p) (times_of p) /\
                Forall (fun x => (snd x < m)%nat) (active_times p)
|}.

Lemma feasible_with_pauses_served I s : feasible_with_pauses I s <-> served with_pauses I s.
Proof.
  split.
  - intros [Hs Ha Hw Hf]. constructor; auto. rewrite Forall_forall in *.
    intros p Hp. split; [now apply Ha|now apply Hw].
  - intros [Hs Hp Hf]. rewrite Forall_forall in Hp.
    constructor; auto; apply Forall_forall; intros p Hin; now apply Hp.
Qed.

Lemma uses_nonneg_pauses : uses_nonneg with_pauses.
Proof.
  intros p w t H. cbn [with_pauses uses asks] in *. unfold paused_holds.
  assert (Hj : 0 <= prompt (request_of p) + 1) by lia. revert Hj. generalize 1.
  induction (active_times p) as [|[u v] l IH]; intros j Hj; cbn [held]; [lia|].
  specialize (IH (j + 1) ltac:(lia)). destruct ((u =? t) && Nat.eqb v w); lia.
Qed.

Lemma paused_runs_pay I first numerators s :
  served with_pauses I s -> forall p, In p s ->
  paid (price_at first numerators) (request_of p) 1 (times_of p)
  = by_time with_pauses I first numerators p.
Proof.
  intros [_ Hp _] p Hin. rewrite Forall_forall in Hp. apply Hp in Hin. apply paid_by_time.
  - apply price_outside.
  - apply Hin.
Qed.

(** "L(p) is at most the total latency of any schedule with pauses", times D, for m workers. *)
Theorem prices_cover_pauses (I : instance) (D first : Z) (numerators costs : list Z)
    (s : list paused) :
  Forall (fun x => 0 <= x) numerators ->
  Forall2 (least_paused_cost D (price_at first numerators)) (requests I) costs ->
  feasible_with_pauses I s ->
  total (fun c => c) costs
    - Z.of_nat (workers I) * memory I * total (fun x => x) numerators
  <= D * paused_total_latency s.
Proof.
  intros Hp Hc HF. apply feasible_with_pauses_served in HF.
  apply (costs_prove_a_bound with_pauses I first numerators s
           (fun p => paid (price_at first numerators) (request_of p) 1 (times_of p))); auto.
  - now apply paused_runs_pay.
  - induction Hc as [|r c rs cs H _ IH]; constructor; auto. intros p <- [Ha _]. now apply H.
Qed.

(** ** Prices that never rise *)

Lemma never_rises price a :
  (forall t, a < t -> price (t + 1) <= price t) ->
  forall t u, a < t <= u -> price u <= price t.
Proof.
  intros H t u [Ht Hu]. replace u with (t + Z.of_nat (Z.to_nat (u - t))) by lia.
  induction (Z.to_nat (u - t)) as [|n IH]; [replace (t + Z.of_nat 0) with t by lia; lia|].
  replace (t + Z.of_nat (S n)) with (t + Z.of_nat n + 1) by lia.
  specialize (H (t + Z.of_nat n)). lia.
Qed.

(** "the j-th time is at most c - o + j" *)
Lemma room_after a times :
  increasing a times -> times <> [] -> a + Z.of_nat (length times) <= last times 0.
Proof.
  revert a. induction times as [|t times IH]; [congruence|]. intros a [Ht Hi] _.
  destruct times as [|u times]; [cbn [length last]; lia|].
  specialize (IH t Hi ltac:(congruence)).
  change (last (t :: u :: times) 0) with (last (u :: times) 0). cbn [length] in *. lia.
Qed.

(** "of all active times that end at c the last ones up to c are the cheapest" *)
Lemma last_times_are_cheapest price r a times j :
  (forall t, a < t -> price (t + 1) <= price t) ->
  0 <= prompt r + j ->
  increasing a times ->
  total (fun g => price (last times 0 - (j + Z.of_nat (length times) - 1) + g) * (prompt r + g))
    (rounds j (length times))
  <= paid price r j times.
Proof.
  revert a j. induction times as [|t times IH]; intros a j Hf Hj Hi; [cbn; lia|].
  pose proof (room_after a (t :: times) Hi ltac:(congruence)) as Hroom.
  destruct Hi as [Ht Hi]. cbn [paid].
  replace (rounds j (length (t :: times))) with (j :: rounds (j + 1) (length times)) by reflexivity.
  cbn [total]. apply Z.add_le_mono.
  - apply Z.mul_le_mono_nonneg_r; [lia|]. apply (never_rises price a); auto.
    split; [auto|]. destruct times as [|u times]; [cbn [length last]; lia|].
    pose proof (room_after t (u :: times) Hi ltac:(congruence)).
    change (last (t :: u :: times) 0) with (last (u :: times) 0). cbn [length] in *. lia.
  - destruct times as [|u times]; [cbn; lia|].
    change (last (t :: u :: times) 0) with (last (u :: times) 0).
    refine (Z.le_trans _ _ _ _ (IH t (j + 1) _ _ Hi)); [|intros; apply Hf; lia|lia].
    apply Z.eq_le_incl, total_ext. intros g _. f_equal. f_equal. cbn [length]. lia.
Qed.

(** Claim 4.1, as used: "where prices never rise after the first arrival, C_i = U_i": what is at most
    the cost of every run in one piece is at most that of every paused run. *)
Theorem falling_prices_need_no_pauses (D : Z) (price : Z -> Z) (r : request) (c : Z) :
  (forall t, arrival r < t -> price (t + 1) <= price t) ->
  0 <= prompt r -> 1 <= output r ->
  least_cost D price r c ->
  least_paused_cost D price r c.
Proof.
  intros Hf Hs Ho Hc times [Hlen Hi].
  assert (Hne : times <> []) by (intros ->; cbn [length] in Hlen; lia).
  pose proof (room_after _ _ Hi Hne) as Hroom.
  specialize (Hc (last times 0 - output r)). unfold cost in Hc.
  pose proof (last_times_are_cheapest price r (arrival r) times 1 Hf ltac:(lia) Hi) as Hpay.
  unfold paused_cost, paused_latency. unfold payment in Hc. rewrite Hlen in *.
  replace (1 + Z.of_nat (Z.to_nat (output r)) - 1) with (output r) in Hpay by lia.
  replace (last times 0 - output r + output r - arrival r) with (last times 0 - arrival r) in Hc
    by lia.
  lia.
Qed.

(** So the bound without pauses is one with pauses where prices never rise after time [from] and
    no request arrives before it. *)
Theorem falling_prices_cover_pauses (I : instance) (D first from : Z) (numerators costs : list Z)
    (s : list paused) :
  well_formed I ->
  Forall (fun x => 0 <= x) numerators ->
  Forall (fun r => from <= arrival r) (requests I) ->
  (forall t, from < t -> price_at first numerators (t + 1) <= price_at first numerators t) ->
  Forall2 (least_cost D (price_at first numerators)) (requests I) costs ->
  feasible_with_pauses I s ->
  total (fun c => c) costs
    - Z.of_nat (workers I) * memory I * total (fun x => x) numerators
  <= D * paused_total_latency s.
Proof.
  intros [_ Hr] Hp Ha Hf Hc HF. apply prices_cover_pauses with (first := first); auto.
  clear HF Hp. induction Hc as [|r c rs cs H Hc IH]; constructor.
  - inversion Hr; inversion Ha; subst. apply falling_prices_need_no_pauses; try lia; auto.
    intros t Ht. apply Hf. lia.
  - apply IH; [now inversion Hr|now inversion Ha].
Qed.

Print Assumptions runs_are_paused_runs.
Print Assumptions prices_cover_pauses.
Print Assumptions falling_prices_need_no_pauses.
Print Assumptions falling_prices_cover_pauses.
