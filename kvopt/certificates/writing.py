"""Certificate files: ``kvopt.certificate/1`` and ``/2``, described in ``docs/certificates.md``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kvopt.certificates.building import Certificate, JudgedRun
from kvopt.certificates.effort import budget_needed
from kvopt.errors import TooLarge
from kvopt.files import write_atomically
from kvopt.files.instances import instance_to_json, request_to_json
from kvopt.model.instance import Instance, Request
from kvopt.search.proofs import (
    ConfigurationProof,
    Prices,
    Proof,
    SplitProof,
    StatePrices,
    VolumeProof,
)

SCHEMA = "kvopt.certificate/1"
SCHEMA_2 = "kvopt.certificate/2"
"""Of files that hold what the first schema does not know: proofs by parts, a budget."""

LARGEST_FILE = 90_000_000
"""Bytes that ``kvopt verify`` is ready to read."""


def write_certificate(certificate: Certificate, path: str | Path) -> None:
    """Write a certificate, all of it or nothing.

    Raises
    ------
    TooLarge
        If ``kvopt verify`` would refuse a file of this size.
    """
    write_with_budget(certificate, path)


def write_with_budget(certificate: Certificate, path: str | Path) -> int:
    """Write a certificate; return how many times its default budget ``kvopt verify`` needs.

    That is 1 unless the file says otherwise, and about what it needs.
    """
    text = _plain_text(certificate)
    needed = _budget(certificate, text)
    write_checkable(with_budget(text, SCHEMA_2, needed), path)
    return needed


def certificate_text(certificate: Certificate) -> str:
    """Return the JSON text of a certificate: a member a line, a request a line."""
    text = _plain_text(certificate)
    return with_budget(text, SCHEMA_2, _budget(certificate, text))


def with_budget(text: str, newer: str, needed: int) -> str:
    """Return the text of a certificate with the budget that it needs, if that is more than one."""
    if needed == 1:
        return text
    after = text.index("\n", len("{\n"))  # the schema is the first member
    return f'{{\n"schema": "{newer}",\n"budget": {needed},{text[after:]}'


def _budget(certificate: Certificate, text: str) -> int:
    lost = sum(len(run.lost) for run in certificate.runs)
    proof = None if certificate.lower is None else certificate.lower.proof
    runs = len(certificate.runs) + 1
    return budget_needed(len(text), certificate.instance, runs, proof, lost)


def _plain_text(certificate: Certificate) -> str:
    upper, lower = certificate.upper, certificate.lower
    proof = None if lower is None else proof_to_json(lower.proof)
    members: dict[str, Any] = {
        "schema": SCHEMA_2 if proof and proof["kind"] == "split" else SCHEMA,
        "hash": certificate.instance.hash,
        "upper": upper and {"value": upper.objective, "starts": upper.starts},
        "lower": lower and {"value": lower.value, "proof": proof},
        "policies": [_run_to_json(run) for run in certificate.runs],
        "provenance": {**certificate.provenance, "notes": certificate.notes},
    }
    return text_of(members, certificate.instance)


def write_checkable(text: str, path: str | Path) -> None:
    """Write the text of a certificate unless ``kvopt verify`` would refuse its size."""
    if len(text.encode()) > LARGEST_FILE:
        raise TooLarge(f"{path}: the certificate would have more than {LARGEST_FILE:,} bytes")
    write_atomically(path, text)


def text_of(members: dict[str, Any], instance: Instance) -> str:
    """Return JSON with a member a line, the instance as the last one."""
    lines = [f'"{name}": {json.dumps(value, allow_nan=False)}' for name, value in members.items()]
    lines.append(f'"instance": {compact_instance_text(instance)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def compact_instance_text(instance: Instance) -> str:
    """Return an instance as short as it can be said, so that a million requests fit."""
    encoder = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
    head = instance_to_json(
        Instance(instance.memory, (), instance.name, instance.notes, instance.round_ms)
    )
    del head["requests"]
    rows = (_compact(encoder, request, position) for position, request in enumerate(instance))
    body = ",\n".join(rows)
    return f'{encoder.encode(head)[:-1]},"requests":[\n{body}\n]}}'


def _compact(encoder: json.JSONEncoder, request: Request, position: int) -> str:
    named = request.id != f"r{position}"  # which readers take when there is none
    if not named and request.predicted is None and request.arrival_seconds is None:
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


def _run_to_json(run: JudgedRun) -> dict[str, Any]:
    content: dict[str, Any] = {"policy": run.policy, "outcome": run.outcome, "value": run.value}
    if run.value is not None:
        content["starts"] = run.starts
    if run.lost:
        content["lost"] = [[piece.request, piece.start, piece.end] for piece in run.lost]
    return content
