(* Integers of the machine for fast.ml, trusted as they stand: each operation gives the number that
   Coq's gives, or stops.  Natural numbers are only counts of what is in memory. *)

exception Too_large

let same (n : int) = n
let natural (n : int) = if n < 0 then 0 else n
let equal (a : int) (b : int) = a = b
let at_most (a : int) (b : int) = a <= b
let below (a : int) (b : int) = a < b
let larger (a : int) (b : int) = if a < b then b else a
let smaller (a : int) (b : int) = if b < a then b else a

(* A sum is wrong only if both numbers have one sign and it has the other. *)
let add a b =
  let sum = a + b in
  if (a lxor sum) land (b lxor sum) < 0 then raise Too_large else sum

let opp a = if a = min_int then raise Too_large else -a

let sub a b =
  let difference = a - b in
  if (a lxor b) land (a lxor difference) < 0 then raise Too_large else difference

let small = 1 lsl 30

let mul a b =
  if a < small && b < small && a > -small && b > -small then a * b
  else if a = 0 || b = 0 then 0
  else if a = min_int || b = min_int then raise Too_large
  else
    let product = a * b in
    if product = min_int || product / b <> a then raise Too_large else product

(* Rounded down; by 0 it is 0, as in Coq. *)
let div a b =
  if b = 0 then 0
  else if b = -1 then opp a
  else
    let quotient = a / b in
    if a mod b <> 0 && a < 0 <> (b < 0) then quotient - 1 else quotient
