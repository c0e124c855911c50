(** * Prices

    docs/theory/bounds.md, "Any prices prove a bound". *)

From Coq Require Import ZArith List Lia Bool.
From KV Require Import Problem Sums Memory Services.
Import ListNotations.
Open Scope Z_scope.

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

(** What a request on one of the workers pays, as Services.v has it. *)
Lemma payment_of_a_run I first numerators p :
  0 <= output (what p) -> (worker p < workers I)%nat ->
  payment (price_at first numerators) (what p) (start p) = by_time runs I first numerators p.
Proof.
  intros Ho Hw.
  rewrite (payment_by_time _ first (length numerators)) by (auto; apply price_outside).
  apply total_ext. intros t _. cbn [runs uses]. now rewrite total_one_worker.
Qed.

Lemma runs_pay I first numerators s :
  well_formed I -> served runs I s -> forall p, In p s ->
  payment (price_at first numerators) (what p) (start p) = by_time runs I first numerators p.
Proof.
  intros [_ Hr] [Hs Hp _] p Hin. rewrite Forall_forall in Hr, Hp. apply payment_of_a_run.
  - apply (in_map what) in Hin. cbn in Hs. rewrite Hs in Hin. apply Hr in Hin. lia.
  - now apply Hp.
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
  intros HI Hp Hc HF. apply feasible_served in HF.
  apply (costs_prove_a_bound runs I first numerators s
           (fun p => payment (price_at first numerators) (what p) (start p))); auto.
  - now apply runs_pay.
  - induction Hc as [|r c rs cs H _ IH]; constructor; auto. intros p <- [Ha _]. now apply H.
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
