(** * The program with the binary numbers of Coq, as it was proved *)

From Coq Require Import Extraction ExtrOcamlBasic ZArith List.
From KV Require Import Problem ScheduleCheck Checker.
Extraction Language OCaml.
Extraction "plain.ml" judge Z.of_nat Z.add Z.mul Z.opp.
