(** * Evaluating a ceiling by prices, as the checker does

    docs/deadlines.md, "Why the ceiling is true": prices are constant between borders, and so the
    cost of a start is a polynomial of second degree between two starts at which a run begins or
    ends at a border. *)

From Coq Require Import ZArith List Lia Bool Permutation Sorted Orders Mergesort.
From KV Require Import Problem Sums Memory Services Prices Pauses Deadlines PriceCheck
  SegmentCheck.
Import ListNotations.
Open Scope Z_scope.

(** ** What is computed *)

(** Prices of the times after some time, as cells: a number of times, and their price.  After the
    last cell all prices are 0. *)
Fixpoint cells_of (begin : Z) (borders prices : list Z) : option (list (Z * Z)) :=
  match borders, prices with
  | [], [] => Some []
  | b :: borders, p :: prices =>
      if (begin <? b) && (0 <=? p) then
        match cells_of b borders prices with
        | Some l => Some ((b - begin, p) :: l)
        | None => None
        end
      else None
  | _, _ => None
  end.

(** The cells after [n] more times. *)
Fixpoint drop (l : list (Z * Z)) (n : Z) : list (Z * Z) :=
  match l with
  | [] => []
  | (m, p) :: rest => if n <? m then (m - n, p) :: rest else drop rest (n - m)
  end.

(** The cells [l] after [begin], given after [k]. *)
Definition cells_after (begin : Z) (l : list (Z * Z)) (k : Z) : list (Z * Z) :=
  if begin <=? k then drop l (k - begin) else (begin - k, 0) :: l.

(** 1 + 2 + ... + c. *)
Definition triangle (c : Z) : Z := c * (c + 1) / 2.

(** What [n] tokens pay that hold [h] + 1, [h] + 2, ..., and the sum of their prices. *)
Fixpoint first_payment (l : list (Z * Z)) (n h : Z) : Z * Z :=
  match l with
  | [] => (0, 0)
  | (m, p) :: rest =>
      if n <=? 0 then (0, 0)
      else
        let c := Z.min m n in
        let '(y, q) := first_payment rest (n - c) (h + c) in
        (p * (c * h + triangle c) + y, p * c + q)
  end.

Definition head (l : list (Z * Z)) (most : Z) : Z * Z :=
  match l with [] => (most, 0) | cell :: _ => cell end.

(** The least that a run pays, over [left] starts after one that pays [y] at prices of the sum
    [q]; [now] are the cells after the start, [later] those after its end.  As long as neither
    passes a border the steps of what is paid have one difference. *)
Fixpoint cheapest_start (fuel : list (Z * Z)) (s o : Z) (now later : list (Z * Z))
    (y q left best : Z) : Z :=
  match fuel with
  | [] => 0
  | _ :: fuel =>
      if left <=? 0 then Z.min best y
      else
        let '(la, a) := head now left in
        let '(lb, b) := head later left in
        let n := Z.min left (Z.min la lb) in
        let step := b * (s + o) - a * s - q in
        let bend := a - b in
        let pays i := y + i * step + triangle (i - 1) * bend in
        let turn := if bend <=? 0 then 0 else Z.max 0 (Z.min n (- (step / bend))) in
        cheapest_start fuel s o (drop now n) (drop later n) (pays n) (q + n * (b - a)) (left - n)
          (Z.min best (pays turn))
  end.

Definition least_run (begin : Z) (l : list (Z * Z)) (r : request) (latest : Z) : Z :=
  let now := cells_after begin l (arrival r) in
  let later := drop now (output r) in
  let '(y, q) := first_payment now (output r) (prompt r) in
  cheapest_start ((0, 0) :: (0, 0) :: now ++ later) (prompt r) (output r) now later y q
    (latest - arrival r) y.

(** With pauses: the largest holdings at the cheapest times.  The cells of [n] times: *)
Fixpoint clip (l : list (Z * Z)) (n : Z) : list (Z * Z) :=
  if n <=? 0 then [] else
  match l with
  | [] => [(n, 0)]
  | (m, p) :: rest => (Z.min m n, p) :: clip rest (n - m)
  end.

Module ByPrice <: TotalLeBool.
  Definition t := (Z * Z)%type.
  Definition leb (x y : t) := snd x <=? snd y.
  Theorem leb_total : forall x y, leb x y = true \/ leb y x = true.
  Proof. unfold leb. intros. lia. Qed.
End ByPrice.
Module PriceSort := Sort ByPrice.

(** Where [left] tokens pay more than [before], they are those that hold least: s + 1, s + 2, ... *)
Fixpoint cheapest_times (s before : Z) (l : list (Z * Z)) (left : Z) : Z :=
  match l with
  | [] => 0
  | (m, p) :: rest =>
      if left <=? 0 then 0
      else (p - before) * (left * s + triangle left) + cheapest_times s p rest (left - m)
  end.

Definition least_paused_run (begin : Z) (l : list (Z * Z)) (r : request) (due tokens : Z) : Z :=
  cheapest_times (prompt r) 0
    (PriceSort.sort (clip (cells_after begin l (arrival r)) (due - arrival r))) tokens.

(** The goal with the least that is paid in time. *)
Definition goal_with (pauses : bool) (begin : Z) (l : list (Z * Z)) (g : goal) : goal :=
  let tokens := if first_token g then 1 else output (asked g) in
  Goal (asked g) (deadline g) (first_token g)
    (if pauses then least_paused_run begin l (asked g) (deadline g) tokens
     else least_run begin l (asked g) (deadline g - tokens)).

(** All goals of an instance, where each request may take as long as it is [allowed]. *)
Definition goals_of (first : bool) (requests : list request) (allowed : list Z) : list goal :=
  map (fun x => Goal (fst x) (arrival (fst x) + snd x) first 0) (combine requests allowed).

(** How many attain at most.  None where prices are no prices. *)
Definition ceiling_value (pauses : bool) (I : instance) (first : bool) (allowed borders prices : list Z)
    (one : Z) : option Z :=
  if (1 <=? one) && Nat.eqb (length allowed) (length (requests I)) then
    let begin := match borders with [] => 0 | b :: _ => b end in
    match cells_of begin (tl borders) prices with
    | None => None
    | Some l =>
        let possible := filter can_attain (goals_of first (requests I) allowed) in
        let all := fold_left (fun sum g => sum + Z.max 0 (one - least (goal_with pauses begin l g)))
                     possible 0 in
        let tokens := fold_left (fun sum c => sum + fst c * snd c) l 0 in
        Some (Z.min (size possible 0) ((all + Z.of_nat (workers I) * memory I * tokens) / one))
    end
  else None.

(** How many attain in a schedule with pauses. *)
Definition segments_attain (l : segments) (g : goal) : bool :=
  (if first_token g then fst (hd (0, 0) l) else snd (last l (0, 0))) <=? deadline g.

Definition segments_attained (all : list segments) (goals : list goal) : Z :=
  total (fun x => if segments_attain (fst x) (snd x) then 1 else 0) (combine all goals).

(** ** Cells *)

(** The price of the [g]-th time. *)
Fixpoint at_cell (l : list (Z * Z)) (g : Z) : Z :=
  match l with
  | [] => 0
  | (m, p) :: rest => if g <=? m then p else at_cell rest (g - m)
  end.

Definition cells_ok (l : list (Z * Z)) : Prop := Forall (fun c => 0 < fst c) l.

(** The cells are the prices after [k]. *)
Definition prices_after (price : Z -> Z) (k : Z) (l : list (Z * Z)) : Prop :=
  cells_ok l /\ forall g, 1 <= g -> at_cell l g = price (k + g).

Fixpoint expand (l : list (Z * Z)) : list Z :=
  match l with [] => [] | (m, p) :: rest => repeat p (Z.to_nat m) ++ expand rest end.

Lemma at_expand l : forall g, cells_ok l -> 1 <= g ->
  at_cell l g = nth (Z.to_nat (g - 1)) (expand l) 0.
Proof.
  induction l as [|[m p] l IH]; intros g Hok Hg; cbn [at_cell expand].
  - destruct (Z.to_nat _); reflexivity.
  - inversion Hok as [|? ? Hm Hl]; subst. cbn [fst] in Hm. destruct (Z.leb_spec g m).
    + rewrite app_nth1 by (rewrite repeat_length; lia).
      symmetry. apply (repeat_spec (Z.to_nat m) p), nth_In. rewrite repeat_length. lia.
    + rewrite app_nth2 by (rewrite repeat_length; lia). rewrite repeat_length.
      rewrite IH by (auto; lia). f_equal. lia.
Qed.

Lemma total_expand l : cells_ok l ->
  total (fun x => x) (expand l) = total (fun c => fst c * snd c) l.
Proof.
  induction l as [|[m p] l IH]; intros Hok; cbn [expand total]; auto.
  inversion Hok as [|? ? Hm Hl]; subst. cbn [fst snd] in *. rewrite total_app, IH by auto.
  enough (total (fun x => x) (repeat p (Z.to_nat m)) = m * p) by lia.
  rewrite <- (Z2Nat.id m) at 2 by lia. induction (Z.to_nat m); cbn [repeat total]; lia.
Qed.

Lemma cells_of_spec prices : forall begin borders l,
  cells_of begin borders prices = Some l -> cells_ok l /\ Forall (fun x => 0 <= x) (expand l).
Proof.
  induction prices as [|p prices IH]; intros begin [|b borders] l H; cbn [cells_of] in H;
    try discriminate; [injection H as <-; split; constructor|].
  destruct ((begin <? b) && (0 <=? p)) eqn:E; [|discriminate].
  destruct (cells_of b borders prices) as [l'|] eqn:E2; [|discriminate]. injection H as <-.
  destruct (IH _ _ _ E2) as [H1 H2]. split; [constructor; auto; cbn; lia|].
  cbn [expand]. apply Forall_app. split; auto. apply Forall_forall. intros x Hx.
  apply repeat_spec in Hx. lia.
Qed.

Lemma cells_tail price k m p l : prices_after price k ((m, p) :: l) -> prices_after price (k + m) l.
Proof.
  intros [Hok Hp]. inversion Hok as [|? ? Hm Hl]; subst. cbn [fst] in Hm. split; auto.
  intros g Hg. rewrite <- Z.add_assoc, <- Hp by lia. cbn [at_cell].
  destruct (Z.leb_spec (m + g) m); [lia|]. f_equal. lia.
Qed.

Lemma drop_after price l : forall k n,
  prices_after price k l -> 0 <= n -> prices_after price (k + n) (drop l n).
Proof.
  induction l as [|[m p] l IH]; intros k n [Hok Hp] Hn; cbn [drop].
  - split; [constructor|]. intros g Hg. cbn [at_cell].
    replace (k + n + g) with (k + (n + g)) by lia. rewrite <- Hp by lia. reflexivity.
  - inversion Hok as [|? ? Hm Hl]; subst. cbn [fst] in Hm. cbn [at_cell] in Hp.
    destruct (Z.ltb_spec n m).
    + split; [constructor; auto; cbn; lia|]. intros g Hg. cbn [at_cell].
      rewrite <- Z.add_assoc, <- Hp by lia.
      destruct (Z.leb_spec g (m - n)), (Z.leb_spec (n + g) m); try lia; auto. f_equal. lia.
    + replace (k + n) with (k + m + (n - m)) by lia. apply IH; [|lia].
      apply cells_tail with (p := p). now split.
Qed.

Lemma cells_after_spec price begin l k :
  prices_after price begin l -> (forall t, t <= begin -> price t = 0) ->
  prices_after price k (cells_after begin l k).
Proof.
  intros H Hz. unfold cells_after. destruct (Z.leb_spec begin k).
  - replace k with (begin + (k - begin)) at 1 by lia. apply drop_after; auto. lia.
  - destruct H as [Hok Hp]. split; [constructor; auto; cbn; lia|]. intros g Hg. cbn [at_cell].
    destruct (Z.leb_spec g (begin - k)); [rewrite Hz; lia|].
    rewrite Hp by lia. f_equal. lia.
Qed.

Lemma head_price price k l most m p :
  prices_after price k l -> 0 < most -> head l most = (m, p) ->
  0 < m /\ forall g, 1 <= g <= m -> price (k + g) = p.
Proof.
  intros [Hok Hp] Hmost E. destruct l as [|[m' p'] l]; cbn [head] in E; injection E as <- <-.
  - split; [auto|]. intros g Hg. rewrite <- Hp by lia. reflexivity.
  - inversion Hok; subst. cbn [fst] in *. split; auto. intros g Hg. rewrite <- Hp by lia.
    cbn [at_cell]. now destruct (Z.leb_spec g m'); [|lia].
Qed.

Lemma triangle_twice c : 2 * triangle c = c * (c + 1).
Proof.
  unfold triangle. symmetry. apply Z_div_exact_full_2; [lia|].
  rewrite Zmod_even, Z.even_mul, Z.even_add. destruct (Z.even c); reflexivity.
Qed.

Lemma triangle_next c : triangle (c + 1) = triangle c + c + 1.
Proof. pose proof (triangle_twice c). pose proof (triangle_twice (c + 1)). nia. Qed.

(** ** The cheapest start *)

Section Starts.
Variables (price : Z -> Z) (r : request).
Hypothesis price_nonneg : forall t, 0 <= price t.
Hypothesis prompt_nonneg : 0 <= prompt r.
Hypothesis output_positive : 1 <= output r.

Definition price_sum_after (k : Z) (n : nat) : Z := total (fun g => price (k + g)) (rounds 1 n).
Definition pay_after (k h : Z) (n : nat) : Z := total (fun g => price (k + g) * (h + g)) (rounds 1 n).

Lemma sums_split k h c n :
  pay_after k h (c + n) = pay_after k h c + pay_after (k + Z.of_nat c) (h + Z.of_nat c) n /\
  price_sum_after k (c + n) = price_sum_after k c + price_sum_after (k + Z.of_nat c) n.
Proof.
  unfold pay_after, price_sum_after. rewrite !rounds_app, !total_app, !rounds_shift, !total_map.
  split; f_equal; apply total_ext; intros g _; f_equal; [f_equal|..]; lia.
Qed.

Lemma sums_of_one_price k h p n :
  (forall g, 1 <= g <= Z.of_nat n -> price (k + g) = p) ->
  pay_after k h n = p * (Z.of_nat n * h + triangle (Z.of_nat n)) /\
  price_sum_after k n = p * Z.of_nat n.
Proof.
  induction n as [|n IH]; intros H; [cbn; lia|].
  destruct (IH ltac:(intros; apply H; lia)) as [I1 I2]. replace (S n) with (n + 1)%nat by lia.
  destruct (sums_split k h n 1) as [S1 S2]. rewrite S1, S2, I1, I2.
  unfold pay_after, price_sum_after. cbn [rounds total].
  replace (k + Z.of_nat n + 1) with (k + Z.of_nat (S n)) by lia. rewrite H by lia.
  replace (Z.of_nat (n + 1)) with (Z.of_nat n + 1) by lia. rewrite triangle_next.
  replace (Z.of_nat (S n)) with (Z.of_nat n + 1) by lia. split; ring.
Qed.

Lemma first_payment_sound l : forall k n h,
  prices_after price k l -> 0 <= n ->
  first_payment l n h = (pay_after k h (Z.to_nat n), price_sum_after k (Z.to_nat n)).
Proof.
  induction l as [|[m p] l IH]; intros k n h Hl Hn; cbn [first_payment].
  - destruct Hl as [_ Hp]. unfold pay_after, price_sum_after. f_equal; symmetry; apply total_zero;
      intros g Hg; apply rounds_in in Hg; rewrite <- Hp by lia; reflexivity.
  - destruct (Z.leb_spec n 0); [replace n with 0 by lia; reflexivity|].
    assert (Hm : 0 < m) by (destruct Hl as [Hok _]; inversion Hok; auto).
    set (c := Z.min m n). assert (Hc : 0 <= c <= n) by lia.
    assert (Hrest : n - c = 0 \/ prices_after price (k + c) l).
    { destruct (Z.eq_dec (n - c) 0); [now left|right]. replace c with m by lia. now apply cells_tail with (p := p). }
    assert (E : first_payment l (n - c) (h + c)
                = (pay_after (k + c) (h + c) (Z.to_nat (n - c)), price_sum_after (k + c) (Z.to_nat (n - c)))).
    { destruct Hrest as [E|Hrest]; [|apply IH; auto; lia]. rewrite E.
      destruct l as [|[? ?] ?]; reflexivity. }
    rewrite E. replace (Z.to_nat n) with (Z.to_nat c + Z.to_nat (n - c))%nat by lia.
    destruct (sums_split k h (Z.to_nat c) (Z.to_nat (n - c))) as [S1 S2]. rewrite S1, S2.
    destruct (sums_of_one_price k h p (Z.to_nat c)) as [T1 T2].
    { intros g Hg. apply (head_price price k ((m, p) :: l) 1 m p); auto; lia. }
    rewrite T1, T2, !Z2Nat.id by lia. reflexivity.
Qed.

Let o := output r.
Let s := prompt r.

Definition sum_from (k : Z) : Z := price_sum_after k (Z.to_nat o).

Lemma sums_last k h n :
  pay_after k h (S n) = pay_after k h n + price (k + Z.of_nat n + 1) * (h + Z.of_nat n + 1) /\
  price_sum_after k (S n) = price_sum_after k n + price (k + Z.of_nat n + 1).
Proof.
  replace (S n) with (n + 1)%nat by lia. destruct (sums_split k h n 1) as [-> ->].
  unfold pay_after, price_sum_after. cbn [rounds total]. lia.
Qed.

Lemma sums_next k h n :
  pay_after (k + 1) h n = pay_after k h n + (price (k + Z.of_nat n + 1) * (h + Z.of_nat n)
                            - price (k + 1) * h - price_sum_after k n) /\
  price_sum_after (k + 1) n = price_sum_after k n + price (k + Z.of_nat n + 1) - price (k + 1).
Proof.
  induction n as [|n [I1 I2]].
  - unfold pay_after, price_sum_after. cbn [rounds total Z.of_nat].
    replace (k + 0 + 1) with (k + 1) by lia. lia.
  - destruct (sums_last k h n) as [-> ->]. destruct (sums_last (k + 1) h n) as [-> ->].
    rewrite I1, I2. replace (k + 1 + Z.of_nat n + 1) with (k + Z.of_nat (S n) + 1) by lia.
    replace (Z.of_nat (S n)) with (Z.of_nat n + 1) by lia. split; ring.
Qed.

Lemma payment_next k :
  payment price r (k + 1)
  = payment price r k + (price (k + o + 1) * (s + o) - price (k + 1) * s - sum_from k) /\
  sum_from (k + 1) = sum_from k + price (k + o + 1) - price (k + 1).
Proof.
  pose proof (sums_next k s (Z.to_nat o)) as H. rewrite Z2Nat.id in H by (subst o; lia). exact H.
Qed.

(** As long as neither begin nor end passes a border. *)
Lemma along k n a b :
  (forall g, 1 <= g <= n -> price (k + g) = a) -> (forall g, 1 <= g <= n -> price (k + o + g) = b) ->
  forall i, 0 <= i <= n ->
  payment price r (k + i)
  = payment price r k + i * (b * (s + o) - a * s - sum_from k) + triangle (i - 1) * (a - b) /\
  sum_from (k + i) = sum_from k + i * (b - a).
Proof.
  intros Ha Hb i [Hi Hin]. pattern i. revert Hin. pattern i. apply natlike_ind; auto.
  - intros _. replace (k + 0) with k by lia. cbn. lia.
  - intros j Hj IH Hle. destruct (IH ltac:(lia)) as [I1 I2].
    replace (k + Z.succ j) with (k + j + 1) by lia. destruct (payment_next (k + j)) as [-> ->].
    rewrite I1, I2. replace (k + j + 1) with (k + (j + 1)) by lia. rewrite Ha by lia.
    replace (k + j + o + 1) with (k + o + (j + 1)) by lia. rewrite Hb by lia.
    replace (Z.succ j - 1) with (j - 1 + 1) by lia. rewrite triangle_next.
    replace (Z.succ j) with (j + 1) by lia. split; ring.
Qed.

(** Of costs with one second difference the least are at an end, or where steps turn positive. *)
Lemma turning y step bend n i : 0 <= i <= n ->
  let pays i := y + i * step + triangle (i - 1) * bend in
  let turn := if bend <=? 0 then 0 else Z.max 0 (Z.min n (- (step / bend))) in
  Z.min (pays n) (pays turn) <= pays i.
Proof.
  intros Hi pays turn.
  assert (E : forall i, 2 * pays i = 2 * y + 2 * i * step + i * (i - 1) * bend).
  { intros j. unfold pays. pose proof (triangle_twice (j - 1)). nia. }
  pose proof (E i) as Ei. pose proof (E n) as En. pose proof (E turn) as Et.
  clearbody pays. unfold turn in *. destruct (Z.leb_spec bend 0) as [Hb|Hb].
  - (* concave *)
    assert (H : n * (2 * pays i - 2 * y) - i * (2 * pays n - 2 * y) = (n * i) * ((n - i) * (- bend)))
      by (rewrite Ei, En; ring).
    assert (0 <= (n * i) * ((n - i) * (- bend)))
      by (apply Z.mul_nonneg_nonneg; apply Z.mul_nonneg_nonneg; lia).
    destruct (Z_le_gt_dec (pays 0) (pays i)) as [|G0]; [lia|].
    destruct (Z_le_gt_dec (pays n) (pays i)) as [|G1]; [lia|exfalso].
    destruct (Z.eq_dec i n) as [->|Hne]; [lia|].
    assert (pays 0 = y) by lia. clear E Ei En Et turn.
    assert (i * (2 * pays i - 2 * y) <= i * (2 * pays n - 2 * y)) by (apply Z.mul_le_mono_nonneg_l; lia).
    assert ((n - i) * (2 * pays i - 2 * y) <= (n - i) * (- 1)) by (apply Z.mul_le_mono_nonneg_l; lia).
    lia.
  - (* convex *)
    set (q := step / bend) in *. pose proof (Z.div_mod step bend ltac:(lia)) as Hd.
    pose proof (Z.mod_pos_bound step bend ltac:(lia)) as Hm. fold q in Hd.
    set (m := step mod bend) in *. clearbody q m.
    set (t := Z.max 0 (Z.min n (- q))) in *.
    enough (pays t <= pays i) by lia.
    assert (H : 2 * pays i - 2 * pays t = (i - t) * (2 * step + bend * (i + t - 1)))
      by (rewrite Ei, (E t); ring).
    enough (0 <= (i - t) * (2 * step + bend * (i + t - 1))) by lia.
    clear E Ei En Et H. assert (Ht : t <= Z.max 0 (- q)) by lia.
    destruct (Z_lt_le_dec t i) as [Hlt|Hge].
    + assert (- q <= t) by lia. assert (0 <= bend * (q + t)) by (apply Z.mul_nonneg_nonneg; lia).
      assert (bend * (2 * t) <= bend * (i + t - 1)) by (apply Z.mul_le_mono_nonneg_l; lia).
      apply Z.mul_nonneg_nonneg; lia.
    + destruct (Z.eq_dec i t) as [->|]; [lia|].
      assert (bend * (i + t - 1) <= bend * (2 * t - 2)) by (apply Z.mul_le_mono_nonneg_l; lia).
      assert (bend * (q + t) <= 0) by (apply Z.mul_nonneg_nonpos; lia).
      apply Z.mul_nonpos_nonpos; lia.
Qed.

Lemma cheapest_start_sound fuel : forall now later k y left best,
  prices_after price k now -> prices_after price (k + o) later ->
  y = payment price r k -> 0 <= best -> 0 <= left ->
  let c := cheapest_start fuel s o now later y (sum_from k) left best in
  c <= best /\ forall j, k <= j <= k + left -> c <= payment price r j.
Proof.
  assert (Hpn : forall j, 0 <= payment price r j) by (intros; now apply payment_nonneg).
  induction fuel as [|f fuel IH]; intros now later k y left best Hn Hl Hy Hb Hleft;
    cbn [cheapest_start]; [split; auto; lia|].
  destruct (Z.leb_spec left 0) as [H0|H0].
  { split; [lia|]. intros j Hj. replace j with k by lia. lia. }
  destruct (head now left) as [la a] eqn:Ea. destruct (head later left) as [lb b] eqn:Eb.
  destruct (head_price price k now left la a Hn H0 Ea) as [Hla Ha].
  destruct (head_price price (k + o) later left lb b Hl H0 Eb) as [Hlb Hb'].
  set (n := Z.min left (Z.min la lb)). assert (Hn1 : 1 <= n <= left) by lia.
  set (step := b * (s + o) - a * s - sum_from k).
  assert (HA : forall i, 0 <= i <= n ->
    payment price r (k + i) = y + i * step + triangle (i - 1) * (a - b) /\
    sum_from (k + i) = sum_from k + i * (b - a)).
  { intros i Hi. rewrite Hy. apply (along k n a b); auto; intros g Hg; [apply Ha|apply Hb']; lia. }
  set (pays := fun i => y + i * step + triangle (i - 1) * (a - b)).
  set (turn := if a - b <=? 0 then 0 else Z.max 0 (Z.min n (- (step / (a - b))))).
  assert (Hturn : 0 <= turn <= n) by (unfold turn; destruct (a - b <=? 0); lia).
  change (y + n * step + triangle (n - 1) * (a - b)) with (pays n).
  change (y + turn * step + triangle (turn - 1) * (a - b)) with (pays turn).
  destruct (HA n ltac:(lia)) as [P1 P2]. rewrite <- P2.
  destruct (IH (drop now n) (drop later n) (k + n) (pays n) (left - n) (Z.min best (pays turn)))
    as [I1 I2]; try lia.
  - apply drop_after; auto. lia.
  - replace (k + n + o) with (k + o + n) by lia. apply drop_after; auto. lia.
  - now rewrite P1.
  - destruct (HA turn Hturn) as [Pt _]. specialize (Hpn (k + turn)). unfold pays. lia.
  - split; [lia|]. intros j Hj. destruct (Z_le_gt_dec (k + n) j); [apply I2; lia|].
    destruct (HA (j - k) ltac:(lia)) as [Pj _]. replace (k + (j - k)) with j in Pj by lia.
    assert (HT : Z.min (pays n) (pays turn) <= pays (j - k)) by (apply turning; lia).
    specialize (I2 (k + n) ltac:(lia)). rewrite P1 in I2. rewrite Pj.
    change (y + (j - k) * step + triangle (j - k - 1) * (a - b)) with (pays (j - k)).
    change (y + n * step + triangle (n - 1) * (a - b)) with (pays n) in I2. lia.
Qed.

(** No start in time pays less. *)
Lemma least_run_sound begin l latest :
  prices_after price begin l -> (forall t, t <= begin -> price t = 0) ->
  forall k, arrival r <= k <= latest -> least_run begin l r latest <= payment price r k.
Proof.
  intros Hl Hz k Hk. unfold least_run.
  pose proof (cells_after_spec price begin l (arrival r) Hl Hz) as Hnow.
  rewrite (first_payment_sound _ (arrival r)) by (auto; lia).
  change (pay_after (arrival r) (prompt r) (Z.to_nat (output r))) with (payment price r (arrival r)).
  change (price_sum_after (arrival r) (Z.to_nat (output r))) with (sum_from (arrival r)).
  apply cheapest_start_sound with (k := arrival r); auto; try lia.
  - apply drop_after; auto. lia.
  - now apply payment_nonneg.
Qed.

End Starts.

(** ** The cheapest times *)

Section Times.
Variables (price : Z -> Z) (r : request).
Hypothesis price_nonneg : forall t, 0 <= price t.
Hypothesis prompt_nonneg : 0 <= prompt r.

Local Notation s := (prompt r).

(** How many of some times have a price of [x] or more. *)
Definition dear (x : Z) (l : list Z) : Z := total (fun t => if x <=? price t then 1 else 0) l.

(** What the tokens from the [j]-th on pay above [before] each, at the times [l]. *)
Fixpoint paid_above (before j : Z) (l : list Z) : Z :=
  match l with
  | [] => 0
  | t :: l => Z.max 0 (price t - before) * (s + j) + paid_above before (j + 1) l
  end.

(** What those of them hold that have a price of [x] or more. *)
Fixpoint held_when_dear (x j : Z) (l : list Z) : Z :=
  match l with
  | [] => 0
  | t :: l => (if x <=? price t then s + j else 0) + held_when_dear x (j + 1) l
  end.

Lemma dear_nonneg x l : 0 <= dear x l.
Proof. apply total_nonneg. intros t _. destruct (x <=? price t); lia. Qed.

(** They are at least the first ones. *)
Lemma first_hold_least x l : forall j, 1 <= j ->
  dear x l * (s + j - 1) + triangle (dear x l) <= held_when_dear x j l.
Proof.
  induction l as [|t l IH]; intros j Hj; cbn [held_when_dear]; [cbn; lia|].
  specialize (IH (j + 1) ltac:(lia)). pose proof (dear_nonneg x l) as Hd.
  unfold dear in *. cbn [total]. set (c := total _ l) in *.
  replace (s + (j + 1) - 1) with (s + j) in IH by lia.
  destruct (x <=? price t).
  - replace (1 + c) with (c + 1) by lia. rewrite triangle_next. lia.
  - replace (0 + c) with c by lia. lia.
Qed.

Lemma above_in_two before x l : forall j, 1 <= j -> before <= x ->
  paid_above x j l + (x - before) * held_when_dear x j l <= paid_above before j l.
Proof.
  induction l as [|t l IH]; intros j Hj Hx; cbn [paid_above held_when_dear]; [lia|].
  specialize (IH (j + 1) ltac:(lia) Hx). assert (0 <= s + j) by (lia).
  enough (Z.max 0 (price t - x) * (s + j) + (x - before) * (if x <=? price t then s + j else 0)
          <= Z.max 0 (price t - before) * (s + j)) by lia.
  destruct (Z.leb_spec x (price t)).
  - rewrite !Z.max_r by lia. apply Z.eq_le_incl. ring.
  - rewrite (Z.max_l 0 (price t - x)) by lia.
    assert (0 <= Z.max 0 (price t - before) * (s + j)) by (apply Z.mul_nonneg_nonneg; lia). lia.
Qed.

Lemma triangle_mono a b : 0 <= a <= b -> triangle a <= triangle b.
Proof. intros H. pose proof (triangle_twice a). pose proof (triangle_twice b). nia. Qed.

(** Cells whose price is below [x] are as many times as that. *)
Definition cheap (x : Z) (l : list (Z * Z)) : Z := total (fun c => if snd c <? x then fst c else 0) l.

Lemma cheap_none x l : Forall (fun c => x <= snd c) l -> cheap x l = 0.
Proof.
  intros H. apply total_zero. intros c Hc. rewrite Forall_forall in H. specialize (H c Hc).
  now replace (snd c <? x) with false by (symmetry; lia).
Qed.

Lemma paid_above_nonneg before l : forall j, 1 <= j -> 0 <= paid_above before j l.
Proof.
  induction l as [|t l IH]; intros j Hj; cbn [paid_above]; [lia|].
  specialize (IH (j + 1) ltac:(lia)).
  assert (0 <= Z.max 0 (price t - before) * (s + j))
    by (apply Z.mul_nonneg_nonneg; lia). lia.
Qed.

Lemma cheapest_times_sound times l : forall before left,
  StronglySorted (fun x y => is_true (ByPrice.leb x y)) l ->
  Forall (fun c => before <= snd c) l ->
  (forall x, before < x -> left - cheap x l <= dear x times) ->
  cheapest_times s before l left <= paid_above before 1 times.
Proof.
  induction l as [|[m p] l IH]; intros before left Hsort Hall Hleft; cbn [cheapest_times].
  - apply paid_above_nonneg. lia.
  - destruct (Z.leb_spec left 0); [apply paid_above_nonneg; lia|].
    inversion Hall as [|? ? Hp _]; subst. cbn [snd] in Hp.
    inversion Hsort as [|? ? Hsort' Hfirst]; subst.
    assert (Hall' : Forall (fun c => p <= snd c) l).
    { eapply Forall_impl; [|exact Hfirst]. unfold is_true, ByPrice.leb. cbn. intros c Hc. lia. }
    specialize (IH p (left - m) Hsort' Hall').
    assert (I : cheapest_times s p l (left - m) <= paid_above p 1 times).
    { apply IH. intros x Hx. specialize (Hleft x ltac:(lia)). unfold cheap in *. cbn [total fst snd] in Hleft.
      replace (p <? x) with true in Hleft by (symmetry; lia). lia. }
    pose proof (above_in_two before p times 1 ltac:(lia) Hp) as H2.
    destruct (Z.eq_dec p before) as [->|Hne]; [lia|].
    enough ((p - before) * (left * s + triangle left) <= (p - before) * held_when_dear p 1 times)
      by lia.
    apply Z.mul_le_mono_nonneg_l; [lia|].
    specialize (Hleft p ltac:(lia)). rewrite cheap_none in Hleft.
    2: { constructor; [cbn; lia|auto]. }
    pose proof (first_hold_least p times 1 ltac:(lia)) as H3.
    replace (s + 1 - 1) with s in H3 by lia.
    pose proof (triangle_mono left (dear p times) ltac:(lia)).
    assert (left * s <= dear p times * s) by (apply Z.mul_le_mono_nonneg_r; lia). lia.
Qed.

Lemma paid_above_nothing l : forall j, paid_above 0 j l = paid price r j l.
Proof.
  induction l as [|t l IH]; intros j; cbn [paid_above paid]; auto. rewrite IH.
  specialize (price_nonneg t). rewrite Z.max_r by lia. f_equal. f_equal. lia.
Qed.

(** Of times that ascend each is another one. *)
Lemma increasing_total (f : Z -> Z) times : forall a due,
  (forall t, 0 <= f t) -> increasing a times -> (forall t, In t times -> t <= due) ->
  total f times <= total f (rounds (a + 1) (Z.to_nat (due - a))).
Proof.
  induction times as [|t l IH]; intros a due Hf Hi Hd; cbn [total]; [now apply total_nonneg|].
  destruct Hi as [Ht Hi]. pose proof (Hd t (or_introl eq_refl)).
  replace (Z.to_nat (due - a)) with (Z.to_nat (t - 1 - a) + S (Z.to_nat (due - t)))%nat by lia.
  rewrite rounds_app, total_app. cbn [rounds total].
  replace (a + 1 + Z.of_nat (Z.to_nat (t - 1 - a))) with t by lia.
  assert (0 <= total f (rounds (a + 1) (Z.to_nat (t - 1 - a)))) by now apply total_nonneg.
  specialize (IH t due Hf Hi ltac:(intros; apply Hd; now right)). lia.
Qed.

Lemma clip_cheap x l : forall k n, prices_after price k l -> 0 <= n -> 0 < x ->
  cheap x (clip l n)
  = total (fun t => if price t <? x then 1 else 0) (rounds (k + 1) (Z.to_nat n)).
Proof.
  induction l as [|[m p] l IH]; intros k n Hl Hn Hx; cbn [clip]; destruct (Z.leb_spec n 0);
    try (replace n with 0 by lia; reflexivity).
  - unfold cheap. cbn [total fst snd]. replace (0 <? x) with true by (symmetry; lia).
    rewrite (total_ext _ (fun _ => 1)); [rewrite total_const, rounds_length; lia|].
    intros t Ht. apply rounds_in in Ht. destruct Hl as [_ Hp].
    replace t with (k + (t - k)) by lia. rewrite <- Hp by lia. cbn [at_cell].
    now replace (0 <? x) with true by (symmetry; lia).
  - set (c := Z.min m n). assert (Hm : 0 < m) by (destruct Hl as [Hok _]; inversion Hok; auto).
    replace (Z.to_nat n) with (Z.to_nat c + Z.to_nat (n - c))%nat by lia.
    rewrite rounds_app, total_app. unfold cheap. cbn [total fst snd].
    change (total _ (clip l (n - m))) with (cheap x (clip l (n - m))). f_equal.
    + rewrite (total_ext _ (fun _ => if p <? x then 1 else 0)).
      * rewrite total_const, rounds_length. destruct (p <? x); lia.
      * intros t Ht. apply rounds_in in Ht.
        destruct (head_price price k ((m, p) :: l) 1 m p Hl ltac:(lia) eq_refl) as [_ H0].
        replace t with (k + (t - k)) by lia. now rewrite H0 by lia.
    + destruct (Z_le_gt_dec n m).
      * replace (n - c) with 0 by lia. cbn [Z.to_nat rounds total].
        destruct l as [|[? ?] ?]; cbn [clip]; replace (n - m <=? 0) with true by (symmetry; lia);
          reflexivity.
      * replace (n - c) with (n - m) by lia.
        replace (k + 1 + Z.of_nat (Z.to_nat c)) with (k + m + 1) by lia.
        apply IH; auto; [|lia]. now apply cells_tail with (p := p).
Qed.

Lemma clip_nonneg l : forall k n, prices_after price k l -> Forall (fun c => 0 <= snd c) (clip l n).
Proof.
  induction l as [|[m p] l IH]; intros k n Hl; cbn [clip]; destruct (n <=? 0);
    try solve [repeat constructor; cbn; lia].
  constructor; [|apply (IH (k + m)); now apply cells_tail with (p := p)].
  destruct (head_price price k ((m, p) :: l) 1 m p Hl ltac:(lia) eq_refl) as [Hm H0].
  cbn [snd]. rewrite <- (H0 1) by lia. apply price_nonneg.
Qed.

(** No paused run in time pays less; for its first token what that one pays. *)
Lemma least_paused_run_sound begin l due times :
  prices_after price begin l -> (forall t, t <= begin -> price t = 0) ->
  increasing (arrival r) times -> (forall t, In t times -> t <= due) -> arrival r <= due ->
  least_paused_run begin l r due (Z.of_nat (length times)) <= paid price r 1 times.
Proof.
  intros Hl Hz Hi Hd Hdue. unfold least_paused_run. rewrite <- paid_above_nothing.
  pose proof (cells_after_spec price begin l (arrival r) Hl Hz) as Hnow.
  set (cells := clip (cells_after begin l (arrival r)) (due - arrival r)).
  apply cheapest_times_sound.
  - apply PriceSort.StronglySorted_sort. intros a b c. unfold is_true, ByPrice.leb. lia.
  - apply Forall_forall. intros c Hc.
    assert (Hin : In c cells).
    { eapply Permutation_in; [symmetry; apply PriceSort.Permuted_sort|exact Hc]. }
    pose proof (clip_nonneg _ _ (due - arrival r) Hnow) as H. rewrite Forall_forall in H. now apply H.
  - intros x Hx. unfold cheap. rewrite <- (total_perm _ _ _ (PriceSort.Permuted_sort _)).
    change (total _ cells) with (cheap x cells). unfold cells.
    rewrite (clip_cheap x _ (arrival r)) by (auto; lia).
    pose proof (increasing_total (fun t => if price t <? x then 1 else 0) times (arrival r) due
      ltac:(intros t; cbn beta; destruct (price t <? x); lia) Hi Hd) as H.
    assert (E : Z.of_nat (length times)
                = dear x times + total (fun t => if price t <? x then 1 else 0) times).
    { unfold dear. rewrite <- total_plus, (total_ext _ (fun _ => 1)).
      - rewrite total_const. lia.
      - intros t _. destruct (Z.leb_spec x (price t)), (Z.ltb_spec (price t) x); lia. }
    lia.
Qed.

End Times.

(** ** The ceiling *)

(** Prices as [ceiling_value] reads them. *)
Definition price_of (begin : Z) (l : list (Z * Z)) : Z -> Z := price_at (begin + 1) (expand l).

Lemma price_of_cells begin l : cells_ok l -> prices_after (price_of begin l) begin l.
Proof.
  intros Hok. split; auto. intros g Hg. rewrite at_expand by auto. unfold price_of, price_at.
  replace (begin + g <? begin + 1) with false by (symmetry; lia). f_equal. lia.
Qed.

Lemma price_of_before begin l t : t <= begin -> price_of begin l t = 0.
Proof. intros H. unfold price_of, price_at. now replace (t <? begin + 1) with true by (symmetry; lia). Qed.

(** How many attain at most. *)
Definition ceiling (pauses : bool) (I : instance) (goals : list goal) (c : Z) : Prop :=
  if pauses then forall s, served with_pauses I s -> attained with_pauses s goals <= c
  else forall s, served runs I s -> attained runs s goals <= c.

Theorem ceiling_value_sound pauses (I : instance) first allowed borders prices one c :
  well_formed I -> ceiling_value pauses I first allowed borders prices one = Some c ->
  ceiling pauses I (goals_of first (requests I) allowed) c.
Proof.
  intros HI H. unfold ceiling_value in H.
  destruct ((1 <=? one) && Nat.eqb (length allowed) (length (requests I))) eqn:E; [|discriminate].
  apply andb_prop in E as [H1 Hlen]. apply Nat.eqb_eq in Hlen.
  set (begin := match borders with [] => 0 | b :: _ => b end) in H.
  destruct (cells_of begin (tl borders) prices) as [l|] eqn:El; [|discriminate].
  apply cells_of_spec in El as [Hok Hnn]. injection H as <-.
  set (goals := goals_of first (requests I) allowed).
  set (f := goal_with pauses begin l).
  assert (Hr := proj2 HI). rewrite Forall_forall in Hr.
  assert (Hasked : map asked (map f goals) = requests I).
  { unfold goals, goals_of. rewrite !map_map. cbn [f goal_with asked].
    transitivity (map fst (combine (requests I) allowed)); [now apply map_ext|].
    clear - Hlen. revert allowed Hlen. induction (requests I) as [|r rs IH]; intros [|d ds] H;
      cbn in *; try discriminate; auto. f_equal. apply IH. now injection H. }
  assert (Hin : forall g, In g goals -> In (asked g) (requests I) /\ first_token g = first).
  { intros g Hg. unfold goals, goals_of in Hg. apply in_map_iff in Hg as ([r d] & <- & Hx).
    apply in_combine_l in Hx. auto. }
  assert (Hpn : forall t, 0 <= price_of begin l t) by (intros; now apply price_nonneg).
  pose proof (price_of_cells begin l Hok) as Hcells.
  pose proof (price_of_before begin l) as Hbefore.
  assert (Ecount : size (filter can_attain goals) 0
                   = total (fun g => if can_attain g then 1 else 0) (map f goals)).
  { rewrite size_length, total_map. clear. induction goals as [|g gs IH]; cbn; [auto|].
    change (can_attain (f g)) with (can_attain g).
    destruct (can_attain g); cbn [length]; lia. }
  assert (Esum : fold_left (fun sum g => sum + Z.max 0 (one - least (f g))) (filter can_attain goals) 0
                 = total (worth one) (map f goals)).
  { assert (G : forall gs acc, fold_left (fun sum g => sum + Z.max 0 (one - least (f g)))
                  (filter can_attain gs) acc = acc + total (worth one) (map f gs)).
    { clear. induction gs as [|g gs IH]; intros acc; cbn [filter map total]; [cbn; lia|].
      unfold worth at 1. change (can_attain (f g)) with (can_attain g).
      destruct (can_attain g); cbn [fold_left]; rewrite IH; lia. }
    apply G. }
  assert (Etokens : fold_left (fun sum c => sum + fst c * snd c) l 0
                    = total (fun x => x) (expand l)).
  { rewrite total_expand by auto.
    assert (G : forall l acc, fold_left (fun sum c => sum + fst c * snd c) l acc
                  = acc + total (fun c => fst c * snd c) l).
    { clear. induction l as [|x l IH]; intros acc; cbn [fold_left total]; [lia|]. rewrite IH. lia. }
    apply G. }
  change (fold_left _ (filter can_attain _) 0) with
    (fold_left (fun sum g => sum + Z.max 0 (one - least (f g))) (filter can_attain goals) 0).
  change (filter can_attain (goals_of _ _ _)) with (filter can_attain goals).
  rewrite Ecount, Esum, Etokens.
  assert (Eattained : forall A (k : service A) s, attained k s goals = attained k s (map f goals)).
  { intros A k s. unfold attained. clearbody goals. clear. revert goals.
    induction s as [|x s IH]; intros [|g gs]; cbn [map combine total]; auto. rewrite IH. reflexivity. }
  unfold ceiling. fold goals. destruct pauses; intros s Hs; rewrite Eattained.
  - apply prices_prove_a_ceiling_with_pauses with (first := begin + 1);
      [lia|auto|auto|auto| |now apply feasible_with_pauses_served].
    rewrite Forall_map, Forall_forall. intros g Hg times [Hlen' Hi] Hdue.
    destruct (Hin g Hg) as [Hreq Hfirst]. apply Hr in Hreq. cbn [f goal_with asked deadline first_token least] in *.
    fold (price_of begin l).
    destruct times as [|t times]; [cbn [length] in Hlen'; lia|].
    destruct (first_token g).
    + transitivity (paid (price_of begin l) (asked g) 1 [t]).
      * change 1 with (Z.of_nat (length [t])) at 1. destruct Hi as [Ht _]. cbn [hd] in Hdue.
        apply least_paused_run_sound; auto; try lia; [now split|].
        intros u [<-|[]]. lia.
      * cbn [paid]. pose proof (paid_nonneg (price_of begin l) (asked g) (1 + 1) times Hpn
                                  ltac:(lia) ltac:(lia)). lia.
    + pose proof (room_after _ _ Hi ltac:(congruence)).
      replace (output (asked g)) with (Z.of_nat (length (t :: times))) by lia.
      apply least_paused_run_sound; auto; try lia.
      intros u Hu. pose proof (increasing_last _ _ _ Hi Hu). lia.
  - apply prices_prove_a_ceiling with (first := begin + 1);
      [lia|auto|auto|auto| |now apply feasible_served].
    rewrite Forall_map, Forall_forall. intros g Hg k Hk.
    destruct (Hin g Hg) as [Hreq Hfirst]. apply Hr in Hreq.
    fold (price_of begin l). unfold latest_start in Hk. cbn [f goal_with asked deadline first_token least] in *.
    apply least_run_sound; auto; lia.
Qed.

(** ** How many attain with pauses *)

Lemma ends_of_segments l : forall free made output c,
  segments_end free made output l = Some c -> l <> [] ->
  hd 0 (segment_times l) = fst (hd (0, 0) l) /\ last (segment_times l) 0 = snd (last l (0, 0)).
Proof.
  induction l as [|[a b] l IH]; intros free made output c H Hne; [congruence|].
  cbn [segments_end segment_times] in *.
  destruct ((free <? a) && (a <=? b)) eqn:E; [|discriminate]. split.
  - replace (Z.to_nat (b - a + 1)) with (S (Z.to_nat (b - a))) by lia. reflexivity.
  - rewrite last_app_rounds by lia. destruct l as [|y l].
    + cbn. lia.
    + change (last ((a, b) :: y :: l) (0, 0)) with (last (y :: l) (0, 0)).
      destruct (IH _ _ _ _ H ltac:(congruence)) as [_ I2]. rewrite <- I2. destruct y as [u v].
      cbn [segments_end segment_times] in *. destruct ((b <? u) && (u <=? v)) eqn:E2; [|discriminate].
      replace (Z.to_nat (v - u + 1)) with (S (Z.to_nat (v - u))) by lia. cbn [rounds app].
      now rewrite !last_cons.
Qed.

Lemma segments_attained_sound (I : instance) all value goals :
  well_formed I -> checked_segments I all value = true ->
  attained with_pauses (paused_schedule (requests I) all) goals = segments_attained all goals.
Proof.
  intros [_ Hr] H. unfold checked_segments in H. apply andb_prop in H as [_ H].
  destruct (segments_latency (requests I) all) as [sum|] eqn:E; [|discriminate]. clear H.
  unfold attained, segments_attained, paused_schedule. revert all sum goals E.
  induction (requests I) as [|r l IH]; intros [|x all] sum goals E; cbn [segments_latency] in E;
    try discriminate; [reflexivity|].
  destruct (segments_end (arrival r) 0 (output r) x) as [c|] eqn:E1; [|discriminate].
  destruct (segments_latency l all) as [sum'|] eqn:E2; [|discriminate].
  inversion Hr; subst. destruct goals as [|g goals]; [reflexivity|].
  cbn [combine map total fst snd]. rewrite (IH H2 _ _ goals E2). f_equal.
  assert (Hne : x <> []).
  { intros ->. cbn [segments_end] in E1. destruct (Z.eqb_spec 0 (output r)); [lia|discriminate]. }
  destruct (ends_of_segments x _ _ _ _ E1 Hne) as [A1 A2].
  unfold attains, segments_attain. cbn [with_pauses Services.first done].
  rewrite times_of_segments. cbn [snd]. now rewrite A1, A2.
Qed.

Print Assumptions ceiling_value_sound.
