"""When the rounds of a run begin: counted again from what ran in them.

A run in continuous time is known from the rounds in which each request was active and from the
times at which an idle server began to work: everything between follows from `BatchTime`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kvopt.model.batch_time import BatchTime
from kvopt.model.instance import Instance
from kvopt.model.sweep import swept

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
    pieces: Sequence[Piece],
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
    prompts = [instance.requests[i].prompt for i, _, _ in pieces]
    starts, ends = [start for _, start, _ in pieces], [end for _, _, end in pieces]
    begun: dict[int, int] = defaultdict(int)
    for start, prompt in zip(starts, prompts, strict=True):
        begun[start] += prompt
    found: list[Stretch] = []
    time = 0
    for each in swept(starts, ends, prompts).stretches():
        time = resumed.get(each.begin, time)  # also where the last of a busy time ended then
        if not each.active:
            continue
        rounds, active, held = each.end - each.begin, each.active, each.held_at(each.begin + 1)
        prompt = begun[each.begin]
        first = time + batch_time.round_ns(active, prompt, held)
        ended = first + batch_time.stretch_ns(active, held + active, rounds - 1)
        found.append(Stretch(each.begin, time, rounds, active, prompt, held, first, ended))
        time = ended
    return found
