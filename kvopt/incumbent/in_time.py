"""Number of requests that attain their service levels: both sides, in addition to latency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvopt.incumbent.proofs import PriceProof, SharedRoundsProof
from kvopt.problem.slo import Slo, allowed_misses
from kvopt.timetable.policy_run import PolicyRun
from kvopt.timetable.schedule import Schedule

if TYPE_CHECKING:  # it loads numpy
    from kvopt.problem.arrays import Floats


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Upper bound on the requests that attain their service levels.

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
    proof: PriceProof | SharedRoundsProof
    costs: Floats
    relaxations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InTime:
    """How many requests attain a service level.

    Parameters
    ----------
    slo
        The service level.
    count
        Number of requests.
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

    slo: Slo
    count: int
    ceiling: int
    proof: PriceProof | SharedRoundsProof
    sure_misses: int | None
    best: PolicyRun | None
    attained: tuple[int | None, ...] = ()
    relaxations: tuple[str, ...] = ()

    @property
    def best_attained(self) -> int | None:
        """Number of requests that attain in the best run known."""
        return None if self.best is None else attained_in(self.best, self.slo)

    @property
    def sentence(self) -> str:
        """The proved claim, in words."""
        best = self.best_attained
        text = f"{self.slo}: at most {self.ceiling:,} of {self.count:,} requests attain it"
        text += "" if best is None else f", best known {best:,}"
        if self.sure_misses:
            text += f"; {self.sure_misses:,} cannot even alone: sure misses"
        if self.slo.ttft is not None:
            text += "; a first token that an eviction loses does not count"
        return text

    def verdict(self, attain: str | int) -> str:
        """Return whether a share of the requests, ``99%`` say, or a number can attain it."""
        wanted = self.count - allowed_misses(attain, self.count)
        if self.ceiling < wanted:
            return f"{attain}: impossible"
        is_reached = wanted <= (-1 if self.best_attained is None else self.best_attained)
        return f"{attain}: {'a schedule is known' if is_reached else 'open'}"

    def to_json(self) -> dict[str, Any]:
        """Return the fields of ``certify --json`` and ``solve --json`` about a service level."""
        return {
            "slo": str(self.slo),
            "ceiling": self.ceiling,
            "best_attained": self.best_attained,
            "sure_misses": self.sure_misses,
        }


def attained_in(schedule: Schedule, slo: Slo) -> int | None:
    """Return how many requests attain a service level, None if a schedule did not complete."""
    if not schedule.is_complete:
        return None
    levels = slo.levels(schedule.instance, rounds=schedule.clock.is_even)
    return levels.attained(schedule.arrivals, schedule.first_tokens, schedule.completions)
