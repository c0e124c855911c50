"""Quick list schedules: something feasible within moments, for every size.

Requests are admitted in a given order, each as soon as the order lets it and memory, looking
ahead along everything already admitted, allows.  These schedules are starting points for the
engines, not the policies of the papers.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator

from kvopt.instance import Instance, Request
from kvopt.search import Search

Order = Callable[[Request], tuple[int, ...]]

ORDERS: dict[str, Order] = {
    "smallest volume first": lambda r: (r.volume, r.prompt),
    "shortest output first": lambda r: (r.output, r.prompt),
    "smallest peak first": lambda r: (r.peak, r.output),
    "first come first served": lambda r: (r.arrival,),
}


class Packing:
    """Requests that were placed so far, and how much a further one has to wait.

    Starts must be placed in ascending order, so that completions in the past can be
    forgotten.
    """

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._ends: list[tuple[int, int]] = []  # (completion, prompt - start), ascending
        self._loads: list[int] = []  # tokens held at each of those completions

    def delay(self, request: Request, start: int) -> int:
        """Return 0 if the request fits at ``start``, else rounds it has to wait at least.

        Starting a round later lowers what it holds at a given completion by one token, and
        a completion before its start no longer matters.
        """
        self._forget(start)
        end = start + request.output
        wait = 1 if self._load(end) + request.peak > self._memory else 0
        held = request.prompt - start
        for (completion, _), load in zip(self._ends, self._loads, strict=True):
            if completion > end:
                break
            excess = load + held + completion - self._memory
            if excess > wait:
                wait = max(wait, min(excess, completion - start))
        return wait

    def place(self, request: Request, start: int) -> None:
        """Add a request that fits at ``start``."""
        end, held = start + request.output, request.prompt - start
        own = self._load(end) + request.peak
        last = bisect_right(self._ends, end, key=lambda entry: entry[0])
        for position in range(last):
            self._loads[position] += held + self._ends[position][0]
        position = bisect_left(self._ends, (end, held))
        insort(self._ends, (end, held))
        self._loads.insert(position, own)

    def _load(self, time: int) -> int:
        first = bisect_left(self._ends, time, key=lambda entry: entry[0])
        later = self._ends[first:]
        return sum(held for _, held in later) + len(later) * time

    def _forget(self, start: int) -> None:
        past = bisect_right(self._ends, start, key=lambda entry: entry[0])
        del self._ends[:past], self._loads[:past]


def list_schedule(
    instance: Instance, order: Order, should_stop: Callable[[], bool] = lambda: False
) -> list[int]:
    """Admit what has arrived in the given order, never passing over the first in line.

    When ``should_stop`` turns true, what is left runs one after another at the end: poor,
    but a schedule.
    """
    requests = instance.requests
    arriving = sorted(range(len(requests)), key=lambda i: requests[i].arrival, reverse=True)
    waiting: list[tuple[tuple[int, ...], int]] = []
    packing = Packing(instance.memory)
    starts = [-1] * len(requests)
    clock = 0
    while arriving or waiting:
        if should_stop():
            _append_rest(instance, starts)
            break
        if not waiting:
            clock = max(clock, requests[arriving[-1]].arrival)
        while arriving and requests[arriving[-1]].arrival <= clock:
            i = arriving.pop()
            heapq.heappush(waiting, (order(requests[i]), i))
        first = waiting[0][1]
        wait = packing.delay(requests[first], clock)
        if wait == 0:
            heapq.heappop(waiting)
            packing.place(requests[first], clock)
            starts[first] = clock
        else:  # an arrival in between may take the first place in line
            clock += wait
            if arriving:
                clock = min(clock, max(requests[arriving[-1]].arrival, clock - wait + 1))
    return starts


def _append_rest(instance: Instance, starts: list[int]) -> None:
    ends = [k + r.output for k, r in zip(starts, instance, strict=True) if k >= 0]
    clock = max(ends, default=0)
    for i in sorted(range(len(starts)), key=lambda i: instance.requests[i].arrival):
        if starts[i] < 0:
            starts[i] = max(clock, instance.requests[i].arrival)
            clock = starts[i] + instance.requests[i].output


def candidates(search: Search) -> Iterator[tuple[str, list[int]]]:
    """Yield list schedules in several orders, the usually best one first."""
    for name, order in ORDERS.items():
        yield name, list_schedule(search.instance, order, search.should_stop)
        if search.should_stop():
            return


def offer_list_schedules(search: Search) -> None:
    """Give a search something feasible to start from."""
    for name, starts in candidates(search):
        search.offer_starts(starts, f"list schedule, {name}")
