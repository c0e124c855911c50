"""Runs in which requests pause and prompts are processed in pieces, and their check."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from kvopt.errors import InvalidInput
from kvopt.problem.clocks import Clock
from kvopt.timetable.pausing import PausedSchedule
from kvopt.timetable.runs import Chunks, Outcome, PolicyRun
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.sweep import Sweep


@dataclass(frozen=True, repr=False)
class PausedRun(PolicyRun):
    """What a server did that interrupts requests, keeps their tokens and goes on later.

    On its return a request has its prompt and its tokens processed again.

    Parameters
    ----------
    starts
        Round of the last start of each request, where it went on for the last time.
    """

    @classmethod
    def of(cls, schedule: PausedSchedule, policy: str) -> PausedRun:
        """Return a schedule in rounds as the run of a server."""
        starts = tuple(segments[-1][0] - 1 for segments in schedule.segments)
        end = Outcome.COMPLETED
        return cls(schedule.instance, policy, starts, (), end, 0.0, segments=schedule.segments)

    def timed(self, clock: Clock, chunks: Iterable[Sequence[int]]) -> PausedRun:
        """Return the same decisions on a clock in seconds, with these prompts in pieces.

        Each of these is a request, the round at which it begins, and the tokens of each round.
        Rounds follow one another at once, unless one has to wait for what begins in it to arrive.
        """
        pieces = tuple(Chunks(i, start, tuple(tokens)) for i, start, *tokens in chunks)
        found = replace(self, clock=clock, chunks=pieces)
        due, resumed, time = defaultdict[int, int](int), dict[int, int](), 0
        for i, start, _ in found.pieces():
            due[start] = max(due[start], found.arrivals[i])
        for stretch in found.stretches:
            if due[stretch.round] > time:
                resumed[stretch.round] = time = due[stretch.round]
            time += stretch.ended - stretch.began
        return replace(found, resumed=resumed)

    @cached_property
    def paused_schedule(self) -> PausedSchedule:
        """The rounds in which each request was active, as a schedule."""
        return PausedSchedule(self.instance, self.segments)

    @cached_property
    def schedule(self) -> Schedule | None:
        """The starts as a schedule, None if a request was interrupted, or in seconds."""
        return self.paused_schedule.without_pauses() if self.clock.is_even else None

    @cached_property
    def first_tokens(self) -> tuple[int | None, ...]:
        """When the round that produced each request's first token ended."""
        return self._times(
            (segments[0][0] for segments in self.segments),
            lambda stretch: (stretch.round + 1, stretch.first),
        )

    @cached_property
    def completions(self) -> tuple[int | None, ...]:
        """When each request finished."""
        return self._times(
            (segments[-1][1] for segments in self.segments),
            lambda stretch: (stretch.round + stretch.rounds, stretch.ended),
        )

    # ---- memory -----------------------------------------------------------------------

    @cached_property
    def peak_memory(self) -> int:
        """Most tokens held at one time, those of prompts in pieces included."""
        return max((stretch.held_last for stretch in self.stretches), default=0)

    def _work(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield the same of each segment, less the pieces of its prompt that came before."""
        kept = [chunks for chunks in self.chunks if not chunks.is_lost]
        done = {(chunks.request, chunks.end): sum(chunks.tokens) for chunks in kept}
        for i, segments in enumerate(self.segments):
            before = self.instance.requests[i].prompt
            for first, last in segments:
                yield first - 1, last, before, before - done.get((i, first - 1), 0)
                before += last - first + 1

    # ---- its check --------------------------------------------------------------------

    def violations(self) -> list[str]:
        """Return what breaks the rules of the problem, checked in integers; empty if nothing."""
        try:
            self.paused_schedule  # noqa: B018
        except InvalidInput as error:
            return [str(error)]
        if self.starts != tuple(segments[-1][0] - 1 for segments in self.segments):
            return ["the starts are not those of the last segments"]
        found = list(self._wrong_chunks())
        if self.peak_memory > self.instance.memory:
            found.append(f"{self.peak_memory} tokens held, memory is {self.instance.memory}")
        return found or self._blocked() or self._early()

    @property
    def _sweep(self) -> Sweep:
        """Tokens held over time, without those of prompts in pieces."""
        return self.paused_schedule.sweep

    def _wrong_chunks(self) -> Iterator[str]:
        """Say which pieces of prompts do not belong to what was still to be processed."""
        free: dict[int, int] = defaultdict(int)
        for chunks in sorted(self.chunks, key=lambda chunks: (chunks.request, chunks.start)):
            if not 0 <= chunks.request < len(self.instance):
                yield f"a prompt of request {chunks.request}, of which there is none, in pieces"
                continue
            request = self.instance.requests[chunks.request]
            segments = self.segments[chunks.request]
            produced = sum(last - first + 1 for first, last in segments if first <= chunks.start)
            is_busy = any(first <= chunks.end and last > chunks.start for first, last in segments)
            is_busy |= not free[chunks.request] <= chunks.start < segments[-1][1]
            free[chunks.request] = chunks.end
            total = sum(chunks.tokens)
            if is_busy or min(chunks.tokens, default=0) < 1 or total > request.prompt + produced:
                yield f"request {request.id!r} cannot process {total} tokens from {chunks.start} on"
