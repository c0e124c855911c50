"""Evaluate an instance of a hunt: its ratio, and the smaller instances to try next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from kvopt import Instance, Policy, Request, Scope, run
from kvopt.errors import Stopped
from kvopt.experiments.hunting.space import Case, changed
from kvopt.search.exact.starts import best_below


class Found(NamedTuple):
    """An instance with a ratio of at least ``ratio`` to the optimum."""

    case: Case
    ratio: Fraction


@dataclass
class Judge:
    """Evaluates instances by the best of the policies on them.

    Parameters
    ----------
    policies
        Policies to compare with the optimum.  With several, the least of their ratios counts;
        without any, the ratio is that of the optimum of runs.
    should_stop
        Asked by every run.
    scope
        Scope of the optimum.
    tried, livelocks
        Instances evaluated, and those that a policy never finished: they have no ratio.
    """

    policies: Sequence[Policy]
    should_stop: Callable[[], bool]
    scope: Scope = Scope.RUNS
    tried: int = 0
    livelocks: int = 0

    def at_least(self, case: Case, ratio: Fraction, *, strictly: bool = False) -> Fraction | None:
        """Return the ratio of an instance if it is not below, or is above, the given one."""
        self.tried += 1
        value = self._value(case)
        if value is None:
            self.livelocks += 1
            return None
        # value / optimum > ratio means optimum < value / ratio
        share, rest = divmod(value * ratio.denominator, ratio.numerator)
        optimum = self._optimum_below(case, share + (rest > 0 or not strictly), self.scope)
        return Fraction(value, optimum) if optimum else None

    def _value(self, case: Case) -> int | None:
        """Return the least total latency of the policies, None if one never finishes."""
        if not self.policies:
            if self.should_stop():
                raise Stopped
            return self._optimum_below(case, one_by_one(case) + 1, Scope.RUNS)
        instance, values = instance_of(case), []
        for policy in self.policies:
            value = run(instance, policy, should_stop=self.should_stop).objective
            if value is None:
                return None
            values.append(value)
        return min(values)

    def _optimum_below(self, case: Case, cutoff: int, scope: Scope) -> int | None:
        pauses = scope.covers(Scope.PAUSES)
        found = best_below(*case, cutoff, self.should_stop, pauses=pauses)
        return None if found is None else found[0]


def one_by_one(case: Case) -> int:
    """Return the total latency of serving one request after another."""
    now = total = 0
    for arrival, _, output in sorted(case[1]):
        now = max(now, arrival) + output
        total += now - arrival
    return total


def instance_of(case: Case, name: str | None = None, notes: object = None) -> Instance:
    """Return a case as an instance."""
    memory, requests = case
    return Instance(memory, [Request(*triple) for triple in requests], name, notes)


def shrunk(found: Found, judge: Judge, holds: Callable[[Case], bool]) -> Found:
    """Return an instance of the same ratio or more that nothing can be taken from.

    Whole requests go first, then tokens of the cache, then ones of single numbers.
    """
    with suppress(Stopped):  # the instance so far is as bad
        while True:
            for case in filter(holds, _smaller(found.case)):
                ratio = judge.at_least(case, found.ratio)
                if ratio is not None:
                    found = Found(case, ratio)
                    break
            else:
                break
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
