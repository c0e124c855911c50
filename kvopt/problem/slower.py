"""Slower machines: the same requests with every round phi times as long, or longer.

*Seconds.*  With phi = P / Q every coefficient of the batch-time model is multiplied by P, and every
arrival by Q: times then count in parts of 1 / Q nanoseconds, and nothing is rounded.  A round may
last longer than its model says, so a schedule of a still slower machine is one of this machine, and
a value that no schedule of this machine reaches is not reached by slower ones.

*Rounds.*  Let every round last phi or longer, in units of the rounds of the instance, and begin at
any time.  Let round r end at e_r and g(r) = floor(e_r / phi), which grows by 1 or more from round
to round.  Let a request that completes with round c complete at g(c) instead, without a gap before.
With j rounds to go it then holds at most its tokens with j rounds or fewer to go.  So requests fit
at a time t as they did at the first c with g(c) >= t, and start at floor(a / phi) or later.  With
pauses each round r of it moves to g(r).  So this is a feasible schedule of the instance with
arrivals floor(a / phi), and

    sum of completions  >=  phi * (least sum of completions of that instance).

Hence one phi whose bound is above V rules out that machine and every slower one.  Times count from
the first arrival.  ``docs/how-many-machines.md#slower-machines`` has the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from kvopt.problem.batch_time import BatchTime, Line
from kvopt.problem.instance import Instance


@dataclass(frozen=True)
class SlowRounds:
    """An instance in rounds that last phi times as long.

    Parameters
    ----------
    phi
        Their length.
    instance
        Its requests, with arrivals in such rounds, from the first arrival on.
    early, late
        Sums of arrivals, from the first one on: in such rounds, and in rounds of length 1.
    """

    phi: Fraction
    instance: Instance
    early: int
    late: int

    @classmethod
    def of(cls, instance: Instance, phi: Fraction) -> SlowRounds:
        """Return the instance on a machine that is phi times slower."""
        first = instance.first_arrival
        late = [request.arrival - first for request in instance]
        early = [time * phi.denominator // phi.numerator for time in late]
        slow = tuple(
            replace(request, arrival=time, arrival_seconds=None)
            for request, time in zip(instance, early, strict=True)
        )
        return cls(phi, replace(instance, requests=slow), sum(early), sum(late))

    def needed(self, value: int) -> int:
        """Return the least bound on total latency, in these rounds, that rules a value out."""
        by, of = self.phi.numerator, self.phi.denominator
        return of * (value + self.late) // by - self.early + 1


def slow_model(model: BatchTime, by: int) -> BatchTime:
    """Return a model with ``by`` times the coefficients."""
    lines = [Line(by * line.round_ns, by * line.token_ns) for line in model.lines]
    return BatchTime(lines, by * model.kv_ns, by * model.prompt_ns)


def is_backlog(arrivals: Sequence[int]) -> bool:
    """Whether all arrive at once: then phi times slower takes exactly phi times as long."""
    return not arrivals or min(arrivals) == max(arrivals)
