"""Timetables on any clock: work, its times, and the tokens that it holds.

A request that starts at round ``k`` is active at the times ``k+1 .. k+o`` and holds
``s + (t - k)`` tokens at time ``t``.  One that pauses keeps its tokens and gives its memory back:
at its j-th active time it holds ``s + j``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from itertools import accumulate, chain, islice, pairwise
from numbers import Integral
from typing import Any, ClassVar, Self

from kvopt.errors import InvalidInput, shown
from kvopt.problem.clocks import ROUNDS, Clock, Piece, Stretch
from kvopt.problem.instance import Instance
from kvopt.problem.scopes import Scope
from kvopt.show.summary import Summarised
from kvopt.timetable.prefix_cache import Cache
from kvopt.timetable.sweep import Sweep, sharing, swept
from kvopt.timetable.work_intervals import Chunks, Lost, Segments, checked_segments, scope_of

Times = Sequence[int | Any]
"""A time for each request; None only in a run, for an unfinished request."""


@dataclass(frozen=True, repr=False)
class Timetable(Summarised):
    """The work of all requests; `Schedule` has its parameters, and checks it."""

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
    """Types of starts and workers that are accepted as integers."""

    def __post_init__(self) -> None:
        fields = vars(self)  # checked as given, before any use
        if segments := tuple(self.segments):
            segments = checked_segments(self.instance, segments, is_even=self.clock.is_even)
            starts = tuple(rows[-1][0] - 1 for rows in segments)
            if (stated := tuple(self.starts)) and stated != starts:
                raise InvalidInput("are not those of the last segments", field="starts")
        else:
            starts = self._integers("starts", self.starts)
        fields.update(starts=starts, workers=self._checked_workers(), segments=segments)
        fields.update({name: tuple(fields[name]) for name in ("chunks", "lost", "resumed")})

    def _integers(self, name: str, values: Iterable[int]) -> tuple[int, ...]:
        """Return an integer for each request, else raise."""
        integers = tuple(values)
        if len(integers) != len(self.instance):
            reason = f"has {len(integers)} entries for {len(self.instance)} requests"
            raise InvalidInput(reason, field=name)
        others = [i for i, value in enumerate(integers) if type(value) is not int]
        for i in others:
            value: object = integers[i]
            if isinstance(value, bool) or not isinstance(value, (Integral, self._or_else)):
                reason = f"must be an integer, got {shown(value)}"
                raise InvalidInput(reason, field=name, request=repr(self.instance[i].id))
        return tuple(k if k is None else int(k) for k in integers) if others else integers

    def _checked_workers(self) -> tuple[int, ...]:
        """Return the worker of each request if these workers exist, else raise."""
        count, requested = (
            self.instance.workers,
            tuple(() if self.workers is None else self.workers),
        )
        if not requested and count > 1 and len(self.instance):
            raise InvalidInput(f"is missing: the instance has {count} workers", field="workers")
        if not requested:
            return (0,) * len(self.instance)
        assigned = self._integers("workers", requested)
        for worker, request in zip(assigned, self.instance, strict=True):
            if worker is not None and not 0 <= worker < count:
                reason = f"must be in 0 .. {count - 1}, got {worker}"
                raise InvalidInput(reason, field="workers", request=repr(request.id))
        return assigned

    @classmethod
    def at_times(cls, instance: Instance, times: Iterable[Iterable[int]]) -> Self:
        """Return the schedule that is active at the given times of each request."""
        segments = [[(time, time) for time in active] for active in times]
        return cls(instance, segments=segments)

    @property
    def is_complete(self) -> bool:
        """Whether every request finishes."""
        return True

    @property
    def is_plain(self) -> bool:
        """Whether its starts describe it fully: in rounds, without pauses, pieces and lost work."""
        more = self.pauses or self.chunks or self.lost
        return self.clock.is_even and self.is_complete and not more

    @property
    def scope(self) -> Scope:
        """Scope of its features, which a bound has to cover to be compared with it.

        In rounds a prompt in pieces is only a later start.
        """
        used = scope_of(self.segments, () if self.clock.is_even else self.chunks, self.lost)
        return used.joined(Scope.SHARING) if "prefix" in self.instance.extras else used

    @property
    def finds_tokens(self) -> bool:
        """Whether its records say that requests found tokens in a cache."""
        return any(chunk.cached for chunk in self.chunks)

    @property
    def pauses(self) -> int:
        """Number of pauses of all requests."""
        return sum(map(len, self.segments)) - len(self.segments)

    # ---- workers ------------------------------------------------------------------------

    @cached_property
    def members(self) -> list[list[int]]:
        """Positions of the requests, for each worker."""
        positions: list[list[int]] = [[] for _ in range(self.instance.workers)]
        for i, worker in enumerate(self.workers):
            if worker is not None:
                positions[worker].append(i)
        return positions

    @property
    def parts(self) -> tuple[Self, ...]:
        """The timetable of each worker with its requests, in their order."""
        return (self,) if self.instance.workers == 1 else self._parts

    @cached_property
    def _parts(self) -> tuple[Self, ...]:
        parts, idle = list[Self](), None
        for worker, members in enumerate(self.members):
            is_idle = not (members or any(self.resumed[worker : worker + 1]))
            part = idle if is_idle and idle is not None else self._part(worker)
            # Workers without work share one timetable, so that thousands of them take no time.
            idle = part if is_idle else idle
            parts.append(part)
        return tuple(parts)

    def _part(self, worker: int) -> Self:
        """Return the timetable of one worker, whose requests are numbered anew."""
        members = self.members[worker]
        place = {i: position for position, i in enumerate(members)}
        instance = self.instance.of_one_worker(members)
        # A node of one user here is still a node: an evicted request finds it again.
        vars(instance)["forest"] = self.instance.forest.of(members)
        return replace(
            self,
            instance=instance,
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
        """Arrivals of the requests."""
        return tuple(self.clock.arrivals(self.instance))

    @property
    def begins(self) -> Times:
        """Round in which each request starts, for the first time if it pauses."""
        if not self.segments:
            return self.starts
        return tuple(rows[0][0] - 1 for rows in self.segments)

    @cached_property
    def _ends(self) -> Times:
        """The last round of each request."""
        if self.segments:
            return tuple(rows[-1][1] for rows in self.segments)
        pairs = zip(self.starts, self.instance, strict=True)
        return tuple(None if k is None else k + request.output for k, request in pairs)

    @cached_property
    def spans(self) -> Segments:
        """Segments of each request, with or without pauses."""
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
        """Last starts of the requests."""
        return self._times(self.starts, "began")

    @cached_property
    def first_tokens(self) -> Times:
        """Ends of the rounds that produce the first tokens of the requests.

        After an eviction it is the first token that was not lost.
        """
        more = int(self.clock.is_even)
        return self._times([None if k is None else k + more for k in self.begins], "first")

    @cached_property
    def completions(self) -> Times:
        """Time of the last token of each request."""
        return self._times(self._ends, "ended")

    @cached_property
    def _moments(self) -> dict[str, dict[int, int]]:
        """Begins and ends of rounds in which a worker starts requests, and ends of others."""
        return {
            "began": {stretch.round: stretch.began for stretch in self.stretches},
            "first": {stretch.round: stretch.first for stretch in self.stretches},
            "ended": {stretch.round + stretch.rounds: stretch.ended for stretch in self.stretches},
        }

    def _times(self, rounds: Times, moment: str) -> Times:
        """Return begins or ends of rounds on the clock of their workers."""
        if self.clock.is_even:
            return tuple(rounds)
        moments = [part._moments[moment] for part in self.parts]
        pairs = zip(self.workers, rounds, strict=True)
        return tuple(None if k is None else moments[worker][k] for worker, k in pairs)

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """Uninterrupted work of each worker in order, one worker after another.

        A round with a piece of a prompt is an interval of its own.  A schedule has the active
        rounds of each request and the ends of idle times: these determine all other times.
        """
        if self.instance.workers > 1:
            return tuple(chain.from_iterable(part.stretches for part in self.parts))
        return tuple(self._stretches())

    def _stretches(self) -> Iterator[Stretch]:
        """Yield rounds between two changes: the first may have prompts, and tokens only grow."""
        prompts = self._prompts()
        partial = Counter(
            number for chunk in self.chunks for number in range(chunk.start, chunk.end)
        )
        waits = self.resumed[0] if self.resumed else {}
        batch_time, sweep, time = self.clock.batch_time, self.sweep, 0
        rows = zip(pairwise(sweep.times), sweep.active[1:], sweep.held[1:], strict=True)
        for (begin, end), working, held_last in rows:
            time = begin if self.clock.is_even else waits.get(begin, time)
            if not working:
                continue
            active, prompt = working - partial[begin], prompts[begin]
            held = held_last - active * (end - begin - 1)
            first = time + batch_time.round_ns(active, prompt, held)
            ended = first + batch_time.stretch_ns(active, held + active, end - begin - 1)
            yield Stretch(begin, time, end - begin, active, prompt, held, first, ended)
            time = ended

    def _prompts(self) -> Mapping[int, int]:
        """Return the tokens of prompts that rounds process, by their begins.

        In seconds these include only the tokens of prefixes that are not in the cache.  With
        segments `chunks` say which are; starts alone are replayed.
        """
        prompts, forest = defaultdict[int, int](int), self.instance.forest
        if self.clock.is_even or self.segments or not forest.weights:
            for start, _, _, tokens, *_ in self.work():
                prompts[start] += tokens
            return prompts
        starts, ends = defaultdict[int, list[int]](list), defaultdict[int, list[Piece]](list)
        for piece in self.pieces():
            starts[piece[1]].append(piece[0])
            ends[piece[2]].append(piece)
        # With these tokens more for each request, what fits does so in whole blocks as well.
        size, sweep = self.instance.block_size, self.sweep
        more, memory = size - 1, self.instance.blocks * size + size - 1
        cache = Cache(forest, self.instance.block_tokens or 1, memory)
        for time, active, held in zip(sweep.times, sweep.active, sweep.held, strict=True):
            cache.make_room(held + active * more)
            for i, start, end in ends[time]:
                cache.stop(i, end, forest.private[i] + more + end - start)
            prompts[time] = sum(map(cache.start, starts[time]))
        return prompts

    def _beside(self) -> tuple[Lost | Chunks, ...]:
        """Return the work outside of the segments."""
        return (*self.lost, *self.chunks)

    def pieces(self) -> list[Piece]:
        """Return ``(request, start, end)`` of all work, lost or not: active at start+1 .. end."""
        beside = (lost for lost in self._beside() if lost.start < lost.end)
        active = [(lost.request, lost.start, lost.end) for lost in beside]
        for i, rows in enumerate(self.spans):
            active += [(i, first - 1, last) for first, last in rows]
        return active

    # ---- memory -------------------------------------------------------------------------

    @cached_property
    def sweep(self) -> Sweep:
        """Tokens held over time, by all workers together, lost work included."""
        if self.is_plain:
            whole = swept(self.starts, self._ends, [r.prompt for r in self.instance])
        else:
            columns = tuple(zip(*self.work(), strict=True)) or ((), (), ())
            whole = swept(*columns[:3])
        if "prefix" not in self.instance.extras:
            return whole
        forest = self.instance.forest
        paths = [forest.paths[i] for i, *_ in self.lost]
        paths += [forest.paths[i] for i, rows in enumerate(self.spans) for _ in rows]
        for i, _, tokens, cached in self.chunks:
            held = islice(accumulate(tokens, initial=cached), 1, None)
            paths += [forest.covered(i, count) for count in held]
        return sharing(whole, paths, forest)

    def work(self) -> Iterator[tuple[int, int, int, int, int, bool]]:
        """Yield start and end of all work, earlier tokens, and tokens processed then.

        Also the request, -1 at the end of an idle time, and whether the work is on a piece of a
        prompt, which yields no token.
        """
        requests = self.instance.requests
        for i, start, end in self.lost:
            yield start, end, requests[i].prompt, requests[i].prompt, i, False
        in_order = sorted(self.chunks)  # of those with the same end the last one counts
        done = {(chunk.request, chunk.end): chunk.cached + sum(chunk.tokens) for chunk in in_order}
        for i, rows in enumerate(self.spans):
            before = requests[i].prompt
            for first, last in rows:
                yield first - 1, last, before, before - done.get((i, first - 1), 0), i, False
                before += last - first + 1
        for i, start, pieces, cached in self.chunks:
            held_then = islice(accumulate(pieces, initial=cached), 1, None)
            processed = zip(pieces, held_then, strict=True)
            for number, (tokens, held) in enumerate(processed, start):
                yield number, number + 1, held - 1, tokens, i, True
        for number in chain.from_iterable(self.resumed):
            yield number, number, 0, 0, -1, False  # no work, and a new interval

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

        Times are seconds or rounds, as on the clock.

        Parameters
        ----------
        upright
            Whether lines are vertical at starts and ends of requests.
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
