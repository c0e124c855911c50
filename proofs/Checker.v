(** * The checker, and that what it accepts is true

    docs/certificates.md, "What is checked" and "Why parts add up".  [judge] is the program that is
    extracted; [accepted_is_true] is what it guarantees. *)

From Coq Require Import ZArith List Lia Bool Permutation.
From KV Require Import Problem Sums Memory Services Prices Pauses Deadlines PriceCheck ScheduleCheck
  SegmentCheck DeadlineCheck Volume Configurations SearchCheck.
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

(** How requests are served: starts, workers, and work lost to evictions; or segments. *)
Inductive way :=
| Starts (starts : list Z) (on : list nat) (rows : list row)
| Segments (all : list segments).

Record run := Run { value : Z; how : way }.

(** How many attain their deadlines: whether first tokens are asked for, how long each request may
    take, prices between borders over a denominator, a ceiling, the best run that is known, and
    how many attain in each run of the policies. *)
Record deadlines := Deadlines {
  by_first_token : bool;
  allowed_times : list Z;
  borders : list Z;
  border_prices : list Z;
  over : Z;
  claimed : Z;
  best : option (run * Z);
  counts : list Z
}.

Record certificate := Certificate {
  problem : instance;
  pauses : bool;  (** whether the bounds speak of schedules with pauses *)
  upper : option run;
  lower : option (Z * lower_proof);
  policies : list run;
  in_time : option deadlines
}.

(** ** The program *)

Definition is_well_formed (I : instance) : bool :=
  (1 <=? memory I) &&
  forallb (fun r => (0 <=? arrival r) && (0 <=? prompt r) && (1 <=? output r) &&
                    (prompt r + output r <=? memory I)) (requests I).

(** Staircases and configurations look ahead along a run, so they do not cover pauses. *)
Definition proof_value (pauses : bool) (I : instance) (p : proof) : option Z :=
  match p with
  | Prices D first numerators => prices_value pauses I D first numerators
  | Volumes [] => volume_value I []
  | Volumes staircases => if pauses then None else volume_value I staircases
  | States target searched stages =>
      if pauses then None else configurations_value I target searched stages
  end.

(** What a proof of the requests [l] gives: 0 if there are none. *)
Definition part_value (pauses : bool) (I : instance) (p : proof) (l : list request) : option Z :=
  match l with
  | [] => Some 0
  | _ => proof_value pauses (Instance (memory I) (workers I) l) p
  end.

(** The proof [p] speaks of those of [l] that arrive before the next part begins. *)
Fixpoint parts_value (pauses : bool) (I : instance) (l : list request) (begin : Z) (p : proof)
    (parts : list (Z * proof)) : option Z :=
  match parts with
  | [] => part_value pauses I p l
  | (next, q) :: rest =>
      if begin <? next then
        let first r := arrival r <? next in
        match part_value pauses I p (filter first l),
              parts_value pauses I (filter (fun r => negb (first r)) l) next q rest with
        | Some x, Some y => Some (x + y)
        | _, _ => None
        end
      else None
  end.

Definition lower_value (pauses : bool) (I : instance) (p : lower_proof) : option Z :=
  match p with
  | Whole p => proof_value pauses I p
  | Split [] => None
  | Split ((begin, p) :: rest) =>
      if forallb (fun r => begin <=? arrival r) (requests I)
      then parts_value pauses I (requests I) begin p rest
      else None
  end.

(** How many attain in a run, none where the run is not as it is said to be. *)
Definition run_attains (I : instance) (goals : list goal) (r : run) : option Z :=
  match how r with
  | Starts starts on rows =>
      match checked_run I starts on rows (value r) with
      | Some (s, _) => Some (attained runs s goals)
      | None => None
      end
  | Segments all =>
      if checked_segments I all (value r) then Some (segments_attained all goals) else None
  end.

Definition run_is_right (I : instance) (r : run) : bool :=
  match run_attains I [] r with Some _ => true | None => false end.

(** A run with pauses is in the scope of bounds with pauses only. *)
Definition in_scope (c : certificate) (r : run) : bool :=
  match how r with Starts _ _ _ => true | Segments _ => pauses c end.

Definition attains_so_many (I : instance) (goals : list goal) (x : run * Z) : bool :=
  match run_attains I goals (fst x) with Some n => n =? snd x | None => false end.

Definition deadlines_are_right (c : certificate) (d : deadlines) : bool :=
  let goals := goals_of (by_first_token d) (requests (problem c)) (allowed_times d) in
  match ceiling_value (pauses c) (problem c) (by_first_token d) (allowed_times d) (borders d)
          (border_prices d) (over d) with
  | None => false
  | Some found => found <=? claimed d
  end &&
  match best d with
  | None => true
  | Some x => in_scope c (fst x) && attains_so_many (problem c) goals x
  end &&
  Nat.eqb (length (counts d)) (length (policies c)) &&
  forallb (attains_so_many (problem c) goals) (combine (policies c) (counts d)).

Inductive verdict := Accepted | Bad_instance | Bad_upper | Bad_lower | Bad_policy | Bad_deadlines.

Definition judge (c : certificate) : verdict :=
  let I := problem c in
  if negb (is_well_formed I) then Bad_instance
  else if negb match upper c with None => true | Some r => in_scope c r && run_is_right I r end
       then Bad_upper
  else if negb match lower c with
               | None => true
               | Some (v, p) =>
                   match lower_value (pauses c) I p with Some b => v <=? b | None => false end
               end then Bad_lower
  else if negb (forallb (run_is_right I) (policies c)) then Bad_policy
  else if negb match in_time c with None => true | Some d => deadlines_are_right c d end
       then Bad_deadlines
  else Accepted.

(** ** What it guarantees *)

(** There is a run as it is said, and so many of its requests attain their goals. *)
Definition run_exists_in_time (I : instance) (goals : list goal) (r : run) (n : Z) : Prop :=
  match how r with
  | Starts starts on rows =>
      exists s lost, feasible_run I s lost /\ map start s = starts /\ map worker s = on /\
                     total_latency s = value r /\ attained runs s goals = n
  | Segments all =>
      exists s, feasible_with_pauses I s /\ map times_of s = map segment_times all /\
                paused_total_latency s = value r /\ attained with_pauses s goals = n
  end.

Definition run_exists (I : instance) (r : run) : Prop := exists n, run_exists_in_time I [] r n.

Lemma is_well_formed_sound I : is_well_formed I = true -> well_formed I.
Proof.
  unfold is_well_formed. intros H. apply andb_prop in H as [H1 H2]. split; [lia|].
  apply Forall_forall. intros r Hr. rewrite forallb_forall in H2. specialize (H2 r Hr). lia.
Qed.

Lemma run_attains_sound I goals r n :
  well_formed I -> run_attains I goals r = Some n -> run_exists_in_time I goals r n.
Proof.
  intros HI H. unfold run_attains in H. unfold run_exists_in_time.
  destruct (how r) as [starts on rows|all].
  - destruct (checked_run I starts on rows (value r)) as [[s lost]|] eqn:E; [|discriminate].
    injection H as <-. apply checked_run_sound in E as (H1 & H2 & H3 & H4); auto.
    exists s, lost. auto.
  - destruct (checked_segments I all (value r)) eqn:E; [|discriminate]. injection H as <-.
    destruct (checked_segments_sound I all (value r) HI E) as (H1 & H2 & H3).
    exists (paused_schedule (requests I) all).
    split; [exact H1|split; [exact H2|split; [exact H3|]]].
    now apply (segments_attained_sound I all (value r)).
Qed.

Lemma run_is_right_sound I r : well_formed I -> run_is_right I r = true -> run_exists I r.
Proof.
  intros HI H. unfold run_is_right in H. destruct (run_attains I [] r) as [n|] eqn:E; [|discriminate].
  exists n. now apply run_attains_sound.
Qed.

Lemma proof_value_sound pauses I p v :
  well_formed I -> proof_value pauses I p = Some v -> covers pauses I v.
Proof.
  intros HI H. destruct p as [D first numerators|[|x staircases]|target searched stages];
    cbn [proof_value] in H.
  - eapply prices_value_sound; eauto.
  - destruct pauses; [now apply volume_value_covers_pauses|now apply (volume_value_sound I [])].
  - destruct pauses; [discriminate|]. eapply volume_value_sound; eauto.
  - destruct pauses; [discriminate|]. apply bounds_runs.
    eapply configurations_value_sound; eauto.
Qed.

(** ** Parts add up *)

Lemma covers_add_up pauses I f x y :
  well_formed I ->
  covers pauses (Instance (memory I) (workers I) (filter f (requests I))) x ->
  covers pauses (Instance (memory I) (workers I) (filter (fun r => negb (f r)) (requests I))) y ->
  covers pauses I (x + y).
Proof.
  destruct pauses; apply bounds_add_up; [apply uses_nonneg_pauses|apply uses_nonneg_runs].
Qed.

Lemma part_value_sound pauses I p l v :
  well_formed (Instance (memory I) (workers I) l) -> part_value pauses I p l = Some v ->
  covers pauses (Instance (memory I) (workers I) l) v.
Proof.
  intros HI H. unfold part_value in H. destruct l as [|r l].
  - injection H as <-. destruct pauses; intros s [Hs _ _]; (destruct s; [cbn; lia|discriminate]).
  - eapply proof_value_sound; eauto.
Qed.

Lemma parts_value_sound pauses I parts : forall l begin p v,
  well_formed (Instance (memory I) (workers I) l) ->
  parts_value pauses I l begin p parts = Some v ->
  covers pauses (Instance (memory I) (workers I) l) v.
Proof.
  induction parts as [|[next q] rest IH]; intros l begin p v HI H; simpl in H.
  - eapply part_value_sound; eauto.
  - destruct (begin <? next); [|discriminate].
    destruct (part_value pauses I p _) as [x|] eqn:E1; [|discriminate].
    destruct (parts_value pauses I _ next q rest) as [y|] eqn:E2; [|discriminate].
    injection H as <-.
    apply (covers_add_up pauses (Instance (memory I) (workers I) l) (fun r => arrival r <? next));
      auto; cbn [memory workers requests].
    + eapply part_value_sound; eauto. apply (some_well_formed (Instance _ _ l)); auto.
    + eapply IH; eauto. apply (some_well_formed (Instance _ _ l)); auto.
Qed.

Lemma lower_value_sound pauses I p v :
  well_formed I -> lower_value pauses I p = Some v -> covers pauses I v.
Proof.
  intros HI H. destruct I as [M m l]. destruct p as [p|[|[begin p] rest]]; simpl in H.
  - eapply proof_value_sound; eauto.
  - discriminate.
  - destruct (forallb _ l); [|discriminate].
    eapply (parts_value_sound pauses (Instance M m l)); eauto.
Qed.

(** What is accepted is true: there is a run for each value, and none is below the bound. *)
Theorem accepted_is_true (c : certificate) :
  judge c = Accepted ->
  well_formed (problem c) /\
  (forall r, upper c = Some r -> run_exists (problem c) r) /\
  (forall v p, lower c = Some (v, p) -> covers (pauses c) (problem c) v) /\
  Forall (run_exists (problem c)) (policies c) /\
  (forall d, in_time c = Some d ->
     let goals := goals_of (by_first_token d) (requests (problem c)) (allowed_times d) in
     ceiling (pauses c) (problem c) goals (claimed d) /\
     (forall r n, best d = Some (r, n) -> run_exists_in_time (problem c) goals r n) /\
     Forall2 (run_exists_in_time (problem c) goals) (policies c) (counts d)).
Proof.
  unfold judge. intros H.
  Ltac next H E := match type of H with
    (if negb ?b then _ else _) = _ => destruct b eqn:E; [cbn [negb] in H|discriminate] end.
  next H HI. next H Hu. next H Hl. next H Hp. next H Hd. apply is_well_formed_sound in HI.
  split; [auto|]. split; [|split; [|split]].
  - intros r E. rewrite E in Hu. apply andb_prop in Hu as [_ Hu]. now apply run_is_right_sound.
  - intros v p E. rewrite E in Hl.
    destruct (lower_value (pauses c) (problem c) p) as [b|] eqn:Eb; [|discriminate].
    pose proof (lower_value_sound _ _ _ _ HI Eb) as Hb.
    unfold covers in *. destruct (pauses c); intros s Hs; specialize (Hb s Hs); lia.
  - apply Forall_forall. intros r Hr. rewrite forallb_forall in Hp.
    apply run_is_right_sound; auto.
  - intros d E. rewrite E in Hd. unfold deadlines_are_right in Hd. cbv zeta in *.
    set (goals := goals_of _ _ _) in *.
    rewrite !andb_true_iff in Hd. destruct Hd as (((Hc & Hb) & Hlen) & Hn).
    assert (Hright : forall x, attains_so_many (problem c) goals x = true ->
              run_exists_in_time (problem c) goals (fst x) (snd x)).
    { intros x Hx. unfold attains_so_many in Hx.
      destruct (run_attains (problem c) goals (fst x)) as [n|] eqn:En; [|discriminate].
      apply Z.eqb_eq in Hx. subst n. now apply run_attains_sound. }
    split; [|split].
    + destruct (ceiling_value _ _ _ _ _ _ _) as [found|] eqn:Ef in Hc; [|discriminate].
      pose proof (ceiling_value_sound _ _ _ _ _ _ _ _ HI Ef) as Hf. fold goals in Hf.
      unfold ceiling in *. destruct (pauses c); intros s Hs; specialize (Hf s Hs); lia.
    + intros r n Eb. rewrite Eb in Hb. apply andb_prop in Hb as [_ Hb]. apply (Hright (r, n) Hb).
    + apply Nat.eqb_eq in Hlen. clear Hp. revert Hn Hlen. generalize (counts d).
      induction (policies c) as [|r rs IH]; intros [|n ns] Hn Hlen; try discriminate; constructor;
        cbn [combine forallb] in Hn; apply andb_prop in Hn as [Hn1 Hn2].
      * apply (Hright (r, n) Hn1).
      * apply IH; auto.
Qed.

(** A lower bound for schedules with pauses is one for schedules without them. *)
Lemma covers_runs pauses I v : well_formed I -> covers pauses I v -> lower_bound I v.
Proof.
  intros HI H. destruct pauses; [|now apply bounds_runs]. intros s Hs.
  destruct (runs_are_paused_runs I s HI Hs) as [H1 <-]. apply H.
  now apply feasible_with_pauses_served.
Qed.

(** Where both sides are the same number, the schedule is optimal. *)
Theorem accepted_and_equal_is_optimal (c : certificate) (r : run) starts on rows v p :
  judge c = Accepted -> upper c = Some r -> lower c = Some (v, p) -> value r = v ->
  how r = Starts starts on rows ->
  exists s, optimal (problem c) s /\ map start s = starts /\ total_latency s = v.
Proof.
  intros H Hu Hl E Ehow. destruct (accepted_is_true c H) as (HI & H1 & H2 & _).
  destruct (H1 r Hu) as [n Hr]. unfold run_exists_in_time in Hr. rewrite Ehow in Hr.
  destruct Hr as (s & lost & Hs & Ht & _ & Hv & _). exists s.
  split; [|split; congruence]. split.
  - eapply last_runs_are_feasible; eauto.
  - intros s' Hs'. pose proof (covers_runs _ _ _ HI (H2 v p Hl) s' Hs'). lia.
Qed.

(** With pauses: a schedule of this total latency exists, and none has less. *)
Theorem accepted_and_equal_is_optimal_with_pauses (c : certificate) (r : run) v p :
  judge c = Accepted -> pauses c = true -> upper c = Some r -> lower c = Some (v, p) ->
  value r = v ->
  (exists s, feasible_with_pauses (problem c) s /\ paused_total_latency s = v) /\
  forall s', feasible_with_pauses (problem c) s' -> v <= paused_total_latency s'.
Proof.
  intros H Hpauses Hu Hl E. destruct (accepted_is_true c H) as (HI & H1 & H2 & _). split.
  - destruct (H1 r Hu) as [n Hr]. unfold run_exists_in_time in Hr. destruct (how r).
    + destruct Hr as (s & lost & Hs & _ & _ & Hv & _). apply last_runs_are_feasible in Hs; auto.
      destruct (runs_are_paused_runs _ _ HI Hs) as [Hp Et]. eexists. split; [exact Hp|congruence].
    + destruct Hr as (s & Hs & _ & Hv & _). exists s. split; auto. congruence.
  - intros s' Hs'. specialize (H2 v p Hl). unfold covers in H2. rewrite Hpauses in H2.
    apply H2. now apply feasible_with_pauses_served.
Qed.

(** A lower bound covers runs with evictions as well. *)
Theorem accepted_covers_evictions (c : certificate) (v : Z) (p : lower_proof) s lost :
  judge c = Accepted -> lower c = Some (v, p) -> feasible_run (problem c) s lost ->
  v <= total_latency s.
Proof.
  intros H Hl Hs. destruct (accepted_is_true c H) as (HI & _ & H2 & _).
  apply (covers_runs _ _ _ HI (H2 v p Hl) s). eapply last_runs_are_feasible; eauto.
Qed.

Print Assumptions accepted_is_true.
Print Assumptions accepted_and_equal_is_optimal.
Print Assumptions accepted_and_equal_is_optimal_with_pauses.
Print Assumptions accepted_covers_evictions.
