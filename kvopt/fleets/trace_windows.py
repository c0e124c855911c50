"""Windows of a trace: numbers of machines change at their borders only.

A request belongs to the window in which it arrives.  ``docs/how-many-machines.md`` has the proof
that a window needs at least as many machines as the requests of `Windows.due_inside` alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from kvopt.bounds.slo_ceiling import least_times, spans_of
from kvopt.errors import InvalidInput, refuse, shown
from kvopt.fleets.targets import planned_machines, service_rate, unit_length
from kvopt.problem.problem import Problem, as_problem
from kvopt.problem.requests import Request
from kvopt.problem.scopes import Scope
from kvopt.problem.slo import Levels, Slo, allowed_misses
from kvopt.simulate.routers import ArrivalRouter, SwitchedRouter
from kvopt.simulate.routers import router as router_from
from kvopt.simulate.run_policy import run
from kvopt.timetable.policy_run import PolicyRun

MAX_WINDOWS = 10_000
"""Limit of the windows: a mistyped length should not run for days."""

_LENGTH = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(h|m|s|ms|)")


def length_of(text: str | int, problem: Problem, field: str) -> int:
    """Return a length of time in units of the clock.

    Examples
    --------
    >>> from kvopt import Instance
    >>> length_of("1m", Problem(Instance(9, [Request(0, 1, 2)], round_ms=50)), "--every")
    1200
    """
    match = _LENGTH.fullmatch(str(text))
    if match is None:
        reason = f"must be a length of time, 10m or 90s, or a number of rounds, got {shown(text)}"
        raise InvalidInput(reason, field=field)
    return int(Fraction(match[1]) * unit_length(match[2], problem, field, "10m, 90s"))


class Trial(NamedTuple):
    """A simulation with a number of machines for each window.

    ``misses`` are the requests of each window that do not attain; ``drained`` is machine time in
    each window of machines that are off, and finish what they began, that after the last one
    included.
    """

    counts: tuple[int, ...]
    misses: tuple[int, ...]
    drained: tuple[int, ...]


@dataclass(frozen=True)
class Windows:
    """A problem with a service level, cut into windows of equal length, in units of the clock.

    Its number of workers is ignored.  In each window the share ``attain`` of its requests shall
    attain. A machine takes requests so long after the border at which it is switched on:
    ``start_up``.
    """

    problem: Problem
    length: int
    attain: str
    start_up: int = 0

    def __post_init__(self) -> None:
        refuse("--every", "must be at least one round or nanosecond", self.length < 1)
        reason = f"makes {len(self):,} windows, at most {MAX_WINDOWS:,} are allowed"
        refuse("--every", reason, len(self) > MAX_WINDOWS)

    def __len__(self) -> int:
        """Return the number of windows."""
        return max(self.arrivals) // self.length - self._first + 1

    @cached_property
    def arrivals(self) -> list[int]:
        """Arrivals of the requests, on the clock."""
        return self.problem.clock.arrivals(self.problem.instance)

    @cached_property
    def _first(self) -> int:
        return min(self.arrivals) // self.length

    def begin(self, k: int) -> int:
        """Return the begin of a window; borders are multiples of its length."""
        return (self._first + k) * self.length

    @cached_property
    def members(self) -> list[list[int]]:
        """Positions of the requests that arrive in each window."""
        parts: list[list[int]] = [[] for _ in range(len(self))]
        for i, arrival in enumerate(self.arrivals):
            parts[arrival // self.length - self._first].append(i)
        return parts

    @cached_property
    def allowed(self) -> list[int]:
        """Number of requests of each window that may miss.

        At least those may that miss even with a machine of their own.
        """
        instance, model = self.problem.instance, self.problem.clock.model
        chunks = self.problem.scope.covers(Scope.CHUNKS)
        spans = spans_of(self.levels, *least_times(instance, model, chunks=chunks))
        late = [sum(i not in spans for i in members) for members in self.members]
        return [*map(max, self._shares, late)]

    @property
    def unavoidable(self) -> int:
        """Number of requests that may miss beyond the shares."""
        return sum(self.allowed) - sum(self._shares)

    @cached_property
    def _shares(self) -> list[int]:
        return [allowed_misses(self.attain, len(members)) for members in self.members]

    @property
    def slo(self) -> Slo:
        """The service level."""
        assert self.problem.slo is not None
        return self.problem.slo

    @cached_property
    def levels(self) -> Levels:
        """Limits of each request."""
        return self.slo.levels(self.problem.instance, rounds=self.problem.clock.is_even)

    # ---- the lower side -----------------------------------------------------------------

    def due_inside(self, k: int) -> Problem | None:
        """Return the problem of what has to be served in a window, None for nothing.

        These are its requests whose last token is due inside it.  One whose first token alone is
        due inside counts as a request of one token.  Of prompts only private tokens remain: others
        may be there since an earlier window.
        """
        instance, levels, end = self.problem.instance, self.levels, self.begin(k + 1)
        private = instance.forest.private
        requests = list[Request]()
        for i in self.members[k]:
            first, rest, total = (limits[i] for limits in levels)
            request = replace(instance.requests[i], prompt=private[i], prefix=())
            if self.arrivals[i] + min(total, first + rest) <= end:
                requests.append(request)
            elif self.arrivals[i] + min(total, first) <= end:
                requests.append(replace(request, output=1, predicted=None))
        if not requests:
            return None
        part = replace(instance.in_tokens(), requests=requests, block_tokens=None, name=None)
        return replace(self.problem, instance=part, scope=self.problem.scope.without_sharing)

    @cached_property
    def formula(self) -> list[int]:
        """The number of machines of planners for each window, which proves nothing."""
        rate = service_rate(self.problem.instance, self.problem.clock, self.levels)
        return [planned_machines(len(members), self.length, rate) for members in self.members]

    # ---- the upper side -----------------------------------------------------------------

    @cached_property
    def _since(self) -> list[range]:
        """The windows in which a machine has to be on to take each request.

        These are its own and all since the start-up time, or from the begin on.
        """
        windows = []
        for arrival in self.arrivals:
            since = (arrival - self.start_up) // self.length - self._first
            windows.append(range(max(since, 0), arrival // self.length - self._first + 1))
        return windows

    @cached_property
    def floors(self) -> list[int]:
        """Number of machines that each window needs so that every arrival finds one."""
        needed = {k for windows in {*self._since} for k in windows}
        return [int(k in needed) for k in range(len(self))]

    def taking(self, counts: Sequence[int]) -> list[int]:
        """Return how many machines take requests at each arrival."""
        return [min(counts[windows.start : windows.stop]) for windows in self._since]

    def simulated(
        self,
        policy: str,
        router: str,
        counts: Sequence[int],
        should_stop: Callable[[], bool] = lambda: False,
    ) -> PolicyRun:
        """Return the run of a scheduler and a router on these numbers of machines.

        Machines that are switched off take no more requests, and finish those that they have.
        """
        inner = router_from(router)
        assert isinstance(inner, ArrivalRouter), "requests are sent when they arrive"
        fleet = as_problem(self.problem, workers=max(counts))
        way = SwitchedRouter(inner, self.taking(counts))
        return run(fleet, policy, router=way, should_stop=should_stop)

    def trial(self, counts: Sequence[int], schedule: PolicyRun) -> Trial | None:
        """Return the misses of a run by windows, and what is drained; None if it never ended."""
        if not schedule.is_complete:
            return None
        times = schedule.first_tokens, schedule.completions
        misses = []
        for members in self.members:
            levels = Levels(*([limits[i] for i in members] for limits in self.levels))
            columns = ([column[i] for i in members] for column in (self.arrivals, *times))
            misses.append(len(members) - levels.attained(*columns))
        return Trial(tuple(counts), tuple(misses), self._drained(counts, schedule))

    def failing(self, trial: Trial | None) -> list[int]:
        """Return the windows in which too many requests miss, all without a trial."""
        if trial is None:
            return [*range(len(self))]
        return [k for k, misses in enumerate(trial.misses) if misses > self.allowed[k]]

    def _drained(self, counts: Sequence[int], schedule: PolicyRun) -> tuple[int, ...]:
        """Return the time in each window that machines work which are off."""
        machines = max(counts)
        workers = schedule.workers or [0] * len(self.arrivals)
        # The last completion on each machine of requests that arrived by the end of a window.
        last = [[0] * len(self) for _ in range(machines)]
        for k, members in enumerate(self.members):
            for i in members:
                row = last[workers[i] or 0]
                row[k] = max(row[k], schedule.completions[i])
        drained = [0] * len(self)
        ends = [self.begin(k + 1) for k in range(len(self))]
        for machine, row in enumerate(last):
            until = [0, *accumulate(row, max)]
            for k, count in enumerate(counts):
                if machine >= count:
                    drained[k] += max(min(until[k], ends[k]) - self.begin(k), 0)
            drained[-1] += max(until[-1] - ends[-1], 0)
        return tuple(drained)
