(** * Checking a schedule, or a run with evictions

    docs/certificates.md, "What is checked": its value is exactly what the starts give, and what
    is held keeps to M.  Memory is followed from event to event: between two of them the tokens
    held together are a line that does not fall, so it suffices to look at its ends. *)

From Coq Require Import ZArith List Lia Bool Orders Mergesort Permutation.
From KV Require Import Problem Sums Memory.
Import ListNotations.
Open Scope Z_scope.

(** An event at a time: from then on, what is held at [t] has [rate] * t + [shift] more. *)
Record event := Event { moment : Z; rate : Z; shift : Z }.

Module EventOrder <: TotalLeBool.
  Definition t := event.
  Definition leb (x y : event) := moment x <=? moment y.
  Theorem leb_total : forall x y, leb x y = true \/ leb y x = true.
  Proof. unfold leb. intros. lia. Qed.
End EventOrder.
Module EventSort := Sort EventOrder.

Definition piece_events (before since until : Z) (rest : list event) : list event :=
  Event since 1 (before - since) :: Event until (-1) (since - before) :: rest.

Fixpoint events_of_runs (s : list placement) (w : nat) (rest : list event) : list event :=
  match s with
  | [] => rest
  | p :: s' =>
      let rest' := if Nat.eqb (worker p) w
                   then piece_events (prompt (what p)) (start p) (completion p) rest else rest in
      events_of_runs s' w rest'
  end.

Fixpoint events_of_lost (l : list lost_work) (w : nat) (rest : list event) : list event :=
  match l with
  | [] => rest
  | x :: l' =>
      let rest' := if Nat.eqb (lost_on x) w
                   then piece_events (prompt (what (last_run x))) (since x) (until x) rest
                   else rest in
      events_of_lost l' w rest'
  end.

Fixpoint sweep (M before offset count : Z) (l : list event) : bool :=
  match l with
  | [] => (count =? 0) && (offset <=? M)
  | e :: l' =>
      (before <=? moment e) && (0 <=? count) &&
      ((moment e =? before) || (offset + count * moment e <=? M)) &&
      sweep M (moment e) (offset + shift e) (count + rate e) l'
  end.

Definition fits_on (M : Z) (s : list placement) (lost : list lost_work) (w : nat) : bool :=
  sweep M (-1) 0 0 (EventSort.sort (events_of_lost lost w (events_of_runs s w []))).

(** ** Reading starts and lost work *)

Fixpoint place_all (l : list request) (starts : list Z) (on : list nat) : option (list placement) :=
  match l, starts, on with
  | [], [], [] => Some []
  | r :: l', k :: starts', w :: on' =>
      if arrival r <=? k then
        match place_all l' starts' on' with
        | Some s => Some (Place r k w :: s)
        | None => None
        end
      else None
  | _, _, _ => None
  end.

(** Lost work as it is written: position, start, end, worker. *)
Record row := Row { row_position : Z; row_start : Z; row_end : Z; row_on : nat }.

Module RowOrder <: TotalLeBool.
  Definition t := row.
  Definition leb (x y : row) :=
    (row_position x <? row_position y) ||
    ((row_position x =? row_position y) && (row_start x <=? row_start y)).
  Theorem leb_total : forall x y, leb x y = true \/ leb y x = true.
  Proof. unfold leb. intros. lia. Qed.
End RowOrder.
Module RowSort := Sort RowOrder.

(** The rows in ascending order; [s] are the placements from position [j] on. *)
Fixpoint lost_of (s : list placement) (j free : Z) (rows : list row) : option (list lost_work) :=
  match rows with
  | [] => Some []
  | Row i a b w :: rows' =>
      if i <? j then None
      else
        let s' := (fix skip s n := if n <=? 0 then s else
                     match s with [] => [] | _ :: rest => skip rest (n - 1) end) s (i - j) in
        match s' with
        | [] => None
        | p :: _ =>
            if (arrival (what p) <=? a) && ((j <? i) || (free <=? a)) && (a <? b) &&
               (b <=? start p) && (b - a <? output (what p))
            then match lost_of s' i b rows' with
                 | Some l => Some (Lost i p a b w :: l)
                 | None => None
                 end
            else None
        end
  end.

(** The schedule of a run whose value and memory are right; none otherwise. *)
Definition checked_run (I : instance) (starts : list Z) (on : list nat) (rows : list row)
    (value : Z) : option (schedule * list lost_work) :=
  match place_all (requests I) starts on with
  | None => None
  | Some s =>
      match lost_of s 0 0 (RowSort.sort rows) with
      | None => None
      | Some lost =>
          if forallb (fun p => Nat.ltb (worker p) (workers I)) s &&
             forallb (fun x => Nat.ltb (lost_on x) (workers I)) lost &&
             (fold_left (fun sum p => sum + latency p) s 0 =? value) &&
             forallb (fits_on (memory I) s lost) (seq 0 (workers I))
          then Some (s, lost) else None
      end
  end.

(** ** Why that is right *)

Definition adds (t : Z) (e : event) : Z := if moment e <? t then rate e * t + shift e else 0.

Lemma sweep_sound M l : forall before offset count,
  sweep M before offset count l = true ->
  forall t, before < t -> offset + count * t + total (adds t) l <= M.
Proof.
  induction l as [|e l IH]; intros before offset count H t Ht; cbn [sweep] in H.
  - simpl. apply andb_prop in H as [H1 H2]. assert (count = 0) by lia. subst. lia.
  - apply andb_prop in H as [H H4]. apply andb_prop in H as [H H3].
    apply andb_prop in H as [H1 H2]. cbn [total].
    destruct (Z_lt_le_dec (moment e) t) as [Hlt|Hge].
    + specialize (IH _ _ _ H4 t Hlt). unfold adds at 1.
      replace (moment e <? t) with true by (symmetry; lia). lia.
    + (* no event is before t *)
      assert (Hrest : forall l b o c, sweep M b o c l = true -> t <= b -> total (adds t) l = 0).
      { clear. induction l as [|e l IH]; intros b o c H Hb; cbn [sweep total] in *; [lia|].
        apply andb_prop in H as [H H4]. apply andb_prop in H as [H _].
        apply andb_prop in H as [H1 _]. rewrite (IH _ _ _ H4) by lia.
        unfold adds. replace (moment e <? t) with false by (symmetry; lia). lia. }
      rewrite (Hrest _ _ _ _ H4) by lia. unfold adds.
      replace (moment e <? t) with false by (symmetry; lia).
      apply orb_prop in H3 as [H3|H3]; [lia|]. nia.
Qed.

Lemma piece_adds t before a b rest :
  a <= b ->
  total (adds t) (piece_events before a b rest)
  = (if (a <? t) && (t <=? b) then before + (t - a) else 0) + total (adds t) rest.
Proof.
  intros Hab. unfold piece_events. cbn [total]. unfold adds at 1 2. cbn [moment rate shift].
  destruct (a <? t) eqn:E1; destruct (b <? t) eqn:E2; cbn [andb].
  - replace (t <=? b) with false by (symmetry; lia). lia.
  - replace (t <=? b) with true by (symmetry; lia). lia.
  - lia.
  - lia.
Qed.

Lemma events_of_runs_total t w s : forall rest,
  Forall (fun p => start p <= completion p) s ->
  total (adds t) (events_of_runs s w rest) = load s w t + total (adds t) rest.
Proof.
  induction s as [|p s IH]; intros rest H; cbn [events_of_runs]; [reflexivity|].
  inversion H; subst. rewrite IH by auto. unfold load. cbn [total].
  destruct (Nat.eqb (worker p) w); [|lia]. rewrite piece_adds by auto. unfold holds. lia.
Qed.

Lemma events_of_lost_total t w l : forall rest,
  Forall (fun x => since x <= until x) l ->
  total (adds t) (events_of_lost l w rest)
  = total (fun x => if Nat.eqb (lost_on x) w then lost_holds x t else 0) l + total (adds t) rest.
Proof.
  induction l as [|x l IH]; intros rest H; cbn [events_of_lost]; [reflexivity|].
  inversion H; subst. rewrite IH by auto. cbn [total].
  destruct (Nat.eqb (lost_on x) w); [|lia]. rewrite piece_adds by auto. unfold lost_holds. lia.
Qed.

Lemma place_all_sound l : forall starts on s,
  place_all l starts on = Some s ->
  map what s = l /\ map start s = starts /\ map worker s = on /\
  Forall (fun p => arrival (what p) <= start p) s.
Proof.
  induction l as [|r l IH]; intros [|k starts] [|w on] s H; simpl in H; try discriminate.
  - injection H as <-. simpl. auto.
  - destruct (arrival r <=? k) eqn:E; [|discriminate].
    destruct (place_all l starts on) as [s'|] eqn:E2; [|discriminate].
    injection H as <-. apply IH in E2 as (H1 & H2 & H3 & H4). simpl.
    rewrite H1, H2, H3. repeat split; auto. constructor; auto. simpl. lia.
Qed.

Lemma lost_of_sound whole : forall rows s j free l,
  0 <= j -> s = skipn (Z.to_nat j) whole ->
  lost_of s j free rows = Some l ->
  Forall (lost_before_the_last_run whole) l /\
  Forall (fun x => j < position x \/ position x = j /\ free <= since x) l /\
  ForallOrdPairs lost_apart l.
Proof.
  induction rows as [|[i a b w] rows IH]; intros s j free l Hj Hs H; cbn [lost_of] in H.
  - injection H as <-. repeat split; constructor.
  - destruct (i <? j) eqn:Eij; [discriminate|].
    set (s' := (fix skip s n := if n <=? 0 then s else
                     match s with [] => [] | _ :: rest => skip rest (n - 1) end) s (i - j)) in H.
    assert (Hs' : s' = skipn (Z.to_nat i) whole).
    { assert (G : forall (u : list placement) n, (fix skip s n := if n <=? 0 then s else
                     match s with [] => [] | _ :: rest => skip rest (n - 1) end) u n
                     = skipn (Z.to_nat n) u).
      { induction u as [|x u IHu]; intros n; simpl.
        - destruct (n <=? 0); now rewrite skipn_nil.
        - destruct (n <=? 0) eqn:E; [now replace (Z.to_nat n) with O by lia|].
          rewrite IHu. replace (Z.to_nat n) with (S (Z.to_nat (n - 1))) by lia. reflexivity. }
      unfold s'. rewrite G, Hs. replace (Z.to_nat i) with (Z.to_nat (i - j) + Z.to_nat j)%nat by lia.
      generalize (Z.to_nat (i - j)) (Z.to_nat j). clear. intros n m. revert whole.
      induction m as [|m IHm]; intros whole; simpl; [now rewrite Nat.add_0_r|].
      destruct whole; [now rewrite !skipn_nil|]. rewrite IHm.
      replace (n + S m)%nat with (S (n + m)) by lia. reflexivity. }
    clearbody s'. destruct s' as [|p s2]; [discriminate|].
    destruct ((arrival (what p) <=? a) && ((j <? i) || (free <=? a)) && (a <? b) &&
               (b <=? start p) && (b - a <? output (what p))) eqn:E; [|discriminate].
    destruct (lost_of (p :: s2) i b rows) as [l'|] eqn:E2; [|discriminate].
    injection H as <-.
    destruct (IH (p :: s2) i b l' ltac:(lia) Hs' E2) as (H1 & H2 & H3).
    rewrite !andb_true_iff in E. destruct E as ((((Ea & Ef) & Eb) & Es) & Eo).
    apply orb_prop in Ef.
    assert (Hn : nth_error whole (Z.to_nat i) = Some p).
    { rewrite <- (firstn_skipn (Z.to_nat i) whole), <- Hs'.
      assert (Hlen : (Z.to_nat i <= length whole)%nat).
      { assert (length (p :: s2) = length whole - Z.to_nat i)%nat by (rewrite Hs'; apply skipn_length).
        simpl in *. lia. }
      rewrite nth_error_app2 by (rewrite firstn_length; lia).
      rewrite firstn_length, Nat.min_l by lia. now rewrite Nat.sub_diag. }
    split; [|split].
    + constructor; auto. unfold lost_before_the_last_run. simpl. repeat split; auto; lia.
    + constructor; simpl; [destruct (j <? i) eqn:E3; [left; lia|right; destruct Ef; lia]|].
      eapply Forall_impl; [|exact H2]. simpl. intros x Hx.
      destruct (j <? i) eqn:E3; [left; lia|]. destruct Ef as [Ef|Ef]; [lia|].
      destruct Hx as [Hx|[Hx Hx2]]; [left; lia|right; lia].
    + constructor; auto. eapply Forall_impl; [|exact H2]. unfold lost_apart. simpl. intros x Hx Heq.
      left. lia.
Qed.

(** What the checker accepts as a run is one, and has this total latency. *)
Theorem checked_run_sound (I : instance) starts on rows value s lost :
  well_formed I ->
  checked_run I starts on rows value = Some (s, lost) ->
  feasible_run I s lost /\ map start s = starts /\ map worker s = on /\ total_latency s = value.
Proof.
  intros [HM Hr] H. unfold checked_run in H.
  destruct (place_all (requests I) starts on) as [s'|] eqn:E1; [|discriminate].
  destruct (lost_of s' 0 0 (RowSort.sort rows)) as [lost'|] eqn:E2; [|discriminate].
  match type of H with (if ?c then _ else _) = _ => destruct c eqn:E3 end; [|discriminate].
  injection H as -> ->. rewrite !andb_true_iff in E3. destruct E3 as (((Ew & El) & Ev) & Ef).
  apply place_all_sound in E1 as (H1 & H2 & H3 & H4).
  apply (lost_of_sound s) in E2 as (L1 & _ & L3); [|lia|reflexivity].
  rewrite forallb_forall in Ew, El, Ef.
  assert (Hs : forall p, In p s -> 0 <= start p <= completion p).
  { intros p Hp. rewrite Forall_forall in H4, Hr. specialize (H4 p Hp).
    apply (in_map what) in Hp. rewrite H1 in Hp. apply Hr in Hp. unfold completion. lia. }
  split; [|repeat split; auto].
  - constructor; auto.
    + apply Forall_forall. intros p Hp. apply Nat.ltb_lt. auto.
    + intros w t. destruct (lt_dec w (workers I)) as [Hw|Hw].
      2: { unfold load. rewrite (total_zero _ s), (total_zero _ lost); [lia|..].
           - intros x Hx. apply El in Hx. apply Nat.ltb_lt in Hx.
             destruct (Nat.eqb_spec (lost_on x) w); [lia|auto].
           - intros p Hp. apply Ew in Hp. apply Nat.ltb_lt in Hp.
             destruct (Nat.eqb_spec (worker p) w); [lia|auto]. }
      assert (Hfit : fits_on (memory I) s lost w = true) by (apply Ef, in_seq; lia).
      unfold fits_on in Hfit.
      assert (Hl : forall x, In x lost -> 0 <= since x <= until x).
      { intros x Hx. rewrite Forall_forall in L1, Hr. apply L1 in Hx as (Hin & Ha & _).
        apply nth_error_In in Hin. apply (in_map what) in Hin. rewrite H1 in Hin.
        apply Hr in Hin. lia. }
      destruct (Z_lt_le_dec (-1) t) as [Ht|Ht].
      * pose proof (sweep_sound _ _ _ _ _ Hfit t Ht) as G.
        rewrite <- (total_perm _ _ _ (EventSort.Permuted_sort _)) in G.
        rewrite events_of_lost_total, events_of_runs_total in G; [simpl in G; lia|..].
        -- apply Forall_forall. intros p Hp. apply Hs in Hp. lia.
        -- apply Forall_forall. intros x Hx. apply Hl in Hx. lia.
      * unfold load. rewrite (total_zero _ s), (total_zero _ lost); [lia|..].
        -- intros x Hx. apply Hl in Hx. destruct (Nat.eqb (lost_on x) w); [|auto].
           unfold lost_holds. replace (since x <? t) with false by (symmetry; lia). reflexivity.
        -- intros p Hp. apply Hs in Hp. destruct (Nat.eqb (worker p) w); [|auto].
           unfold holds. replace (start p <? t) with false by (symmetry; lia). reflexivity.
  - assert (G : forall l acc, fold_left (fun sum p => sum + latency p) l acc = acc + total_latency l).
    { unfold total_latency. clear. induction l as [|p l IH]; intros acc; simpl; [lia|].
      rewrite IH. lia. }
    rewrite G in Ev. lia.
Qed.

Print Assumptions checked_run_sound.
