(** * States and configurations

    docs/theory/configurations.md, "States" and "What can stand together". *)

From Coq Require Import ZArith List Lia Bool Permutation.
From KV Require Import Problem Sums Memory.
Import ListNotations.
Open Scope Z_scope.

(** An active request holds [held] tokens now and has [left] rounds to go. *)
Record state := State { held : Z; left : Z }.

(** What the members hold [x] rounds later. *)
Definition later (C : list state) (x : Z) : Z :=
  total (fun j => if x <=? left j then held j + x else 0) C.

(** "C is feasible": memory suffices whenever a member completes. *)
Definition can_stand (M : Z) (C : list state) : Prop :=
  Forall (fun l => later C (left l) <= M) C.

(** The state of a placed request at time [t], and the configuration of a worker. *)
Definition state_at (t : Z) (p : placement) : state :=
  State (prompt (what p) + (t - start p)) (completion p - t).

Definition shown (s : schedule) (w : nat) (t : Z) : list state :=
  map (state_at t) (filter (active w t) s).

(** Lemma 3.2: memory needs to be checked at completions of members only. *)
Theorem memory_at_completions_suffices (M : Z) (C : list state) :
  0 <= M -> can_stand M C -> forall x, 0 <= x -> later C x <= M.
Proof.
  intros HM HC x Hx.
  assert (D : filter (fun j => x <=? left j) C = [] \/
              exists l, In l C /\ x <= left l /\
                forall j, In j C -> x <= left j -> left l <= left j).
  { clear HC. induction C as [|a C IH]; [now left|]. simpl.
    destruct (x <=? left a) eqn:E.
    - right. destruct IH as [E2|(l & H1 & H2 & H3)].
      + exists a. repeat split; [now left|lia|]. intros j [->|Hj] Hle; [lia|].
        assert (In j (filter (fun j => x <=? left j) C)) by (apply filter_In; split; auto; lia).
        rewrite E2 in H. destruct H.
      + destruct (Z_le_gt_dec (left a) (left l)).
        * exists a. repeat split; [now left|lia|]. intros j [->|Hj] Hle; [lia|].
          specialize (H3 j Hj Hle). lia.
        * exists l. repeat split; [now right|lia|]. intros j [->|Hj] Hle; [lia|auto].
    - destruct IH as [E2|(l & H1 & H2 & H3)]; [now left|right].
      exists l. repeat split; [now right|lia|]. intros j [->|Hj] Hle; [lia|auto]. }
  destruct D as [E|(l & H1 & H2 & H3)].
  - unfold later. rewrite total_zero; [lia|]. intros j Hj.
    destruct (x <=? left j) eqn:E2; [|auto].
    assert (In j (filter (fun j => x <=? left j) C)) by (apply filter_In; split; auto).
    rewrite E in H. destruct H.
  - transitivity (later C (left l)).
    + unfold later. apply total_le. intros j Hj. destruct (x <=? left j) eqn:E2.
      * specialize (H3 j Hj ltac:(lia)). replace (left l <=? left j) with true by (symmetry; lia).
        lia.
      * destruct (left l <=? left j) eqn:E3; lia.
    + unfold can_stand in HC. rewrite Forall_forall in HC. auto.
Qed.

Lemma later_load s w t x : 0 <= x -> Forall (fun p => 0 <= prompt (what p)) s ->
  later (shown s w t) x <= load s w (t + x).
Proof.
  intros Hx Hs. unfold later, shown, load. rewrite total_map, total_filter. apply total_le.
  intros p Hp. rewrite Forall_forall in Hs. specialize (Hs p Hp).
  assert (H0 : 0 <= if Nat.eqb (worker p) w then holds p (t + x) else 0).
  { destruct (Nat.eqb (worker p) w); [now apply holds_nonneg|lia]. }
  unfold active, state_at, holds in *. cbn [left held].
  destruct (Nat.eqb (worker p) w); simpl in *; [|lia].
  destruct (start p <? t) eqn:E1; simpl in *; [|lia].
  destruct (t <=? completion p) eqn:E2; simpl in *; [|lia].
  replace (start p <? t + x) with true in * by (symmetry; lia).
  destruct (x <=? completion p - t) eqn:E3; [|lia].
  replace (t + x <=? completion p) with true by (symmetry; lia). simpl. lia.
Qed.

(** Claim 3.3, first half: what a feasible schedule shows can stand. *)
Theorem shown_can_stand (M : Z) (s : schedule) (w : nat) (t : Z) :
  Forall (fun p => 0 <= prompt (what p)) s ->
  (forall t', load s w t' <= M) ->
  can_stand M (shown s w t).
Proof.
  intros Hs Hf. unfold can_stand. rewrite Forall_forall. intros l Hl.
  assert (Hr : 0 <= left l).
  { unfold shown in Hl. apply in_map_iff in Hl. destruct Hl as (p & <- & Hp).
    apply filter_In in Hp. destruct Hp as [_ Hp]. unfold active in Hp.
    apply andb_prop in Hp. simpl. lia. }
  pose proof (later_load s w t (left l) Hr Hs). specialize (Hf (t + left l)). lia.
Qed.

(** Claim 3.3, second half: what can stand is shown by a feasible schedule of some instance. *)
Theorem can_stand_shown (M : Z) (C : list state) :
  1 <= M -> Forall (fun j => 1 <= held j /\ 0 <= left j) C -> can_stand M C ->
  exists I s, memory I = M /\ well_formed I /\ feasible I s /\ shown s 0 1 = C.
Proof.
  intros HM HC Hs. rewrite Forall_forall in HC.
  set (s := map (fun j => Place (Request 0 (held j - 1) (left j + 1)) 0 0) C).
  exists (Instance M 1 (map what s)), s. split; [reflexivity|]. split; [|split].
  - split; [auto|]. simpl. unfold s. rewrite map_map. simpl. apply Forall_forall.
    intros r Hr. apply in_map_iff in Hr. destruct Hr as (j & <- & Hj). simpl.
    pose proof (HC j Hj). unfold can_stand in Hs. rewrite Forall_forall in Hs. specialize (Hs j Hj).
    enough (held j + left j <= later C (left j)) by lia.
    unfold later. pose proof (total_member (fun i => if left j <=? left i then held i + left j else 0)
      C j) as G. simpl in G. replace (left j <=? left j) with true in G by (symmetry; lia).
    apply G; auto. intros y Hy. specialize (HC y Hy). destruct (left j <=? left y); lia.
  - constructor.
    + reflexivity.
    + apply Forall_forall. intros p Hp. apply in_map_iff in Hp. destruct Hp as (j & <- & _).
      simpl. lia.
    + apply Forall_forall. intros p Hp. apply in_map_iff in Hp. destruct Hp as (j & <- & _).
      simpl. lia.
    + intros w t. simpl. destruct (Z_le_gt_dec t 0).
      * unfold load. rewrite total_zero; [lia|]. intros p Hp. apply in_map_iff in Hp.
        destruct Hp as (j & <- & _). unfold holds. cbn [what start worker prompt output].
        replace (0 <? t) with false by (symmetry; lia). now destruct (Nat.eqb 0 w).
      * transitivity (later C (t - 1)); [|apply memory_at_completions_suffices; auto; lia].
        unfold load, later, s. rewrite total_map. apply total_le. intros j Hj.
        specialize (HC j Hj). unfold holds, completion. cbn [what start worker prompt output].
        replace (0 <? t) with true by (symmetry; lia). cbn [andb].
        destruct (Nat.eqb 0 w).
        -- destruct (t - 1 <=? left j) eqn:E1; destruct (t <=? 0 + (left j + 1)) eqn:E2; lia.
        -- destruct (t - 1 <=? left j); lia.
  - unfold shown. clear Hs. induction C as [|[h r] C IH]; [reflexivity|].
    assert (E : active 0 1 (Place (Request 0 (h - 1) (r + 1)) 0 0) = true).
    { specialize (HC _ (or_introl eq_refl)). unfold active, completion. simpl in *. lia. }
    unfold s. cbn [map filter held left]. rewrite E. cbn [map]. rewrite IH by (intros; apply HC; now right).
    f_equal. unfold state_at, completion. simpl. f_equal; lia.
Qed.

(** Part of a configuration that can stand can stand. *)
Theorem part_can_stand (M : Z) (C C' : list state) :
  Forall (fun j => 0 <= held j /\ 0 <= left j) (C' ++ C) ->
  (exists rest, Permutation (C' ++ rest) C) -> can_stand M C -> can_stand M C'.
Proof.
  intros Hn [rest HP] HC. unfold can_stand in *. rewrite Forall_forall in *.
  intros l Hl. etransitivity; [|apply (HC l)].
  - unfold later. rewrite <- (total_perm _ _ _ HP), total_app.
    enough (0 <= total (fun j => if left l <=? left j then held j + left l else 0) rest) by lia.
    apply total_nonneg. intros j Hj. destruct (left l <=? left j); [|lia].
    assert (In j C) by (eapply Permutation_in; [exact HP|]; apply in_or_app; auto).
    pose proof (Hn j ltac:(apply in_or_app; auto)). pose proof (Hn l ltac:(apply in_or_app; auto)).
    lia.
  - eapply Permutation_in; [exact HP|]. apply in_or_app. auto.
Qed.

Print Assumptions memory_at_completions_suffices.
Print Assumptions shown_can_stand.
Print Assumptions can_stand_shown.
Print Assumptions part_can_stand.
