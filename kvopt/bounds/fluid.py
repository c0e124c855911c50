"""First prices: the exact ones of a fluid in which parts of requests count as parts.

Let every request be a volume that can be served in any parts, M tokens a round, where a part
completes when it is served and weighs what it is of the whole.  The best service is the
smallest volume first, interrupted by smaller arrivals.  By duality the price of a token at time
t is the largest over arrived requests of ``(u_i - (t - a_i)) / v_i``, attained by the one that
is served: while i is served, and across its interruptions, the price lies on a line that
falls by ``1 / v_i`` a round.  When i completes, the line of the next one takes over where that
of i ends, and where the fluid idles the price is 0.  So the lines follow from the last one back.

The time-indexed relaxation differs from this fluid only in that a request holds its
tokens in the shape of a triangle, so these prices are nearly the best ones.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kvopt.bounds.kinds import Floats
from kvopt.model.instance import Instance

_LARGEST = 2**52
"""Volume up to which a backlog is computed in floats, which hold its sums without rounding."""


class Stretch(NamedTuple):
    """One request is served without interruption; times are counted in tokens.

    Round t is the tokens ``(t - 1) M + 1 .. t M``.
    """

    begin: int
    end: int
    request: int


def fluid_prices(instance: Instance) -> Floats:
    """Return the price of a token at the times ``1, 2, ...`` up to the end of the fluid."""
    if not len(instance):
        return np.zeros(0)
    memory = instance.memory
    if instance.last_arrival or sum(request.volume for request in instance) > _LARGEST:
        stretches = list(_stretches(instance))
        values, slopes = _lines(instance, stretches)
        ends = np.array([stretch.end for stretch in stretches], dtype=float) / memory
        begins = np.array([stretch.begin for stretch in stretches], dtype=float) / memory
    else:
        begins, ends, values, slopes = _backlog(instance)
    middles = np.arange(int(np.ceil(ends[-1]))) + 0.5
    served = np.minimum(np.searchsorted(ends, middles), len(ends) - 1)
    prices = values[served] + (ends[served] - middles) * slopes[served]
    return np.where(middles >= begins[served], np.maximum(prices, 0.0), 0.0)


def _backlog(instance: Instance) -> tuple[Floats, Floats, Floats, Floats]:
    """Return what `_stretches` and `_lines` say of a backlog: one request after the other.

    Everything is rounded in the same order, so that not one bit differs.
    """
    volumes = np.sort(np.array([request.volume for request in instance], dtype=np.int64))
    last = volumes.cumsum()
    slopes = 1.0 / volumes
    falls = volumes / instance.memory * slopes
    values = np.append(falls[:0:-1].cumsum()[::-1], 0.0)
    return (last - volumes) / instance.memory, last / instance.memory, values, slopes


def fluid_end(instance: Instance) -> int:
    """Return the round in which the fluid ends."""
    if not instance.last_arrival:
        return -(-sum(request.volume for request in instance) // instance.memory)
    return max((-(-s.end // instance.memory) for s in _stretches(instance)), default=0)


def _lines(instance: Instance, stretches: list[Stretch]) -> tuple[Floats, Floats]:
    """Return for each stretch the price at its end, and by how much it falls a round."""
    values, slopes = np.zeros(len(stretches)), np.zeros(len(stretches))
    completed: dict[int, tuple[int, float]] = {}  # completion, and the price there
    following, price = -1, 0.0  # begin of the stretch after this one, and the price there
    for number in range(len(stretches) - 1, -1, -1):
        begin, end, i = stretches[number]
        slope = 1.0 / instance.requests[i].volume
        if i not in completed:
            completed[i] = end, price if following == end else 0.0
        completion, level = completed[i]
        values[number] = level + (completion - end) / instance.memory * slope
        slopes[number] = slope
        following = begin
        price = values[number] + (end - begin) / instance.memory * slope
    return values, slopes


def _stretches(instance: Instance) -> Iterator[Stretch]:
    """Yield what is served from when to when, the smallest volume first."""
    requests, memory = instance.requests, instance.memory
    arriving = sorted(range(len(requests)), key=lambda i: (-requests[i].arrival, -i))
    left = [request.volume for request in requests]
    waiting: list[tuple[int, int]] = []
    clock = 0
    while arriving or waiting:
        if not waiting:
            clock = max(clock, requests[arriving[-1]].arrival * memory)
        while arriving and requests[arriving[-1]].arrival * memory <= clock:
            i = arriving.pop()
            heapq.heappush(waiting, (requests[i].volume, i))
        i = waiting[0][1]
        until = clock + left[i]
        if arriving:
            until = min(until, requests[arriving[-1]].arrival * memory)
        yield Stretch(clock, until, i)
        left[i] -= until - clock
        clock = until
        if left[i] == 0:
            heapq.heappop(waiting)
