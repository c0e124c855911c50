"""The judge of a hunt: the ratio of an instance, and what can be taken from a bad one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from kvopt.experiments.hunting.tiny import Case, optimum_below
from kvopt.model.instance import Instance, Request
from kvopt.policies.base import Policy
from kvopt.simulation.running import run
from kvopt.simulation.simulator import Stopped


@dataclass(frozen=True, slots=True)
class Found:
    """An instance on which every policy is at least ``ratio`` times the optimum."""

    case: Case
    ratio: Fraction


class Judge:
    """Judges instances by the policy that does best on them.

    Parameters
    ----------
    policies
        Policies to judge.  With several, an instance counts for the least of their ratios.
    should_stop
        Asked by every run.

    Attributes
    ----------
    tried, livelocks
        Instances judged, and those that a policy never finished: they have no ratio.
    """

    def __init__(self, policies: Sequence[Policy], should_stop: Callable[[], bool]) -> None:
        self._policies = policies
        self._should_stop = should_stop
        self.tried = 0
        self.livelocks = 0

    def above(self, case: Case, ratio: Fraction) -> Fraction | None:
        """Return the ratio of an instance if it is above the given one, else None."""
        self.tried += 1
        value = self._value(case)
        if value is None:
            return None
        # value / optimum > ratio means optimum < value / ratio
        optimum = optimum_below(case, -(-value * ratio.denominator // ratio.numerator))
        return None if optimum is None else Fraction(value, optimum)

    def at_least(self, case: Case, ratio: Fraction) -> Fraction | None:
        """Return the ratio of an instance if it is not below the given one, else None."""
        self.tried += 1
        value = self._value(case)
        if value is None:
            return None
        optimum = optimum_below(case, value * ratio.denominator // ratio.numerator + 1)
        return None if optimum is None else Fraction(value, optimum)

    def _value(self, case: Case) -> int | None:
        instance, least = instance_of(case), None
        for policy in self._policies:
            value = run(instance, policy, should_stop=self._should_stop).objective
            if value is None:
                self.livelocks += 1
                return None
            least = value if least is None else min(least, value)
        return least


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
        yield memory - 1, tuple(_less(request, column) for request in requests)
    yield memory - 1, requests
    yield memory, tuple(_less(request, 1) for request in requests)
    for i, request in enumerate(requests):
        for column in range(3):
            yield memory, (*requests[:i], _less(request, column), *requests[i + 1 :])


def _less(request: tuple[int, int, int], column: int) -> tuple[int, int, int]:
    changed = list(request)
    changed[column] -= 1
    return changed[0], changed[1], changed[2]
