"""Number of requests that attain a deadline: both sides, in addition to latency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvopt.incumbent.proofs import DeadlinePrices
from kvopt.problem.deadlines import Aim, Deadline, attained
from kvopt.timetable.runs import PolicyRun
from kvopt.timetable.schedule import Schedule

if TYPE_CHECKING:  # it loads numpy
    from kvopt.problem.arrays import Floats


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Upper bound on the requests that attain their deadlines.

    Parameters
    ----------
    value
        The bound.
    sure_misses
        Number of requests that cannot attain even alone.
    proof
        Prices that prove it.
    costs
        About the least payment of each request, where 1 is the value of attaining; infinite for a
        sure miss.
    relaxations
        Names of the steps to the wider problem that the proof is about, see
        `kvopt.bounds.relaxations`.
    """

    value: int
    sure_misses: int
    proof: DeadlinePrices
    costs: Floats
    relaxations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InTime:
    """How many requests attain a deadline.

    Parameters
    ----------
    deadline
        Deadline of all requests, or of each its own.
    count
        Number of requests.
    after
        Time from arrival to deadline, on the clock; None if each request has its own.
    ceiling, proof
        No schedule lets more attain, and the prices that prove it.
    sure_misses
        Number of requests that cannot attain even alone; None for a certificate from a file.
    best
        The best run known.
    attained
        Number of requests that attain in each run of the certificate, None if it did not complete.
    relaxations
        As of `Ceiling`.
    """

    deadline: Deadline
    count: int
    after: int | None
    ceiling: int
    proof: DeadlinePrices
    sure_misses: int | None
    best: PolicyRun | None
    attained: tuple[int | None, ...] = ()
    relaxations: tuple[str, ...] = ()

    @property
    def best_attained(self) -> int | None:
        """Number of requests that attain in the best run known."""
        return None if self.best is None else attained_in(self.best, self.deadline)

    @property
    def sentence(self) -> str:
        """The proved claim, in words."""
        deadline = self.deadline
        what = "first tokens of" if deadline.aim is Aim.FIRST_TOKEN else "completions of"
        best = self.best_attained
        said = (
            f"within {deadline.length}: {what} at most {self.ceiling:,} of {self.count:,} "
            f"requests, {'no schedule is known' if best is None else f'best known {best:,}'}"
        )
        if self.sure_misses:
            said += f"; {self.sure_misses:,} cannot even alone: sure misses"
        return said

    def to_json(self) -> dict[str, Any]:
        """Return the fields of ``certify --json`` and ``solve --json`` about a deadline."""
        return {
            "deadline": str(self.deadline),
            "ceiling": self.ceiling,
            "best_attained": self.best_attained,
            "sure_misses": self.sure_misses,
        }


def attained_in(schedule: Schedule, deadline: Deadline) -> int | None:
    """Return how many requests attain a deadline in a schedule, None if it did not complete."""
    if not schedule.is_complete:
        return None
    first = deadline.aim is Aim.FIRST_TOKEN
    times = schedule.first_tokens if first else schedule.completions
    allowed = deadline.allowed(schedule.instance, rounds=schedule.clock.is_even)
    return attained(times, schedule.arrivals, allowed)
