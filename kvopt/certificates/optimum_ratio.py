"""``ratio_to_optimum``: how far a run is from the optimum, as an interval that is certain."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple, Unpack

from kvopt.certificates.building import certify
from kvopt.incumbent.limits import LimitOptions
from kvopt.problem.problem import Problem
from kvopt.search.exact.tiny_optimum import MAX_REQUESTS, tiny_optimum
from kvopt.show.summary import exact_ratio
from kvopt.timetable.runs import PolicyRun


class Ratio(NamedTuple):
    """The total latency of a run over that of the optimum is between two fractions.

    An end is None if it is unknown; without a completed run both are.
    """

    least: Fraction | None
    most: Fraction | None

    @property
    def is_exact(self) -> bool:
        """Whether the optimum is known."""
        return self.least is not None and self.least == self.most


def ratio_to_optimum(run: PolicyRun, **options: Unpack[LimitOptions]) -> Ratio:
    """Compare a run with the optimum of the narrowest scope that covers it.

    Up to twelve requests in rounds on one machine are searched exhaustively; otherwise `certify`
    bounds the optimum from both sides.

    Parameters
    ----------
    run
        As `kvopt.run` returns it.
    options
        As of `Limits`.

    Examples
    --------
    >>> from kvopt import Instance, Request, ratio_to_optimum, run
    >>> instance = Instance(memory=4, requests=[Request(0, 0, o) for o in (2, 2, 3, 3)])
    >>> ratio_to_optimum(run(instance, "mc-sf"))
    Ratio(least=Fraction(16, 15), most=Fraction(16, 15))
    """
    if not run.is_complete:
        return Ratio(None, None)
    problem = Problem(run.instance, run.clock, run.scope)
    is_plain = not (problem.in_seconds or problem.in_blocks or problem.is_fleet)
    if is_plain and len(run.instance) <= MAX_REQUESTS and not run.instance.extras:
        optimum = tiny_optimum(problem, below=run.objective + 1)
        assert optimum is not None, "no run is below the optimum"
        ratio = exact_ratio(run.objective, optimum)
        return Ratio(ratio, ratio)
    certificate = certify(problem, [run], **options)
    sides = certificate.optimum_of(run)
    upper, lower = (None, None) if sides is None else sides.ends
    return Ratio(exact_ratio(run.objective, upper), exact_ratio(run.objective, lower))
