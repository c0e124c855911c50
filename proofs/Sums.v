(** * Sums: facts about [total] that the other files use *)

From Coq Require Import ZArith List Lia Permutation.
From KV Require Import Problem.
Import ListNotations.
Open Scope Z_scope.

(** The times [from], [from] + 1, ..., [count] of them. *)
Fixpoint rounds (from : Z) (count : nat) : list Z :=
  match count with
  | O => []
  | S c => from :: rounds (from + 1) c
  end.

Section Total.
Context {A : Type}.
Implicit Types (f g : A -> Z) (l : list A).

Lemma total_app f l l' : total f (l ++ l') = total f l + total f l'.
Proof. induction l; simpl; lia. Qed.

Lemma total_le f g l : (forall x, In x l -> f x <= g x) -> total f l <= total g l.
Proof.
  induction l as [|a l IH]; simpl; intros H; [lia|].
  assert (f a <= g a) by auto. assert (total f l <= total g l) by auto. lia.
Qed.

Lemma total_ext f g l : (forall x, In x l -> f x = g x) -> total f l = total g l.
Proof.
  induction l as [|a l IH]; simpl; intros H; [lia|].
  rewrite (H a) by auto. rewrite IH by auto. lia.
Qed.

Lemma total_zero f l : (forall x, In x l -> f x = 0) -> total f l = 0.
Proof.
  induction l as [|a l IH]; simpl; intros H; [lia|].
  rewrite (H a) by auto. rewrite IH by auto. lia.
Qed.

Lemma total_nonneg f l : (forall x, In x l -> 0 <= f x) -> 0 <= total f l.
Proof.
  induction l as [|a l IH]; simpl; intros H; [lia|].
  assert (0 <= f a) by auto. assert (0 <= total f l) by auto. lia.
Qed.

Lemma total_plus f g l : total (fun x => f x + g x) l = total f l + total g l.
Proof. induction l; simpl; lia. Qed.

Lemma total_minus f g l : total (fun x => f x - g x) l = total f l - total g l.
Proof. induction l; simpl; lia. Qed.

Lemma total_scale c f l : total (fun x => c * f x) l = c * total f l.
Proof. induction l; simpl; lia. Qed.

Lemma total_const c l : total (fun _ => c) l = c * Z.of_nat (length l).
Proof. induction l; cbn [total length]; lia. Qed.

Lemma total_map {B} (h : B -> A) f (l : list B) : total f (map h l) = total (fun x => f (h x)) l.
Proof. induction l; simpl; lia. Qed.

Lemma total_perm f l l' : Permutation l l' -> total f l = total f l'.
Proof. induction 1; simpl; lia. Qed.

Lemma total_filter (c : A -> bool) f l :
  total f (filter c l) = total (fun x => if c x then f x else 0) l.
Proof. induction l as [|a l IH]; simpl; [|destruct (c a)]; simpl; lia. Qed.

Lemma total_member f l x : (forall y, In y l -> 0 <= f y) -> In x l -> f x <= total f l.
Proof.
  induction l as [|a l IH]; simpl; intros H [].
  - subst. assert (0 <= total f l) by (apply total_nonneg; auto). lia.
  - assert (0 <= f a) by auto. assert (f x <= total f l) by auto. lia.
Qed.

End Total.

(** The order of two sums does not matter. *)
Lemma total_swap {A B} (f : A -> B -> Z) (l : list A) (l' : list B) :
  total (fun x => total (f x) l') l = total (fun y => total (fun x => f x y) l) l'.
Proof.
  induction l as [|a l IH]; simpl.
  - symmetry. apply total_zero. reflexivity.
  - rewrite IH, total_plus. reflexivity.
Qed.

Lemma rounds_in from count t :
  In t (rounds from count) <-> from <= t < from + Z.of_nat count.
Proof.
  revert from. induction count as [|c IH]; intros from; cbn [rounds In].
  - lia.
  - rewrite IH. lia.
Qed.

Lemma rounds_length from count : length (rounds from count) = count.
Proof. revert from; induction count; intros; simpl; auto. Qed.

Lemma rounds_app from c d :
  rounds from (c + d) = rounds from c ++ rounds (from + Z.of_nat c) d.
Proof.
  revert from. induction c as [|c IH]; intros from; cbn [rounds Nat.add app].
  - f_equal; lia.
  - rewrite IH. do 2 f_equal; [f_equal; lia|..]; auto.
Qed.

Lemma rounds_shift from c d : rounds (from + d) c = map (fun t => t + d) (rounds from c).
Proof.
  revert from. induction c as [|c IH]; intros from; cbn [rounds map]; [reflexivity|].
  rewrite <- IH. do 2 f_equal. lia.
Qed.

(** A sum over times does not change with the range as long as the range has all that is not 0. *)
Lemma total_widen f lo n a m :
  a <= lo -> lo + Z.of_nat n <= a + Z.of_nat m ->
  (forall t, a <= t < a + Z.of_nat m -> ~ (lo <= t < lo + Z.of_nat n) -> f t = 0) ->
  total f (rounds a m) = total f (rounds lo n).
Proof.
  intros H1 H2 H3.
  replace m with (Z.to_nat (lo - a) + (n + Z.to_nat (a + Z.of_nat m - lo - Z.of_nat n)))%nat
    by lia.
  rewrite !rounds_app, !total_app.
  rewrite (total_zero f (rounds a _)).
  2: { intros t Ht. apply rounds_in in Ht. apply H3; lia. }
  rewrite (total_zero f (rounds (_ + Z.of_nat n) _)).
  2: { intros t Ht. apply rounds_in in Ht. apply H3; lia. }
  replace (a + Z.of_nat (Z.to_nat (lo - a))) with lo by lia. lia.
Qed.

Lemma total_ranges f lo n lo' n' :
  (forall t, f t <> 0 -> lo <= t < lo + Z.of_nat n /\ lo' <= t < lo' + Z.of_nat n') ->
  total f (rounds lo n) = total f (rounds lo' n').
Proof.
  intros H.
  assert (E : forall t, f t = 0 \/ f t <> 0) by (intros; lia).
  set (a := Z.min lo lo').
  set (m := Z.to_nat (Z.max (lo + Z.of_nat n) (lo' + Z.of_nat n') - a)).
  transitivity (total f (rounds a m)); [symmetry|];
    apply total_widen; try lia; intros t _ Ht; destruct (E t) as [|N]; auto;
    apply H in N; lia.
Qed.
