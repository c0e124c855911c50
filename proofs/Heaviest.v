(** * The largest weight of a configuration, with limited copies

    docs/theory/configurations.md, "How the pricing problem is solved" (Claim 3.4) and "Limits on copies". *)

From Coq Require Import ZArith List Lia Bool.
From KV Require Import Problem Sums States.
Import ListNotations.
Open Scope Z_scope.

(** A state with its weight and how many copies of it there may be. *)
Record item := Item { of : state; weight : Z; copies : Z }.

(** ** The dynamic program: row [c] of the table has the best weights of c members, by the sum of
    what they hold. *)

(** [better] is a row for one member more; from the place [h] on, [count] numbers of it are raised
    to those of [row] with a weight [w] more. *)
Fixpoint raise_row (better row : list Z) (h count w : Z) : list Z :=
  match better with
  | [] => []
  | x :: better' =>
      if 0 <? h then x :: raise_row better' row (h - 1) count w
      else if count <=? 0 then better
      else match row with
           | [] => better
           | y :: row' => (if x <? y + w then y + w else x) :: raise_row better' row' 0 (count - 1) w
           end
  end.

(** Allow one copy more of the state (h, r); [row] is that of [c] members. *)
Fixpoint raise_rows (M h r w c : Z) (row : list Z) (rows : list (list Z)) : list (list Z) :=
  match rows with
  | [] => []
  | better :: rest =>
      raise_row better row h (M - h - (c + 1) * r + 1) w :: raise_rows M h r w (c + 1) better rest
  end.

Definition one_copy (M : Z) (x : item) (table : list (list Z)) : list (list Z) :=
  match table with
  | [] => []
  | row :: rest => row :: raise_rows M (held (of x)) (left (of x)) (weight x) 0 row rest
  end.

Fixpoint times {A} (n : nat) (f : A -> A) (x : A) : A :=
  match n with O => x | S n' => times n' f (f x) end.

Definition all_copies (M : Z) (x : item) (table : list (list Z)) : list (list Z) :=
  times (Z.to_nat (Z.min (copies x) (M / (held (of x) + left (of x))))) (one_copy M x) table.

Definition largest (l : list Z) (m : Z) : Z := fold_left Z.max l m.

Definition heaviest (M : Z) (items : list item) : Z :=
  match items with
  | [] => 0
  | _ =>
      let least := fold_left (fun m x => Z.min m (held (of x))) items M in
      let members := Z.min (M / least) (fold_left (fun n x => n + copies x) items 0) in
      let row := repeat 0 (Z.to_nat (M + 1)) in
      let table := repeat row (Z.to_nat (members + 1)) in
      fold_left (fun m row => largest row m)
        (fold_left (fun table x => all_copies M x table) items table) 0
  end.

(** ** Why that is right *)

Definition same (x y : state) : bool := (held x =? held y) && (left x =? left y).

(** How often a state is in a configuration, and what the items say that a state weighs. *)
Definition number_of (x : state) (C : list state) : Z :=
  total (fun j => if same j x then 1 else 0) C.

Definition weight_of (items : list item) (j : state) : Z :=
  total (fun x => if same j (of x) then weight x else 0) items.

(** The table has a weight of at least [v] for [c] members that hold [H]. *)
Definition has (table : list (list Z)) (c H : nat) (v : Z) : Prop :=
  exists row x, nth_error table c = Some row /\ nth_error row H = Some x /\ v <= x.

Lemma raise_row_keeps better : forall row h count w H x,
  nth_error better H = Some x ->
  exists x', nth_error (raise_row better row h count w) H = Some x' /\ x <= x'.
Proof.
  induction better as [|b better IH]; intros row h count w H x Hx; [destruct H; discriminate|].
  cbn [raise_row]. destruct (0 <? h).
  - destruct H as [|H]; simpl in *; [injection Hx as ->; exists x; split; [auto|lia]|eauto].
  - destruct (count <=? 0); [exists x; split; [auto|lia]|].
    destruct row as [|y row]; [exists x; split; [auto|lia]|].
    destruct H as [|H]; simpl in *; [|eauto].
    injection Hx as ->. eexists. split; [reflexivity|]. destruct (x <? y + w) eqn:E; lia.
Qed.

Lemma raise_row_raises better : forall row h count w H y,
  0 <= h -> nth_error row H = Some y -> Z.of_nat H < count ->
  (Z.to_nat h + H < length better)%nat ->
  exists x, nth_error (raise_row better row h count w) (Z.to_nat h + H) = Some x /\ y + w <= x.
Proof.
  induction better as [|b better IH]; intros row h count w H y Hh Hy Hc Hlen; [simpl in Hlen; lia|].
  cbn [raise_row]. destruct (0 <? h) eqn:E.
  - replace (Z.to_nat h + H)%nat with (S (Z.to_nat (h - 1) + H)) in * by lia. simpl.
    apply IH; auto; simpl in Hlen; lia.
  - replace (Z.to_nat h) with O in * by lia. simpl in *.
    replace (count <=? 0) with false by (symmetry; lia).
    destruct row as [|z row]; [destruct H; discriminate|].
    destruct H as [|H]; simpl in *.
    + injection Hy as ->. eexists. split; [reflexivity|]. destruct (b <? y + w) eqn:E2; lia.
    + destruct (IH row 0 (count - 1) w H y) as (x & H1 & H2); auto; try lia.
      exists x. auto.
Qed.

Lemma raise_row_length better : forall row h count w,
  length (raise_row better row h count w) = length better.
Proof.
  induction better as [|b better IH]; intros row h count w; [reflexivity|]. cbn [raise_row].
  destruct (0 <? h); [simpl; auto|]. destruct (count <=? 0); [auto|].
  destruct row; simpl; auto.
Qed.

Definition table_ok (M : Z) (n : nat) (table : list (list Z)) : Prop :=
  length table = n /\ Forall (fun row => length row = Z.to_nat (M + 1)) table.

Lemma raise_rows_ok M L h r w rows : forall c row,
  Forall (fun row => length row = L) rows ->
  length (raise_rows M h r w c row rows) = length rows /\
  Forall (fun row => length row = L) (raise_rows M h r w c row rows).
Proof.
  induction rows as [|b rows IH]; intros c row H; simpl; [auto|].
  inversion H; subst. destruct (IH (c + 1) b H3) as [H1 H4]. split; [auto|].
  constructor; auto. apply raise_row_length.
Qed.

Lemma one_copy_ok M n x table : table_ok M n table -> table_ok M n (one_copy M x table).
Proof.
  intros [H1 H2]. destruct table as [|row rest]; [split; auto|]. simpl.
  inversion H2; subst.
  destruct (raise_rows_ok M (Z.to_nat (M + 1)) (held (of x)) (left (of x)) (weight x) rest 0 row H4)
    as [H5 H6].
  split; [simpl; congruence|constructor; auto].
Qed.

Lemma raise_rows_keeps M h r w rows : forall c row i H v,
  has rows i H v -> has (raise_rows M h r w c row rows) i H v.
Proof.
  induction rows as [|b rows IH]; intros c row i H v (R & x & H1 & H2 & H3);
    [destruct i; discriminate|].
  destruct i as [|i]; simpl in H1.
  - injection H1 as ->.
    destruct (raise_row_keeps R row h (M - h - (c + 1) * r + 1) w H x H2) as (x' & H4 & H5).
    exists (raise_row R row h (M - h - (c + 1) * r + 1) w), x'. repeat split; auto; lia.
  - destruct (IH (c + 1) b i H v) as (R' & x' & H4 & H5 & H6); [exists R, x; auto|].
    exists R', x'. auto.
Qed.

Lemma one_copy_keeps M x table c H v : has table c H v -> has (one_copy M x table) c H v.
Proof.
  intros Hh. destruct table as [|row rest]; [auto|]. simpl.
  destruct Hh as (R & y & H1 & H2 & H3). destruct c as [|c]; simpl in H1.
  - exists R, y. auto.
  - destruct (raise_rows_keeps M (held (of x)) (left (of x)) (weight x) rest 0 row c H v)
      as (R' & y' & H4 & H5 & H6); [exists R, y; auto|].
    exists R', y'. auto.
Qed.

Lemma raise_rows_adds M h r w L rows : forall c row i H v,
  0 <= h -> Forall (fun row => length row = L) rows ->
  has (row :: rows) i H v -> (i < length rows)%nat ->
  (Z.to_nat h + H < L)%nat ->
  Z.of_nat H + h + (c + Z.of_nat i + 1) * r <= M ->
  has (raise_rows M h r w c row rows) i (Z.to_nat h + H) (v + w).
Proof.
  induction rows as [|b rows IH]; intros c row i H v Hh HL Hhas Hi Hlen Hfit; [simpl in Hi; lia|].
  inversion HL; subst. destruct i as [|i].
  - destruct Hhas as (R & x & H1 & H2' & H3'). simpl in H1. injection H1 as ->.
    destruct (raise_row_raises b R h (M - h - (c + 1) * r + 1) w H x) as (y & H4 & H5); auto; try lia.
    simpl. exists (raise_row b R h (M - h - (c + 1) * r + 1) w), y. repeat split; auto; lia.
  - simpl. destruct (IH (c + 1) b i H v) as (R & x & H4 & H5 & H6); auto.
    + simpl in Hi. lia.
    + lia.
    + exists R, x. auto.
Qed.

Lemma one_copy_adds M n x table c H v :
  0 <= held (of x) -> table_ok M n table -> has table c H v -> (S c < n)%nat ->
  Z.of_nat H + held (of x) <= M ->
  Z.of_nat H + held (of x) + (Z.of_nat c + 1) * left (of x) <= M ->
  has (one_copy M x table) (S c) (Z.to_nat (held (of x)) + H) (v + weight x).
Proof.
  intros Hh [H1 H2] Hhas Hc HM Hfit. destruct table as [|row rest].
  - destruct Hhas as (R & y & E & _). destruct c; discriminate.
  - simpl. inversion H2; subst. simpl in Hc.
    destruct (raise_rows_adds M (held (of x)) (left (of x)) (weight x) (Z.to_nat (M + 1)) rest 0 row
      c H v) as (R & y & H6 & H7 & H8); auto; try lia.
    exists R, y. auto.
Qed.

(** [k] copies are added by [n] >= [k] steps. *)
Lemma copies_add M N x n : forall k table c H v,
  (k <= n)%nat -> 0 <= held (of x) -> 0 <= left (of x) -> table_ok M N table -> has table c H v ->
  (c + k < N)%nat ->
  Z.of_nat H + Z.of_nat k * held (of x) + (Z.of_nat c + Z.of_nat k) * left (of x) <= M ->
  table_ok M N (times n (one_copy M x) table) /\
  has (times n (one_copy M x) table) (c + k) (k * Z.to_nat (held (of x)) + H)
    (v + Z.of_nat k * weight x).
Proof.
  induction n as [|n IH]; intros k table c H v Hk Hh Hr Hok Hhas Hc Hfit.
  - replace k with O by lia. simpl. rewrite Nat.add_0_r. split; auto.
    destruct Hhas as (R & y & H1 & H2 & H3). exists R, y. repeat split; auto. lia.
  - simpl. destruct k as [|k].
    + apply (IH O); auto; try lia. apply one_copy_ok; auto. apply one_copy_keeps; auto.
    + destruct (IH k (one_copy M x table) (S c) (Z.to_nat (held (of x)) + H)%nat (v + weight x))
        as [G1 G2]; auto; try lia.
      * apply one_copy_ok; auto.
      * apply (one_copy_adds M N); auto; nia.
      * split; auto. replace (c + S k)%nat with (S c + k)%nat by lia.
        replace (S k * Z.to_nat (held (of x)) + H)%nat
          with (k * Z.to_nat (held (of x)) + (Z.to_nat (held (of x)) + H))%nat by lia.
        replace (v + Z.of_nat (S k) * weight x) with (v + weight x + Z.of_nat k * weight x) by lia.
        exact G2.
Qed.

Lemma number_nonneg x C : 0 <= number_of x C.
Proof. apply total_nonneg. intros j _. destruct (same j x); lia. Qed.

(** What some different states have in a configuration is at most what is there. *)
Lemma different_states (f : state -> Z) (l : list item) (C : list state) :
  (forall i j x y, nth_error l i = Some x -> nth_error l j = Some y -> same (of x) (of y) = true ->
     i = j) ->
  (forall j, In j C -> 0 <= f j) ->
  (forall j x, In j C -> In x l -> same j (of x) = true -> f (of x) = f j) ->
  total (fun x => number_of (of x) C * f (of x)) l <= total f C.
Proof.
  intros Hd Hf Hs.
  transitivity (total (fun x => total (fun j => if same j (of x) then f j else 0) C) l).
  - apply total_le. intros x Hx. unfold number_of. rewrite Z.mul_comm, <- total_scale.
    apply Z.eq_le_incl, total_ext. intros j Hj. destruct (same j (of x)) eqn:E; [|lia].
    rewrite (Hs j x) by auto. lia.
  - rewrite total_swap. apply total_le. intros j Hj. specialize (Hf j Hj). clear Hs Hj.
    induction l as [|x l IH]; [simpl; lia|]. cbn [total].
    assert (Hd' : forall a b x y, nth_error l a = Some x -> nth_error l b = Some y ->
              same (of x) (of y) = true -> a = b).
    { intros a b y z Ha Hb E. specialize (Hd (S a) (S b) y z Ha Hb E). lia. }
    specialize (IH Hd'). destruct (same j (of x)) eqn:E; [|lia].
    rewrite total_zero; [lia|]. intros y Hy. destruct (same j (of y)) eqn:E2; auto.
    exfalso. apply In_nth_error in Hy. destruct Hy as [n Hn].
    specialize (Hd O (S n) x y eq_refl Hn). unfold same in *. lia.
Qed.

(** Items by the rounds to go, the most first. *)
Fixpoint by_rounds (most : Z) (items : list item) : Prop :=
  match items with
  | [] => True
  | x :: rest => left (of x) <= most /\ by_rounds (left (of x)) rest
  end.

Lemma by_rounds_le items : forall most x, by_rounds most items -> In x items -> left (of x) <= most.
Proof.
  induction items as [|y items IH]; intros most x H []; simpl in H; [subst; lia|].
  specialize (IH (left (of y)) x (proj2 H) H0). lia.
Qed.

Lemma fold_max l : forall m, m <= largest l m /\ forall x, In x l -> x <= largest l m.
Proof.
  unfold largest. induction l as [|y l IH]; intros m; simpl; [split; [lia|intros x []]|].
  destruct (IH (Z.max m y)) as [H1 H2]. split; [lia|]. intros x [->|Hx]; [lia|auto].
Qed.

Lemma fold_rows l : forall m row x, In row l -> In x row ->
  x <= fold_left (fun m row => largest row m) l m.
Proof.
  assert (G : forall l m, m <= fold_left (fun m row => largest row m) l m).
  { induction l0 as [|y l0 IH]; intros m; simpl; [lia|].
    destruct (fold_max y m). specialize (IH (largest y m)). lia. }
  induction l as [|y l IH]; intros m row x Hrow Hx; [destruct Hrow|]. simpl.
  destruct Hrow as [->|Hrow]; [|eauto].
  destruct (fold_max row m) as [_ H]. specialize (H x Hx). specialize (G l (largest row m)). lia.
Qed.

(** Claim 3.4, what a bound needs of it: no configuration that can stand, with no more copies than
    the limits, weighs more than the result. *)
Theorem heaviest_is_largest (M most : Z) (items : list item) (C : list state) :
  1 <= M ->
  by_rounds most items ->
  (forall i j x y, nth_error items i = Some x -> nth_error items j = Some y ->
     same (of x) (of y) = true -> i = j) ->
  Forall (fun x => 1 <= held (of x) /\ 0 <= left (of x) /\ 0 <= copies x) items ->
  Forall (fun j => 0 <= held j /\ 0 <= left j) C ->
  can_stand M C ->
  (forall x, In x items -> number_of (of x) C <= copies x) ->
  total (weight_of items) C <= heaviest M items.
Proof.
  intros HM Hsort Hd Hitems HC Hstand Hcopies.
  assert (Hweight : total (weight_of items) C
                    = total (fun x => number_of (of x) C * weight x) items).
  { unfold weight_of. rewrite total_swap. apply total_ext. intros x _. unfold number_of.
    rewrite Z.mul_comm, <- total_scale. apply total_ext. intros j _. destruct (same j (of x)); lia. }
  destruct items as [|first others]; [rewrite Hweight; simpl; lia|].
  set (items := first :: others) in *.
  unfold heaviest. fold items.
  set (least := fold_left (fun m x => Z.min m (held (of x))) items M).
  set (sum := fold_left (fun n x => n + copies x) items 0).
  set (members := Z.min (M / least) sum).
  change (match items with [] => 0 | _ => fold_left (fun m row => largest row m)
        (fold_left (fun table x => all_copies M x table) items
           (repeat (repeat 0 (Z.to_nat (M + 1))) (Z.to_nat (members + 1)))) 0 end)
    with (fold_left (fun m row => largest row m)
        (fold_left (fun table x => all_copies M x table) items
           (repeat (repeat 0 (Z.to_nat (M + 1))) (Z.to_nat (members + 1)))) 0).
  set (table := repeat _ (Z.to_nat (members + 1))).
  rewrite Forall_forall in Hitems, HC.
  (* later of the members that are items *)
  assert (Hlater : forall l r, (exists before after, items = before ++ l ++ after) -> 0 <= r ->
            (forall x, In x l -> r <= left (of x)) ->
            total (fun x => number_of (of x) C * (held (of x) + r)) l <= M).
  { intros l r (before & after & E) Hr Hl.
    transitivity (later C r); [|apply memory_at_completions_suffices; auto; lia].
    transitivity (total (fun x => number_of (of x) C *
                           (if r <=? left (of x) then held (of x) + r else 0)) l).
    - apply Z.eq_le_incl, total_ext. intros x Hx. specialize (Hl x Hx).
      replace (r <=? left (of x)) with true by (symmetry; lia). reflexivity.
    - unfold later. apply (different_states (fun j => if r <=? left j then held j + r else 0)).
      + intros i j x y Hi Hj Hs.
        assert (F : forall i x, nth_error l i = Some x ->
                  nth_error items (length before + i) = Some x).
        { intros a z Ha. rewrite E, nth_error_app2 by lia.
          replace (length before + a - length before)%nat with a by lia.
          rewrite nth_error_app1; auto. apply nth_error_Some. congruence. }
        specialize (Hd _ _ _ _ (F i x Hi) (F j y Hj) Hs). lia.
      + intros j Hj. specialize (HC j Hj). destruct (r <=? left j); lia.
      + intros j x _ _ Hs. unfold same in Hs.
        assert (held j = held (of x) /\ left j = left (of x)) as [-> ->] by lia. reflexivity. }
  assert (Hleast : forall x, In x items -> 1 <= least <= held (of x)).
  { assert (G : forall l m, (forall x, In x l -> 1 <= held (of x)) -> 1 <= m ->
              1 <= fold_left (fun m x => Z.min m (held (of x))) l m <= m /\
              forall x, In x l -> fold_left (fun m x => Z.min m (held (of x))) l m <= held (of x)).
    { induction l as [|y l IH]; intros m Hl Hm; simpl; [split; [lia|intros x []]|].
      assert (1 <= held (of y)) by (apply Hl; now left).
      destruct (IH (Z.min m (held (of y)))) as [G1 G2]; [intros; apply Hl; now right|lia|].
      split; [lia|]. intros x [->|Hx]; [lia|auto]. }
    destruct (G items M) as [G1 G2]; [intros x Hx; apply Hitems in Hx; lia|lia|].
    intros x Hx. specialize (G2 x Hx). fold least in G1, G2. lia. }
  assert (Hmembers : total (fun x => number_of (of x) C) items <= members).
  { apply Z.min_glb.
    - apply Z.div_le_lower_bound; [specialize (Hleast first (or_introl eq_refl)); lia|].
      rewrite <- total_scale.
      transitivity (total (fun x => number_of (of x) C * (held (of x) + 0)) items).
      + apply total_le. intros x Hx. specialize (Hleast x Hx). pose proof (number_nonneg (of x) C). nia.
      + apply Hlater; [exists [], []; now rewrite app_nil_r|lia|].
        intros x Hx. apply Hitems in Hx. lia.
    - unfold sum. assert (G : forall l n, fold_left (fun n x => n + copies x) l n = n + total copies l).
      { induction l as [|y l IH]; intros n; simpl; [lia|]. rewrite IH. lia. }
      rewrite G. enough (total (fun x => number_of (of x) C) items <= total copies items) by lia.
      apply total_le. auto. }
  (* the induction: [before] are the items so far *)
  assert (Main : forall l before table,
            items = before ++ l ->
            (forall x y, In x before -> In y l -> left (of y) <= left (of x)) ->
            by_rounds most l \/ (exists m, by_rounds m l) ->
            table_ok M (Z.to_nat (members + 1)) table ->
            has table (Z.to_nat (total (fun x => number_of (of x) C) before))
              (Z.to_nat (total (fun x => number_of (of x) C * held (of x)) before))
              (total (fun x => number_of (of x) C * weight x) before) ->
            has (fold_left (fun table x => all_copies M x table) l table)
              (Z.to_nat (total (fun x => number_of (of x) C) items))
              (Z.to_nat (total (fun x => number_of (of x) C * held (of x)) items))
              (total (fun x => number_of (of x) C * weight x) items)).
  { induction l as [|x l IH]; intros before tab E Hord Hby Hok Hhas.
    - rewrite app_nil_r in E. rewrite E. exact Hhas.
    - simpl. assert (Hx : In x items) by (rewrite E; apply in_or_app; right; now left).
      pose proof (Hitems x Hx) as (Hh & Hr & Hcp).
      pose proof (number_nonneg (of x) C) as Hn.
      assert (Hnb : 0 <= total (fun y => number_of (of y) C) before)
        by (apply total_nonneg; intros; apply number_nonneg).
      assert (Hhb : 0 <= total (fun y => number_of (of y) C * held (of y)) before).
      { apply total_nonneg. intros y Hy. pose proof (number_nonneg (of y) C).
        assert (In y items) by (rewrite E; apply in_or_app; auto). apply Hitems in H0. nia. }
      assert (Hfit : total (fun y => number_of (of y) C * (held (of y) + left (of x)))
                       (before ++ [x]) <= M).
      { apply Hlater; auto.
        - exists [], l. simpl. now rewrite <- app_assoc.
        - intros y Hy. apply in_app_or in Hy as [Hy|[->|[]]]; [|lia].
          apply Hord; auto. now left. }
      rewrite total_app in Hfit. cbn [total] in Hfit.
      assert (Hsplit : total (fun y => number_of (of y) C * (held (of y) + left (of x))) before
        = total (fun y => number_of (of y) C * held (of y)) before
          + left (of x) * total (fun y => number_of (of y) C) before).
      { rewrite <- total_scale, <- total_plus. apply total_ext. intros; lia. }
      assert (Hrest : 0 <= total (fun y => number_of (of y) C) l)
        by (apply total_nonneg; intros; apply number_nonneg).
      assert (Hin : total (fun y => number_of (of y) C) before + number_of (of x) C <= members).
      { rewrite E, total_app in Hmembers. cbn [total] in Hmembers. lia. }
      destruct (copies_add M (Z.to_nat (members + 1)) x
        (Z.to_nat (Z.min (copies x) (M / (held (of x) + left (of x)))))
        (Z.to_nat (number_of (of x) C)) tab
        (Z.to_nat (total (fun y => number_of (of y) C) before))
        (Z.to_nat (total (fun y => number_of (of y) C * held (of y)) before))
        (total (fun y => number_of (of y) C * weight y) before)) as [G1 G2]; auto; try lia.
      { enough (number_of (of x) C <= M / (held (of x) + left (of x))).
        { specialize (Hcopies x Hx). lia. }
        apply Z.div_le_lower_bound; [lia|]. nia. }
      apply (IH (before ++ [x])); auto.
      + now rewrite <- app_assoc.
      + intros y z Hy Hz. apply in_app_or in Hy as [Hy|[->|[]]].
        * apply Hord; auto. now right.
        * destruct Hby as [Hby|[m Hby]]; simpl in Hby;
            eapply by_rounds_le; try apply (proj2 Hby); auto.
      + right. destruct Hby as [Hby|[m Hby]]; simpl in Hby; exists (left (of x)); exact (proj2 Hby).
      + rewrite !total_app. cbn [total].
        replace (Z.to_nat (total (fun y => number_of (of y) C) before + (number_of (of x) C + 0)))
          with (Z.to_nat (total (fun y => number_of (of y) C) before)
                + Z.to_nat (number_of (of x) C))%nat by lia.
        replace (Z.to_nat (total (fun y => number_of (of y) C * held (of y)) before
                           + (number_of (of x) C * held (of x) + 0)))
          with (Z.to_nat (number_of (of x) C) * Z.to_nat (held (of x))
                + Z.to_nat (total (fun y => (number_of (of y) C * held (of y))%Z) before))%nat
          by (rewrite Z.add_0_r, Z2Nat.inj_add, Z2Nat.inj_mul by nia; lia).
        replace (total (fun y => number_of (of y) C * weight y) before
                 + (number_of (of x) C * weight x + 0))
          with (total (fun y => number_of (of y) C * weight y) before
                + Z.of_nat (Z.to_nat (number_of (of x) C)) * weight x)
          by (rewrite Z2Nat.id by lia; lia).
        exact G2. }
  rewrite Hweight.
  assert (Hmem0 : 0 <= members).
  { transitivity (total (fun x => number_of (of x) C) items); [|exact Hmembers].
    apply total_nonneg. intros; apply number_nonneg. }
  destruct (Main items [] table) as (row & x & H1 & H2 & H3); auto.
  - intros x y [].
  - split; [apply repeat_length|]. apply Forall_forall. intros row Hrow.
    apply repeat_spec in Hrow. subst. apply repeat_length.
  - exists (repeat 0 (Z.to_nat (M + 1))), 0. simpl. split; [|split; [|lia]].
    + unfold table. replace (Z.to_nat (members + 1)) with (S (Z.to_nat members)) by lia. reflexivity.
    + replace (Z.to_nat (M + 1)) with (S (Z.to_nat M)) by lia. reflexivity.
  - etransitivity; [exact H3|]. apply nth_error_In in H1, H2. eapply fold_rows; eauto.
Qed.

Print Assumptions heaviest_is_largest.
