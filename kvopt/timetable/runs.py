"""What a simulated run is, on any clock, and its check in integers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, reduce
from itertools import accumulate, groupby, pairwise
from math import isnan
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from kvopt.problem.batch_time import NANOSECONDS
from kvopt.problem.clocks import ROUNDS, Clock, Piece, Stretch
from kvopt.problem.instance import Instance
from kvopt.problem.scopes import Scope
from kvopt.show.dataframes import frame
from kvopt.show.optional import pictures
from kvopt.show.summary import Facts, Summarised, worded
from kvopt.timetable.blocks import most_blocks
from kvopt.timetable.measures import MEASURES, Measures, summary
from kvopt.timetable.pausing import Segment
from kvopt.timetable.run_tables import columns_of
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.sweep import Sweep, swept

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame


class Outcome(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    """Every request finished."""
    LIVELOCK = "livelock"
    """It would go on for ever without finishing what is left."""


class Lost(NamedTuple):
    """A stretch of work that an eviction threw away.

    The request was active at the times ``start + 1 .. end``.
    """

    request: int
    start: int
    end: int


class Chunks(NamedTuple):
    """Rounds in a row that process parts of a prompt and yield no token.

    Parameters
    ----------
    request
        Whose prompt; tokens that it produced before a pause are processed like a prompt.
    start
        The round at which the first of them begins.
    tokens
        What each of them processes.
    is_lost
        Whether the request was preempted before its next token, so that all is processed again.
    """

    request: int
    start: int
    tokens: tuple[int, ...]
    is_lost: bool = False

    @property
    def end(self) -> int:
        """The round at which the last of them ends."""
        return self.start + len(self.tokens)


def scope_of(
    segments: Sequence[Sequence[Segment]], chunks: Sequence[Chunks], lost: Sequence[Lost]
) -> Scope:
    """Return what a run made use of, from its segments, prompts in pieces and lost work."""
    used = [
        (lost, Scope.RESTARTS),
        (any(len(rows) > 1 for rows in segments), Scope.PAUSES),
        (chunks, Scope.CHUNKS),
    ]
    return reduce(Scope.joined, [scope for some, scope in used if some], Scope.RUNS)


@dataclass(frozen=True, repr=False)
class PolicyRun(Summarised):
    """What a policy did to an instance.

    Rounds are numbered as the server worked.  Times, arrivals and latencies are those of the
    clock: rounds, or nanoseconds.

    Parameters
    ----------
    instance
        The problem.
    policy
        The policy and its parameters, as they were given.
    starts
        Round of the last start of each request in instance order, None for what never finished.
    lost
        Work that evictions threw away, in order of eviction, in rounds.
    outcome
        Whether every request finished.
    wall_seconds
        Wall time of the simulation, without compiling what it uses; NaN of a run that was read.
    note
        What a reader should know: how a plan was made, where a loop began.
    clock
        How long rounds last.
    resumed
        Rounds at which an idle server began to work, and when that was; empty where all rounds
        are alike, since there the number is the time.
    segments
        Of a server that interrupts requests and keeps their tokens: for each the first and last
        time of the stretches in which it yielded tokens.
    chunks
        Its work on prompts that yielded no token.
    """

    instance: Instance
    policy: str
    starts: tuple[int | None, ...]
    lost: tuple[Lost, ...]
    outcome: Outcome
    wall_seconds: float
    note: str | None = None
    clock: Clock = ROUNDS
    resumed: Mapping[int, int] = field(default_factory=dict)
    segments: tuple[tuple[Segment, ...], ...] = ()
    chunks: tuple[Chunks, ...] = ()

    @property
    def scope(self) -> Scope:
        """What it made use of, and so what a bound has to cover to be compared with it.

        In rounds a prompt in pieces is one that comes later.
        """
        return scope_of(self.segments, () if self.clock.is_even else self.chunks, self.lost)

    @property
    def evictions(self) -> int:
        """Number of evictions."""
        return len(self.lost)

    @property
    def pauses(self) -> int:
        """How often a request was interrupted and kept its tokens."""
        return sum(map(len, self.segments)) - len(self.segments)

    @property
    def completed(self) -> int:
        """Requests that finished."""
        return sum(start is not None for start in self.starts)

    @cached_property
    def schedule(self) -> Schedule | None:
        """The last starts as a schedule, None when something never finished.

        Evicted work is not part of it, so it may hold less memory than the run did.  Schedules
        are in rounds, so a run on another clock has none.
        """
        starts = [start for start in self.starts if start is not None]
        is_one = self.clock.is_even and len(starts) == len(self.starts)
        return Schedule(self.instance, starts) if is_one else None

    def facts(self) -> Facts:
        """Return what a summary says; times in rounds, or in seconds."""
        of = "rounds" if self.clock.is_even else "seconds"
        scale, latencies = self.clock.scale, self.latencies

        def shown(time: int) -> str:
            return f"{worded(time if scale == 1 else time / scale)} {of}"

        return {
            "policy": self.policy,
            "of": self.instance.name,
            "outcome": self.outcome,
            "completed": f"{self.completed:,} of {len(self.starts):,}",
            "total latency": None if self.objective is None else shown(self.objective),
            "mean latency": f"{worded(sum(latencies) / len(latencies) / scale)} {of}"
            if self.objective
            else None,
            "makespan": shown(self.makespan),
            "peak memory": f"{self.peak_memory:,} of {self.instance.memory:,}",
            "evictions": self.evictions,
            "pauses": self.pauses if self.segments else None,
            "note": self.note,
        }

    # ---- times ------------------------------------------------------------------------

    @cached_property
    def arrivals(self) -> tuple[int, ...]:
        """When each request arrived."""
        return tuple(self.clock.arrivals(self.instance))

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """What the server did, in order; a round with a piece of a prompt is a stretch.

        A run is known from the rounds in which each request was active and from the times at
        which an idle server began to work: everything between follows.
        """
        return tuple(self._stretches())

    def _stretches(self) -> Iterator[Stretch]:
        counts, offsets, prompts, partial = (defaultdict[int, int](int) for _ in range(4))
        for start, end, before, prompt in self._work():
            counts[start] += 1
            counts[end] -= 1
            offsets[start] += before - start
            offsets[end] -= before - start
            prompts[start] += prompt
        for chunks in self.chunks:
            processed = zip(chunks.tokens, accumulate(chunks.tokens), strict=True)
            for number, (tokens, held) in enumerate(processed, chunks.start):
                prompts[number] += tokens
                partial[number] += held
                counts[number] += 0  # which cuts the stretch
                counts[number + 1] += 0
        for number in self.resumed:
            counts[number] += 0
        active = offset = time = 0
        batch_time = self.clock.batch_time
        for begin, end in pairwise(sorted(counts)):
            time = begin if self.clock.is_even else self.resumed.get(begin, time)
            active, offset = active + counts[begin], offset + offsets[begin]
            if not active and begin not in partial:
                continue
            held, prompt = offset + active * (begin + 1) + partial[begin], prompts[begin]
            first = time + batch_time.round_ns(active, prompt, held)
            ended = first + batch_time.stretch_ns(active, held + active, end - begin - 1)
            yield Stretch(begin, time, end - begin, active, prompt, held, first, ended)
            time = ended

    def _work(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield start and end of all work, what was held before, and what is processed then."""
        for i, start, end in self.pieces():
            prompt = self.instance.requests[i].prompt
            yield start, end, prompt, prompt

    @cached_property
    def start_times(self) -> tuple[int | None, ...]:
        """When each request started for the last time."""
        return self._times(self.starts, lambda stretch: (stretch.round, stretch.began))

    @cached_property
    def first_tokens(self) -> tuple[int | None, ...]:
        """When the round that produced each request's first token ended.

        Of a request that was evicted it is the first token that was not lost.
        """
        rounds = [None if k is None else k + 1 for k in self.starts]
        return self._times(rounds, lambda stretch: (stretch.round + 1, stretch.first))

    @cached_property
    def completions(self) -> tuple[int | None, ...]:
        """When each request finished."""
        pairs = zip(self.starts, self.instance, strict=True)
        rounds = [None if k is None else k + r.output for k, r in pairs]
        return self._times(rounds, lambda stretch: (stretch.round + stretch.rounds, stretch.ended))

    @cached_property
    def objective(self) -> int | None:
        """Total latency, None when something never finished."""
        latencies = self.latencies
        return sum(latencies) if len(latencies) == len(self.starts) else None

    @property
    def latencies(self) -> list[int]:
        """Completion minus arrival of what finished, in instance order."""
        return self._since_arrival(self.completions)

    @property
    def times_to_first_token(self) -> list[int]:
        """First token minus arrival of what finished, in instance order."""
        return self._since_arrival(self.first_tokens)

    @property
    def times_per_output_token(self) -> list[float]:
        """Time from the first token to the last over the tokens after the first.

        Of what finished and produced more than one, in instance order.  In rounds it is 1.
        """
        rows = zip(self.instance, self.first_tokens, self.completions, strict=True)
        return [
            (completion - first) / (request.output - 1)
            for request, first, completion in rows
            if first is not None and completion is not None and request.output > 1
        ]

    def measures(self) -> Measures:
        """Return mean, median and 99th percentile of what was waited for.

        In rounds, or in seconds, of what finished: ``latency``, ``time_to_first_token`` and
        ``time_per_output_token``.
        """
        waited: tuple[Sequence[float], ...] = (
            self.latencies,
            self.times_to_first_token,
            self.times_per_output_token,
        )
        return {
            name: summary(times, self.clock.scale)
            for name, times in zip(MEASURES, waited, strict=True)
        }

    @cached_property
    def makespan(self) -> int:
        """When the last request finished."""
        return max((c for c in self.completions if c is not None), default=0)

    @property
    def busy(self) -> int:
        """How long the server worked."""
        return sum(stretch.ended - stretch.began for stretch in self.stretches)

    @property
    def rounds(self) -> int:
        """Rounds in which something was active."""
        return sum(stretch.rounds for stretch in self.stretches)

    @property
    def throughput(self) -> float | None:
        """Output tokens of what finished over the time to the last completion.

        A second or a round, as the clock counts.
        """
        tokens = sum(
            r.output for r, k in zip(self.instance, self.starts, strict=True) if k is not None
        )
        return tokens * self.clock.scale / self.makespan if self.makespan else None

    # ---- memory -----------------------------------------------------------------------

    @cached_property
    def peak_memory(self) -> int:
        """Most tokens held at one time, evicted work included."""
        return max(self._sweep.held, default=0)

    @property
    def _sweep(self) -> Sweep:
        """Tokens held over time, evicted work included."""
        requests, pieces = self.instance.requests, self.pieces()
        starts, ends = [start for _, start, _ in pieces], [end for _, _, end in pieces]
        return swept(starts, ends, [requests[i].prompt for i, _, _ in pieces])

    def memory_over_time(self) -> tuple[list[float], list[int]]:
        """Return times and the tokens held, for a picture with straight lines between.

        Times are seconds, or rounds, as the clock counts.
        """
        scale = self.clock.scale
        times, held, ended = [0.0], [0], 0
        for stretch in self.stretches:
            if stretch.began > ended:  # the server was idle and held nothing
                times += [ended / scale, stretch.began / scale]
                held += [0, 0]
            times += [stretch.first / scale, stretch.ended / scale]
            held += [stretch.held, stretch.held_last]
            ended = stretch.ended
        return times, held

    def pieces(self) -> list[Piece]:
        """Return ``(request, start, end)`` of all work, lost or not: active at start+1 .. end."""
        if self.segments:
            found = [(chunks.request, chunks.start, chunks.end) for chunks in self.chunks]
            for i, segments in enumerate(self.segments):
                found += [(i, first - 1, last) for first, last in segments]
            return found
        kept = [
            (i, start, start + self.instance.requests[i].output)
            for i, start in enumerate(self.starts)
            if start is not None
        ]
        return [(piece.request, piece.start, piece.end) for piece in self.lost] + kept

    # ---- tables and pictures ------------------------------------------------------------

    def to_dataframe(self) -> DataFrame:
        """Return a row for each request, as a DataFrame of pandas.

        Columns: ``id``, ``prompt``, ``output``, ``arrival``, ``start`` (the last one),
        ``first_token``, ``completion``, ``latency``, ``wait`` (start minus arrival) and
        ``evictions``.  On a clock of seconds times are seconds: ``arrival_seconds`` and so on.
        """
        return frame(columns_of(self))

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the requests over time, and memory below, on the clock of the run.

        Parameters
        ----------
        ax
            Where to draw the requests alone; a new figure with both when left out.
        """
        plots = pictures()
        figure: Figure = plots.plot_run(self) if ax is None else plots.rows(self, ax).figure
        return figure

    # ---- its check --------------------------------------------------------------------

    def violations(self) -> list[str]:
        """Return what breaks the rules of the problem, checked in integers; empty if nothing."""
        if len(self.starts) != len(self.instance):
            return [f"{len(self.starts)} starts for {len(self.instance)} requests"]
        found = []
        for piece in self.lost:
            request = self.instance.requests[piece.request]
            if not piece.start < piece.end < piece.start + request.output:
                found.append(f"request {request.id!r} cannot lose {piece.start}..{piece.end}")
        found += self._overlaps()
        if self.peak_memory > self.instance.memory:
            found.append(f"{self.peak_memory} tokens held, memory is {self.instance.memory}")
        return found or self._blocked() or self._early()

    def _blocked(self) -> list[str]:
        """Return what breaks where memory is given out in whole blocks."""
        size, blocks = self.instance.block_size, self.instance.blocks
        if size == 1 or (needed := most_blocks(self._sweep, size)) <= blocks:
            return []
        return [f"{needed} blocks of {size} tokens held, there are {blocks}"]

    def _early(self) -> list[str]:
        """Return what begins before it can, where all work is of a possible shape."""
        pieces, unit = self.pieces(), self.clock.unit
        times = self._times(
            [k for _, k, _ in pieces], lambda stretch: (stretch.round, stretch.began)
        )
        found = [
            f"request {self.instance.requests[i].id!r} starts at {time}{unit}, before its arrival"
            for (i, start, _), time in zip(pieces, times, strict=True)
            if time is None or time < self.arrivals[i] or start < 0
        ]
        if not self.clock.is_even:
            found += [
                f"round {after.round} begins before the one before it ends"
                for before, after in pairwise(self.stretches)
                if after.began < before.ended
            ]
        return found

    def _overlaps(self) -> list[str]:
        found = []
        evicted = {piece.request for piece in self.lost}  # others run once
        several = sorted(piece for piece in self.pieces() if piece[0] in evicted)
        for i, pieces in groupby(several, itemgetter(0)):
            ends = -1
            for _, start, end in pieces:
                if start < ends:
                    found.append(f"request {self.instance.requests[i].id!r} runs twice at {ends}")
                ends = end
        return found

    def _times(
        self, rounds: Iterable[int | None], moment: Callable[[Stretch], tuple[int, int]]
    ) -> tuple[int | None, ...]:
        """Return when rounds begin or end, of which a stretch knows one: its number and time."""
        if self.clock.is_even:
            return tuple(rounds)
        known = dict(map(moment, self.stretches))
        return tuple(None if k is None else known[k] for k in rounds)

    def _since_arrival(self, times: Sequence[int | None]) -> list[int]:
        pairs = zip(times, self.arrivals, strict=True)
        return [time - arrival for time, arrival in pairs if time is not None]

    # ---- JSON -------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``kvopt run --json`` prints for this policy."""
        if self.clock.is_even:
            said: dict[str, Any] = {
                "policy": self.policy,
                "objective": self.objective,
                "starts": list(self.starts),
                "evictions": self.evictions,
                "outcome": str(self.outcome),
                "makespan": self.makespan,
                "peak_memory": self.peak_memory,
                **self.measures(),
            }
        else:
            said = {
                "policy": self.policy,
                "objective_seconds": _seconds(self.objective),
                "outcome": str(self.outcome),
                "completed": self.completed,
                **self.measures(),
                "tokens_per_second": self.throughput,
                "makespan_seconds": _seconds(self.makespan),
                "busy_seconds": _seconds(self.busy),
                "rounds": self.rounds,
                "evictions": self.evictions,
                "peak_memory": self.peak_memory,
                "starts_seconds": [_seconds(start) for start in self.start_times],
            }
        if self.segments:
            said["pauses"] = self.pauses
            if self.clock.is_even:
                said["segments"] = self.segments
        wall = None if isnan(self.wall_seconds) else round(self.wall_seconds, 6)
        return {**said, "seconds": wall, "note": self.note}


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / NANOSECONDS
