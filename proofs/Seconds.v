(** * A schedule in seconds is a fluid

    docs/theory/seconds.md, "Which schedules the bound covers" and "The machine as a fluid", for
    runs without pauses and whole prompts, on one or more workers. *)

From Coq Require Import ZArith List Lia Bool Sorted Permutation.
From KV Require Import Problem Sums Memory Services Shares.
Import ListNotations.
Open Scope Z_scope.

(** ** The problem in seconds

    Rounds are numbered on each worker, and what runs in them is as in Problem.v: a request that
    starts at k is active in the rounds k + 1, ..., k + output.  But a round lasts as long as its
    batch, or longer.  Arrivals are moments in nanoseconds: what Problem.v calls the arrival of a
    request is not looked at. *)
Record machine := Machine { line_one : line; lines : list line; prompt_ns : Z; kv_ns : Z }.

(** Requests that are placed, when they arrive, and when rounds begin and end on each worker. *)
Record timed := Timed {
  placed : list (placement * Z);
  begins : nat -> Z -> Z;
  ends : nat -> Z -> Z
}.

(** What a request does in its [j]-th round: with the first one its prompt is processed. *)
Definition in_round (r : request) (j : Z) : part :=
  let s := if j =? 1 then prompt r else 0 in Part (1 + s) s (prompt r + j).

(** What a placement does in round [t] of worker [w]. *)
Definition does (w : nat) (t : Z) (p : placement) : part :=
  if active w t p then in_round (what p) (t - start p) else Part 0 0 0.

Definition batch (S : timed) (w : nat) (t : Z) : list part :=
  map (fun x => does w t (fst x)) (placed S).

(** "it lasts at least the largest of the lines ... + prompt_ns S + kv_ns H" *)
Definition duration (K : machine) (parts : list part) : Z :=
  longest (line_one K) (lines K) (total processed parts)
  + prompt_ns K * total of_prompt parts + kv_ns K * total kept parts.

Record feasible_in_seconds (K : machine) (M : Z) (m : nat) (S : timed) : Prop := {
  on_workers : Forall (fun x => (worker (fst x) < m)%nat) (placed S);
  joins_after_arrival :
    Forall (fun x => 0 <= snd x <= begins S (worker (fst x)) (start (fst x) + 1)) (placed S);
  lasts_as_its_batch : forall w t, begins S w t + duration K (batch S w t) <= ends S w t;
  one_after_another : forall w t, ends S w t <= begins S w (t + 1);
  keeps_to_memory : forall w t, total kept (batch S w t) <= M
}.

(** No coefficient of the machine is negative, and requests have tokens. *)
Definition sensible (K : machine) : Prop :=
  Forall (fun l => 0 <= fixed l /\ 0 <= per_token l) (line_one K :: lines K) /\
  0 <= prompt_ns K /\ 0 <= kv_ns K.

Definition has_tokens (x : placement * Z) : Prop :=
  0 <= prompt (what (fst x)) /\ 1 <= output (what (fst x)).

(** ** What a request takes *)

Definition f_0 (K : machine) : Z := longest (line_one K) (lines K) 0.

Definition work_of (K : machine) (x : part) : Z :=
  work (line_one K) (lines K) (prompt_ns K) (kv_ns K) x.

(** Times M: "X_i = the sum of w_i + f_0 h_i / M over its rounds". *)
Definition takes_in (K : machine) (M : Z) (x : part) : Z := M * work_of K x + f_0 K * kept x.

Definition takes (K : machine) (M : Z) (r : request) : Z :=
  total (fun j => takes_in K M (in_round r j)) (rounds 1 (Z.to_nat (output r))).

(** "E_i: the sum of what its rounds last if it is alone", those after the [j]-th. *)
Definition alone_after (K : machine) (r : request) (j : Z) : Z :=
  total (fun g => duration K [in_round r g]) (rounds (j + 1) (Z.to_nat (output r - j))).

(** "X_i delta_i = the sum of w_i (E_i^(>j) + f_0 + w_i / 2) + f_0 h_i / M (E_i^(>j) + f_0 / 2)", times
    2 M; [All] are all lines of the machine, [K] those that are chosen. *)
Definition later_in (All K : machine) (M : Z) (e : Z) (x : part) : Z :=
  M * work_of K x * (2 * e + 2 * f_0 K + work_of K x) + f_0 K * kept x * (2 * e + f_0 K).

Definition later_than_served (All K : machine) (M : Z) (r : request) : Z :=
  total (fun j => later_in All K M (alone_after All r j) (in_round r j))
    (rounds 1 (Z.to_nat (output r))).

(** The same by the numbers of rounds, for a request that is placed. *)
Definition by_round (F : Z -> part -> Z) (p : placement) : Z :=
  total (fun t => F (t - start p) (does (worker p) t p))
    (rounds (start p + 1) (Z.to_nat (output (what p)))).

Lemma does_in_round p t : start p < t <= completion p ->
  does (worker p) t p = in_round (what p) (t - start p).
Proof.
  intros Ht. unfold does, active. rewrite Nat.eqb_refl.
  replace (start p <? t) with true by (symmetry; lia).
  now replace (t <=? completion p) with true by (symmetry; lia).
Qed.

Lemma by_round_same F p :
  by_round F p = total (fun j => F j (in_round (what p) j)) (rounds 1 (Z.to_nat (output (what p)))).
Proof.
  unfold by_round. replace (start p + 1) with (1 + start p) by lia. rewrite rounds_shift, total_map.
  apply total_ext. intros j Hj. apply rounds_in in Hj. rewrite does_in_round by (unfold completion; lia).
  now replace (j + start p - start p) with j by lia.
Qed.

(** ** How rounds are shared

    "Within each round let first all works be served one after another, then, for the time f_0,
    all active requests at the rates h_i / M."  Requests are named by their positions. *)
Definition clamp (x most : Z) : Z := Z.max 0 (Z.min x most).

Lemma clamp_split x a c : 0 <= a -> 0 <= c -> clamp x (a + c) = clamp x a + clamp (x - a) c.
Proof. unfold clamp. lia. Qed.

Section Fluid.
Variables (K : machine) (M : Z) (m : nat) (S : timed).
Hypothesis K_sensible : sensible K.
Hypothesis M_nonneg : 0 <= M.
Hypothesis S_feasible : feasible_in_seconds K M m S.
Hypothesis S_tokens : Forall has_tokens (placed S).

Let no_item := (Place (Request 0 0 0) 0 0, 0).
Definition item (i : nat) : placement * Z := nth i (placed S) no_item.
Definition at_work (w : nat) (t : Z) (i : nat) : Z := work_of K (does w t (fst (item i))).
Definition keeps (w : nat) (t : Z) (i : nat) : Z := kept (does w t (fst (item i))).
Definition works_before (w : nat) (t : Z) (i : nat) : Z := total (at_work w t) (seq 0 i).
Definition all_works (w : nat) (t : Z) : Z := works_before w t (length (placed S)).

(** What request [i] has got from round [t] of worker [w] by time [x]. *)
Definition got (w : nat) (t : Z) (x : Z) (i : nat) : Z :=
  M * clamp (x - begins S w t - works_before w t i) (at_work w t i)
  + keeps w t i * clamp (x - begins S w t - all_works w t) (f_0 K).

Definition size_of (i : nat) : Z := takes K M (what (fst (item i))).

Lemma size_by_round i : size_of i = by_round (fun _ => takes_in K M) (fst (item i)).
Proof. symmetry. apply by_round_same. Qed.

Definition unserved (i : nat) (x : Z) : Z :=
  let p := fst (item i) in
  size_of i - total (fun t => got (worker p) t x i) (rounds (start p + 1) (Z.to_nat (output (what p)))).

Lemma longest_grows l ls b : Forall (fun l => 0 <= fixed l /\ 0 <= per_token l) (l :: ls) -> 0 <= b ->
  0 <= longest l ls 0 <= longest l ls b.
Proof.
  intros H Hb. rewrite Forall_forall in H. destruct (longest_spec l ls 0) as [_ (x & Hx & E)].
  destruct (longest_spec l ls b) as [H1 _]. specialize (H1 x Hx). specialize (H x Hx).
  cbn beta in H.
  rewrite E. unfold line_at in *.
  assert (0 <= per_token x * b) by (apply Z.mul_nonneg_nonneg; lia). lia.
Qed.

Lemma f_0_nonneg : 0 <= f_0 K.
Proof. destruct K_sensible as [H _]. apply (longest_grows _ _ 0 H). lia. Qed.

Lemma item_tokens i : 0 <= prompt (what (fst (item i))).
Proof.
  unfold item. destruct (nth_in_or_default i (placed S) no_item) as [H| ->]; [|cbn; lia].
  rewrite Forall_forall in S_tokens. apply S_tokens in H. apply H.
Qed.

Lemma does_nonneg w t i : 0 <= processed (does w t (fst (item i))) /\
  0 <= of_prompt (does w t (fst (item i))) /\ 0 <= kept (does w t (fst (item i))).
Proof.
  pose proof (item_tokens i). unfold does. destruct (active w t (fst (item i))) eqn:E; [|cbn; lia].
  unfold active in E. rewrite !andb_true_iff in E. destruct E as ((_ & E) & _).
  unfold in_round. destruct (_ =? 1); cbn [processed of_prompt kept]; lia.
Qed.

Lemma at_work_nonneg w t i : 0 <= at_work w t i.
Proof.
  destruct K_sensible as (HK & Hp & Hkv). destruct (does_nonneg w t i) as (H1 & H2 & H3).
  unfold at_work, work_of, work. pose proof (longest_grows _ _ _ HK H1).
  assert (0 <= prompt_ns K * of_prompt (does w t (fst (item i)))) by (apply Z.mul_nonneg_nonneg; auto).
  assert (0 <= kv_ns K * kept (does w t (fst (item i)))) by (apply Z.mul_nonneg_nonneg; auto). lia.
Qed.

Lemma keeps_nonneg w t i : 0 <= keeps w t i.
Proof. apply does_nonneg. Qed.

Lemma works_before_nonneg w t i : 0 <= works_before w t i.
Proof. apply total_nonneg. intros j _. apply at_work_nonneg. Qed.

(** Works one after another. *)
Lemma one_by_one w t x n :
  total (fun i => clamp (x - works_before w t i) (at_work w t i)) (seq 0 n)
  = clamp x (works_before w t n).
Proof.
  induction n as [|n IH]; [unfold clamp, works_before; cbn; lia|].
  unfold works_before at 2. rewrite seq_S, !total_app, IH. cbn [total Nat.add].
  fold (works_before w t n). pose proof (works_before_nonneg w t n). pose proof (at_work_nonneg w t n).
  replace (at_work w t n + 0) with (at_work w t n) by lia. rewrite clamp_split by auto. lia.
Qed.

(** Sums over all requests, by position or not. *)
Lemma by_position (f : placement * Z -> Z) :
  total (fun i => f (item i)) (seq 0 (length (placed S))) = total f (placed S).
Proof.
  unfold item. clear. induction (placed S) as [|x l IH]; cbn [length seq total]; [auto|].
  cbn [nth]. rewrite <- seq_shift, total_map. cbn [nth]. now rewrite IH.
Qed.

Lemma got_grows w t x i : 0 <= got w t (x + 1) i - got w t x i.
Proof.
  unfold got. pose proof (keeps_nonneg w t i). pose proof (at_work_nonneg w t i).
  pose proof f_0_nonneg.
  assert (0 <= M * (clamp (x + 1 - begins S w t - works_before w t i) (at_work w t i)
                    - clamp (x - begins S w t - works_before w t i) (at_work w t i)))
    by (apply Z.mul_nonneg_nonneg; unfold clamp; lia).
  assert (0 <= keeps w t i * (clamp (x + 1 - begins S w t - all_works w t) (f_0 K)
                    - clamp (x - begins S w t - all_works w t) (f_0 K)))
    by (apply Z.mul_nonneg_nonneg; unfold clamp; lia).
  lia.
Qed.

(** "there is room for both": in a step of a round no more than M is given away, and nothing
    outside of it. *)
Lemma room_for_both w t x :
  total (fun i => got w t (x + 1) i - got w t x i) (seq 0 (length (placed S)))
  <= if (begins S w t <=? x) && (x <? ends S w t) then M else 0.
Proof.
  set (n := length (placed S)). set (b := begins S w t). set (W := all_works w t).
  assert (E : total (fun i => got w t (x + 1) i - got w t x i) (seq 0 n)
    = M * (clamp (x + 1 - b) W - clamp (x - b) W)
      + total kept (batch S w t) * (clamp (x + 1 - b - W) (f_0 K) - clamp (x - b - W) (f_0 K))).
  { assert (G : forall y, total (got w t y) (seq 0 n)
              = M * clamp (y - b) W + total kept (batch S w t) * clamp (y - b - W) (f_0 K)).
    { intros y. unfold got. rewrite total_plus, total_scale. fold b W.
      rewrite (one_by_one w t (y - b) n). fold n W.
      rewrite (total_ext (fun i => keeps w t i * clamp (y - b - W) (f_0 K))
                 (fun i => clamp (y - b - W) (f_0 K) * keeps w t i)) by (intros; lia).
      rewrite total_scale. unfold keeps, n.
      rewrite (by_position (fun z => kept (does w t (fst z)))). unfold batch. rewrite total_map.
      change (works_before w t (length (placed S))) with W. lia. }
    rewrite total_minus, !G. lia. }
  rewrite E. destruct S_feasible as [_ _ Hlast _ Hmem]. specialize (Hlast w t). specialize (Hmem w t).
  fold b in Hlast.
  assert (HW : W + f_0 K <= duration K (batch S w t)).
  { unfold W, all_works, works_before, at_work. rewrite (by_position (fun z => work_of K (does w t (fst z)))).
    unfold duration, f_0, work_of. pose proof (works_fit (line_one K) (lines K) (prompt_ns K) (kv_ns K)
      (batch S w t)) as H. unfold batch in H at 2. rewrite total_map in H. apply H.
    unfold batch. rewrite Forall_map, Forall_forall. intros z Hz.
    destruct (In_nth _ _ no_item Hz) as (i & _ & <-). apply does_nonneg. }
  pose proof (works_before_nonneg w t (length (placed S))) as HW0. fold (all_works w t) in HW0. fold W in HW0.
  pose proof f_0_nonneg as Hf.
  assert (total kept (batch S w t) * (clamp (x + 1 - b - W) (f_0 K) - clamp (x - b - W) (f_0 K))
          <= M * (clamp (x + 1 - b - W) (f_0 K) - clamp (x - b - W) (f_0 K)))
    by (apply Z.mul_le_mono_nonneg_r; unfold clamp; lia).
  pose proof (clamp_split (x + 1 - b) W (f_0 K) HW0 Hf).
  pose proof (clamp_split (x - b) W (f_0 K) HW0 Hf).
  enough (M * (clamp (x + 1 - b) (W + f_0 K) - clamp (x - b) (W + f_0 K))
          <= if (b <=? x) && (x <? ends S w t) then M else 0) by lia.
  destruct (Z.leb_spec b x); [destruct (Z.ltb_spec x (ends S w t))|]; cbn [andb].
  - transitivity (M * 1); [apply Z.mul_le_mono_nonneg_l; unfold clamp; lia|lia].
  - replace (clamp (x + 1 - b) (W + f_0 K) - clamp (x - b) (W + f_0 K)) with 0 by (unfold clamp; lia). lia.
  - replace (clamp (x + 1 - b) (W + f_0 K) - clamp (x - b) (W + f_0 K)) with 0 by (unfold clamp; lia). lia.
Qed.

Lemma begins_grow w t n : begins S w t <= begins S w (t + Z.of_nat n).
Proof.
  induction n as [|n IH]; [replace (t + Z.of_nat 0) with t by lia; lia|].
  destruct S_feasible as [_ _ Hlast Hnext _].
  specialize (Hlast w (t + Z.of_nat n)). specialize (Hnext w (t + Z.of_nat n)).
  replace (t + Z.of_nat n + 1) with (t + Z.of_nat (Datatypes.S n)) in Hnext by lia.
  enough (0 <= duration K (batch S w (t + Z.of_nat n))) by lia.
  destruct K_sensible as (HK & Hp & Hkv). unfold duration.
  assert (Hall : forall f : part -> Z, (forall z, 0 <= f (does w (t + Z.of_nat n) (fst (item z)))) ->
            0 <= total f (batch S w (t + Z.of_nat n))).
  { intros f Hf. unfold batch. rewrite total_map. apply total_nonneg. intros z Hz.
    destruct (In_nth _ _ no_item Hz) as (i & _ & <-). apply Hf. }
  pose proof (longest_grows _ _ (total processed (batch S w (t + Z.of_nat n))) HK
    (Hall processed ltac:(intros; apply does_nonneg))).
  assert (0 <= prompt_ns K * total of_prompt (batch S w (t + Z.of_nat n)))
    by (apply Z.mul_nonneg_nonneg; [auto|apply Hall; intros; apply does_nonneg]).
  assert (0 <= kv_ns K * total kept (batch S w (t + Z.of_nat n)))
    by (apply Z.mul_nonneg_nonneg; [auto|apply Hall; intros; apply does_nonneg]).
  lia.
Qed.

(** Each moment lies in one round of a worker at most. *)
Lemma one_round_at_a_time w x n : forall t,
  total (fun u => if (begins S w u <=? x) && (x <? ends S w u) then M else 0) (rounds t n) <= M.
Proof.
  induction n as [|n IH]; intros t; cbn [rounds total]; [lia|]. specialize (IH (t + 1)).
  destruct (Z.ltb_spec x (ends S w t)); [|rewrite andb_false_r; lia].
  destruct (begins S w t <=? x); cbn [andb]; [|lia].
  rewrite total_zero; [lia|]. intros u Hu. apply rounds_in in Hu.
  destruct S_feasible as [_ _ _ Hnext _]. specialize (Hnext w t).
  pose proof (begins_grow w (t + 1) (Z.to_nat (u - (t + 1)))).
  replace (t + 1 + Z.of_nat (Z.to_nat (u - (t + 1)))) with u in H0 by lia.
  now replace (begins S w u <=? x) with false by (symmetry; lia).
Qed.

Lemma got_when_active w t x i : (i < length (placed S))%nat ->
  got w t x i <> 0 -> worker (fst (item i)) = w /\
  start (fst (item i)) + 1 <= t < start (fst (item i)) + 1 + output (what (fst (item i))).
Proof.
  intros Hi H. unfold got, at_work, keeps, does in H.
  destruct (active w t (fst (item i))) eqn:E.
  - unfold active, completion in E. rewrite !andb_true_iff in E. destruct E as ((E1 & E2) & E3).
    apply Nat.eqb_eq in E1. lia.
  - exfalso. apply H. cbn [kept]. unfold work_of, work. cbn [processed of_prompt kept].
    unfold clamp. lia.
Qed.

(** So at every step, whichever requests are looked at, they get no more than m M. *)
Theorem a_schedule_is_a_fluid (some : list nat) (x : Z) :
  (exists rest, Permutation (some ++ rest) (seq 0 (length (placed S)))) ->
  total (fun i => unserved i x) some - total (fun i => unserved i (x + 1)) some <= Z.of_nat m * M.
Proof.
  intros [rest HP]. rewrite <- total_minus.
  set (n := length (placed S)) in *.
  (* All rounds of all requests. *)
  assert (Hrange : exists lo N, forall i, (i < n)%nat -> lo <= start (fst (item i)) + 1 /\
            start (fst (item i)) + 1 + output (what (fst (item i))) <= lo + Z.of_nat N).
  { clear. induction n as [|n (lo & N & H)]; [exists 0, O; lia|].
    set (a := start (fst (item n)) + 1). set (o := output (what (fst (item n)))).
    exists (Z.min lo a), (Z.to_nat (Z.max (lo + Z.of_nat N) (a + o) - Z.min lo a)).
    intros i Hi. destruct (Nat.eq_dec i n) as [->|]; [fold a o; lia|].
    specialize (H i ltac:(lia)). lia. }
  destruct Hrange as (lo & N & Hrange).
  set (gain := fun w t i => got w t (x + 1) i - got w t x i).
  assert (Hone : forall i, (i < n)%nat -> unserved i x - unserved i (x + 1)
            = total (fun w => total (fun t => gain w t i) (rounds lo N)) (seq 0 m)).
  { intros i Hi. unfold unserved. set (p := fst (item i)).
    assert (Hw : (worker p < m)%nat).
    { destruct S_feasible as [Hon _ _ _ _]. rewrite Forall_forall in Hon. apply Hon.
      unfold p, item. apply nth_In. exact Hi. }
    destruct (Hrange i Hi) as [R1 R2]. fold p in R1, R2.
    transitivity (total (fun t => gain (worker p) t i) (rounds lo N)).
    - unfold gain. rewrite total_minus.
      assert (G : forall y, total (fun t => got (worker p) t y i)
                    (rounds (start p + 1) (Z.to_nat (output (what p))))
                  = total (fun t => got (worker p) t y i) (rounds lo N)).
      { intros y. symmetry.
        assert (Ho : 1 <= output (what p)).
        { rewrite Forall_forall in S_tokens. apply (S_tokens (item i)). apply nth_In. exact Hi. }
        apply total_widen; [lia|lia|]. intros t Ht Hout.
        destruct (Z.eq_dec (got (worker p) t y i) 0) as [|Hne]; auto. exfalso. apply Hout.
        apply (got_when_active _ _ _ _ Hi) in Hne. fold p in Hne. lia. }
      rewrite !G. lia.
    - symmetry. rewrite (total_ext _ (fun w => if Nat.eqb (worker p) w then
                 total (fun t => gain (worker p) t i) (rounds lo N) else 0)).
      + now apply total_one_worker.
      + intros w _. destruct (Nat.eqb_spec (worker p) w) as [->|Hne]; auto.
        apply total_zero. intros t _. unfold gain.
        assert (Z0 : forall y, got w t y i = 0).
        { intros y. destruct (Z.eq_dec (got w t y i) 0) as [|Hn]; auto.
          apply (got_when_active _ _ _ _ Hi) in Hn. fold p in Hn. destruct Hn. congruence. }
        rewrite !Z0. lia. }
  assert (Hin : forall i, In i (some ++ rest) -> (i < n)%nat).
  { intros i Hi. apply (Permutation_in _ HP) in Hi. apply in_seq in Hi. lia. }
  transitivity (total (fun i => unserved i x - unserved i (x + 1)) (seq 0 n)).
  - rewrite <- (total_perm _ _ _ HP), total_app.
    enough (0 <= total (fun i => unserved i x - unserved i (x + 1)) rest) by lia.
    apply total_nonneg. intros i Hi. rewrite Hone by (apply Hin, in_or_app; auto).
    apply total_nonneg. intros w _. apply total_nonneg. intros t _. apply got_grows.
  - rewrite (total_ext _ (fun i => total (fun w => total (fun t => gain w t i) (rounds lo N)) (seq 0 m))).
    2: { intros i Hi. apply in_seq in Hi. apply Hone. lia. }
    rewrite total_swap. transitivity (total (fun _ : nat => M) (seq 0 m)).
    + apply total_le. intros w _. rewrite total_swap. etransitivity; [|apply (one_round_at_a_time w x N lo)].
      apply total_le. intros t _. apply room_for_both.
    + rewrite total_const, seq_length. lia.
Qed.

(** Nothing before the arrival, and no more than it takes. *)
Theorem nothing_before_arrival i x : (i < length (placed S))%nat ->
  x <= snd (item i) -> unserved i x = size_of i.
Proof.
  intros Hi Hx. unfold unserved. set (p := fst (item i)).
  rewrite total_zero; [lia|]. intros t Ht. apply rounds_in in Ht.
  destruct S_feasible as [_ Harr _ _ _]. rewrite Forall_forall in Harr.
  specialize (Harr (item i) ltac:(apply nth_In; exact Hi)). fold p in Harr.
  pose proof (begins_grow (worker p) (start p + 1) (Z.to_nat (t - (start p + 1)))) as H.
  replace (start p + 1 + Z.of_nat (Z.to_nat (t - (start p + 1)))) with t in H by lia.
  pose proof (works_before_nonneg (worker p) t i). unfold got.
  pose proof (works_before_nonneg (worker p) t (length (placed S))). unfold all_works.
  unfold clamp. rewrite !Z.max_l by lia. lia.
Qed.

Theorem never_more_than_it_takes i x : 0 <= unserved i x.
Proof.
  unfold unserved. rewrite size_by_round. unfold by_round, takes_in.
  set (p := fst (item i)). rewrite <- total_minus.
  apply total_nonneg. intros t _. unfold got.
  change (work_of K (does (worker p) t p)) with (at_work (worker p) t i).
  change (kept (does (worker p) t p)) with (keeps (worker p) t i).
  set (a := at_work (worker p) t i). set (h := keeps (worker p) t i).
  pose proof (at_work_nonneg (worker p) t i) as Ha. pose proof (keeps_nonneg (worker p) t i) as Hh.
  pose proof f_0_nonneg. fold a in Ha. fold h in Hh.
  set (c1 := clamp _ a). set (c2 := clamp _ (f_0 K)).
  assert (M * c1 <= M * a) by (apply Z.mul_le_mono_nonneg_l; unfold c1, clamp; lia).
  assert (h * c2 <= h * f_0 K) by (apply Z.mul_le_mono_nonneg_l; unfold c2, clamp; lia). lia.
Qed.

(** What the fluid that serves by slope has left over, at the rate m M, is no more than what any
    schedule has: the core of a bound in seconds. *)
Theorem no_schedule_is_ahead (slope : nat -> Z) (order : list nat) (n : nat) :
  Permutation order (seq 0 (length (placed S))) ->
  StronglySorted (fun i j => slope j <= slope i) order ->
  (forall i, In i order -> 0 <= slope i) ->
  weighted_left (fun i => snd (item i)) size_of slope (Z.of_nat m * M) order n
  <= total (fun i => slope i * total (unserved i) (rounds 0 (Datatypes.S n))) order.
Proof.
  intros HP Hs Hn.
  assert (Hin : forall i, In i order -> (i < length (placed S))%nat).
  { intros i Hi. apply (Permutation_in _ HP) in Hi. apply in_seq in Hi. lia. }
  apply serving_by_slope_is_best; auto.
  - apply Z.mul_nonneg_nonneg; lia.
  - intros i Hi. destruct S_feasible as [_ Harr _ _ _]. rewrite Forall_forall in Harr.
    specialize (Harr (item i) ltac:(apply nth_In; auto)). lia.
  - intros i Hi. rewrite <- (nothing_before_arrival i (snd (item i))) by (auto; lia).
    apply never_more_than_it_takes.
  - intros i x Hi. apply never_more_than_it_takes.
  - intros i x Hi Hx. rewrite nothing_before_arrival; auto. lia.
  - intros k x _. apply a_schedule_is_a_fluid. exists (skipn k order).
    now rewrite firstn_skipn.
Qed.

(** ** When a request completes *)

(** All lines of the machine; the chosen ones say no more. *)
Variable All : machine.
Hypothesis All_sensible : sensible All.
Hypothesis All_feasible : feasible_in_seconds All M m S.

Lemma alone_in_a_batch i t : (i < length (placed S))%nat ->
  let p := fst (item i) in
  start p < t <= completion p ->
  begins S (worker p) t + duration All [in_round (what p) (t - start p)] <= ends S (worker p) t /\
  0 <= duration All [in_round (what p) (t - start p)].
Proof.
  intros Hi p Ht. rewrite <- does_in_round by auto.
  destruct All_feasible as [_ _ Hlast _ _]. specialize (Hlast (worker p) t).
  destruct All_sensible as (HK & Hp & Hkv).
  assert (Hin : In (does (worker p) t p) (batch S (worker p) t)).
  { unfold batch. apply (in_map (fun x => does (worker p) t (fst x)) _ (item i)). now apply nth_In. }
  assert (Hmember : forall f : part -> Z,
            (forall j, 0 <= f (does (worker p) t (fst (item j)))) ->
            0 <= f (does (worker p) t p) <= total f (batch S (worker p) t)).
  { intros f Hf. split; [apply Hf|]. apply total_member; auto. intros y Hy. unfold batch in Hy.
    apply in_map_iff in Hy as (z & <- & Hz). destruct (In_nth _ _ no_item Hz) as (j & _ & <-).
    apply Hf. }
  pose proof (Hmember processed ltac:(intros; apply does_nonneg)) as H1.
  pose proof (Hmember of_prompt ltac:(intros; apply does_nonneg)) as H2.
  pose proof (Hmember kept ltac:(intros; apply does_nonneg)) as H3.
  unfold duration in *. cbn [total]. rewrite !Z.add_0_r.
  assert (longest (line_one All) (lines All) (processed (does (worker p) t p))
          <= longest (line_one All) (lines All) (total processed (batch S (worker p) t))).
  { destruct (longest_spec (line_one All) (lines All) (processed (does (worker p) t p)))
      as [_ (l & Hl & ->)].
    destruct (longest_spec (line_one All) (lines All) (total processed (batch S (worker p) t)))
      as [Hmax _]. specialize (Hmax l Hl). rewrite Forall_forall in HK. specialize (HK l Hl).
    cbn beta in HK. unfold line_at in *.
    assert (per_token l * processed (does (worker p) t p)
            <= per_token l * total processed (batch S (worker p) t))
      by (apply Z.mul_le_mono_nonneg_l; lia). lia. }
  pose proof (longest_grows _ _ _ HK (proj1 H1)).
  assert (prompt_ns All * of_prompt (does (worker p) t p)
          <= prompt_ns All * total of_prompt (batch S (worker p) t))
    by (apply Z.mul_le_mono_nonneg_l; lia).
  assert (kv_ns All * kept (does (worker p) t p) <= kv_ns All * total kept (batch S (worker p) t))
    by (apply Z.mul_le_mono_nonneg_l; lia).
  assert (0 <= prompt_ns All * of_prompt (does (worker p) t p)) by (apply Z.mul_nonneg_nonneg; lia).
  assert (0 <= kv_ns All * kept (does (worker p) t p)) by (apply Z.mul_nonneg_nonneg; lia).
  lia.
Qed.

(** The moment at which it completes. *)
Definition completes (i : nat) : Z := ends S (worker (fst (item i))) (completion (fst (item i))).

(** "The service of i in its j-th round lies before the rounds j + 1, ..., o_i". *)
Lemma rounds_after i : (i < length (placed S))%nat -> let p := fst (item i) in
  forall n t, t + Z.of_nat n = completion p -> start p < t ->
  ends S (worker p) t + alone_after All (what p) (t - start p) <= completes i.
Proof.
  intros Hi p. induction n as [|n IH]; intros t Ht Hs; unfold alone_after, completion in *.
  - replace (Z.to_nat (output (what p) - (t - start p))) with O by lia. cbn [rounds total].
    unfold completes, completion. fold p. replace t with (start p + output (what p)) by lia. lia.
  - replace (Z.to_nat (output (what p) - (t - start p)))
      with (1 + Z.to_nat (output (what p) - (t + 1 - start p)))%nat by lia.
    cbn [rounds total Nat.add]. specialize (IH (t + 1) ltac:(lia) ltac:(lia)).
    replace (t - start p + 1) with (t + 1 - start p) by lia.
    destruct (alone_in_a_batch i (t + 1) Hi) as [H _]; [fold p; unfold completion; lia|]. fold p in H.
    destruct S_feasible as [_ _ _ Hnext _]. specialize (Hnext (worker p) t). lia.
Qed.

(** "c_i >= a_i + E_i": no run is shorter. *)
Theorem no_run_is_shorter i : (i < length (placed S))%nat ->
  snd (item i) + alone_after All (what (fst (item i))) 0 <= completes i.
Proof.
  intros Hi. set (p := fst (item i)).
  destruct S_feasible as [_ Harr _ _ _]. rewrite Forall_forall in Harr.
  specialize (Harr (item i) ltac:(apply nth_In; exact Hi)). fold p in Harr.
  assert (Ho : 1 <= output (what p)).
  { rewrite Forall_forall in S_tokens. apply (S_tokens (item i)). now apply nth_In. }
  pose proof (rounds_after i Hi (Z.to_nat (output (what p) - 1)) (start p + 1)
    ltac:(fold p; unfold completion; lia) ltac:(fold p; lia)) as H. fold p in H.
  destruct (alone_in_a_batch i (start p + 1) Hi) as [H1 _]; [fold p; unfold completion; lia|].
  fold p in H1. unfold alone_after in *.
  replace (start p + 1 - start p) with 1 in * by lia.
  replace (Z.to_nat (output (what p) - 0)) with (1 + Z.to_nat (output (what p) - 1))%nat by lia.
  cbn [rounds total Nat.add]. replace (0 + 1) with 1 by lia. lia.
Qed.

(** What is left of [c] that is given away one by one from [from] on, over all times. *)
Lemma left_over_time c from n : 0 <= c -> 0 <= from ->
  2 * total (fun x => c - clamp (x - from) c) (rounds 0 n) <= 2 * c * from + c * (c + 1).
Proof.
  intros Hc Hf. set (k := fun n => clamp (n - from) c).
  assert (E : 2 * total (fun x => c - clamp (x - from) c) (rounds 0 n)
              = 2 * c * Z.min (Z.of_nat n) from + k (Z.of_nat n) * (2 * c - k (Z.of_nat n) + 1)).
  { induction n as [|n IH].
    - cbn [rounds total]. unfold k, clamp. rewrite Z.min_l by lia. rewrite Z.max_l by lia. lia.
    - replace (Datatypes.S n) with (n + 1)%nat by lia. rewrite rounds_app, total_app, Z.mul_add_distr_l, IH.
      cbn [rounds total]. replace (Z.of_nat (n + 1)) with (Z.of_nat n + 1) by lia.
      replace (0 + Z.of_nat n) with (Z.of_nat n) by lia. fold (k (Z.of_nat n)).
      destruct (Z_lt_le_dec (Z.of_nat n) from).
      + assert (k (Z.of_nat n) = 0) as -> by (unfold k, clamp; lia).
        assert (k (Z.of_nat n + 1) = 0) as -> by (unfold k, clamp; lia).
        rewrite !Z.min_l by lia. lia.
      + rewrite !Z.min_r by lia. destruct (Z_lt_le_dec (Z.of_nat n - from) c).
        * assert (k (Z.of_nat n + 1) = k (Z.of_nat n) + 1) as -> by (unfold k, clamp; lia). ring.
        * assert (k (Z.of_nat n + 1) = c) as -> by (unfold k, clamp; lia).
          assert (k (Z.of_nat n) = c) as -> by (unfold k, clamp; lia). ring. }
  rewrite E. assert (0 <= k (Z.of_nat n) <= c) by (unfold k, clamp; lia).
  assert (0 <= (c - k (Z.of_nat n)) * (c - k (Z.of_nat n) + 1)) by (apply Z.mul_nonneg_nonneg; lia).
  assert (2 * c * Z.min (Z.of_nat n) from <= 2 * c * from) by (apply Z.mul_le_mono_nonneg_l; lia).
  lia.
Qed.

Lemma works_before_all w t i : (i < length (placed S))%nat ->
  works_before w t i + at_work w t i <= all_works w t.
Proof.
  intros Hi. unfold all_works, works_before.
  replace (length (placed S)) with (i + (1 + (length (placed S) - i - 1)))%nat by lia.
  rewrite (seq_app i), (seq_app 1), !total_app. cbn [Nat.add seq total].
  enough (0 <= total (at_work w t) (seq (i + 1) (length (placed S) - i - 1))) by lia.
  apply total_nonneg. intros j _. apply at_work_nonneg.
Qed.

Lemma works_in_time w t : begins S w t + all_works w t + f_0 K <= ends S w t.
Proof.
  destruct S_feasible as [_ _ Hlast _ _]. specialize (Hlast w t).
  unfold all_works, works_before, at_work. rewrite (by_position (fun z => work_of K (does w t (fst z)))).
  enough (total (fun z => work_of K (does w t (fst z))) (placed S) + f_0 K <= duration K (batch S w t))
    by lia.
  unfold duration, f_0, work_of. pose proof (works_fit (line_one K) (lines K) (prompt_ns K) (kv_ns K)
    (batch S w t)) as H. unfold batch in H at 2. rewrite total_map in H. apply H.
  unfold batch. rewrite Forall_map, Forall_forall. intros z Hz.
  destruct (In_nth _ _ no_item Hz) as (i & _ & <-). apply does_nonneg.
Qed.

(** "c_i >= B_i + delta_i", times 2 M X_i: where B_i is the mean of the times of its service, and
    M X_i B_i the sum of what is left over all times less half of M X_i. *)
Theorem completes_after_service i n : (i < length (placed S))%nat ->
  2 * total (unserved i) (rounds 0 n)
  <= size_of i * (2 * completes i + 1) - later_than_served All K M (what (fst (item i))).
Proof.
  intros Hi. set (p := fst (item i)). set (c := completes i).
  set (those := rounds (start p + 1) (Z.to_nat (output (what p)))).
  set (w := fun t => at_work (worker p) t i). set (h := fun t => keeps (worker p) t i).
  set (W := fun t => begins S (worker p) t + works_before (worker p) t i).
  set (F := fun t => begins S (worker p) t + all_works (worker p) t).
  assert (E : total (unserved i) (rounds 0 n)
    = total (fun t => M * total (fun x => w t - clamp (x - W t) (w t)) (rounds 0 n)
                      + h t * total (fun x => f_0 K - clamp (x - F t) (f_0 K)) (rounds 0 n)) those).
  { transitivity (total (fun x => total (fun t => M * (w t - clamp (x - W t) (w t))
                      + h t * (f_0 K - clamp (x - F t) (f_0 K))) those) (rounds 0 n)).
    - apply total_ext. intros x _. unfold unserved. rewrite size_by_round.
      unfold by_round, takes_in. fold p those.
      rewrite <- total_minus. apply total_ext. intros t _. unfold got, w, h, W, F.
      change (work_of K (does (worker p) t p)) with (at_work (worker p) t i).
      change (kept (does (worker p) t p)) with (keeps (worker p) t i).
      replace (x - begins S (worker p) t - works_before (worker p) t i)
        with (x - (begins S (worker p) t + works_before (worker p) t i)) by lia.
      replace (x - begins S (worker p) t - all_works (worker p) t)
        with (x - (begins S (worker p) t + all_works (worker p) t)) by lia. lia.
    - rewrite total_swap. apply total_ext. intros t _. now rewrite total_plus, !total_scale. }
  rewrite E, size_by_round. unfold later_than_served.
  rewrite <- (by_round_same (fun j => later_in All K M (alone_after All (what p) j)) p).
  unfold by_round, takes_in, later_in. fold p those.
  rewrite (Z.mul_comm (total _ those)), <- !total_scale, <- total_minus.
  apply total_le. intros t Ht. apply rounds_in in Ht.
  change (work_of K (does (worker p) t p)) with (w t). change (kept (does (worker p) t p)) with (h t).
  set (e := alone_after All (what p) (t - start p)).
  assert (Hend : ends S (worker p) t + e <= c).
  { apply (rounds_after i Hi (Z.to_nat (completion p - t))); fold p; unfold completion; lia. }
  assert (Hbegin : 0 <= begins S (worker p) t).
  { destruct S_feasible as [_ Harr _ _ _]. rewrite Forall_forall in Harr.
    specialize (Harr (item i) ltac:(apply nth_In; exact Hi)). fold p in Harr.
    pose proof (begins_grow (worker p) (start p + 1) (Z.to_nat (t - (start p + 1)))) as H.
    replace (start p + 1 + Z.of_nat (Z.to_nat (t - (start p + 1)))) with t in H by lia. lia. }
  pose proof (at_work_nonneg (worker p) t i) as Hw. fold (w t) in Hw.
  pose proof (keeps_nonneg (worker p) t i) as Hh. fold (h t) in Hh.
  pose proof f_0_nonneg as Hf. pose proof (works_before_nonneg (worker p) t i).
  pose proof (works_before_nonneg (worker p) t (length (placed S))). fold (all_works (worker p) t) in *.
  pose proof (works_before_all (worker p) t i Hi) as H2. fold (w t) in H2.
  pose proof (works_in_time (worker p) t) as H3.
  assert (Hlast1 : 2 * total (fun x => w t - clamp (x - W t) (w t)) (rounds 0 n)
                   <= w t * (2 * c + 1 - (2 * e + 2 * f_0 K + w t))).
  { etransitivity; [apply left_over_time; unfold W; lia|].
    assert (w t * (2 * (W t + w t)) <= w t * (2 * (c - e - f_0 K)))
      by (apply Z.mul_le_mono_nonneg_l; unfold W; lia). lia. }
  assert (Hlast2 : 2 * total (fun x => f_0 K - clamp (x - F t) (f_0 K)) (rounds 0 n)
                   <= f_0 K * (2 * c + 1 - (2 * e + f_0 K))).
  { etransitivity; [apply left_over_time; unfold F; lia|].
    assert (f_0 K * (2 * (F t + f_0 K)) <= f_0 K * (2 * (c - e)))
      by (apply Z.mul_le_mono_nonneg_l; unfold F; lia). lia. }
  apply (Z.mul_le_mono_nonneg_l _ _ M) in Hlast1; [|auto].
  apply (Z.mul_le_mono_nonneg_l _ _ (h t)) in Hlast2; [|auto].
  lia.
Qed.

(** With weights: "(1 - z_i) (a_i + E_i) + z_i (B_i + delta_i)". *)
Lemma weighted (D : Z) (slope : nat -> Z) (order : list nat) (n : nat) :
  Permutation order (seq 0 (length (placed S))) ->
  StronglySorted (fun i j => slope j <= slope i) order ->
  (forall i, In i order -> 0 <= slope i /\ slope i * size_of i <= D) ->
  total (fun i => 2 * (D - slope i * size_of i)
                    * (snd (item i) + alone_after All (what (fst (item i))) 0)
                  + slope i * (later_than_served All K M (what (fst (item i))) - size_of i)
                  - 2 * D * snd (item i)) order
    + 2 * weighted_left (fun i => snd (item i)) size_of slope (Z.of_nat m * M) order n
  <= 2 * D * total (fun i => completes i - snd (item i)) order.
Proof.
  intros HP Hs Hz.
  pose proof (no_schedule_is_ahead slope order n HP Hs ltac:(intros i Hi; apply Hz; auto)) as H.
  enough (total (fun i => 2 * (D - slope i * size_of i)
              * (snd (item i) + alone_after All (what (fst (item i))) 0)
            + slope i * (later_than_served All K M (what (fst (item i))) - size_of i)
            - 2 * D * snd (item i)) order
          + 2 * total (fun i => slope i * total (unserved i) (rounds 0 (Datatypes.S n))) order
          <= 2 * D * total (fun i => completes i - snd (item i)) order) by lia.
  rewrite <- !total_scale, <- total_plus. apply total_le. intros i Hi.
  assert (Hin : (i < length (placed S))%nat).
  { apply (Permutation_in _ HP) in Hi. apply in_seq in Hi. lia. }
  destruct (Hz i Hi) as [Hs0 HsD].
  pose proof (completes_after_service i (Datatypes.S n) Hin) as H1.
  pose proof (no_run_is_shorter i Hin) as H2.
  apply (Z.mul_le_mono_nonneg_l _ _ (slope i)) in H1; [|auto].
  apply (Z.mul_le_mono_nonneg_l _ _ (2 * (D - slope i * size_of i))) in H2; [|lia].
  lia.
Qed.

End Fluid.

(** ** The bound *)

Definition total_latency_in_seconds (S : timed) : Z :=
  total (fun x => ends S (worker (fst x)) (completion (fst x)) - snd x) (placed S).

(** Some lines of a machine, or numbers that say no more than its lines. *)
Definition says_no_more (K All : machine) : Prop :=
  prompt_ns K = prompt_ns All /\ kv_ns K = kv_ns All /\
  forall b, 0 <= b -> longest (line_one K) (lines K) b <= longest (line_one All) (lines All) b.

(** "Total latency is at least the sum of (1 - z_i) (a_i + E_i) + z_i (B*_i + delta_i) - a_i", with
    the means B* of the fluid that serves by slope: of every schedule of the requests [l], pairs of
    a request and its arrival, on m workers.  [order] are their positions by slope, and [slope i / D]
    are the slopes, so that z_i is slope_i M X_i / D; both sides are times 2 D.  M X_i B*_i is the
    sum of what is left over all times less half of M X_i; it may be cut off after any number [n] of
    steps of a nanosecond. *)
Theorem shares_prove_a_bound (All K : machine) (M D : Z) (m n : nat) (l : list (request * Z))
    (slope : nat -> Z) (order : list nat) (S : timed) :
  let a i := snd (nth i l (Request 0 0 0, 0)) in
  let r i := fst (nth i l (Request 0 0 0, 0)) in
  let X i := takes K M (r i) in
  sensible All -> sensible K -> says_no_more K All -> 0 <= M ->
  Forall (fun x => 0 <= prompt (fst x) /\ 1 <= output (fst x)) l ->
  Permutation order (seq 0 (length l)) ->
  StronglySorted (fun i j => slope j <= slope i) order ->
  (forall i, In i order -> 0 <= slope i /\ slope i * X i <= D) ->
  feasible_in_seconds All M m S ->
  map (fun x => (what (fst x), snd x)) (placed S) = l ->
  total (fun i => 2 * (D - slope i * X i) * (a i + alone_after All (r i) 0)
                  + slope i * (later_than_served All K M (r i) - X i)
                  - 2 * D * a i) order
    + 2 * weighted_left a X slope (Z.of_nat m * M) order n
  <= 2 * D * total_latency_in_seconds S.
Proof.
  intros a r X HAll HK (E1 & E2 & Hsays) HM Hl HP Hs Hz HS Hplaced.
  assert (HSK : feasible_in_seconds K M m S).
  { destruct HS as [F1 F2 F3 F4 F5]. constructor; auto. intros w t. specialize (F3 w t).
    enough (duration K (batch S w t) <= duration All (batch S w t)) by lia.
    unfold duration. rewrite E1, E2.
    enough (0 <= total processed (batch S w t)) by (specialize (Hsays _ H); lia).
    apply total_nonneg. intros y Hy. unfold batch in Hy. apply in_map_iff in Hy as (x & <- & Hx).
    rewrite <- Hplaced, Forall_map, Forall_forall in Hl. specialize (Hl x Hx). cbn [fst] in Hl.
    unfold does, in_round. destruct (active w t (fst x)); [|cbn; lia].
    destruct (_ =? 1); cbn [processed]; lia. }
  assert (Htokens : Forall has_tokens (placed S)).
  { rewrite <- Hplaced, Forall_map in Hl. exact Hl. }
  assert (Hlen : length (placed S) = length l) by (rewrite <- Hplaced; now rewrite map_length).
  assert (Hitem : forall i, nth i l (Request 0 0 0, 0) = (what (fst (item S i)), snd (item S i))).
  { intros i. rewrite <- Hplaced. unfold item.
    exact (map_nth (fun x => (what (fst x), snd x)) (placed S) (Place (Request 0 0 0) 0 0, 0) i). }
  pose proof (weighted K M m S HK HM HSK Htokens All HAll HS D slope order n) as H.
  rewrite Hlen in H. specialize (H HP Hs).
  assert (Ea : forall i, a i = snd (item S i)) by (intros i; unfold a; now rewrite Hitem).
  assert (Er : forall i, r i = what (fst (item S i))) by (intros i; unfold r; now rewrite Hitem).
  assert (EX : forall i, X i = size_of K M S i) by (intros i; unfold X; now rewrite Er).
  assert (Ew : weighted_left a X slope (Z.of_nat m * M) order n
               = weighted_left (fun i => snd (item S i)) (size_of K M S) slope (Z.of_nat m * M) order n).
  { assert (Esteps : forall k, after_steps a X (Z.of_nat m * M) order k
              = after_steps (fun i => snd (item S i)) (size_of K M S) (Z.of_nat m * M) order k).
    { induction k as [|k IH]; cbn [after_steps].
      - apply map_ext. intros i. now rewrite EX.
      - rewrite IH. clear IH. generalize (Z.of_nat m * M) at 1 3.
        induction (after_steps _ _ _ order k) as [|[x y] rest IH]; intros room; cbn [serve]; [auto|].
        rewrite Ea. f_equal. apply IH. }
    clear H. induction n as [|k IH]; cbn [weighted_left]; rewrite Esteps; [auto|]. now rewrite IH. }
  rewrite Ew.
  replace (total_latency_in_seconds S) with (total (fun i => completes S i - snd (item S i)) order).
  2: { rewrite (total_perm _ _ _ HP). rewrite <- Hlen. unfold completes.
       apply (by_position S (fun x => ends S (worker (fst x)) (completion (fst x)) - snd x)). }
  etransitivity; [|apply H; intros i Hi; rewrite <- EX; auto].
  apply Z.add_le_mono_r, Z.eq_le_incl, total_ext. intros i _. now rewrite Ea, Er, EX.
Qed.

(** The example of the docs: two requests (0, 2, 1) that fill the memory of 3, in rounds of 10 ns.
    With weights of 1 the bound is 30, which can be reached. *)
Example the_example_of_the_docs :
  let K := Machine (Line 10 0) [] 0 0 in
  let r := Request 0 2 1 in
  takes K 3 r = 30 /\
  2 * (later_than_served K K 3 r - 30)
    + 2 * weighted_left (fun _ => 0) (fun _ => 30) (fun _ => 1) 3 [0; 1]%nat 20
  = 2 * 30 * 30.
Proof. vm_compute. split; reflexivity. Qed.

Print Assumptions no_run_is_shorter.
Print Assumptions completes_after_service.
Print Assumptions shares_prove_a_bound.

Print Assumptions a_schedule_is_a_fluid.
Print Assumptions nothing_before_arrival.
Print Assumptions never_more_than_it_takes.
Print Assumptions no_schedule_is_ahead.
