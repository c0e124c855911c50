"""What ran when, on any clock, and its exact check: integers only, no solver.

A request that starts at round ``k`` is active at the times ``k+1 .. k+o`` and holds
``s + (t - k)`` tokens at time ``t``.  One that pauses keeps its tokens and gives its memory back:
at its j-th active time it holds ``s + j``.  Memory grows between ends of work, so it peaks at
ends only and those are all that a check has to visit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from itertools import accumulate, chain, islice, pairwise
from numbers import Integral
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Self

from kvopt.errors import InvalidInput, shown
from kvopt.problem.clocks import ROUNDS, Clock, Piece, Stretch
from kvopt.problem.instance import Instance
from kvopt.problem.scopes import Scope
from kvopt.show.dataframes import frame
from kvopt.show.summary import Facts, Summarised, worded
from kvopt.timetable.measures import MEASURES, Measures, summary
from kvopt.timetable.sweep import Sweep, blocks_held, swept
from kvopt.timetable.work import Chunks, Lost, Segments, checked_segments, scope_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from kvopt.show.plots.timeline import Timeline, Work

Times = Sequence[int | Any]
"""A time for each request; None only in a run, of what never finished."""

_MOST_VIOLATIONS = 20
"""Violations that a check lists; one would do."""


@dataclass(frozen=True, slots=True)
class ScheduleCheck:
    """What an exact check found.

    Parameters
    ----------
    feasible
        Whether every request runs, no rule of the problem is broken and memory never exceeded.
    objective
        Total end-to-end latency, feasible or not; None of a run that left requests unfinished.
    peak_memory, peak_time
        Most tokens held by a worker at one time, and the first round that ends with them.
    makespan
        Time of the last completion.
    violations
        What breaks, one line each (the first twenty).
    """

    feasible: bool
    objective: int | Any
    peak_memory: int
    peak_time: int
    makespan: int
    violations: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Schedule(Summarised):
    """What ran when: a start for each request of an instance, or the times of its tokens.

    Rounds are numbered as each worker counts them.  Times, arrivals and latencies are those of the
    clock: rounds, or nanoseconds.

    Parameters
    ----------
    instance
        The problem.
    starts
        Round of the last start of each request, in the instance's order.
    workers
        Of a fleet the worker that each request runs on, from 0; left out where there is one.
    segments
        In place of ``starts`` where requests pause: for each request pairs ``[first, last]`` of
        active times, ascending; together they hold as many times as the request has tokens.
        Segments without a gap become one.
    clock
        How long rounds last.
    chunks
        Work on prompts that yielded no token.
    lost
        Work that evictions threw away, in order of eviction.
    resumed
        For each worker the rounds at which it began to work after it was idle, and when that was;
        left out where all rounds are alike, since there the number is the time.

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

    instance: Instance
    starts: Times = ()
    workers: Times = ()
    segments: Segments = ()
    _: KW_ONLY
    clock: Clock = ROUNDS
    chunks: Sequence[Chunks] = ()
    lost: Sequence[Lost] = ()
    resumed: Sequence[Mapping[int, int]] = field(default=(), hash=False)

    _or_else: ClassVar[type] = int
    """What starts and workers may be beside integers."""

    def __post_init__(self) -> None:
        said = vars(self)  # as they were given, before anybody sees them
        if segments := tuple(self.segments):
            segments = checked_segments(self.instance, segments)
            starts = tuple(rows[-1][0] - 1 for rows in segments)
            if (given := tuple(self.starts)) and given != starts:
                raise InvalidInput("are not those of the last segments", field="starts")
        else:
            starts = self._integers("starts", self.starts)
        said.update(starts=starts, workers=self._checked_workers(), segments=segments)
        said.update({name: tuple(said[name]) for name in ("chunks", "lost", "resumed")})

    def _integers(self, name: str, values: Iterable[int]) -> tuple[int, ...]:
        """Return an integer for each request, else raise."""
        found = tuple(values)
        if len(found) != len(self.instance):
            reason = f"has {len(found)} entries for {len(self.instance)} requests"
            raise InvalidInput(reason, field=name)
        others = [i for i, value in enumerate(found) if type(value) is not int]
        for i in others:
            value: object = found[i]
            if isinstance(value, bool) or not isinstance(value, (Integral, self._or_else)):
                reason = f"must be an integer, got {shown(value)}"
                raise InvalidInput(reason, field=name, request=repr(self.instance[i].id))
        return tuple(k if k is None else int(k) for k in found) if others else found

    def _checked_workers(self) -> tuple[int, ...]:
        """Return the worker of each request if there are such workers, else raise."""
        count, given = self.instance.workers, tuple(() if self.workers is None else self.workers)
        if not given and count > 1 and len(self.instance):
            raise InvalidInput(f"is missing: the instance has {count} workers", field="workers")
        if not given:
            return (0,) * len(self.instance)
        found = self._integers("workers", given)
        for worker, request in zip(found, self.instance, strict=True):
            if worker is not None and not 0 <= worker < count:
                reason = f"must be in 0 .. {count - 1}, got {worker}"
                raise InvalidInput(reason, field="workers", request=repr(request.id))
        return found

    @classmethod
    def at_times(cls, instance: Instance, times: Iterable[Iterable[int]]) -> Self:
        """Return the schedule that is active at the given times of each request."""
        segments = [[(time, time) for time in active] for active in times]
        return cls(instance, segments=segments)

    def timed(self, clock: Clock, chunks: Iterable[Sequence[int]]) -> Self:
        """Return the same decisions on a clock in seconds, with these prompts in pieces.

        Each of these is a request, the round at which it begins, and the tokens of each round.
        Rounds follow one another at once, unless one has to wait for what begins in it to arrive.
        """
        pieces = [Chunks(i, start, tuple(tokens)) for i, start, *tokens in chunks]
        found = replace(self, clock=clock, chunks=pieces)
        due, resumed, time = defaultdict[int, int](int), dict[int, int](), 0
        for i, start, _ in found.pieces():
            due[start] = max(due[start], found.arrivals[i])
        for stretch in found.stretches:
            if due[stretch.round] > time:
                resumed[stretch.round] = time = due[stretch.round]
            time += stretch.ended - stretch.began
        return replace(found, resumed=[resumed])

    @property
    def is_complete(self) -> bool:
        """Whether every request finishes."""
        return True

    @property
    def is_plain(self) -> bool:
        """Whether its starts say it all: in rounds, without pauses, pieces and lost work."""
        more = self.pauses or self.chunks or self.lost
        return self.clock.is_even and self.is_complete and not more

    @property
    def scope(self) -> Scope:
        """What it makes use of, and so what a bound has to cover to be compared with it.

        In rounds a prompt in pieces is one that comes later.
        """
        return scope_of(self.segments, () if self.clock.is_even else self.chunks, self.lost)

    @property
    def pauses(self) -> int:
        """How often a request is interrupted and keeps its tokens."""
        return sum(map(len, self.segments)) - len(self.segments)

    # ---- workers ------------------------------------------------------------------------

    @cached_property
    def members(self) -> list[list[int]]:
        """The positions of the requests of each worker."""
        found: list[list[int]] = [[] for _ in range(self.instance.workers)]
        for i, worker in enumerate(self.workers):
            if worker is not None:
                found[worker].append(i)
        return found

    @property
    def parts(self) -> tuple[Self, ...]:
        """What each worker does with its requests, in their order."""
        return (self,) if self.instance.workers == 1 else self._parts

    @cached_property
    def _parts(self) -> tuple[Self, ...]:
        return tuple(map(self._part, range(self.instance.workers)))

    def _part(self, worker: int) -> Self:
        members = self.members[worker]
        place = {i: position for position, i in enumerate(members)}
        return replace(
            self,
            instance=self.instance.of_one_worker(members),
            starts=[self.starts[i] for i in members],
            workers=(),
            segments=[self.segments[i] for i in members if self.segments],
            chunks=[
                c._replace(request=place[c.request]) for c in self.chunks if c.request in place
            ],
            lost=[p._replace(request=place[p.request]) for p in self.lost if p.request in place],
            resumed=self.resumed[worker : worker + 1],
        )

    # ---- times --------------------------------------------------------------------------

    @cached_property
    def arrivals(self) -> tuple[int, ...]:
        """When each request arrives."""
        return tuple(self.clock.arrivals(self.instance))

    @cached_property
    def releases(self) -> Times:
        """When each request may start; None of one whose predecessor never finished."""
        if "after" not in self.instance.extras:
            return self.arrivals
        found: list[int | Any] = list(self.arrivals)
        for i, before in enumerate(self.instance.predecessors):
            if before is not None and (after := self.instance.requests[i].after) is not None:
                end = self.completions[before]
                found[i] = None if end is None else max(found[i], end + after.gap)
        return tuple(found)

    @property
    def begins(self) -> Times:
        """Round in which each request starts, for the first time if it pauses."""
        if not self.segments:
            return self.starts
        return tuple(rows[0][0] - 1 for rows in self.segments)

    @cached_property
    def _ends(self) -> Times:
        """The round after which each request is done."""
        if self.segments:
            return tuple(rows[-1][1] for rows in self.segments)
        pairs = zip(self.starts, self.instance, strict=True)
        return tuple(None if k is None else k + request.output for k, request in pairs)

    @cached_property
    def spans(self) -> Segments:
        """The segments of each request, whether it pauses or not."""
        if self.segments:
            return self.segments
        pairs = zip(self.starts, self._ends, strict=True)
        return tuple(() if k is None else ((k + 1, end),) for k, end in pairs)

    @property
    def active_times(self) -> Iterator[list[int]]:
        """The times at which each request is active, one for each of its tokens."""
        for rows in self.spans:
            yield [time for first, last in rows for time in range(first, last + 1)]

    @cached_property
    def start_times(self) -> Times:
        """When each request starts for the last time."""
        return self._times(self.starts, "began")

    @cached_property
    def first_tokens(self) -> Times:
        """When the round that produces each request's first token ends.

        Of a request that was evicted it is the first token that was not lost.
        """
        more = int(self.clock.is_even)
        return self._times([None if k is None else k + more for k in self.begins], "first")

    @cached_property
    def completions(self) -> Times:
        """Time of the last token of each request."""
        return self._times(self._ends, "ended")

    @cached_property
    def _moments(self) -> dict[str, dict[int, int]]:
        """When rounds in which one worker starts something begin and end, and when others end."""
        return {
            "began": {each.round: each.began for each in self.stretches},
            "first": {each.round: each.first for each in self.stretches},
            "ended": {each.round + each.rounds: each.ended for each in self.stretches},
        }

    def _times(self, rounds: Times, moment: str) -> Times:
        """Return when rounds begin or end on the clock of their workers."""
        if self.clock.is_even:
            return tuple(rounds)
        known = [part._moments[moment] for part in self.parts]
        pairs = zip(self.workers, rounds, strict=True)
        return tuple(None if k is None else known[worker][k] for worker, k in pairs)

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """What each worker does in order, one worker after the other.

        A round with a piece of a prompt is a stretch.  A schedule says in which rounds each request
        is active and at which times an idle worker begins to work: everything between follows.
        """
        if self.instance.workers > 1:
            return tuple(chain.from_iterable(part.stretches for part in self.parts))
        return tuple(self._stretches())

    def _stretches(self) -> Iterator[Stretch]:
        prompts = defaultdict[int, int](int)
        for start, _, _, tokens in self._work():
            prompts[start] += tokens
        partial = Counter(number for each in self.chunks for number in range(each.start, each.end))
        waits = self.resumed[0] if self.resumed else {}
        batch_time, sweep, time = self.clock.batch_time, self.sweep, 0
        rows = zip(pairwise(sweep.times), sweep.active[1:], sweep.held[1:], strict=True)
        for (begin, end), working, most in rows:
            time = begin if self.clock.is_even else waits.get(begin, time)
            if not working:
                continue
            active, prompt = working - partial[begin], prompts[begin]
            held = most - active * (end - begin - 1)
            first = time + batch_time.round_ns(active, prompt, held)
            ended = first + batch_time.stretch_ns(active, held + active, end - begin - 1)
            yield Stretch(begin, time, end - begin, active, prompt, held, first, ended)
            time = ended

    def _beside(self) -> tuple[Lost | Chunks, ...]:
        """Return the work that is not of the segments."""
        return (*self.lost, *self.chunks)

    def pieces(self) -> list[Piece]:
        """Return ``(request, start, end)`` of all work, lost or not: active at start+1 .. end."""
        found = [(each.request, each.start, each.end) for each in self._beside()]
        for i, rows in enumerate(self.spans):
            found += [(i, first - 1, last) for first, last in rows]
        return found

    # ---- measures -----------------------------------------------------------------------

    @cached_property
    def objective(self) -> int | Any:
        """Total latency, the sum of ``w_i (c_i - r_i)``; None if something never finished.

        Weights are 1 and releases are arrivals unless the instance says otherwise.
        """
        if not self.is_complete:
            return None
        if not self.instance.extras:
            return sum(self.completions) - sum(self.arrivals)
        rows = zip(self.instance, self.completions, self.releases, strict=True)
        return sum(request.weight * (end - release) for request, end, release in rows)

    @cached_property
    def makespan(self) -> int:
        """Time of the last completion, 0 when there is none."""
        return max((end for end in self.completions if end is not None), default=0)

    @property
    def latencies(self) -> list[int]:
        """Completion minus arrival, or release, of what finished, in instance order."""
        return self._since_arrival(self.completions)

    @property
    def times_to_first_token(self) -> list[int]:
        """First token minus arrival of what finished, in instance order."""
        return self._since_arrival(self.first_tokens)

    def _since_arrival(self, times: Times) -> list[int]:
        pairs = zip(times, self.releases, strict=True)
        return [time - arrival for time, arrival in pairs if time is not None]

    @property
    def times_per_output_token(self) -> list[float]:
        """Time from the first token to the last over the tokens after the first.

        Of what finished and produced more than one, in instance order.  In rounds it is 1, where
        nothing pauses.
        """
        rows = zip(self.instance, self.first_tokens, self.completions, strict=True)
        return [
            (completion - first) / (request.output - 1)
            for request, first, completion in rows
            if completion is not None and request.output > 1
        ]

    def measures(self) -> Measures:
        """Return mean, median and 99th percentile of what was waited for.

        In rounds, or in seconds, of what finished: ``latency``, ``time_to_first_token`` and
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
        """How long workers work."""
        return sum(stretch.ended - stretch.began for stretch in self.stretches)

    @property
    def rounds(self) -> int:
        """Rounds in which something is active."""
        return sum(stretch.rounds for stretch in self.stretches)

    @property
    def throughput(self) -> float | None:
        """Output tokens of what finished over the time to the last completion.

        A second or a round, as the clock counts.
        """
        pairs = zip(self.instance, self.starts, strict=True)
        tokens = sum(request.output for request, k in pairs if k is not None)
        return tokens * self.clock.scale / self.makespan if self.makespan else None

    # ---- memory -------------------------------------------------------------------------

    @cached_property
    def sweep(self) -> Sweep:
        """Tokens held over time, by all workers together; what is lost is held as well."""
        if self.is_plain:
            return swept(self.starts, self._ends, [r.prompt for r in self.instance])
        columns = tuple(zip(*self._work(), strict=True)) or ((), (), ())
        return swept(*columns[:3])

    def _work(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield start and end of all work, what was held before, and what is processed then."""
        requests = self.instance.requests
        for i, start, end in self.lost:
            yield start, end, requests[i].prompt, requests[i].prompt
        kept = [chunks for chunks in self.chunks if not chunks.is_lost]
        done = {(chunks.request, chunks.end): sum(chunks.tokens) for chunks in kept}
        for i, rows in enumerate(self.spans):
            before = requests[i].prompt
            for first, last in rows:
                yield first - 1, last, before, before - done.get((i, first - 1), 0)
                before += last - first + 1
        for chunks in self.chunks:
            processed = zip(chunks.tokens, accumulate(chunks.tokens), strict=True)
            for number, (tokens, held) in enumerate(processed, chunks.start):
                yield number, number + 1, held - 1, tokens
        for number in chain.from_iterable(self.resumed):
            yield number, number, 0, 0  # no work, and a new stretch

    @cached_property
    def peak_memory(self) -> int:
        """Most tokens that a worker holds at one time."""
        return max(max(part.sweep.held, default=0) for part in self.parts)

    def loads(self, times: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Yield ``(time, tokens held)`` for the given rounds, in ascending order."""
        sweep = self.sweep
        for time in sorted(set(times)):
            k = bisect_left(sweep.times, time)
            inside = 0 < k < len(sweep.times)
            yield time, sweep.held[k] - sweep.active[k] * (sweep.times[k] - time) if inside else 0

    def memory_over_time(self, *, upright: bool = False) -> tuple[list[float], list[int]]:
        """Return times and the tokens held, for a picture with straight lines between.

        Times are seconds, or rounds, as the clock counts.

        Parameters
        ----------
        upright
            Whether the lines stand upright where requests start and end.
        """
        scale = self.clock.scale
        times, held, ended = [0.0], [0], 0
        for stretch in self.stretches:
            if stretch.began > ended:  # the server was idle and held nothing
                times += [ended / scale, stretch.began / scale]
                held += [0, 0]
            if upright:
                times.append(stretch.began / scale)
                held.append(stretch.held - stretch.active)
            times += [stretch.first / scale, stretch.ended / scale]
            held += [stretch.held, stretch.held_last]
            ended = stretch.ended
        return (times, held) if not upright else ([*times, times[-1]], [*held, 0])

    # ---- the check ----------------------------------------------------------------------

    def check(self) -> ScheduleCheck:
        """Check every start against its arrival, and memory wherever it can peak."""
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
        """Return what breaks the rules of the problem, checked in integers; empty if nothing."""
        return list(self._violations)

    @cached_property
    def _violations(self) -> tuple[str, ...]:
        if self.instance.workers == 1:
            wrong = tuple(self._misshapen()) if self._beside() else ()
            found = iter(wrong) if wrong else chain(self._early(), self._overflows())
        else:
            parts = enumerate(self.parts)
            found = (
                f"worker {number}, {text}" for number, part in parts for text in part._violations
            )
        return tuple(islice(found, _MOST_VIOLATIONS))

    def _misshapen(self) -> Iterator[str]:
        """Say what is no work of the requests: no time or memory follows from it."""
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
        for chunks in self.chunks:
            request, rows = requests[chunks.request], self.spans[chunks.request]
            total, produced = sum(chunks.tokens), 0
            for first, last in rows:
                produced += last - first + 1 if first <= chunks.start else 0
            is_whole = min(chunks.tokens, default=0) > 0 and total <= request.prompt + produced
            if not (is_whole and 0 <= chunks.start < rows[-1][1]):
                yield f"request {request.id!r} cannot process {total} tokens from {chunks.start} on"

    def _early(self) -> Iterator[str]:
        """Say what begins before it can."""
        even, arrivals, unit = self.clock.is_even, self.releases, self.clock.unit
        more = ((piece.request, piece.start) for piece in self._beside())
        for i, start in chain(enumerate(self.begins), more):
            if start is None or (even and arrivals[i] is not None and start >= arrivals[i]):
                continue
            if arrivals[i] is None:
                yield f"request {self.instance.requests[i].id!r}: starts before one that it follows"
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
        if (most := self.instance.max_active) is not None:
            for time, active in zip(sweep.times, sweep.active, strict=True):
                if active > most:
                    yield f"time {time}: {active} requests are active, at most {most} may be"
        if self.peak_memory > memory:
            ends = set(sweep.ends)
            for time, load in zip(sweep.times, sweep.held, strict=True):
                if load > memory and time in ends:
                    yield f"time {time}: {load} tokens held, memory is {memory}"
        size, blocks = self.instance.block_size, self.instance.blocks
        if size > 1:
            for time, needed in blocks_held(sweep, size):
                if needed > blocks:
                    yield f"time {time}: {needed} blocks of {size} tokens held, there are {blocks}"

    # ---- tables and pictures ------------------------------------------------------------

    def facts(self) -> Facts:
        """Return what a summary says; times in rounds, or in seconds."""
        scale, latencies, count = self.clock.scale, self.latencies, len(self.instance)

        def said(time: float) -> str:
            return worded(time) if scale == 1 else f"{worded(time / scale)} seconds"

        return {
            "of": self.instance.name,
            "requests": count,
            "total latency": said(self.objective) if self.is_complete else None,
            "mean latency": said(sum(latencies) / count) if self.is_complete and count else None,
            "makespan": said(self.makespan),
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
        ``first_token``, ``completion``, ``latency`` (completion minus arrival or release), ``wait``
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
            "latency": list(map(_since, ends, self.releases)),
            "wait": list(map(_since, starts, self.releases)),
        }
        columns: dict[str, Sequence[Any]] = {
            name: [getattr(request, name) for request in self.instance]
            for name in ("id", "prompt", "output")
        }
        for name, each in times.items():
            scaled = each if even else [t if t is None else t / self.clock.scale for t in each]
            columns[name if even else f"{name}_seconds"] = scaled
        columns["evictions"] = [evicted[i] for i in range(len(self.instance))]
        return frame(columns | ({"worker": self.workers} if self.instance.workers > 1 else {}))

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the requests over time, and memory below, on the clock of the schedule.

        Parameters
        ----------
        ax
            Where to draw the requests alone; a new figure with both when left out.
        """
        from kvopt.show.plots import plot_schedule

        return plot_schedule(self, ax=ax)

    def timeline(self) -> Timeline:
        """Return what ran when as plain numbers, for pictures."""
        from kvopt.show.plots.timeline import Timeline

        paused = f", {self.pauses:,} pause{'s' * (self.pauses > 1)}" if self.pauses else ""
        total = "" if self.objective is None else f"{self.objective / self.clock.scale:,.10g}"
        return Timeline(
            self.instance,
            [*self._drawn()],
            [time / self.clock.scale for time in self.arrivals],
            []
            if self.clock.is_even
            else [*enumerate(part.memory_over_time(upright=True) for part in self.parts)],
            said=f"total latency {total}{' s' * (not self.clock.is_even)}{paused}",
            unit="rounds" if self.clock.is_even else "seconds",
        )

    def _drawn(self) -> Iterator[Work]:
        """Yield the stretches of work, lost or not, on the clock of the schedule."""
        from kvopt.show.plots.timeline import Work

        scale = self.clock.scale
        for worker, part in enumerate(self.parts):
            chunks = {(each.request, each.start, each.end): each.is_lost for each in part.chunks}
            lost = {*part.lost, *(piece for piece, is_lost in chunks.items() if is_lost)}
            before = [0] * len(part.instance)
            for piece in sorted(part.pieces(), key=itemgetter(1)):
                i, start, end = piece
                produced = 0 if piece in chunks else end - start
                began, first, ended = part._moments.values()
                times = began[start] / scale, first[start] / scale, ended[end] / scale
                yield Work(
                    self.members[worker][i], worker, *times, before[i], produced, piece in lost
                )
                before[i] += 0 if piece in lost else produced


def _since(time: int | Any, begin: int) -> int | Any:
    return None if time is None else time - begin
