(** * What runs and paused runs have in common

    A bound by prices or by volume asks little of the way in which requests are served: what each
    of them holds, on which worker and when, and when it is done.  What is proved here holds for
    all such ways; Prices.v has runs in one piece, Pauses.v runs with pauses. *)

From Coq Require Import ZArith List Lia Bool.
From KV Require Import Problem Sums Memory.
Import ListNotations.
Open Scope Z_scope.

(** One way to serve: [A] is how a single request is served. *)
Record service (A : Type) := Service {
  asks : A -> request;
  first : A -> Z;                (** when its first token is there *)
  done : A -> Z;                 (** when its last token is there *)
  uses : A -> nat -> Z -> Z;     (** what it holds on a worker at a time *)
  proper : nat -> A -> Prop      (** with so many workers this may be done *)
}.
Arguments asks {A}. Arguments first {A}. Arguments done {A}. Arguments uses {A}. Arguments proper {A}.

Record served {A} (k : service A) (I : instance) (s : list A) : Prop := {
  served_all : map (asks k) s = requests I;
  served_properly : Forall (proper k (workers I)) s;
  served_in_memory : forall w t, total (fun x => uses k x w t) s <= memory I
}.

Definition latencies {A} (k : service A) (s : list A) : Z :=
  total (fun x => done k x - arrival (asks k x)) s.

(** What a lower bound claims. *)
Definition bounds {A} (k : service A) (I : instance) (b : Z) : Prop :=
  forall s, served k I s -> b <= latencies k s.

(** Nothing of what a request holds is negative. *)
Definition uses_nonneg {A} (k : service A) : Prop :=
  forall x w t, 0 <= prompt (asks k x) -> 0 <= uses k x w t.

(** ** Runs in one piece *)

Definition runs : service placement := {|
  asks := what;
  first p := start p + 1;
  done := completion;
  uses p w t := if Nat.eqb (worker p) w then holds p t else 0;
  proper m p := arrival (what p) <= start p /\ (worker p < m)%nat
|}.

Lemma feasible_served I s : feasible I s <-> served runs I s.
Proof.
  split.
  - intros [Hs Ha Hw Hf]. constructor; auto. rewrite Forall_forall in *. split; auto.
  - intros [Hs Hp Hf]. rewrite Forall_forall in Hp.
    constructor; auto; apply Forall_forall; intros p Hin; now apply Hp.
Qed.

Lemma bounds_runs I b : bounds runs I b <-> lower_bound I b.
Proof. split; intros H s Hs; apply H, feasible_served, Hs. Qed.

Lemma uses_nonneg_runs : uses_nonneg runs.
Proof.
  intros p w t H. cbn [runs uses]. destruct (Nat.eqb (worker p) w); [|lia]. now apply holds_nonneg.
Qed.

(** ** Some of the requests *)

Lemma some_well_formed I f :
  well_formed I -> well_formed (Instance (memory I) (workers I) (filter f (requests I))).
Proof.
  intros [H1 H2]. split; auto. cbn [requests]. apply Forall_forall. intros r Hr.
  apply filter_In in Hr. rewrite Forall_forall in H2. apply H2. tauto.
Qed.

Section Parts.
Context {A : Type}.
Variable k : service A.
Hypothesis nonneg : uses_nonneg k.

Lemma some_served I s f :
  well_formed I -> served k I s ->
  served k (Instance (memory I) (workers I) (filter f (requests I)))
    (filter (fun x => f (asks k x)) s).
Proof.
  intros [_ Hr] [Hs Hp Hf]. rewrite Forall_forall in Hr, Hp. constructor; cbn [requests workers].
  - rewrite <- Hs. clear. induction s as [|x s IH]; cbn; auto.
    destruct (f (asks k x)); cbn; congruence.
  - apply Forall_forall. intros x Hx. apply filter_In in Hx. apply Hp. tauto.
  - intros w t. etransitivity; [|apply (Hf w t)]. rewrite total_filter.
    apply total_le. intros x Hx. destruct (f (asks k x)); [lia|]. apply nonneg.
    apply (in_map (asks k)) in Hx. rewrite Hs in Hx. apply Hr in Hx. lia.
Qed.

(** Bounds of two kinds of requests, each for its own, add up. *)
Theorem bounds_add_up (I : instance) (f : request -> bool) (x y : Z) :
  well_formed I ->
  bounds k (Instance (memory I) (workers I) (filter f (requests I))) x ->
  bounds k (Instance (memory I) (workers I) (filter (fun r => negb (f r)) (requests I))) y ->
  bounds k I (x + y).
Proof.
  intros HI Hx Hy s Hs.
  specialize (Hx _ (some_served I s f HI Hs)).
  specialize (Hy _ (some_served I s (fun r => negb (f r)) HI Hs)).
  unfold latencies in *. rewrite total_filter in Hx, Hy.
  transitivity (total (fun x => if f (asks k x) then done k x - arrival (asks k x) else 0) s
    + total (fun x => if negb (f (asks k x)) then done k x - arrival (asks k x) else 0) s); [lia|].
  rewrite <- total_plus. apply total_le. intros z _. destruct (f (asks k z)); cbn; lia.
Qed.

End Parts.

(** ** Prices *)

(** Prices are integers over a common denominator [D]: a token held at time [t] costs
    [price t / D].  They are given for [count] times from [first] on and are 0 at all others. *)
Definition price_at (first : Z) (numerators : list Z) (t : Z) : Z :=
  if t <? first then 0 else nth (Z.to_nat (t - first)) numerators 0.

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

Section Paying.
Context {A : Type}.
Variables (k : service A) (I : instance) (from : Z) (numerators : list Z) (s : list A).
Variable pays : A -> Z.

Definition by_time (x : A) : Z :=
  total (fun t => price_at from numerators t * total (fun w => uses k x w t) (seq 0 (workers I)))
    (rounds from (length numerators)).

Hypothesis prices_nonneg : Forall (fun x => 0 <= x) numerators.
Hypothesis all_served : served k I s.
Hypothesis pays_by_time : forall x, In x s -> pays x = by_time x.

(** At each time m workers hold m M tokens at most: so much all requests pay together. *)
Lemma all_pay :
  total pays s <= Z.of_nat (workers I) * memory I * total (fun x => x) numerators.
Proof.
  destruct all_served as [_ _ Hf]. rewrite (total_ext pays by_time) by auto. unfold by_time.
  rewrite total_swap, <- (price_sum from), <- total_scale. apply total_le. intros t _.
  rewrite total_scale, (Z.mul_comm _ (price_at _ _ t)).
  apply Z.mul_le_mono_nonneg_l; [now apply price_nonneg|]. rewrite total_swap.
  transitivity (total (fun _ : nat => memory I) (seq 0 (workers I))).
  - apply total_le. intros w _. apply Hf.
  - rewrite total_const, seq_length. lia.
Qed.

(** [costs] are numbers of which each is at most what its request costs, times [D]: latency and
    payment.  Then the sum of them, less m M times the sum of all prices, is at most D times the
    total latency. *)
Lemma costs_prove_a_bound (D : Z) (costs : list Z) :
  Forall2 (fun r c => forall x, asks k x = r -> proper k (workers I) x ->
                      c <= D * (done k x - arrival r) + pays x) (requests I) costs ->
  total (fun c => c) costs
    - Z.of_nat (workers I) * memory I * total (fun x => x) numerators
  <= D * latencies k s.
Proof.
  intros Hc. pose proof all_pay as Hpay. destruct all_served as [Hs Hp _].
  enough (total (fun c => c) costs <= D * latencies k s + total pays s) by lia.
  unfold latencies. rewrite <- total_scale, <- total_plus.
  rewrite <- Hs in Hc. clear - Hc Hp. revert costs Hc.
  induction s as [|x l IH]; intros costs Hc; inversion Hc; subst; cbn [total]; [lia|].
  inversion Hp; subst. specialize (IH H4 _ H3). specialize (H1 x eq_refl H2). lia.
Qed.

End Paying.

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

Print Assumptions bounds_add_up.
