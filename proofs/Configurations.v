(** * The bound by prices of states

    docs/theory/configurations.md, "Any prices of states prove a bound" (Theorem 3.1) and
    "Removing starts" (Claims 3.8 and 3.9), as docs/certificates.md, "Prices of configurations", has them
    computed: prices at a few times, interpolated in between and rounded down. *)

From Coq Require Import ZArith List Lia Bool Permutation Orders Mergesort.
From KV Require Import Problem Sums Memory Services Prices PriceCheck States Heaviest.
Import ListNotations.
Open Scope Z_scope.

(** ** Prices *)

(** Prices at a time, with the times before and after it at which there are others. *)
Record knot := Knot { before : Z; here : Z; after : Z; prices_of : list Z }.

Fixpoint link (previous : Z) (times : list Z) (rows : list (list Z)) : list knot :=
  match times, rows with
  | t :: times', r :: rows' =>
      Knot previous t (match times' with next :: _ => next | [] => t + 1 end) r
      :: link t times' rows'
  | _, _ => []
  end.

(** A number that is known at the knots, at any time: interpolated, and rounded down. *)
Fixpoint line (f : knot -> Z) (knots : list knot) (t : Z) : Z :=
  match knots with
  | [] => 0
  | x :: rest =>
      if t <? here x then 0
      else if t =? here x then f x
      else match rest with
           | [] => 0
           | y :: _ =>
               if t <? here y
               then ((here y - t) * f x + (t - here x) * f y) / (here y - here x)
               else line f rest t
           end
  end.

Definition entry (l : list Z) (r : Z) : Z :=
  if r <? 0 then 0 else match skip l r with [] => 0 | x :: _ => x end.

Fixpoint take (l : list Z) (n : Z) : list Z :=
  match l with [] => [] | x :: rest => if n <=? 0 then [] else x :: take rest (n - 1) end.

(** The prices of one peak in a row: of r = 0, 1, ... *)
Fixpoint column (peaks : list (Z * Z)) (prices : list Z) (peak : Z) : list Z :=
  match peaks with
  | [] => []
  | (p, n) :: rest => if p =? peak then take prices n else column rest (skip prices n) peak
  end.

Definition narrow (peaks : list (Z * Z)) (peak : Z) (x : knot) : knot :=
  Knot (before x) (here x) (after x) (column peaks (prices_of x) peak).

(** What a state costs at time [t]. *)
Definition state_price (peaks : list (Z * Z)) (knots : list knot) (t : Z) (j : state) : Z :=
  line (fun x => entry (column peaks (prices_of x) (held j + left j)) (left j)) knots t.

(** D times the latency of a request that starts at [k], and the prices of the states it passes. *)
Definition state_payment (price : Z -> state -> Z) (r : request) (k : Z) : Z :=
  total (fun g => price (k + g) (State (prompt r + g) (output r - g)))
    (rounds 1 (Z.to_nat (output r))).

Definition state_cost (D : Z) (price : Z -> state -> Z) (r : request) (k : Z) : Z :=
  D * (k + output r - arrival r) + state_payment price r k.

(** ** What is computed *)

(** A request and the starts that are allowed; from [last] on the first stands for all. *)
Definition choice := (request * list Z)%type.

Definition stands_for (last : Z) (r : request) (k : Z) : Z := Z.min k (Z.max (arrival r) last).

Definition all_starts (last : Z) (r : request) : choice :=
  (r, rounds (arrival r) (Z.to_nat (Z.max (arrival r) last - arrival r + 1))).

(** How many requests an allowed start brings into the state [j] at time [t]. *)
Definition may_be (j : state) (t : Z) (c : choice) : bool :=
  (prompt (fst c) + output (fst c) =? held j + left j) && (prompt (fst c) <? held j) &&
  existsb (Z.eqb (t - (held j - prompt (fst c)))) (snd c).

Fixpoint how_many (j : state) (t : Z) (choices : list choice) (n : Z) : Z :=
  match choices with
  | [] => n
  | c :: rest => how_many j t rest (if may_be j t c then n + 1 else n)
  end.

(** The most of it at the times at which prices of the knot have weight. *)
Definition copies_near (j : state) (x : knot) (choices : list choice) : Z :=
  let own := filter (fun c => (prompt (fst c) + output (fst c) =? held j + left j) &&
                              (prompt (fst c) <? held j)) choices in
  match own with
  | [] => 0
  | _ => fold_left (fun m t => Z.max m (how_many j t own 0))
           (rounds (before x + 1) (Z.to_nat (after x - before x - 1))) 0
  end.

Definition states_of (peaks : list (Z * Z)) : list state :=
  flat_map (fun p => filter (fun j => 1 <=? held j)
    (map (fun r => State (fst p - r) r) (rounds 0 (Z.to_nat (snd p))))) peaks.

Module MostRounds <: TotalLeBool.
  Definition t := state.
  Definition leb (x y : state) := left y <=? left x.
  Theorem leb_total : forall x y, leb x y = true \/ leb y x = true.
  Proof. unfold leb. intros. lia. Qed.
End MostRounds.
Module StateSort := Sort MostRounds.

Definition item_of (peaks : list (Z * Z)) (choices : list choice) (x : knot) (j : state) : item :=
  let w := entry (column peaks (prices_of x) (held j + left j)) (left j) in
  Item j w (if 0 <? w then copies_near j x choices else 0).

(** The most that a configuration can cost at a knot. *)
Definition most_at (M : Z) (peaks : list (Z * Z)) (states : list state) (choices : list choice)
    (x : knot) : Z :=
  heaviest M (filter (fun i => (0 <? weight i) && (0 <? copies i))
                (map (item_of peaks choices x) states)).

Record stage := Stage {
  scale : Z;
  peaks : list (Z * Z);
  moments : list Z;
  numerators : list (list Z)
}.

Fixpoint are_chained (knots : list knot) : bool :=
  match knots with
  | [] => true
  | x :: rest =>
      (before x <? here x) && (here x <? after x) &&
      match rest with
      | [] => true
      | y :: _ => (after x =? here y) && (before y =? here x)
      end && are_chained rest
  end.

Fixpoint fall (most : Z) (states : list state) : bool :=
  match states with [] => true | j :: rest => (left j <=? most) && fall (left j) rest end.

Fixpoint all_differ (states : list state) : bool :=
  match states with
  | [] => true
  | j :: rest => forallb (fun i => negb (same i j)) rest && all_differ rest
  end.

Definition last_moment (s : stage) : Z := List.last (moments s) 0.

Definition only_number (x : knot) : Z := entry (prices_of x) 0.

(** All costs, and the value L; none where the stage is not as it should be. *)
Definition evaluate (I : instance) (s : stage) (choices : list choice) (earliest : Z)
  : option (list (request * list (Z * Z)) * list Z * Z) :=
  match moments s with
  | [] => None
  | first :: _ =>
      let knots := link (Z.min earliest (first - 1)) (moments s) (numerators s) in
      let states := StateSort.sort (states_of (peaks s)) in
      if (1 <=? scale s) && forallb (forallb (fun x => 0 <=? x)) (numerators s) &&
         (Z.of_nat (length (numerators s)) =? Z.of_nat (length (moments s))) &&
         are_chained knots && forallb (fun x => (first <=? here x) && (here x <=? last_moment s)) knots &&
         fall (match states with j :: _ => left j | [] => 0 end) states && all_differ states
      then
        let costs := map (fun c =>
          let own := map (narrow (peaks s) (prompt (fst c) + output (fst c))) knots in
          let price t j := line (fun x => entry (prices_of x) (left j)) own t in
          (fst c, map (fun k => (k, state_cost (scale s) price (fst c) k)) (snd c))) choices in
        let least := map (fun c =>
          match snd c with
          | [] => 0
          | (_, x) :: rest => fold_left (fun m kc => Z.min m (snd kc)) rest x
          end) costs in
        let most := map (fun x =>
          Knot (before x) (here x) (after x)
            [most_at (memory I) (peaks s) states choices x]) knots in
        let times := rounds first (Z.to_nat (last_moment s - first + 1)) in
        Some (costs, least,
              total (fun x => x) least
              - Z.of_nat (workers I) * total (line only_number most) times)
      else None
  end.

(** The starts that are left: those whose reduced cost is within the budget. *)
Fixpoint leave (costs : list (request * list (Z * Z))) (least : list Z) (budget : Z)
  : list choice :=
  match costs, least with
  | c :: costs', m :: least' =>
      (fst c, map fst (filter (fun kc => snd kc - m <=? budget) (snd c)))
      :: leave costs' least' budget
  | _, _ => []
  end.

Definition rounded_up (x D : Z) : Z := - ((- x) / D).

(** [finish] says what the last stage proves, with a target. *)
Fixpoint stages_value
    (finish : stage -> list choice -> list (request * list (Z * Z)) -> list Z -> Z -> Z -> option Z)
    (I : instance) (last earliest : Z) (target : option Z) (stages : list stage)
    (choices : list choice) : option Z :=
  match stages with
  | [] => None
  | s :: rest =>
      if last_moment s =? last then
        match evaluate I s choices earliest with
        | None => None
        | Some (costs, least, L) =>
            match target with
            | None => match rest with [] => Some (rounded_up L (scale s)) | _ => None end
            | Some V =>
                let budget := (V - 1) * scale s - L in
                if budget <? 0 then Some V
                else match rest with
                     | [] => finish s choices costs least L V
                     | _ => stages_value finish I last earliest target rest
                              (leave costs least budget)
                     end
            end
        end
      else None
  end.

Definition without_search (s : stage) (_ : list choice) (_ : list (request * list (Z * Z)))
    (_ : list Z) (L V : Z) : option Z := Some (Z.min V (rounded_up L (scale s))).

(** The first arrival. *)
Definition first_arrival (l : list request) : Z :=
  match l with
  | [] => 0
  | r :: rest => fold_left (fun m r => Z.min m (arrival r)) rest (arrival r)
  end.

(** ** Interpolation *)

Fixpoint chained (knots : list knot) : Prop :=
  match knots with
  | [] => True
  | x :: rest =>
      before x < here x < after x /\
      match rest with
      | [] => True
      | y :: _ => after x = here y /\ before y = here x
      end /\ chained rest
  end.

Lemma are_chained_sound knots : are_chained knots = true -> chained knots.
Proof.
  induction knots as [|x l IH]; simpl; [auto|]. intros H.
  apply andb_prop in H as [H H4]. apply andb_prop in H as [H H3]. apply andb_prop in H as [H1 H2].
  split; [lia|]. split; [|auto]. destruct l as [|y l]; [auto|]. lia.
Qed.

Lemma total_div {A} (u : A -> Z) (n : Z) (C : list A) : 0 < n ->
  total (fun j => u j / n) C <= total u C / n.
Proof.
  intros Hn. induction C as [|j C IH]; cbn [total]; [now rewrite Z.div_0_l by lia|].
  transitivity (u j / n + total u C / n); [lia|].
  apply Z.div_le_lower_bound; [lia|].
  pose proof (Z.mul_div_le (u j) n Hn). pose proof (Z.mul_div_le (total u C) n Hn). lia.
Qed.

(** Claim 3.6, as it is used: what is at most R at the knots near a time is so at that time. *)
Theorem line_of_a_sum {A} (f : A -> knot -> Z) (g : knot -> Z) (C : list A) (t : Z) : forall knots,
  chained knots ->
  (forall x, In x knots -> before x < t < after x -> total (fun j => f j x) C <= g x) ->
  total (fun j => line (f j) knots t) C <= line g knots t.
Proof.
  induction knots as [|x l IH]; intros Hc H; cbn [line].
  - rewrite total_zero; [lia|auto].
  - cbn [chained] in Hc. destruct Hc as (Hx & Hnext & Hl).
    destruct (t <? here x) eqn:E1; [rewrite total_zero; [lia|auto]|].
    destruct (t =? here x) eqn:E2; [apply H; [now left|lia]|].
    destruct l as [|y l]; [rewrite total_zero; [lia|auto]|].
    destruct Hnext as [N1 N2].
    destruct (t <? here y) eqn:E3.
    + etransitivity; [apply total_div; lia|]. apply Z.div_le_mono; [lia|].
      rewrite total_plus, !total_scale.
      assert (Hy : before y < here y < after y) by (cbn [chained] in Hl; apply Hl).
      pose proof (H x (or_introl eq_refl) ltac:(lia)).
      pose proof (H y (or_intror (or_introl eq_refl)) ltac:(lia)). nia.
    + apply IH; auto. intros z Hz. apply H. now right.
Qed.

Lemma line_map f h knots t :
  (forall x, before (h x) = before x /\ here (h x) = here x /\ after (h x) = after x) ->
  line f (map h knots) t = line (fun x => f (h x)) knots t.
Proof.
  intros Hh. induction knots as [|x l IH]; cbn [map line]; [reflexivity|].
  destruct (Hh x) as (_ & -> & _). destruct (t <? here x); auto. destruct (t =? here x); auto.
  destruct l as [|y l]; cbn [map]; auto. destruct (Hh y) as (_ & -> & _).
  destruct (t <? here y); auto.
Qed.

Lemma line_outside f knots t first last :
  (forall x, In x knots -> first <= here x <= last) -> ~ (first <= t <= last) ->
  line f knots t = 0.
Proof.
  intros H Ht. induction knots as [|x l IH]; cbn [line]; auto.
  pose proof (H x (or_introl eq_refl)). destruct (t <? here x) eqn:E1; auto.
  destruct (t =? here x) eqn:E2; [lia|].
  destruct l as [|y l]; auto. pose proof (H y (or_intror (or_introl eq_refl))).
  destruct (t <? here y) eqn:E3; [lia|]. apply IH. intros z Hz. apply H. now right.
Qed.

(** ** One time *)

Lemma skip_nonneg l n : Forall (fun x => 0 <= x) l -> Forall (fun x : Z => 0 <= x) (skip l n).
Proof.
  intros H. rewrite skip_skipn. apply Forall_forall. intros x Hx. rewrite Forall_forall in H. apply H.
  rewrite <- (firstn_skipn (Z.to_nat n) l). apply in_or_app. auto.
Qed.

Lemma take_nonneg l : forall n, Forall (fun x => 0 <= x) l -> Forall (fun x : Z => 0 <= x) (take l n).
Proof.
  induction l as [|x l IH]; intros n H; simpl; [constructor|].
  destruct (n <=? 0); constructor; inversion H; auto.
Qed.

Lemma column_nonneg ps : forall l peak, Forall (fun x => 0 <= x) l ->
  Forall (fun x => 0 <= x) (column ps l peak).
Proof.
  induction ps as [|[p n] ps IH]; intros l peak H; simpl; [constructor|].
  destruct (p =? peak); [now apply take_nonneg|]. apply IH. now apply skip_nonneg.
Qed.

Lemma entry_nonneg l r : Forall (fun x => 0 <= x) l -> 0 <= entry l r.
Proof.
  intros H. unfold entry. destruct (r <? 0); [lia|]. pose proof (skip_nonneg l r H) as Hs.
  destruct (skip l r); [lia|]. now inversion Hs.
Qed.

Lemma take_length l : forall n r, entry (take l n) r <> 0 -> 0 <= r < n.
Proof.
  induction l as [|x l IH]; intros n r; unfold entry; cbn [take].
  - destruct (r <? 0); [lia|]. simpl. destruct (r <=? 0); simpl; lia.
  - destruct (r <? 0) eqn:E; [lia|]. destruct (n <=? 0) eqn:E2; simpl.
    + destruct (r <=? 0); simpl; lia.
    + destruct (r <=? 0) eqn:E3; [lia|]. intros Hx. specialize (IH (n - 1) (r - 1)).
      unfold entry in IH. replace (r - 1 <? 0) with false in IH by (symmetry; lia).
      specialize (IH Hx). lia.
Qed.

Lemma priced_state ps : forall l j, 1 <= held j ->
  entry (column ps l (held j + left j)) (left j) <> 0 -> In j (states_of ps).
Proof.
  induction ps as [|[p n] ps IH]; intros l j Hh Hx; simpl in Hx.
  - unfold entry in Hx. destruct (left j <? 0); simpl in Hx; [lia|].
    destruct (left j <=? 0); simpl in Hx; lia.
  - unfold states_of. simpl. apply in_or_app. destruct (p =? held j + left j) eqn:E.
    + left. apply take_length in Hx. apply filter_In. split; [|lia].
      apply in_map_iff. exists (left j). split.
      * destruct j as [h r]. simpl in *. f_equal. lia.
      * apply rounds_in. lia.
    + right. eapply IH; eauto.
Qed.

Lemma how_many_total j t choices : forall n,
  how_many j t choices n = n + total (fun c => if may_be j t c then 1 else 0) choices.
Proof.
  induction choices as [|c l IH]; intros n; simpl; [lia|]. rewrite IH. destruct (may_be j t c); lia.
Qed.

Lemma how_many_own j t choices :
  total (fun c => if may_be j t c then 1 else 0) choices
  = total (fun c => if may_be j t c then 1 else 0)
      (filter (fun c => (prompt (fst c) + output (fst c) =? held j + left j) &&
                        (prompt (fst c) <? held j)) choices).
Proof.
  rewrite total_filter. apply total_ext. intros c _. unfold may_be.
  destruct ((prompt (fst c) + output (fst c) =? held j + left j) && (prompt (fst c) <? held j));
    reflexivity.
Qed.

Lemma copies_near_enough j x choices t : before x < t < after x ->
  total (fun c => if may_be j t c then 1 else 0) choices <= copies_near j x choices.
Proof.
  intros Ht. rewrite how_many_own. unfold copies_near.
  set (own := filter (fun c => (prompt (fst c) + output (fst c) =? held j + left j) &&
                        (prompt (fst c) <? held j)) choices).
  destruct own as [|c l] eqn:E; [simpl; lia|]. rewrite <- E. clear E.
  assert (G : forall times m, m <= fold_left (fun m t => Z.max m (how_many j t own 0)) times m /\
            (In t times -> how_many j t own 0
                           <= fold_left (fun m t => Z.max m (how_many j t own 0)) times m)).
  { induction times as [|u times IH]; intros m; simpl; [split; [lia|intros []]|].
    destruct (IH (Z.max m (how_many j u own 0))) as [H1 H2]. split; [lia|].
    intros [->|Hin]; [lia|auto]. }
  destruct (G (rounds (before x + 1) (Z.to_nat (after x - before x - 1))) 0) as [_ H].
  rewrite how_many_total in H. apply H. apply rounds_in. lia.
Qed.

Definition allowed (last : Z) (choices : list choice) (s : schedule) : Prop :=
  Forall2 (fun c p => fst c = what p /\
                      In (stands_for last (what p) (start p)) (snd c)) choices s.

(** The members of a configuration are different requests, each with an allowed start. *)
Lemma members_are_requests last choices s w t j :
  allowed last choices s -> Forall (fun p => 0 <= output (what p)) s -> t <= last ->
  number_of j (shown s w t) <= total (fun c => if may_be j t c then 1 else 0) choices.
Proof.
  intros Ha Ho Ht. unfold number_of, shown. rewrite total_map, total_filter.
  revert Ho. induction Ha as [|c p choices s [H1 H2] Ha IH]; intros Ho; cbn [total]; [lia|].
  inversion Ho as [|? ? Hp Ho']; subst. specialize (IH Ho').
  enough ((if active w t p then if same (state_at t p) j then 1 else 0 else 0)
          <= if may_be j t c then 1 else 0) by lia.
  destruct (active w t p) eqn:Ea; [|destruct (may_be j t c); lia].
  destruct (same (state_at t p) j) eqn:Es; [|destruct (may_be j t c); lia].
  enough (may_be j t c = true) as -> by lia.
  unfold active in Ea. unfold same, state_at, completion in Es. simpl in Es.
  assert (start p < t) by (destruct (start p <? t) eqn:E; [lia|destruct (Nat.eqb (worker p) w); discriminate]).
  unfold may_be. rewrite H1.
  apply andb_prop in Es as [E1 E2].
  assert (Eh : held j = prompt (what p) + (t - start p)) by lia.
  assert (Er : left j = start p + output (what p) - t) by lia.
  rewrite Eh, Er.
  apply andb_true_intro. split; [apply andb_true_intro; split; lia|].
  apply existsb_exists. exists (stands_for last (what p) (start p)). split; auto.
  unfold stands_for. lia.
Qed.

Lemma all_differ_sound l : all_differ l = true -> NoDup l.
Proof.
  induction l as [|j l IH]; simpl; intros H; constructor.
  - apply andb_prop in H as [H _]. rewrite forallb_forall in H. intros Hj. specialize (H j Hj).
    unfold same in H. lia.
  - apply IH. now apply andb_prop in H.
Qed.

Lemma fall_sound (keep : item -> bool) (mk : state -> item) l : forall most,
  (forall j, of (mk j) = j) -> fall most l = true ->
  by_rounds most (filter keep (map mk l)).
Proof.
  induction l as [|j l IH]; intros most Hm H; simpl; [auto|]. simpl in H.
  apply andb_prop in H as [H1 H2].
  assert (G : forall m m' l, m <= m' -> by_rounds m l -> by_rounds m' l).
  { clear. intros m m' l Hm H. destruct l; simpl in *; auto. split; [lia|tauto]. }
  destruct (keep (mk j)); simpl.
  - rewrite Hm. split; [lia|auto].
  - apply (G (left j)); [lia|auto].
Qed.

Lemma differ_sound (keep : item -> bool) (mk : state -> item) l :
  (forall j, of (mk j) = j) -> NoDup l ->
  forall i k x y, nth_error (filter keep (map mk l)) i = Some x ->
    nth_error (filter keep (map mk l)) k = Some y -> same (of x) (of y) = true -> i = k.
Proof.
  intros Hm Hd i k x y Hi Hk Hs.
  assert (Hn : NoDup (map of (filter keep (map mk l)))).
  { clear - Hm Hd. induction l as [|j l IH]; simpl; [constructor|]. inversion Hd; subst.
    destruct (keep (mk j)); simpl; auto. constructor; auto. rewrite Hm. intros Hin.
    apply in_map_iff in Hin. destruct Hin as (z & E & Hz). apply filter_In in Hz as [Hz _].
    apply in_map_iff in Hz. destruct Hz as (u & <- & Hu). rewrite Hm in E. subst. auto. }
  rewrite NoDup_nth_error in Hn. apply Hn.
  - rewrite map_length. apply nth_error_Some. congruence.
  - rewrite (map_nth_error of i _ Hi), (map_nth_error of k _ Hk). f_equal.
    unfold same in Hs. destruct (of x), (of y). simpl in *. f_equal; lia.
Qed.

(** What all that a worker shows costs at a knot is at most what the dynamic program finds. *)
Lemma most_at_enough (M last most : Z) ps states choices s w t x :
  1 <= M -> Forall (fun y => 0 <= y) (prices_of x) ->
  states = StateSort.sort (states_of ps) -> fall most states = true -> all_differ states = true ->
  allowed last choices s -> Forall (fun p => 0 <= prompt (what p) /\ 0 <= output (what p)) s ->
  (forall t', load s w t' <= M) -> t <= last -> before x < t < after x ->
  total (fun j => entry (column ps (prices_of x) (held j + left j)) (left j)) (shown s w t)
  <= most_at M ps states choices x.
Proof.
  intros HM Hrow Hstates Hfall Hdiff Ha Hs Hf Hlast Ht. unfold most_at.
  set (items := filter _ _).
  assert (Hmk : forall j, of (item_of ps choices x j) = j) by reflexivity.
  assert (HC : Forall (fun j => 1 <= held j /\ 0 <= left j) (shown s w t)).
  { apply Forall_forall. intros j Hj. apply in_map_iff in Hj. destruct Hj as (p & <- & Hp).
    apply filter_In in Hp. destruct Hp as [Hin Hact]. rewrite Forall_forall in Hs.
    specialize (Hs p Hin). unfold active in Hact. simpl.
    destruct (start p <? t) eqn:E1; destruct (t <=? completion p) eqn:E2;
      destruct (Nat.eqb (worker p) w); simpl in Hact; try discriminate; lia. }
  assert (Hcount : forall j, number_of j (shown s w t) <= copies_near j x choices).
  { intros j. etransitivity; [|apply copies_near_enough; eauto].
    eapply members_are_requests; eauto. eapply Forall_impl; [|exact Hs]. simpl. tauto. }
  assert (Hnn : forall j, 0 <= entry (column ps (prices_of x) (held j + left j)) (left j)).
  { intros j. apply entry_nonneg, column_nonneg, Hrow. }
  rewrite Forall_forall in HC.
  transitivity (total (weight_of items) (shown s w t)).
  - apply total_le. intros j Hj. unfold weight_of.
    specialize (Hnn j).
    destruct (Z.eq_dec (entry (column ps (prices_of x) (held j + left j)) (left j)) 0) as [E|E].
    + rewrite E. apply total_nonneg. intros i Hi. destruct (same j (of i)); [|lia].
      apply filter_In in Hi. lia.
    + assert (Hin : In (item_of ps choices x j) items).
      { apply filter_In. split.
        - apply in_map. rewrite Hstates. eapply Permutation_in; [apply StateSort.Permuted_sort|].
          eapply priced_state; eauto. apply HC in Hj. lia.
        - unfold item_of. cbn [weight copies].
          replace (0 <? entry (column ps (prices_of x) (held j + left j)) (left j)) with true
            by (symmetry; lia).
          cbn [andb]. specialize (Hcount j).
          assert (1 <= number_of j (shown s w t)).
          { unfold number_of.
            pose proof (total_member (fun i => if same i j then 1 else 0) (shown s w t) j) as G.
            assert (same j j = true) by (unfold same; lia). simpl in G. rewrite H in G.
            apply G; auto. intros y _. destruct (same y j); lia. }
          lia. }
      pose proof (total_member (fun i => if same j (of i) then weight i else 0) items
        (item_of ps choices x j)) as G. simpl in G.
      replace (same j j) with true in G by (symmetry; unfold same; lia). apply G; auto.
      intros i Hi. destruct (same j (of i)); [|lia]. apply filter_In in Hi. lia.
  - apply (heaviest_is_largest M most items (shown s w t)); auto.
    + apply fall_sound; auto.
    + apply differ_sound; auto. now apply all_differ_sound.
    + apply Forall_forall. intros i Hi. apply filter_In in Hi as [Hi Hk].
      apply in_map_iff in Hi. destruct Hi as (j & <- & Hj). simpl in *.
      rewrite Hstates in Hj. eapply Permutation_in in Hj; [|symmetry; apply StateSort.Permuted_sort].
      unfold states_of in Hj. apply in_flat_map in Hj. destruct Hj as (p & _ & Hj).
      apply filter_In in Hj as [Hj H1]. apply in_map_iff in Hj. destruct Hj as (r & <- & Hr).
      apply rounds_in in Hr. simpl in *. lia.
    + apply Forall_forall. intros j Hj. apply HC in Hj. lia.
    + apply shown_can_stand; auto. eapply Forall_impl; [|exact Hs]. simpl. tauto.
    + intros i Hi. apply filter_In in Hi as [Hi Hk]. apply in_map_iff in Hi.
      destruct Hi as (j & <- & Hj). unfold item_of in *. cbn [of copies weight] in *.
      destruct (0 <? entry (column ps (prices_of x) (held j + left j)) (left j)); [apply Hcount|].
      simpl in Hk. discriminate.
Qed.

(** ** The claims *)

Section Claims.
Variables (I : instance) (s : schedule) (D first last : Z) (price : Z -> state -> Z) (R : Z -> Z).
Hypothesis well : well_formed I.
Hypothesis feasible_s : feasible I s.
Hypothesis D_positive : 1 <= D.
Hypothesis priced_times : forall t j, ~ (first <= t <= last) -> price t j = 0.

Lemma state_payment_by_time p : 0 <= output (what p) ->
  state_payment price (what p) (start p)
  = total (fun t => if (start p <? t) && (t <=? completion p) then price t (state_at t p) else 0)
      (rounds first (Z.to_nat (last - first + 1))).
Proof.
  intros Ho. unfold state_payment.
  transitivity (total (fun t => if (start p <? t) && (t <=? completion p)
                                then price t (state_at t p) else 0)
                  (rounds (start p + 1) (Z.to_nat (output (what p))))).
  - replace (start p + 1) with (1 + start p) by lia. rewrite rounds_shift, total_map.
    apply total_ext. intros g Hg. apply rounds_in in Hg. unfold state_at, completion.
    replace (start p <? g + start p) with true by (symmetry; lia).
    replace (g + start p <=? start p + output (what p)) with true by (symmetry; lia). cbn [andb].
    replace (start p + g) with (g + start p) by lia.
    replace (prompt (what p) + (g + start p - start p)) with (prompt (what p) + g) by lia.
    replace (start p + output (what p) - (g + start p)) with (output (what p) - g) by lia.
    reflexivity.
  - apply total_ranges. intros t Ht.
    destruct ((start p <? t) && (t <=? completion p)) eqn:E; [|lia].
    apply andb_prop in E as [E1 E2]. unfold completion in *. split; [lia|].
    destruct (Z_le_gt_dec first t); destruct (Z_le_gt_dec t last); try lia;
      exfalso; apply Ht, priced_times; lia.
Qed.

(** [R] is at least what a worker shows at each priced time. *)
Hypothesis R_enough : forall w t, first <= t <= last -> total (price t) (shown s w t) <= R t.

(** Theorem 3.1, before the minimum is taken: what all pay is at most m sum R. *)
Theorem payments_are_at_most :
  total (fun p => state_payment price (what p) (start p)) s
  <= Z.of_nat (workers I) * total R (rounds first (Z.to_nat (last - first + 1))).
Proof.
  destruct feasible_s as [Hs Ha Hw Hf]. destruct well as [_ Hr].
  transitivity (total (fun t => total (fun p => if (start p <? t) && (t <=? completion p)
                    then price t (state_at t p) else 0) s)
                  (rounds first (Z.to_nat (last - first + 1)))).
  - rewrite <- total_swap. apply Z.eq_le_incl, total_ext. intros p Hp.
    apply state_payment_by_time. apply (in_map what) in Hp. rewrite Hs in Hp.
    rewrite Forall_forall in Hr. apply Hr in Hp. lia.
  - rewrite <- total_scale. apply total_le. intros t Ht. apply rounds_in in Ht.
    apply all_of_workers; auto. intros w. etransitivity; [|apply (R_enough w t); lia].
    unfold shown. rewrite total_map, total_filter. apply Z.eq_le_incl, total_ext.
    intros p _. unfold active. destruct (Nat.eqb (worker p) w); simpl; auto.
Qed.

(** Starts from the last priced time on cost no less than the first of them. *)
Lemma standing_costs_less r k : arrival r <= k ->
  state_cost D price r (stands_for last r k) <= state_cost D price r k.
Proof.
  intros Hk. unfold stands_for. destruct (Z_le_gt_dec k (Z.max (arrival r) last)).
  - now rewrite Z.min_l by lia.
  - rewrite Z.min_r by lia.
    assert (H0 : forall k', Z.max (arrival r) last <= k' -> state_payment price r k' = 0).
    { intros k' Hk'. apply total_zero. intros j Hj. apply rounds_in in Hj.
      apply priced_times. lia. }
    unfold state_cost. rewrite !H0 by lia. nia.
Qed.

(** Every request costs at least its least. *)
Lemma least_at_most : forall (choices : list choice) (s : schedule) (least : list Z),
  allowed last choices s ->
  Forall2 (fun c m => forall k, In k (snd c) -> m <= state_cost D price (fst c) k) choices least ->
  Forall (fun p => arrival (what p) <= start p) s ->
  total (fun x => x) least <= total (fun p => state_cost D price (what p) (start p)) s.
Proof.
  intros choices u least H. revert least.
  induction H as [|c p choices u [H1 H2] Hall IH]; intros least Hl Ha;
    inversion Hl as [|? m ? rest Hm Hl']; subst; cbn [total]; [lia|].
  inversion Ha as [|? ? Ha1 Ha2]; subst. specialize (IH rest Hl' Ha2).
  specialize (Hm _ H2). rewrite H1 in Hm. pose proof (standing_costs_less (what p) (start p) Ha1). lia.
Qed.

Variables (choices : list choice) (least : list Z).
Hypothesis allowed_s : allowed last choices s.
Hypothesis least_right : Forall2 (fun c m =>
  forall k, In k (snd c) -> m <= state_cost D price (fst c) k) choices least.

Let L := total (fun x => x) least
         - Z.of_nat (workers I) * total R (rounds first (Z.to_nat (last - first + 1))).

Lemma all_costs :
  total (fun p => state_cost D price (what p) (start p)) s
  = D * total_latency s + total (fun p => state_payment price (what p) (start p)) s.
Proof.
  unfold state_cost, total_latency, latency, completion. rewrite total_plus, total_scale. reflexivity.
Qed.

(** Theorem 3.1: L is a bound on D times the total latency. *)
Theorem state_prices_prove_a_bound : L <= D * total_latency s.
Proof.
  pose proof payments_are_at_most as HP. pose proof all_costs as HC.
  enough (total (fun x => x) least <= total (fun p => state_cost D price (what p) (start p)) s)
    by (unfold L; lia).
  destruct feasible_s as [_ Ha _ _]. now apply (least_at_most choices).
Qed.

(** Claim 3.8: in a schedule below the target no reduced cost is above the budget. *)
Theorem better_schedules_start_cheaply (V : Z) : total_latency s < V ->
  forall costs,
    Forall2 (fun c cs => cs = (fst c, map (fun k => (k, state_cost D price (fst c) k)) (snd c)))
      choices costs ->
    allowed last (leave costs least ((V - 1) * D - L)) s.
Proof.
  intros HV costs Hcosts.
  pose proof payments_are_at_most as HP. pose proof all_costs as HC.
  (* the reduced costs of all together are within the budget *)
  assert (Hall : total (fun p => state_cost D price (what p) (start p)) s - total (fun x => x) least
                 <= (V - 1) * D - L) by (unfold L; nia).
  assert (Hbudget : forall b, total (fun p => state_cost D price (what p) (start p)) s
                              - total (fun x => x) least <= b ->
                    allowed last (leave costs least b) s); [|auto].
  clear HP HC Hall HV. destruct feasible_s as [_ Ha _ _].
  clear - Ha allowed_s least_right priced_times D_positive Hcosts.
  revert least least_right Ha costs Hcosts.
  induction allowed_s as [|c p choices s [H1 H2] Hall IH]; intros least Hl Ha costs Hcosts b Hb.
  - inversion Hl; inversion Hcosts; subst. constructor.
  - inversion Hl as [|? m ? least' Hm Hl']; subst. inversion Hcosts as [|? cs ? costs' Hcs Hcosts'];
      subst. inversion Ha as [|? ? Ha1 Ha2]; subst. cbn [total] in Hb. cbn [leave].
    pose proof (standing_costs_less (what p) (start p) Ha1) as Hst.
    pose proof (Hm _ H2) as Hm2. rewrite H1 in Hm2.
    pose proof (least_at_most _ _ _ Hall Hl' Ha2) as Hr.
    constructor.
    + cbn [fst snd]. split; [auto|]. apply in_map_iff.
      exists (stands_for last (what p) (start p),
              state_cost D price (fst c) (stands_for last (what p) (start p))).
      split; [reflexivity|]. apply filter_In. split.
      * apply in_map_iff. eexists. split; [reflexivity|auto].
      * cbn [snd]. rewrite H1. apply Z.leb_le. lia.
    + apply (IH Hall least' Hl' Ha2 costs' Hcosts'). lia.
Qed.

End Claims.

Print Assumptions line_of_a_sum.
Print Assumptions state_prices_prove_a_bound.
Print Assumptions better_schedules_start_cheaply.
