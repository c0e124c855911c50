"""Certificate files: ``kvopt.certificate/1`` and ``/2``, described in ``docs/certificates.md``.

Those in seconds are ``kvopt.seconds-certificate``, likewise, see ``docs/seconds-bounds.md``.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from kvopt.certificates.certificate import Certificate
from kvopt.certificates.deadlines import InTime
from kvopt.certificates.effort import Budget, budget_needed
from kvopt.certificates.judged import UNFINISHED, JudgedRun
from kvopt.errors import TooLarge
from kvopt.files.atomic import write_atomically
from kvopt.incumbent.proofs import (
    BlockPrices,
    ConfigurationProof,
    Prices,
    Proof,
    SearchProof,
    SharesProof,
    SlotPrices,
    SplitProof,
    StatePrices,
    VolumeProof,
)
from kvopt.problem.clocks import Seconds
from kvopt.problem.instance import Instance
from kvopt.problem.instance_files import instance_to_json, request_to_json
from kvopt.problem.requests import Request
from kvopt.problem.scopes import Scope
from kvopt.problem.slower import SlowRounds
from kvopt.verify import LARGEST_FILE

_NEWER_KINDS = ("slot-prices", "split", "block-prices", "search")
"""Proofs that the first schema does not have."""


def write_certificate(certificate: Certificate, path: str | Path) -> None:
    """Write a certificate, all of it or nothing.

    Raises
    ------
    TooLarge
        If ``kvopt verify`` would refuse a file of this size.
    """
    text = certificate_text(certificate)
    if len(text.encode()) > LARGEST_FILE:
        raise TooLarge(f"{path}: the certificate would have more than {LARGEST_FILE:,} bytes")
    write_atomically(path, text)


def certificate_text(certificate: Certificate) -> str:
    """Return the JSON text of a certificate: a member a line, a request a line."""
    lower, claim, needed = certificate.lower, certificate.in_time, certificate.budget
    if needed == 1:
        needed = budget_needed(
            certificate.instance,
            None if lower is None else lower.proof,
            pauses=certificate.clock.is_even and certificate.scope.covers(Scope.PAUSES),
            more=0 if claim is None else claim.steps(certificate),
            machines=_slowed(certificate),
        )
    return with_budget(_plain_text(certificate), f"{certificate.clock.schema}/2", needed)


def _best(certificate: Certificate) -> JudgedRun:
    """Return what the upper side claims, in the form of a run."""
    return certificate.best_run() or JudgedRun("", UNFINISHED)


def _plain_text(certificate: Certificate) -> str:
    clock, best, lower = certificate.clock, _best(certificate), certificate.lower
    proof = None if lower is None else proof_to_json(lower.proof)
    is_wider = not Scope.RESTARTS.covers(certificate.scope)
    is_newer = is_wider or certificate.instance.workers > 1 or certificate.in_time is not None
    is_newer |= any(run.segments for run in (best, *certificate.runs))
    is_newer |= proof is not None and (
        proof["kind"] in _NEWER_KINDS or "mix" in proof or "parts" in proof
    )
    is_newer |= certificate.slower is not None
    members: dict[str, Any] = {
        "schema": f"{clock.schema}/{2 if is_newer else 1}",
        **({"scope": certificate.scope} if is_wider else {}),
        "hash": certificate.instance.hash,
        **({"model": clock.batch_time.to_json()} if isinstance(clock, Seconds) else {}),
        "upper": None if best.value is None else _claim(best),
        "lower": lower and {"value": lower.value, "proof": proof},
        **({} if certificate.slower is None else {"slower": _slower(certificate)}),
        "policies": [
            {"policy": run.policy, "outcome": run.outcome, **_claim(run)}
            for run in certificate.runs
        ],
        **({} if certificate.in_time is None else {"deadlines": _in_time(certificate.in_time)}),
        "provenance": {**certificate.provenance, "notes": certificate.notes},
    }
    return text_of(members, certificate.instance)


def _in_time(claim: InTime) -> dict[str, Any]:
    """Return what is claimed of deadlines, with the best run."""
    best = claim.best and {"attained": claim.best_attained, **_claim(claim.best)}
    return {**claim.members(), "best": best}


def _slower(certificate: Certificate) -> list[dict[str, Any]]:
    """Return the claims about slower machines; a proof that is that of the bound is left out."""
    lower, rows = certificate.lower, []
    for bound in certificate.slower or ():
        phi = bound.phi
        row = {"machine": [phi.numerator, phi.denominator], "value": bound.value}
        if lower is None or bound.proof != lower.proof:
            row["proof"] = proof_to_json(bound.proof)
        rows.append(row)
    return rows


def _slowed(certificate: Certificate) -> list[tuple[Instance, Proof]]:
    """Return the instances of slower machines, with what is proved of them."""
    instance = certificate.instance
    return [
        (SlowRounds.of(instance, bound.phi).instance, bound.proof)
        if certificate.clock.is_even
        else (instance, bound.proof)
        for bound in certificate.slower or ()
    ]


def _claim(run: JudgedRun) -> dict[str, Any]:
    """Return what is claimed of a run, and with which times that is checked."""
    if run.value is None:
        return {"value": None}
    claim: dict[str, Any] = {"value": run.value}
    if run.segments:
        claim["segments"] = run.segments
    else:
        claim["starts"] = run.starts
    if run.workers:
        claim["workers"] = run.workers
    if run.chunks:
        claim["chunks"] = [
            {"request": row.request, "start": row.start, "tokens": row.tokens} for row in run.chunks
        ]
    if run.lost:
        claim["lost"] = [[piece.request, piece.start, piece.end] for piece in run.lost]
    if waits := _waits(run):
        claim["waits"] = waits
    return claim


def _waits(run: JudgedRun) -> list[tuple[int, ...]]:
    """Return when a server that was idle began to work: round, time, and of a fleet the worker."""
    own = [(worker,) if run.workers else () for worker, _ in enumerate(run.resumed)]
    rows = zip(own, run.resumed, strict=True)
    return sorted((r, time, *worker) for worker, known in rows for r, time in known.items() if time)


def with_budget(text: str, newer: str, needed: Budget) -> str:
    """Return the text of a certificate with the budget that it needs, if that is more than one."""
    if needed == 1:
        return text
    after = text.index("\n", len("{\n"))  # the schema is the first member
    return f'{{\n"schema": "{newer}",\n"budget": {json.dumps(needed)},{text[after:]}'


def text_of(members: dict[str, Any], instance: Instance) -> str:
    """Return JSON with a member a line, the instance as the last one."""
    lines = [f'"{name}": {json.dumps(value, allow_nan=False)}' for name, value in members.items()]
    lines.append(f'"instance": {compact_instance_text(instance)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def compact_instance_text(instance: Instance) -> str:
    """Return an instance as short as it can be said, so that a million requests fit."""
    encoder = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
    head = instance_to_json(replace(instance, requests=()))
    head["schema"] = instance.schema
    del head["requests"]
    rows = (_compact(encoder, request, position) for position, request in enumerate(instance))
    body = ",\n".join(rows)
    return f'{encoder.encode(head)[:-1]},"requests":[\n{body}\n]}}'


def _compact(encoder: json.JSONEncoder, request: Request, position: int) -> str:
    named = request.id != f"r{position}"  # which readers take when there is none
    labels = (request.predicted, request.arrival_seconds, request.priority, request.deadline)
    if not named and labels == (None,) * 4:
        return (  # almost every row, and there may be a million
            f'{{"arrival":{request.arrival},"prompt":{request.prompt},"output":{request.output}}}'
        )
    row = request_to_json(request)
    if not named:
        del row["id"]
    return encoder.encode(row)


def proof_to_json(proof: Proof, begin: int = 0) -> dict[str, Any]:
    """Return the JSON object of a proof whose times count from ``begin``.

    Prices begin with the first that is not 0.  A proof that has one part is that of the part.
    """
    match proof:
        case SplitProof((part,)):
            return proof_to_json(part.proof, part.begin)
        case SplitProof(parts):
            rows = [{"from": p.begin, "proof": proof_to_json(p.proof, p.begin)} for p in parts]
            return {"kind": "split", "parts": rows}
        case VolumeProof(()):
            return {"kind": "volume"}
        case VolumeProof(staircases):
            return {"kind": "volume", "staircases": staircases}
        case Prices(numerators, denominator):
            first = next((t for t, price in enumerate(numerators, 1) if price), 1)
            return {
                "kind": "prices",
                "denominator": denominator,
                "first": begin + first,
                "numerators": list(numerators[first - 1 :]),
            }
        case BlockPrices(prices):
            return {**proof_to_json(prices, begin), "kind": "block-prices"}
        case SlotPrices(prices, borders, slots):
            return {
                **proof_to_json(prices, begin),
                "kind": "slot-prices",
                "borders": [begin + border for border in borders],
                "slots": [{"count": count, "numerators": values} for count, values in slots],
            }
        case SearchProof(prices, target, _):
            return {**proof_to_json(prices, begin), "kind": "search", "target": target}
        case SharesProof(lines, weights, company, mix, parts):
            said = {"kind": "shares", "lines": lines, "weights": weights, "company": company}
            newer = {"mix": mix, "parts": parts}
            return {**said, **{name: value for name, value in newer.items() if value}}
        case ConfigurationProof(stages, target, searched, _):
            return {
                "kind": "configurations",
                "target": target,
                "searched": searched,
                "stages": [_stage_to_json(stage, begin) for stage in stages],
            }


def _stage_to_json(stage: StatePrices, begin: int) -> dict[str, Any]:
    return {
        "denominator": stage.denominator,
        "peaks": stage.peaks,
        "times": [begin + time for time in stage.times],
        "numerators": stage.numerators,
    }
