"""First prices: the exact ones of a fluid in which parts of requests count as parts.

Let every request be a volume that can be served in any parts, M tokens a round.  A part counts as
that fraction of a request when it is served.  The best service is the smallest volume first,
interrupted by smaller arrivals.  By duality the price of a token at time
t is the largest over arrived requests of ``(u_i - (t - a_i)) / v_i``, attained by the one that
is served: while i is served, and across its interruptions, the price lies on a line that
falls by ``1 / v_i`` a round.  When i completes, the line of the next one takes over where that
of i ends, and where the fluid idles the price is 0.  So the lines follow from the last one back.

The time-indexed relaxation differs from this fluid only in that a request holds its
tokens in the shape of a triangle, so these prices are nearly the best ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from kvopt.kernels.loop_calls import machine_code
from kvopt.problem.arrays import Floats, Integers, Numbers
from kvopt.problem.instance import Instance


class Intervals(NamedTuple):
    """Uninterrupted services of a fluid: begins, ends and served requests."""

    begins: Numbers
    ends: Numbers
    requests: Integers


def one_at_a_time(arrivals: Numbers, works: Numbers, keys: Numbers) -> Intervals:
    """Return the intervals of service if the arrived request of the lowest key is always served."""
    order, left = np.argsort(arrivals, kind="stable"), works.copy()
    # Each interval ends with an arrival or a completion.
    begins, ends = np.empty((2, 2 * len(order)), dtype=works.dtype)
    intervals = Intervals(begins, ends, np.empty(2 * len(order), dtype=np.int64))
    quick = machine_code(_serve, or_python=True) if works.dtype != object else _serve
    count = quick(order, (arrivals, keys, left), intervals)
    return Intervals(*(column[:count] for column in intervals))


def _serve(order: Integers, jobs: tuple[Numbers, Numbers, Numbers], intervals: Intervals) -> int:
    """Fill in the intervals of service and return their number; large numbers stay in Python."""
    arrivals, keys, left = jobs
    waiting = [(keys[i], i) for i in order[:0]]  # empty, of a type that numba knows
    clock, coming, count = 0 * left.sum(), 0, 0
    while coming < len(order) or len(waiting) > 0:
        if len(waiting) == 0:
            clock = max(clock, arrivals[order[coming]])
        while coming < len(order) and arrivals[order[coming]] <= clock:
            heappush(waiting, (keys[order[coming]], order[coming]))
            coming += 1
        i = waiting[0][1]
        until = clock + left[i]
        if coming < len(order) and arrivals[order[coming]] < until:
            until = arrivals[order[coming]]
            left[i] -= until - clock
        else:
            heappop(waiting)
        intervals.begins[count], intervals.ends[count], intervals.requests[count] = clock, until, i
        clock = until
        count += 1
    return count


def fluid_prices(instance: Instance, share: float = 1.0) -> Floats:
    """Return the price of a token at the times ``1, 2, ...`` up to the end of the fluid.

    The fluid fills the given share of the memory.
    """
    if not len(instance):
        return np.zeros(0)
    memory = max(1, int(share * instance.total_memory))
    volumes = np.array([request.volume for request in instance], dtype=float)
    falling = _lines(volumes, _intervals(instance, memory), memory)
    return _prices(falling, np.arange(0.5, int(np.ceil(falling.ends[-1]))))


def machine_prices(arrivals: Sequence[int], takes: Floats, count: int) -> tuple[Floats, Floats]:
    """Return times from the first arrival to the end of a fluid, and prices of the machine then.

    The fluid serves the machine time of each request, one request at a time.
    """
    falling = _lines(takes, one_at_a_time(np.array(arrivals, dtype=float), takes, takes))
    times: Floats = np.linspace(min(arrivals), falling.ends[-1], count)
    return times, _prices(falling, times)


class _Falling(NamedTuple):
    """Intervals of a fluid: begins, ends, prices at the ends, and slopes of the prices."""

    begins: Floats
    ends: Floats
    values: Floats
    slopes: Floats


def _prices(falling: _Falling, times: Floats) -> Floats:
    """Return the prices at some times."""
    begins, ends, values, slopes = falling
    served = np.minimum(np.searchsorted(ends, times), len(ends) - 1)
    prices = values[served] + (ends[served] - times) * slopes[served]
    return np.where(times >= begins[served], np.maximum(prices, 0.0), 0.0)


def fluid_end(instance: Instance) -> int:
    """Return the round in which the fluid ends."""
    memory = instance.total_memory
    if not instance.last_arrival:
        return -(-sum(request.volume for request in instance) // memory)
    return int(-(-_intervals(instance, memory).ends[-1] // memory))


def fluid_order(instance: Instance) -> list[int]:
    """Return requests in the order in which the fluid begins to serve them."""
    return list(dict.fromkeys(_intervals(instance, instance.total_memory).requests.tolist()))


def _lines(works: Floats, intervals: Intervals, rate: int = 1) -> _Falling:
    """Return the price at the end of each interval of service, and its slope."""
    begins, ends, requests = intervals
    slopes = 1.0 / works[requests]
    values = np.zeros(len(requests))
    completed: dict[int, tuple[int, float]] = {}  # completion, and the price there
    following, price = -1, 0.0  # begin of the interval after this one, and the price there
    for number in range(len(requests) - 1, -1, -1):
        begin, end = begins[number], ends[number]
        level = price if following == end else 0.0
        # Going back, the first interval of a request is the one in which it completes.
        completion, level = completed.setdefault(requests[number], (end, level))
        values[number] = level + (completion - end) / rate * slopes[number]
        following = begin
        price = values[number] + (end - begin) / rate * slopes[number]
    return _Falling(begins.astype(float) / rate, ends.astype(float) / rate, values, slopes)


def _intervals(instance: Instance, memory: int) -> Intervals:
    """Return the intervals of service; round t is the tokens ``(t - 1) M + 1 .. t M``."""
    volumes = np.array([request.volume for request in instance], dtype=object)
    arrivals = np.array([request.arrival * memory for request in instance], dtype=object)
    return one_at_a_time(arrivals, volumes, volumes)
