"""The judge of a hunt: the ratio of an instance, and what can be taken from a bad one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from kvopt.experiments.hunting.space import changed
from kvopt.experiments.hunting.tiny import Case, optimum_below
from kvopt.model.instance import Instance, Request
from kvopt.policies.base import Policy
from kvopt.simulation.running import run
from kvopt.simulation.simulator import Stopped


class Found(NamedTuple):
    """An instance on which every policy is at least ``ratio`` times the optimum."""

    case: Case
    ratio: Fraction


@dataclass
class Judge:
    """Judges instances by the policy that does best on them.

    Parameters
    ----------
    policies
        Policies to judge.  With several, an instance counts for the least of their ratios.
    should_stop
        Asked by every run.
    tried, livelocks
        Instances judged, and those that a policy never finished: they have no ratio.
    """

    policies: Sequence[Policy]
    should_stop: Callable[[], bool]
    tried: int = 0
    livelocks: int = 0

    def at_least(self, case: Case, ratio: Fraction, *, strictly: bool = False) -> Fraction | None:
        """Return the ratio of an instance if it is not below, or is above, the given one."""
        self.tried += 1
        instance = instance_of(case)
        values = []
        for policy in self.policies:
            value = run(instance, policy, should_stop=self.should_stop).objective
            if value is None:
                self.livelocks += 1
                return None
            values.append(value)
        # value / optimum > ratio means optimum < value / ratio
        share, rest = divmod(min(values) * ratio.denominator, ratio.numerator)
        optimum = optimum_below(case, share + (rest > 0 or not strictly))
        return None if optimum is None else Fraction(min(values), optimum)


def instance_of(case: Case, name: str | None = None, notes: object = None) -> Instance:
    """Return a case as an instance."""
    memory, requests = case
    return Instance(memory, [Request(*triple) for triple in requests], name, notes)


def shrunk(found: Found, judge: Judge, holds: Callable[[Case], bool]) -> Found:
    """Return an instance of the same ratio or more that nothing can be taken from.

    Whole requests go first, then tokens of the cache, then ones of single numbers.
    """
    smaller: Found | None = found
    try:
        while smaller is not None:
            found, smaller = smaller, None
            for case in filter(holds, _smaller(found.case)):
                ratio = judge.at_least(case, found.ratio)
                if ratio is not None:
                    smaller = Found(case, ratio)
                    break
    except Stopped:  # what was reached until now is as bad
        pass
    return found


def _smaller(case: Case) -> Iterator[Case]:
    memory, requests = case
    for i in range(len(requests)):
        yield memory, requests[:i] + requests[i + 1 :]
    for column in (1, 2):  # all prompts, or all outputs, with the cache
        yield memory - 1, tuple(changed(request, column, -1) for request in requests)
    yield memory - 1, requests
    yield memory, tuple(changed(request, 1, -1) for request in requests)
    for i, request in enumerate(requests):
        for column in range(3):
            yield memory, (*requests[:i], changed(request, column, -1), *requests[i + 1 :])
