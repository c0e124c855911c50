"""Certificate files in seconds, ``kvopt.seconds-certificate/1``: see ``docs/seconds-bounds.md``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kvopt.bounds.seconds import SecondsBound
from kvopt.certificates.effort import budget_needed_in_seconds
from kvopt.certificates.seconds import SecondsCertificate
from kvopt.certificates.writing import text_of, with_budget, write_checkable
from kvopt.simulation.seconds_run import SecondsRun

SCHEMA = "kvopt.seconds-certificate/1"
SCHEMA_2 = "kvopt.seconds-certificate/2"
"""Of a certificate that needs more than the default budget of ``kvopt verify``, and says so."""


def write_seconds_certificate(certificate: SecondsCertificate, path: str | Path) -> None:
    """Write a certificate, all of it or nothing.

    Raises
    ------
    TooLarge
        If ``kvopt verify`` would refuse a file of this size.
    """
    write_seconds_with_budget(certificate, path)


def write_seconds_with_budget(certificate: SecondsCertificate, path: str | Path) -> int:
    """Write a certificate; return how many times its default budget ``kvopt verify`` needs.

    That is 1 unless the file says otherwise, and about what it needs.
    """
    text = _plain_text(certificate)
    needed = _budget(certificate, text)
    write_checkable(with_budget(text, SCHEMA_2, needed), path)
    return needed


def seconds_certificate_text(certificate: SecondsCertificate) -> str:
    """Return the JSON text of a certificate: a member a line, a request a line."""
    text = _plain_text(certificate)
    return with_budget(text, SCHEMA_2, _budget(certificate, text))


def _budget(certificate: SecondsCertificate, text: str) -> int:
    runs = [*certificate.runs, *filter(None, [certificate.upper])]
    lost = sum(len(run.lost) for run in runs)
    return budget_needed_in_seconds(len(text), len(certificate.instance), len(runs), lost)


def _plain_text(certificate: SecondsCertificate) -> str:
    upper, lower = certificate.upper, certificate.lower
    members: dict[str, Any] = {
        "schema": SCHEMA,
        "hash": certificate.instance.hash,
        "model": certificate.model.to_json(),
        "upper": upper and _claim(upper),
        "lower": lower and _proved(lower),
        "policies": [*map(_judged, certificate.runs), *map(_unfinished, certificate.unfinished)],
        "provenance": certificate.provenance,
    }
    return text_of(members, certificate.instance)


def _claim(run: SecondsRun) -> dict[str, Any]:
    claim: dict[str, Any] = {"value": run.objective_ns, "starts": run.starts}
    if run.lost:
        claim["lost"] = [[piece.request, piece.start, piece.end] for piece in run.lost]
    waits = sorted((number, when) for number, when in run.resumed.items() if when)
    return {**claim, "waits": waits} if waits else claim


def _proved(lower: SecondsBound) -> dict[str, Any]:
    proof = lower.proof
    return {
        "value": lower.value_ns,
        "proof": {
            "kind": "shares",
            "lines": proof.lines,
            "weights": proof.weights,
            "company": proof.company,
        },
    }


def _judged(run: SecondsRun) -> dict[str, Any]:
    head = {"policy": run.policy, "outcome": str(run.outcome)}
    return {**head, "value": None} if run.objective_ns is None else {**head, **_claim(run)}


def _unfinished(name: str) -> dict[str, Any]:
    return {"policy": name, "outcome": "unfinished", "value": None}
