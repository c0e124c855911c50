(** * Evaluating a proof by prices, as the checker does

    docs/theory/bounds.md, "Which start rounds have to be looked at", its last paragraph: with running
    sums of prices the cost of a start takes a few steps. *)

From Coq Require Import ZArith List Lia Bool.
From KV Require Import Problem Sums Memory Services Prices Pauses PausedCosts.
Import ListNotations.
Open Scope Z_scope.

(** Rows (P, W) for the times b, b + 1, ...: P is the sum of the prices after b up to the time, W
    the sum of the P before. *)
Fixpoint table (p w : Z) (prices : list Z) : list (Z * Z) :=
  (p, w) :: match prices with
            | [] => []
            | x :: rest => table (p + x) (w + p) rest
            end.

Fixpoint skip {A} (l : list A) (n : Z) : list A :=
  if n <=? 0 then l else match l with [] => [] | _ :: rest => skip rest (n - 1) end.

Fixpoint zeros (count : list Z) (n : Z) : list Z :=
  if n <=? 0 then [] else match count with [] => [] | _ :: rest => 0 :: zeros rest (n - 1) end.

(** The least of [best] and the costs, without D times the output, of the starts that belong to
    the rows [now].  The rows [later] are those of the ends; waiting has cost [wait] so far. *)
Fixpoint cheapest (D s peak : Z) (now later : list (Z * Z)) (wait best : Z) : Z :=
  match now with
  | [] => best
  | (p, w) :: now' =>
      if best <=? wait then best
      else match later with
           | [] => 0
           | (q, v) :: later' =>
               let c := wait + (peak * q - s * p) - (v - w) in
               cheapest D s peak now' later' (wait + D) (if c <? best then c else best)
           end
  end.

(** The last time with a price is [b] + [count]. *)
Definition least_of (D b count : Z) (now later : list (Z * Z)) (r : request) : Z :=
  let wait := b + count - arrival r in
  D * output r +
  (if wait <=? 0 then 0
   else
     let o := Z.min (output r) count in
     let after := skip now (arrival r - b) in
     cheapest D (prompt r) (prompt r + o) after (skip later (arrival r - b + o)) 0 (D * wait)).

(** The same where the request may pause; [prices] are those after [b], and [rise] is the last time
    after which they rise.  Waiting for longer than [slack] costs more than no pause. *)
Definition least_with_pauses (D b count rise : Z) (prices : list Z) (now later : list (Z * Z))
    (r : request) : Z :=
  let without := least_of D b count now later r in
  if rise <=? arrival r then without
  else
    let wait := b + count - arrival r in
    let slack := Z.min ((without - D * output r) / D) wait in
    Z.min without
      (D * output r + least_paused D (prompt r) (skip prices (arrival r - b))
                        (Z.to_nat (Z.min (output r) wait)) (Z.to_nat slack)).

Definition lowest (f : request -> Z) (start : Z) (l : list request) : Z :=
  fold_right (fun r m => Z.min (f r) m) start l.

Fixpoint sum_of (l : list Z) (acc : Z) : Z :=
  match l with [] => acc | x :: rest => sum_of rest (acc + x) end.

Fixpoint size {A} (l : list A) (acc : Z) : Z :=
  match l with [] => acc | _ :: rest => size rest (acc + 1) end.

Definition sum_least (D : Z) (least : request -> Z) (early : request -> bool) (l : list request)
  : Z :=
  fold_left (fun acc r => acc + (if early r then D * output r else least r)) l 0.

(** The bound that prices prove, without or with pauses; none where they are not prices. *)
Definition prices_value (pauses : bool) (I : instance) (D first : Z) (numerators : list Z)
  : option Z :=
  if (1 <=? D) && forallb (fun x => 0 <=? x) numerators then
    let early r := arrival r + output r <? first in
    let late := filter (fun r => negb (early r)) (requests I) in
    let b := lowest arrival (first - 1) late in
    let gap := first - 1 - b in
    let prices := repeat 0 (Z.to_nat gap) ++ numerators in
    let count := size prices 0 in
    let longest := fold_left (fun m r => Z.max m (Z.min (output r) count)) late 0 in
    let now := table 0 0 (removelast prices) in
    let later := table 0 0 (prices ++ zeros prices longest) in
    let least := if pauses then least_with_pauses D b count (last_rise (b + 1) b prices) prices now later
                 else least_of D b count now later in
    Some (- ((Z.of_nat (workers I) * memory I * sum_of numerators 0
              - sum_least D least early (requests I)) / D))
  else None.

(** ** Why that is right *)

Lemma sum_of_total l : forall acc, sum_of l acc = acc + total (fun x => x) l.
Proof. induction l as [|x l IH]; simpl; intros; [lia|]. rewrite IH. lia. Qed.

Lemma size_length {A} (l : list A) : forall acc, size l acc = acc + Z.of_nat (length l).
Proof.
  induction l as [|x l IH]; cbn [size length]; intros; [lia|]. rewrite IH. lia.
Qed.

Lemma skip_skipn {A} (l : list A) : forall n, skip l n = skipn (Z.to_nat n) l.
Proof.
  induction l as [|x l IH]; intros n; cbn [skip].
  - destruct (n <=? 0); now rewrite skipn_nil.
  - destruct (n <=? 0) eqn:E.
    + replace (Z.to_nat n) with O by lia. reflexivity.
    + rewrite IH. replace (Z.to_nat n) with (S (Z.to_nat (n - 1))) by lia. reflexivity.
Qed.

Section Evaluation.
Variables (D b : Z) (price : Z -> Z).
Hypothesis D_positive : 1 <= D.
Hypothesis price_nonneg : forall t, 0 <= price t.

Definition P (k : Z) : Z := total price (rounds (b + 1) (Z.to_nat (k - b))).
Definition W (k : Z) : Z := total P (rounds b (Z.to_nat (k - b))).

Lemma P_first : P b = 0.
Proof. unfold P. now replace (Z.to_nat (b - b)) with O by lia. Qed.

Lemma W_first : W b = 0.
Proof. unfold W. now replace (Z.to_nat (b - b)) with O by lia. Qed.

Lemma P_next k : b <= k -> P (k + 1) = P k + price (k + 1).
Proof.
  intros H. unfold P. replace (Z.to_nat (k + 1 - b)) with (Z.to_nat (k - b) + 1)%nat by lia.
  rewrite rounds_app, total_app. cbn [rounds total]. f_equal.
  replace (b + 1 + Z.of_nat (Z.to_nat (k - b))) with (k + 1) by lia. lia.
Qed.

Lemma W_next k : b <= k -> W (k + 1) = W k + P k.
Proof.
  intros H. unfold W. replace (Z.to_nat (k + 1 - b)) with (Z.to_nat (k - b) + 1)%nat by lia.
  rewrite rounds_app, total_app. cbn [rounds total]. f_equal.
  replace (b + Z.of_nat (Z.to_nat (k - b))) with k by lia. lia.
Qed.

(** The formula of the docs. *)
Lemma payment_by_sums r k :
  b <= k -> 0 <= output r ->
  payment price r k =
  (prompt r + output r) * P (k + output r) - prompt r * P k - (W (k + output r) - W k).
Proof.
  intros Hk Ho. unfold payment.
  assert (H : forall n, total (fun g => price (k + g) * (prompt r + g)) (rounds 1 n) =
    (prompt r + Z.of_nat n) * P (k + Z.of_nat n) - prompt r * P k - (W (k + Z.of_nat n) - W k)).
  { induction n as [|n IH].
    - cbn [rounds total]. replace (k + Z.of_nat 0) with k by lia. lia.
    - replace (S n) with (n + 1)%nat by lia.
      rewrite rounds_app, total_app, IH. cbn [rounds total].
      replace (k + Z.of_nat (n + 1)) with (k + Z.of_nat n + 1) by lia.
      rewrite P_next, W_next by lia.
      replace (k + (1 + Z.of_nat n)) with (k + Z.of_nat n + 1) by lia.
      replace (Z.of_nat (n + 1)) with (Z.of_nat n + 1) by lia. ring. }
  rewrite H. rewrite Z2Nat.id by lia. reflexivity.
Qed.

(** A list of rows that holds (P, W) for the times from [k] on. *)
Definition rows_from (k : Z) (l : list (Z * Z)) : Prop :=
  forall i row, nth_error l i = Some row -> row = (P (k + Z.of_nat i), W (k + Z.of_nat i)).

Lemma table_rows prices : forall k,
  b <= k ->
  (forall i x, nth_error prices i = Some x -> x = price (k + 1 + Z.of_nat i)) ->
  rows_from k (table (P k) (W k) prices).
Proof.
  induction prices as [|x l IH]; intros k Hk H i row Hi; cbn [table] in Hi.
  - destruct i as [|[|i]]; simpl in Hi; try discriminate. inversion Hi.
    now replace (k + Z.of_nat 0) with k by lia.
  - destruct i as [|i]; simpl in Hi.
    + inversion Hi. now replace (k + Z.of_nat 0) with k by lia.
    + assert (Hx : x = price (k + 1)).
      { specialize (H O x eq_refl). now replace (k + 1 + Z.of_nat 0) with (k + 1) in H by lia. }
      rewrite Hx, <- P_next, <- W_next in Hi by auto.
      assert (Hl : forall j y, nth_error l j = Some y -> y = price (k + 1 + 1 + Z.of_nat j)).
      { intros j y Hj. specialize (H (S j) y Hj). rewrite H. f_equal. lia. }
      specialize (IH (k + 1) ltac:(lia) Hl i row Hi). rewrite IH. do 2 f_equal; lia.
Qed.

Lemma rows_skip k l n : rows_from k l -> 0 <= n -> rows_from (k + n) (skip l n).
Proof.
  intros H Hn i row Hi. rewrite skip_skipn in Hi.
  assert (E : nth_error (skipn (Z.to_nat n) l) i = nth_error l (Z.to_nat n + i)).
  { clear. revert l. induction (Z.to_nat n) as [|m IH]; intros l; simpl; auto.
    destruct l; simpl; auto. destruct i; auto. }
  rewrite E in Hi. apply H in Hi. rewrite Hi. do 2 f_equal; lia.
Qed.

Lemma rows_tail k row l : rows_from k (row :: l) -> rows_from (k + 1) l.
Proof.
  intros H i x Hi. specialize (H (S i) x Hi). rewrite H. do 2 f_equal; lia.
Qed.

Lemma payment_nonneg r k : 0 <= prompt r -> 0 <= payment price r k.
Proof.
  intros Hs. apply total_nonneg. intros g Hg. apply rounds_in in Hg.
  apply Z.mul_nonneg_nonneg; [auto|lia].
Qed.

Lemma cheapest_sound r : 0 <= prompt r -> 0 <= output r -> forall now later k wait best,
  b <= k -> wait = D * (k - arrival r) -> 0 <= wait ->
  rows_from k now -> rows_from (k + output r) later ->
  let c := cheapest D (prompt r) (prompt r + output r) now later wait best in
  (0 <= best -> c <= best) /\
  forall j, k <= j < k + Z.of_nat (length now) -> c <= D * (j - arrival r) + payment price r j.
Proof.
  intros Hs Ho. induction now as [|[p w] now IH]; intros later k wait best Hk Hw Hw0 Hn Hl.
  - simpl. split; [lia|]. intros j Hj. simpl in Hj. lia.
  - cbn [cheapest]. destruct (best <=? wait) eqn:E.
    + split; [lia|]. intros j Hj. pose proof (payment_nonneg r j Hs). nia.
    + destruct later as [|[q v] later].
      * split; [lia|]. intros j Hj. pose proof (payment_nonneg r j Hs). nia.
      * set (x := wait + ((prompt r + output r) * q - prompt r * p) - (v - w)).
        assert (Hx : x = D * (k - arrival r) + payment price r k).
        { specialize (Hn O (p, w) eq_refl). specialize (Hl O (q, v) eq_refl).
          replace (k + Z.of_nat 0) with k in Hn by lia.
          replace (k + output r + Z.of_nat 0) with (k + output r) in Hl by lia.
          inversion Hn. inversion Hl. rewrite payment_by_sums by lia. unfold x. subst. ring. }
        assert (Hx0 : 0 <= x) by (pose proof (payment_nonneg r k Hs); lia).
        destruct (IH later (k + 1) (wait + D) (if x <? best then x else best)) as [I1 I2].
        { lia. } { lia. } { lia. } { eapply rows_tail; eauto. }
        { replace (k + 1 + output r) with (k + output r + 1) by lia. eapply rows_tail; eauto. }
        split.
        -- intros Hb. destruct (x <? best) eqn:E2; lia.
        -- intros j Hj. cbn [length] in Hj. destruct (Z.eq_dec j k) as [->|Hne].
           ++ rewrite <- Hx. destruct (x <? best) eqn:E2; lia.
           ++ apply I2. lia.
Qed.

(** Tokens after the last priced time cost nothing. *)
Lemma payment_cut r count k :
  (forall t, b + count < t -> price t = 0) -> b <= k -> 0 <= count ->
  payment price r k = payment price (Request (arrival r) (prompt r) (Z.min (output r) count)) k.
Proof.
  intros Hz Hk Hc. unfold payment. cbn [prompt output].
  destruct (Z_le_gt_dec (output r) count); [now rewrite Z.min_l by lia|].
  rewrite Z.min_r by lia.
  replace (Z.to_nat (output r)) with (Z.to_nat count + Z.to_nat (output r - count))%nat by lia.
  rewrite rounds_app, total_app.
  rewrite (total_zero _ (rounds (1 + _) _)); [lia|].
  intros j Hj. apply rounds_in in Hj. rewrite Hz; lia.
Qed.

Lemma least_of_sound count now later r :
  0 <= prompt r -> 0 <= output r -> 0 <= count -> b <= arrival r ->
  (forall t, b + count < t -> price t = 0) ->
  rows_from b now -> rows_from b later -> count <= Z.of_nat (length now) ->
  least_cost D price r (least_of D b count now later r).
Proof.
  intros Hs Ho Hc Ha Hz Hn Hl Hlen. unfold least_of.
  destruct (b + count - arrival r <=? 0) eqn:E.
  - intros k Hk. unfold cost. pose proof (payment_nonneg r k Hs). nia.
  - apply (starts_to_look_at D price r (b + count)); [lia|auto|].
    intros k Hk. unfold cost.
    set (r' := Request (arrival r) (prompt r) (Z.min (output r) count)).
    rewrite (payment_cut r count k) by (auto; lia). fold r'.
    pose proof (cheapest_sound r' Hs ltac:(simpl; lia)
      (skip now (arrival r - b)) (skip later (arrival r - b + Z.min (output r) count))
      (arrival r) 0 (D * (b + count - arrival r)) Ha) as H.
    simpl arrival in H. simpl prompt in H. simpl output in H.
    destruct H as [H1 H2]; try lia.
    { replace (arrival r) with (b + (arrival r - b)) at 1 by lia. apply rows_skip; [auto|lia]. }
    { replace (arrival r + Z.min (output r) count)
        with (b + (arrival r - b + Z.min (output r) count)) by lia.
      apply rows_skip; [auto|lia]. }
    destruct (Z_lt_le_dec k (b + count)).
    + assert (Hk2 : arrival r <= k < arrival r + Z.of_nat (length (skip now (arrival r - b)))).
      { rewrite skip_skipn, skipn_length. lia. }
      specialize (H2 k Hk2). simpl. nia.
    + replace k with (b + count) by lia. specialize (H1 ltac:(nia)).
      pose proof (payment_nonneg r' (b + count) Hs). simpl. nia.
Qed.

End Evaluation.

Lemma lowest_le f l : forall x r, In r l -> lowest f x l <= f r.
Proof.
  induction l as [|a l IH]; simpl; intros x r []; [subst; lia|]. specialize (IH x r H). lia.
Qed.

Lemma lowest_start f x l : lowest f x l <= x.
Proof. induction l; simpl; lia. Qed.

Lemma removelast_length {A} (l : list A) : length (removelast l) = pred (length l).
Proof.
  induction l as [|a [|c l] IH]; auto.
  change (removelast (a :: c :: l)) with (a :: removelast (c :: l)).
  cbn [length] in *. lia.
Qed.

Lemma table_length prices : forall p w, length (table p w prices) = S (length prices).
Proof. induction prices; intros; simpl; auto. Qed.

Lemma nth_error_removelast {A} (l : list A) i x :
  nth_error (removelast l) i = Some x -> nth_error l i = Some x.
Proof.
  revert i. induction l as [|a [|c l] IH]; intros i H; [destruct i; discriminate..|].
  change (removelast (a :: c :: l)) with (a :: removelast (c :: l)) in H.
  destruct i; [exact H|]. exact (IH i H).
Qed.

Lemma zeros_nth count : forall n i x, nth_error (zeros count n) i = Some x -> x = 0.
Proof.
  induction count as [|a l IH]; intros n i x; cbn [zeros].
  - destruct (n <=? 0); destruct i; discriminate.
  - destruct (n <=? 0).
    + destruct i; discriminate.
    + destruct i; simpl; [congruence|apply IH].
Qed.

Lemma sum_least_total D least early l :
  sum_least D least early l
  = total (fun c => c) (map (fun r => if early r then D * output r else least r) l).
Proof.
  unfold sum_least.
  enough (G : forall acc, fold_left (fun acc r => acc + (if early r then D * output r else least r)) l acc
            = acc + total (fun c => c) (map (fun r => if early r then D * output r else least r) l))
    by (rewrite G; lia).
  induction l as [|r l IH]; intros acc; simpl; [lia|]. rewrite IH. lia.
Qed.

Lemma least_with_pauses_sound D b count price prices now later r :
  1 <= D -> (forall t, 0 <= price t) -> 0 <= prompt r -> 1 <= output r -> b <= arrival r ->
  (forall i, nth i prices 0 = price (b + 1 + Z.of_nat i)) ->
  least_cost D price r (least_of D b count now later r) ->
  least_paused_cost D price r
    (least_with_pauses D b count (last_rise (b + 1) b prices) prices now later r).
Proof.
  intros HD Hn Hs Ho Hb Hp Hleast. unfold least_with_pauses.
  destruct (last_rise (b + 1) b prices <=? arrival r) eqn:E.
  - apply falling_prices_need_no_pauses; auto. intros t Ht.
    apply (last_rise_spec price prices (b + 1) b); auto; lia.
  - intros times Ha. etransitivity; [apply Z.le_min_r|].
    apply (least_paused_sound price r D); auto; [lia..|].
    intros i. rewrite skip_skipn.
    assert (G : forall n (l : list Z) i, nth i (skipn n l) 0 = nth (n + i) l 0).
    { clear. induction n as [|n IH]; intros l i; [reflexivity|].
      destruct l as [|x l]; [destruct i; reflexivity|]. apply IH. }
    rewrite G, Hp. f_equal. lia.
Qed.

(** A request that can be done before the first price costs its output, and none costs less. *)
Lemma output_is_least D price r :
  0 <= D -> (forall t, 0 <= price t) -> 0 <= prompt r -> 1 <= output r ->
  least_cost D price r (D * output r) /\ least_paused_cost D price r (D * output r).
Proof.
  intros HD Hn Hs Ho. split.
  - intros k Hk. unfold cost. pose proof (payment_nonneg price Hn r k Hs). nia.
  - intros times [Hlen Hi]. unfold paused_cost, paused_latency.
    pose proof (room_after _ _ Hi ltac:(intros C; rewrite C in Hlen; cbn [length] in Hlen; lia)).
    pose proof (paid_nonneg price r 1 times Hn Hs ltac:(lia)). nia.
Qed.

(** Of which schedules a bound speaks. *)
Definition covers (pauses : bool) (I : instance) (b : Z) : Prop :=
  if pauses then bounds with_pauses I b else bounds runs I b.

(** What the checker accepts by prices is true. *)
Theorem prices_value_sound pauses (I : instance) (D first : Z) (numerators : list Z) (v : Z) :
  well_formed I -> prices_value pauses I D first numerators = Some v -> covers pauses I v.
Proof.
  intros HI. unfold prices_value.
  destruct (1 <=? D) eqn:HD; [simpl|discriminate].
  destruct (forallb (fun x => 0 <=? x) numerators) eqn:Hp; [|discriminate].
  set (early := fun r => arrival r + output r <? first).
  set (late := filter (fun r => negb (early r)) (requests I)).
  set (b := lowest arrival (first - 1) late).
  set (prices := repeat 0 (Z.to_nat (first - 1 - b)) ++ numerators).
  set (count := size prices 0).
  set (longest := fold_left (fun m r => Z.max m (Z.min (output r) count)) late 0).
  set (now := table 0 0 (removelast prices)).
  set (later := table 0 0 (prices ++ zeros prices longest)).
  set (least := if pauses then _ else _).
  intros E. injection E as <-.
  set (price := price_at first numerators).
  assert (Hb : b <= first - 1) by apply lowest_start.
  assert (Hnn : Forall (fun x => 0 <= x) numerators).
  { apply Forall_forall. intros x Hx. rewrite forallb_forall in Hp. specialize (Hp x Hx). lia. }
  assert (Hpn : forall t, 0 <= price t).
  { intros t. unfold price, price_at. destruct (t <? first); [lia|].
    destruct (nth_in_or_default (Z.to_nat (t - first)) numerators 0) as [H| ->]; [|lia].
    rewrite Forall_forall in Hnn. auto. }
  assert (Hcount : count = first - 1 - b + Z.of_nat (length numerators)).
  { unfold count, prices. rewrite size_length, app_length, repeat_length. lia. }
  assert (Hz : forall t, b + count < t -> price t = 0).
  { intros t Ht. unfold price, price_at. destruct (t <? first) eqn:E; auto.
    apply nth_overflow. lia. }
  assert (Hnth : forall i x, nth_error prices i = Some x -> x = price (b + 1 + Z.of_nat i)).
  { intros i x Hi. unfold prices in Hi. unfold price, price_at.
    destruct (lt_dec i (Z.to_nat (first - 1 - b))) as [Hlt|Hge].
    - rewrite nth_error_app1 in Hi by (rewrite repeat_length; lia).
      apply nth_error_In, repeat_spec in Hi.
      replace (b + 1 + Z.of_nat i <? first) with true by (symmetry; lia). auto.
    - rewrite nth_error_app2 in Hi by (rewrite repeat_length; lia).
      rewrite repeat_length in Hi.
      replace (b + 1 + Z.of_nat i <? first) with false by (symmetry; lia).
      symmetry. apply nth_error_nth.
      rewrite <- Hi. f_equal. lia. }
  assert (Hnow : rows_from b price b now).
  { pose proof (table_rows b price (removelast prices) b ltac:(lia)) as H.
    rewrite P_first, W_first in H. apply H.
    intros i x Hi. apply Hnth. now apply nth_error_removelast. }
  assert (Hlater : rows_from b price b later).
  { pose proof (table_rows b price (prices ++ zeros prices longest) b ltac:(lia)) as H.
    rewrite P_first, W_first in H. apply H.
    intros i x Hi. destruct (lt_dec i (length prices)) as [Hlt|Hge].
    - rewrite nth_error_app1 in Hi by lia. auto.
    - rewrite nth_error_app2 in Hi by lia. apply zeros_nth in Hi. subst x. symmetry. apply Hz.
      unfold count. rewrite size_length. lia. }
  rewrite sum_least_total, sum_of_total.
  set (costs := map _ (requests I)).
  assert (Round : forall L, total (fun c => c) costs
            - Z.of_nat (workers I) * memory I * total (fun x => x) numerators <= D * L ->
            - ((Z.of_nat (workers I) * memory I * (0 + total (fun x => x) numerators)
                - total (fun c => c) costs) / D) <= L).
  { intros L. set (mM := Z.of_nat (workers I) * memory I * (0 + total (fun x => x) numerators)) in *.
    pose proof (Z.div_mod (mM - total (fun c => c) costs) D ltac:(lia)).
    pose proof (Z.mod_pos_bound (mM - total (fun c => c) costs) D ltac:(lia)). unfold mM in *. nia. }
  assert (Hr := proj2 HI). rewrite Forall_forall in Hr.
  assert (Hlate : forall r, In r (requests I) -> early r = false -> b <= arrival r).
  { intros r Hin He. apply lowest_le. apply filter_In. split; auto. now rewrite He. }
  assert (Hruns : forall r, In r (requests I) -> early r = false ->
            least_cost D price r (least_of D b count now later r)).
  { intros r Hin He. destruct (Hr r Hin) as (H0 & H1 & H2 & H3). specialize (Hlate r Hin He).
    apply least_of_sound; auto; try lia.
    unfold now. rewrite table_length, removelast_length. unfold count. rewrite size_length. lia. }
  assert (All : forall (P : request -> Z -> Prop),
            (forall r, In r (requests I) -> early r = true -> P r (D * output r)) ->
            (forall r, In r (requests I) -> early r = false -> P r (least r)) ->
            Forall2 P (requests I) costs).
  { intros P P1 P2. unfold costs. clearbody least early. clear - P1 P2. revert P1 P2.
    generalize (requests I) as l. induction l as [|r l IH]; intros P1 P2; constructor.
    - destruct (early r) eqn:Ee; [apply P1|apply P2]; auto; now left.
    - apply IH; intros r' Hin; [apply P1|apply P2]; now right. }
  destruct pauses; intros s Hs; apply Round.
  - apply prices_cover_pauses with (first := first); auto;
      [|now apply feasible_with_pauses_served]. fold price. apply All; intros r Hin He;
      destruct (Hr r Hin) as (H0 & H1 & H2 & H3).
    + apply output_is_least; auto; lia.
    + apply (least_with_pauses_sound D b count price prices now later r); auto; try lia.
      intros i. destruct (nth_error prices i) as [x|] eqn:Ei.
      * rewrite (nth_error_nth prices i 0 Ei). now apply Hnth.
      * apply nth_error_None in Ei. rewrite nth_overflow by auto. symmetry. apply Hz.
        unfold count. rewrite size_length. lia.
  - apply prices_prove_a_bound with (first := first); auto; [|now apply feasible_served].
    fold price. apply All; intros r Hin He; [|now apply Hruns].
    destruct (Hr r Hin) as (H0 & H1 & H2 & H3). apply output_is_least; auto; lia.
Qed.

Print Assumptions prices_value_sound.
