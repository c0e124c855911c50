"""Intervals of work: consecutive tokens, evicted work, prompts in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from numbers import Integral
from typing import NamedTuple

from kvopt.errors import InvalidInput, placed, shown
from kvopt.problem.instance import Instance
from kvopt.problem.requests import Request
from kvopt.problem.scopes import Scope

Segment = tuple[int, int]
"""First and last active time of a segment: its tokens are ``last - first + 1``."""


Segments = Sequence[Sequence[Sequence[int]]]
"""Segments of each request."""


class Lost(NamedTuple):
    """An interval of work that was lost in an eviction.

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
        The request; tokens that it produced before a pause are processed like its prompt.
    start
        The round at which the first of them begins.
    tokens
        Tokens that each round processes.
    cached
        Tokens before these that were in the cache.  If all others are processed in the round of
        the next token, ``tokens`` are empty.

    Notes
    -----
    A segment that begins at their end goes on from them, or from empty ones that begin then.
    Without either the request was preempted, or waits half processed: later chunks say what
    they find of that.
    """

    request: int
    start: int
    tokens: tuple[int, ...]
    cached: int = 0

    @property
    def end(self) -> int:
        """The round at which the last of them ends."""
        return self.start + len(self.tokens)


def scope_of(segments: Segments, chunks: Sequence[Chunks], lost: Sequence[Lost]) -> Scope:
    """Return the features that a schedule uses: lost work, pauses, prompts in pieces."""
    used = [
        (lost, Scope.RESTARTS),
        (any(len(rows) > 1 for rows in segments), Scope.PAUSES),
        (any(chunk.tokens for chunk in chunks), Scope.CHUNKS),
    ]
    return reduce(Scope.joined, [scope for feature, scope in used if feature], Scope.RUNS)


def checked_segments(
    instance: Instance, segments: Sequence[Iterable[Sequence[int]]], *, is_even: bool
) -> tuple[tuple[Segment, ...], ...]:
    """Return the segments of each request, else raise.

    In rounds they are joined if they have no gap.  In seconds the second one is processed again.
    """
    if len(segments) != len(instance):
        reason = f"has {len(segments)} entries for {len(instance)} requests"
        raise InvalidInput(reason, field="segments")
    return tuple(
        _checked(request, rows, is_even) for request, rows in zip(instance, segments, strict=True)
    )


def _checked(request: Request, pairs: object, is_even: bool) -> tuple[Segment, ...]:
    with placed(request=repr(request.id)):
        if isinstance(pairs, str) or not isinstance(pairs, Iterable):
            raise _refused(f"must be a list of pairs, got {shown(pairs)}")
        segments: list[Segment] = []
        for first, last in map(_checked_pair, pairs):
            before = segments[-1] if segments else None
            if before is not None and first <= before[1]:
                raise _refused(f"must ascend, got {shown([first, last])} after time {before[1]}")
            if is_even and before is not None and first == before[1] + 1:
                first = segments.pop()[0]
            segments.append((first, last))
        tokens = sum(last - first + 1 for first, last in segments)
        if tokens != request.output:
            raise _refused(f"hold {tokens} times for {request.output} tokens")
        return tuple(segments)


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
