(** * The machine as a fluid

    docs/theory/seconds.md: rounds last as long as their batch.  What is proved here of bounds in
    seconds: what a round lasts is shared by the requests in it, and of all ways to share a machine
    the one that serves by slope is best. *)

From Coq Require Import ZArith List Lia Bool Sorted Permutation.
From KV Require Import Problem Sums.
Import ListNotations.
Open Scope Z_scope.

(** ** What a request takes

    How long a round lasts at least, as the model of a machine says: the largest of some lines, for
    the tokens that are processed, and so much for each prompt token and each token held. *)
Record line := Line { fixed : Z; per_token : Z }.

Definition line_at (b : Z) (l : line) : Z := fixed l + per_token l * b.

(** The largest of the lines [l] and [lines] for [b] tokens. *)
Definition longest (l : line) (lines : list line) (b : Z) : Z :=
  fold_right (fun x m => Z.max (line_at b x) m) (line_at b l) lines.

(** What a request does in a round: tokens processed, prompt tokens of these, tokens held. *)
Record part := Part { processed : Z; of_prompt : Z; kept : Z }.

(** "w_i = f(b_i) - f_0 + prompt_ns S_i + kv_ns h_i" *)
Definition work (l : line) (lines : list line) (prompt_ns kv_ns : Z) (x : part) : Z :=
  longest l lines (processed x) - longest l lines 0 + prompt_ns * of_prompt x + kv_ns * kept x.

Lemma longest_spec l lines b :
  (forall x, In x (l :: lines) -> line_at b x <= longest l lines b) /\
  exists x, In x (l :: lines) /\ longest l lines b = line_at b x.
Proof.
  unfold longest. induction lines as [|y lines [IH1 (x & Hx & E)]]; cbn [fold_right].
  - split; [intros x [<-|[]]; lia|]. exists l. split; [now left|auto].
  - split.
    + intros z [<-|[<-|Hz]]; [specialize (IH1 l (or_introl eq_refl)); lia|lia|].
      specialize (IH1 z (or_intror Hz)). lia.
    + destruct (Z.le_ge_cases (line_at b y) (fold_right (fun x m => Z.max (line_at b x) m) (line_at b l) lines)).
      * exists x. split; [destruct Hx as [<-|Hx]; [now left|right; now right]|]. lia.
      * exists y. split; [right; now left|]. lia.
Qed.

(** The largest of lines is convex: "f(x) + f(y) <= f(0) + f(x + y)". *)
Lemma longest_together l lines x y : 0 <= x -> 0 <= y ->
  longest l lines x + longest l lines y <= longest l lines 0 + longest l lines (x + y).
Proof.
  intros Hx Hy.
  destruct (longest_spec l lines x) as [_ (p & Hp & ->)].
  destruct (longest_spec l lines y) as [_ (q & Hq & ->)].
  destruct (longest_spec l lines 0) as [H0 _]. destruct (longest_spec l lines (x + y)) as [H1 _].
  pose proof (H0 p Hp). pose proof (H0 q Hq). pose proof (H1 p Hp). pose proof (H1 q Hq).
  unfold line_at in *. destruct (Z.le_ge_cases (per_token p) (per_token q)).
  - assert (per_token p * x <= per_token q * x) by (apply Z.mul_le_mono_nonneg_r; lia). lia.
  - assert (per_token q * y <= per_token p * y) by (apply Z.mul_le_mono_nonneg_r; lia). lia.
Qed.

(** "All works together are at most f(sum of b) - f_0 + ...": there is room in a round for all of
    them, one after another, and after them for the time f_0. *)
Lemma works_fit l lines prompt_ns kv_ns parts :
  Forall (fun x => 0 <= processed x) parts ->
  total (work l lines prompt_ns kv_ns) parts + longest l lines 0
  <= longest l lines (total processed parts)
     + prompt_ns * total of_prompt parts + kv_ns * total kept parts.
Proof.
  induction parts as [|x parts IH]; intros Hb; cbn [total]; [lia|].
  inversion Hb as [|? ? Hx Hrest]; subst. specialize (IH Hrest).
  pose proof (longest_together l lines (processed x) (total processed parts) Hx
    (total_nonneg processed parts (proj1 (Forall_forall _ _) Hrest))).
  unfold work at 1. lia.
Qed.

(** "A round lasts at least the sum over its active requests of w_i + f_0 h_i / M", times M. *)
Theorem a_round_lasts_what_is_taken l lines prompt_ns kv_ns M lasts parts :
  0 <= M -> 0 <= longest l lines 0 ->
  Forall (fun x => 0 <= processed x) parts ->
  total kept parts <= M ->
  longest l lines (total processed parts)
    + prompt_ns * total of_prompt parts + kv_ns * total kept parts <= lasts ->
  total (fun x => M * work l lines prompt_ns kv_ns x + longest l lines 0 * kept x) parts <= M * lasts.
Proof.
  intros HM Hf Hb Hk Hl. rewrite total_plus, !total_scale.
  pose proof (works_fit l lines prompt_ns kv_ns parts Hb) as H.
  assert (longest l lines 0 * total kept parts <= longest l lines 0 * M)
    by (apply Z.mul_le_mono_nonneg_l; auto).
  assert (M * (total (work l lines prompt_ns kv_ns) parts + longest l lines 0) <= M * lasts)
    by (apply Z.mul_le_mono_nonneg_l; lia).
  lia.
Qed.

(** ** Of all fluids the one that serves by slope

    Time is cut into steps as short as one likes.  A request [x] arrives at [arr x] and takes
    [size x] of the machine, of which [R] can be given away in a step: on a fleet of m workers m
    times as much.  [unserved x t] is what it has not got by time [t] in some other way to share the
    machine.  The mean of the times at which it is served, times its size, is the sum of what is
    left over all times, up to half a step: "the integral of served(oo) - served(t)". *)

(** One step: what is there goes to those that have arrived, in their order. *)
Fixpoint serve {A} (arr : A -> Z) (t room : Z) (l : list (A * Z)) : list (A * Z) :=
  match l with
  | [] => []
  | (x, need) :: rest =>
      let given := if arr x <=? t then Z.min room need else 0 in
      (x, need - given) :: serve arr t (room - given) rest
  end.

(** What is left after [n] steps. *)
Fixpoint after_steps {A} (arr size : A -> Z) (R : Z) (order : list A) (n : nat) : list (A * Z) :=
  match n with
  | O => map (fun x => (x, size x)) order
  | S n => serve arr (Z.of_nat n) R (after_steps arr size R order n)
  end.

(** The sum of what is left at the times 0, 1, ..., [n], each request times its slope. *)
Fixpoint weighted_left {A} (arr size slope : A -> Z) (R : Z) (order : list A) (n : nat) : Z :=
  total (fun x => slope (fst x) * snd x) (after_steps arr size R order n) +
  match n with O => 0 | S n => weighted_left arr size slope R order n end.

Section Fluids.
Context {A : Type}.
Variables (arr size slope : A -> Z) (R : Z) (order : list A) (unserved : A -> Z -> Z).
Hypothesis R_nonneg : 0 <= R.
Hypothesis arrivals : forall x, In x order -> 0 <= arr x.
Hypothesis sizes : forall x, In x order -> 0 <= size x.
Hypothesis left_nonneg : forall x t, In x order -> 0 <= unserved x t.
Hypothesis not_before_arrival : forall x t, In x order -> t <= arr x -> size x <= unserved x t.
(** Whichever requests are looked at, no more than [R] is given to them in a step. *)
Hypothesis shares : forall k t, 0 <= t ->
  total (fun x => unserved x t) (firstn k order)
    - total (fun x => unserved x (t + 1)) (firstn k order) <= R.
(** "serves the request with the largest z_i / X_i" *)
Hypothesis by_slope : StronglySorted (fun x y => slope y <= slope x) order.
Hypothesis slopes : forall x, In x order -> 0 <= slope x.

Lemma serve_first l : forall t room k, 0 <= room -> Forall (fun x => 0 <= snd x) l ->
  total snd (firstn k (serve arr t room l))
  = total snd (firstn k l)
    - Z.min room (total (fun x => if arr (fst x) <=? t then snd x else 0) (firstn k l)).
Proof.
  induction l as [|[x r] l IH]; intros t room [|k] Hr Hl; cbn [serve firstn total fst snd]; try lia.
  inversion Hl as [|? ? Hx Hrest]; subst. cbn [snd] in Hx.
  set (sum := total (fun x => if arr (fst x) <=? t then snd x else 0) (firstn k l)) in *.
  assert (0 <= sum).
  { apply total_nonneg. intros y Hy. rewrite Forall_forall in Hrest.
    assert (In y l) by (rewrite <- (firstn_skipn k l); apply in_or_app; now left).
    destruct (arr (fst y) <=? t); [now apply Hrest|lia]. }
  destruct (arr x <=? t); rewrite IH by (auto; lia); fold sum; lia.
Qed.

Lemma serve_nonneg l : forall t room, 0 <= room -> Forall (fun x => 0 <= snd x) l ->
  Forall (fun x => 0 <= snd x) (serve arr t room l).
Proof.
  induction l as [|[x r] l IH]; intros t room Hr Hl; cbn [serve]; constructor;
    inversion Hl as [|? ? Hx Hrest]; subst; cbn [snd] in *.
  - destruct (arr x <=? t); lia.
  - apply IH; auto. destruct (arr x <=? t); lia.
Qed.

Lemma serve_same l : forall t room, map fst (serve arr t room l) = map fst l.
Proof. induction l as [|[x r] l IH]; intros t room; cbn; [auto|]. now rewrite IH. Qed.

Lemma serve_less l : forall t room, 0 <= room -> Forall (fun x => 0 <= snd x) l ->
  Forall (fun x => snd x <= size (fst x)) l ->
  Forall (fun x => snd x <= size (fst x)) (serve arr t room l).
Proof.
  induction l as [|[x r] l IH]; intros t room Hr Hl Hs; cbn [serve]; constructor;
    inversion Hl; inversion Hs; subst; cbn [fst snd] in *.
  - destruct (arr x <=? t); lia.
  - apply IH; auto. destruct (arr x <=? t); lia.
Qed.

Lemma after_steps_ok n :
  map fst (after_steps arr size R order n) = order /\
  Forall (fun x => 0 <= snd x) (after_steps arr size R order n) /\
  Forall (fun x => snd x <= size (fst x)) (after_steps arr size R order n).
Proof.
  induction n as [|n (I1 & I2 & I3)]; cbn [after_steps].
  - rewrite map_map. split; [apply map_id|]. rewrite !Forall_map, !Forall_forall.
    split; intros x Hx; cbn; [now apply sizes|lia].
  - rewrite serve_same. split; [auto|]. split; [now apply serve_nonneg|now apply serve_less].
Qed.

Lemma firstn_in (k : nat) (x : A) : In x (firstn k order) -> In x order.
Proof. intros H. rewrite <- (firstn_skipn k order). apply in_or_app. now left. Qed.

(** "served(t) is largest, at every t, for a fluid that serves G at the rate 1 whenever some request
    of G has arrived and is not done"; G are the first [k] by slope. *)
Lemma least_is_left n k :
  total snd (firstn k (after_steps arr size R order n))
  <= total (fun x => unserved x (Z.of_nat n)) (firstn k order).
Proof.
  induction n as [|n IH].
  - cbn [after_steps]. rewrite firstn_map, total_map. apply total_le. intros x Hx. cbn [snd].
    apply firstn_in in Hx.
    apply not_before_arrival; [|apply arrivals]; auto.
  - destruct (after_steps_ok n) as (E & H0 & H1). cbn [after_steps].
    rewrite serve_first by auto. set (l := after_steps arr size R order n) in *.
    set (there := total (fun x => if arr (fst x) <=? Z.of_nat n then snd x else 0) (firstn k l)).
    pose proof (shares k (Z.of_nat n) ltac:(lia)) as HR.
    replace (Z.of_nat (S n)) with (Z.of_nat n + 1) by lia.
    destruct (Z.le_ge_cases R there); [lia|]. rewrite Z.min_r by lia.
    unfold there. rewrite <- total_minus. rewrite <- E, firstn_map, total_map.
    apply total_le. intros x Hx.
    assert (Hin : In x l) by (rewrite <- (firstn_skipn k l); apply in_or_app; now left).
    assert (Ho : In (fst x) order) by (rewrite <- E; now apply in_map).
    destruct (Z.leb_spec (arr (fst x)) (Z.of_nat n)).
    + pose proof (left_nonneg (fst x) (Z.of_nat n + 1) Ho). lia.
    + rewrite Forall_forall in H1. specialize (H1 x Hin).
      pose proof (not_before_arrival (fst x) (Z.of_nat n + 1) Ho). lia.
Qed.

(** "Cut each slope into thin layers". *)
Lemma by_layers (l : list (Z * Z)) : forall top sum,
  StronglySorted (fun x y => fst y <= fst x) l ->
  Forall (fun x => 0 <= fst x <= top) l -> 0 <= top -> sum <= 0 ->
  (forall k, sum + total snd (firstn k l) <= 0) ->
  top * sum + total (fun x => fst x * snd x) l <= 0.
Proof.
  induction l as [|[v d] l IH]; intros top sum Hs Ht H0 Hsum Hk; cbn [total fst snd]; [nia|].
  inversion Hs as [|? ? Hs1 Hs2]; subst. inversion Ht as [|? ? Hv Ht']; subst. cbn [fst] in *.
  pose proof (Hk 1%nat) as H1. cbn [firstn total snd] in H1.
  specialize (IH v (sum + d) Hs1).
  assert (I : v * (sum + d) + total (fun x => fst x * snd x) l <= 0).
  { apply IH; try lia.
    - apply Forall_forall. intros x Hx. rewrite Forall_forall in Ht', Hs2.
      specialize (Ht' x Hx). specialize (Hs2 x Hx). lia.
    - intros k. specialize (Hk (S k)). cbn [firstn total snd] in Hk. lia. }
  assert (top * sum <= v * sum) by (apply Z.mul_le_mono_nonpos_r; lia). lia.
Qed.

(** At every time. *)
Lemma least_weighted n :
  total (fun x => slope (fst x) * snd x) (after_steps arr size R order n)
  <= total (fun x => slope x * unserved x (Z.of_nat n)) order.
Proof.
  destruct (after_steps_ok n) as (E & _ & _). set (l := after_steps arr size R order n) in *.
  set (d := map (fun x => (slope (fst x), snd x - unserved (fst x) (Z.of_nat n))) l).
  set (top := fold_right (fun x m => Z.max (slope x) m) 0 order).
  assert (Htop : 0 <= top /\ forall x, In x order -> slope x <= top).
  { unfold top. clear. induction order as [|y o [I1 I2]]; cbn; [split; [lia|tauto]|].
    split; [lia|]. intros x [<-|Hx]; [lia|]. specialize (I2 x Hx). lia. }
  assert (H : top * 0 + total (fun x => fst x * snd x) d <= 0).
  { apply by_layers; try lia.
    - unfold d. rewrite <- E in by_slope. clear - by_slope. induction l as [|x l IH]; cbn in *;
        constructor; inversion by_slope as [|? ? G1 G2]; subst; auto.
      rewrite Forall_map in *. exact G2.
    - unfold d. rewrite Forall_map, Forall_forall. intros x Hx. cbn [fst].
      assert (In (fst x) order) by (rewrite <- E; now apply in_map).
      split; [now apply slopes|now apply Htop].
    - intros k. unfold d. rewrite firstn_map, total_map. cbn [snd]. rewrite total_minus.
      pose proof (least_is_left n k) as Hk. fold l in Hk.
      rewrite <- E, firstn_map, total_map in Hk. lia. }
  unfold d in H. rewrite total_map in H. cbn [fst snd] in H.
  rewrite <- E, total_map.
  rewrite (total_ext _ (fun x => slope (fst x) * snd x
    - slope (fst x) * unserved (fst x) (Z.of_nat n))) in H by (intros; lia).
  rewrite total_minus in H. lia.
Qed.

(** The claim: "Of all fluids, the one that always serves the request with the largest z_i / X_i
    among those that have arrived and are not done has the least sum of z_i B_i." *)
Theorem serving_by_slope_is_best n :
  weighted_left arr size slope R order n
  <= total (fun x => slope x * total (unserved x) (rounds 0 (S n))) order.
Proof.
  induction n as [|n IH].
  - cbn [weighted_left rounds total]. pose proof (least_weighted 0) as H. cbn [Z.of_nat] in H.
    rewrite (total_ext (fun x => slope x * (unserved x 0 + 0)) (fun x => slope x * unserved x 0))
      by (intros; lia). lia.
  - cbn [weighted_left]. pose proof (least_weighted (S n)) as H.
    rewrite (total_ext (fun x => slope x * total (unserved x) (rounds 0 (S (S n))))
      (fun x => slope x * unserved x (Z.of_nat (S n)) + slope x * total (unserved x) (rounds 0 (S n)))).
    + rewrite total_plus. lia.
    + intros x _. replace (S (S n)) with (S n + 1)%nat by lia. rewrite rounds_app, total_app.
      cbn [rounds total]. replace (0 + Z.of_nat (S n)) with (Z.of_nat (S n)) by lia. lia.
Qed.

End Fluids.

Print Assumptions a_round_lasts_what_is_taken.
Print Assumptions serving_by_slope_is_best.
