(** * Deadlines

    docs/deadlines.md, "Why the ceiling is true", in rounds and for runs: how many requests attain
    their deadlines at most. *)

From Coq Require Import ZArith List Lia Bool.
From KV Require Import Problem Sums Memory Services Prices.
Import ListNotations.
Open Scope Z_scope.

(** A request, the time at which its last token is due, or its first one, and a number that the
    theorem below wants to be at most what the request pays when it is in time. *)
Record goal := Goal { asked : request; deadline : Z; first_token : bool; least : Z }.

(** It is in time. *)
Definition attains (p : placement) (g : goal) : bool :=
  (if first_token g then start p + 1 else completion p) <=? deadline g.

(** How many are in time in a schedule, where the goals are in the order of the requests. *)
Definition attained (s : schedule) (goals : list goal) : Z :=
  total (fun x => if attains (fst x) (snd x) then 1 else 0) (combine s goals).

(** "over its starts from a to d - o, or to d - 1 for its first token" *)
Definition latest_start (g : goal) : Z :=
  deadline g - if first_token g then 1 else output (asked g).

(** "the least that request i pays in any run that attains its deadline", or a smaller number. *)
Definition pays_when_in_time (price : Z -> Z) (g : goal) : Prop :=
  forall k, arrival (asked g) <= k <= latest_start g -> least g <= payment price (asked g) k.

(** "max(0, 1 - g)", "over all that can attain alone"; with prices over [one], times [one]. *)
Definition worth (one : Z) (g : goal) : Z :=
  if arrival (asked g) <=? latest_start g then Z.max 0 (one - least g) else 0.

Lemma payment_nonneg price r k :
  (forall t, 0 <= price t) -> 0 <= prompt r -> 0 <= payment price r k.
Proof.
  intros Hp Hr. apply total_nonneg. intros g Hg. apply rounds_in in Hg.
  apply Z.mul_nonneg_nonneg; [apply Hp|lia].
Qed.

(** "Each of them counts 1 <= max(0, 1 - g) + g": so those who attain are at most the sum of
    max(0, 1 - g) over all that can attain, and m M times the sum of all prices.  Prices are
    integers over the common denominator [one], and so is what is counted. *)
Theorem prices_prove_a_ceiling (I : instance) (one first : Z) (numerators : list Z)
    (goals : list goal) (s : schedule) :
  well_formed I ->
  Forall (fun x => 0 <= x) numerators ->
  map asked goals = requests I ->
  Forall (pays_when_in_time (price_at first numerators)) goals ->
  feasible I s ->
  one * attained s goals
  <= total (worth one) goals
     + Z.of_nat (workers I) * memory I * total (fun x => x) numerators.
Proof.
  intros HI Hp Hg Hl HF. pose proof (all_payments I first numerators s HI Hp HF) as HS.
  destruct HI as [_ Hr], HF as [Hs Ha _ _].
  set (price := price_at first numerators) in *.
  assert (Hnn : forall t, 0 <= price t) by (intros; now apply price_nonneg).
  enough (one * attained s goals
          <= total (worth one) goals + total (fun p => payment price (what p) (start p)) s) by lia.
  unfold attained. rewrite <- Hs in Hg, Hr. clear Hs HS Hp. revert goals Hg Hl.
  induction s as [|p s IH]; intros [|g goals] Hg Hl; try discriminate; cbn [combine total]; [lia|].
  cbn [map] in *. injection Hg as Eg Hg. inversion Hr; inversion Ha; inversion Hl; subst.
  specialize (IH H2 H6 goals Hg H10). cbn [fst snd].
  assert (Hpay : 0 <= payment price (what p) (start p)) by (apply payment_nonneg; [auto|lia]).
  enough (one * (if attains p g then 1 else 0)
          <= worth one g + payment price (what p) (start p)) by lia.
  assert (Hw : 0 <= worth one g) by (unfold worth; destruct (_ <=? _); lia).
  destruct (attains p g) eqn:E; [|lia].
  assert (Hk : start p <= latest_start g).
  { unfold attains, completion in E. unfold latest_start. rewrite Eg.
    destruct (first_token g); lia. }
  assert (least g <= payment price (what p) (start p)) by (rewrite <- Eg; apply H9; rewrite Eg; lia).
  unfold worth. rewrite Eg. replace (arrival (what p) <=? latest_start g) with true by lia. lia.
Qed.

(** The number that a certificate claims: rounded down. *)
Corollary ceiling_rounded_down (I : instance) (one first : Z) (numerators : list Z)
    (goals : list goal) (s : schedule) :
  0 < one ->
  well_formed I ->
  Forall (fun x => 0 <= x) numerators ->
  map asked goals = requests I ->
  Forall (pays_when_in_time (price_at first numerators)) goals ->
  feasible I s ->
  attained s goals
  <= (total (worth one) goals
      + Z.of_nat (workers I) * memory I * total (fun x => x) numerators) / one.
Proof.
  intros H1 HI Hp Hg Hl HF. apply Z.div_le_lower_bound; auto.
  now apply prices_prove_a_ceiling with (first := first).
Qed.

Print Assumptions prices_prove_a_ceiling.
Print Assumptions ceiling_rounded_down.
