(** * Checking a schedule with pauses

    docs/theory/pauses.md, "The problem": a schedule is written as segments, the first and the last time
    of each stretch of active times, and memory is followed by the same sweep. *)

From Coq Require Import ZArith List Lia Bool Permutation.
From KV Require Import Problem Sums Memory Services Prices Pauses ScheduleCheck.
Import ListNotations.
Open Scope Z_scope.

Definition segments := list (Z * Z).

(** When the last of them ends: they come one after another after [free], and make what is missing
    of [output] tokens, [made] of which are there. *)
Fixpoint segments_end (free made output : Z) (l : segments) : option Z :=
  match l with
  | [] => if made =? output then Some free else None
  | (a, b) :: rest =>
      if (free <? a) && (a <=? b) then segments_end b (made + (b - a + 1)) output rest else None
  end.

(** A segment holds like a run with a prompt that includes what was made before. *)
Fixpoint events_of_segments (before : Z) (l : segments) (rest : list event) : list event :=
  match l with
  | [] => rest
  | (a, b) :: l' => piece_events before (a - 1) b (events_of_segments (before + (b - a + 1)) l' rest)
  end.

Fixpoint events_of_all (l : list request) (all : list segments) (rest : list event) : list event :=
  match l, all with
  | r :: l', x :: all' => events_of_segments (prompt r) x (events_of_all l' all' rest)
  | _, _ => rest
  end.

(** The total latency; none where these are no segments. *)
Fixpoint segments_latency (l : list request) (all : list segments) : option Z :=
  match l, all with
  | [], [] => Some 0
  | r :: l', x :: all' =>
      match segments_end (arrival r) 0 (output r) x, segments_latency l' all' with
      | Some c, Some sum => Some (c - arrival r + sum)
      | _, _ => None
      end
  | _, _ => None
  end.

(** For one worker. *)
Definition checked_segments (I : instance) (all : list segments) (value : Z) : bool :=
  Nat.eqb (workers I) 1 &&
  match segments_latency (requests I) all with
  | Some found => (found =? value) &&
                  sweep (memory I) (-1) 0 0 (EventSort.sort (events_of_all (requests I) all []))
  | None => false
  end.

(** ** What they say *)

Fixpoint segment_times (l : segments) : list Z :=
  match l with
  | [] => []
  | (a, b) :: rest => rounds a (Z.to_nat (b - a + 1)) ++ segment_times rest
  end.

Definition paused_by (x : request * segments) : paused :=
  Paused (fst x) (map (fun t => (t, O)) (segment_times (snd x))).

Definition paused_schedule (l : list request) (all : list segments) : list paused :=
  map paused_by (combine l all).

Lemma times_of_segments x : times_of (paused_by x) = segment_times (snd x).
Proof. unfold times_of, paused_by. cbn [active_times]. rewrite map_map. apply map_id. Qed.

Lemma increasing_rounds_app n : forall a from l,
  a < from -> increasing (from + Z.of_nat n - 1) l -> (1 <= n)%nat ->
  increasing a (rounds from n ++ l).
Proof.
  induction n as [|n IH]; intros a from l Ha Hl Hn; [lia|]. cbn [rounds app increasing].
  split; [auto|]. destruct n as [|n].
  - cbn [rounds app]. replace (from + Z.of_nat 1 - 1) with from in Hl by lia. exact Hl.
  - apply IH; [lia| |lia]. replace (from + 1 + Z.of_nat (S n) - 1) with (from + Z.of_nat (S (S n)) - 1)
      by lia. exact Hl.
Qed.

Lemma last_app_rounds from n l d : (1 <= n)%nat ->
  last (rounds from n ++ l) d = last l (from + Z.of_nat n - 1).
Proof.
  revert from d. induction n as [|n IH]; intros from d Hn; [lia|]. cbn [rounds app].
  rewrite last_cons. destruct n as [|n].
  - cbn [rounds app]. f_equal. lia.
  - rewrite IH by lia. f_equal. lia.
Qed.

Lemma segments_end_sound l : forall free made output c,
  segments_end free made output l = Some c ->
  increasing free (segment_times l) /\
  made + Z.of_nat (length (segment_times l)) = output /\
  last (segment_times l) free = c.
Proof.
  induction l as [|[a b] l IH]; intros free made output c H; cbn [segments_end segment_times] in *.
  - destruct (Z.eqb_spec made output); [|discriminate]. injection H as <-. cbn. lia.
  - destruct ((free <? a) && (a <=? b)) eqn:E; [|discriminate].
    destruct (IH _ _ _ _ H) as (H1 & H2 & H3). rewrite app_length, rounds_length.
    assert (Eb : a + Z.of_nat (Z.to_nat (b - a + 1)) - 1 = b) by lia.
    split; [|split; [lia|]].
    + apply increasing_rounds_app; [lia| |lia]. now rewrite Eb.
    + rewrite last_app_rounds by lia. now rewrite Eb.
Qed.

Lemma held_app r w t l l' : forall j,
  held r j (l ++ l') w t = held r j l w t + held r (j + Z.of_nat (length l)) l' w t.
Proof.
  induction l as [|[u v] l IH]; intros j; cbn [app held length].
  - now replace (j + Z.of_nat 0) with j by lia.
  - rewrite IH. replace (j + 1 + Z.of_nat (length l)) with (j + Z.of_nat (S (length l))) by lia. lia.
Qed.

Lemma events_of_segments_total r t l : forall j free made output c rest,
  segments_end free made output l = Some c ->
  total (adds t) (events_of_segments (prompt r + j - 1) l rest)
  = held r j (map (fun u => (u, O)) (segment_times l)) O t + total (adds t) rest.
Proof.
  induction l as [|[a b] l IH]; intros j free made output c rest H;
    cbn [events_of_segments segment_times segments_end] in *; [cbn; lia|].
  destruct ((free <? a) && (a <=? b)) eqn:E; [|discriminate].
  rewrite piece_adds, map_app, held_app, held_in_one_piece, map_length, rounds_length by lia.
  replace (prompt r + j - 1 + (b - a + 1))
    with (prompt r + (j + Z.of_nat (Z.to_nat (b - a + 1))) - 1) by lia.
  rewrite (IH _ _ _ _ _ _ H). cbn [Nat.eqb andb].
  destruct (Z.ltb_spec (a - 1) t), (Z.leb_spec t b), (Z.leb_spec a t),
    (Z.ltb_spec t (a + Z.of_nat (Z.to_nat (b - a + 1)))); cbn [andb]; lia.
Qed.

Lemma events_of_all_total t l : forall all rest sum,
  segments_latency l all = Some sum ->
  total (adds t) (events_of_all l all rest)
  = total (fun p => paused_holds p O t) (paused_schedule l all) + total (adds t) rest.
Proof.
  induction l as [|r l IH]; intros [|x all] rest sum H; cbn [segments_latency] in H;
    try discriminate; [reflexivity|].
  destruct (segments_end (arrival r) 0 (output r) x) as [c|] eqn:E1; [|discriminate].
  destruct (segments_latency l all) as [sum'|] eqn:E2; [|discriminate].
  cbn [events_of_all]. replace (prompt r) with (prompt r + 1 - 1) at 1 by lia.
  rewrite (events_of_segments_total r t x 1 _ _ _ _ _ E1), (IH _ _ _ E2).
  unfold paused_schedule. cbn [combine map total]. unfold paused_holds at 2, paused_by.
  cbn [fst snd request_of active_times]. lia.
Qed.

(** What the checker accepts as a schedule with pauses is one, and has this total latency. *)
Theorem checked_segments_sound (I : instance) all value :
  well_formed I -> checked_segments I all value = true ->
  let s := paused_schedule (requests I) all in
  feasible_with_pauses I s /\ map times_of s = map segment_times all /\
  paused_total_latency s = value.
Proof.
  intros [HM Hr] H s. unfold checked_segments in H. apply andb_prop in H as [Hw H].
  apply Nat.eqb_eq in Hw.
  destruct (segments_latency (requests I) all) as [found|] eqn:E; [|discriminate].
  apply andb_prop in H as [Hv Hsweep]. apply Z.eqb_eq in Hv. subst found.
  rewrite Forall_forall in Hr.
  assert (G : forall l all sum, segments_latency l all = Some sum ->
            (forall r, In r l -> In r (requests I)) ->
            let s := paused_schedule l all in
            map request_of s = l /\ map times_of s = map segment_times all /\
            Forall (fun p => allowed (request_of p) (times_of p)) s /\
            paused_total_latency s = sum).
  { clear E Hsweep. induction l as [|r l IH]; intros [|x all'] sum E Hin; cbn [segments_latency] in E;
      try discriminate; [injection E as <-; cbn; auto|].
    destruct (segments_end (arrival r) 0 (output r) x) as [c|] eqn:E1; [|discriminate].
    destruct (segments_latency l all') as [sum'|] eqn:E2; [|discriminate]. injection E as <-.
    destruct (IH all' sum' E2 ltac:(intros; apply Hin; now right)) as (I1 & I2 & I3 & I4).
    apply segments_end_sound in E1 as (S1 & S2 & S3).
    specialize (Hr r (Hin r (or_introl eq_refl))).
    unfold paused_schedule in *. cbn [combine map].
    split; [|split; [|split]].
    - cbn [paused_by request_of fst]. now rewrite I1.
    - now rewrite times_of_segments, I2.
    - constructor; auto. rewrite times_of_segments. cbn [paused_by request_of fst snd].
      split; [lia|auto].
    - unfold paused_total_latency in *. cbn [total]. rewrite I4, times_of_segments.
      cbn [paused_by request_of fst snd]. unfold paused_latency.
      enough (last (segment_times x) 0 = c) by lia. rewrite <- S3.
      destruct (segment_times x); [cbn [length] in S2; lia|]. now rewrite !last_cons. }
  destruct (G (requests I) all value E ltac:(auto)) as (G1 & G2 & G3 & G4).
  split; [|auto]. fold s in G1, G2, G3, G4.
  assert (Hplaces : forall p, In p s -> exists l, active_times p = map (fun t => (t, O)) l).
  { intros p Hp. unfold s, paused_schedule in Hp. apply in_map_iff in Hp as (x & <- & _).
    eexists. reflexivity. }
  constructor; auto.
  - apply Forall_forall. intros p Hp. destruct (Hplaces p Hp) as [l ->].
    rewrite Forall_map. apply Forall_forall. intros t _. cbn. lia.
  - intros w t. destruct w as [|w].
    + destruct (Z_lt_le_dec (-1) t) as [Ht|Ht].
      * pose proof (sweep_sound _ _ _ _ _ Hsweep t Ht) as K.
        rewrite <- (total_perm _ _ _ (EventSort.Permuted_sort _)) in K.
        rewrite (events_of_all_total t _ _ _ _ E) in K. fold s in K. cbn [total] in K. lia.
      * rewrite total_zero; [lia|]. intros p Hp. apply held_elsewhere.
        rewrite Forall_forall in G3. destruct (G3 p Hp) as [_ Hi]. intros Hin.
        pose proof (increasing_in _ _ _ Hi Hin). apply (in_map request_of) in Hp.
        rewrite G1 in Hp. apply Hr in Hp. lia.
    + rewrite total_zero; [lia|]. intros p Hp. unfold paused_holds.
      destruct (Hplaces p Hp) as [l ->]. generalize 1. induction l as [|u l IHl]; intros j; cbn; [auto|].
      rewrite IHl, andb_false_r. reflexivity.
Qed.

Print Assumptions checked_segments_sound.
