"""Parts of an instance between idle gaps: each is a problem of its own.

Let requests arrive by round ``b`` whose outputs sum to ``w``, and let no other one arrive before
round ``b + w``.  Some optimum has completed them by then (`kvopt.formulations.windows`), so later
requests find an empty cache.  Then optima of both parts make an optimum of the whole, and its total
latency is the sum of theirs.  For any gap this sum is a lower bound.

A part begins with its first arrival: earlier time, and time in gaps, has no cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kvopt.problem.instance import Instance


@dataclass(frozen=True)
class Part:
    """Some requests of an instance, on a clock that begins with the first of them.

    Parameters
    ----------
    begin
        Round of the first arrival.
    members
        Positions of its requests in the whole.
    instance
        These requests, ``begin`` rounds earlier.
    """

    begin: int
    members: tuple[int, ...]
    instance: Instance

    def starts_of(self, starts: Sequence[int]) -> tuple[int, ...]:
        """Return its starts, on its own clock, from those of the whole."""
        return tuple(starts[i] - self.begin for i in self.members)

    def without_late_idling(self, starts: Sequence[int]) -> tuple[int, ...]:
        """Return its starts without idle rounds after its last arrival.

        This is never worse, and a part ends before the next one begins.
        """
        requests = self.instance.requests
        free = self.instance.last_arrival  # every later start is possible
        moved, earlier = list(starts), 0
        for i in sorted(range(len(starts)), key=lambda i: starts[i]):
            earlier += max(0, starts[i] - earlier - free)
            moved[i] = starts[i] - earlier
            free = max(free, moved[i] + requests[i].output)
        return tuple(moved)


def split(instance: Instance) -> list[Part]:
    """Return the parts of an instance in order of time; the whole, if it is one from 0 on."""
    groups = list(_groups(instance)) if instance.last_arrival else []
    if not groups or (len(groups) == 1 and not instance.requests[groups[0][0]].arrival):
        return [Part(0, tuple(range(len(instance))), instance)]
    return [part_of(instance, members) for members in groups]


def part_of(instance: Instance, members: Iterable[int]) -> Part:
    """Return some requests of an instance as a part, in the order of the whole."""
    chosen = sorted(members)
    requests = [instance.requests[i] for i in chosen]
    begin = min((request.arrival for request in requests), default=0)
    moved = [replace(request, arrival=request.arrival - begin) for request in requests]
    return Part(
        begin, tuple(chosen), replace(instance, requests=tuple(moved), notes=None, round_ms=None)
    )


def _groups(instance: Instance) -> Iterator[list[int]]:
    """Yield the positions of the requests of each part, in order of arrival."""
    requests = instance.requests
    group: list[int] = []
    arrival = work = 0  # the last arrival of the group, and the sum of its outputs
    for i in sorted(range(len(requests)), key=lambda i: requests[i].arrival):
        if group and requests[i].arrival >= arrival + work:
            yield group
            group, work = [], 0
        group.append(i)
        arrival = requests[i].arrival
        work += requests[i].output
    yield group
