(** * The fluid that serves the smallest remaining need first is never behind

    docs/theory/bounds.md, "With arrivals". *)

From Coq Require Import ZArith List Lia Bool Sorted Permutation.
From KV Require Import Problem Sums.
Import ListNotations.
Open Scope Z_scope.

(** How many numbers of a list are at most [t]. *)
Definition count_le (t : Z) (l : list Z) : Z := total (fun x => if x <=? t then 1 else 0) l.

(** [x] divided by [R], rounded up. *)
Definition up (x R : Z) : Z := - ((- x) / R).

(** Pour [room] units from time [c] on, [R] a round, into needs in their order, of which [poured]
    are poured already.  The completions go in front of [out]; what is left comes back. *)
Fixpoint pour (R c room poured : Z) (needs out : list Z) : list Z * list Z :=
  match needs with
  | [] => (out, [])
  | x :: rest =>
      if poured + x <=? room
      then pour R c room (poured + x) rest (c + up (poured + x) R :: out)
      else (out, (poured + x - room) :: rest)
  end.

Fixpoint drain (R c poured : Z) (needs out : list Z) : list Z :=
  match needs with
  | [] => out
  | x :: rest => drain R c (poured + x) rest (c + up (poured + x) R :: out)
  end.

Fixpoint insert (v : Z) (l : list Z) : list Z :=
  match l with
  | [] => [v]
  | x :: rest => if v <=? x then v :: l else x :: insert v rest
  end.

(** The completions of the fluid, rounded up, in no order.  [arrivals] are pairs of a time and a
    need, by time; [waiting] are the needs of what has arrived, ascending. *)
Fixpoint fluid (R c : Z) (waiting : list Z) (arrivals : list (Z * Z)) (out : list Z) : list Z :=
  match arrivals with
  | [] => drain R c 0 waiting out
  | (a, v) :: rest =>
      let (out', left) := pour R c ((a - c) * R) 0 waiting out in
      fluid R a (insert v left) rest out'
  end.

(** ** Part of a list *)

Inductive part {A} : list A -> list A -> Prop :=
| part_nil : part [] []
| part_take x l l' : part l l' -> part (x :: l) (x :: l')
| part_drop x l l' : part l l' -> part l (x :: l').

Lemma part_length {A} (l l' : list A) : part l l' -> (length l <= length l')%nat.
Proof. induction 1; simpl; lia. Qed.

Lemma part_filter {A} (c : A -> bool) (l : list A) : part (filter c l) l.
Proof. induction l as [|x l IH]; simpl; [constructor|]. destruct (c x); now constructor. Qed.

(** ** The [j] smallest needs *)

Definition prefix (j : nat) (l : list Z) : Z := total (fun x => x) (firstn j l).

Definition needs_ok (l : list Z) : Prop := Forall (fun x => 0 <= x) l /\ StronglySorted Z.le l.

Lemma needs_ok_tail x l : needs_ok (x :: l) -> needs_ok l.
Proof. intros [H1 H2]. inversion H1; inversion H2; subst. split; auto. Qed.

Lemma prefix_cons j x l : prefix (S j) (x :: l) = x + prefix j l.
Proof. reflexivity. Qed.

Lemma prefix_nonneg j l : needs_ok l -> 0 <= prefix j l.
Proof.
  intros [H _]. unfold prefix. apply total_nonneg. intros x Hx.
  rewrite Forall_forall in H. apply H. rewrite <- (firstn_skipn j l). apply in_or_app. auto.
Qed.

Lemma prefix_step j x l : StronglySorted Z.le (x :: l) -> (j < length (x :: l))%nat ->
  prefix j (x :: l) + x <= prefix (S j) (x :: l).
Proof.
  revert x l. induction j as [|j IH]; intros x l H Hj.
  - unfold prefix. simpl. lia.
  - destruct l as [|y l]; [simpl in Hj; lia|].
    inversion H as [|? ? H1 H2]; subst. inversion H2; subst. rewrite !prefix_cons in *.
    specialize (IH y l H1 ltac:(simpl in *; lia)). rewrite prefix_cons in IH. lia.
Qed.

Lemma insert_ok v l : 0 <= v -> needs_ok l -> needs_ok (insert v l).
Proof.
  intros Hv H. induction l as [|x l IH]; simpl.
  - split; repeat constructor; auto.
  - destruct (v <=? x) eqn:E.
    + destruct H as [H1 H2]. inversion H2; subst. split; [constructor; auto|].
      constructor; auto. constructor; [lia|]. eapply Forall_impl; [|eassumption]. simpl. lia.
    + pose proof (IH (needs_ok_tail _ _ H)) as [I1 I2]. destruct H as [H1 H2].
      inversion H1; inversion H2; subst. split; [constructor; auto|]. constructor; auto.
      assert (G : forall l, Forall (Z.le x) l -> Forall (Z.le x) (insert v l)).
      { clear - E. induction l as [|y l IH]; simpl; intros H.
        - constructor; [lia|auto].
        - inversion H; subst. destruct (v <=? y).
          + constructor; [lia|exact H].
          + constructor; auto. }
      auto.
Qed.

Lemma insert_length v l : length (insert v l) = S (length l).
Proof. induction l as [|x l IH]; simpl; auto. destruct (v <=? x); simpl; auto. Qed.

Lemma insert_one_more v l j : needs_ok l -> prefix (S j) (insert v l) <= prefix j l + v.
Proof.
  intros [_ H]. revert j. induction l as [|x l IH]; intros j; simpl.
  - unfold prefix. destruct j; simpl; lia.
  - destruct (v <=? x) eqn:E; [rewrite prefix_cons; lia|].
    rewrite prefix_cons. destruct j as [|j].
    + unfold prefix. simpl. destruct l; simpl; lia.
    + rewrite prefix_cons. inversion H; subst. specialize (IH H2 j). lia.
Qed.

Lemma insert_others v l j : needs_ok l -> (j <= length l)%nat ->
  prefix j (insert v l) <= prefix j l.
Proof.
  intros [_ H]. revert j. induction l as [|x l IH]; intros j Hj; simpl.
  - simpl in Hj. replace j with O by lia. unfold prefix. simpl. lia.
  - destruct j as [|j]; [unfold prefix; simpl; lia|].
    destruct (v <=? x) eqn:E.
    + pose proof (prefix_step j x l H ltac:(simpl in *; lia)). rewrite prefix_cons. lia.
    + rewrite !prefix_cons. inversion H; subst. specialize (IH H2 j ltac:(simpl in Hj; lia)). lia.
Qed.

(** ** Pouring *)

Lemma up_le x R y : 0 < R -> up x R <= y <-> x <= y * R.
Proof.
  intros HR. unfold up. pose proof (Z.div_mod (- x) R ltac:(lia)).
  pose proof (Z.mod_pos_bound (- x) R HR). split; intros; nia.
Qed.

Section Pour.
Variables (R c : Z).
Hypothesis R_positive : 0 < R.

Lemma count_le_cons t x l : count_le t (x :: l) = (if x <=? t then 1 else 0) + count_le t l.
Proof. reflexivity. Qed.

Lemma count_le_nonneg t l : 0 <= count_le t l.
Proof. apply total_nonneg. intros x _. destruct (x <=? t); lia. Qed.

Lemma pour_mono t room needs : forall poured out,
  count_le t out <= count_le t (fst (pour R c room poured needs out)).
Proof.
  induction needs as [|x l IH]; intros poured out; cbn [pour]; [simpl; lia|].
  destruct (poured + x <=? room); [|simpl; lia].
  specialize (IH (poured + x) (c + up (poured + x) R :: out)). rewrite count_le_cons in IH.
  destruct (c + up (poured + x) R <=? t); lia.
Qed.

Lemma drain_mono t needs : forall poured out,
  count_le t out <= count_le t (drain R c poured needs out).
Proof.
  induction needs as [|x l IH]; intros poured out; cbn [drain]; [lia|].
  specialize (IH (poured + x) (c + up (poured + x) R :: out)). rewrite count_le_cons in IH.
  destruct (c + up (poured + x) R <=? t); lia.
Qed.

Lemma pour_spec room needs : forall poured out out' left,
  needs_ok needs -> poured <= room ->
  pour R c room poured needs out = (out', left) ->
  needs_ok left /\
  (exists n, (length needs = n + length left)%nat /\
    (forall j, prefix (j - n) left = Z.max 0 (poured + prefix j needs - room)
               \/ prefix (j - n) left = 0 /\ (j <= n)%nat) /\
    (forall t, room <= (t - c) * R -> count_le t out' = count_le t out + Z.of_nat n)) /\
  (forall t j, (j <= length needs)%nat -> poured + prefix j needs <= (t - c) * R ->
     (t - c) * R <= room ->
     count_le t out + Z.of_nat j <= count_le t out').
Proof.
  induction needs as [|x l IH]; intros poured out out' left Hok Hp H; cbn [pour] in H.
  - injection H as <- <-. split; [auto|]. split.
    + exists O. split; [auto|]. split; [|intros; lia]. intros j. left.
      unfold prefix. rewrite firstn_nil, firstn_nil. simpl. lia.
    + intros t j Hj _ _. simpl in Hj. lia.
  - assert (Hx : 0 <= x) by (destruct Hok as [H1 _]; inversion H1; auto).
    destruct (poured + x <=? room) eqn:E.
    + pose proof H as Hout. apply IH in H; [|eapply needs_ok_tail; eauto|lia].
      destruct H as (H1 & (n & H2 & H3 & H4) & H5).
      split; [auto|]. split.
      * exists (S n). split; [simpl; lia|]. split.
        -- intros [|j].
           ++ right. split; [|lia]. reflexivity.
           ++ rewrite prefix_cons. simpl. destruct (H3 j) as [H|[H Hj]]; [left; lia|right; lia].
        -- intros t Ht. rewrite H4 by auto. rewrite count_le_cons.
           replace (c + up (poured + x) R <=? t) with true; [lia|].
           symmetry. apply Z.leb_le. enough (up (poured + x) R <= t - c) by lia.
           apply up_le; lia.
      * intros t [|j] Hj Hle Hroom.
        -- specialize (H5 t O ltac:(lia)). rewrite count_le_cons in H5.
           pose proof (pour_mono t room l (poured + x) (c + up (poured + x) R :: out)) as H6.
           rewrite Hout, count_le_cons in H6. simpl in H6.
           destruct (c + up (poured + x) R <=? t); lia.
        -- rewrite prefix_cons in Hle. specialize (H5 t j ltac:(simpl in Hj; lia) ltac:(lia) Hroom).
           rewrite count_le_cons in H5.
           replace (c + up (poured + x) R <=? t) with true in H5; [lia|].
           symmetry. apply Z.leb_le. enough (up (poured + x) R <= t - c) by lia.
           apply up_le; [auto|]. pose proof (prefix_nonneg j l (needs_ok_tail _ _ Hok)). lia.
    + injection H as <- <-. split; [|split].
      * destruct Hok as [H1 H2]. inversion H1; inversion H2; subst. split.
        -- constructor; [lia|auto].
        -- constructor; auto. eapply Forall_impl; [|eassumption]. simpl. lia.
      * exists O. split; [simpl; lia|]. split; [|intros; lia].
        intros [|j]; [right; split; [reflexivity|lia]|left]. rewrite Nat.sub_0_r, !prefix_cons.
        pose proof (prefix_nonneg j l (needs_ok_tail _ _ Hok)). lia.
      * intros t [|j] Hj Hle Hroom; [lia|]. rewrite prefix_cons in Hle.
        pose proof (prefix_nonneg j l (needs_ok_tail _ _ Hok)). lia.
Qed.

Lemma drain_spec t needs : forall poured out j,
  needs_ok needs -> (j <= length needs)%nat -> poured + prefix j needs <= (t - c) * R ->
  count_le t out + Z.of_nat j <= count_le t (drain R c poured needs out).
Proof.
  induction needs as [|x l IH]; intros poured out j Hok Hj Hle; cbn [drain].
  - simpl in Hj. lia.
  - destruct j as [|j].
    + pose proof (drain_mono t l (poured + x) (c + up (poured + x) R :: out)) as G.
      rewrite count_le_cons in G. destruct (c + up (poured + x) R <=? t); lia.
    + rewrite prefix_cons in Hle.
      specialize (IH (poured + x) (c + up (poured + x) R :: out) j (needs_ok_tail _ _ Hok)
                    ltac:(simpl in Hj; lia) ltac:(lia)).
      rewrite count_le_cons in IH.
      replace (c + up (poured + x) R <=? t) with true in IH; [lia|].
      symmetry. apply Z.leb_le. enough (up (poured + x) R <= t - c) by lia.
      apply up_le; [auto|]. pose proof (prefix_nonneg j l (needs_ok_tail _ _ Hok)). lia.
Qed.

End Pour.

Lemma fluid_mono R t new : forall c waiting out,
  count_le t out <= count_le t (fluid R c waiting new out).
Proof.
  induction new as [|[a v] new IH]; intros c waiting out; cbn [fluid].
  - apply drain_mono.
  - pose proof (pour_mono R c t ((a - c) * R) waiting 0 out) as H.
    destruct (pour R c ((a - c) * R) 0 waiting out) as [out' left]. simpl in H.
    specialize (IH a (insert v left) out'). lia.
Qed.

(** ** The claim *)

Lemma part_rest {A} (l l' : list A) : part l l' -> exists rest, Permutation (l ++ rest) l'.
Proof.
  induction 1 as [|x l l' H [rest IH]|x l l' H [rest IH]].
  - exists []. constructor.
  - exists rest. now constructor.
  - exists (x :: rest). rewrite <- IH. symmetry. apply Permutation_middle.
Qed.

Section Claim.
Context {A : Type}.
Variables (R : Z) (arr size done : A -> Z) (need : A -> Z -> Z) (all : list A).

(** Some other way to serve: [need x t] is what [x] needs from time [t] on.  Whatever some of all
    are, at most [R] units of their needs are served in a round. *)
Definition some_of_all (S : list A) : Prop := exists rest, Permutation (S ++ rest) all.

Hypothesis R_positive : 0 < R.
Hypothesis need_nonneg : forall x t, In x all -> 0 <= need x t.
Hypothesis need_at_first : forall x, In x all -> 0 <= size x <= need x (arr x).
Hypothesis need_when_done : forall x t, In x all -> done x <= t -> need x t = 0.
Hypothesis done_after_arrival : forall x, In x all -> arr x <= done x.
Hypothesis served : forall S t t', some_of_all S -> t <= t' ->
  total (fun x => need x t) S - total (fun x => need x t') S <= R * (t' - t).

Lemma some_in S x : some_of_all S -> In x S -> In x all.
Proof.
  intros [rest H] Hx. eapply Permutation_in; [exact H|]. apply in_or_app. auto.
Qed.

(** How many are completed by [t]. *)
Definition completed (t : Z) (l : list A) : Z := count_le t (map done l).

Lemma completed_filter t l :
  completed t l = Z.of_nat (length (filter (fun x => done x <=? t) l)).
Proof.
  unfold completed, count_le. rewrite total_map.
  induction l as [|x l IH]; cbn [total filter]; [reflexivity|].
  destruct (done x <=? t); cbn [length]; lia.
Qed.

Lemma needs_nonneg t S : some_of_all S -> 0 <= total (fun x => need x t) S.
Proof. intros H. apply total_nonneg. intros x Hx. apply need_nonneg. eapply some_in; eauto. Qed.

(** The arrived are [old]; of them [z] are completed in our fluid, with [waiting] left. *)
Lemma behind_at_no_time new : forall old c waiting out z,
  Permutation (old ++ new) all ->
  needs_ok waiting ->
  (z + length waiting = length old)%nat ->
  (forall S, part S old -> prefix (length S - z) waiting <= total (fun x => need x c) S) ->
  StronglySorted Z.le (c :: map arr new) ->
  forall t, c <= t ->
  completed t (old ++ new) + count_le t out
  <= Z.of_nat z + count_le t (fluid R c waiting (map (fun x => (arr x, size x)) new) out).
Proof.
  induction new as [|x new IH]; intros old c waiting out z Hall Hok Hz Hinv Hsort t Ht;
    cbn [map fluid].
  - rewrite app_nil_r in *. set (S := filter (fun x => done x <=? t) old).
    assert (HS : part S old) by apply part_filter.
    assert (Hsome : some_of_all S).
    { destruct (part_rest _ _ HS) as [rest Hr]. exists rest. now rewrite Hr. }
    specialize (Hinv S HS). pose proof (served S c t Hsome Ht) as Hserved.
    assert (H0 : total (fun x => need x t) S = 0).
    { apply total_zero. intros x Hx. apply need_when_done; [eapply some_in; eauto|].
      apply filter_In in Hx. lia. }
    pose proof (part_length _ _ HS).
    pose proof (drain_spec R c R_positive t waiting 0 out (length S - z) Hok ltac:(lia) ltac:(lia)).
    rewrite completed_filter. fold S. lia.
  - set (a := arr x). inversion Hsort as [|? ? Hs1 Hs2]; subst.
    assert (Hca : c <= a) by (inversion Hs2; auto).
    destruct (pour R c ((a - c) * R) 0 waiting out) as [out' left] eqn:Ep.
    pose proof (pour_spec R c R_positive ((a - c) * R) waiting 0 out out' left Hok ltac:(nia) Ep)
      as (Hleft & (n & Hn & Hpre & Hcount) & Hearly).
    assert (Hin : In x all).
    { eapply Permutation_in; [exact Hall|]. apply in_or_app. right. now left. }
    assert (Hsome : forall S, part S old -> some_of_all S).
    { intros S HS. destruct (part_rest _ _ HS) as [rest Hr]. exists (rest ++ x :: new).
      now rewrite app_assoc, Hr. }
    assert (Hneeds : forall S, part S old ->
              prefix (length S - z - n) left <= total (fun x => need x a) S).
    { intros S HS. specialize (Hinv S HS). pose proof (served S c a (Hsome S HS) Hca).
      pose proof (needs_nonneg a S (Hsome S HS)).
      destruct (Hpre (length S - z)%nat) as [E|[E _]]; rewrite E; lia. }
    destruct (Z_le_gt_dec a t) as [Hat|Hat].
    + assert (Hmove : Permutation ((x :: old) ++ new) (old ++ x :: new))
        by (apply Permutation_middle).
      specialize (IH (x :: old) a (insert (size x) left) out' (z + n)%nat).
      pose proof (Hcount t ltac:(nia)) as Hc.
      assert (E : completed t ((x :: old) ++ new) = completed t (old ++ x :: new)).
      { unfold completed, count_le. rewrite !total_map. apply total_perm. exact Hmove. }
      rewrite <- E.
      enough (completed t ((x :: old) ++ new) + count_le t out' <= Z.of_nat (z + n) +
        count_le t (fluid R a (insert (size x) left)
                      (map (fun y => (arr y, size y)) new) out')) by lia.
      apply IH; auto.
      * now rewrite Hmove.
      * apply insert_ok; [apply need_at_first|]; auto.
      * rewrite insert_length. simpl. lia.
      * intros S HS. inversion HS as [|? S' ? HS'|? ? ? HS']; subst.
        -- specialize (Hneeds S' HS'). pose proof (needs_nonneg a S' (Hsome S' HS')).
           pose proof (need_at_first x Hin). cbn [total length]. fold a in H0.
           destruct (le_lt_dec (z + n) (length S')).
           ++ replace (S (length S') - (z + n))%nat with (S (length S' - z - n)) by lia.
              pose proof (insert_one_more (size x) left (length S' - z - n) Hleft). lia.
           ++ replace (S (length S') - (z + n))%nat with O by lia. unfold prefix. simpl. lia.
        -- specialize (Hneeds S HS').
           replace (length S - (z + n))%nat with (length S - z - n)%nat by lia.
           pose proof (part_length _ _ HS').
           pose proof (insert_others (size x) left (length S - z - n) Hleft ltac:(lia)). lia.
    + set (S := filter (fun x => done x <=? t) old).
      assert (HS : part S old) by apply part_filter.
      specialize (Hinv S HS). pose proof (served S c t (Hsome S HS) Ht).
      assert (H0 : total (fun x => need x t) S = 0).
      { apply total_zero. intros y Hy. apply need_when_done; [eapply some_in; eauto|].
        apply filter_In in Hy. lia. }
      assert (E : completed t (old ++ x :: new) = completed t old).
      { rewrite !completed_filter, filter_app, app_length.
        enough (filter (fun x => done x <=? t) (x :: new) = []) as -> by (simpl; lia).
        assert (G : forall y, In y (x :: new) -> (done y <=? t) = false).
        { intros y Hy. assert (In y all).
          { eapply Permutation_in; [exact Hall|]. apply in_or_app. auto. }
          pose proof (done_after_arrival y H1). apply Z.leb_gt.
          destruct Hy as [<-|Hy]; [unfold a in Hat; lia|].
          inversion Hs1 as [|? ? _ Hs3]; subst. rewrite Forall_forall in Hs3.
          specialize (Hs3 (arr y) (in_map arr _ _ Hy)). unfold a in Hat. lia. }
        revert G. generalize (x :: new). clear. induction l as [|y l IH]; simpl; intros G; auto.
        rewrite (G y) by auto. auto. }
      rewrite E, completed_filter. fold S. pose proof (part_length _ _ HS).
      specialize (Hearly t (length S - z)%nat ltac:(lia) ltac:(lia) ltac:(nia)).
      pose proof (fluid_mono R t (map (fun y => (arr y, size y)) new) a
                    (insert (size x) left) out').
      lia.
Qed.

(** "At every moment this fluid has completed at least as many requests as any other." *)
Theorem never_behind :
  (forall x, In x all -> 0 <= arr x) ->
  forall sorted, Permutation sorted all -> StronglySorted Z.le (map arr sorted) ->
  forall t, completed t all
            <= count_le t (fluid R 0 [] (map (fun x => (arr x, size x)) sorted) []).
Proof.
  intros Harr sorted Hp Hs t.
  assert (E : completed t all = completed t sorted).
  { unfold completed, count_le. rewrite !total_map. apply total_perm. now symmetry. }
  rewrite E. destruct (Z_le_gt_dec 0 t) as [Ht|Ht].
  - pose proof (behind_at_no_time sorted [] 0 [] [] O) as H. simpl in H.
    specialize (H Hp). unfold count_le at 1 in H. simpl in H.
    enough (completed t sorted + 0 <= count_le t
      (fluid R 0 [] (map (fun x => (arr x, size x)) sorted) [])) by lia.
    apply H; auto.
    + split; constructor.
    + intros S HS. inversion HS; subst. simpl. unfold prefix. simpl. lia.
    + constructor; auto. apply Forall_forall. intros y Hy. apply in_map_iff in Hy.
      destruct Hy as (x & <- & Hx). apply Harr. eapply Permutation_in; eauto.
  - enough (completed t sorted = 0) by (pose proof (count_le_nonneg t
      (fluid R 0 [] (map (fun x => (arr x, size x)) sorted) [])); lia).
    unfold completed, count_le. rewrite total_map. apply total_zero. intros x Hx.
    assert (Hin : In x all) by (eapply Permutation_in; eauto).
    pose proof (done_after_arrival x Hin). specialize (Harr x Hin).
    replace (done x <=? t) with false by (symmetry; lia). reflexivity.
Qed.

End Claim.

Print Assumptions never_behind.
