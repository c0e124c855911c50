"""The deadline of a certificate file: written and read."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from kvopt.errors import InvalidInput
from kvopt.incumbent.in_time import InTime
from kvopt.incumbent.proofs import DeadlinePrices
from kvopt.problem.deadlines import OWN, Aim, Deadline
from kvopt.problem.instance import Instance
from kvopt.timetable.runs import PolicyRun


def members_of(in_time: InTime) -> dict[str, Any]:
    """Return the object of a certificate file, but for the best run."""
    proof = in_time.proof
    prices = {
        "times": proof.times, "numerators": proof.numerators, "denominator": proof.denominator,
    }  # fmt: skip
    return {
        "aim": in_time.deadline.aim,
        "after": OWN if in_time.after is None else in_time.after,
        "ceiling": in_time.ceiling,
        "proof": {**prices, **({"lines": proof.lines} if proof.lines else {})},
        "attained": in_time.attained,
    }


def in_time_from(
    value: dict[str, Any], best: PolicyRun | None, said: object, instance: Instance, *, rounds: bool
) -> InTime:
    """Return what `members_of` gave, with the deadline as it is said where that is so."""
    after, aim = value["after"], Aim(value["aim"])
    length = None if after == OWN else int(after)
    deadline = Deadline(aim, length, None) if rounds else Deadline(aim, None, length)
    with suppress(InvalidInput):
        worded = Deadline.parse(said)
        if worded.aim is aim and worded.of_all(instance, rounds=rounds) == length:
            deadline = worded
    proof = value["proof"]
    return InTime(
        deadline=deadline,
        count=len(instance),
        after=length,
        ceiling=value["ceiling"],
        proof=DeadlinePrices(
            tuple(proof["times"]), tuple(proof["numerators"]), proof["denominator"],
            tuple(proof.get("lines", ())),
        ),
        sure_misses=None,
        best=best,
        best_attained=None if value["best"] is None else value["best"]["attained"],
        attained=tuple(value["attained"]),
    )  # fmt: skip
