"""Certificate files: ``kvopt.certificate/4``, described in ``docs/certificates.md``.

A file that is read is checked by `kvopt.verify` first, as if it were new.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import convert, to_builtins

import kvopt.verify as checker
from kvopt.errors import FalseClaim, InvalidInput, TooLarge
from kvopt.files.atomic import write_atomically
from kvopt.files.reading import blamed_on, parse_json, read_text
from kvopt.incumbent.certificate import Certificate, MachineTime, Optimum
from kvopt.incumbent.in_time import InTime
from kvopt.incumbent.proofs import CheckedBound, PriceProof, Proof, SharedRoundsProof
from kvopt.problem.clocks import ROUNDS, Clock, Seconds
from kvopt.problem.hardware.batch_time_files import SCHEMA as MODEL_SCHEMA
from kvopt.problem.hardware.batch_time_files import batch_time_from_json
from kvopt.problem.instance import Instance
from kvopt.problem.instance_files import instance_from_json, instance_to_json, request_to_json
from kvopt.problem.requests import Request
from kvopt.problem.scopes import Scope
from kvopt.problem.slo import Slo
from kvopt.timetable.policy_run import Outcome, PolicyRun
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.work_intervals import Chunks, Lost
from kvopt.verify.certificate_shape import LARGEST_FILE
from kvopt.verify.step_budget import MOST_STATED

SCHEMA = "kvopt.certificate/4"

Json = dict[str, Any]


def write_certificate(certificate: Certificate, path: str | Path) -> None:
    """Write a certificate, all of it or nothing.

    Raises
    ------
    TooLarge
        If ``kvopt verify`` would refuse a file of this size.
    """
    text, limit = certificate_text(certificate), LARGEST_FILE
    if len(text.encode()) > limit:
        raise TooLarge(f"{path}: the certificate would have more than {limit:,} bytes")
    write_atomically(path, text)


def certificate_text(certificate: Certificate) -> str:
    """Return the JSON text of a certificate: a member a line, a request a line.

    The instance is the last member.
    """
    instance, clock = certificate.instance, certificate.clock
    members: Json = {
        "schema": SCHEMA,
        "clock": clock.model.to_json() if clock.model else "rounds",
        "hash": instance.hash,
        **_sides_to_json(certificate.whole),
        "narrower": [_sides_to_json(optimum) for optimum in certificate.narrower],
        "policies": [
            {"policy": run.policy, "outcome": run.outcome, **run_to_json(run)}
            for run in certificate.runs
        ],
    }
    if not certificate.narrower:
        del members["narrower"]
    if certificate.eager is not None:
        members["eager"] = certificate.eager
    if (in_time := certificate.in_time) is not None:
        members["slo"] = {
            "limits": in_time.slo.limits,
            "ceiling": in_time.ceiling,
            **_steps_to_json(in_time.relaxations),
            "proof": to_builtins(in_time.proof),
            "attained": in_time.attained,
            "best": in_time.best
            and {"attained": in_time.best_attained, **run_to_json(in_time.best)},
        }
    if certificate.machine_time is not None:
        members["machine_time"] = to_builtins(certificate.machine_time)
    members["budget"] = MOST_STATED  # a check that needs less asks for less
    members["provenance"] = {**certificate.provenance, "notes": certificate.notes}
    lines = [f'"{name}": {json.dumps(value, allow_nan=False)}' for name, value in members.items()]
    lines.append(f'"instance": {_instance_text(instance)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read_certificate(path: str | Path, budget: float | None = None) -> Certificate:
    """Read a certificate, after `kvopt.verify` has checked every claim in it.

    Parameters
    ----------
    path
        The file.
    budget
        How many times the default number of steps the check may take; None for the
        budget in the file, up to about ten minutes.

    Raises
    ------
    InvalidInput
        If it cannot be read or takes more to check than the budget allows, with the file and the
        field at fault; `FalseClaim` if a claim in it is false.

    Examples
    --------
    >>> found = read_certificate("ec1.cert.json")       # doctest: +SKIP
    >>> found.objective, found.lower_bound              # doctest: +SKIP
    (12, 12)
    """
    with blamed_on(path):
        value = parse_json(read_text(path))
        verdict = checker.verify(path, budget)
        if not verdict.valid:
            _, _, reason = verdict.lines[-1].partition(": ")
            raise (FalseClaim if verdict.readable else InvalidInput)(reason)
        return _certificate(value)


def _certificate(value: Json) -> Certificate:
    """Return the certificate of a checked file: the narrower scopes come first, then its own."""
    instance, clock = instance_from_json(value["instance"]), _clock(value["clock"])
    provenance = dict(value.get("provenance", {}))
    notes = provenance.pop("notes", [])
    sides = [
        _optimum(side, instance, clock, provenance) for side in (*value.get("narrower", ()), value)
    ]
    in_time = None
    if (claim := value.get("slo")) is not None:
        named, best = {"policy": "best in time"}, claim["best"]
        in_time = InTime(
            slo=Slo(**claim["limits"]),
            count=len(instance),
            ceiling=claim["ceiling"],
            proof=convert(claim["proof"], PriceProof | SharedRoundsProof),
            sure_misses=None,
            best=best and run_from_json({**named, **best}, instance, clock),
            attained=tuple(claim["attained"]),
            relaxations=tuple(claim.get("relaxations", ())),
        )
    return Certificate(
        instance=instance,
        upper=sides[-1].upper,
        lower=sides[-1].lower,
        runs=tuple(run_from_json(row, instance, clock) for row in value.get("policies", ())),
        provenance=provenance,
        notes=tuple(map(str, notes if isinstance(notes, list) else [notes])),
        clock=clock,
        scope=sides[-1].scope,
        narrower=tuple(sides[:-1]),
        in_time=in_time,
        eager=value.get("eager"),
        machine_time=convert(value.get("machine_time"), MachineTime | None),
    )


def _clock(value: Json | str) -> Clock:
    if isinstance(value, str):
        return ROUNDS
    return Seconds(batch_time_from_json({"schema": MODEL_SCHEMA, **value}))


# ---- both sides -------------------------------------------------------------------------


def _sides_to_json(optimum: Optimum) -> Json:
    """Return both sides of an optimum as the fields of a certificate."""
    upper, lower = optimum.upper, optimum.lower
    return {
        "scope": optimum.scope,
        "upper": upper and run_to_json(upper),
        "lower": lower
        and {
            "value": lower.value,
            **_steps_to_json(lower.relaxations),
            "proof": to_builtins(lower.proof),
        },
    }


def _steps_to_json(names: Sequence[str]) -> Json:
    return {"relaxations": names} if names else {}


def _optimum(value: Json, instance: Instance, clock: Clock, provenance: Json) -> Optimum:
    """Return both sides of an optimum from the fields of a certificate."""
    upper: Any = None
    claim, bound = value["upper"], value["lower"]
    if claim is not None:
        name = str(provenance.get("found_by") or "best run")
        run = run_from_json({"policy": name, **claim}, instance, clock)
        upper = run.schedule if clock.is_even else run
    lower = None
    if bound is not None:
        method = str(provenance.get("bounded_by") or bound["proof"]["kind"])
        proof, steps = convert(bound["proof"], Proof), tuple(bound.get("relaxations", ()))
        lower = CheckedBound(bound["value"], method, proof, steps)
    return Optimum(Scope.parse(value["scope"]), upper, lower)


# ---- runs -------------------------------------------------------------------------------


def run_to_json(run: Schedule) -> Json:
    """Return the claims about a run and the times by which they are checked."""
    if not run.is_complete:
        return {"value": None}
    has_segments = run.segments and not Scope.RESTARTS.covers(run.scope)
    is_fleet, chunks = run.instance.workers > 1, () if run.clock.is_even else run.chunks
    pieces = [
        {"request": i, "start": k, "tokens": tokens, **({"cached": cached} if cached else {})}
        for i, k, tokens, cached in chunks
    ]
    claim: Json = {"segments": run.segments} if has_segments else {"starts": run.starts}
    waits = [
        (number, time, worker) if is_fleet else (number, time)
        for worker, times in enumerate(run.resumed)
        for number, time in times.items()
        if time
    ]
    more = {
        "workers": run.workers if is_fleet else (),
        "chunks": pieces,
        "lost": run.lost,
        "waits": sorted(waits),
    }
    return {"value": run.objective, **claim, **{name: row for name, row in more.items() if row}}


def run_from_json(claim: Json, instance: Instance, clock: Clock) -> PolicyRun:
    """Return the claimed run, unchecked."""
    policy = claim["policy"]
    if claim["value"] is None:
        return PolicyRun.unknown(instance, policy, Outcome(claim["outcome"]), clock)
    rows, waits = claim.get("chunks", ()), claim.get("waits", ())
    resumed: list[dict[int, int]] = [{} for _ in range(instance.workers if waits else 0)]
    for number, time, *worker in waits:
        resumed[worker[0] if worker else 0][number] = time
    chunks = [
        Chunks(row["request"], row["start"], tuple(row["tokens"]), row.get("cached", 0))
        for row in rows
    ]
    return PolicyRun(
        instance,
        claim.get("starts", ()),
        claim.get("workers", ()),
        claim.get("segments", ()),
        clock=clock,
        chunks=chunks,
        lost=[Lost(*piece) for piece in claim.get("lost", ())],
        resumed=resumed,
        policy=policy,
    )


# ---- the instance -----------------------------------------------------------------------


def _instance_text(instance: Instance) -> str:
    """Return an instance as short JSON, so that a million requests fit."""
    encoder = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
    head = instance_to_json(replace(instance, requests=()))
    head["schema"] = instance.schema
    if instance.block_tokens is not None:
        head["block_tokens"] = instance.block_tokens
    del head["requests"]
    rows = (_request_text(encoder, request, position) for position, request in enumerate(instance))
    body = ",\n".join(rows)
    return f'{encoder.encode(head)[:-1]},"requests":[\n{body}\n]}}'


def _request_text(encoder: json.JSONEncoder, request: Request, position: int) -> str:
    named = request.id != f"r{position}"  # readers assume it by default
    plain = Request(*request.kind, request.id)
    if not named and request == plain:
        return (  # a fast path for most of perhaps a million rows
            f'{{"arrival":{request.arrival},"prompt":{request.prompt},"output":{request.output}}}'
        )
    row = request_to_json(request)
    if not named:
        del row["id"]
    return encoder.encode(row)
