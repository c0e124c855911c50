(** * Prices

    docs/bounds.md, "Any prices prove a bound". *)

From Coq Require Import ZArith List Lia Bool.
From KV Require Import Problem Sums Memory.
Import ListNotations.
Open Scope Z_scope.

(** Prices are integers over a common denominator [D]: a token held at time [t] costs
    [price t / D].  They are given for [count] times from [first] on and are 0 at all others. *)
Definition price_at (first : Z) (numerators : list Z) (t : Z) : Z :=
  if t <? first then 0 else nth (Z.to_nat (t - first)) numerators 0.

(** What the tokens of a request cost that starts at [k]: it holds prompt + g at time k + g. *)
Definition payment (price : Z -> Z) (r : request) (k : Z) : Z :=
  total (fun g => price (k + g) * (prompt r + g)) (rounds 1 (Z.to_nat (output r))).

(** Its cost, times D: latency and payment. *)
Definition cost (D : Z) (price : Z -> Z) (r : request) (k : Z) : Z :=
  D * (k + output r - arrival r) + payment price r k.

(** [c] is at most what the request costs, whenever it starts. *)
Definition least_cost (D : Z) (price : Z -> Z) (r : request) (c : Z) : Prop :=
  forall k, arrival r <= k -> c <= cost D price r k.

(** Sorted by time instead of by request. *)
Lemma payment_by_time price first n p :
  0 <= output (what p) ->
  (forall t, ~ (first <= t < first + Z.of_nat n) -> price t = 0) ->
  payment price (what p) (start p) = total (fun t => price t * holds p t) (rounds first n).
Proof.
  intros Ho Hp. unfold payment.
  transitivity (total (fun t => price t * holds p t)
                  (rounds (start p + 1) (Z.to_nat (output (what p))))).
  - replace (start p + 1) with (1 + start p) by lia. rewrite rounds_shift, total_map.
    apply total_ext. intros g Hg. apply rounds_in in Hg. unfold holds, completion.
    replace (start p <? g + start p) with true by (symmetry; lia).
    replace (g + start p <=? start p + output (what p)) with true by (symmetry; lia). simpl.
    replace (g + start p) with (start p + g) by lia.
    replace (start p + g - start p) with g by lia. lia.
  - apply total_ranges. intros t Ht. split.
    + assert (H : holds p t <> 0) by (intros E; rewrite E in Ht; lia).
      unfold holds, completion in H.
      destruct (start p <? t) eqn:E1; simpl in H; [|lia].
      destruct (t <=? start p + output (what p)) eqn:E2; lia.
    + destruct (Z_le_gt_dec first t); destruct (Z_lt_le_dec t (first + Z.of_nat n));
        try lia; exfalso; apply Ht; rewrite Hp by lia; lia.
Qed.

(** Each is on one worker: of a sum over all workers one member counts. *)
Lemma total_one_worker (c : Z) (v m : nat) :
  (v < m)%nat -> total (fun w => if Nat.eqb v w then c else 0) (seq 0 m) = c.
Proof.
  intros Hv.
  assert (H : forall n a, (a <= v < a + n)%nat ->
            total (fun w => if Nat.eqb v w then c else 0) (seq a n) = c).
  { induction n as [|n IH]; intros a Ha; [lia|]. cbn [seq total].
    destruct (Nat.eqb_spec v a) as [E|E].
    - rewrite total_zero; [lia|]. intros w Hin. apply in_seq in Hin.
      destruct (Nat.eqb_spec v w); [lia|auto].
    - rewrite IH by lia. lia. }
  apply H. lia.
Qed.

(** What is at most [R] on each of [m] workers is at most m R on all of them. *)
Lemma all_of_workers (f : placement -> Z) (m : nat) (R : Z) (s : schedule) :
  Forall (fun p => (worker p < m)%nat) s ->
  (forall w, total (fun p => if Nat.eqb (worker p) w then f p else 0) s <= R) ->
  total f s <= Z.of_nat m * R.
Proof.
  intros Hw HR.
  transitivity (total (fun w => total (fun p => if Nat.eqb (worker p) w then f p else 0) s) (seq 0 m)).
  2: { transitivity (total (fun _ : nat => R) (seq 0 m)); [apply total_le; auto|].
       rewrite total_const, seq_length. lia. }
  rewrite total_swap. apply Z.eq_le_incl, total_ext. intros p Hp.
  rewrite Forall_forall in Hw. apply Hw in Hp.
  symmetry. now apply total_one_worker.
Qed.

Lemma all_loads (M : Z) (m : nat) (s : schedule) (t : Z) :
  Forall (fun p => (worker p < m)%nat) s ->
  (forall w, load s w t <= M) ->
  total (fun p => holds p t) s <= Z.of_nat m * M.
Proof. intros Hw HM. apply all_of_workers; auto. Qed.

(** Prices are 0 outside their times, not negative, and their sum is that of the list. *)
Lemma price_outside first numerators t :
  ~ (first <= t < first + Z.of_nat (length numerators)) -> price_at first numerators t = 0.
Proof.
  intros Ht. unfold price_at. destruct (t <? first) eqn:E; auto. apply nth_overflow. lia.
Qed.

Lemma price_nonneg first numerators t :
  Forall (fun x => 0 <= x) numerators -> 0 <= price_at first numerators t.
Proof.
  intros Hp. unfold price_at. destruct (t <? first); [lia|].
  destruct (nth_in_or_default (Z.to_nat (t - first)) numerators 0) as [H| ->]; [|lia].
  rewrite Forall_forall in Hp. auto.
Qed.

Lemma price_sum first numerators :
  total (price_at first numerators) (rounds first (length numerators))
  = total (fun x => x) numerators.
Proof.
  revert first. induction numerators as [|x l IH]; intros first; cbn [rounds total length]; auto.
  rewrite <- (IH (first + 1)). f_equal.
  - unfold price_at. replace (first <? first) with false by (symmetry; lia).
    replace (first - first) with 0 by lia. reflexivity.
  - apply total_ext. intros t Ht. apply rounds_in in Ht. unfold price_at.
    replace (t <? first) with false by (symmetry; lia).
    replace (t <? first + 1) with false by (symmetry; lia).
    replace (Z.to_nat (t - first)) with (S (Z.to_nat (t - (first + 1)))) by lia. reflexivity.
Qed.

(** At each time m workers hold m M tokens at most: so much all requests pay together. *)
Lemma all_payments (I : instance) (first : Z) (numerators : list Z) (s : schedule) :
  well_formed I ->
  Forall (fun x => 0 <= x) numerators ->
  feasible I s ->
  total (fun p => payment (price_at first numerators) (what p) (start p)) s
  <= Z.of_nat (workers I) * memory I * total (fun x => x) numerators.
Proof.
  intros [HM Hr] Hp [Hs Ha Hw Hf].
  set (times := rounds first (length numerators)).
  transitivity (total (fun p => total (fun t => price_at first numerators t * holds p t) times) s).
  - apply Z.eq_le_incl, total_ext. intros p Hin. apply payment_by_time.
    + assert (Hi : In (what p) (requests I)) by (rewrite <- Hs; now apply in_map).
      rewrite Forall_forall in Hr. apply Hr in Hi. lia.
    + apply price_outside.
  - rewrite total_swap, <- (price_sum first), <- total_scale. apply total_le. intros t _.
    rewrite total_scale, (Z.mul_comm _ (price_at _ _ t)).
    apply Z.mul_le_mono_nonneg_l; [now apply price_nonneg|]. apply all_loads; auto.
Qed.

(** The claim.  [costs] are numbers of which each is at most every cost of its request.  Then the
    sum of them, less m M times the sum of all prices, is at most D times the total latency of
    every feasible schedule of m workers with a cache of M each. *)
Theorem prices_prove_a_bound (I : instance) (D first : Z) (numerators costs : list Z) (s : schedule) :
  well_formed I ->
  Forall (fun x => 0 <= x) numerators ->
  Forall2 (least_cost D (price_at first numerators)) (requests I) costs ->
  feasible I s ->
  total (fun c => c) costs
    - Z.of_nat (workers I) * memory I * total (fun x => x) numerators
  <= D * total_latency s.
Proof.
  intros HI Hp Hc HF. pose proof (all_payments I first numerators s HI Hp HF) as H3.
  destruct HF as [Hs Ha _ _]. set (price := price_at first numerators) in *.
  assert (H1 : total (fun c => c) costs <= total (fun p => cost D price (what p) (start p)) s).
  { rewrite <- Hs in Hc. clear - Hc Ha. revert costs Hc.
    induction s as [|p s IH]; intros costs Hc; inversion Hc; subst; simpl; [lia|].
    inversion Ha; subst. specialize (IH H4 _ H3). specialize (H1 (start p) H2). lia. }
  assert (H2 : total (fun p => cost D price (what p) (start p)) s
               = D * total_latency s + total (fun p => payment price (what p) (start p)) s).
  { unfold cost, total_latency, latency, completion. rewrite total_plus, total_scale. reflexivity. }
  lia.
Qed.

(** "Which start rounds have to be looked at": if every price is 0 after [T], then the starts
    from the arrival to max(arrival, [T]), both included, are enough. *)
Theorem starts_to_look_at (D : Z) (price : Z -> Z) (r : request) (T c : Z) :
  0 <= D ->
  (forall t, T < t -> price t = 0) ->
  (forall k, arrival r <= k <= Z.max (arrival r) T -> c <= cost D price r k) ->
  least_cost D price r c.
Proof.
  intros HD HT H k Hk.
  destruct (Z_le_gt_dec k (Z.max (arrival r) T)); [apply H; lia|].
  transitivity (cost D price r (Z.max (arrival r) T)); [apply H; lia|].
  assert (Zero : forall k', Z.max (arrival r) T <= k' -> payment price r k' = 0).
  { intros j Hj. apply total_zero. intros h Hh. apply rounds_in in Hh. rewrite HT; lia. }
  unfold cost. rewrite !Zero by lia. nia.
Qed.

Print Assumptions prices_prove_a_bound.
Print Assumptions starts_to_look_at.
