(* Reads a certificate and hands it to the proved checker.  This reader is not proved: it has to
   hand over what the file says.  It refuses whatever it does not know.

     kvopt-proved [--plain] FILE ...     exit status 0 valid, 1 invalid, 2 unreadable or not covered

   Of several files only the verdict is printed, a line each.  With --plain only the program with Coq's own numbers runs.  Not looked at: the hash, names, ids,
   notes, times in seconds, and the budget. *)

exception Unreadable of string
exception Not_covered of string
exception Wrong of string

let unreadable text = raise (Unreadable text)
let not_covered text = raise (Not_covered text)
let wrong text = raise (Wrong text)
let most_rounds = 1_000_000

(* ---- JSON ---- *)

type json =
  | Null
  | Bool of bool
  | Integer of string
  | Decimal
  | Text of string
  | List of json list
  | Object of (string * json) list

let parse text =
  let length = String.length text and place = ref 0 in
  let peek () = if !place < length then text.[!place] else '\000' in
  let fail () = unreadable (Printf.sprintf "no JSON at byte %d" !place) in
  let rec blank () =
    match peek () with ' ' | '\t' | '\n' | '\r' -> incr place; blank () | _ -> () in
  let expect c = if !place < length && peek () = c then incr place else fail () in
  let word w value = String.iter expect w; value in
  let quoted () =
    expect '"';
    let buffer = Buffer.create 16 in
    let rec go () =
      if !place >= length then fail ();
      match peek () with
      | '"' -> incr place
      | '\\' ->
          (* Escapes stay as they are: no known field has one. *)
          Buffer.add_char buffer '\\';
          incr place;
          if !place >= length then fail ();
          Buffer.add_char buffer (peek ());
          incr place;
          go ()
      | c when Char.code c < 32 -> fail ()
      | c -> Buffer.add_char buffer c; incr place; go () in
    go ();
    Buffer.contents buffer in
  let digits () =
    let begins = !place in
    while match peek () with '0' .. '9' -> true | _ -> false do incr place done;
    if !place = begins then fail () in
  let number () =
    let begins = !place in
    if peek () = '-' then incr place;
    let first = !place in
    digits ();
    if text.[first] = '0' && !place > first + 1 then fail ();
    let whole = String.sub text begins (!place - begins) in
    let exact = ref true in
    if peek () = '.' then (exact := false; incr place; digits ());
    (match peek () with
    | 'e' | 'E' ->
        exact := false;
        incr place;
        (match peek () with '+' | '-' -> incr place | _ -> ());
        digits ()
    | _ -> ());
    if !exact then Integer whole else Decimal in
  let rec value depth =
    if depth > 20 then unreadable "is nested too deeply";
    blank ();
    let found =
      match peek () with
      | '{' ->
          incr place;
          blank ();
          if peek () = '}' then (incr place; Object [])
          else
            let rec members known =
              blank ();
              let name = quoted () in
              if List.mem_assoc name known then unreadable "an object has a key twice";
              blank ();
              expect ':';
              let known = (name, value (depth + 1)) :: known in
              if peek () = ',' then (incr place; members known)
              else (expect '}'; Object known) in
            members []
      | '[' ->
          incr place;
          blank ();
          if peek () = ']' then (incr place; List [])
          else
            let rec entries known =
              let known = value (depth + 1) :: known in
              if peek () = ',' then (incr place; entries known)
              else (expect ']'; List (List.rev known)) in
            entries []
      | '"' -> Text (quoted ())
      | 't' -> word "true" (Bool true)
      | 'f' -> word "false" (Bool false)
      | 'n' -> word "null" Null
      | _ -> number () in
    blank ();
    found in
  let found = value 0 in
  if !place < length then fail ();
  found

(* ---- shapes ---- *)

let fields what needed optional = function
  | Object members ->
      List.iter
        (fun name ->
          if not (List.mem_assoc name members) then unreadable (what ^ ": has no " ^ name))
        needed;
      List.iter
        (fun (name, _) ->
          if not (List.mem name needed || List.mem name optional) then
            unreadable (what ^ ": has an unknown field"))
        members;
      fun name -> List.assoc_opt name members
  | _ -> unreadable (what ^ ": must be an object")

let get field name = match field name with Some value -> value | None -> Null
let list what = function List l -> l | _ -> unreadable (what ^ ": must be a list")
let text what = function Text t -> t | _ -> unreadable (what ^ ": must be text")

let integer what = function
  | Integer digits -> digits
  | _ -> unreadable (what ^ ": must be an integer")

let small what value =
  match int_of_string_opt (integer what value) with
  | Some n when n >= 0 && n < 1 lsl 53 -> n
  | _ -> unreadable (what ^ ": is too small or too large")

(* What the extracted programs have in common. *)
module type CHECKER = sig
  type z
  type nat
  type request = { arrival : z; prompt : z; output : z }
  type instance = { memory : z; workers : nat; requests : request list }
  type row = { row_position : z; row_start : z; row_end : z; row_on : nat }
  type stage = { scale : z; peaks : (z * z) list; moments : z list; numerators : z list list }

  type proof =
    | Prices of z * z * z list
    | Volumes of z list list
    | States of z option * bool * stage list

  type lower_proof = Whole of proof | Split of (z * proof) list
  type way = Starts of z list * nat list * row list | Segments of (z * z) list list
  type run = { value : z; how : way }

  type deadlines = {
    by_first_token : bool;
    allowed_times : z list;
    borders : z list;
    border_prices : z list;
    over : z;
    claimed : z;
    best : (run * z) option;
    counts : z list;
  }

  type certificate = {
    problem : instance;
    pauses : bool;
    upper : run option;
    lower : (z * lower_proof) option;
    policies : run list;
    in_time : deadlines option;
  }

  type verdict = Accepted | Bad_instance | Bad_upper | Bad_lower | Bad_policy | Bad_deadlines

  val judge : certificate -> verdict
  val number : string -> z
  val natural : int -> nat
end

module Plain_checker = struct
  include Plain

  let rec natural n = if n = 0 then O else S (natural (n - 1))
  let rec positive n = if n = 1 then XH else if n land 1 = 1 then XI (positive (n / 2)) else XO (positive (n / 2))
  let small n = if n = 0 then Z0 else if n > 0 then Zpos (positive n) else Zneg (positive (-n))

  (* Eighteen digits at a time. *)
  let rec number digits =
    let length = String.length digits in
    if digits.[0] = '-' then Z.opp (number (String.sub digits 1 (length - 1)))
    else if length <= 18 then small (int_of_string ("0u" ^ digits))
    else
      let head = String.sub digits 0 (length - 18) and tail = String.sub digits (length - 18) 18 in
      Z.add (Z.mul (number head) (small 1_000_000_000_000_000_000)) (number tail)
end

module Fast_checker = struct
  include Fast

  type z = int
  type nat = int

  let natural (n : int) = n

  let number digits =
    match int_of_string_opt digits with Some n -> n | None -> raise Machine.Too_large
end

module Reader (C : CHECKER) = struct
  open C

  let z what value = number (integer what value)
  let numbers what value = List.map (z what) (list what value)

  (* Fields that change the problem: whoever left one out would check another one. *)
  let left_out_of_requests = [ "weight"; "prefix" ]
  let left_out_of_instances = [ "max_active"; "block_tokens" ]

  let request value =
    let field =
      fields "a request" [ "arrival"; "prompt"; "output" ]
        ([ "id"; "arrival_seconds"; "predicted"; "priority"; "deadline"; "ttft"; "tpot"; "e2e" ] @ left_out_of_requests)
        value in
    List.iter
      (fun name -> if field name <> None then not_covered ("requests with a field " ^ name))
      left_out_of_requests;
    let part name = number (string_of_int (small ("a request, " ^ name) (get field name))) in
    { arrival = part "arrival"; prompt = part "prompt"; output = part "output" }

  let instance value =
    let field =
      fields "instance" [ "schema"; "memory"; "requests" ] 
        ([ "name"; "notes"; "round_ms"; "workers"; "block_size" ] @ left_out_of_instances) value in
    if field "block_size" <> None then not_covered "memory in whole blocks";
    List.iter
      (fun name -> if field name <> None then not_covered ("instances with a field " ^ name))
      left_out_of_instances;
    (match text "instance, schema" (get field "schema") with
    | "kvopt.instance/1" | "kvopt.instance/2" -> ()
    | _ -> unreadable "instance: has an unknown schema");
    let workers = match field "workers" with None -> 1 | Some m -> small "workers" m in
    if workers < 1 || workers > 1_000_000 then unreadable "workers: is too small or too large";
    let rows = list "requests" (get field "requests") in
    if workers > max 1 (List.length rows) then not_covered "more workers than requests";
    ( workers,
      { memory = number (string_of_int (small "memory" (get field "memory")));
        workers = natural workers;
        requests = List.map request rows } )

  let row value =
    match list "lost" value with
    | [ i; start; until ] ->
        { row_position = z "lost" i; row_start = z "lost" start; row_end = z "lost" until;
          row_on = natural 0 }
    | _ -> unreadable "lost: must be [request, start, end]"

  let segment what value =
    match list (what ^ ", segments") value with
    | [ first; last ] -> (z what first, z what last)
    | _ -> wrong (what ^ ": a segment must be [first, last]")

  (* None where nothing is claimed; [needed] are the fields beside its value and its starts. *)
  let run workers what needed value =
    let named = List.mem "outcome" needed in
    let finished field =
      if named && get field "outcome" <> Text "completed" then
        unreadable (what ^ ": must be completed") in
    match value with
    | Null -> None
    | Object members when named && List.assoc_opt "value" members = Some Null ->
        let field = fields what ("value" :: needed) [] value in
        (match get field "outcome" with
        | Text ("livelock" | "unfinished") -> None
        | _ -> unreadable (what ^ ": must have an outcome"))
    | Object members when List.mem_assoc "segments" members ->
        let field = fields what ([ "value"; "segments" ] @ needed) [] value in
        finished field;
        if workers > 1 then wrong (what ^ ": names no workers");
        let rows = List.map (list (what ^ ", segments")) (list what (get field "segments")) in
        Some { value = z (what ^ ", value") (get field "value");
               how = Segments (List.map (List.map (segment what)) rows) }
    | _ ->
        let field = fields what ([ "value"; "starts" ] @ needed) [ "workers"; "lost" ] value in
        finished field;
        let starts = numbers (what ^ ", starts") (get field "starts") in
        let rows = match field "lost" with None -> [] | Some l -> List.map row (list "lost" l) in
        if workers > 1 && rows <> [] then not_covered "work lost on one of several workers";
        let on =
          match field "workers" with
          | Some l -> List.map (fun w -> natural (small "workers" w)) (list "workers" l)
          | None when workers = 1 -> List.map (fun _ -> natural 0) starts
          | None -> unreadable (what ^ ": names no workers") in
        Some { value = z (what ^ ", value") (get field "value"); how = Starts (starts, on, rows) }

  (* Of several workers a search is left out: what the stages prove alone is taken. *)
  let search = ref false

  (* Times of a part count from its begin. *)
  let later from text =
    match int_of_string_opt text with
    | Some n when n < 1 lsl 60 -> number (string_of_int (n + from))
    | _ -> if from = 0 then number text else not_covered "times that late"

  let stage from value =
    let field = fields "a stage" [ "denominator"; "peaks"; "times"; "numerators" ] [] value in
    let peak pair =
      match list "a peak" pair with
      | [ p; n ] -> (integer "a peak" p, n)
      | _ -> wrong "lower: peaks must be pairs [peak, rounds]" in
    let pairs = List.map peak (list "peaks" (get field "peaks")) in
    let rounds (_, n) =
      match int_of_string_opt (integer "rounds" n) with
      | Some n when n < 0 -> wrong "lower: peaks must be pairs [peak, rounds]"
      | Some n when n <= most_rounds -> n
      | _ -> not_covered "so many rounds" in
    let states = List.fold_left (fun sum pair -> sum + rounds pair) 0 pairs in
    if List.length (List.sort_uniq compare (List.map fst pairs)) < List.length pairs then
      wrong "lower: a peak is listed twice";
    let times = List.map (integer "times") (list "times" (get field "times")) in
    let far text =
      match int_of_string_opt text with
      | Some n when n < 1 -> wrong "lower: needs times of at least 1"
      | Some n -> n
      | None -> if text.[0] = '-' then wrong "lower: needs times of at least 1" else max_int in
    let all = List.map far times in
    (match all with
    | [] -> wrong "lower: must have a time"
    | first :: _ ->
        if List.fold_left max first all - first > most_rounds then not_covered "so many rounds");
    let rows = List.map (list "numerators") (list "numerators" (get field "numerators")) in
    if List.length rows <> List.length times || List.exists (fun r -> List.length r <> states) rows
    then wrong "lower: needs a price of each state at each of the times";
    { scale = z "denominator" (get field "denominator");
      peaks = List.map (fun (p, n) -> (number p, z "rounds" n)) pairs;
      moments = List.map (later from) times;
      numerators = List.map (List.map (z "numerators")) rows }

  (* The denominator of prices of tokens, the digits of the time of the first one, and the prices. *)
  let prices_of_tokens value =
    let field = fields "proof" [ "kind"; "denominator"; "resources" ] [] value in
    let of_tokens = function
      | Object members -> List.assoc_opt "name" members = Some (Text "tokens")
      | _ -> false in
    let resources = list "resources" (get field "resources") in
    if not (List.for_all of_tokens resources) then not_covered "prices of slots or prefixes";
    let tokens =
      match resources with
      | [ one ] -> fields "tokens" [ "name"; "first"; "numerators" ] [] one
      | _ -> wrong "proof: needs prices of tokens once" in
    let digits = integer "first" (get tokens "first") in
    if digits.[0] = '-' || digits = "0" then wrong "proof: needs a first time of at least 1";
    (z "denominator" (get field "denominator"), digits, numbers "numerators" (get tokens "numerators"))

  let proof from value =
    let kind = match value with Object m -> List.assoc_opt "kind" m | _ -> None in
    match kind with
    | Some (Text "prices") ->
        let denominator, first, numerators = prices_of_tokens value in
        Prices (denominator, later from first, numerators)
    | Some (Text "volume") ->
        let field = fields "proof" [ "kind" ] [ "staircases" ] value in
        Volumes
          (match field "staircases" with
          | None -> []
          | Some l -> List.map (numbers "staircases") (list "staircases" l))
    | Some (Text "configurations") ->
        let field = fields "proof" [ "kind"; "target"; "searched"; "stages" ] [ "kept"; "cuts" ] value in
        let searched =
          match get field "searched" with
          | Bool b -> b
          | _ -> unreadable "searched: must be true or false" in
        let target = match get field "target" with Null -> None | v -> Some (z "target" v) in
        let stages = List.map (stage from) (list "stages" (get field "stages")) in
        if target = None && (searched || List.length stages <> 1) then
          wrong "lower: needs one stage and no search without a target";
        if searched then search := true;
        States (target, searched, stages)
    | _ -> not_covered "this kind of proof"

  let part value =
    let field = fields "a part" [ "from"; "proof" ] [] value in
    let from = small "from" (get field "from") in
    (number (string_of_int from), proof from (get field "proof"))

  let lower = function
    | Null -> None
    | value ->
        let field = fields "lower" [ "value"; "proof" ] [] value in
        let given = get field "proof" in
        let kind = match given with Object m -> List.assoc_opt "kind" m | _ -> None in
        let proof =
          match kind with
          | Some (Text "split") ->
              let field = fields "proof" [ "kind"; "parts" ] [] given in
              Split (List.map part (list "parts" (get field "parts")))
          | _ -> Whole (proof 0 given) in
        Some (z "lower, value" (get field "value"), proof)

  (* Whether the first token is due, and when: a single limit is looked at, in rounds. *)
  let limit rows limits =
    let by_first_token, name, names, length =
      match limits with
      | Object [ ("ttft", length) ] -> (true, "ttft", [ "ttft" ], length)
      | Object [ ("e2e", length) ] -> (false, "e2e", [ "e2e"; "deadline" ], length)
      | Object (_ :: _) -> not_covered "a pace, or several limits of a service level"
      | _ -> wrong "slo: needs a limit" in
    let rounds what value =
      let n = small what value in
      if n < 1 then wrong (what ^ ": is too small");
      number (string_of_int n) in
    let own row =
      match row with
      | Object members -> (
          match List.filter_map (fun name -> List.assoc_opt name members) names with
          | length :: _ -> rounds ("a request, " ^ name) length
          | [] -> wrong "slo: a request has no limit of its own")
      | _ -> unreadable "a request: must be an object" in
    match length with
    | Text "own" -> (by_first_token, List.map own rows)
    | Integer _ ->
        let allowed = rounds ("slo, " ^ name) length in
        (by_first_token, List.map (fun _ -> allowed) rows)
    | _ -> not_covered "limits in seconds"

  (* [policies] are as they were written, a pair of what is there and the run. *)
  let deadlines instance policies value =
    let field =
      fields "slo" [ "limits"; "ceiling"; "proof"; "attained"; "best" ] [] value in
    let requests, fleet =
      match instance with
      | Object members -> (List.assoc "requests" members, List.mem_assoc "workers" members)
      | _ -> unreadable "instance: must be an object" in
    if fleet then wrong "slo: are looked at for one worker";
    let by_first_token, allowed_times = limit (list "requests" requests) (get field "limits") in
    let over, digits, border_prices = prices_of_tokens (get field "proof") in
    (* A price is that of the time after its border; the last border ends the last price. *)
    let first =
      match int_of_string_opt digits with
      | Some n -> n - 1
      | None -> not_covered "such late prices" in
    let border i = number (string_of_int (first + i)) in
    let borders = List.init (List.length border_prices + 1) border in
    let attained = list "slo, attained" (get field "attained") in
    if List.length attained <> List.length policies then
      wrong "slo: needs a number, or null, for each policy";
    let count run number =
      match (run, number) with
      | None, Null -> None
      | Some _, Integer _ -> Some (z "slo, attained" number)
      | _, (Null | Integer _) -> wrong "slo: needs a number if and only if a policy completed"
      | _ -> unreadable "slo, attained: must be integers" in
    let best value =
      let what = "slo, best" in
      match run 1 what [ "attained" ] value with
      | None -> None
      | Some found ->
          let field = fields what [ "attained" ] [ "value"; "starts"; "segments"; "lost"; "workers" ] value in
          Some (found, z "slo, best, attained" (get field "attained")) in
    { by_first_token;
      allowed_times;
      borders;
      border_prices;
      over;
      claimed = z "slo, ceiling" (get field "ceiling");
      best = best (get field "best");
      counts = List.filter_map Fun.id (List.map2 count policies attained) }

  let pieces_of_prompts () = not_covered "prompts in pieces"

  (* Without pauses a run in segments would have to be one in one piece, and is not looked at. *)
  let within pauses = function
    | Some { how = Segments _; _ } when not pauses -> not_covered "segments in a scope without pauses"
    | _ -> ()

  let certificate value =
    let field =
      fields "certificate" [ "schema"; "clock"; "scope"; "instance"; "hash"; "upper"; "lower" ]
        [ "policies"; "provenance"; "budget"; "narrower"; "slo" ] value in
    (match field "clock" with
    | Some (Text "rounds") -> ()
    | Some (Object _) -> not_covered "certificates in seconds"
    | _ -> unreadable "clock: is unknown");
    let pauses =
      match field "scope" with
      | Some (Text ("runs" | "restarts")) -> false
      | Some (Text "pauses") -> true
      | Some (Text ("chunks" | "pauses+chunks")) -> pieces_of_prompts ()
      | _ -> unreadable "scope: is unknown" in
    let workers, problem = instance (get field "instance") in
    let upper = run workers "upper" [] (get field "upper") in
    within pauses upper;
    let policies = match field "policies" with None -> [] | Some l -> list "policies" l in
    let policies = List.map (run workers "a policy" [ "policy"; "outcome" ]) policies in
    let in_time =
      match field "slo" with
      | None -> None
      | Some claim ->
          let found = deadlines (get field "instance") policies claim in
          within pauses (Option.map fst found.best);
          Some found in
    { problem;
      pauses;
      upper;
      lower = lower (get field "lower");
      policies = List.filter_map Fun.id policies;
      in_time }

  let several value =
    match value with
    | Object members -> (
        match List.assoc_opt "instance" members with
        | Some (Object instance) -> List.mem_assoc "workers" instance
        | _ -> false)
    | _ -> false

  let judged value =
    search := false;
    match judge (certificate value) with
    | Accepted -> None
    | Bad_instance -> Some "instance: breaks its rules"
    | Bad_upper -> Some "upper: its starts do not give it, or do not fit"
    | Bad_lower when !search && several value -> not_covered "a search for several workers"
    | Bad_lower -> Some "lower: is not what its proof gives"
    | Bad_policy -> Some "a policy: its starts do not give its value, or do not fit"
    | Bad_deadlines -> Some "slo: are not what the proof and the runs give"
end

module Fast_reader = Reader (Fast_checker)
module Plain_reader = Reader (Plain_checker)

(* ---- what is said ---- *)

let side value name =
  match value with
  | Object members -> (
      match List.assoc_opt name members with
      | Some (Object side) -> (
          match List.assoc_opt "value" side with Some (Integer v) -> Some v | _ -> None)
      | _ -> None)
  | _ -> None

let conclusions value =
  let upper = side value "upper" and lower = side value "lower" in
  let member name = match value with Object members -> List.assoc_opt name members | _ -> None in
  let which = if member "scope" = Some (Text "pauses") then "schedule with pauses" else "schedule" in
  (match upper with
  | Some v -> Printf.printf "proved: a feasible %s has total latency %s\n" which v
  | None -> ());
  (match lower with
  | Some v -> Printf.printf "proved: no feasible %s has total latency below %s\n" which v
  | None -> ());
  (match (upper, lower) with
  | Some u, Some l when u = l -> print_endline "proved: that schedule is optimal"
  | _ -> ());
  (match member "slo" with
  | Some (Object claim) -> (
      (match List.assoc_opt "ceiling" claim with
      | Some (Integer most) ->
          Printf.printf "proved: in no feasible %s more than %s requests attain their service levels\n"
            which most
      | _ -> ());
      match List.assoc_opt "best" claim with
      | Some (Object best) -> (
          match List.assoc_opt "attained" best with
          | Some (Integer known) ->
              Printf.printf "proved: in a feasible %s %s do\n" which known
          | _ -> ())
      | _ -> ())
  | _ -> ());
  if member "narrower" <> None then
    print_endline "not checked again: what is claimed of narrower scopes"

let known_schema = function
  | Object members -> (
      match List.assoc_opt "schema" members with
      | Some (Text "kvopt.certificate/4") -> ()
      | _ -> unreadable "certificate: has an unknown schema")
  | _ -> unreadable "certificate: must be an object"

let contents path =
  let channel = open_in_bin path in
  let text = really_input_string channel (in_channel_length channel) in
  close_in channel;
  text

(* The verdict on a file, and the exit status. *)
let checked plain brief path =
  try
    let value = parse (contents path) in
    known_schema value;
    let found =
      if plain then Plain_reader.judged value
      else try Fast_reader.judged value with Machine.Too_large -> Plain_reader.judged value in
    match found with
    | None -> if not brief then conclusions value; ("VALID", 0)
    | Some reason -> ("INVALID: " ^ reason, 1)
  with
  | Unreadable reason | Sys_error reason -> ("UNREADABLE: " ^ reason, 2)
  | Wrong reason -> ("INVALID: " ^ reason, 1)
  | Not_covered what -> ("NOT COVERED: " ^ what, 2)
  | Stack_overflow | Out_of_memory -> ("UNREADABLE: needs more memory", 2)

let () =
  let plain, files =
    match Array.to_list Sys.argv with
    | _ :: "--plain" :: files -> (true, files)
    | _ :: files -> (false, files)
    | [] -> (false, []) in
  if files = [] then (
    prerr_endline "usage: kvopt-proved [--plain] FILE ...";
    exit 2);
  let brief = List.length files > 1 in
  let one worst path =
    let verdict, status = checked plain brief path in
    print_endline verdict;
    max worst status in
  exit (List.fold_left one 0 files)
