(** * Memory has to be checked at completions only

    docs/problem.md, "Memory has to be checked at completions only". *)

From Coq Require Import ZArith List Lia Bool.
From KV Require Import Problem Sums.
Import ListNotations.
Open Scope Z_scope.

Definition active (w : nat) (t : Z) (p : placement) : bool :=
  Nat.eqb (worker p) w && (start p <? t) && (t <=? completion p).

Lemma load_active s w t :
  load s w t = total (fun p => prompt (what p) + (t - start p)) (filter (active w t) s).
Proof.
  unfold load. rewrite total_filter. apply total_ext. intros p _. unfold active, holds.
  destruct (Nat.eqb (worker p) w), (start p <? t), (t <=? completion p); reflexivity.
Qed.

(** Of some placements one completes first. *)
Lemma first_to_complete (s : schedule) :
  s <> [] -> exists p, In p s /\ forall q, In q s -> completion p <= completion q.
Proof.
  induction s as [|a s IH]; [congruence|intros _].
  destruct s as [|b s].
  - exists a. split; [now left|]. intros q [<-|[]]. lia.
  - destruct IH as (p & Hp & Hmin); [congruence|].
    destruct (Z_le_gt_dec (completion a) (completion p)).
    + exists a. split; [now left|]. intros q [<-|Hq]; [lia|]. specialize (Hmin q Hq). lia.
    + exists p. split; [now right|]. intros q [<-|Hq]; [lia|auto].
Qed.

Lemma holds_nonneg p t : 0 <= prompt (what p) -> 0 <= holds p t.
Proof.
  unfold holds. intros.
  destruct (start p <? t) eqn:E; simpl; [|lia]. destruct (t <=? completion p); simpl; lia.
Qed.

(** A schedule that keeps to M whenever a request completes keeps to M always. *)
Theorem completions_suffice (M : Z) (s : schedule) :
  0 <= M ->
  Forall (fun p => 0 <= prompt (what p)) s ->
  (forall p, In p s -> load s (worker p) (completion p) <= M) ->
  forall w t, load s w t <= M.
Proof.
  intros HM Hs Hc w t.
  destruct (filter (active w t) s) as [|a l] eqn:E.
  - rewrite load_active, E. simpl. lia.
  - destruct (first_to_complete (filter (active w t) s)) as (p & Hp & Hmin); [rewrite E; congruence|].
    apply filter_In in Hp. destruct Hp as [Hin Hact].
    assert (Hw : worker p = w /\ t <= completion p).
    { unfold active in Hact. apply andb_prop in Hact as [Hact Hle].
      apply andb_prop in Hact as [Hw _]. apply Nat.eqb_eq in Hw. split; [auto|lia]. }
    destruct Hw as [<- Hle].
    transitivity (load s (worker p) (completion p)); [|auto].
    unfold load. apply total_le. intros q Hq.
    destruct (Nat.eqb (worker q) (worker p)) eqn:Ew; [|lia].
    pose proof (proj1 (Forall_forall _ _) Hs q Hq) as Hn. simpl in Hn.
    unfold holds at 1.
    destruct (start q <? t) eqn:E1; simpl.
    2: { apply holds_nonneg; auto. }
    destruct (t <=? completion q) eqn:E2; simpl.
    2: { apply holds_nonneg; auto. }
    assert (completion p <= completion q).
    { apply Hmin. apply filter_In. split; auto. unfold active. rewrite Ew, E1, E2. reflexivity. }
    unfold holds. replace (start q <? completion p) with true by (symmetry; lia).
    replace (completion p <=? completion q) with true by (symmetry; lia). simpl. lia.
Qed.

(** Evictions: the last runs alone are a feasible schedule, so that a lower bound covers them. *)
Theorem last_runs_are_feasible (I : instance) s lost :
  well_formed I -> feasible_run I s lost -> feasible I s.
Proof.
  intros [_ Hr] [Hs Ha Hw Hl _ Hf]. constructor; auto.
  intros w t. specialize (Hf w t).
  enough (0 <= total (fun x => if Nat.eqb (lost_on x) w then lost_holds x t else 0) lost) by lia.
  apply total_nonneg. intros x Hx. destruct (Nat.eqb (lost_on x) w); [|lia].
  rewrite Forall_forall in Hl. destruct (Hl x Hx) as [Hin _].
  apply nth_error_In in Hin. apply (in_map what) in Hin. rewrite Hs in Hin.
  rewrite Forall_forall in Hr. apply Hr in Hin.
  unfold lost_holds. destruct (since x <? t) eqn:E; simpl; [|lia].
  destruct (t <=? until x); simpl; lia.
Qed.

Print Assumptions completions_suffice.
Print Assumptions last_runs_are_feasible.
