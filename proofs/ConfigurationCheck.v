(** * What the checker computes of prices of states is a lower bound

    docs/theory, Claim 3.9: stages are replayed one after the other, each within the
    starts that those before it have left. *)

From Coq Require Import ZArith List Lia Bool Permutation.
From KV Require Import Problem Sums Memory Services Prices PriceCheck States Heaviest Configurations.
Import ListNotations.
Open Scope Z_scope.

(** Costs that are computed from the prices of one peak alone are the costs. *)
Lemma narrow_cost D ps knots r k :
  state_cost D (fun t j => line (fun x => entry (prices_of x) (left j))
                             (map (narrow ps (prompt r + output r)) knots) t) r k
  = state_cost D (state_price ps knots) r k.
Proof.
  unfold state_cost, state_payment. f_equal. apply total_ext. intros g _.
  rewrite line_map by (intros; simpl; auto). unfold state_price. cbn [held left].
  replace (prompt r + g + (output r - g)) with (prompt r + output r) by lia. reflexivity.
Qed.

Lemma link_rows times : forall previous rows x, In x (link previous times rows) -> In (prices_of x) rows.
Proof.
  induction times as [|t times IH]; intros previous rows x H; [destruct rows; destruct H|].
  destruct rows as [|r rows]; [destruct H|]. simpl in H.
  destruct H as [<-|H]; [now left|right; eauto].
Qed.

Lemma least_of_costs (l : list (Z * Z)) x :
  fold_left (fun m kc => Z.min m (snd kc)) l x <= x /\
  forall kc, In kc l -> fold_left (fun m kc => Z.min m (snd kc)) l x <= snd kc.
Proof.
  revert x. induction l as [|y l IH]; intros x; simpl; [split; [lia|intros ? []]|].
  destruct (IH (Z.min x (snd y))) as [H1 H2]. split; [lia|]. intros kc [->|H]; [lia|auto].
Qed.

Section Stage.
Variables (I : instance) (s : schedule).
Hypothesis well : well_formed I.
Hypothesis feasible_s : feasible I s.

Lemma placements : Forall (fun p => 0 <= prompt (what p) /\ 0 <= output (what p)) s.
Proof.
  destruct well as [_ Hr]. destruct feasible_s as [Hs _ _ _]. apply Forall_forall. intros p Hp.
  apply (in_map what) in Hp. rewrite Hs in Hp. rewrite Forall_forall in Hr. apply Hr in Hp. lia.
Qed.

Lemma evaluate_sound (g : stage) choices earliest costs least L :
  allowed (last_moment g) choices s ->
  evaluate I g choices earliest = Some (costs, least, L) ->
  1 <= scale g /\ L <= scale g * total_latency s /\
  forall V, total_latency s < V ->
    allowed (last_moment g) (leave costs least ((V - 1) * scale g - L)) s.
Proof.
  intros Ha H. unfold evaluate in H. destruct (moments g) as [|first more] eqn:Em; [discriminate|].
  set (knots := link (Z.min earliest (first - 1)) (first :: more) (numerators g)) in H.
  set (states := StateSort.sort (states_of (peaks g))) in H.
  match type of H with (if ?c then _ else _) = _ => destruct c eqn:E end; [|discriminate].
  rewrite !andb_true_iff in E.
  destruct E as ((((((HD & Hnn) & _) & Hchain) & Hhere) & Hfall) & Hdiff).
  injection H as Hcosts Hleast HL.
  apply are_chained_sound in Hchain.
  set (price := state_price (peaks g) knots).
  set (R := line (most_at (memory I) (peaks g) states choices) knots).
  assert (Hrow : forall x, In x knots -> Forall (fun y => 0 <= y) (prices_of x)).
  { intros x Hx. apply link_rows in Hx. rewrite forallb_forall in Hnn. specialize (Hnn _ Hx).
    apply Forall_forall. intros y Hy. rewrite forallb_forall in Hnn. specialize (Hnn y Hy). lia. }
  assert (Htimes : forall x, In x knots -> first <= here x <= last_moment g).
  { intros x Hx. rewrite forallb_forall in Hhere. specialize (Hhere x Hx). lia. }
  assert (Hpriced : forall t j, ~ (first <= t <= last_moment g) -> price t j = 0).
  { intros t j Ht. eapply line_outside; eauto. }
  assert (HR : forall w t, first <= t <= last_moment g -> total (price t) (shown s w t) <= R t).
  { intros w t Ht. unfold price, R, state_price.
    apply (line_of_a_sum (fun j x => entry (column (peaks g) (prices_of x) (held j + left j)) (left j)));
      auto.
    intros x Hx Hnear. eapply most_at_enough; eauto; try lia.
    - destruct well; auto.
    - apply placements.
    - destruct feasible_s; auto. }
  assert (Hcost : forall (c : choice) k,
    state_cost (scale g) (fun t j => line (fun x => entry (prices_of x) (left j))
      (map (narrow (peaks g) (prompt (fst c) + output (fst c))) knots) t) (fst c) k
    = state_cost (scale g) price (fst c) k).
  { intros c k. apply narrow_cost. }
  assert (Hall : Forall2 (fun (c : choice) cs =>
            cs = (fst c, map (fun k => (k, state_cost (scale g) price (fst c) k)) (snd c)))
            choices costs).
  { rewrite <- Hcosts. clear - Hcost. induction choices as [|c l IH]; simpl; constructor; auto.
    f_equal. apply map_ext. intros k. now rewrite Hcost. }
  assert (Hmin : Forall2 (fun (c : choice) m =>
            forall k, In k (snd c) -> m <= state_cost (scale g) price (fst c) k) choices least).
  { rewrite <- Hleast, Hcosts. clear - Hall. induction Hall as [|c cs l l' E Hl IH]; simpl;
      constructor; auto. subst cs. cbn [snd]. intros k Hk.
    destruct (snd c) as [|k0 ks]; [destruct Hk|]. cbn [map].
    set (costs0 := map (fun k => (k, state_cost (scale g) price (fst c) k)) ks).
    destruct (least_of_costs costs0 (state_cost (scale g) price (fst c) k0)) as [H1 H2].
    destruct Hk as [->|Hk]; [auto|].
    apply (H2 (k, state_cost (scale g) price (fst c) k)). unfold costs0.
    apply in_map_iff. eauto. }
  assert (Hvalue : total (fun x => x) least
      - Z.of_nat (workers I) * total R (rounds first (Z.to_nat (last_moment g - first + 1))) = L).
  { rewrite <- HL, Hleast. do 2 f_equal. apply total_ext. intros t _. unfold R.
    rewrite line_map by (intros; simpl; auto). reflexivity. }
  rewrite <- Hvalue. split; [lia|]. split.
  - apply (state_prices_prove_a_bound I s (scale g) first (last_moment g) price R)
      with (choices := choices); auto. lia.
  - intros V HV.
    apply (better_schedules_start_cheaply I s (scale g) first (last_moment g) price R)
      with (choices := choices); auto. lia.
Qed.

Lemma rounded_up_le L D v : 1 <= D -> L <= D * v -> rounded_up L D <= v.
Proof.
  intros HD H. unfold rounded_up.
  pose proof (Z.div_mod (- L) D ltac:(lia)). pose proof (Z.mod_pos_bound (- L) D ltac:(lia)). nia.
Qed.

End Stage.

(** Claim 3.9: what a stage proves within the starts that are left holds for all schedules, up to
    the target. *)
Section Stages.
Variables (I : instance) (last earliest : Z) (target : option Z).
Variable finish : stage -> list choice -> list (request * list (Z * Z)) -> list Z -> Z -> Z -> option Z.
Hypothesis well : well_formed I.

(** The schedules in question: all, or those below the target. *)
Definition in_question (s : schedule) : Prop :=
  feasible I s /\ match target with Some V => total_latency s < V | None => True end.

Hypothesis finish_right : forall g choices costs least L V v,
  target = Some V -> last_moment g = last ->
  (forall s, in_question s -> allowed last choices s) ->
  evaluate I g choices earliest = Some (costs, least, L) -> 0 <= (V - 1) * scale g - L ->
  finish g choices costs least L V = Some v ->
  v <= V /\ forall s, in_question s -> v <= total_latency s.

Theorem stages_prove_a_bound : forall stages choices v,
  (forall s, in_question s -> allowed last choices s) ->
  stages_value finish I last earliest target stages choices = Some v -> lower_bound I v.
Proof.
  induction stages as [|g stages IH]; intros choices v Ha H; [discriminate|].
  cbn [stages_value] in H. destruct (last_moment g =? last) eqn:El; [|discriminate].
  assert (El' : last_moment g = last) by lia. clear El.
  destruct (evaluate I g choices earliest) as [[[costs least] L]|] eqn:E; [|discriminate].
  destruct target as [V|] eqn:Et.
  - destruct ((V - 1) * scale g - L <? 0) eqn:Eb.
    + injection H as <-. intros s Hs. destruct (Z_lt_le_dec (total_latency s) V) as [HV|HV]; [|lia].
      assert (Hq : in_question s) by (unfold in_question; rewrite Et; auto).
      specialize (Ha s Hq). rewrite <- El' in Ha.
      destruct (evaluate_sound I s well Hs g choices earliest costs least L Ha E) as (HD & HL & _).
      nia.
    + destruct stages as [|g' stages'].
      * destruct (finish_right g choices costs least L V v eq_refl El') as [H1 H2]; auto; try lia.
        intros s Hs. destruct (Z_lt_le_dec (total_latency s) V) as [HV|HV]; [|lia].
        apply H2. unfold in_question. rewrite Et. auto.
      * apply (IH (leave costs least ((V - 1) * scale g - L)) v); auto.
        intros s Hq. pose proof Hq as [Hs HV]. rewrite Et in HV.
        specialize (Ha s Hq). rewrite <- El' in Ha.
        destruct (evaluate_sound I s well Hs g choices earliest costs least L Ha E) as (_ & _ & Hl).
        rewrite <- El'. auto.
  - destruct stages; [|discriminate]. injection H as <-. intros s Hs.
    assert (Hq : in_question s) by (unfold in_question; rewrite Et; auto).
    specialize (Ha s Hq). rewrite <- El' in Ha.
    destruct (evaluate_sound I s well Hs g choices earliest costs least L Ha E) as (HD & HL & _).
    now apply rounded_up_le.
Qed.

(** Without a search: min(target, L rounded up). *)
Lemma without_search_right g choices costs least L V v :
  target = Some V -> last_moment g = last ->
  (forall s, in_question s -> allowed last choices s) ->
  evaluate I g choices earliest = Some (costs, least, L) -> 0 <= (V - 1) * scale g - L ->
  without_search g choices costs least L V = Some v ->
  v <= V /\ forall s, in_question s -> v <= total_latency s.
Proof.
  intros Et El Ha E _ H. unfold without_search in H. injection H as <-. split; [lia|].
  intros s Hq. pose proof Hq as [Hs _]. specialize (Ha s Hq). rewrite <- El in Ha.
  destruct (evaluate_sound I s well Hs g choices earliest costs least L Ha E) as (HD & HL & _).
  pose proof (rounded_up_le L (scale g) _ HD HL). lia.
Qed.

(** At first every start is allowed. *)
Lemma all_allowed s : feasible I s ->
  allowed last (map (all_starts last) (requests I)) s.
Proof.
  intros [Hw Ha _ _]. rewrite <- Hw. clear - Ha.
  induction Ha as [|p s Hp Ha IH]; [constructor|].
  cbn [map]. constructor; [|exact IH]. split; [reflexivity|].
  unfold all_starts, stands_for. cbn [snd]. apply rounds_in. lia.
Qed.

End Stages.

Print Assumptions stages_prove_a_bound.
