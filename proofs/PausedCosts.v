(** * The least cost of a request that may pause

    docs/theory/pauses.md, "Prices": the program over tokens and times, here from the last token back. *)

From Coq Require Import ZArith List Lia Bool.
From KV Require Import Problem Sums Memory Services Prices Pauses.
Import ListNotations.
Open Scope Z_scope.

(** Costs of the last tokens from a token of [h] on, when it may come after the times k, k + 1, ...;
    [prices] are those of k + 1, ..., and [next] are the costs from the next token on, after
    k + 1, k + 2, ...  What comes after the last of these times costs [beyond] or more. *)
Fixpoint row (h beyond : Z) (prices next : list Z) : list Z :=
  match next with
  | [] => []
  | later :: next' =>
      let rest := row h beyond (tl prices) next' in
      Z.min (hd beyond rest) (hd 0 prices * h + later) :: rest
  end.

(** The same of the first [count] tokens; those after them wait and pay nothing. *)
Fixpoint token_rows (count : nat) (h beyond : Z) (prices waits : list Z) : list Z :=
  match count with
  | O => waits
  | S n => row h beyond prices (token_rows n (h + 1) beyond (tl prices) waits)
  end.

(** The costs of waiting: 0, D, ..., [slack] D. *)
Fixpoint waiting (D : Z) (slack : nat) (cost : Z) : list Z :=
  cost :: match slack with O => [] | S n => waiting D n (cost + D) end.

(** Least cost, without D times the output; [prices] are those after the arrival, [tokens] of the
    request may pay, and no completion later than [slack] more than its output is looked at. *)
Definition least_paused (D s : Z) (prices : list Z) (tokens slack : nat) : Z :=
  let beyond := D * (Z.of_nat slack + 1) in
  hd beyond (token_rows tokens (s + 1) beyond prices (waiting D slack 0)).

(** The last time after which prices rise. *)
Fixpoint last_rise (t found : Z) (prices : list Z) : Z :=
  match prices with
  | x :: ((y :: _) as rest) => last_rise (t + 1) (if x <? y then t else found) rest
  | _ => found
  end.

(** ** Why that is right *)

Lemma waited a times : increasing a times -> a + Z.of_nat (length times) <= last times a.
Proof.
  revert a. induction times as [|t l IH]; intros a H; [cbn; lia|]. destruct H as [Ht H].
  rewrite last_cons. specialize (IH t H). cbn [length]. lia.
Qed.

Section Rows.
Variables (price : Z -> Z) (r : request) (D : Z) (slack : nat).
Hypothesis price_nonneg : forall t, 0 <= price t.
Hypothesis D_nonneg : 0 <= D.
Hypothesis prompt_nonneg : 0 <= prompt r.

(** What is left of the cost when the tokens from the [j]-th on come at [times], after [t]. *)
Definition left_over (j : Z) (times : list Z) (t : Z) : Z :=
  paid price r j times + D * (last times t - arrival r - output r).

Lemma row_sound j n beyond : forall next prices k,
  (forall i, nth i prices 0 = price (k + 1 + Z.of_nat i)) ->
  (forall i v, nth_error next i = Some v -> forall times,
     increasing (k + 1 + Z.of_nat i) times -> length times = n ->
     v <= left_over (j + 1) times (k + 1 + Z.of_nat i)) ->
  (forall times, increasing (k + Z.of_nat (length next)) times -> length times = S n ->
     beyond <= left_over j times (k + Z.of_nat (length next))) ->
  forall i v, nth_error (row (prompt r + j) beyond prices next) i = Some v -> forall times,
    increasing (k + Z.of_nat i) times -> length times = S n ->
    v <= left_over j times (k + Z.of_nat i).
Proof.
  induction next as [|later next IH]; intros prices k Hp Hn Hb i v Hi times Ht Hlen;
    cbn [row] in Hi; [destruct i; discriminate|].
  assert (Hp' : forall i, nth i (tl prices) 0 = price (k + 1 + 1 + Z.of_nat i)).
  { intros i'. specialize (Hp (S i')). destruct prices as [|p prices]; cbn [tl nth] in *.
    - destruct i'; rewrite Hp; f_equal; lia.
    - rewrite Hp. f_equal. lia. }
  specialize (IH (tl prices) (k + 1) Hp').
  assert (Hrest : forall i v, nth_error (row (prompt r + j) beyond (tl prices) next) i = Some v ->
            forall times, increasing (k + 1 + Z.of_nat i) times -> length times = S n ->
            v <= left_over j times (k + 1 + Z.of_nat i)).
  { apply IH.
    - intros i' v' Hi' times' Ht' Hl'. specialize (Hn (S i') v' Hi' times').
      replace (k + 1 + Z.of_nat (S i')) with (k + 1 + 1 + Z.of_nat i') in Hn by lia. auto.
    - intros times' Ht' Hl'. specialize (Hb times'). cbn [length] in Hb.
      replace (k + Z.of_nat (S (length next))) with (k + 1 + Z.of_nat (length next)) in Hb by lia.
      auto. }
  destruct i as [|i]; cbn [nth_error] in Hi.
  2: { specialize (Hrest i v Hi times).
       replace (k + 1 + Z.of_nat i) with (k + Z.of_nat (S i)) in Hrest by lia. auto. }
  injection Hi as <-. destruct times as [|u times]; [discriminate|]. injection Hlen as Hlen.
  replace (k + Z.of_nat 0) with k in * by lia. destruct Ht as [Hu Ht].
  destruct (Z.eq_dec u (k + 1)) as [->|Hne].
  - specialize (Hn O later eq_refl times). replace (k + 1 + Z.of_nat 0) with (k + 1) in Hn by lia.
    specialize (Hn Ht Hlen). unfold left_over in *. cbn [paid]. rewrite last_cons.
    pose proof (Hp O) as H0. replace (k + 1 + Z.of_nat 0) with (k + 1) in H0 by lia.
    replace (hd 0 prices) with (price (k + 1)) by (rewrite <- H0; destruct prices; reflexivity).
    lia.
  - assert (Hinc : increasing (k + 1) (u :: times)) by (split; [lia|auto]).
    assert (E : left_over j (u :: times) k = left_over j (u :: times) (k + 1)).
    { unfold left_over. now rewrite !last_cons. }
    rewrite E. transitivity (hd beyond (row (prompt r + j) beyond (tl prices) next)); [lia|].
    destruct (row (prompt r + j) beyond (tl prices) next) as [|v0 rest] eqn:Er; cbn [hd].
    + destruct next as [|x next]; [|discriminate].
      specialize (Hb (u :: times)). cbn [length Z.of_nat Pos.of_succ_nat] in Hb. apply Hb; auto.
    + specialize (Hrest O v0 eq_refl (u :: times)).
      replace (k + 1 + Z.of_nat 0) with (k + 1) in Hrest by lia. apply Hrest; auto.
      cbn [length]. lia.
Qed.

Lemma row_length h beyond : forall next prices, length (row h beyond prices next) = length next.
Proof. induction next as [|x l IH]; intros prices; cbn [row length]; auto. Qed.

Lemma waiting_length : forall n c, length (waiting D n c) = S n.
Proof. induction n as [|n IH]; intros c; cbn [waiting length]; auto. Qed.

Lemma waiting_nth : forall n c i v, nth_error (waiting D n c) i = Some v -> v = c + D * Z.of_nat i.
Proof.
  induction n as [|n IH]; intros c i v H; destruct i as [|i]; cbn [waiting nth_error] in H;
    try (injection H as <-; lia).
  - destruct i; discriminate.
  - apply IH in H. lia.
Qed.

Lemma token_rows_length count : forall h beyond prices waits,
  length (token_rows count h beyond prices waits) = length waits.
Proof. induction count; intros; cbn [token_rows]; auto. rewrite row_length. auto. Qed.

Lemma token_rows_sound count : forall j prices,
  1 <= j -> Z.of_nat count + j <= output r + 1 ->
  (forall i, nth i prices 0 = price (arrival r + j + Z.of_nat i)) ->
  forall i v,
    nth_error (token_rows count (prompt r + j) (D * (Z.of_nat slack + 1)) prices
                 (waiting D slack 0)) i = Some v ->
    forall times, increasing (arrival r + j - 1 + Z.of_nat i) times ->
      Z.of_nat (length times) = output r - j + 1 ->
      v <= left_over j times (arrival r + j - 1 + Z.of_nat i).
Proof.
  induction count as [|c IH]; intros j prices Hj Hc Hp i v Hi times Ht Hlen;
    cbn [token_rows] in Hi.
  - apply waiting_nth in Hi. subst v. pose proof (waited _ _ Ht) as Hw.
    pose proof (paid_nonneg price r j times price_nonneg prompt_nonneg Hj). unfold left_over. nia.
  - replace (prompt r + j + 1) with (prompt r + (j + 1)) in Hi by lia.
    eapply (row_sound j (Z.to_nat (output r - j)) (D * (Z.of_nat slack + 1)) _ prices
              (arrival r + j - 1)); [..|exact Hi|exact Ht|lia].
    + intros i'. rewrite Hp. f_equal. lia.
    + intros i' v' Hi' times' Ht' Hl'.
      specialize (IH (j + 1) (tl prices) ltac:(lia) ltac:(lia)).
      replace (arrival r + j - 1 + 1 + Z.of_nat i') with (arrival r + (j + 1) - 1 + Z.of_nat i') in *
        by lia.
      apply IH; auto; [|lia]. intros q. specialize (Hp (S q)).
      destruct prices as [|p prices]; cbn [tl nth] in *.
      * destruct q; rewrite Hp; f_equal; lia.
      * rewrite Hp. f_equal. lia.
    + intros times' Ht' Hl'. rewrite token_rows_length, waiting_length in *.
      pose proof (waited _ _ Ht') as Hw. pose proof (paid_nonneg price r j times' price_nonneg prompt_nonneg Hj).
      unfold left_over. nia.
Qed.

(** No paused run costs less, whatever is looked at. *)
Theorem least_paused_sound prices tokens :
  1 <= output r ->
  Z.of_nat tokens <= output r ->
  (forall i, nth i prices 0 = price (arrival r + 1 + Z.of_nat i)) ->
  least_paused_cost D price r (D * output r + least_paused D (prompt r) prices tokens slack).
Proof.
  intros Ho Hk Hp times [Hlen Hi]. unfold least_paused.
  pose proof (token_rows_sound tokens 1 prices ltac:(lia) ltac:(lia) Hp O) as H.
  destruct (token_rows _ _ _ prices _) as [|v l] eqn:E.
  { apply (f_equal (@length Z)) in E. rewrite token_rows_length, waiting_length in E. discriminate. }
  specialize (H v eq_refl times). replace (arrival r + 1 - 1 + Z.of_nat 0) with (arrival r) in H by lia.
  specialize (H Hi ltac:(lia)). cbn [hd]. unfold left_over in H.
  unfold paused_cost, paused_latency.
  destruct times as [|t times]; [cbn [length] in Hlen; lia|].
  rewrite last_cons in *. lia.
Qed.

End Rows.

Lemma last_rise_spec price prices : forall t found,
  (forall u, 0 <= price u) ->
  (forall i, nth i prices 0 = price (t + Z.of_nat i)) -> found < t ->
  found <= last_rise t found prices /\
  forall u, t <= u -> last_rise t found prices < u -> price (u + 1) <= price u.
Proof.
  induction prices as [|x prices IH]; intros t found Hn Hp Hf.
  - cbn [last_rise]. split; [lia|]. intros u Hu _. specialize (Hp (Z.to_nat (u + 1 - t))).
    replace (t + Z.of_nat (Z.to_nat (u + 1 - t))) with (u + 1) in Hp by lia.
    rewrite <- Hp. destruct (Z.to_nat _); apply Hn.
  - assert (Hp' : forall i, nth i prices 0 = price (t + 1 + Z.of_nat i)).
    { intros i. specialize (Hp (S i)). cbn [nth] in Hp. rewrite Hp. f_equal. lia. }
    pose proof (Hp O) as H0. cbn [nth] in H0. replace (t + Z.of_nat 0) with t in H0 by lia.
    destruct prices as [|y rest].
    + cbn [last_rise]. split; [lia|]. intros u Hu _. specialize (Hp' (Z.to_nat (u - t))).
      replace (t + 1 + Z.of_nat (Z.to_nat (u - t))) with (u + 1) in Hp' by lia.
      rewrite <- Hp'. destruct (Z.to_nat _); apply Hn.
    + pose proof (Hp' O) as H1. cbn [nth] in H1. replace (t + 1 + Z.of_nat 0) with (t + 1) in H1 by lia.
      change (last_rise t found (x :: y :: rest))
        with (last_rise (t + 1) (if x <? y then t else found) (y :: rest)).
      destruct (IH (t + 1) (if x <? y then t else found) Hn Hp' ltac:(destruct (x <? y); lia))
        as [I1 I2].
      split; [destruct (x <? y); lia|]. intros u Hu HR.
      destruct (Z.eq_dec u t) as [->|]; [|apply I2; lia].
      destruct (Z.ltb_spec x y); lia.
Qed.

Print Assumptions least_paused_sound.
