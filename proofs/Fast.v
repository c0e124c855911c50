(** * The same program with the integers of the machine

    This file alone asks for trust in more than Coq and its extraction: numbers are OCaml's [int],
    and the operations are those of machine.ml, a page of OCaml that stops when a result does not
    fit.  Where it stops, the program of Extract.v takes over. *)

From Coq Require Import Extraction ExtrOcamlBasic ZArith List.
From KV Require Import Problem ScheduleCheck Checker.
Extraction Language OCaml.

Extract Inductive nat => "int" [ "0" "Stdlib.succ" ]
  "(fun zero next n -> if n = 0 then zero () else next (n - 1))".
Extract Inductive positive => "int"
  [ "(fun p -> 2 * p + 1)" "(fun p -> 2 * p)" "1" ]
  "(fun odd even one p -> if p = 1 then one () else if p land 1 = 0 then even (p / 2) else odd (p / 2))".
Extract Inductive Z => "int" [ "0" "" "Stdlib.(~-)" ]
  "(fun zero positive negative z -> if z = 0 then zero () else if z > 0 then positive z else negative (- z))".

Extract Constant Nat.eqb => "Machine.equal".
Extract Constant Nat.leb => "Machine.at_most".
Extract Constant Nat.ltb => "Machine.below".
Extract Constant Z.of_nat => "Machine.same".
Extract Constant Z.to_nat => "Machine.natural".
Extract Constant Z.add => "Machine.add".
Extract Constant Z.sub => "Machine.sub".
Extract Constant Z.mul => "Machine.mul".
Extract Constant Z.opp => "Machine.opp".
Extract Constant Z.div => "Machine.div".
Extract Constant Z.eqb => "Machine.equal".
Extract Constant Z.leb => "Machine.at_most".
Extract Constant Z.ltb => "Machine.below".
Extract Constant Z.max => "Machine.larger".
Extract Constant Z.min => "Machine.smaller".

Extraction "fast.ml" judge.
