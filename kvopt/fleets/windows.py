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

from kvopt.bounds.machine_time_bound import machine_time_bound
from kvopt.bounds.slo_ceiling import least_times, spans_of
from kvopt.errors import InvalidInput, shown
from kvopt.fleets.measures import unit_length
from kvopt.fleets.planners import planned_machines, service_rate
from kvopt.incumbent.certificate import MachineTime
from kvopt.problem.clocks import Clock
from kvopt.problem.instance import Instance
from kvopt.problem.problem import Problem
from kvopt.problem.requests import Request
from kvopt.problem.scopes import Scope
from kvopt.problem.slo import Levels, Slo, allowed_misses
from kvopt.simulate.routers import ArrivalRouter, SwitchedRouter
from kvopt.simulate.routers import router as router_from
from kvopt.simulate.run_policy import run
from kvopt.timetable.schedule import Schedule

MOST_WINDOWS = 10_000
"""Limit of the windows: a mistyped length should not run for days."""

_LENGTH = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(h|m|s|ms|)")


def length_of(text: str | int, instance: Instance, clock: Clock, field: str) -> int:
    """Return a length of time in units of the clock.

    Examples
    --------
    >>> from kvopt.problem.clocks import ROUNDS
    >>> length_of("1m", Instance(9, [Request(0, 1, 2)], round_ms=50), ROUNDS, "--every")
    1200
    """
    match = _LENGTH.fullmatch(str(text))
    if match is None:
        reason = f"must be a length of time, 10m or 90s, or a number of rounds, got {shown(text)}"
        raise InvalidInput(reason, field=field)
    return int(Fraction(match[1]) * unit_length(match[2], instance, clock, field, "10m, 90s"))


class Trial(NamedTuple):
    """A simulation with a number of machines for each window.

    Parameters
    ----------
    counts
        These numbers.
    misses
        Requests of each window that do not attain.
    drained
        Machine time in each window of machines that are off, and finish what they began; that
        after the last window is part of it.
    """

    counts: tuple[int, ...]
    misses: tuple[int, ...]
    drained: tuple[int, ...]


@dataclass(frozen=True)
class Windows:
    """A problem with a service level, cut into windows of equal length.

    Parameters
    ----------
    problem
        The problem; its number of workers is ignored.
    length
        Length of a window, in units of the clock.
    attain
        Share of the requests of each window that shall attain.
    start_up
        Time from the border at which a machine is switched on until it takes requests.
    """

    problem: Problem
    length: int
    attain: str
    start_up: int = 0

    def __post_init__(self) -> None:
        if self.length < 1:
            raise InvalidInput("must be at least one round or nanosecond", field="--every")
        if len(self) > MOST_WINDOWS:
            reason = f"makes {len(self):,} windows, at most {MOST_WINDOWS:,} are allowed"
            raise InvalidInput(reason, field="--every")

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
        return [max(*pair) for pair in zip(self._shares, self._sure_misses, strict=True)]

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

    @cached_property
    def _sure_misses(self) -> list[int]:
        instance, model = self.problem.instance, self.problem.clock.model
        chunks = self.problem.scope.covers(Scope.CHUNKS)
        spans = spans_of(self.levels, *least_times(instance, model, chunks=chunks))
        return [sum(i not in spans for i in members) for members in self.members]

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

    def machine_time(self) -> MachineTime:
        """Return a bound on machine time if numbers of machines may change at any time."""
        return machine_time_bound(self.problem, self.length, self.allowed)

    def formula(self) -> list[int]:
        """Return the number of machines of planners for each window, which proves nothing."""
        rate = service_rate(self.problem.instance, self.problem.clock, self.levels)
        return [planned_machines(len(members), self.length, rate) for members in self.members]

    # ---- the upper side -----------------------------------------------------------------

    @cached_property
    def floors(self) -> list[int]:
        """Number of machines that each window needs so that every arrival finds one."""
        arrivals = sorted(self.arrivals)
        floors = [0] * len(self)
        for arrival in arrivals:
            first = max((arrival - self.start_up) // self.length - self._first, 0)
            for k in range(first, arrival // self.length - self._first + 1):
                floors[k] = 1
        return floors

    def taking(self, counts: Sequence[int]) -> list[int]:
        """Return how many machines take requests at each arrival.

        These are on since the start-up time, or from the begin on.
        """
        rows = []
        for arrival in self.arrivals:
            k = arrival // self.length - self._first
            since = max((arrival - self.start_up) // self.length - self._first, 0)
            rows.append(min(counts[min(since, k) : k + 1]))
        return rows

    def simulated(
        self,
        policy: str,
        router: str,
        counts: Sequence[int],
        should_stop: Callable[[], bool] = lambda: False,
    ) -> tuple[Trial | None, Schedule]:
        """Simulate a scheduler and a router on these numbers of machines; no trial if none ends.

        Machines that are switched off take no more requests, and finish those that they have.
        """
        inner = router_from(router)
        assert isinstance(inner, ArrivalRouter), "requests are sent when they arrive"
        fleet = replace(self.problem.instance, workers=max(counts))
        schedule = run(
            replace(self.problem, instance=fleet),
            policy,
            router=SwitchedRouter(inner, self.taking(counts)),
            should_stop=should_stop,
        )
        if not schedule.is_complete:
            return None, schedule
        return self.judged(counts, schedule), schedule

    def judged(self, counts: Sequence[int], schedule: Schedule) -> Trial:
        """Return the misses of a schedule by windows, and the machine time after switching off."""
        times = schedule.first_tokens, schedule.completions
        misses = []
        for members in self.members:
            levels = Levels(*([limits[i] for i in members] for limits in self.levels))
            columns = ([column[i] for i in members] for column in (self.arrivals, *times))
            misses.append(len(members) - levels.attained(*columns))
        return Trial(tuple(counts), tuple(misses), self._drained(counts, schedule))

    def _drained(self, counts: Sequence[int], schedule: Schedule) -> tuple[int, ...]:
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
