"""Schedules in which requests pause: their tokens are kept, their memory is given back.

Request i is active at ``o_i`` times after its arrival, not necessarily in a row, and holds
``s_i + j`` tokens at the j-th of them.  A segment is a stretch of active times without a gap:
within it a request behaves as one whose prompt holds what was produced before, so memory over
time is the same sweep as for schedules without pauses, and peaks at ends of segments only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from numbers import Integral
from typing import TYPE_CHECKING

from kvopt.errors import InvalidInput, shown
from kvopt.problem.instance import Instance, refuse_fleet
from kvopt.problem.requests import Request
from kvopt.show.optional import pictures
from kvopt.show.summary import Facts
from kvopt.timetable.schedule import Schedule, Timetable, identical_groups
from kvopt.timetable.sweep import Sweep, swept

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Segment = tuple[int, int]
"""First and last active time of a stretch: its tokens are ``last - first + 1``."""


@dataclass(frozen=True, repr=False)
class PausedSchedule(Timetable):
    """The active times of each request of an instance, in the instance's order.

    Parameters
    ----------
    instance
        The problem.
    segments
        For each request pairs ``[first, last]`` of active times, ascending; together they hold
        as many times as the request has tokens.  Segments without a gap become one.

    Examples
    --------
    The first request pauses at time 7, and 12 is below the optimum without pauses, 14.

    >>> from kvopt import Instance, Request
    >>> instance = Instance(10, [Request(0, 0, 10), Request(6, 5, 1)])
    >>> schedule = PausedSchedule(instance, [[(1, 6), (8, 11)], [(7, 7)]])
    >>> schedule.check().feasible, schedule.objective, schedule.pauses
    (True, 12, 1)
    """

    instance: Instance
    segments: tuple[tuple[Segment, ...], ...]

    def __init__(self, instance: Instance, segments: Iterable[Iterable[Sequence[int]]]) -> None:
        refuse_fleet(instance, "a schedule with pauses")
        object.__setattr__(self, "instance", instance)
        given = list(segments)
        if len(given) != len(instance):
            reason = f"has {len(given)} entries for {len(instance)} requests"
            raise InvalidInput(reason, field="segments")
        read = map(_checked_segments, instance, given)
        object.__setattr__(self, "segments", tuple(read))

    @classmethod
    def of(cls, schedule: Schedule) -> PausedSchedule:
        """Return a schedule without pauses as one of segments."""
        lives = zip(schedule.starts, schedule.completions, strict=True)
        return cls(schedule.instance, [[(start + 1, end)] for start, end in lives])

    @classmethod
    def at_times(cls, instance: Instance, times: Iterable[Iterable[int]]) -> PausedSchedule:
        """Return the schedule that is active at the given times of each request."""
        return cls(instance, [[(time, time) for time in active] for active in times])

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the requests over time, with their pauses, and memory below; see `Schedule.plot`."""
        plots = pictures()
        figure: Figure = plots.plot_run(self) if ax is None else plots.rows(self, ax).figure
        return figure

    @property
    def pauses(self) -> int:
        """How often a request is interrupted."""
        return sum(map(len, self.segments)) - len(self.segments)

    def without_pauses(self) -> Schedule | None:
        """Return the same schedule by its starts, None if a request pauses."""
        return None if self.pauses else Schedule(self.instance, self.begins)

    def facts(self) -> Facts:
        """Return what a summary says."""
        return {**super().facts(), "pauses": self.pauses}

    @cached_property
    def begins(self) -> tuple[int, ...]:
        """Round in which each request starts for the first time."""
        return tuple(segments[0][0] - 1 for segments in self.segments)

    @cached_property
    def completions(self) -> tuple[int, ...]:
        """Time of the last token of each request."""
        return tuple(segments[-1][1] for segments in self.segments)

    @property
    def active_times(self) -> Iterator[list[int]]:
        """The times at which each request is active, one for each of its tokens."""
        for segments in self.segments:
            yield [time for first, last in segments for time in range(first, last + 1)]

    @cached_property
    def sweep(self) -> Sweep:
        """Tokens held over time."""
        starts = [first - 1 for segments in self.segments for first, _ in segments]
        ends = [last for segments in self.segments for _, last in segments]
        return swept(starts, ends, list(self._held_before()))

    def _held_before(self) -> Iterator[int]:
        """Yield for each segment the prompt and the tokens that were produced before it."""
        for request, segments in zip(self.instance, self.segments, strict=True):
            lengths = (last - first + 1 for first, last in segments[:-1])
            yield from accumulate(lengths, initial=request.prompt)


def times_in_arrival_order(schedule: PausedSchedule) -> list[list[int]]:
    """Let requests of one shape swap the times of a token until they are in order of arrival.

    Neither feasibility nor total latency changes.
    """
    times = list(schedule.active_times)
    for group in identical_groups(schedule.instance):
        by_token = zip(*(times[i] for i in group), strict=True)
        for i, active in zip(group, zip(*map(sorted, by_token), strict=True), strict=True):
            times[i] = list(active)
    return times


def _checked_segments(request: Request, given: object) -> tuple[Segment, ...]:
    """Return the segments of a request, joined where there is no gap, else raise."""
    try:
        return tuple(_joined(request, given))
    except InvalidInput as error:
        raise error.located(request=repr(request.id)) from None


def _joined(request: Request, given: object) -> Iterator[Segment]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise _refused(f"must be a list of pairs, got {shown(given)}")
    tokens, first, last = 0, 0, None
    for pair in given:
        begin, end = _checked_pair(pair)
        if last is not None and begin <= last:
            raise _refused(f"must ascend, got {shown([begin, end])} after time {last}")
        if last is not None and begin > last + 1:
            yield first, last
        first = begin if last is None or begin > last + 1 else first
        last, tokens = end, tokens + end - begin + 1
    if last is None or tokens != request.output:
        raise _refused(f"hold {tokens} times for {request.output} tokens")
    yield first, last


def _checked_pair(pair: object) -> Segment:
    if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
        raise _refused(f"must be pairs [first, last], got {shown(pair)}")
    for time in pair:
        if isinstance(time, bool) or not isinstance(time, Integral):
            raise _refused(f"must hold integers, got {shown(time)}")
    first, last = map(int, pair)
    if first > last:
        raise _refused(f"must have first <= last, got {shown(pair)}")
    return first, last


def _refused(reason: str) -> InvalidInput:
    return InvalidInput(reason, field="segments")
