(** * The search of what stages have left, on one worker

    docs/theory/configurations.md, "The forward search": Claims 3.7, 3.10 and 3.11. *)

From Coq Require Import ZArith List Lia Bool Permutation Orders Mergesort.
From KV Require Import Problem Sums Memory Services Prices PriceCheck States Heaviest Configurations
  ConfigurationCheck.
Import ListNotations.
Open Scope Z_scope.

(** ** What is computed *)

(** A partial schedule: each request with its start, if that is decided. *)
Definition partial := list (request * option Z).

Fixpoint begun (p : partial) : schedule :=
  match p with
  | [] => []
  | (r, Some k) :: rest => Place r k 0 :: begun rest
  | (_, None) :: rest => begun rest
  end.

(** A request, its allowed starts with their costs, and the least of them. *)
Record option_row := Row_of { whose : request; costs_of : list (Z * Z); least_of_it : Z }.

Fixpoint lookup (k : Z) (l : list (Z * Z)) : option Z :=
  match l with
  | [] => None
  | (x, c) :: rest => if x =? k then Some c else lookup k rest
  end.

(** The reduced cost of a start; [never] where it is not allowed. *)
Definition reduced (D last never : Z) (x : option_row) (k : Z) : Z :=
  let k' := stands_for last (whose x) k in
  match lookup k' (costs_of x) with
  | Some c => c - least_of_it x + D * (k - k')
  | None => never
  end.

(** The least reduced cost of the starts from [w] on. *)
Definition ahead (D last never : Z) (x : option_row) (w : Z) : Z :=
  fold_left (fun m kc =>
    if w <=? fst kc then Z.min m (snd kc - least_of_it x)
    else if fst kc =? Z.max (arrival (whose x)) last
         then Z.min m (snd kc - least_of_it x + D * (w - fst kc)) else m) (costs_of x) never.

Fixpoint all_reduced (D last never : Z) (table : list (option_row * Z)) (p : partial) (sum : Z) : Z :=
  match table, p with
  | (x, a) :: table', (_, Some k) :: p' =>
      all_reduced D last never table' p' (sum + reduced D last never x k)
  | (x, a) :: table', (_, None) :: p' => all_reduced D last never table' p' (sum + a)
  | _, _ => sum
  end.

Definition loads_from (w : Z) (count : nat) (p : partial) : list Z :=
  let s := begun p in map (fun t => load s 0 t) (rounds (w + 1) count).

(** A partial schedule, and what it has lost in the times up to now. *)
Record label := Label { plan : partial; lost : Z }.

Section Round.
Variables (M D last budget : Z) (longest : nat).

Definition possible (w : Z) (table : list (option_row * Z)) (lost : Z) (p : partial) : bool :=
  (all_reduced D last (budget + 1) table p lost <=? budget) &&
  forallb (fun x => x <=? M) (loads_from w longest p).

(** All that may start in round [w]; of [rest] it is not decided yet. *)
Fixpoint expand (w : Z) (table : list (option_row * Z)) (lost : Z) (decided rest : partial)
  : list partial :=
  match rest with
  | [] => [decided]
  | (r, Some k) :: rest' => expand w table lost (decided ++ [(r, Some k)]) rest'
  | (r, None) :: rest' =>
      expand w table lost (decided ++ [(r, None)]) rest' ++
      (if (arrival r <=? w) && possible w table lost (decided ++ (r, Some w) :: rest')
       then expand w table lost (decided ++ [(r, Some w)]) rest' else [])
  end.
End Round.

Fixpoint pattern (p q : partial) : bool :=
  match p, q with
  | [], [] => true
  | (_, Some _) :: p', (_, Some _) :: q' => pattern p' q'
  | (_, None) :: p', (_, None) :: q' => pattern p' q'
  | _, _ => false
  end.

Fixpoint started_sum (p : partial) (sum : Z) : Z :=
  match p with
  | [] => sum
  | (_, Some k) :: rest => started_sum rest (sum + k)
  | (_, None) :: rest => started_sum rest sum
  end.

Fixpoint mask (p : partial) (n : Z) : Z :=
  match p with
  | [] => n
  | (_, Some _) :: rest => mask rest (2 * n + 1)
  | (_, None) :: rest => mask rest (2 * n)
  end.

Fixpoint all_at_most (l l' : list Z) : bool :=
  match l, l' with
  | x :: l, x' :: l' => (x <=? x') && all_at_most l l'
  | [], [] => true
  | _, _ => false
  end.

(** What is compared of a label. *)
Record view := View { of_mask : Z; of_sum : Z; of_loads : list Z; of_label : label }.

Definition viewed (w : Z) (longest : nat) (x : label) : view :=
  View (mask (plan x) 0) (started_sum (plan x) 0) (loads_from w longest (plan x)) x.

Definition dominates (x y : view) : bool :=
  pattern (plan (of_label x)) (plan (of_label y)) && (of_sum x <=? of_sum y) &&
  all_at_most (of_loads x) (of_loads y).

Module ViewOrder <: TotalLeBool.
  Definition t := view.
  Definition leb (x y : view) :=
    (of_mask x <? of_mask y) || ((of_mask x =? of_mask y) && (of_sum x <=? of_sum y)).
  Theorem leb_total : forall x y, leb x y = true \/ leb y x = true.
  Proof. unfold leb. intros. lia. Qed.
End ViewOrder.
Module ViewSort := Sort ViewOrder.

(** Leave out what one that is kept dominates; [group] are those of the same requests. *)
Fixpoint undominated (group : list view) (number : Z) (l : list view) (out : list label) : list label :=
  match l with
  | [] => out
  | x :: rest =>
      let group := if of_mask x =? number then group else [] in
      if existsb (fun y => dominates y x) group then undominated group (of_mask x) rest out
      else undominated (x :: group) (of_mask x) rest (of_label x :: out)
  end.

Definition complete (p : partial) : bool :=
  forallb (fun x => match snd x with Some _ => true | None => false end) p.

Fixpoint run_search (fuel : nat) (M D last budget V : Z) (longest : nat) (rows : list option_row)
    (price : Z -> state -> Z) (R : Z -> Z) (first w : Z) (layer : list label) : bool :=
  match layer with
  | [] => true
  | _ =>
      match fuel with
      | O => false
      | S fuel' =>
          let never := budget + 1 in
          let now := map (fun x => (x, ahead D last never x w)) rows in
          let then_ := map (fun x => (x, ahead D last never x (w + 1))) rows in
          let matters := (first <=? w + 1) && (w + 1 <=? last) in
          let most := if matters then R (w + 1) else 0 in
          let grow (out : list label) (x : label) :=
            fold_left (fun out p =>
              let lost' := if matters
                           then lost x + (most - total (price (w + 1)) (shown (begun p) 0 (w + 1)))
                           else lost x in
              if all_reduced D last never then_ p lost' <=? budget
              then Label p lost' :: out else out)
              (expand M D last budget longest w now (lost x) [] (plan x)) out in
          let grown := fold_left grow layer [] in
          let done := filter (fun x => complete (plan x)) grown in
          let open := filter (fun x => negb (complete (plan x))) grown in
          forallb (fun x => V <=? total_latency (begun (plan x))) done &&
          run_search fuel' M D last budget V longest rows price R first (w + 1)
            (undominated [] (-1) (ViewSort.sort (map (viewed (w + 1) longest) open)) [])
      end
  end.

(** ** Why it misses nothing *)

(** [s] goes on from a partial schedule: what is not decided starts at [w] or later. *)
Definition extends (w : Z) (p : partial) (s : schedule) : Prop :=
  Forall2 (fun x q => what q = fst x /\ worker q = O /\
    match snd x with Some k => start q = k | None => w <= start q end) p s.

Lemma shown_so_far w p s t : extends w p s -> t <= w -> shown s 0 t = shown (begun p) 0 t.
Proof.
  intros H Ht. unfold shown. induction H as [|[r o] q p s (H1 & H2 & H3) H IH]; [reflexivity|].
  cbn [fst snd] in *. cbn [filter]. destruct o as [k|]; cbn [begun].
  - assert (E : q = Place r k 0) by (destruct q; simpl in *; subst; reflexivity).
    rewrite E. cbn [filter]. destruct (active 0 t (Place r k 0)); cbn [map]; congruence.
  - replace (active 0 t q) with false; [exact IH|].
    symmetry. unfold active. replace (start q <? t) with false by (symmetry; lia).
    now rewrite andb_false_r.
Qed.

(** What the decided and the others hold. *)
Definition others (p : partial) (s : schedule) (t : Z) : Z :=
  total (fun xq => match snd (fst xq) with Some _ => 0 | None => holds (snd xq) t end) (combine p s).

Lemma load_in_parts w p s t : extends w p s -> load s 0 t = load (begun p) 0 t + others p s t.
Proof.
  intros H. unfold load, others. induction H as [|[r o] q p s (H1 & H2 & H3) H IH]; [reflexivity|].
  cbn [fst snd] in *. cbn [combine total fst snd]. rewrite H2. cbn [Nat.eqb].
  destruct o as [k|]; cbn [begun total].
  - assert (E : q = Place r k 0) by (destruct q; simpl in *; subst; reflexivity).
    rewrite E. cbn [worker Nat.eqb]. lia.
  - lia.
Qed.

Lemma others_nonneg w p s t : extends w p s -> Forall (fun q => 0 <= prompt (what q)) s ->
  0 <= others p s t.
Proof.
  intros H Hs. unfold others. apply total_nonneg. intros [[r o] q] Hin. cbn [fst snd].
  destruct o; [lia|]. apply holds_nonneg. rewrite Forall_forall in Hs. apply Hs.
  eapply in_combine_r; eauto.
Qed.

Lemma others_later w p s t : extends w p s -> t <= w -> others p s t = 0.
Proof.
  intros H Ht. unfold others. apply total_zero. intros [[r o] q] Hin. cbn [fst snd].
  destruct o as [k|]; [reflexivity|].
  assert (G : w <= start q).
  { clear Ht. induction H as [|[r' o'] q' p s (H1 & H2 & H3) H IH]; [destruct Hin|].
    destruct Hin as [E|Hin]; [|auto]. inversion E; subst. exact H3. }
  unfold holds. replace (start q <? t) with false by (symmetry; lia). reflexivity.
Qed.

Section Found.
Variables (I : instance) (D first last V L : Z) (price : Z -> state -> Z) (R : Z -> Z).
Variables (longest : nat) (rows : list option_row).
Hypothesis well : well_formed I.
Hypothesis one_worker : workers I = 1%nat.
Hypothesis D_positive : 1 <= D.
Hypothesis priced_times : forall t j, ~ (first <= t <= last) -> price t j = 0.
Hypothesis long_enough : Forall (fun r => output r <= Z.of_nat longest) (requests I).
Hypothesis rows_costs : Forall (fun x => Forall (fun kc =>
  snd kc = state_cost D price (whose x) (fst kc)) (costs_of x)) rows.

Let budget := (V - 1) * D - L.

(** What is below the target: its starts are allowed, and it loses what it loses (Claim 3.7). *)
Definition below (s : schedule) : Prop := feasible I s /\ total_latency s < V.

Hypothesis allowed_below : forall s, below s ->
  Forall2 (fun x q => whose x = what q /\
    In (stands_for last (what q) (start q)) (map fst (costs_of x))) rows s.

Definition lost_until (w : Z) (s : schedule) : Z :=
  total (fun t => if t <=? w then R t - total (price t) (shown s 0 t) else 0)
    (rounds first (Z.to_nat (last - first + 1))).

Hypothesis R_enough : forall s t, below s -> first <= t <= last ->
  total (price t) (shown s 0 t) <= R t.
Hypothesis L_value :
  total least_of_it rows - total R (rounds first (Z.to_nat (last - first + 1))) - L = 0.

Lemma one_only s : feasible I s -> Forall (fun q => worker q = O) s.
Proof.
  intros [_ _ Hw _]. eapply Forall_impl; [|exact Hw]. simpl. rewrite one_worker. intros; lia.
Qed.

(** Claims 3.7 and 3.10: reduced costs and slacks up to now are within the budget. *)
Lemma better_schedules_lose_little s w : below s ->
  total (fun xq => state_cost D price (what (snd xq)) (start (snd xq)) - least_of_it (fst xq))
    (combine rows s) + lost_until w s <= budget.
Proof.
  intros Hb. pose proof Hb as [Hf HV]. pose proof Hf as [Hs Ha Hw Hfit]. pose proof L_value as HL0.
  assert (Hpay : total (fun p => state_payment price (what p) (start p)) s
    = total (fun t => total (price t) (shown s 0 t)) (rounds first (Z.to_nat (last - first + 1)))).
  { transitivity (total (fun t => total (fun p => if (start p <? t) && (t <=? completion p)
                    then price t (state_at t p) else 0) s)
                  (rounds first (Z.to_nat (last - first + 1)))).
    - rewrite <- total_swap. apply total_ext. intros p Hp.
      apply (state_payment_by_time first last price priced_times).
      apply (in_map what) in Hp. rewrite Hs in Hp. destruct well as [_ Hr].
      rewrite Forall_forall in Hr. apply Hr in Hp. lia.
    - apply total_ext. intros t _. unfold shown. rewrite total_map, total_filter.
      apply total_ext. intros p Hp. pose proof (one_only s Hf) as H1. rewrite Forall_forall in H1.
      specialize (H1 p Hp). unfold active. rewrite H1. reflexivity. }
  assert (Hsum : total (fun xq => state_cost D price (what (snd xq)) (start (snd xq))
                                  - least_of_it (fst xq)) (combine rows s)
    = total (fun p => state_cost D price (what p) (start p)) s - total least_of_it rows).
  { pose proof (allowed_below s Hb) as H. clear - H.
    induction H; cbn [combine total fst snd]; lia. }
  assert (Hall : total (fun p => state_cost D price (what p) (start p)) s
    = D * total_latency s + total (fun p => state_payment price (what p) (start p)) s).
  { unfold state_cost, total_latency, latency, completion.
    rewrite total_plus, total_scale. reflexivity. }
  assert (Hlost : lost_until w s <=
    total R (rounds first (Z.to_nat (last - first + 1)))
    - total (fun t => total (price t) (shown s 0 t)) (rounds first (Z.to_nat (last - first + 1)))).
  { rewrite <- total_minus. apply total_le. intros t Ht. apply rounds_in in Ht.
    pose proof (R_enough s t Hb ltac:(lia)). destruct (t <=? w); lia. }
  pose proof L_value. unfold budget. nia.
Qed.

Lemma lookup_in k l : In k (map fst l) -> exists c, lookup k l = Some c /\ In (k, c) l.
Proof.
  induction l as [|[x c] l IH]; intros H; [destruct H|]. simpl. destruct (x =? k) eqn:E.
  - exists c. split; auto. left. f_equal. lia.
  - destruct H as [H|H]; [simpl in H; lia|]. destruct (IH H) as (c' & H1 & H2). eauto.
Qed.

(** The cost of a start that another stands for. *)
Lemma standing_cost r k : arrival r <= k ->
  state_cost D price r k
  = state_cost D price r (stands_for last r k) + D * (k - stands_for last r k).
Proof.
  intros Hk. unfold stands_for. destruct (Z_le_gt_dec k (Z.max (arrival r) last)).
  - rewrite Z.min_l by lia. lia.
  - rewrite Z.min_r by lia.
    assert (H0 : forall j, Z.max (arrival r) last <= j -> state_payment price r j = 0).
    { intros j Hj. apply total_zero. intros h Hh. apply rounds_in in Hh. apply priced_times. lia. }
    unfold state_cost. rewrite !H0 by lia. lia.
Qed.

Lemma reduced_right x q :
  Forall (fun kc => snd kc = state_cost D price (whose x) (fst kc)) (costs_of x) ->
  whose x = what q -> arrival (what q) <= start q ->
  In (stands_for last (what q) (start q)) (map fst (costs_of x)) ->
  reduced D last (budget + 1) x (start q)
  = state_cost D price (what q) (start q) - least_of_it x.
Proof.
  intros Hc Hr Ha Hin. unfold reduced. rewrite Hr.
  destruct (lookup_in _ _ Hin) as (c & -> & Hc2). rewrite Forall_forall in Hc.
  specialize (Hc _ Hc2). cbn [fst snd] in Hc. rewrite Hr in Hc.
  rewrite (standing_cost (what q) (start q) Ha). lia.
Qed.

Lemma ahead_least x q w :
  Forall (fun kc => snd kc = state_cost D price (whose x) (fst kc)) (costs_of x) ->
  whose x = what q -> arrival (what q) <= start q -> w <= start q ->
  In (stands_for last (what q) (start q)) (map fst (costs_of x)) ->
  ahead D last (budget + 1) x w <= state_cost D price (what q) (start q) - least_of_it x.
Proof.
  intros Hc Hr Ha Hw Hin. apply in_map_iff in Hin. destruct Hin as ([k c] & E & Hin).
  cbn [fst] in E. rewrite Forall_forall in Hc. pose proof (Hc _ Hin) as Hk. cbn [fst snd] in Hk.
  unfold ahead. set (f := fun (m : Z) (kc : Z * Z) => _).
  assert (Hmono : forall l m, fold_left f l m <= m).
  { induction l as [|y l IH]; intros m; cbn [fold_left]; [lia|]. specialize (IH (f m y)).
    unfold f in *. destruct (w <=? fst y); [lia|]. destruct (fst y =? _); lia. }
  assert (Hle : forall l m, In (k, c) l -> exists m', fold_left f l m <= f m' (k, c)).
  { induction l as [|y l IH]; intros m Hl; [destruct Hl|]. cbn [fold_left].
    destruct Hl as [->|Hl]; [exists m; apply Hmono|now apply IH]. }
  assert (Hf : forall m, w <= k \/ k = Z.max (arrival (whose x)) last ->
            f m (k, c) <= state_cost D price (what q) (start q) - least_of_it x).
  { intros m Hcase. unfold f. cbn [fst snd].
    rewrite (standing_cost (what q) (start q) Ha), <- E, <- Hr, <- Hk.
    assert (k <= start q) by (rewrite E; unfold stands_for; lia).
    destruct (w <=? k) eqn:E1; [nia|]. destruct Hcase as [|Hcase]; [lia|].
    replace (k =? Z.max (arrival (whose x)) last) with true by (symmetry; lia). nia. }
  assert (Hcase : w <= k \/ k = Z.max (arrival (whose x)) last).
  { rewrite Hr, E. unfold stands_for. lia. }
  destruct (Hle (costs_of x) (budget + 1) Hin) as [m' G].
  etransitivity; [exact G|]. apply Hf; auto.
Qed.

(** The bound of a partial schedule is at most what any schedule loses that extends it. *)
Lemma all_reduced_at_most w : forall rws u,
  Forall2 (fun x q => whose x = what q /\
    In (stands_for last (what q) (start q)) (map fst (costs_of x))) rws u ->
  Forall (fun q => arrival (what q) <= start q) u ->
  Forall (fun x => Forall (fun kc =>
    snd kc = state_cost D price (whose x) (fst kc)) (costs_of x)) rws ->
  forall p l, extends w p u ->
  all_reduced D last (budget + 1) (map (fun x => (x, ahead D last (budget + 1) x w)) rws) p l
  <= l + total (fun xq => state_cost D price (what (snd xq)) (start (snd xq))
                          - least_of_it (fst xq)) (combine rws u).
Proof.
  induction 1 as [|x q rws u [H1 H2] Hall IH]; intros Ha Hcosts p l Hp.
  - inversion Hp; subst. simpl. lia.
  - inversion Hp as [|[r o] ? p' ? (E1 & E2 & E3) Hp']; subst. cbn [fst snd] in *.
    inversion Ha as [|? ? Ha1 Ha2]; subst. inversion Hcosts as [|? ? Hc1 Hc2]; subst.
    cbn [map all_reduced combine total fst snd]. destruct o as [k|].
    + subst k. specialize (IH Ha2 Hc2 p' (l + reduced D last (budget + 1) x (start q)) Hp').
      pose proof (reduced_right x q Hc1 H1 Ha1 H2). lia.
    + specialize (IH Ha2 Hc2 p' (l + ahead D last (budget + 1) x w) Hp').
      pose proof (ahead_least x q w Hc1 H1 Ha1 E3 H2). lia.
Qed.

Lemma all_reduced_right w s : below s -> forall p l, extends w p s ->
  all_reduced D last (budget + 1) (map (fun x => (x, ahead D last (budget + 1) x w)) rows) p l
  <= l + total (fun xq => state_cost D price (what (snd xq)) (start (snd xq))
                          - least_of_it (fst xq)) (combine rows s).
Proof.
  intros Hb p l Hp. apply all_reduced_at_most; auto. now destruct Hb as [[_ Ha _ _] _].
Qed.

Lemma prompts_ok s : feasible I s -> Forall (fun q => 0 <= prompt (what q)) s.
Proof.
  intros [Hs _ _ _]. destruct well as [_ Hr]. apply Forall_forall. intros q Hq.
  apply (in_map what) in Hq. rewrite Hs in Hq. rewrite Forall_forall in Hr. apply Hr in Hq. lia.
Qed.

Lemma possible_right w s p : below s -> extends w p s ->
  possible (memory I) D last budget longest w
    (map (fun x => (x, ahead D last (budget + 1) x w)) rows) (lost_until w s) p = true.
Proof.
  intros Hb Hp. unfold possible. apply andb_true_intro. split.
  - pose proof (all_reduced_right w s Hb p (lost_until w s) Hp).
    pose proof (better_schedules_lose_little s w Hb). lia.
  - apply forallb_forall. intros x Hx. apply in_map_iff in Hx. destruct Hx as (t & <- & _).
    destruct Hb as [Hf _]. pose proof (others_nonneg w p s t Hp (prompts_ok s Hf)).
    pose proof (load_in_parts w p s t Hp). destruct Hf as [_ _ _ Hfit]. specialize (Hfit O t). lia.
Qed.

Lemma extends_earlier w p s : extends (w + 1) p s -> extends w p s.
Proof.
  induction 1 as [|[r o] q p s (H1 & H2 & H3) H IH]; constructor; auto. repeat split; auto.
  cbn [snd] in *. destruct o; [auto|lia].
Qed.

(** Whatever goes on from a partial schedule goes on from one of those it is expanded to. *)
Lemma expand_misses_nothing w s l : below s -> l = lost_until w s ->
  forall rest s2 decided s1, s = s1 ++ s2 -> extends (w + 1) decided s1 -> extends w rest s2 ->
  exists p, In p (expand (memory I) D last budget longest w
                    (map (fun x => (x, ahead D last (budget + 1) x w)) rows) l decided rest) /\
            extends (w + 1) p s.
Proof.
  intros Hb Hl. induction rest as [|[r o] rest IH]; intros s2 decided s1 E Hd Hr.
  - inversion Hr; subst. rewrite app_nil_r in *. exists decided. split; [now left|auto].
  - inversion Hr as [|? q ? s3 (H1 & H2 & H3) Hr']; subst s2. cbn [fst snd] in *.
    assert (E' : s = (s1 ++ [q]) ++ s3) by (rewrite <- app_assoc; exact E).
    destruct o as [k|]; cbn [expand].
    + apply (IH s3 (decided ++ [(r, Some k)]) (s1 ++ [q])); [exact E'| |exact Hr'].
      apply Forall2_app; [exact Hd|]. constructor; [|constructor]. cbn [fst snd]. auto.
    + destruct (Z.eq_dec (start q) w) as [Ew|Nw].
      * destruct (IH s3 (decided ++ [(r, Some w)]) (s1 ++ [q]) E') as (p & Hp1 & Hp2);
          [|exact Hr'|].
        { apply Forall2_app; [exact Hd|]. constructor; [|constructor]. cbn [fst snd]. auto. }
        exists p. split; [|auto]. apply in_or_app. right.
        assert (Hext : extends w (decided ++ (r, Some w) :: rest) s).
        { rewrite E. apply Forall2_app; [now apply extends_earlier|].
          constructor; auto. }
        rewrite Hl, (possible_right w s _ Hb Hext), andb_true_r, <- Hl.
        assert (Ha : arrival (what q) <= start q).
        { destruct Hb as [[_ Ha _ _] _]. rewrite Forall_forall in Ha. apply Ha. rewrite E.
          apply in_or_app. right. now left. }
        rewrite H1 in Ha. replace (arrival r <=? w) with true by (symmetry; lia). exact Hp1.
      * destruct (IH s3 (decided ++ [(r, None)]) (s1 ++ [q]) E') as (p & Hp1 & Hp2);
          [|exact Hr'|].
        { apply Forall2_app; [exact Hd|]. constructor; [|constructor]. cbn [fst snd].
          repeat split; auto. lia. }
        exists p. split; [|auto]. apply in_or_app. now left.
Qed.

(** ** Partial schedules that are kept *)

Definition plan_ok (w : Z) (p : partial) : Prop :=
  map fst p = requests I /\
  (forall r k, In (r, Some k) p -> arrival r <= k < w) /\
  (forall t, load (begun p) 0 t <= memory I).

Lemma begun_app p q : begun (p ++ q) = begun p ++ begun q.
Proof. induction p as [|[r [k|]] p IH]; simpl; congruence. Qed.

Lemma load_app s u t : load (s ++ u) 0 t = load s 0 t + load u 0 t.
Proof. apply total_app. Qed.

Lemma begun_in p q : In q (begun p) -> In (what q, Some (start q)) p /\ worker q = O.
Proof.
  induction p as [|[r [k|]] p IH]; simpl; intros H; [destruct H|..].
  - destruct H as [<-|H]; [simpl; auto|]. destruct (IH H). auto.
  - destruct (IH H). auto.
Qed.

Lemma load_over p w t : plan_ok w p -> w + Z.of_nat longest <= t -> load (begun p) 0 t = 0.
Proof.
  intros (H1 & H2 & _) Ht. unfold load. apply total_zero. intros q Hq.
  destruct (begun_in _ _ Hq) as [Hin ->]. cbn [Nat.eqb]. unfold holds, completion.
  destruct (H2 _ _ Hin) as [_ Hk]. apply (in_map fst) in Hin. cbn [fst] in Hin. rewrite H1 in Hin.
  pose proof long_enough as Hl. rewrite Forall_forall in Hl. apply Hl in Hin.
  replace (t <=? start q + output (what q)) with false by (symmetry; lia).
  now rewrite andb_false_r.
Qed.

Lemma begun_nonneg p t : map fst p = requests I -> 0 <= load (begun p) 0 t.
Proof.
  intros H. unfold load. apply total_nonneg. intros q Hq.
  destruct (begun_in _ _ Hq) as [Hin ->]. cbn [Nat.eqb]. apply holds_nonneg.
  apply (in_map fst) in Hin. cbn [fst] in Hin. rewrite H in Hin. destruct well as [_ Hr].
  rewrite Forall_forall in Hr. apply Hr in Hin. lia.
Qed.

Lemma memory_positive : 1 <= memory I.
Proof. destruct well; auto. Qed.

Lemma plan_ok_later w p : plan_ok w p -> plan_ok (w + 1) p.
Proof.
  intros (H1 & H2 & H3). repeat split; auto; intros; apply H2 in H; lia.
Qed.

Lemma expand_ok w table l : forall rest decided p,
  plan_ok (w + 1) (decided ++ rest) ->
  In p (expand (memory I) D last budget longest w table l decided rest) ->
  plan_ok (w + 1) p.
Proof.
  induction rest as [|[r [k|]] rest IH]; intros decided p Hok Hin; cbn [expand] in Hin.
  - destruct Hin as [<-|[]]. now rewrite app_nil_r in Hok.
  - apply (IH (decided ++ [(r, Some k)]) p); auto. now rewrite <- app_assoc.
  - apply in_app_or in Hin as [Hin|Hin].
    + apply (IH (decided ++ [(r, None)]) p); auto. now rewrite <- app_assoc.
    + destruct ((arrival r <=? w) && _) eqn:E in Hin; [|destruct Hin].
      apply andb_prop in E as [Ea Ep]. apply (IH (decided ++ [(r, Some w)]) p); auto.
      rewrite <- app_assoc. cbn [app]. destruct Hok as (H1 & H2 & H3).
      assert (Hnew : forall q k, In (q, Some k) (decided ++ (r, Some w) :: rest) ->
                arrival q <= k < w + 1).
      { intros q k Hq. apply in_app_or in Hq as [Hq|[Hq|Hq]].
        - apply H2. apply in_or_app. auto.
        - inversion Hq; subst. lia.
        - apply H2. apply in_or_app. right. now right. }
      assert (Hfst : map fst (decided ++ (r, Some w) :: rest) = requests I).
      { rewrite <- H1, !map_app. reflexivity. }
      split; [auto|]. split; [auto|]. intros t.
      destruct (Z_le_gt_dec t w).
      * specialize (H3 t). rewrite begun_app, load_app in *. cbn [begun] in *.
        unfold load at 2. cbn [total worker Nat.eqb]. unfold holds at 1. cbn [start].
        replace (w <? t) with false by (symmetry; lia). cbn [andb]. exact H3.
      * destruct (Z_le_gt_dec t (w + Z.of_nat longest)).
        -- unfold possible in Ep. apply andb_prop in Ep as [_ Ep]. rewrite forallb_forall in Ep.
           apply Z.leb_le, Ep. apply in_map_iff. exists t. split; auto. apply rounds_in. lia.
        -- assert (E0 : load (begun (decided ++ (r, Some w) :: rest)) 0 t = 0).
           { unfold load. apply total_zero. intros q Hq.
             destruct (begun_in _ _ Hq) as [Hq2 ->]. cbn [Nat.eqb]. unfold holds, completion.
             pose proof (Hnew _ _ Hq2). apply (in_map fst) in Hq2. cbn [fst] in Hq2.
             rewrite Hfst in Hq2. pose proof long_enough as Hl. rewrite Forall_forall in Hl.
             apply Hl in Hq2. replace (t <=? start q + output (what q)) with false by (symmetry; lia).
             now rewrite andb_false_r. }
           rewrite E0. pose proof memory_positive. lia.
Qed.

(** ** Claim 3.11: what holds less and began earlier is enough *)

Fixpoint swap (p : partial) (s : schedule) : schedule :=
  match p, s with
  | (r, Some k) :: p', _ :: s' => Place r k 0 :: swap p' s'
  | (r, None) :: p', q :: s' => q :: swap p' s'
  | _, _ => []
  end.

Lemma swap_extends w p2 s : extends w p2 s -> forall p1,
  pattern p1 p2 = true -> map fst p1 = map fst p2 ->
  extends w p1 (swap p1 s) /\ map what (swap p1 s) = map fst p1 /\
  (forall t, others p1 (swap p1 s) t = others p2 s t) /\
  total start (swap p1 s) - started_sum p1 0 = total start s - started_sum p2 0.
Proof.
  assert (Hsum : forall p n, started_sum p n = n + started_sum p 0).
  { induction p as [|[r [k|]] p IH]; intros n; cbn [started_sum]; [lia|..|apply IH].
    rewrite (IH (n + k)), (IH (0 + k)). lia. }
  induction 1 as [|[r o] q p2 s (H1 & H2 & H3) H IH]; intros p1 Hp Hf.
  - destruct p1 as [|[r' o'] p1]; [|discriminate]. simpl. repeat split; auto. constructor.
  - destruct p1 as [|[r' o'] p1]; [discriminate|]. cbn [map fst snd] in *. inversion Hf; subst r'.
    destruct o' as [k'|], o as [k|]; cbn [pattern] in Hp; try discriminate;
      destruct (IH p1 Hp H5) as (G1 & G2 & G3 & G4); cbn [swap map what].
    + split; [constructor; cbn [fst snd what worker start]; auto|]. split; [congruence|].
      split.
      * intros t. unfold others in *. cbn [combine total fst snd]. now rewrite G3.
      * cbn [total start started_sum]. rewrite (Hsum p1 (0 + k')), (Hsum p2 (0 + k)). lia.
    + split; [constructor; cbn [fst snd]; auto|]. split; [congruence|]. split.
      * intros t. unfold others in *. cbn [combine total fst snd]. now rewrite G3.
      * cbn [total started_sum]. lia.
Qed.

Lemma all_at_most_right f g : forall times, all_at_most (map f times) (map g times) = true ->
  forall t : Z, In t times -> f t <= g t.
Proof.
  induction times as [|u times IH]; intros H t Ht; [destruct Ht|]. cbn [map all_at_most] in H.
  apply andb_prop in H as [H1 H2]. destruct Ht as [<-|Ht]; [lia|auto].
Qed.

Theorem dominated_may_be_dropped w x y s :
  plan_ok w (plan x) -> plan_ok w (plan y) ->
  dominates (viewed w longest x) (viewed w longest y) = true ->
  below s -> extends w (plan y) s ->
  exists s', below s' /\ extends w (plan x) s'.
Proof.
  intros Hx Hy Hd [Hf HV] He. unfold dominates, viewed in Hd. cbn [of_label of_sum of_loads] in Hd.
  apply andb_prop in Hd as [Hd Hloads]. apply andb_prop in Hd as [Hpat Hsum].
  pose proof Hx as Hx0. destruct Hx as (X1 & X2 & X3). destruct Hy as (Y1 & Y2 & Y3).
  destruct (swap_extends w (plan y) s He (plan x) Hpat ltac:(congruence)) as (G1 & G2 & G3 & G4).
  exists (swap (plan x) s). split; [|exact G1].
  destruct Hf as [Hs Ha Hw Hfit].
  assert (Hlat : total_latency (swap (plan x) s) <= total_latency s).
  { unfold total_latency, latency, completion.
    assert (E : forall u, map what u = requests I ->
              total (fun p => start p + output (what p) - arrival (what p)) u
              = total start u + total (fun r => output r - arrival r) (requests I)).
    { intros u Hu. rewrite <- Hu, total_map, <- total_plus. apply total_ext. intros; lia. }
    rewrite (E _ (eq_trans G2 X1)), (E _ Hs). lia. }
  split; [|lia]. constructor.
  - congruence.
  - assert (G : forall p u v, extends w p v -> Forall (fun q => arrival (what q) <= start q) u ->
              (forall r k, In (r, Some k) p -> arrival r <= k) -> v = swap p u ->
              Forall (fun q => arrival (what q) <= start q) v).
    { clear. induction p as [|[r [k|]] p IH]; intros u v He Hu Hk Hv; subst v;
        destruct u as [|q u]; cbn [swap] in *; constructor.
      - cbn [what start]. apply Hk. now left.
      - inversion Hu; subst. inversion He; subst. apply (IH u); auto. intros; apply Hk; now right.
      - now inversion Hu.
      - inversion Hu; subst. inversion He; subst. apply (IH u); auto. intros; apply Hk; now right. }
    eapply G; eauto. intros r k Hin. apply X2 in Hin. lia.
  - apply Forall_forall. intros q Hq. rewrite one_worker.
    enough (worker q = O) by lia. clear - G1 Hq. induction G1 as [|[r o] q' p u (H1 & H2 & H3) G IH];
      [destruct Hq|]. destruct Hq as [<-|Hq]; auto.
  - intros w' t. destruct w' as [|w'].
    + rewrite (load_in_parts w _ _ t G1), G3.
      pose proof (load_in_parts w _ _ t He) as Hold. specialize (Hfit O t).
      destruct (Z_le_gt_dec t w).
      * rewrite (others_later w (plan y) s t He) by lia. specialize (X3 t). lia.
      * destruct (Z_le_gt_dec t (w + Z.of_nat longest)).
        -- assert (load (begun (plan x)) 0 t <= load (begun (plan y)) 0 t); [|lia].
           apply (all_at_most_right _ _ _ Hloads). apply rounds_in. lia.
        -- rewrite (load_over (plan x) w t Hx0) by lia.
           pose proof (begun_nonneg (plan y) t Y1). lia.
    + unfold load. rewrite total_zero; [pose proof memory_positive; lia|]. intros q Hq.
      assert (worker q = O) as ->; [|reflexivity].
      clear - G1 Hq. induction G1 as [|[r o] q' p u (H1 & H2 & H3) G IH]; [destruct Hq|].
      destruct Hq as [<-|Hq]; auto.
Qed.

Lemma undominated_keeps l : forall group number out x,
  In x out -> In x (undominated group number l out).
Proof.
  induction l as [|v l IH]; intros group number out x H; cbn [undominated]; auto.
  destruct (existsb _ _); apply IH; auto. now right.
Qed.

Lemma undominated_covers l : forall group number out,
  (forall v, In v group -> In (of_label v) out) ->
  forall x, In x l -> exists v, In (of_label v) (undominated group number l out) /\
    (In v group \/ In v l) /\ (v = x \/ dominates v x = true).
Proof.
  induction l as [|y l IH]; intros group number out Hg x Hx; [destruct Hx|]. cbn [undominated].
  set (g := if of_mask y =? number then group else []).
  assert (Hg' : forall v, In v g -> In (of_label v) out /\ In v group).
  { intros v Hv. unfold g in Hv. destruct (of_mask y =? number); [auto|destruct Hv]. }
  destruct (existsb (fun v => dominates v y) g) eqn:E.
  - destruct Hx as [->|Hx].
    + apply existsb_exists in E. destruct E as (v & Hv & Hd). exists v.
      destruct (Hg' v Hv). split; [now apply undominated_keeps|]. auto.
    + destruct (IH g (of_mask y) out (fun v Hv => proj1 (Hg' v Hv)) x Hx) as (v & H1 & H2 & H3).
      exists v. split; auto. split; auto. destruct H2 as [H2|H2]; [left; apply Hg'; auto|right; now right].
  - assert (Hg2 : forall v, In v (y :: g) -> In (of_label v) (of_label y :: out)).
    { intros v [->|Hv]; [now left|right; now apply Hg']. }
    destruct Hx as [->|Hx].
    + exists x. split; [apply undominated_keeps; now left|]. split; [right; now left|now left].
    + destruct (IH (y :: g) (of_mask y) (of_label y :: out) Hg2 x Hx) as (v & H1 & H2 & H3).
      exists v. split; auto. split; auto.
      destruct H2 as [[->|H2]|H2]; [right; now left|left; apply Hg'; auto|right; now right].
Qed.

Lemma undominated_from l : forall group number out x,
  In x (undominated group number l out) -> In x out \/ In x (map of_label l).
Proof.
  induction l as [|y l IH]; intros group number out x H; cbn [undominated] in H; [auto|].
  cbn [map]. destruct (existsb _ _).
  - destruct (IH _ _ _ _ H); [auto|right; now right].
  - destruct (IH _ _ _ _ H) as [[->|]|]; [right; now left|auto|right; now right].
Qed.

(** What is lost by one time more. *)
Lemma lost_next w s :
  lost_until (w + 1) s
  = lost_until w s + (if (first <=? w + 1) && (w + 1 <=? last)
                      then R (w + 1) - total (price (w + 1)) (shown s 0 (w + 1)) else 0).
Proof.
  unfold lost_until. set (f := fun t => R t - total (price t) (shown s 0 t)).
  change (R (w + 1) - total (price (w + 1)) (shown s 0 (w + 1))) with (f (w + 1)).
  assert (G : forall n a,
    total (fun t => if t <=? w + 1 then f t else 0) (rounds a n)
    = total (fun t => if t <=? w then f t else 0) (rounds a n)
      + (if (a <=? w + 1) && (w + 1 <? a + Z.of_nat n) then f (w + 1) else 0)).
  { induction n as [|n IH]; intros a; cbn [rounds total].
    - replace (w + 1 <? a + Z.of_nat 0) with (w + 1 <? a) by (f_equal; lia).
      destruct (a <=? w + 1) eqn:E1; destruct (w + 1 <? a) eqn:E2; simpl; lia.
    - rewrite IH. replace (a + Z.of_nat (S n)) with (a + 1 + Z.of_nat n) by lia.
      destruct (Z.eq_dec a (w + 1)) as [->|N].
      + replace (w + 1 <=? w + 1) with true by (symmetry; lia).
        replace (w + 1 <=? w) with false by (symmetry; lia).
        replace (w + 1 + 1 <=? w + 1) with false by (symmetry; lia).
        assert (E9 : (w + 1 <? w + 1 + 1 + Z.of_nat n) = true) by (apply Z.ltb_lt; lia).
        rewrite E9. cbn [andb]. lia.
      + destruct (a <=? w + 1) eqn:E1; destruct (a <=? w) eqn:E2; try lia;
          destruct (a + 1 <=? w + 1) eqn:E3; try lia; cbn [andb]; lia. }
  rewrite G. f_equal. replace (first + Z.of_nat (Z.to_nat (last - first + 1))) with
    (if first <=? last then last + 1 else first) by (destruct (first <=? last) eqn:E; lia).
  destruct (first <=? last) eqn:E; destruct (first <=? w + 1) eqn:E1;
    destruct (w + 1 <=? last) eqn:E2; cbn [andb]; try lia.
  - replace (w + 1 <? last + 1) with true by (symmetry; lia). reflexivity.
  - replace (w + 1 <? last + 1) with false by (symmetry; lia). reflexivity.
  - replace (w + 1 <? first) with false by (symmetry; lia). reflexivity.
Qed.

Lemma complete_is_all w p s : extends w p s -> complete p = true -> begun p = s.
Proof.
  induction 1 as [|[r o] q p s (H1 & H2 & H3) H IH]; intros Hc; [reflexivity|].
  cbn [complete forallb snd fst] in *. apply andb_prop in Hc as [Hc1 Hc2].
  destruct o as [k|]; [|discriminate]. cbn [begun]. f_equal; [|now apply IH].
  destruct q. simpl in *. congruence.
Qed.

Definition label_ok (w : Z) (x : label) : Prop :=
  plan_ok w (plan x) /\ forall s, extends w (plan x) s -> lost x = lost_until w s.

(** The search misses nothing: if it comes to its end, nothing below the target goes on from the
    partial schedules that it began with. *)
Theorem search_misses_nothing fuel : forall w layer,
  run_search fuel (memory I) D last budget V longest rows price R first w layer = true ->
  (forall x, In x layer -> label_ok w x) ->
  forall s x, below s -> In x layer -> extends w (plan x) s -> False.
Proof.
  induction fuel as [|fuel IH]; intros w layer H Hok s x Hb Hx He;
    (destruct layer as [|first_label layer]; [destruct Hx|]); cbn [run_search] in H; [discriminate|].
  set (all := first_label :: layer) in *.
  set (now := map (fun x => (x, ahead D last (budget + 1) x w)) rows) in H.
  set (then_ := map (fun x => (x, ahead D last (budget + 1) x (w + 1))) rows) in H.
  set (matters := (first <=? w + 1) && (w + 1 <=? last)) in H.
  set (after_ := fun (x : label) (p : partial) =>
    if matters
    then lost x + ((if matters then R (w + 1) else 0) - total (price (w + 1)) (shown (begun p) 0 (w + 1)))
    else lost x).
  set (grow := fun (out : list label) (x : label) =>
    fold_left (fun out p =>
      let lost' := after_ x p in
      if all_reduced D last (budget + 1) then_ p lost' <=? budget
      then Label p lost' :: out else out)
      (expand (memory I) D last budget longest w now (lost x) [] (plan x)) out).
  change (forallb (fun x => V <=? total_latency (begun (plan x)))
            (filter (fun x => complete (plan x)) (fold_left grow all [])) &&
          run_search fuel (memory I) D last budget V longest rows price R first (w + 1)
            (undominated [] (-1) (ViewSort.sort (map (viewed (w + 1) longest)
              (filter (fun x => negb (complete (plan x))) (fold_left grow all [])))) []) = true) in H.
  set (grown := fold_left grow all []) in H.
  apply andb_prop in H as [Hdone Hnext].
  (* what is grown *)
  assert (Hinner : forall y l out z, In z (fold_left (fun out p =>
              let lost' := after_ y p in
              if all_reduced D last (budget + 1) then_ p lost' <=? budget
              then Label p lost' :: out else out) l out) <->
            In z out \/ exists p, In p l /\ z = Label p (after_ y p) /\
              (all_reduced D last (budget + 1) then_ p (after_ y p) <=? budget) = true).
  { induction l as [|p l IHl]; intros out z; cbn [fold_left].
    - split; [auto|]. intros [|(p & [] & _)]; auto.
    - rewrite IHl. destruct (all_reduced D last (budget + 1) then_ p (after_ y p) <=? budget) eqn:E.
      + split.
        * intros [[<-|Hz]|(q & Hq & Hz)]; [right; exists p; repeat split; auto; now left|auto|].
          right. exists q. split; [now right|auto].
        * intros [Hz|(q & [<-|Hq] & Hz & Hc)]; [left; now right|left; left; auto|].
          right. exists q. auto.
      + split.
        * intros [Hz|(q & Hq & Hz)]; [auto|]. right. exists q. split; [now right|auto].
        * intros [Hz|(q & [<-|Hq] & Hz & Hc)]; [auto|congruence|]. right. exists q. auto. }
  assert (Hgrown : forall z, In z grown <-> exists y p, In y all /\
            In p (expand (memory I) D last budget longest w now (lost y) [] (plan y)) /\
            z = Label p (after_ y p) /\
            (all_reduced D last (budget + 1) then_ p (after_ y p) <=? budget) = true).
  { assert (G : forall l out z, In z (fold_left grow l out) <-> In z out \/ exists y p, In y l /\
            In p (expand (memory I) D last budget longest w now (lost y) [] (plan y)) /\
            z = Label p (after_ y p) /\
            (all_reduced D last (budget + 1) then_ p (after_ y p) <=? budget) = true).
    { induction l as [|y l IHl]; intros out z; cbn [fold_left].
      - split; [auto|]. intros [|(y & p & [] & _)]; auto.
      - rewrite IHl. unfold grow at 1. rewrite Hinner. split.
        + intros [[Hz|(p & Hp & Hz)]|(u & p & Hu & Hp)]; [auto|right; exists y, p; split; [now left|auto]|].
          right. exists u, p. split; [now right|auto].
        + intros [Hz|(u & p & [<-|Hu] & Hp & Hz)]; [auto|left; right; eauto|].
          right. exists u, p. auto. }
    intros z. unfold grown. rewrite G. split; [intros [[]|Hz]; auto|auto]. }
  assert (Hafter : forall y p s', label_ok w y -> extends w (plan y) s' -> extends (w + 1) p s' ->
            after_ y p = lost_until (w + 1) s').
  { intros y p s' [_ Hlost] He1 He2. rewrite lost_next, <- (Hlost s' He1).
    unfold after_. rewrite (shown_so_far (w + 1) p s' (w + 1) He2) by lia.
    fold matters. destruct matters; lia. }
  (* labels of the next layer are as they should be *)
  assert (Hnew : forall z, In z grown -> label_ok (w + 1) z).
  { intros z Hz. apply Hgrown in Hz. destruct Hz as (y & p & Hy & Hp & -> & _).
    pose proof (Hok y Hy) as Hyok. cbn [plan lost]. split.
    - apply (expand_ok w now (lost y) (plan y) [] p); auto. apply plan_ok_later, Hyok.
    - intros s' He'. cbn [plan] in He'. apply Hafter; auto.
      (* what extends p extends the plan that it comes from *)
      assert (G : forall rest decided q, In q (expand (memory I) D last budget longest w now (lost y)
                  decided rest) -> forall s', extends w q s' -> extends w (decided ++ rest) s').
      { clear. induction rest as [|[r [k|]] rest IHr]; intros decided q Hq s' Hs'; cbn [expand] in Hq.
        - destruct Hq as [<-|[]]. now rewrite app_nil_r.
        - specialize (IHr _ _ Hq s' Hs'). now rewrite <- app_assoc in IHr.
        - apply in_app_or in Hq as [Hq|Hq].
          + specialize (IHr _ _ Hq s' Hs'). now rewrite <- app_assoc in IHr.
          + destruct (_ && _) in Hq; [|destruct Hq]. specialize (IHr _ _ Hq s' Hs').
            rewrite <- app_assoc in IHr. cbn [app] in IHr. clear - IHr.
            apply Forall2_app_inv_l in IHr. destruct IHr as (s1 & s2 & H1 & H2 & ->).
            apply Forall2_app; auto. inversion H2 as [|? q0 ? s3 (E1 & E2 & E3) H4]; subst.
            constructor; auto. cbn [fst snd] in *. repeat split; auto. lia. }
      apply (G (plan y) [] p Hp s'). now apply extends_earlier. }
  (* the one that s goes on from *)
  destruct (expand_misses_nothing w s (lost x) Hb (proj2 (Hok x Hx) s He) (plan x) s [] [])
    as (p & Hp & Hpe); [reflexivity|constructor|exact He|].
  set (z := Label p (after_ x p)).
  assert (Hz : In z grown).
  { apply Hgrown. exists x, p. repeat split; auto.
    pose proof (all_reduced_right (w + 1) s Hb p (after_ x p) Hpe) as H1.
    pose proof (better_schedules_lose_little s (w + 1) Hb) as H2.
    rewrite (Hafter x p s (Hok x Hx) He Hpe) in *.
    apply Z.leb_le. unfold then_. lia. }
  destruct (complete p) eqn:Ec.
  - rewrite forallb_forall in Hdone. specialize (Hdone z).
    assert (In z (filter (fun x => complete (plan x)) grown)) by (apply filter_In; auto).
    specialize (Hdone H). cbn [plan z] in Hdone. rewrite (complete_is_all (w + 1) p s Hpe Ec) in Hdone.
    destruct Hb. lia.
  - set (open := filter (fun x => negb (complete (plan x))) grown) in Hnext.
    set (views := ViewSort.sort (map (viewed (w + 1) longest) open)) in Hnext.
    assert (Hopen : In z open).
    { apply filter_In. split; auto. cbn [plan z]. now rewrite Ec. }
    assert (Hview : In (viewed (w + 1) longest z) views).
    { eapply Permutation_in; [apply ViewSort.Permuted_sort|]. now apply in_map. }
    assert (Hviews : forall v, In v views -> exists y, In y grown /\ v = viewed (w + 1) longest y).
    { intros v Hv. eapply Permutation_in in Hv; [|symmetry; apply ViewSort.Permuted_sort].
      apply in_map_iff in Hv. destruct Hv as (y & <- & Hy). apply filter_In in Hy. exists y. tauto. }
    destruct (undominated_covers views [] (-1) [] ltac:(intros v []) _ Hview)
      as (v & Hv1 & [[]|Hv2] & Hv3).
    destruct (Hviews v Hv2) as (y & Hy & ->).
    assert (Hall : forall u, In u (undominated [] (-1) views []) -> label_ok (w + 1) u).
    { intros u Hu. apply undominated_from in Hu as [[]|Hu]. apply in_map_iff in Hu.
      destruct Hu as (v & <- & Hv). destruct (Hviews v Hv) as (u & Hu & ->). auto. }
    cbn [of_label viewed] in Hv1.
    destruct Hv3 as [E|Hd].
    + assert (y = z) by (inversion E; auto). subst y.
      apply (IH (w + 1) _ Hnext Hall s z Hb Hv1). exact Hpe.
    + destruct (dominated_may_be_dropped (w + 1) y z s) as (s' & Hb' & He'); auto.
      * apply Hnew; auto.
      * apply Hnew; auto.
      * apply (IH (w + 1) _ Hnext Hall s' y Hb' Hv1 He').
Qed.

End Found.

Print Assumptions better_schedules_lose_little.
Print Assumptions dominated_may_be_dropped.
Print Assumptions search_misses_nothing.
