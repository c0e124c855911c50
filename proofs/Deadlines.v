(** * Deadlines

    docs/deadlines.md, "Why the ceiling is true", in rounds: how many requests attain their
    deadlines at most. *)

From Coq Require Import ZArith List Lia Bool.
From KV Require Import Problem Sums Memory Services Prices Pauses.
Import ListNotations.
Open Scope Z_scope.

(** A request, the time at which its last token is due, or its first one, and a number that the
    theorem below wants to be at most what the request pays when it is in time. *)
Record goal := Goal { asked : request; deadline : Z; first_token : bool; least : Z }.

(** It is in time. *)
Definition attains {A} (k : service A) (x : A) (g : goal) : bool :=
  (if first_token g then first k x else done k x) <=? deadline g.

(** How many are in time, where the goals are in the order of the requests. *)
Definition attained {A} (k : service A) (s : list A) (goals : list goal) : Z :=
  total (fun x => if attains k (fst x) (snd x) then 1 else 0) (combine s goals).

(** "over its starts from a to d - o, or to d - 1 for its first token" *)
Definition latest_start (g : goal) : Z :=
  deadline g - if first_token g then 1 else output (asked g).

(** It "can attain alone". *)
Definition can_attain (g : goal) : bool := arrival (asked g) <=? latest_start g.

(** "max(0, 1 - g)", "over all that can attain alone"; with prices over [one], times [one]. *)
Definition worth (one : Z) (g : goal) : Z := if can_attain g then Z.max 0 (one - least g) else 0.

Lemma payment_nonneg price r k :
  (forall t, 0 <= price t) -> 0 <= prompt r -> 0 <= payment price r k.
Proof.
  intros Hp Hr. apply total_nonneg. intros g Hg. apply rounds_in in Hg.
  apply Z.mul_nonneg_nonneg; [apply Hp|lia].
Qed.

(** ** However requests are served *)

Section Ceiling.
Context {A : Type}.
Variables (k : service A) (I : instance) (from : Z) (numerators : list Z) (s : list A).
Variables (pays : A -> Z) (one : Z) (goals : list goal).
Hypothesis prices_nonneg : Forall (fun x => 0 <= x) numerators.
Hypothesis all_served : served k I s.
Hypothesis pays_by_time : forall x, In x s -> pays x = by_time k I from numerators x.
Hypothesis pays_nonneg : forall x, In x s -> 0 <= pays x.
Hypothesis of_all_requests : map asked goals = requests I.
Hypothesis in_time_pays : forall x g, In x s -> In g goals -> asks k x = asked g ->
  proper k (workers I) x -> attains k x g = true -> can_attain g = true /\ least g <= pays x.

(** "Each of them counts 1 <= max(0, 1 - g) + g." *)
Lemma those_in_time :
  attained k s goals <= total (fun g => if can_attain g then 1 else 0) goals /\
  one * attained k s goals <= total (worth one) goals + total pays s.
Proof.
  destruct all_served as [Hs Hp _]. rewrite <- Hs in of_all_requests.
  clear all_served pays_by_time Hs prices_nonneg. unfold attained.
  revert goals of_all_requests in_time_pays.
  induction s as [|x l IH]; intros [|g gs] Hg Hl; try discriminate; cbn [combine total map] in *; [lia|].
  cbn [map] in Hg. injection Hg as Eg Hg. inversion Hp as [|? ? Hp1 Hp2]; subst.
  destruct (IH ltac:(intros; apply pays_nonneg; now right) Hp2 gs Hg) as [I1 I2].
  { intros x' g' Hx' Hg'. apply Hl; now right. }
  assert (Hpay : 0 <= pays x) by (apply pays_nonneg; now left).
  specialize (Hl x g (or_introl eq_refl) (or_introl eq_refl) (eq_sym Eg) Hp1). cbn [fst snd].
  assert (Hw : 0 <= worth one g) by (unfold worth; destruct (can_attain g); lia).
  destruct (attains k x g).
  - destruct (Hl eq_refl) as [Hc Hpays].
    assert (worth one g = Z.max 0 (one - least g)) by (unfold worth; now rewrite Hc).
    rewrite Hc. lia.
  - destruct (can_attain g); lia.
Qed.

(** Those who attain are at most the sum of max(0, 1 - g) over all that can attain, and m M times
    the sum of all prices: rounded down, and no more than can attain alone. *)
Lemma at_most_in_time : 0 < one ->
  attained k s goals
  <= Z.min (total (fun g => if can_attain g then 1 else 0) goals)
       ((total (worth one) goals
         + Z.of_nat (workers I) * memory I * total (fun x => x) numerators) / one).
Proof.
  intros H1. destruct those_in_time as [H2 H3].
  pose proof (all_pay k I from numerators s pays prices_nonneg all_served pays_by_time).
  apply Z.min_glb; [auto|]. apply Z.div_le_lower_bound; lia.
Qed.

End Ceiling.

(** ** Runs in one piece *)

(** "the least that request i pays in any run that attains its deadline", or a smaller number. *)
Definition pays_when_in_time (price : Z -> Z) (g : goal) : Prop :=
  forall k, arrival (asked g) <= k <= latest_start g -> least g <= payment price (asked g) k.

(** The number that a certificate claims.  Prices are integers over the common denominator
    [one]. *)
Theorem prices_prove_a_ceiling (I : instance) (one first : Z) (numerators : list Z)
    (goals : list goal) (s : schedule) :
  0 < one ->
  well_formed I ->
  Forall (fun x => 0 <= x) numerators ->
  map asked goals = requests I ->
  Forall (pays_when_in_time (price_at first numerators)) goals ->
  feasible I s ->
  attained runs s goals
  <= Z.min (total (fun g => if can_attain g then 1 else 0) goals)
       ((total (worth one) goals
         + Z.of_nat (workers I) * memory I * total (fun x => x) numerators) / one).
Proof.
  intros H1 HI Hp Hg Hl HF. apply feasible_served in HF.
  apply (at_most_in_time runs I first numerators s
           (fun p => payment (price_at first numerators) (what p) (start p))); auto.
  - now apply runs_pay.
  - intros p Hin. apply payment_nonneg; [intros; now apply price_nonneg|].
    destruct HI as [_ Hr], HF as [Hs _ _]. apply (in_map what) in Hin. cbn in Hs.
    rewrite Hs in Hin. rewrite Forall_forall in Hr. apply Hr in Hin. lia.
  - intros p g Hin Hg' E [Ha _] Hat. rewrite Forall_forall in Hl. specialize (Hl g Hg').
    unfold pays_when_in_time, can_attain, attains, latest_start in *.
    cbn [runs asks Services.first done] in *. unfold completion in Hat. rewrite <- E in *.
    destruct (first_token g); split; try lia; apply Hl; lia.
Qed.

(** ** With pauses *)

(** The same of any paused run. *)
Definition pays_when_paused_in_time (price : Z -> Z) (g : goal) : Prop :=
  forall times, allowed (asked g) times ->
    (if first_token g then hd 0 times else last times 0) <= deadline g ->
    least g <= paid price (asked g) 1 times.

Theorem prices_prove_a_ceiling_with_pauses (I : instance) (one first : Z) (numerators : list Z)
    (goals : list goal) (s : list paused) :
  0 < one ->
  well_formed I ->
  Forall (fun x => 0 <= x) numerators ->
  map asked goals = requests I ->
  Forall (pays_when_paused_in_time (price_at first numerators)) goals ->
  feasible_with_pauses I s ->
  attained with_pauses s goals
  <= Z.min (total (fun g => if can_attain g then 1 else 0) goals)
       ((total (worth one) goals
         + Z.of_nat (workers I) * memory I * total (fun x => x) numerators) / one).
Proof.
  intros H1 HI Hp Hg Hl HF. apply feasible_with_pauses_served in HF.
  destruct HI as [_ Hr]. rewrite Forall_forall in Hr, Hl.
  assert (Hok : forall p, In p s -> 0 <= prompt (request_of p) /\ 1 <= output (request_of p)).
  { intros p Hin. destruct HF as [Hs _ _]. apply (in_map request_of) in Hin. cbn in Hs.
    rewrite Hs in Hin. apply Hr in Hin. lia. }
  apply (at_most_in_time with_pauses I first numerators s
           (fun p => paid (price_at first numerators) (request_of p) 1 (times_of p))); auto.
  - now apply paused_runs_pay.
  - intros p Hin. apply paid_nonneg; [intros; now apply price_nonneg|apply Hok; auto|lia].
  - intros p g Hin Hg' E [[Hlen Hi] _] Hat. specialize (Hl g Hg').
    destruct (Hok p Hin) as [_ Ho].
    unfold pays_when_paused_in_time, can_attain, attains, latest_start in *.
    cbn [with_pauses asks Services.first done] in *. rewrite <- E in *.
    assert (Hne : times_of p <> []) by (intros C; rewrite C in Hlen; cbn [length] in Hlen; lia).
    pose proof (room_after _ _ Hi Hne).
    assert (arrival (request_of p) < hd 0 (times_of p)).
    { destruct (times_of p); [congruence|]. now destruct Hi. }
    destruct (first_token g); split; try lia; (apply Hl; [now split|lia]).
Qed.

Print Assumptions prices_prove_a_ceiling.
Print Assumptions prices_prove_a_ceiling_with_pauses.
