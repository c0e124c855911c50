"""When the rounds of a run begin: counted again from what ran in them.

A run in continuous time is known from the rounds in which each request was active and from the
times at which an idle server began to work: everything between follows from `BatchTime`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from kvopt.model.batch_time import BatchTime
from kvopt.model.instance import Instance

Piece = tuple[int, int, int]
"""``(request, start, end)``: active in the rounds that end at start + 1 .. end."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Rounds in a row in which no request starts or leaves after the first began.

    Parameters
    ----------
    round, began_ns
        The boundary at which it begins, as a number and as a time.
    rounds
        How many.
    active, prompts, held
        Of the first round, as in `BatchTime`: requests, prompt tokens of those that start,
        tokens held when it ends.
    first_ns, ended_ns
        When its first round and when its last round ends.
    """

    round: int
    began_ns: int
    rounds: int
    active: int
    prompts: int
    held: int
    first_ns: int
    ended_ns: int

    @property
    def held_last(self) -> int:
        """Tokens held when its last round ends."""
        return self.held + (self.rounds - 1) * self.active


def stretches(
    instance: Instance,
    batch_time: BatchTime,
    pieces: Iterable[Piece],
    resumed: Mapping[int, int],
) -> list[Stretch]:
    """Return what a server did, in order; rounds in which nothing is active are left out.

    Parameters
    ----------
    instance, batch_time
        Prompts, and how long rounds last.
    pieces
        All work, lost or not.
    resumed
        Nanoseconds at which the server began to work after it was idle, by round.
    """
    events = _events(instance, pieces)
    found: list[Stretch] = []
    time = active = offsets = 0  # offsets: sum of prompt - start over active requests
    for (now, (change, offset, prompts)), (following, _) in pairwise([*events, *events[-1:]]):
        time = resumed.get(now, time)  # also where the last of a busy time ended in this round
        active += change
        offsets += offset
        if not active:
            continue
        held = offsets + active * (now + 1)
        first = time + batch_time.round_ns(active, prompts, held)
        rounds = following - now
        ended = first + batch_time.stretch_ns(active, held + active, rounds - 1)
        found.append(Stretch(now, time, rounds, active, prompts, held, first, ended))
        time = ended
    return found


def _events(instance: Instance, pieces: Iterable[Piece]) -> list[tuple[int, list[int]]]:
    """Return changes of active requests and of offsets, and prompts that start, by round."""
    changes: dict[int, list[int]] = {}
    for i, start, end in pieces:
        prompt = instance.requests[i].prompt
        for now, count, begun in ((start, 1, prompt), (end, -1, 0)):
            entry = changes.setdefault(now, [0, 0, 0])
            entry[0] += count
            entry[1] += count * (prompt - start)
            entry[2] += begun
    return sorted(changes.items())
