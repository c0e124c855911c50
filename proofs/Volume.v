(** * Volume, by rank and with arrivals

    docs/bounds.md, "Volume", "With arrivals" and "Volumes of staircases". *)

From Coq Require Import ZArith List Lia Bool Sorted Permutation Orders Mergesort.
From KV Require Import Problem Sums Memory Services Prices Fluid States Staircases.
Import ListNotations.
Open Scope Z_scope.

(** ** What is computed *)

Module ByTime <: TotalLeBool.
  Definition t := (Z * Z)%type.
  (** By time; of one time the largest first, so that each is put in front of the smaller ones. *)
  Definition leb (x y : t) := (fst x <? fst y) || ((fst x =? fst y) && (snd y <=? snd x)).
  Theorem leb_total : forall x y, leb x y = true \/ leb y x = true.
  Proof. unfold leb. intros. lia. Qed.
End ByTime.
Module TimeSort := Sort ByTime.

Module Ascending <: TotalLeBool.
  Definition t := Z.
  Definition leb := Z.leb.
  Theorem leb_total : forall x y, leb x y = true \/ leb y x = true.
  Proof. unfold leb. intros. lia. Qed.
End Ascending.
Module NumberSort := Sort Ascending.

(** The volume of a request: s o + o (o + 1) / 2. *)
Definition volume (r : request) : Z :=
  prompt r * output r + output r * (output r + 1) / 2.

(** The completions of the fluid, ascending. *)
Definition fluid_ranks (R : Z) (size : request -> Z) (l : list request) : list Z :=
  NumberSort.sort (fluid R 0 [] (TimeSort.sort (map (fun r => (arrival r, size r)) l)) []).

(** How many states of a staircase the states (h, r), (h + 1, r - 1), ..., [count] of them, have;
    [nu] thresholds of the sum [sum] are below h, [above] are the others. *)
Fixpoint passed (M : Z) (count : nat) (h r nu sum : Z) (above : list Z) (acc : Z) : Z :=
  match count with
  | O => acc
  | S count' =>
      let fix raise nu sum above :=
        match above with
        | x :: above' => if x <=? h then raise (nu + 1) (sum + x) above' else (nu, sum, above)
        | [] => (nu, sum, [])
        end in
      let '(nu, sum, above) := raise nu sum above in
      passed M count' (h + 1) (r - 1) nu sum above
        (if (1 <=? nu) && (M <? h + (nu + 1) * r + sum) then acc + 1 else acc)
  end.

Definition states_in (M : Z) (thresholds : list Z) (r : request) : Z :=
  passed M (Z.to_nat (output r)) (prompt r + 1) (output r - 1) 0 0 thresholds 0.

Fixpoint ascending (least : Z) (l : list Z) : bool :=
  match l with [] => true | x :: rest => (least <=? x) && ascending x rest end.

Fixpoint larger (l l' : list Z) : option (list Z) :=
  match l, l' with
  | [], [] => Some []
  | x :: l, x' :: l' =>
      match larger l l' with Some rest => Some (Z.max x x' :: rest) | None => None end
  | _, _ => None
  end.

Fixpoint with_staircases (I : instance) (ranks : list Z) (staircases : list (list Z))
  : option (list Z) :=
  match staircases with
  | [] => Some ranks
  | thresholds :: rest =>
      if ascending 1 thresholds && (0 <? Z.of_nat (workers I) * Z.of_nat (length thresholds)) then
        match larger ranks (fluid_ranks (Z.of_nat (workers I) * Z.of_nat (length thresholds))
                              (states_in (memory I) thresholds) (requests I)) with
        | Some ranks' => with_staircases I ranks' rest
        | None => None
        end
      else None
  end.

(** For each rank the latest of what is known counts. *)
Definition volume_ranks (I : instance) (staircases : list (list Z)) : option (list Z) :=
  let soonest := NumberSort.sort (map (fun r => arrival r + output r) (requests I)) in
  let rate := Z.of_nat (workers I) * memory I in
  if 0 <? rate then
    match larger soonest (fluid_ranks rate volume (requests I)) with
    | Some ranks => with_staircases I ranks staircases
    | None => None
    end
  else None.

Definition volume_value (I : instance) (staircases : list (list Z)) : option Z :=
  match volume_ranks I staircases with
  | Some ranks => Some (fold_left Z.add ranks 0
                        - fold_left (fun sum r => sum + arrival r) (requests I) 0)
  | None => None
  end.

(** ** Why it is right *)

(** If always at least as many of [l] as of [c] are past, then in ascending order each number of
    [l] is at most the one of [c] of the same rank. *)
Lemma by_rank : forall l c,
  StronglySorted Z.le l -> StronglySorted Z.le c -> length l = length c ->
  (forall t, count_le t c <= count_le t l) -> Forall2 Z.le l c.
Proof.
  induction l as [|x l IH]; intros [|y c] Hl Hc Hlen H; simpl in Hlen; try discriminate; constructor.
  - specialize (H y). rewrite !count_le_cons in H.
    replace (y <=? y) with true in H by (symmetry; lia).
    destruct (x <=? y) eqn:E; [lia|].
    pose proof (count_le_nonneg y c).
    assert (Z : count_le y l = 0).
    { apply total_zero. intros z Hz. inversion Hl as [|? ? _ Hx]; subst.
      rewrite Forall_forall in Hx. specialize (Hx z Hz).
      replace (z <=? y) with false by (symmetry; lia). reflexivity. }
    lia.
  - inversion Hl as [|? ? Hl1 Hl2]; inversion Hc as [|? ? Hc1 Hc2]; subst.
    apply IH; auto. intros t. pose proof (H t) as Ht. rewrite !count_le_cons in Ht.
    destruct (Z_le_gt_dec y t) as [Hy|Hy].
    + replace (y <=? t) with true in Ht by (symmetry; lia).
      destruct (x <=? t) eqn:E; [lia|].
      pose proof (count_le_nonneg t l). destruct (x <=? t); lia.
    + assert (Z : count_le t c = 0).
      { apply total_zero. intros z Hz. rewrite Forall_forall in Hc2. specialize (Hc2 z Hz).
        replace (z <=? t) with false by (symmetry; lia). reflexivity. }
      rewrite Z. apply count_le_nonneg.
Qed.

Lemma number_sort_sorted l : StronglySorted Z.le (NumberSort.sort l).
Proof.
  assert (H : StronglySorted (fun x y => is_true (Ascending.leb x y)) (NumberSort.sort l)).
  { apply NumberSort.StronglySorted_sort. intros x y z. unfold is_true, Ascending.leb. lia. }
  induction H; constructor; auto. eapply Forall_impl; [|exact H0].
  unfold is_true, Ascending.leb. simpl. intros; lia.
Qed.

Lemma number_sort_count t l : count_le t (NumberSort.sort l) = count_le t l.
Proof. apply total_perm. symmetry. apply NumberSort.Permuted_sort. Qed.

Lemma number_sort_length l : length (NumberSort.sort l) = length l.
Proof. apply Permutation_length. symmetry. apply NumberSort.Permuted_sort. Qed.

(** The completions of a schedule, ascending. *)
Definition ranks_of (s : schedule) : list Z := NumberSort.sort (map completion s).

(** A resource of which requests use something while they are active, at most [R] in a round. *)
Section Resource.
Variables (s : schedule) (R : Z) (use : placement -> Z -> Z) (size : request -> Z).
Hypothesis R_positive : 0 < R.
Hypothesis requests_ok : Forall (fun p =>
  0 <= arrival (what p) <= start p /\ 0 <= output (what p)) s.
Hypothesis use_nonneg : forall p t, In p s -> 0 <= use p t.
Hypothesis use_active : forall p t, In p s -> use p t <> 0 -> start p < t <= completion p.
Hypothesis use_all : forall p, In p s ->
  size (what p) = total (use p) (rounds (start p + 1) (Z.to_nat (output (what p)))).
Hypothesis use_at_most : forall t, total (fun p => use p t) s <= R.

Definition needs (p : placement) (t : Z) : Z :=
  total (use p) (rounds (t + 1) (Z.to_nat (completion p - t))).

Lemma needs_split p t t' : In p s -> t <= t' ->
  needs p t = total (use p) (rounds (t + 1) (Z.to_nat (t' - t))) + needs p t'.
Proof.
  intros Hp Ht. unfold needs. destruct (Z_le_gt_dec t' (completion p)).
  - replace (Z.to_nat (completion p - t)) with (Z.to_nat (t' - t) + Z.to_nat (completion p - t'))%nat
      by lia.
    rewrite rounds_app, total_app.
    replace (t + 1 + Z.of_nat (Z.to_nat (t' - t))) with (t' + 1) by lia. reflexivity.
  - replace (Z.to_nat (completion p - t')) with O by lia. cbn [rounds total]. rewrite Z.add_0_r.
    symmetry. apply total_widen; [lia|lia|]. intros x Hx Hout.
    destruct (Z.eq_dec (use p x) 0) as [|N]; auto. exfalso. apply Hout.
    pose proof (use_active p x Hp N). lia.
Qed.

Lemma needs_at_arrival p : In p s -> needs p (arrival (what p)) = size (what p).
Proof.
  intros Hp. rewrite use_all by auto. unfold needs.
  assert (Hok : 0 <= arrival (what p) <= start p /\ 0 <= output (what p)).
  { pose proof requests_ok as H. rewrite Forall_forall in H. auto. }
  apply total_widen; unfold completion; [lia|lia|]. intros x Hx Hout.
  destruct (Z.eq_dec (use p x) 0) as [|N]; auto. exfalso. apply Hout.
  pose proof (use_active p x Hp N). unfold completion in *. lia.
Qed.

Lemma resource_never_behind t :
  count_le t (map completion s) <= count_le t (fluid_ranks R size (map what s)).
Proof.
  unfold fluid_ranks. rewrite number_sort_count, map_map.
  set (pairs := map (fun p => (arrival (what p), size (what p))) s).
  destruct (Permutation_map_inv (fun p => (arrival (what p), size (what p))) s
    (l1 := TimeSort.sort pairs)) as (sorted & E & HP).
  { symmetry. apply TimeSort.Permuted_sort. }
  rewrite E.
  apply (never_behind R (fun p => arrival (what p)) (fun p => size (what p)) completion needs s);
    auto.
  - intros p x Hp. apply total_nonneg. auto.
  - intros p Hp. rewrite needs_at_arrival by auto. split; [|lia].
    rewrite use_all by auto. apply total_nonneg. auto.
  - intros p x Hp Hd. unfold needs. replace (Z.to_nat (completion p - x)) with O by lia. reflexivity.
  - intros p Hp. pose proof requests_ok as H. rewrite Forall_forall in H. specialize (H p Hp).
    unfold completion. lia.
  - intros S x y [rest HS] Hxy.
    assert (Hin : forall p, In p S -> In p s).
    { intros p Hp. eapply Permutation_in; [exact HS|]. apply in_or_app. auto. }
    rewrite <- total_minus.
    transitivity (total (fun z => total (fun p => use p z) S) (rounds (x + 1) (Z.to_nat (y - x)))).
    + rewrite <- total_swap. apply Z.eq_le_incl, total_ext. intros p Hp.
      rewrite (needs_split p x y) by auto. lia.
    + transitivity (total (fun _ => R) (rounds (x + 1) (Z.to_nat (y - x)))).
      * apply total_le. intros z _. transitivity (total (fun p => use p z) s); [|apply use_at_most].
        rewrite <- (total_perm _ _ _ HS), total_app.
        enough (0 <= total (fun p => use p z) rest) by lia.
        apply total_nonneg. intros p Hp. apply use_nonneg.
        eapply Permutation_in; [exact HS|]. apply in_or_app. auto.
      * rewrite total_const, rounds_length. nia.
  - intros p Hp. pose proof requests_ok as H. rewrite Forall_forall in H. specialize (H p Hp). lia.
  - now symmetry.
  - assert (G : StronglySorted (fun x y => is_true (ByTime.leb x y)) (TimeSort.sort pairs)).
    { apply TimeSort.StronglySorted_sort. intros [a b] [c d] [e f].
      unfold is_true, ByTime.leb. simpl. lia. }
    rewrite E in G. clear - G. induction sorted as [|p l IH]; simpl in *; constructor.
    + apply IH. now inversion G.
    + inversion G as [|? ? _ H]; subst. clear - H. induction l as [|q l IH]; simpl in *; constructor.
      * inversion H; subst. unfold is_true, ByTime.leb in *. simpl in *. lia.
      * apply IH. now inversion H.
Qed.

End Resource.

Lemma volume_is_what_is_held p : 0 <= output (what p) ->
  volume (what p) = total (holds p) (rounds (start p + 1) (Z.to_nat (output (what p)))).
Proof.
  intros Ho.
  transitivity (total (fun g => prompt (what p) + g) (rounds 1 (Z.to_nat (output (what p))))).
  - unfold volume.
    assert (H : forall n, 2 * total (fun g => prompt (what p) + g) (rounds 1 n)
                = 2 * prompt (what p) * Z.of_nat n + Z.of_nat n * (Z.of_nat n + 1)).
    { induction n as [|n IH]; [simpl; lia|].
      replace (S n) with (n + 1)%nat by lia. rewrite rounds_app, total_app, Z.mul_add_distr_l, IH.
      cbn [rounds total]. lia. }
    specialize (H (Z.to_nat (output (what p)))). rewrite Z2Nat.id in H by lia.
    set (T := total _ _) in *.
    assert (E : output (what p) * (output (what p) + 1)
                = 2 * (T - prompt (what p) * output (what p))) by nia.
    rewrite E, (Z.mul_comm 2), Z.div_mul by lia. lia.
  - replace (start p + 1) with (1 + start p) by lia. rewrite rounds_shift, total_map.
    apply total_ext. intros g Hg. apply rounds_in in Hg. unfold holds, completion.
    replace (start p <? g + start p) with true by (symmetry; lia).
    replace (g + start p <=? start p + output (what p)) with true by (symmetry; lia).
    cbn [andb]. lia.
Qed.

(** ** Counting the states of a staircase *)

Lemma ascending_spec l : forall least, ascending least l = true ->
  StronglySorted Z.le l /\ Forall (fun x => least <= x) l.
Proof.
  induction l as [|x l IH]; intros least H; simpl in H.
  - split; constructor.
  - apply andb_prop in H as [H1 H2]. apply IH in H2 as [H2 H3]. split.
    + constructor; auto.
    + constructor; [lia|]. eapply Forall_impl; [|exact H3]. simpl. lia.
Qed.

Lemma passed_spec M count : forall below above h r acc,
  StronglySorted Z.le (below ++ above) -> Forall (fun x => x <= h - 1) below ->
  passed M count h r (Z.of_nat (length below)) (total (fun x => x) below) above acc
  = acc + total (fun g => if in_staircase M (below ++ above) (State (h + g) (r - g)) then 1 else 0)
      (rounds 0 count).
Proof.
  induction count as [|count IH]; intros below above h r acc Hs Hb; [simpl; lia|].
  cbn [passed].
  set (raise := fix raise nu sum above :=
        match above with
        | x :: above' => if x <=? h then raise (nu + 1) (sum + x) above' else (nu, sum, above)
        | [] => (nu, sum, [])
        end).
  assert (Hraise : forall above below,
    StronglySorted Z.le (below ++ above) -> Forall (fun x => x <= h) below ->
    exists more rest, above = more ++ rest /\ Forall (fun x => x <= h) (below ++ more) /\
      Forall (fun x => h < x) rest /\
      raise (Z.of_nat (length below)) (total (fun x => x) below) above
      = (Z.of_nat (length (below ++ more)), total (fun x => x) (below ++ more), rest)).
  { clear. induction above as [|x above IH]; intros below Hs Hb.
    - exists [], []. rewrite !app_nil_r. repeat split; auto.
    - simpl. destruct (x <=? h) eqn:E.
      + destruct (IH (below ++ [x])) as (more & rest & -> & H2 & H3 & H4).
        * now rewrite <- app_assoc.
        * apply Forall_app. split; auto. constructor; [lia|constructor].
        * exists (x :: more), rest. rewrite <- app_assoc in *. simpl in *. repeat split; auto.
          rewrite app_length, total_app in H4. cbn [length total] in H4.
          replace (Z.of_nat (length below + 1)) with (Z.of_nat (length below) + 1) in H4 by lia.
          replace (total (fun x => x) below + (x + 0)) with (total (fun x => x) below + x) in H4 by lia.
          exact H4.
      + exists [], (x :: above). rewrite !app_nil_r. repeat split; auto.
        constructor; [lia|].
        assert (G : StronglySorted Z.le (x :: above)).
        { clear - Hs. induction below; simpl in Hs; auto. inversion Hs; auto. }
        inversion G as [|? ? _ G2]; subst. eapply Forall_impl; [|exact G2]. simpl. lia. }
  destruct (Hraise above below Hs) as (more & rest & -> & H2 & H3 & H4).
  { eapply Forall_impl; [|exact Hb]. simpl. lia. }
  rewrite H4. rewrite app_assoc in *.
  set (known := below ++ more) in *.
  assert (Hlevel : level (known ++ rest) h = Z.of_nat (length known) /\
                   level_sum (known ++ rest) h = total (fun x => x) known).
  { unfold level, level_sum. rewrite !total_app.
    assert (Z0 : forall f, total (fun x => if x <=? h then f x else 0) rest = 0).
    { intros f. apply total_zero. intros x Hx. rewrite Forall_forall in H3. specialize (H3 x Hx).
      replace (x <=? h) with false by (symmetry; lia). reflexivity. }
    rewrite (Z0 (fun _ => 1)), (Z0 (fun x => x)).
    assert (Z1 : forall f, total (fun x => if x <=? h then f x else 0) known = total f known).
    { intros f. apply total_ext. intros x Hx. rewrite Forall_forall in H2. specialize (H2 x Hx).
      replace (x <=? h) with true by (symmetry; lia). reflexivity. }
    rewrite (Z1 (fun _ => 1)), (Z1 (fun x => x)), total_const. lia. }
  destruct Hlevel as [L1 L2].
  rewrite IH; auto.
  2: { eapply Forall_impl; [|exact H2]. simpl. lia. }
  cbn [rounds total]. rewrite (rounds_shift 0 count 1), total_map.
  assert (E0 : in_staircase M (known ++ rest) (State (h + 0) (r - 0))
               = (1 <=? Z.of_nat (length known)) &&
                 (M <? h + (Z.of_nat (length known) + 1) * r + total (fun x => x) known)).
  { unfold in_staircase. cbn [held left]. rewrite Z.add_0_r, Z.sub_0_r, L1, L2. reflexivity. }
  rewrite E0.
  assert (E1 : total (fun g => if in_staircase M (known ++ rest) (State (h + 1 + g) (r - 1 - g))
                               then 1 else 0) (rounds 0 count)
             = total (fun x => if in_staircase M (known ++ rest) (State (h + (x + 1)) (r - (x + 1)))
                               then 1 else 0) (rounds 0 count)).
  { apply total_ext. intros g _. replace (h + 1 + g) with (h + (g + 1)) by lia.
    replace (r - 1 - g) with (r - (g + 1)) by lia. reflexivity. }
  rewrite E1. destruct ((1 <=? _) && _); lia.
Qed.

Definition in_staircase_at (M : Z) (thresholds : list Z) (p : placement) (t : Z) : Z :=
  if (start p <? t) && (t <=? completion p) && in_staircase M thresholds (state_at t p)
  then 1 else 0.

Lemma states_are_passed M thresholds p : 0 <= output (what p) ->
  StronglySorted Z.le thresholds ->
  states_in M thresholds (what p)
  = total (in_staircase_at M thresholds p)
      (rounds (start p + 1) (Z.to_nat (output (what p)))).
Proof.
  intros Ho Hs. unfold states_in.
  pose proof (passed_spec M (Z.to_nat (output (what p))) [] thresholds
    (prompt (what p) + 1) (output (what p) - 1) 0 Hs ltac:(constructor)) as H.
  simpl in H. rewrite H. clear H.
  replace (start p + 1) with (0 + (start p + 1)) by lia. rewrite rounds_shift, total_map.
  apply total_ext. intros g Hg. apply rounds_in in Hg. unfold in_staircase_at, state_at, completion.
  replace (start p <? g + (start p + 1)) with true by (symmetry; lia).
  replace (g + (start p + 1) <=? start p + output (what p)) with true by (symmetry; lia).
  cbn [andb].
  replace (prompt (what p) + (g + (start p + 1) - start p)) with (prompt (what p) + 1 + g) by lia.
  replace (start p + output (what p) - (g + (start p + 1))) with (output (what p) - 1 - g) by lia.
  reflexivity.
Qed.

(** ** The claims *)

Lemma placements_ok I s : well_formed I -> feasible I s ->
  Forall (fun p => 0 <= arrival (what p) <= start p /\ 0 <= output (what p)) s /\
  Forall (fun p => 0 <= prompt (what p)) s.
Proof.
  intros [_ Hr] [Hs Ha _ _]. rewrite Forall_forall in Hr, Ha.
  split; apply Forall_forall; intros p Hp; pose proof (Hr (what p)) as H;
    rewrite <- Hs in H; specialize (H (in_map what _ _ Hp)); specialize (Ha p Hp); lia.
Qed.

(** "The j-th completion is not before the j-th completion of this fluid", of memory. *)
Lemma volume_rank I s t :
  well_formed I -> feasible I s -> 0 < Z.of_nat (workers I) * memory I ->
  count_le t (map completion s)
  <= count_le t (fluid_ranks (Z.of_nat (workers I) * memory I) volume (requests I)).
Proof.
  intros HI Hf HR. destruct (placements_ok I s HI Hf) as [Hok Hprompt].
  destruct Hf as [Hs Ha Hw Hfit]. rewrite <- Hs. apply (resource_never_behind s _ holds); auto.
  - intros p x Hp. apply holds_nonneg. rewrite Forall_forall in Hprompt. auto.
  - intros p x Hp N. unfold holds in N. destruct (start p <? x) eqn:E1; simpl in N; [|lia].
    destruct (x <=? completion p) eqn:E2; lia.
  - intros p Hp. apply volume_is_what_is_held. rewrite Forall_forall in Hok. apply Hok in Hp. lia.
  - intros x. now apply all_loads.
Qed.

(** The same of a staircase. *)
Lemma staircase_rank I s thresholds t :
  well_formed I -> feasible I s -> StronglySorted Z.le thresholds ->
  Forall (fun x => 0 <= x) thresholds ->
  0 < Z.of_nat (workers I) * Z.of_nat (length thresholds) ->
  count_le t (map completion s)
  <= count_le t (fluid_ranks (Z.of_nat (workers I) * Z.of_nat (length thresholds))
                   (states_in (memory I) thresholds) (requests I)).
Proof.
  intros HI Hf Hsort Hpos HR. destruct (placements_ok I s HI Hf) as [Hok Hprompt].
  destruct Hf as [Hs Ha Hw Hfit]. rewrite <- Hs.
  apply (resource_never_behind s _ (in_staircase_at (memory I) thresholds)); auto.
  - intros p x _. unfold in_staircase_at. destruct (_ && _); lia.
  - intros p x Hp N. unfold in_staircase_at in N.
    destruct (start p <? x) eqn:E1; destruct (x <=? completion p) eqn:E2; simpl in N; lia.
  - intros p Hp. apply states_are_passed; auto. rewrite Forall_forall in Hok. apply Hok in Hp. lia.
  - intros x.
    assert (G : forall w, total (fun p => if Nat.eqb (worker p) w
                 then in_staircase_at (memory I) thresholds p x else 0) s
               <= Z.of_nat (length thresholds)).
    { intros w. etransitivity; [|apply (staircase_of_a_schedule (memory I) thresholds s w x); auto].
      apply total_le. intros p _. unfold active, in_staircase_at.
      destruct (Nat.eqb (worker p) w); simpl; lia. }
    apply (all_of_workers (fun p => in_staircase_at (memory I) thresholds p x)); auto.
Qed.

Lemma larger_spec l : forall l' m c, larger l l' = Some m ->
  Forall2 Z.le l c -> Forall2 Z.le l' c -> Forall2 Z.le m c.
Proof.
  induction l as [|x l IH]; intros [|x' l'] m c H H1 H2; simpl in H; try discriminate.
  - injection H as <-. auto.
  - destruct (larger l l') as [m'|] eqn:E; [|discriminate]. injection H as <-.
    destruct c as [|y c]; [inversion H1|].
    inversion H1 as [|? ? ? ? A1 A2]; subst. inversion H2 as [|? ? ? ? B1 B2]; subst.
    constructor; [lia|eauto].
Qed.

Lemma larger_length l : forall l' m, larger l l' = Some m -> length l = length l'.
Proof.
  induction l as [|x l IH]; intros [|x' l'] m H; simpl in H; try discriminate; auto.
  destruct (larger l l') as [m'|] eqn:E; [|discriminate]. simpl. f_equal. eauto.
Qed.

Lemma as_many l c : Forall2 Z.le l c -> length l = length c.
Proof. induction 1; simpl; auto. Qed.

(** The claim: no rank of any feasible schedule completes sooner. *)
Theorem volume_ranks_sound (I : instance) (staircases : list (list Z)) (ranks : list Z) (s : schedule) :
  well_formed I -> volume_ranks I staircases = Some ranks -> feasible I s ->
  Forall2 Z.le ranks (ranks_of s).
Proof.
  intros HI H Hf. unfold volume_ranks in H.
  destruct (0 <? Z.of_nat (workers I) * memory I) eqn:ER; [|discriminate].
  set (soonest := NumberSort.sort _) in H.
  assert (Hlen0 : length soonest = length (ranks_of s)).
  { unfold soonest, ranks_of. rewrite !number_sort_length, !map_length.
    destruct Hf as [Hs _ _ _]. now rewrite <- Hs, map_length. }
  assert (Hrank : forall l, StronglySorted Z.le l -> length l = length (ranks_of s) ->
            (forall t, count_le t (map completion s) <= count_le t l) ->
            Forall2 Z.le l (ranks_of s)).
  { intros l Hl Hlen Hc. apply by_rank; auto; [apply number_sort_sorted|].
    intros t. unfold ranks_of. rewrite number_sort_count. auto. }
  assert (Hsoon : Forall2 Z.le soonest (ranks_of s)).
  { apply Hrank; auto; [apply number_sort_sorted|]. intros t. unfold soonest.
    rewrite number_sort_count. unfold count_le. rewrite !total_map.
    destruct Hf as [Hs Ha _ _]. rewrite <- Hs, total_map. apply total_le. intros p Hp.
    rewrite Forall_forall in Ha. specialize (Ha p Hp). unfold completion.
    destruct (start p + output (what p) <=? t) eqn:E1;
      destruct (arrival (what p) + output (what p) <=? t) eqn:E2; lia. }
  destruct (larger soonest _) as [first|] eqn:E; [|discriminate].
  assert (Hfirst : Forall2 Z.le first (ranks_of s)).
  { eapply larger_spec; eauto. apply Hrank.
    - apply number_sort_sorted.
    - rewrite <- (larger_length _ _ _ E). auto.
    - intros t. apply volume_rank; auto. lia. }
  clear E Hsoon Hlen0. clearbody soonest. revert first Hfirst H.
  induction staircases as [|thresholds rest IH]; intros first Hfirst H; simpl in H.
  - now injection H as <-.
  - destruct (ascending 1 thresholds) eqn:Ea; [simpl in H|discriminate].
    destruct (0 <? _) eqn:ER2 in H; [|discriminate].
    destruct (larger first _) as [next|] eqn:E; [|discriminate].
    apply (IH next); auto. apply ascending_spec in Ea as [Ea1 Ea2].
    eapply larger_spec; eauto. apply Hrank.
    + apply number_sort_sorted.
    + rewrite <- (larger_length _ _ _ E). now apply as_many.
    + intros t. apply staircase_rank; auto; [|lia].
      eapply Forall_impl; [|exact Ea2]. simpl. lia.
Qed.

(** What the checker accepts by volume is true. *)
Theorem volume_value_sound (I : instance) (staircases : list (list Z)) (v : Z) :
  well_formed I -> volume_value I staircases = Some v -> lower_bound I v.
Proof.
  intros HI H s Hf. unfold volume_value in H.
  destruct (volume_ranks I staircases) as [ranks|] eqn:E; [|discriminate].
  injection H as <-. pose proof (volume_ranks_sound I staircases ranks s HI E Hf) as HR.
  assert (H1 : fold_left Z.add ranks 0 <= total (fun x => x) (ranks_of s)).
  { assert (G : forall l acc, fold_left Z.add l acc = acc + total (fun x => x) l).
    { clear. induction l as [|x l IH]; intros acc; simpl; [lia|]. rewrite IH. lia. }
    rewrite G. clear - HR. induction HR; simpl; lia. }
  assert (H2 : total (fun x => x) (ranks_of s) = total completion s).
  { unfold ranks_of. rewrite <- (total_perm _ _ _ (NumberSort.Permuted_sort _)), total_map.
    reflexivity. }
  assert (H3 : fold_left (fun sum r => sum + arrival r) (requests I) 0
               = total (fun p => arrival (what p)) s).
  { assert (G : forall l acc, fold_left (fun sum r => sum + arrival r) l acc = acc + total arrival l).
    { clear. induction l as [|x l IH]; intros acc; simpl; [lia|]. rewrite IH. lia. }
    rewrite G. destruct Hf as [Hs _ _ _]. rewrite <- Hs, total_map. reflexivity. }
  unfold total_latency, latency. rewrite total_minus. lia.
Qed.

Print Assumptions volume_ranks_sound.
Print Assumptions volume_value_sound.
