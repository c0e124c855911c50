"""Runs in which requests pause and prompts are processed in pieces, and their check."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

from kvopt.errors import InvalidInput
from kvopt.model.pausing import PausedSchedule
from kvopt.model.schedule import Schedule
from kvopt.model.sweep import Sweep
from kvopt.simulation.clocks import Stretch
from kvopt.simulation.runs import Outcome, PolicyRun


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

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """What the server did, in order; a round with a piece of a prompt is a stretch."""
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
        """Yield start and end of each segment, what it held before, and what it processes then."""
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
