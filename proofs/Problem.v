(** * The problem

    This file says what the problem is.  It proves nothing.  To know what a theorem of the other
    files says, read this file and the statement of the theorem; Coq has read the proof.

    How to read it, without knowing Coq: [Record] lists the fields of a kind of thing, [Definition]
    says what a word means, [Z] are the integers, [nat] the numbers 0, 1, 2, ..., [list] is a list,
    [Forall] says that all members of a list have a property, and [forall] "for all".

    There are one or more workers, each with a cache of M tokens, and one clock of rounds 0, 1, 2,
    ...  A request that starts in round k yields one token in each of the rounds that end at the
    times k + 1, ..., k + output, and holds its prompt and the tokens that it has yielded. *)

From Coq Require Import ZArith List Bool.
Import ListNotations.
Open Scope Z_scope.

Record request := Request { arrival : Z; prompt : Z; output : Z }.

Record instance := Instance { memory : Z; workers : nat; requests : list request }.

(** Each request can run alone. *)
Definition well_formed (I : instance) : Prop :=
  1 <= memory I /\
  Forall (fun r => 0 <= arrival r /\ 0 <= prompt r /\ 1 <= output r /\
                   prompt r + output r <= memory I) (requests I).

(** A request, the round in which it starts, and the worker that it runs on. *)
Record placement := Place { what : request; start : Z; worker : nat }.

Definition completion (p : placement) : Z := start p + output (what p).

Definition latency (p : placement) : Z := completion p - arrival (what p).

(** What a started request holds at time [t]. *)
Definition holds (p : placement) (t : Z) : Z :=
  if (start p <? t) && (t <=? completion p) then prompt (what p) + (t - start p) else 0.

(** The sum of [f x] over all members [x] of a list. *)
Fixpoint total {A} (f : A -> Z) (l : list A) : Z :=
  match l with
  | [] => 0
  | x :: rest => f x + total f rest
  end.

(** A schedule gives each request a start and a worker. *)
Definition schedule := list placement.

Definition total_latency (s : schedule) : Z := total latency s.

(** What all requests on worker [w] hold at time [t]. *)
Definition load (s : schedule) (w : nat) (t : Z) : Z :=
  total (fun p => if Nat.eqb (worker p) w then holds p t else 0) s.

Record feasible (I : instance) (s : schedule) : Prop := {
  serves_all : map what s = requests I;
  starts_after_arrival : Forall (fun p => arrival (what p) <= start p) s;
  runs_on_a_worker : Forall (fun p => (worker p < workers I)%nat) s;
  fits : forall w t, load s w t <= memory I
}.

(** What a lower bound claims. *)
Definition lower_bound (I : instance) (b : Z) : Prop :=
  forall s, feasible I s -> b <= total_latency s.

Definition optimal (I : instance) (s : schedule) : Prop :=
  feasible I s /\ forall s', feasible I s' -> total_latency s <= total_latency s'.

(** ** Runs with evictions

    A request that is evicted loses its tokens and starts again later.  Its last start counts; the
    work that it lost held memory as well.  Lost work of the request at [position] in the list is
    a run that was cut off: at the times [since] + 1, ..., [until] it held its prompt and one token
    more each round. *)
Record lost_work :=
  Lost { position : Z; last_run : placement; since : Z; until : Z; lost_on : nat }.

Definition lost_holds (x : lost_work) (t : Z) : Z :=
  if (since x <? t) && (t <=? until x) then prompt (what (last_run x)) + (t - since x) else 0.

(** It lies between the arrival and the last start, and is shorter than the output. *)
Definition lost_before_the_last_run (s : schedule) (x : lost_work) : Prop :=
  nth_error s (Z.to_nat (position x)) = Some (last_run x) /\
  arrival (what (last_run x)) <= since x < until x /\
  until x <= start (last_run x) /\
  until x - since x < output (what (last_run x)).

Definition lost_apart (x y : lost_work) : Prop :=
  position x = position y -> until x <= since y \/ until y <= since x.

Record feasible_run (I : instance) (s : schedule) (lost : list lost_work) : Prop := {
  run_serves_all : map what s = requests I;
  run_starts_after_arrival : Forall (fun p => arrival (what p) <= start p) s;
  run_on_a_worker : Forall (fun p => (worker p < workers I)%nat) s;
  run_lost : Forall (lost_before_the_last_run s) lost;
  run_lost_apart : ForallOrdPairs lost_apart lost;
  run_fits : forall w t,
    load s w t + total (fun x => if Nat.eqb (lost_on x) w then lost_holds x t else 0) lost
    <= memory I
}.
