"""Exhaustive search of small fleets: best schedules of sets, then the best partition.

Workers are equal, so a schedule is a partition of the requests into sets, and an order within
each.  In a better schedule the latency of a set leaves at least their volume bound to the
other requests: sets with a larger latency are not searched.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from kvopt.bounds.volume import volume_bound
from kvopt.errors import Stopped
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import run_in_thread
from kvopt.kernels.clock import wall_time
from kvopt.problem.instance import Instance

MOST_REQUESTS = 12
"""Limit of requests: they have up to 2^12 sets."""
_LONGEST = 20_000
"""Limit of the rounds of a schedule: each of them is tried."""
_NAME = "exact"

Known = dict[int, tuple[int, list[int]]]
"""Least latency and starts of sets of requests, which are bits."""


def run(search: Search, seconds: float = math.inf) -> None:
    """Search all better schedules, if requests and rounds are few."""
    instance = search.instance
    if len(instance) > MOST_REQUESTS:
        search.note(f"{_NAME}: {len(instance)} requests; the limit for fleets is {MOST_REQUESTS}")
        return
    if instance.last_arrival + instance.total_output > _LONGEST:
        search.note(f"{_NAME}: schedules may span more than {_LONGEST:,} rounds")
        return
    if search.should_stop():
        return
    if search.schedule is None:
        offer_list_schedules(search)
    search.engine = _NAME
    deadline = wall_time() + seconds
    # Compilation and compiled loops ignore signals: this thread watches for them.
    run_in_thread(search, lambda: _run(search, deadline))


def _run(search: Search, deadline: float) -> None:
    assert search.schedule is not None
    instance, upper = search.instance, search.schedule.objective
    known: Known = {0: (0, [])}
    try:
        for members, bits in _sets(len(instance)):
            found = _best_of(search, members, upper, known, deadline)
            if found is not None:
                known[bits] = found
    except Stopped:
        search.note(f"{_NAME}: ended before all better schedules were ruled out")
        return
    parts = best_partition(instance, known, upper)
    if parts is not None:
        starts, workers = places_of(parts, known, len(instance))
        search.offer_starts(starts, _NAME, workers)
    if not search.checkable:  # else search for a bound that can be checked
        search.offer_claimed(search.schedule.objective, _NAME)


def _sets(count: int) -> Iterator[tuple[list[int], int]]:
    """Yield all sets of requests except the empty one, small ones first."""
    for bits in sorted(range(1, 1 << count), key=int.bit_count):
        yield members_of(bits), bits


def members_of(bits: int) -> list[int]:
    """Return the requests of a set."""
    return [i for i in range(bits.bit_length()) if bits >> i & 1]


def _best_of(
    search: Search, members: list[int], upper: int, known: Known, deadline: float
) -> tuple[int, list[int]] | None:
    """Return the best of a set on one worker, None if no better schedule has it."""
    from kvopt.search.exact.starts import best_below  # it loads numba

    instance = search.instance
    chosen = set(members)
    others = [i for i in range(len(instance)) if i not in chosen]
    rest = instance.of_one_worker(others)
    pool = Instance(instance.memory * (instance.workers - 1), rest.requests)
    part = instance.of_one_worker(members)
    target = upper - volume_bound(pool)
    without = ((i, known.get(sum(1 << j for j in members if j != i))) for i in members)
    least = [best[0] + instance.requests[i].output for i, best in without if best is not None]
    if max([volume_bound(part), *least]) >= target:
        return None
    return best_below(
        part.memory,
        [(r.arrival, *r.shape) for r in part],
        target,
        lambda: search.should_stop() or wall_time() >= deadline,
    )


def places_of(parts: Sequence[int], known: Known, count: int) -> tuple[list[int], list[int]]:
    """Return the starts and the workers of requests, given the set of each worker."""
    starts, workers = [0] * count, [0] * count
    for worker, bits in enumerate(parts):
        for i, start in zip(members_of(bits), known[bits][1], strict=True):
            starts[i], workers[i] = start, worker
    return starts, workers


def best_partition(instance: Instance, known: Known, upper: float) -> list[int] | None:
    """Return the sets of the workers with the least latency below a limit, None without one."""
    count = 1 << len(instance)
    values = [known[bits][0] if bits in known else math.inf for bits in range(count)]
    best, chosen = values, list[list[int]]()
    for _ in range(instance.workers - 1):
        following, first = list(best), [0] * count
        for bits in range(1, count):
            low, part = bits & -bits, bits
            while part:  # all subsets with the first request
                if part & low and values[part] + best[bits ^ part] < following[bits]:
                    following[bits] = values[part] + best[bits ^ part]
                    first[bits] = part
                part = (part - 1) & bits
        best = following
        chosen.append(first)
    if best[-1] >= upper:
        return None
    parts, bits = [], count - 1
    for first in reversed(chosen):
        parts.append(first[bits])
        bits ^= first[bits]
    return [*parts, bits]
