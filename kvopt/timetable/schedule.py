"""A schedule and its exact check, in integers and without a solver.

Memory grows between ends of work, so it peaks at ends only, and a check visits only these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, islice, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from kvopt.errors import InvalidInput
from kvopt.show.dataframes import frame
from kvopt.show.summary import Facts, counted, worded
from kvopt.timetable.retention import Piece, kept_at, kept_tokens
from kvopt.timetable.sweep import blocks_held
from kvopt.timetable.timetable import Times, Timetable
from kvopt.timetable.waiting_times import MEASURES, Measures, summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from kvopt.show.plots.timeline import Timeline, WorkPiece

_MAX_VIOLATIONS = 20
"""Limit of the violations that a check lists."""


@dataclass(frozen=True, slots=True)
class ScheduleCheck:
    """Result of an exact check.

    Parameters
    ----------
    feasible
        Whether every request runs, no rule of the problem is broken and memory never exceeded.
    objective
        Total end-to-end latency, feasible or not; None for a run with unfinished requests.
    peak_memory, peak_time
        Most tokens held by a worker at one time, and the first round that ends with them.
    makespan
        Time of the last completion.
    violations
        Broken rules, one line each (the first twenty).
    """

    feasible: bool
    objective: int | Any
    peak_memory: int
    peak_time: int
    makespan: int
    violations: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Schedule(Timetable):
    """A schedule: a start for each request of an instance, or the times of its tokens.

    Rounds are numbered as each worker counts them.  Times, arrivals and latencies are those of the
    clock: rounds, or nanoseconds.

    Parameters
    ----------
    instance
        The problem.
    starts
        Round of the last start of each request, in the instance's order.
    workers
        In a fleet the worker of each request, from 0; empty with one worker.
    segments
        Instead of ``starts`` with pauses: for each request pairs ``[first, last]`` of
        active times, ascending; together they hold as many times as the request has tokens.
        In rounds segments without a gap become one.
    clock
        How long rounds last.
    chunks
        Work on prompts that yielded no token.
    lost
        Work lost in evictions, in their order.
    resumed
        For each worker the rounds at which it began to work after it was idle, and their times;
        empty on the clock of rounds, where the number is the time.

    Examples
    --------
    >>> from kvopt import Instance, Request, Schedule
    >>> instance = Instance(memory=7, requests=[Request(0, 1, o) for o in (1, 2, 3, 4)])
    >>> Schedule(instance, (0, 0, 0, 2)).check().objective
    12

    The first request pauses at time 7, and 12 is below the optimum without pauses, 14.

    >>> instance = Instance(10, [Request(0, 0, 10), Request(6, 5, 1)])
    >>> schedule = Schedule(instance, segments=[[(1, 6), (8, 11)], [(7, 7)]])
    >>> schedule.check().feasible, schedule.objective, schedule.pauses
    (True, 12, 1)
    """

    # ---- measures -----------------------------------------------------------------------

    @cached_property
    def objective(self) -> int | Any:
        """Total latency, the sum of ``w_i (c_i - a_i)``; None if a request did not finish."""
        if not self.is_complete:
            return None
        if not self.instance.extras:
            return sum(self.completions) - sum(self.arrivals)
        rows = zip(self.instance, self.completions, self.arrivals, strict=True)
        return sum(request.weight * (end - arrival) for request, end, arrival in rows)

    @cached_property
    def makespan(self) -> int:
        """Time of the last completion, 0 without any."""
        return max((end for end in self.completions if end is not None), default=0)

    @property
    def latencies(self) -> list[int]:
        """Completion minus arrival of completed requests, in instance order."""
        return self._since_arrival(self.completions)

    @property
    def times_to_first_token(self) -> list[int]:
        """First token minus arrival of completed requests, in instance order."""
        return self._since_arrival(self.first_tokens)

    def _since_arrival(self, times: Times) -> list[int]:
        pairs = zip(times, self.arrivals, strict=True)
        return [time - arrival for time, arrival in pairs if time is not None]

    @property
    def times_per_output_token(self) -> list[float]:
        """Time from the first token to the last over the tokens after the first.

        Of completed requests with more than one token, in instance order.  In rounds without pauses
        it is 1.
        """
        rows = zip(self.instance, self.first_tokens, self.completions, strict=True)
        return [
            (completion - first) / (request.output - 1)
            for request, first, completion in rows
            if completion is not None and request.output > 1
        ]

    def measures(self) -> Measures:
        """Return mean, median and 99th percentile of waiting times.

        In rounds or in seconds, of completed requests: ``latency``, ``time_to_first_token`` and
        ``time_per_output_token``.
        """
        return self._measures

    @cached_property
    def _measures(self) -> Measures:
        waited: tuple[Sequence[float], ...] = (
            self.latencies,
            self.times_to_first_token,
            self.times_per_output_token,
        )
        rows = zip(MEASURES, waited, strict=True)
        return {name: summary(times, self.clock.scale) for name, times in rows}

    @property
    def busy(self) -> int:
        """Total working time of all workers."""
        return sum(stretch.ended - stretch.began for stretch in self.stretches)

    @property
    def rounds(self) -> int:
        """Rounds with active requests."""
        return sum(stretch.rounds for stretch in self.stretches)

    @property
    def throughput(self) -> float | None:
        """Output tokens of completed requests over the time to the last completion.

        Per second or per round, as on the clock.
        """
        pairs = zip(self.instance, self.starts, strict=True)
        tokens = sum(request.output for request, k in pairs if k is not None)
        return tokens * self.clock.scale / self.makespan if self.makespan else None

    # ---- the check ----------------------------------------------------------------------

    def check(self) -> ScheduleCheck:
        """Check every start against its arrival, and memory at its possible peaks."""
        peak = self.peak_memory
        when = (p.sweep.times[p.sweep.held.index(peak)] for p in self.parts if peak in p.sweep.held)
        return ScheduleCheck(
            feasible=self.is_complete and not self._violations,
            objective=self.objective,
            peak_memory=peak,
            peak_time=next(when) if peak else 0,
            makespan=self.makespan,
            violations=self._violations,
        )

    def violations(self) -> list[str]:
        """Return the broken rules of the problem, checked in integers; empty if none."""
        return list(self._violations)

    @cached_property
    def _violations(self) -> tuple[str, ...]:
        if self.instance.workers == 1:
            wrong = tuple(self._misshapen()) if self._beside() else ()
            violations = iter(wrong) if wrong else chain(self._early(), self._overflows())
        else:
            parts = enumerate(self.parts)
            violations = (
                f"worker {number}, {text}" for number, part in parts for text in part._violations
            )
        return tuple(islice(violations, _MAX_VIOLATIONS))

    def _misshapen(self) -> Iterator[str]:
        """Report impossible work, which has no times and no memory."""
        requests, ends = self.instance.requests, dict[int, int]()
        for i, start, end in sorted(self.pieces()):
            if not 0 <= i < len(requests):
                yield f"work of request {i}, of which there is none"
                return
            if start < ends.get(i, start):
                yield f"request {requests[i].id!r} runs twice at {ends[i]}"
            ends[i] = end
        for piece in self.lost:
            request = requests[piece.request]
            if not piece.start < piece.end < piece.start + request.output:
                yield f"request {request.id!r} cannot lose {piece.start}..{piece.end}"
        finders = set[tuple[int, int]]()
        for chunks in self.chunks:
            request, rows = requests[chunks.request], self.spans[chunks.request]
            total, produced = chunks.cached + sum(chunks.tokens), 0
            for first, last in rows:
                produced += last - first + 1 if first <= chunks.start else 0
            smallest = min(chunks.tokens, default=1)
            is_whole = smallest > 0 <= chunks.cached and total <= request.prompt + produced
            if not (is_whole and 0 <= chunks.start < rows[-1][1]):
                yield f"request {request.id!r} cannot process {total} tokens from {chunks.start} on"
            if not chunks.tokens:
                begins, place = {first - 1 for first, _ in rows}, (chunks.request, chunks.start)
                if chunks.start not in begins or place in finders:
                    yield f"request {request.id!r} finds tokens at {chunks.start} to no use"
                finders.add(place)

    def _early(self) -> Iterator[str]:
        """Describe requests that start too early."""
        even, arrivals, unit = self.clock.is_even, self.arrivals, self.clock.unit
        more = ((piece.request, piece.start) for piece in self._beside())
        for i, start in chain(enumerate(self.begins), more):
            if start is None or (even and start >= arrivals[i]):
                continue
            time = start if even else self._moments["began"][start]
            if time < arrivals[i] or start < 0:
                name = repr(self.instance.requests[i].id)
                yield f"request {name}: starts at {time}{unit}, arrives at {arrivals[i]}{unit}"
        for before, after in () if even else pairwise(self.stretches):
            if after.began < before.ended:
                yield f"round {after.round} begins before the one before it ends"

    def _overflows(self) -> Iterator[str]:
        memory, sweep = self.instance.memory, self.sweep
        if (limit := self.instance.max_active) is not None:
            for time, active in zip(sweep.times, sweep.active, strict=True):
                if active > limit:
                    yield f"time {time}: {active} requests are active, at most {limit} may be"
        try:
            changes = self._kept()
        except InvalidInput as error:
            yield str(error)
            return
        kept = kept_at(changes, sweep.times)
        if self.peak_memory + max(kept.values(), default=0) > memory:
            ends = {*sweep.ends, *changes}
            for time, load in zip(sweep.times, sweep.held, strict=True):
                if (load := load + kept[time]) > memory and time in ends:
                    yield f"time {time}: {load} tokens held, memory is {memory}"
        size, blocks = self.instance.block_size, self.instance.blocks
        if size > 1:
            for time, needed in blocks_held(sweep, size, changes):
                if (needed := needed + kept[time] // size) > blocks:
                    yield f"time {time}: {needed} blocks of {size} tokens held, there are {blocks}"

    def _kept(self) -> Mapping[int, int]:
        """Return changes of the tokens that stay in memory since a request finds them later."""
        if not self.finds_tokens:
            return {}
        requests, pieces, done = self.instance.requests, list[Piece](), dict[tuple[int, int], int]()
        for i, start, tokens, cached in sorted(self.chunks):
            held = list(accumulate(tokens, initial=cached))
            for number, (before, after) in enumerate(pairwise(held), start):
                cached_before = cached if number == start else 0
                pieces.append(Piece(number, number + 1, before, after, i, cached_before))
            done[i, start + len(tokens)] = held[-1] if tokens else -cached
        for i, start, end in self.lost:
            pieces.append(Piece(start, end, 0, requests[i].prompt + 1, i, 0))
        for i, rows in enumerate(self.spans):
            count = requests[i].prompt
            for first, last in rows:
                before = done.get((i, first - 1), 0)
                cached_before = max(-before, 0)
                pieces.append(Piece(first - 1, last, abs(before), count + 1, i, cached_before))
                count += last - first + 1
        return kept_tokens(pieces, self.instance.forest, self.instance.block_size)

    # ---- tables and pictures ------------------------------------------------------------

    def facts(self) -> Facts:
        """Return the facts of a summary; times in rounds, or in seconds."""
        scale, latencies, count = self.clock.scale, self.latencies, len(self.instance)

        def in_unit(time: float) -> str:
            return worded(time) if scale == 1 else f"{worded(time / scale)} seconds"

        return {
            "of": self.instance.name,
            "requests": count,
            "total latency": in_unit(self.objective) if self.is_complete else None,
            "mean latency": in_unit(sum(latencies) / count) if self.is_complete and count else None,
            "makespan": in_unit(self.makespan),
            "peak memory": f"{self.peak_memory:,} of {self.instance.memory:,}",
            "pauses": self.pauses or None,
            "evictions": len(self.lost) or None,
            "workers": self.instance.workers if self.instance.workers > 1 else None,
            "feasible": self.check().feasible,
            "violations": "; ".join(self.violations()) or None,
        }

    def to_dataframe(self) -> DataFrame:
        """Return a row for each request, as a DataFrame of pandas.

        Columns: ``id``, ``prompt``, ``output``, ``arrival``, ``start`` (the last one),
        ``first_token``, ``completion``, ``latency`` (completion minus arrival), ``wait``
        (start minus the same) and ``evictions``; of a fleet ``worker`` too.  On a clock of seconds
        times are seconds: ``arrival_seconds`` and so on.
        """
        evicted, even = Counter(piece.request for piece in self.lost), self.clock.is_even
        starts, ends = self.start_times, self.completions
        times: dict[str, Times] = {
            "arrival": self.arrivals,
            "start": starts,
            "first_token": self.first_tokens,
            "completion": ends,
            "latency": list(map(_since, ends, self.arrivals)),
            "wait": list(map(_since, starts, self.arrivals)),
        }
        columns: dict[str, Sequence[Any]] = {
            name: [getattr(request, name) for request in self.instance]
            for name in ("id", "prompt", "output")
        }
        for name, column in times.items():
            scaled = column if even else [t if t is None else t / self.clock.scale for t in column]
            columns[name if even else f"{name}_seconds"] = scaled
        columns["evictions"] = [evicted[i] for i in range(len(self.instance))]
        return frame(columns | ({"worker": self.workers} if self.instance.workers > 1 else {}))

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the requests over time, and memory below, on the clock of the schedule.

        Parameters
        ----------
        ax
            Axes for the requests alone; by default a new figure with both.
        """
        from kvopt.show.plots import plot_schedule

        return plot_schedule(self, ax=ax)

    def timeline(self) -> Timeline:
        """Return the schedule as plain numbers for pictures."""
        from kvopt.show.plots.timeline import Timeline

        paused = f", {counted(self.pauses, 'pause')}" if self.pauses else ""
        total = "" if self.objective is None else f"{self.objective / self.clock.scale:,.10g}"
        return Timeline(
            self.instance,
            [*self._drawn()],
            [time / self.clock.scale for time in self.arrivals],
            []
            if self.clock.is_even
            else [*enumerate(part.memory_over_time(upright=True) for part in self.parts)],
            remark=f"total latency {total}{' s' * (not self.clock.is_even)}{paused}",
            unit="rounds" if self.clock.is_even else "seconds",
        )

    def _drawn(self) -> Iterator[WorkPiece]:
        """Yield the intervals of work, lost or not, on the clock of the schedule."""
        from kvopt.show.plots.timeline import WorkPiece

        scale = self.clock.scale
        for worker, part in enumerate(self.parts):
            begins = {(i, first - 1) for i, rows in enumerate(part.spans) for first, _ in rows}
            chunks = {
                (chunk.request, chunk.start, chunk.end): (chunk.request, chunk.end) not in begins
                for chunk in part.chunks
            }
            lost = {*part.lost, *(piece for piece, is_lost in chunks.items() if is_lost)}
            before = [0] * len(part.instance)
            for piece in sorted(part.pieces(), key=itemgetter(1)):
                i, start, end = piece
                produced = 0 if piece in chunks else end - start
                began, first, ended = part._moments.values()
                times = began[start] / scale, first[start] / scale, ended[end] / scale
                yield WorkPiece(
                    self.members[worker][i], worker, *times, before[i], produced, piece in lost
                )
                before[i] += 0 if piece in lost else produced


def _since(time: int | Any, begin: int) -> int | Any:
    return None if time is None else time - begin
