(** * Stages, and the search of what they leave, as the checker does them *)

From Coq Require Import ZArith List Lia Bool Permutation.
From KV Require Import Problem Sums Memory Services Prices PriceCheck States Heaviest Configurations
  ConfigurationCheck Search.
Import ListNotations.
Open Scope Z_scope.

(** The knots that say what there is at time [t]. *)
Fixpoint near (knots : list knot) (t : Z) : list knot :=
  match knots with
  | [] => []
  | x :: rest =>
      if t <? here x then []
      else if t =? here x then [x]
      else match rest with
           | [] => []
           | y :: _ => if t <? here y then [x; y] else near rest t
           end
  end.

Fixpoint rows_left (costs : list (request * list (Z * Z))) (least : list Z) (budget : Z)
  : list option_row :=
  match costs, least with
  | c :: costs', m :: least' =>
      Row_of (fst c) (filter (fun kc => snd kc - m <=? budget) (snd c)) m
      :: rows_left costs' least' budget
  | _, _ => []
  end.

Definition with_search (I : instance) (last earliest : Z) (g : stage) (choices : list choice)
    (costs : list (request * list (Z * Z))) (least : list Z) (L V : Z) : option Z :=
  if negb (Nat.eqb (workers I) 1) then without_search g choices costs least L V
  else match moments g with
       | [] => None
       | first :: _ =>
           let knots := link (Z.min earliest (first - 1)) (moments g) (numerators g) in
           let states := StateSort.sort (states_of (peaks g)) in
           let most := map (fun x => Knot (before x) (here x) (after x)
                              [most_at (memory I) (peaks g) states choices x]) knots in
           let R t := line only_number most t in
           let price t := let some := near knots t in fun j => state_price (peaks g) some t j in
           let budget := (V - 1) * scale g - L in
           let latest := fold_left (fun m r => Z.max m (arrival r)) (requests I) last in
           let longest := Z.to_nat (fold_left (fun m r => Z.max m (output r)) (requests I) 0) in
           let before_all := total (fun t => if t <=? earliest then R t else 0)
                               (rounds first (Z.to_nat (last - first + 1))) in
           let nothing := Label (map (fun r => (r, None)) (requests I)) before_all in
           if run_search (Z.to_nat (latest - earliest + budget / scale g + 5)) (memory I) (scale g)
                last budget V longest (rows_left costs least budget) price R first earliest [nothing]
           then Some V else None
       end.

Definition configurations_value (I : instance) (target : option Z) (searched : bool)
    (stages : list stage) : option Z :=
  match stages with
  | [] => None
  | s :: _ =>
      let last := last_moment s in
      let earliest := first_arrival (requests I) in
      stages_value (if searched then with_search I last earliest else without_search) I
        last earliest target stages (map (all_starts last) (requests I))
  end.

(** ** Why that is right *)

Lemma line_near f knots t : line f (near knots t) t = line f knots t.
Proof.
  induction knots as [|x l IH]; [reflexivity|]. cbn [near line].
  destruct (t <? here x) eqn:E1; [reflexivity|].
  destruct (t =? here x) eqn:E2; [cbn [line]; now rewrite E1, E2|].
  destruct l as [|y l]; [reflexivity|].
  destruct (t <? here y) eqn:E3; [cbn [line]; now rewrite E1, E2, E3|exact IH].
Qed.

Lemma first_arrival_least l r : In r l -> first_arrival l <= arrival r.
Proof.
  assert (G : forall l m, fold_left (fun m r => Z.min m (arrival r)) l m <= m /\
            forall r, In r l -> fold_left (fun m r => Z.min m (arrival r)) l m <= arrival r).
  { clear. induction l as [|q l IH]; intros m; cbn [fold_left]; [split; [lia|intros r []]|].
    destruct (IH (Z.min m (arrival q))) as [H1 H2]. split; [lia|]. intros r [->|H]; [lia|auto]. }
  destruct l as [|q l]; intros H; [destruct H|]. cbn [first_arrival].
  destruct (G l (arrival q)) as [H1 H2]. destruct H as [->|H]; [lia|auto].
Qed.

Lemma largest_output l : forall m r, In r l ->
  output r <= fold_left (fun m r => Z.max m (output r)) l m.
Proof.
  assert (G : forall l m, m <= fold_left (fun m r => Z.max m (output r)) l m).
  { clear. induction l as [|q l IH]; intros m; cbn [fold_left]; [lia|].
    specialize (IH (Z.max m (output q))). lia. }
  induction l as [|q l IH]; intros m r H; [destruct H|]. cbn [fold_left].
  destruct H as [->|H]; [|auto]. specialize (G l (Z.max m (output r))). lia.
Qed.

(** What one stage knows: prices, and R that is enough for every schedule in question. *)
Lemma evaluate_facts I g choices earliest costs least L first more :
  well_formed I -> moments g = first :: more ->
  evaluate I g choices earliest = Some (costs, least, L) ->
  let knots := link (Z.min earliest (first - 1)) (moments g) (numerators g) in
  let states := StateSort.sort (states_of (peaks g)) in
  let R := line (most_at (memory I) (peaks g) states choices) knots in
  let price := state_price (peaks g) knots in
  let last := last_moment g in
  1 <= scale g /\
  (forall t j, ~ (first <= t <= last) -> price t j = 0) /\
  (forall s w t, feasible I s -> allowed last choices s -> first <= t <= last ->
     total (price t) (shown s w t) <= R t) /\
  costs = map (fun c : choice =>
    (fst c, map (fun k => (k, state_cost (scale g) price (fst c) k)) (snd c))) choices /\
  length least = length costs /\
  total (fun x => x) least
  - Z.of_nat (workers I) * total R (rounds first (Z.to_nat (last - first + 1))) = L.
Proof.
  intros well Em H. unfold evaluate in H. rewrite Em in H. cbv zeta. rewrite Em.
  set (knots := link (Z.min earliest (first - 1)) (first :: more) (numerators g)) in *.
  set (states := StateSort.sort (states_of (peaks g))) in *.
  match type of H with (if ?c then _ else _) = _ => destruct c eqn:E end; [|discriminate].
  rewrite !andb_true_iff in E.
  destruct E as ((((((HD & Hnn) & _) & Hchain) & Hhere) & Hfall) & Hdiff).
  injection H as Hcosts Hleast HL. apply are_chained_sound in Hchain.
  assert (Hrow : forall x, In x knots -> Forall (fun y => 0 <= y) (prices_of x)).
  { intros x Hx. apply link_rows in Hx. rewrite forallb_forall in Hnn. specialize (Hnn _ Hx).
    apply Forall_forall. intros y Hy. rewrite forallb_forall in Hnn. specialize (Hnn y Hy). lia. }
  assert (Htimes : forall x, In x knots -> first <= here x <= last_moment g).
  { intros x Hx. rewrite forallb_forall in Hhere. specialize (Hhere x Hx). lia. }
  split; [lia|]. split; [|split; [|split; [|split]]].
  - intros t j Ht. eapply line_outside; eauto.
  - intros s w t Hs Ha Ht. unfold state_price.
    apply (line_of_a_sum (fun j x => entry (column (peaks g) (prices_of x) (held j + left j)) (left j)));
      auto.
    intros x Hx Hnear. eapply most_at_enough; eauto; try lia.
    + destruct well; auto.
    + now apply (placements I).
    + destruct Hs; auto.
  - rewrite <- Hcosts. apply map_ext. intros c. f_equal. apply map_ext. intros k.
    now rewrite narrow_cost.
  - rewrite <- Hleast, Hcosts. now rewrite map_length.
  - rewrite <- HL, Hleast. do 2 f_equal. apply total_ext. intros t _.
    rewrite line_map by (intros; simpl; auto). reflexivity.
Qed.

Lemma rows_left_least costs : forall least budget, length least = length costs ->
  total least_of_it (rows_left costs least budget) = total (fun x => x) least /\
  map whose (rows_left costs least budget) = map fst costs.
Proof.
  induction costs as [|c costs IH]; intros [|m least] budget H; try discriminate; [auto|].
  cbn [rows_left total map whose least_of_it]. injection H as H.
  destruct (IH least budget H) as [-> ->]. auto.
Qed.

Lemma rows_left_costs (D : Z) price choices : forall least budget,
  Forall (fun x => Forall (fun kc => snd kc = state_cost D price (whose x) (fst kc)) (costs_of x))
    (rows_left (map (fun c : choice =>
       (fst c, map (fun k => (k, state_cost D price (fst c) k)) (snd c))) choices) least budget).
Proof.
  induction choices as [|c choices IH]; intros [|m least] budget; cbn [map rows_left]; constructor; auto.
  cbn [whose costs_of fst snd]. apply Forall_forall. intros kc H. apply filter_In in H as [H _].
  apply in_map_iff in H. destruct H as (k & <- & _). reflexivity.
Qed.

Lemma rows_left_allowed last costs : forall least budget s,
  allowed last (leave costs least budget) s ->
  Forall2 (fun x q => whose x = what q /\
    In (stands_for last (what q) (start q)) (map fst (costs_of x))) (rows_left costs least budget) s.
Proof.
  induction costs as [|c costs IH]; intros [|m least] budget s H; cbn [leave rows_left] in *;
    inversion H; subst; constructor; auto.
Qed.

Section With_search.
Variables (I : instance) (V : Z) (earliest : Z) (g : stage) (choices : list choice).
Variables (costs : list (request * list (Z * Z))) (least : list Z) (L v : Z).
Let last := last_moment g.
Hypothesis well : well_formed I.
Hypothesis early : forall r, In r (requests I) -> earliest <= arrival r.
Hypothesis allowed_all : forall s, feasible I s -> total_latency s < V -> allowed last choices s.
Hypothesis evaluated : evaluate I g choices earliest = Some (costs, least, L).

Lemma with_search_right :
  with_search I last earliest g choices costs least L V = Some v ->
  v <= V /\ forall s, feasible I s -> total_latency s < V -> v <= total_latency s.
Proof.
  intros H. unfold with_search in H. destruct (Nat.eqb_spec (workers I) 1) as [one|]; cbn [negb] in H.
  2: { unfold without_search in H. injection H as <-. split; [lia|]. intros s Hs HV.
       destruct (evaluate_sound I s well Hs g choices earliest costs least L
                   (allowed_all s Hs HV) evaluated) as (HD & HL & _).
       pose proof (rounded_up_le L (scale g) _ HD HL). lia. }
  destruct (moments g) as [|first more] eqn:Em; [discriminate|].
  pose proof (evaluate_facts I g choices earliest costs least L first more well Em evaluated) as F.
  cbv zeta in F. rewrite Em in F.
  set (knots := link (Z.min earliest (first - 1)) (first :: more) (numerators g)) in *.
  set (states := StateSort.sort (states_of (peaks g))) in *.
  set (most := map (fun x => Knot (before x) (here x) (after x)
                      [most_at (memory I) (peaks g) states choices x]) knots) in H.
  set (R := line (most_at (memory I) (peaks g) states choices) knots) in *.
  set (price := state_price (peaks g) knots) in *.
  fold last in F. destruct F as (HD & Hpriced & HR & Hcosts & Hlen & HL).
  set (budget := (V - 1) * scale g - L) in H.
  set (longest := Z.to_nat (fold_left (fun m r => Z.max m (output r)) (requests I) 0)) in H.
  set (near_price := fun t => let some := near knots t in fun j => state_price (peaks g) some t j) in H.
  set (R' := fun t => line only_number most t) in H.
  assert (HR' : forall t, R' t = R t).
  { intros t. unfold R', R, most. rewrite line_map by (intros; simpl; auto). reflexivity. }
  assert (Hprice : forall t j, near_price t j = price t j).
  { intros t j. unfold near_price, price, state_price. apply line_near. }
  match type of H with (if ?c then _ else _) = _ => destruct c eqn:E end; [|discriminate].
  injection H as <-. split; [lia|]. intros s Hs HV. exfalso.
  assert (Hleave : forall u, feasible I u -> total_latency u < V ->
            allowed last (leave costs least budget) u).
  { intros u Hu HuV.
    destruct (evaluate_sound I u well Hu g choices earliest costs least L
                (allowed_all u Hu HuV) evaluated) as (_ & _ & Hl). apply Hl. exact HuV. }
  destruct (rows_left_least costs least budget Hlen) as [Hrl1 Hrl2].
  assert (Hcost : forall c k, state_cost (scale g) price c k = state_cost (scale g) near_price c k).
  { intros c k. unfold state_cost, state_payment. f_equal. apply total_ext. intros j _.
    symmetry. apply Hprice. }
  set (nothing := Label (map (fun r => (r, None)) (requests I))
    (total (fun t => if t <=? earliest then R' t else 0)
       (rounds first (Z.to_nat (last - first + 1))))) in E.
  eapply (search_misses_nothing I (scale g) first last V L near_price R' longest
    (rows_left costs least budget) well one HD) with (s := s) (x := nothing); [..|exact E| | | |].
  - intros t j Ht. rewrite Hprice. now apply Hpriced.
  - apply Forall_forall. intros r Hr. unfold longest.
    pose proof (largest_output (requests I) 0 r Hr). destruct well as [_ Hw].
    rewrite Forall_forall in Hw. apply Hw in Hr. lia.
  - rewrite Hcosts. eapply Forall_impl; [|apply (rows_left_costs (scale g) price choices)].
    intros x Hx. eapply Forall_impl; [|exact Hx]. intros kc ->. apply Hcost.
  - intros u [Hu HuV]. apply rows_left_allowed. now apply Hleave.
  - intros u t [Hu HuV] Ht. rewrite HR'.
    rewrite (total_ext _ (price t)) by (intros; apply Hprice). apply HR; auto.
  - rewrite Hrl1. rewrite (total_ext R' R) by (intros; apply HR'). rewrite one in HL. lia.
  - intros x [<-|[]]. split.
    + cbn [plan nothing]. split; [|split].
      * rewrite map_map. cbn [fst]. apply map_id.
      * intros r k Hin. apply in_map_iff in Hin. destruct Hin as (q & Hq & _). discriminate.
      * intros t. assert (Z0 : begun (map (fun r => (r, None)) (requests I)) = []).
        { clear. induction (requests I); simpl; auto. }
        rewrite Z0. unfold load. simpl. destruct well. lia.
    + intros u Hu. cbn [lost nothing plan] in *. unfold lost_until. apply total_ext. intros t _.
      destruct (t <=? earliest) eqn:Et; [|reflexivity].
      rewrite (shown_so_far earliest _ u t Hu) by lia.
      assert (Z0 : begun (map (fun r => (r, None)) (requests I)) = []).
      { clear. induction (requests I); simpl; auto. }
      rewrite Z0. cbn [shown filter map total]. unfold shown. simpl. lia.
  - split; auto.
  - now left.
  - cbn [plan nothing]. destruct Hs as [Hw Ha Hk _]. unfold extends.
    assert (Hearly : Forall (fun q => earliest <= start q) s).
    { apply Forall_forall. intros q Hq. rewrite Forall_forall in Ha. specialize (Ha q Hq).
      apply (in_map what) in Hq. rewrite Hw in Hq. apply early in Hq. lia. }
    rewrite one in Hk. rewrite <- Hw. clear - Hearly Hk.
    induction s as [|q s IH]; cbn [map]; constructor.
    + inversion Hearly; inversion Hk; subst. cbn [fst snd]. repeat split; auto. lia.
    + inversion Hearly; inversion Hk; subst. auto.
Qed.

End With_search.

(** What the checker accepts by configurations is true. *)
Theorem configurations_value_sound (I : instance) target searched stages v :
  well_formed I -> configurations_value I target searched stages = Some v -> lower_bound I v.
Proof.
  intros HI H. unfold configurations_value in H. destruct stages as [|g stages]; [discriminate|].
  cbv zeta in H. destruct searched.
  - eapply stages_prove_a_bound; [exact HI| |intros s [Hs _]; apply all_allowed; exact Hs|exact H].
    intros g' choices costs least L V w Et El Ha E _ Hw. rewrite <- El in *.
    destruct (with_search_right I V (first_arrival (requests I)) g' choices costs least L w HI) as [H1 H2];
      auto.
    + apply first_arrival_least.
    + intros s Hs HV. apply Ha. unfold in_question. rewrite Et. auto.
    + split; [exact H1|]. intros s [Hs HV]. rewrite Et in HV. auto.
  - eapply stages_prove_a_bound; [exact HI| |intros s [Hs _]; apply all_allowed; exact Hs|exact H].
    intros. eapply without_search_right; eauto.
Qed.

Print Assumptions configurations_value_sound.
