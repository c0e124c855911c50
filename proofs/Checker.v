(** * The checker, and that what it accepts is true

    docs/certificates.md, "What is checked" and "Why parts add up".  [judge] is the program that is
    extracted; [accepted_is_true] is what it guarantees. *)

From Coq Require Import ZArith List Lia Bool Permutation.
From KV Require Import Problem Sums Memory PriceCheck ScheduleCheck Volume Configurations
  SearchCheck.
Import ListNotations.
Open Scope Z_scope.

(** ** Certificates *)

Inductive proof :=
| Prices (denominator first : Z) (numerators : list Z)
| Volumes (staircases : list (list Z))
| States (target : option Z) (searched : bool) (stages : list stage).

Inductive lower_proof :=
| Whole (p : proof)
| Split (parts : list (Z * proof)).  (** each with the arrival from which on it speaks *)

(** A value, starts, workers, and work lost to evictions. *)
Record run := Run { value : Z; starts : list Z; on : list nat; rows : list row }.

Record certificate := Certificate {
  problem : instance;
  upper : option run;
  lower : option (Z * lower_proof);
  policies : list run
}.

(** ** The program *)

Definition is_well_formed (I : instance) : bool :=
  (1 <=? memory I) &&
  forallb (fun r => (0 <=? arrival r) && (0 <=? prompt r) && (1 <=? output r) &&
                    (prompt r + output r <=? memory I)) (requests I).

Definition proof_value (I : instance) (p : proof) : option Z :=
  match p with
  | Prices D first numerators => prices_value I D first numerators
  | Volumes staircases => volume_value I staircases
  | States target searched stages => configurations_value I target searched stages
  end.

(** What a proof of the requests [l] gives: 0 if there are none. *)
Definition part_value (I : instance) (p : proof) (l : list request) : option Z :=
  match l with
  | [] => Some 0
  | _ => proof_value (Instance (memory I) (workers I) l) p
  end.

(** The proof [p] speaks of those of [l] that arrive before the next part begins. *)
Fixpoint parts_value (I : instance) (l : list request) (begin : Z) (p : proof)
    (parts : list (Z * proof)) : option Z :=
  match parts with
  | [] => part_value I p l
  | (next, q) :: rest =>
      if begin <? next then
        let first r := arrival r <? next in
        match part_value I p (filter first l),
              parts_value I (filter (fun r => negb (first r)) l) next q rest with
        | Some x, Some y => Some (x + y)
        | _, _ => None
        end
      else None
  end.

Definition lower_value (I : instance) (p : lower_proof) : option Z :=
  match p with
  | Whole p => proof_value I p
  | Split [] => None
  | Split ((begin, p) :: rest) =>
      if forallb (fun r => begin <=? arrival r) (requests I)
      then parts_value I (requests I) begin p rest
      else None
  end.

Definition run_is_right (I : instance) (r : run) : bool :=
  match checked_run I (starts r) (on r) (rows r) (value r) with
  | Some _ => true
  | None => false
  end.

Inductive verdict := Accepted | Bad_instance | Bad_upper | Bad_lower | Bad_policy.

Definition judge (c : certificate) : verdict :=
  let I := problem c in
  if negb (is_well_formed I) then Bad_instance
  else if negb match upper c with None => true | Some r => run_is_right I r end then Bad_upper
  else if negb match lower c with
               | None => true
               | Some (v, p) => match lower_value I p with Some b => v <=? b | None => false end
               end then Bad_lower
  else if negb (forallb (run_is_right I) (policies c)) then Bad_policy
  else Accepted.

(** ** What it guarantees *)

Definition run_exists (I : instance) (r : run) : Prop :=
  exists s lost, feasible_run I s lost /\ map start s = starts r /\ map worker s = on r /\
                 total_latency s = value r.

Lemma is_well_formed_sound I : is_well_formed I = true -> well_formed I.
Proof.
  unfold is_well_formed. intros H. apply andb_prop in H as [H1 H2]. split; [lia|].
  apply Forall_forall. intros r Hr. rewrite forallb_forall in H2. specialize (H2 r Hr). lia.
Qed.

Lemma run_is_right_sound I r : well_formed I -> run_is_right I r = true -> run_exists I r.
Proof.
  intros HI H. unfold run_is_right in H.
  destruct (checked_run I (starts r) (on r) (rows r) (value r)) as [[s lost]|] eqn:E; [|discriminate].
  apply checked_run_sound in E as (H1 & H2 & H3 & H4); auto. exists s, lost. auto.
Qed.

Lemma proof_value_sound I p v : well_formed I -> proof_value I p = Some v -> lower_bound I v.
Proof.
  intros HI H. destruct p as [D first numerators|staircases|target searched stages]; simpl in H.
  - eapply prices_value_sound; eauto.
  - eapply volume_value_sound; eauto.
  - eapply configurations_value_sound; eauto.
Qed.

(** ** Parts add up *)

Lemma some_well_formed I f :
  well_formed I -> well_formed (Instance (memory I) (workers I) (filter f (requests I))).
Proof.
  intros [H1 H2]. split; auto. simpl. apply Forall_forall. intros r Hr. apply filter_In in Hr.
  rewrite Forall_forall in H2. apply H2. tauto.
Qed.

Lemma some_feasible I s f :
  well_formed I -> feasible I s ->
  feasible (Instance (memory I) (workers I) (filter f (requests I)))
    (filter (fun p => f (what p)) s).
Proof.
  intros [_ Hr] [Hs Ha Hw Hf]. constructor; simpl.
  - rewrite <- Hs. clear. induction s as [|p s IH]; simpl; auto.
    destruct (f (what p)); simpl; congruence.
  - apply Forall_forall. intros p Hp. apply filter_In in Hp. rewrite Forall_forall in Ha.
    apply Ha. tauto.
  - apply Forall_forall. intros p Hp. apply filter_In in Hp. rewrite Forall_forall in Hw.
    apply Hw. tauto.
  - intros w t. etransitivity; [|apply (Hf w t)]. unfold load. rewrite total_filter.
    apply total_le. intros p Hp. destruct (f (what p)); [lia|].
    destruct (Nat.eqb (worker p) w); [|lia]. apply holds_nonneg.
    apply (in_map what) in Hp. rewrite Hs in Hp. rewrite Forall_forall in Hr. apply Hr in Hp. lia.
Qed.

Lemma latency_splits s (f : placement -> bool) :
  total_latency s = total_latency (filter f s) + total_latency (filter (fun p => negb (f p)) s).
Proof.
  unfold total_latency. rewrite !total_filter, <- total_plus. apply total_ext.
  intros p _. destruct (f p); simpl; lia.
Qed.

(** Bounds of two kinds of requests, each for its own, add up. *)
Theorem bounds_add_up (I : instance) (f : request -> bool) (x y : Z) :
  well_formed I ->
  lower_bound (Instance (memory I) (workers I) (filter f (requests I))) x ->
  lower_bound (Instance (memory I) (workers I) (filter (fun r => negb (f r)) (requests I))) y ->
  lower_bound I (x + y).
Proof.
  intros HI Hx Hy s Hs. rewrite (latency_splits s (fun p => f (what p))).
  specialize (Hx _ (some_feasible I s f HI Hs)).
  specialize (Hy _ (some_feasible I s (fun r => negb (f r)) HI Hs)). simpl in *. lia.
Qed.

Lemma part_value_sound I p l v :
  well_formed (Instance (memory I) (workers I) l) -> part_value I p l = Some v ->
  lower_bound (Instance (memory I) (workers I) l) v.
Proof.
  intros HI H. unfold part_value in H. destruct l as [|r l].
  - injection H as <-. intros s [Hs _ _ _]. destruct s; [unfold total_latency; simpl; lia|discriminate].
  - eapply proof_value_sound; eauto.
Qed.

Lemma parts_value_sound I parts : forall l begin p v,
  well_formed (Instance (memory I) (workers I) l) -> parts_value I l begin p parts = Some v ->
  lower_bound (Instance (memory I) (workers I) l) v.
Proof.
  induction parts as [|[next q] rest IH]; intros l begin p v HI H; simpl in H.
  - eapply part_value_sound; eauto.
  - destruct (begin <? next); [|discriminate].
    destruct (part_value I p _) as [x|] eqn:E1; [|discriminate].
    destruct (parts_value I _ next q rest) as [y|] eqn:E2; [|discriminate].
    injection H as <-.
    apply (bounds_add_up (Instance (memory I) (workers I) l) (fun r => arrival r <? next)); auto; simpl.
    + eapply part_value_sound; eauto. apply (some_well_formed (Instance _ _ l)); auto.
    + eapply IH; eauto. apply (some_well_formed (Instance _ _ l)); auto.
Qed.

Lemma lower_value_sound I p v : well_formed I -> lower_value I p = Some v -> lower_bound I v.
Proof.
  intros HI H. destruct I as [M m l]. destruct p as [p|[|[begin p] rest]]; simpl in H.
  - eapply proof_value_sound; eauto.
  - discriminate.
  - destruct (forallb _ l); [|discriminate].
    eapply (parts_value_sound (Instance M m l)); eauto.
Qed.

(** What is accepted is true: there is a run for each value, and no schedule is below the bound. *)
Theorem accepted_is_true (c : certificate) :
  judge c = Accepted ->
  well_formed (problem c) /\
  (forall r, upper c = Some r -> run_exists (problem c) r) /\
  (forall v p, lower c = Some (v, p) -> lower_bound (problem c) v) /\
  Forall (run_exists (problem c)) (policies c).
Proof.
  unfold judge. intros H.
  destruct (is_well_formed (problem c)) eqn:HI; [|discriminate].
  apply is_well_formed_sound in HI. cbn [negb] in H.
  destruct (match upper c with None => true | Some r => run_is_right (problem c) r end) eqn:Hu;
    [|discriminate].
  cbn [negb] in H.
  destruct (match lower c with
            | None => true
            | Some (v, p) => match lower_value (problem c) p with Some b => v <=? b | None => false end
            end) eqn:Hl; [|discriminate].
  cbn [negb] in H.
  destruct (forallb (run_is_right (problem c)) (policies c)) eqn:Hp; [|discriminate].
  split; [auto|]. split; [|split].
  - intros r E. rewrite E in Hu. now apply run_is_right_sound.
  - intros v p E s Hs. rewrite E in Hl.
    destruct (lower_value (problem c) p) as [b|] eqn:Eb; [|discriminate].
    pose proof (lower_value_sound _ _ _ HI Eb s Hs). lia.
  - apply Forall_forall. intros r Hr. rewrite forallb_forall in Hp.
    apply run_is_right_sound; auto.
Qed.

(** Where both sides are the same number, the schedule is optimal. *)
Theorem accepted_and_equal_is_optimal (c : certificate) (r : run) (v : Z) (p : lower_proof) :
  judge c = Accepted -> upper c = Some r -> lower c = Some (v, p) -> value r = v ->
  exists s, optimal (problem c) s /\ map start s = starts r /\ total_latency s = v.
Proof.
  intros H Hu Hl E. destruct (accepted_is_true c H) as (HI & H1 & H2 & _).
  destruct (H1 r Hu) as (s & lost & Hs & Ht & _ & Hv). exists s.
  split; [|split; congruence]. split.
  - eapply last_runs_are_feasible; eauto.
  - intros s' Hs'. specialize (H2 v p Hl s' Hs'). lia.
Qed.

(** A lower bound covers runs with evictions as well. *)
Theorem accepted_covers_evictions (c : certificate) (v : Z) (p : lower_proof) s lost :
  judge c = Accepted -> lower c = Some (v, p) -> feasible_run (problem c) s lost ->
  v <= total_latency s.
Proof.
  intros H Hl Hs. destruct (accepted_is_true c H) as (HI & _ & H2 & _).
  apply (H2 v p Hl). eapply last_runs_are_feasible; eauto.
Qed.

Print Assumptions accepted_is_true.
Print Assumptions accepted_and_equal_is_optimal.
Print Assumptions accepted_covers_evictions.
