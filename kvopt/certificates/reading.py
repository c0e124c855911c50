"""Reading certificate files: what comes back was checked, as if it had just been made."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from kvopt.certificates.certificate import Certificate
from kvopt.certificates.deadlines import InTime, in_time_from
from kvopt.certificates.judged import JudgedRun
from kvopt.errors import FalseClaim, InvalidInput
from kvopt.files.reading import blamed_on, parse_json, read_text
from kvopt.incumbent.proofs import (
    BlockPrices,
    CheckedBound,
    ConfigurationProof,
    PartProof,
    Prices,
    Proof,
    SearchProof,
    SharesProof,
    SlotPrices,
    SlowerBound,
    SplitProof,
    StatePrices,
    VolumeProof,
)
from kvopt.problem.clocks import ROUNDS, Clock, Seconds
from kvopt.problem.hardware.batch_time_files import SCHEMA, batch_time_from_json
from kvopt.problem.instance import Instance
from kvopt.problem.instance_files import instance_from_json
from kvopt.problem.scopes import Scope
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.work import Chunks, Lost, scope_of
from kvopt.verify import verify


def read_certificate(path: str | Path, budget: float | None = None) -> Certificate:
    """Read a certificate, after `kvopt.verify` has checked every claim in it.

    Parameters
    ----------
    path
        The file.
    budget
        How many times the default number of steps, and of bytes, the check may take; None for
        what the file states, up to about ten minutes.

    Raises
    ------
    InvalidInput
        If it cannot be read or takes more to check than the budget allows, with the file and the
        field at fault; `FalseClaim` if it says what is not so.

    Examples
    --------
    >>> found = read_certificate("ec1.cert.json")       # doctest: +SKIP
    >>> found.objective, found.lower_bound              # doctest: +SKIP
    (12, 12)
    """
    with blamed_on(path):
        value = parse_json(read_text(path))
        verdict = verify(path, budget)
        if not verdict.valid:
            _, _, reason = verdict.lines[-1].partition(": ")
            raise (FalseClaim if verdict.readable else InvalidInput)(reason)
        return _certificate(value)


def _certificate(value: dict[str, Any]) -> Certificate:
    instance, claim = instance_from_json(value["instance"]), value["upper"]
    clock: Clock = ROUNDS
    if "model" in value:
        clock = Seconds(batch_time_from_json({"schema": SCHEMA, **value["model"]}))
    provenance = dict(value.get("provenance", {}))
    notes = provenance.pop("notes", [])
    upper = None if claim is None else _upper(claim, instance, clock, provenance)
    said, slower = provenance.get("deadline"), value.get("slower")
    in_time = (
        None if "deadlines" not in value else _in_time(value["deadlines"], said, instance, clock)
    )
    return Certificate(
        instance=instance,
        upper=upper,
        lower=_lower(value["lower"], provenance, instance),
        runs=tuple(_run(row, instance) for row in value.get("policies", [])),
        provenance=provenance,
        notes=tuple(map(str, notes if isinstance(notes, list) else [notes])),
        clock=clock,
        budget=value.get("budget", 1),
        scope=Scope.parse(value.get("scope", "runs")),
        in_time=in_time,
        slower=slower and tuple(_slower(row, value["lower"], instance) for row in slower),
    )


def _in_time(value: dict[str, Any], said: object, instance: Instance, clock: Clock) -> InTime:
    claim = value["best"]
    named = claim and _run({"policy": "best in time", "outcome": "completed", **claim}, instance)
    return in_time_from(value, named, said, instance, rounds=clock.is_even)


def _slower(claim: dict[str, Any], lower: dict[str, Any] | None, instance: Instance) -> SlowerBound:
    if "proof" in claim:
        proof = proof_from_json(claim["proof"])
    else:
        assert lower is not None, "what was checked has a proof"
        proof = _whole_proof(lower["proof"], instance)
    return SlowerBound(Fraction(*claim["machine"]), claim["value"], proof)


def _upper(
    claim: dict[str, Any], instance: Instance, clock: Clock, provenance: dict[str, Any]
) -> Schedule:
    name = str(provenance.get("found_by") or "best run")
    made = _run({"policy": name, "outcome": "completed", **claim}, instance).on(instance, clock)
    assert made is not None, "a claim that was checked has a value"
    return made.schedule or made if clock.is_even else made


def _run(claim: dict[str, Any], instance: Instance) -> JudgedRun:
    lost = tuple(Lost(*piece) for piece in claim.get("lost", ()))
    segments = tuple(tuple(map(tuple, rows)) for rows in claim.get("segments", ()))
    rows = claim.get("chunks", ())
    chunks = tuple(Chunks(row["request"], row["start"], tuple(row["tokens"])) for row in rows)
    waits, workers = claim.get("waits", ()), tuple(claim.get("workers", ()))
    resumed: list[dict[int, int]] = [{} for _ in range(instance.workers)]
    for number, time, *worker in waits:
        resumed[worker[0] if worker else 0][number] = time
    return JudgedRun(
        policy=claim["policy"],
        outcome=claim["outcome"],
        value=claim["value"],
        starts=tuple(claim.get("starts", [rows[-1][0] - 1 for rows in segments])),
        lost=None if claim["value"] is None else lost,
        resumed=resumed if waits else (),
        segments=segments,
        chunks=chunks,
        scope=scope_of(segments, chunks, lost),
        workers=workers,
    )


def _lower(
    claim: dict[str, Any] | None, provenance: dict[str, Any], instance: Instance
) -> CheckedBound | None:
    if claim is None:
        return None
    method = str(provenance.get("bounded_by") or claim["proof"]["kind"])
    return CheckedBound(claim["value"], method, _whole_proof(claim["proof"], instance))


def _whole_proof(proof: dict[str, Any], instance: Instance) -> Proof:
    """Return the proof of a bound on all requests; its times count from the first arrival.

    Else there would be a price for each round before, and those may be many.
    """
    first = min((request.arrival for request in instance), default=0)
    if not first or proof["kind"] not in ("prices", "slot-prices", "configurations", "search"):
        return proof_from_json(proof)
    return SplitProof((_part({"from": first, "proof": proof}),))


def proof_from_json(proof: dict[str, Any], begin: int = 0) -> Proof:
    """Return the proof whose JSON object `kvopt.certificates.writing.proof_to_json` gave.

    Prices of times up to ``begin`` are left out: nothing is active then, and without them as much
    is proved.
    """
    match proof["kind"]:
        case "volume":
            return VolumeProof(_tuples(proof.get("staircases", [])))
        case "prices":
            return _prices(proof, begin)
        case "shares":
            names = ("lines", "weights", "company", "mix")
            lines, weights, company, mix = (tuple(proof.get(name, ())) for name in names)
            return SharesProof(lines, weights, company, mix, proof.get("parts", 0))
        case "block-prices":
            return BlockPrices(_prices(proof, begin))
        case "slot-prices":
            slots = tuple((each["count"], tuple(each["numerators"])) for each in proof["slots"])
            borders = tuple(border - begin for border in proof["borders"])
            return SlotPrices(_prices(proof, begin), borders, slots)
        case "search":
            return SearchProof(_prices(proof, begin), proof["target"])
        case "configurations":
            stages = tuple(_stage(stage, begin) for stage in proof["stages"])
            return ConfigurationProof(stages, proof["target"], proof["searched"])
        case _:
            return SplitProof(tuple(map(_part, proof["parts"])))


def _prices(proof: dict[str, Any], begin: int) -> Prices:
    """Return the prices of tokens in a proof, whatever else is in it."""
    gap = proof["first"] - begin - 1
    return Prices((*(0,) * gap, *proof["numerators"][max(0, -gap) :]), proof["denominator"])


def _part(part: dict[str, Any]) -> PartProof:
    proof = proof_from_json(part["proof"], part["from"])
    some = Prices | SlotPrices | VolumeProof | ConfigurationProof | SearchProof
    assert isinstance(proof, some), "what parts may have"
    return PartProof(part["from"], proof)


def _stage(stage: dict[str, Any], begin: int) -> StatePrices:
    return StatePrices(
        denominator=stage["denominator"],
        peaks=tuple((peak, rounds) for peak, rounds in stage["peaks"]),
        times=tuple(time - begin for time in stage["times"]),
        numerators=_tuples(stage["numerators"]),
    )


def _tuples(rows: list[list[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, rows))
