(** * Volume, by rank and with arrivals

    docs/theory/bounds.md, "Volume", "With arrivals" and "Volumes of staircases". *)

From Coq Require Import ZArith List Lia Bool Sorted Permutation Orders Mergesort.
From KV Require Import Problem Sums Memory Services Prices Pauses Fluid States Staircases.
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

(** The completions, ascending. *)
Definition ranks_of {A} (k : service A) (s : list A) : list Z := NumberSort.sort (map (done k) s).

(** A resource of which requests use something between arrival and completion, at most [R] in a
    round. *)
Section Resource.
Context {A : Type}.
Variables (k : service A) (s : list A) (R : Z) (use : A -> Z -> Z) (size : request -> Z).
Hypothesis R_positive : 0 < R.
Hypothesis requests_ok : forall x, In x s -> 0 <= arrival (asks k x) <= done k x.
Hypothesis use_nonneg : forall x t, In x s -> 0 <= use x t.
Hypothesis use_between : forall x t, In x s -> use x t <> 0 -> arrival (asks k x) < t <= done k x.
Hypothesis use_all : forall x, In x s ->
  size (asks k x) = total (use x) (rounds (arrival (asks k x) + 1)
                                     (Z.to_nat (done k x - arrival (asks k x)))).
Hypothesis use_at_most : forall t, total (fun x => use x t) s <= R.

Definition needs (x : A) (t : Z) : Z := total (use x) (rounds (t + 1) (Z.to_nat (done k x - t))).

Lemma needs_split x t t' : In x s -> t <= t' ->
  needs x t = total (use x) (rounds (t + 1) (Z.to_nat (t' - t))) + needs x t'.
Proof.
  intros Hx Ht. unfold needs. destruct (Z_le_gt_dec t' (done k x)).
  - replace (Z.to_nat (done k x - t)) with (Z.to_nat (t' - t) + Z.to_nat (done k x - t'))%nat
      by lia.
    rewrite rounds_app, total_app.
    replace (t + 1 + Z.of_nat (Z.to_nat (t' - t))) with (t' + 1) by lia. reflexivity.
  - replace (Z.to_nat (done k x - t')) with O by lia. cbn [rounds total]. rewrite Z.add_0_r.
    symmetry. apply total_widen; [lia|lia|]. intros u Hu Hout.
    destruct (Z.eq_dec (use x u) 0) as [|N]; auto. exfalso. apply Hout.
    pose proof (use_between x u Hx N). lia.
Qed.

Lemma resource_never_behind t :
  count_le t (map (done k) s) <= count_le t (fluid_ranks R size (map (asks k) s)).
Proof.
  unfold fluid_ranks. rewrite number_sort_count, map_map.
  set (pair_of := fun x => (arrival (asks k x), size (asks k x))). set (pairs := map pair_of s).
  destruct (Permutation_map_inv pair_of s (l1 := TimeSort.sort pairs)) as (sorted & E & HP).
  { symmetry. apply TimeSort.Permuted_sort. }
  rewrite E.
  apply (never_behind R (fun x => arrival (asks k x)) (fun x => size (asks k x)) (done k) needs s);
    auto.
  - intros x t' Hx. apply total_nonneg. auto.
  - intros x Hx. unfold needs. rewrite <- use_all by auto. split; [|lia].
    rewrite use_all by auto. apply total_nonneg. auto.
  - intros x t' Hx Hd. unfold needs. replace (Z.to_nat (done k x - t')) with O by lia. reflexivity.
  - intros x Hx. now apply requests_ok.
  - intros S t1 t2 [rest HS] Ht.
    assert (Hin : forall x, In x S -> In x s).
    { intros x Hx. eapply Permutation_in; [exact HS|]. apply in_or_app. auto. }
    rewrite <- total_minus.
    transitivity (total (fun u => total (fun x => use x u) S) (rounds (t1 + 1) (Z.to_nat (t2 - t1)))).
    + rewrite <- total_swap. apply Z.eq_le_incl, total_ext. intros x Hx.
      rewrite (needs_split x t1 t2) by auto. lia.
    + transitivity (total (fun _ => R) (rounds (t1 + 1) (Z.to_nat (t2 - t1)))).
      * apply total_le. intros u _. transitivity (total (fun x => use x u) s); [|apply use_at_most].
        rewrite <- (total_perm _ _ _ HS), total_app.
        enough (0 <= total (fun x => use x u) rest) by lia.
        apply total_nonneg. intros x Hx. apply use_nonneg.
        eapply Permutation_in; [exact HS|]. apply in_or_app. auto.
      * rewrite total_const, rounds_length. nia.
  - intros x Hx. now apply requests_ok.
  - now symmetry.
  - assert (G : StronglySorted (fun x y => is_true (ByTime.leb x y)) (TimeSort.sort pairs)).
    { apply TimeSort.StronglySorted_sort. intros [a b] [c d] [e f].
      unfold is_true, ByTime.leb. simpl. lia. }
    rewrite E in G. clear - G. induction sorted as [|x l IH]; simpl in *; constructor.
    + apply IH. now inversion G.
    + inversion G as [|? ? _ H]; subst. clear - H. induction l as [|y l IH]; simpl in *; constructor.
      * inversion H; subst. unfold is_true, ByTime.leb in *. simpl in *. lia.
      * apply IH. now inversion H.
Qed.

End Resource.

(** What runs use is used while they are active. *)
Lemma runs_never_behind s R use size t :
  0 < R ->
  Forall (fun p => 0 <= arrival (what p) <= start p /\ 0 <= output (what p)) s ->
  (forall p t, In p s -> 0 <= use p t) ->
  (forall p t, In p s -> use p t <> 0 -> start p < t <= completion p) ->
  (forall p, In p s ->
    size (what p) = total (use p) (rounds (start p + 1) (Z.to_nat (output (what p))))) ->
  (forall t, total (fun p => use p t) s <= R) ->
  count_le t (map completion s) <= count_le t (fluid_ranks R size (map what s)).
Proof.
  intros HR Hok Hn Ha Hall Hm. rewrite Forall_forall in Hok. unfold completion in *.
  apply (resource_never_behind runs s R use size); cbn [runs asks done]; unfold completion; auto.
  - intros p Hp. specialize (Hok p Hp). lia.
  - intros p u Hp N. specialize (Hok p Hp). specialize (Ha p u Hp N). lia.
  - intros p Hp. rewrite Hall by auto. specialize (Hok p Hp). symmetry.
    apply total_widen; [lia|lia|]. intros u Hu Hout.
    destruct (Z.eq_dec (use p u) 0) as [|N]; auto. exfalso. apply Hout.
    pose proof (Ha p u Hp N). lia.
Qed.

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

(** ** What a paused run holds *)

(** Whatever the pauses, a request holds its volume. *)
Lemma volume_of_a_paused_run p m : 1 <= output (request_of p) ->
  allowed (request_of p) (times_of p) ->
  Forall (fun x => (snd x < m)%nat) (active_times p) ->
  let a := arrival (request_of p) in
  volume (request_of p)
  = total (fun t => total (fun w => paused_holds p w t) (seq 0 m))
      (rounds (a + 1) (Z.to_nat (last (times_of p) 0 - a))).
Proof.
  intros Ho [Hlen Hi] Hw a. set (r := request_of p) in *.
  set (n := Z.to_nat (last (times_of p) 0 - a)).
  set (price := fun t => if (a + 1 <=? t) && (t <? a + 1 + Z.of_nat n) then 1 else 0).
  transitivity (paid price r 1 (times_of p)).
  - assert (G : forall l j, (forall t, In t l -> price t = 1) ->
              paid price r j l = total (fun g => prompt r + g) (rounds j (length l))).
    { clear. induction l as [|t l IH]; intros j Hl; cbn [paid length rounds total]; [auto|].
      rewrite (Hl t) by now left. rewrite IH by (intros; apply Hl; now right). lia. }
    rewrite G.
    + rewrite Hlen. unfold volume. clear - Ho.
      assert (E : forall n : nat, 2 * total (fun g => prompt r + g) (rounds 1 n)
                        = 2 * prompt r * Z.of_nat n + Z.of_nat n * (Z.of_nat n + 1)).
      { induction n as [|n IH]; [cbn; lia|]. replace (S n) with (n + 1)%nat at 1 by lia.
        rewrite rounds_app, total_app. cbn [rounds total]. lia. }
      specialize (E (Z.to_nat (output r))). rewrite Z2Nat.id in E by lia.
      apply (Z.mul_cancel_l _ _ 2); [lia|]. rewrite E, Z.mul_add_distr_l.
      replace (output r * (output r + 1)) with (2 * (output r * (output r + 1) / 2)) at 2; [lia|].
      symmetry. apply Z_div_exact_full_2; [lia|].
      rewrite Zmod_even, Z.even_mul, Z.even_add. destruct (Z.even (output r)); reflexivity.
    + intros t Ht. pose proof (increasing_in _ _ _ Hi Ht).
      pose proof (increasing_last _ _ _ Hi Ht). unfold price, n. subst a.
      destruct (Z.leb_spec (arrival r + 1) t); [|lia].
      destruct (Z.ltb_spec t (arrival r + 1 + Z.of_nat (Z.to_nat (last (times_of p) 0 - arrival r))));
        [reflexivity|lia].
  - unfold times_of at 1. rewrite (paid_by_time price (a + 1) n r m); auto.
    + apply total_ext. intros t Ht. apply rounds_in in Ht. unfold price.
      destruct (Z.leb_spec (a + 1) t); [|lia].
      destruct (Z.ltb_spec t (a + 1 + Z.of_nat n)); [|lia].
      cbn [andb]. unfold paused_holds. fold r. lia.
    + intros t Ht. unfold price.
      destruct (Z.leb_spec (a + 1) t), (Z.ltb_spec t (a + 1 + Z.of_nat n)); cbn [andb]; lia.
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
  destruct Hf as [Hs Ha Hw Hfit]. rewrite <- Hs. apply (runs_never_behind s _ holds); auto.
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
  apply (runs_never_behind s _ (in_staircase_at (memory I) thresholds)); auto.
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

(** What is so of completions one by one, and of how many there are at any time, is so by rank. *)
Lemma later_by_rank {A} (k : service A) (s : list A) (l : list Z) :
  StronglySorted Z.le l -> length l = length s ->
  (forall t, count_le t (map (done k) s) <= count_le t l) ->
  Forall2 Z.le l (ranks_of k s).
Proof.
  intros Hl Hlen Hc. unfold ranks_of. apply by_rank; auto.
  - apply number_sort_sorted.
  - now rewrite number_sort_length, map_length.
  - intros t. rewrite number_sort_count. auto.
Qed.

(** "No request completes before a + o", and no rank before that of the fluid of memory. *)
Lemma ranks_of_memory {A} (k : service A) (I : instance) (s : list A) (ranks : list Z) :
  served k I s ->
  (forall x, In x s -> arrival (asks k x) + output (asks k x) <= done k x) ->
  (forall t, count_le t (map (done k) s)
     <= count_le t (fluid_ranks (Z.of_nat (workers I) * memory I) volume (requests I))) ->
  larger (NumberSort.sort (map (fun r => arrival r + output r) (requests I)))
    (fluid_ranks (Z.of_nat (workers I) * memory I) volume (requests I)) = Some ranks ->
  Forall2 Z.le ranks (ranks_of k s).
Proof.
  intros [Hs _ _] Hsoon Hfluid E.
  set (soonest := NumberSort.sort _) in E.
  assert (Hlen : length soonest = length s).
  { unfold soonest. rewrite number_sort_length, map_length, <- Hs. apply map_length. }
  eapply larger_spec; [exact E|..]; apply later_by_rank; auto; try apply number_sort_sorted.
  - intros t. unfold soonest.
    rewrite number_sort_count. unfold count_le. rewrite !total_map, <- Hs, total_map.
    apply total_le. intros x Hx. specialize (Hsoon x Hx).
    destruct (done k x <=? t) eqn:E1;
      destruct (arrival (asks k x) + output (asks k x) <=? t) eqn:E2; lia.
  - now rewrite <- (larger_length _ _ _ E).
Qed.

(** The claim: no rank of any feasible schedule completes sooner. *)
Theorem volume_ranks_sound (I : instance) (staircases : list (list Z)) (ranks : list Z) (s : schedule) :
  well_formed I -> volume_ranks I staircases = Some ranks -> feasible I s ->
  Forall2 Z.le ranks (ranks_of runs s).
Proof.
  intros HI H Hf. unfold volume_ranks in H.
  destruct (0 <? Z.of_nat (workers I) * memory I) eqn:ER; [|discriminate].
  destruct (larger _ _) as [first|] eqn:E in H; [|discriminate].
  assert (Hfirst : Forall2 Z.le first (ranks_of runs s)).
  { apply (ranks_of_memory runs I s); [now apply feasible_served|..|exact E].
    - intros p Hp. destruct Hf as [_ Ha _ _]. rewrite Forall_forall in Ha. specialize (Ha p Hp).
      cbn [runs asks done]. unfold completion. lia.
    - intros t. apply volume_rank; auto. now apply Z.ltb_lt. }
  clear E. revert first Hfirst H.
  induction staircases as [|thresholds rest IH]; intros first Hfirst H; simpl in H.
  - now injection H as <-.
  - destruct (ascending 1 thresholds) eqn:Ea; [simpl in H|discriminate].
    destruct (0 <? _) eqn:ER2 in H; [|discriminate].
    destruct (larger first _) as [next|] eqn:E; [|discriminate].
    apply (IH next); auto. apply ascending_spec in Ea as [Ea1 Ea2].
    eapply larger_spec; eauto. apply later_by_rank.
    + apply number_sort_sorted.
    + rewrite <- (larger_length _ _ _ E), (as_many _ _ Hfirst). unfold ranks_of.
      now rewrite number_sort_length, map_length.
    + intros t. apply staircase_rank; auto; [|lia].
      eapply Forall_impl; [|exact Ea2]. simpl. lia.
Qed.

(** The same with pauses, where staircases do not count. *)
Theorem volume_covers_pauses (I : instance) (ranks : list Z) (s : list paused) :
  well_formed I -> volume_ranks I [] = Some ranks -> feasible_with_pauses I s ->
  Forall2 Z.le ranks (ranks_of with_pauses s).
Proof.
  intros HI H Hf. unfold volume_ranks in H.
  destruct (0 <? Z.of_nat (workers I) * memory I) eqn:ER; [|discriminate].
  destruct (larger _ _) as [first|] eqn:E in H; [|discriminate].
  cbn [with_staircases] in H. injection H as <-.
  assert (Hok : forall p, In p s -> (0 <= arrival (request_of p) /\ 0 <= prompt (request_of p) /\
            1 <= output (request_of p)) /\ allowed (request_of p) (times_of p) /\
            Forall (fun x => (snd x < workers I)%nat) (active_times p)).
  { destruct Hf as [Hs Ha Hw _], HI as [_ Hr]. rewrite Forall_forall in Hr, Ha, Hw.
    intros p Hp. repeat split; auto; try apply Ha; auto;
      apply (in_map request_of) in Hp; rewrite Hs in Hp; apply Hr in Hp; lia. }
  assert (Hsoon : forall p, In p s ->
            arrival (request_of p) + output (request_of p) <= last (times_of p) 0).
  { intros p Hp. destruct (Hok p Hp) as ((_ & _ & Ho) & [Hlen Hi] & _).
    pose proof (room_after _ _ Hi ltac:(intros C; rewrite C in Hlen; cbn [length] in Hlen; lia)). lia. }
  assert (HF : served with_pauses I s) by now apply feasible_with_pauses_served.
  apply (ranks_of_memory with_pauses I s); [exact HF|exact Hsoon| |exact E].
  intros t. destruct HF as [Hs _ Hm]. rewrite <- Hs.
  apply (resource_never_behind with_pauses s _
           (fun p t => total (fun w => paused_holds p w t) (seq 0 (workers I)))); cbn [with_pauses asks done].
  - lia.
  - intros p Hp. specialize (Hsoon p Hp). destruct (Hok p Hp) as (? & _). lia.
  - intros p u Hp. apply total_nonneg. intros w _. apply uses_nonneg_pauses. cbn.
    destruct (Hok p Hp). lia.
  - intros p u Hp N. destruct (Hok p Hp) as (_ & [_ Hi] & _).
    destruct (in_dec Z.eq_dec u (times_of p)) as [Hin|Hout].
    + split; [eapply increasing_in; eauto|now apply (increasing_last _ _ _ Hi)].
    + exfalso. apply N. apply total_zero. intros w _. now apply held_elsewhere.
  - intros p Hp. destruct (Hok p Hp) as ((_ & _ & Ho) & Ha & Hw). now apply volume_of_a_paused_run.
  - intros u. rewrite total_swap. transitivity (total (fun _ : nat => memory I) (seq 0 (workers I))).
    + apply total_le. intros w _. apply Hm.
    + rewrite total_const, seq_length. lia.
Qed.

(** What the checker accepts by volume is true. *)
Lemma sum_of_ranks {A} (k : service A) (I : instance) (s : list A) (ranks : list Z) :
  served k I s -> Forall2 Z.le ranks (ranks_of k s) ->
  fold_left Z.add ranks 0 - fold_left (fun sum r => sum + arrival r) (requests I) 0
  <= latencies k s.
Proof.
  intros [Hs _ _] HR.
  assert (H1 : fold_left Z.add ranks 0 <= total (fun x => x) (ranks_of k s)).
  { assert (G : forall l acc, fold_left Z.add l acc = acc + total (fun x => x) l).
    { clear. induction l as [|x l IH]; intros acc; simpl; [lia|]. rewrite IH. lia. }
    rewrite G. clear - HR. induction HR; simpl; lia. }
  assert (H2 : total (fun x => x) (ranks_of k s) = total (done k) s).
  { unfold ranks_of. rewrite <- (total_perm _ _ _ (NumberSort.Permuted_sort _)), total_map.
    reflexivity. }
  assert (H3 : fold_left (fun sum r => sum + arrival r) (requests I) 0
               = total (fun x => arrival (asks k x)) s).
  { assert (G : forall l acc, fold_left (fun sum r => sum + arrival r) l acc = acc + total arrival l).
    { clear. induction l as [|x l IH]; intros acc; simpl; [lia|]. rewrite IH. lia. }
    rewrite G, <- Hs, total_map. reflexivity. }
  unfold latencies. rewrite total_minus. lia.
Qed.

Theorem volume_value_sound (I : instance) (staircases : list (list Z)) (v : Z) :
  well_formed I -> volume_value I staircases = Some v -> bounds runs I v.
Proof.
  intros HI H s Hs. unfold volume_value in H.
  destruct (volume_ranks I staircases) as [ranks|] eqn:E; [|discriminate].
  injection H as <-. apply sum_of_ranks; auto.
  eapply volume_ranks_sound; eauto. now apply feasible_served.
Qed.

Theorem volume_value_covers_pauses (I : instance) (v : Z) :
  well_formed I -> volume_value I [] = Some v -> bounds with_pauses I v.
Proof.
  intros HI H s Hs. unfold volume_value in H.
  destruct (volume_ranks I []) as [ranks|] eqn:E; [|discriminate].
  injection H as <-. apply sum_of_ranks; auto.
  eapply volume_covers_pauses; eauto. now apply feasible_with_pauses_served.
Qed.

Print Assumptions volume_ranks_sound.
Print Assumptions volume_covers_pauses.
Print Assumptions volume_value_sound.
Print Assumptions volume_value_covers_pauses.
