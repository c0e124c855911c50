"""Schedules and their exact check: integers only, no solver.

A request that starts at round ``k`` is active at the times ``k+1 .. k+o`` and holds
``s + (t - k)`` tokens at time ``t``.  Memory grows between completions, so it peaks at
completion times only and those are all that a check has to visit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from numbers import Integral
from operator import sub
from typing import TYPE_CHECKING

from kvopt.errors import InvalidInput, shown
from kvopt.problem.instance import Instance
from kvopt.show.dataframes import frame
from kvopt.show.optional import pictures
from kvopt.show.summary import Facts, Summarised
from kvopt.timetable.blocks import blocks_held
from kvopt.timetable.sweep import Sweep, swept

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

_MOST_VIOLATIONS = 20
"""Violations that a check lists; one would do."""


@dataclass(frozen=True, slots=True)
class ScheduleCheck:
    """What an exact check found.

    Parameters
    ----------
    feasible
        Whether every request starts after its arrival and memory is never exceeded.
    objective
        Total end-to-end latency of the starts, feasible or not.
    peak_memory, peak_time
        Most tokens held at one time, and the first time at which they are.
    makespan
        Time of the last completion.
    violations
        What breaks, one line each (the first twenty).
    """

    feasible: bool
    objective: int
    peak_memory: int
    peak_time: int
    makespan: int
    violations: tuple[str, ...]


class Timetable(Summarised):
    """When the requests of an instance are active, and what follows from it."""

    instance: Instance

    @property
    def begins(self) -> tuple[int, ...]:
        """Round in which each request starts, for the first time if it pauses."""
        raise NotImplementedError

    @property
    def completions(self) -> tuple[int, ...]:
        """Time of the last token of each request."""
        raise NotImplementedError

    @property
    def sweep(self) -> Sweep:
        """Tokens held over time, by all workers together."""
        raise NotImplementedError

    @property
    def sweeps(self) -> Sequence[Sweep]:
        """Tokens held over time by each worker."""
        return (self.sweep,)

    def facts(self) -> Facts:
        """Return what a summary says."""
        check = self.check()
        count = len(self.instance)
        return {
            "of": self.instance.name,
            "requests": count,
            "total latency": self.objective,
            "mean latency": self.objective / count if count else None,
            "makespan": self.makespan,
            "peak memory": f"{check.peak_memory:,} of {self.instance.memory:,}",
            "feasible": check.feasible,
            "violations": "; ".join(check.violations) or None,
        }

    @cached_property
    def objective(self) -> int:
        """Total end-to-end latency, the sum of ``c_i - a_i``."""
        return sum(self.completions) - sum(request.arrival for request in self.instance)

    @cached_property
    def makespan(self) -> int:
        """Time of the last completion, 0 when there is no request."""
        return max(self.completions, default=0)

    def check(self) -> ScheduleCheck:
        """Check every start against its arrival, and memory wherever it can peak."""
        return self._checked

    @cached_property
    def _checked(self) -> ScheduleCheck:
        violations = list(self._early_starts())
        peak = peak_time = 0
        for worker, sweep in enumerate(self.sweeps):
            where = f"worker {worker}, " if self.instance.workers > 1 else ""
            violations += [where + text for text in self._overflows(sweep)]
            if (most := max(sweep.held, default=0)) > peak:
                peak, peak_time = most, sweep.times[sweep.held.index(most)]
        return ScheduleCheck(
            feasible=not violations,
            objective=self.objective,
            peak_memory=peak,
            peak_time=peak_time,
            makespan=self.makespan,
            violations=tuple(violations[:_MOST_VIOLATIONS]),
        )

    def _overflows(self, sweep: Sweep) -> Iterator[str]:
        memory = self.instance.memory
        if max(sweep.held, default=0) > memory:
            ends = set(sweep.ends)
            for time, load in zip(sweep.times, sweep.held, strict=True):
                if load > memory and time in ends:
                    yield f"time {time}: {load} tokens held, memory is {memory}"
        size, blocks = self.instance.block_size, self.instance.blocks
        if size > 1:
            for time, needed in blocks_held(sweep, size):
                if needed > blocks:
                    yield f"time {time}: {needed} blocks of {size} tokens held, there are {blocks}"

    def loads(self, times: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Yield ``(time, tokens held)`` for the given times, in ascending order."""
        stretches = list(self.sweep.stretches())
        begins = [stretch.begin for stretch in stretches]
        for time in sorted(set(times)):
            number = bisect_left(begins, time) - 1
            inside = number >= 0 and time <= stretches[number].end
            yield time, stretches[number].held_at(time) if inside else 0

    def memory_profile(self) -> list[tuple[int, int]]:
        """Return ``(time, tokens held)`` wherever the slope changes.

        Between two entries of the list memory grows in a straight line, so the list
        describes every time exactly however long the schedule is.
        """
        corners = {0}
        for start, end in zip(self.sweep.starts, self.sweep.ends, strict=True):
            corners.update((start, start + 1, end, end + 1))
        return list(self.loads(corner for corner in corners if corner >= 0))

    def _early_starts(self) -> Iterator[str]:
        for request, start in zip(self.instance, self.begins, strict=True):
            if start < request.arrival:
                yield f"request {request.id!r}: starts at {start}, arrives at {request.arrival}"


@dataclass(frozen=True, repr=False)
class Schedule(Timetable):
    """One start round for each request of an instance, in the instance's order.

    Parameters
    ----------
    instance
        The problem.
    starts
        Rounds.
    workers
        Of a fleet the worker that each request runs on, from 0; left out where there is one.

    Examples
    --------
    >>> from kvopt import Instance, Request, Schedule
    >>> instance = Instance(memory=7, requests=[Request(0, 1, o) for o in (1, 2, 3, 4)])
    >>> Schedule(instance, (0, 0, 0, 2)).check().objective
    12
    """

    instance: Instance
    starts: tuple[int, ...]
    workers: tuple[int, ...]

    def __init__(
        self, instance: Instance, starts: Iterable[int], workers: Iterable[int] | None = None
    ) -> None:
        object.__setattr__(self, "instance", instance)
        object.__setattr__(self, "starts", _integers(instance, "starts", starts))
        object.__setattr__(self, "workers", _checked_workers(instance, workers))

    @property
    def begins(self) -> tuple[int, ...]:
        """The starts."""
        return self.starts

    @cached_property
    def completions(self) -> tuple[int, ...]:
        """Completion times ``k_i + o_i``."""
        return tuple(k + r.output for k, r in zip(self.starts, self.instance, strict=True))

    def to_dataframe(self) -> DataFrame:
        """Return a row for each request, as a DataFrame of pandas; times are rounds.

        Columns: ``id``, ``arrival``, ``prompt``, ``output``, ``start``, ``completion``,
        ``latency`` (completion minus arrival) and ``wait`` (start minus arrival); of a fleet
        ``worker`` too.
        """
        requests = self.instance.requests
        arrivals = [request.arrival for request in requests]
        fleet = {"worker": self.workers} if self.instance.workers > 1 else {}
        return frame(
            {
                "id": [request.id for request in requests],
                "arrival": arrivals,
                "prompt": [request.prompt for request in requests],
                "output": [request.output for request in requests],
                "start": self.starts,
                "completion": self.completions,
                "latency": list(map(sub, self.completions, arrivals)),
                "wait": list(map(sub, self.starts, arrivals)),
                **fleet,
            }
        )

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the requests over time, and memory below.

        Parameters
        ----------
        ax
            Where to draw the requests alone; a new figure with both when left out.
        """
        plots = pictures()
        figure: Figure = plots.plot_schedule(self) if ax is None else plots.rows(self, ax).figure
        return figure

    @cached_property
    def sweep(self) -> Sweep:
        """Tokens held over time, by all workers together."""
        return swept(self.starts, self.completions, [r.prompt for r in self.instance])

    @cached_property
    def sweeps(self) -> Sequence[Sweep]:
        """Tokens held over time by each worker."""
        if self.instance.workers == 1:
            return (self.sweep,)
        return [part.sweep for part in self.parts()]

    def members(self) -> list[list[int]]:
        """Return the positions of the requests of each worker."""
        found: list[list[int]] = [[] for _ in range(self.instance.workers)]
        for i, worker in enumerate(self.workers):
            found[worker].append(i)
        return found

    def in_standard_form(self) -> Schedule:
        """Return a schedule as good, as models have it that leave out equal ones.

        Requests of one shape start in order of arrival, and workers are numbered in the order of
        the first request of each.
        """
        order = _places_in_arrival_order(self.instance, self.starts)
        names: dict[int, int] = {}
        workers = [names.setdefault(self.workers[i], len(names)) for i in order]
        return Schedule(self.instance, (self.starts[i] for i in order), workers)

    def parts(self) -> Iterator[Schedule]:
        """Yield the schedule of each worker, of its requests alone."""
        for members in self.members():
            starts = [self.starts[i] for i in members]
            yield Schedule(self.instance.of_one_worker(members), starts)


def _checked_workers(instance: Instance, workers: Iterable[int] | None) -> tuple[int, ...]:
    """Return the worker of each request if there are such workers, else raise."""
    if workers is None:
        if instance.workers > 1:
            reason = f"is missing: the instance has {instance.workers} workers"
            raise InvalidInput(reason, field="workers")
        return (0,) * len(instance)
    found = _integers(instance, "workers", workers)
    for worker, request in zip(found, instance, strict=True):
        if not 0 <= worker < instance.workers:
            reason = f"must be in 0 .. {instance.workers - 1}, got {worker}"
            raise InvalidInput(reason, field="workers", request=repr(request.id))
    return found


def _integers(instance: Instance, field: str, values: Iterable[int]) -> tuple[int, ...]:
    """Return an integer for each request, else raise."""
    found = tuple(values)
    if len(found) != len(instance):
        reason = f"has {len(found)} entries for {len(instance)} requests"
        raise InvalidInput(reason, field=field)
    others = [i for i, value in enumerate(found) if type(value) is not int]
    for i in others:
        if isinstance(found[i], bool) or not isinstance(found[i], Integral):
            reason = f"must be an integer, got {shown(found[i])}"
            raise InvalidInput(reason, field=field, request=repr(instance.requests[i].id))
    return tuple(map(int, found)) if others else found


def identical_groups(instance: Instance) -> list[list[int]]:
    """Group the positions of requests of one shape, each group in order of arrival.

    Two requests of equal prompt and output can swap starts when the later start is
    given to the later arrival: neither feasibility nor total latency changes.  So some
    optimum starts every group in this order.
    """

    def key(i: int) -> tuple[int, int]:
        return instance.requests[i].shape

    def order(i: int) -> tuple[tuple[int, int], int, int]:
        return key(i), instance.requests[i].arrival, i

    groups = groupby(sorted(range(len(instance)), key=order), key)
    return [members for _, group in groups if len(members := list(group)) > 1]


def _places_in_arrival_order(instance: Instance, starts: Sequence[int]) -> list[int]:
    """Return for each request which one's place it takes."""
    places = list(range(len(starts)))
    for group in identical_groups(instance):
        for i, place in zip(group, sorted(group, key=starts.__getitem__), strict=True):
            places[i] = place
    return places
