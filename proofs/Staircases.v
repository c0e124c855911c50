(** * Staircases

    docs/theory/configurations.md, "Staircases", Claim 3.14. *)

From Coq Require Import ZArith List Lia Bool Permutation Sorted.
From KV Require Import Problem Sums Memory States.
Import ListNotations.
Open Scope Z_scope.

(** How many thresholds are at most [h], and their sum. *)
Definition level (thresholds : list Z) (h : Z) : Z :=
  total (fun x => if x <=? h then 1 else 0) thresholds.

Definition level_sum (thresholds : list Z) (h : Z) : Z :=
  total (fun x => if x <=? h then x else 0) thresholds.

(** The staircase: h + (nu + 1) r + theta_1 + ... + theta_nu > M, with nu >= 1. *)
Definition in_staircase (M : Z) (thresholds : list Z) (x : state) : bool :=
  (1 <=? level thresholds (held x)) &&
  (M <? held x + (level thresholds (held x) + 1) * left x + level_sum thresholds (held x)).

Definition below (b : Z) (C : list state) : Z :=
  total (fun j => if held j <? b then 1 else 0) C.

(** Of thresholds, the largest first: fewer members than there are from a threshold on lie below it. *)
Fixpoint few_below (thresholds : list Z) (C : list state) : Prop :=
  match thresholds with
  | [] => True
  | x :: rest => below x C <= Z.of_nat (length rest) /\ few_below rest C
  end.

Lemma below_app b C C' : below b (C ++ C') = below b C + below b C'.
Proof. apply total_app. Qed.

Lemma below_nonneg b C : 0 <= below b C.
Proof. apply total_nonneg. intros j _. destruct (held j <? b); lia. Qed.

Lemma below_perm b C C' : Permutation C C' -> below b C = below b C'.
Proof. apply total_perm. Qed.

Lemma few_below_part thresholds C rest C' :
  Permutation (C ++ rest) C' -> few_below thresholds C' -> few_below thresholds C.
Proof.
  intros HP. induction thresholds as [|x l IH]; simpl; auto. intros [H1 H2]. split; auto.
  rewrite <- (below_perm x _ _ HP), below_app in H1. pose proof (below_nonneg x rest). lia.
Qed.

(** Members that are at least as many as thresholds hold at least as much. *)
Lemma members_hold thresholds : forall C,
  Forall (fun j => 0 <= held j) C ->
  (length thresholds <= length C)%nat -> few_below thresholds C ->
  total (fun x => x) thresholds <= total held C.
Proof.
  induction thresholds as [|x l IH]; intros C Hn Hlen Hf; simpl in *.
  - apply total_nonneg. intros j Hj. rewrite Forall_forall in Hn. auto.
  - destruct Hf as [H1 H2].
    assert (D : exists y C', Permutation (y :: C') C /\ x <= held y).
    { clear - H1 Hlen. assert (E : below x C < Z.of_nat (length C)) by lia. clear H1 Hlen.
      induction C as [|y C IH]; [unfold below in E; simpl in E; lia|].
      destruct (held y <? x) eqn:Ey.
      - destruct IH as (z & C' & HP & Hz).
        { unfold below in *. cbn [total length] in E. rewrite Ey in E. lia. }
        exists z, (y :: C'). split; auto.
        rewrite perm_swap. now constructor.
      - exists y, C. split; auto. lia. }
    destruct D as (y & C' & HP & Hy).
    rewrite <- (total_perm _ _ _ HP). cbn [total].
    assert (Hlen' : (length l <= length C')%nat).
    { apply Permutation_length in HP. simpl in HP. lia. }
    enough (total (fun x => x) l <= total held C') by lia.
    apply IH; auto.
    + apply Forall_forall. intros j Hj. rewrite Forall_forall in Hn. apply Hn.
      eapply Permutation_in; [exact HP|]. now right.
    + apply (few_below_part l C' [y] C); auto. rewrite <- HP. symmetry. apply Permutation_cons_append.
Qed.

Lemma least_left (C : list state) : C <> [] ->
  exists l C', Permutation (l :: C') C /\ Forall (fun j => left l <= left j) C'.
Proof.
  induction C as [|a C IH]; [congruence|intros _]. destruct C as [|b C].
  - exists a, []. split; [reflexivity|constructor].
  - destruct IH as (l & C' & HP & Hm); [congruence|].
    destruct (Z_le_gt_dec (left a) (left l)).
    + exists a, (b :: C). split; [reflexivity|]. apply Forall_forall. intros j Hj.
      assert (In j (l :: C')) as [<-|Hj'] by (eapply Permutation_in; [symmetry; exact HP|]; auto);
        [lia|]. rewrite Forall_forall in Hm. specialize (Hm j Hj'). lia.
    + exists l, (a :: C'). split.
      * rewrite perm_swap. now constructor.
      * constructor; [lia|auto].
Qed.

(** Claim 3.14: as many members as there are thresholds are in the staircase, at most. *)
Theorem few_in_a_staircase (M : Z) (thresholds : list Z) (C : list state) :
  StronglySorted Z.le thresholds ->
  Forall (fun x => 0 <= x) thresholds ->
  Forall (fun j => 0 <= held j /\ 0 <= left j) C ->
  Forall (fun j => in_staircase M thresholds j = true) C ->
  can_stand M C ->
  (length C <= length thresholds)%nat.
Proof.
  intros Hsort Hpos Hn Hin HC.
  (* The induction of the docs: [T] are the thresholds so far, the largest first, [U] the others. *)
  assert (Step : forall T b U G rest, thresholds = rev T ++ U -> Forall (fun x => b <= x) U ->
            few_below T C -> Permutation (G ++ rest) C ->
            Forall (fun j => U = [] \/ held j < b) G -> (length G <= length T)%nat).
  { intros T b U G rest ET HU HT HP HG. destruct (le_lt_dec (length G) (length T)) as [|Hgt]; auto.
    exfalso. destruct (least_left G) as (l & G' & HPl & Hmin).
    { intros ->. simpl in Hgt. lia. }
    assert (HPC : Permutation (l :: G' ++ rest) C).
    { rewrite <- HP. change (l :: G' ++ rest) with ((l :: G') ++ rest). now apply Permutation_app_tail. }
    assert (Hl : In l C) by (eapply Permutation_in; [exact HPC|]; now left).
    assert (HG' : forall j, In j G' -> In j C).
    { intros j Hj. eapply Permutation_in; [exact HPC|]. right. apply in_or_app. auto. }
    assert (Hlen : (length T <= length G')%nat).
    { apply Permutation_length in HPl. simpl in HPl. lia. }
    rewrite Forall_forall in Hin, Hn. pose proof (Hin l Hl) as Hst. pose proof (Hn l Hl) as [Hh Hr].
    assert (Hlb : U = [] \/ held l < b).
    { rewrite Forall_forall in HG. apply HG. eapply Permutation_in; [exact HPl|]. now left. }
    (* its level counts thresholds of T alone *)
    assert (Hlev : level thresholds (held l) <= Z.of_nat (length T) /\
                   level_sum thresholds (held l) <= total (fun x => x) T).
    { assert (HU0 : forall f : Z -> Z, total (fun x => if x <=? held l then f x else 0) U = 0).
      { intros f. destruct Hlb as [-> | Hlb]; [reflexivity|]. apply total_zero. intros x Hx.
        rewrite Forall_forall in HU. specialize (HU x Hx).
        replace (x <=? held l) with false by (symmetry; lia). reflexivity. }
      unfold level, level_sum. rewrite ET, !total_app.
      rewrite (HU0 (fun _ => 1)), (HU0 (fun x => x)).
      rewrite !(total_perm _ (rev T) T) by (symmetry; apply Permutation_rev). split.
      - rewrite <- (Z.mul_1_l (Z.of_nat (length T))), <- (total_const (A:=Z) 1 T).
        enough (total (fun x => if x <=? held l then 1 else 0) T <= total (fun _ => 1) T) by lia.
        apply total_le. intros x _. destruct (x <=? held l); lia.
      - enough (total (fun x => if x <=? held l then x else 0) T <= total (fun x => x) T) by lia.
        apply total_le. intros x Hx. destruct (x <=? held l); [lia|].
        rewrite Forall_forall in Hpos. apply Hpos. rewrite ET. apply in_or_app. left.
        now apply -> in_rev. }
    (* what all of G hold when l completes *)
    assert (Hlater : held l + left l + total held G' + Z.of_nat (length G') * left l
                     <= later C (left l)).
    { unfold later. rewrite <- (total_perm _ _ _ HPC). cbn [total]. rewrite total_app.
      replace (left l <=? left l) with true by (symmetry; lia).
      assert (0 <= total (fun j => if left l <=? left j then held j + left l else 0) rest).
      { apply total_nonneg. intros j Hj. destruct (left l <=? left j); [|lia].
        assert (In j C) by (eapply Permutation_in; [exact HPC|]; right; apply in_or_app; auto).
        specialize (Hn j H). lia. }
      enough (total held G' + Z.of_nat (length G') * left l
              = total (fun j => if left l <=? left j then held j + left l else 0) G') by lia.
      rewrite Z.mul_comm, <- (total_const (A:=state) (left l) G'), <- total_plus.
      apply total_ext. intros j Hj. rewrite Forall_forall in Hmin. specialize (Hmin j Hj).
      replace (left l <=? left j) with true by (symmetry; lia). reflexivity. }
    assert (HM : later C (left l) <= M) by (unfold can_stand in HC; rewrite Forall_forall in HC; auto).
    assert (Hhold : total (fun x => x) T <= total held G').
    { apply members_hold; auto.
      - apply Forall_forall. intros j Hj. apply Hn. auto.
      - apply (few_below_part T G' (l :: rest) C); auto. rewrite <- HPC.
        symmetry. apply Permutation_middle. }
    unfold in_staircase in Hst. apply andb_prop in Hst as [_ Hst]. nia. }
  assert (All : forall U T, thresholds = rev T ++ U -> few_below T C ->
            (length C <= length thresholds)%nat).
  { induction U as [|x U IH]; intros T ET HT.
    - rewrite ET, app_nil_r, rev_length. apply (Step T 0 [] C []); auto.
      + now rewrite app_nil_r.
      + apply Forall_forall. auto.
    - apply (IH (x :: T)).
      + simpl. now rewrite <- app_assoc.
      + simpl. split; auto.
        assert (HU : Forall (fun y => x <= y) (x :: U)).
        { rewrite ET in Hsort. clear - Hsort. induction (rev T) as [|y l IHl]; simpl in Hsort.
          - inversion Hsort; subst. constructor; [lia|auto].
          - inversion Hsort; auto. }
        pose proof (Step T x (x :: U) (filter (fun j => held j <? x) C)
                      (filter (fun j => negb (held j <? x)) C) ET HU HT) as H.
        assert (Hsplit : forall L : list state, Permutation
                  (filter (fun j => held j <? x) L ++ filter (fun j => negb (held j <? x)) L) L).
        { clear. induction L as [|j L IHL]; simpl; [constructor|].
          destruct (held j <? x); simpl; [now constructor|].
          rewrite <- Permutation_middle. now constructor. }
        specialize (H (Hsplit C)).
        assert (E : below x C = Z.of_nat (length (filter (fun j => held j <? x) C))).
        { clear. unfold below. induction C as [|j C IHC]; [reflexivity|]. cbn [total filter].
          destruct (held j <? x); cbn [length]; lia. }
        rewrite E. apply inj_le. apply H. apply Forall_forall. intros j Hj.
        apply filter_In in Hj. right. lia. }
  apply (All thresholds []); [reflexivity|exact I].
Qed.

(** On each worker at most as many requests as there are thresholds are in the staircase. *)
Theorem staircase_of_a_schedule (M : Z) (thresholds : list Z) (s : schedule) (w : nat) (t : Z) :
  StronglySorted Z.le thresholds ->
  Forall (fun x => 0 <= x) thresholds ->
  Forall (fun p => 0 <= prompt (what p)) s ->
  (forall t', load s w t' <= M) ->
  total (fun p => if active w t p && in_staircase M thresholds (state_at t p) then 1 else 0) s
  <= Z.of_nat (length thresholds).
Proof.
  intros Hsort Hpos Hs Hf.
  set (C := filter (in_staircase M thresholds) (shown s w t)).
  assert (E : total (fun p => if active w t p && in_staircase M thresholds (state_at t p)
                              then 1 else 0) s = Z.of_nat (length C)).
  { unfold C, shown. clear. induction s as [|p s IH]; [reflexivity|]. cbn [total filter].
    destruct (active w t p); cbn [andb map filter]; [|lia].
    destruct (in_staircase M thresholds (state_at t p)); cbn [length]; lia. }
  rewrite E. apply inj_le.
  assert (Hn : Forall (fun j => 0 <= held j /\ 0 <= left j) (shown s w t)).
  { apply Forall_forall. intros j Hj. apply in_map_iff in Hj. destruct Hj as (p & <- & Hp).
    apply filter_In in Hp. destruct Hp as [Hin Hact]. unfold active in Hact.
    rewrite Forall_forall in Hs. specialize (Hs p Hin). simpl.
    destruct (start p <? t) eqn:E1; destruct (t <=? completion p) eqn:E2;
      destruct (Nat.eqb (worker p) w); simpl in Hact; try discriminate; lia. }
  apply (few_in_a_staircase M thresholds C); auto.
  - apply Forall_forall. intros j Hj. apply filter_In in Hj. rewrite Forall_forall in Hn.
    now apply Hn.
  - apply Forall_forall. intros j Hj. apply filter_In in Hj. tauto.
  - assert (Hsplit : forall L : list state, Permutation
              (filter (in_staircase M thresholds) L
               ++ filter (fun j => negb (in_staircase M thresholds j)) L) L).
    { clear. induction L as [|j L IHL]; simpl; [constructor|].
      destruct (in_staircase M thresholds j); simpl; [now constructor|].
      rewrite <- Permutation_middle. now constructor. }
    apply (part_can_stand M (shown s w t)); [|eexists; apply Hsplit|].
    + apply Forall_app. split; auto. apply Forall_forall. intros j Hj. apply filter_In in Hj.
      rewrite Forall_forall in Hn. now apply Hn.
    + now apply shown_can_stand.
Qed.

Print Assumptions few_in_a_staircase.
Print Assumptions staircase_of_a_schedule.
