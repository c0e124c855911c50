"""The folder of a search for the number of machines: a certificate of each number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kvopt.certificates.files import read_certificate, write_certificate
from kvopt.errors import InvalidInput
from kvopt.experiments.fleets.measures import Measure, Misses
from kvopt.incumbent.certificate import Certificate
from kvopt.incumbent.proofs import CheckedBound
from kvopt.problem.scopes import Scope

_SUFFIX = ".cert.json"


def read(directory: Path, measure: Measure, scope: Scope) -> dict[int, Certificate]:
    """Return the certificates of a folder by number of workers, each checked again.

    Raises
    ------
    InvalidInput
        For one that is not true, or that is of something else.
    """
    found: dict[int, Certificate] = {}
    wanted = None
    if isinstance(measure, Misses):
        of_all = measure.deadline.of_all(measure.instance, rounds=measure.clock.is_even)
        wanted = measure.deadline.aim, of_all
    for path in sorted(directory.glob(f"*{_SUFFIX}")):
        name = path.name.removesuffix(_SUFFIX)
        if not name.isdecimal():
            continue
        made = read_certificate(path)
        known = made.in_time
        for what, here, given in (
            ("instance", made.instance.hash, replace(measure.instance, workers=int(name)).hash),
            ("clock", made.clock, measure.clock),
            ("scope", made.scope, scope),
            ("deadline", known and (known.deadline.aim, known.after), wanted),
        ):
            if here != given:
                reason = f"is a certificate of another {what}: name another folder"
                raise InvalidInput(reason, field="--out", file=str(path))
        found[int(name)] = made
    return found


def keep(directory: Path, found: Certificate) -> None:
    """Write a certificate."""
    directory.mkdir(parents=True, exist_ok=True)
    write_certificate(found, directory / f"{found.instance.workers}{_SUFFIX}")


def better(
    found: Certificate, earlier: Certificate | None, bound: CheckedBound | None
) -> Certificate:
    """Return a certificate with the better sides of another one, and a bound if it is better."""
    said = dict(found.provenance)
    for other in (None if earlier is None else earlier.lower, bound):
        if other is not None and (found.lower is None or other.value > found.lower.value):
            found, said["bounded_by"] = replace(found, lower=other), other.bounded_by
    if earlier is None:
        return replace(found, provenance=said)
    before, now = earlier.objective, found.objective
    if before is not None and (now is None or before < now):
        found = replace(found, upper=earlier.upper)
        said["found_by"] = earlier.provenance.get("found_by")
    in_time, known = found.in_time, earlier.in_time
    if in_time is not None and known is not None:
        if known.ceiling < in_time.ceiling:
            in_time = replace(in_time, ceiling=known.ceiling, proof=known.proof)
        if (known.best_attained or 0) > (in_time.best_attained or 0):
            in_time = replace(in_time, best=known.best, best_attained=known.best_attained)
            said["attained_by"] = earlier.provenance.get("attained_by")
    return replace(found, provenance=said, in_time=in_time)
