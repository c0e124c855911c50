"""The volume bound: memory is a resource of M tokens in each round, used like water.

Request i needs ``v_i = s_i o_i + o_i (o_i + 1) / 2`` token-rounds.  Serve those volumes as
a fluid with M tokens a round, request i from round ``a_i + 1`` on.  Serving the smallest
*remaining* volume first completes, by every time, at least as many requests as any other
fluid and so as any schedule.  Hence the j-th completion of a schedule is never before the
j-th completion of that fluid, nor before the j-th smallest ``a_i + o_i``.

The two are combined by rank, never by request: the j-th completion of the fluid need not be
the same request as the j-th completion of the schedule.

If at most K requests may be active together, slots are another such resource: K in each round, of
which request i needs ``o_i`` in all.  The later completion of each rank counts.

For a fleet M is the memory of all workers together, here and wherever memory is a fluid or has
prices: one worker with so large a cache allows every schedule of the fleet.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from kvopt.problem.instance import Instance


def volume_bound(instance: Instance) -> int:
    """Return the volume bound on total latency; exact integers, valid with arrivals."""
    jobs = [(r.arrival, r.volume, r.output) for r in instance]
    limit = instance.max_active
    slots = None if limit is None else instance.used_workers * limit
    return _bound(jobs, instance.total_memory, slots)


def volume_bounds_without_each(instance: Instance) -> list[int]:
    """Return for each request the bound of the instance without it.

    Requests of one arrival and shape share one evaluation; beyond a thousand kinds the
    cheaper sum of the other outputs is used, a valid bound too.  It is one without slots as well.
    """
    jobs = [(r.arrival, r.volume, r.output) for r in instance]
    kinds: dict[tuple[int, int, int], int] = {}
    if len(set(jobs)) > 1000:
        return [instance.total_output - output for _, _, output in jobs]
    for position, job in enumerate(jobs):
        if job not in kinds:
            kinds[job] = _bound(jobs[:position] + jobs[position + 1 :], instance.total_memory)
    return [kinds[job] for job in jobs]


def _bound(jobs: Sequence[tuple[int, int, int]], memory: int, slots: int | None = None) -> int:
    arrivals = sum(arrival for arrival, _, _ in jobs)
    return sum(completions_by_rank(jobs, memory, slots)) - arrivals


def completions_by_rank(
    jobs: Sequence[tuple[int, int, int]], memory: int, slots: int | None = None
) -> list[int]:
    """Return a bound on the completion of each rank, by memory, slots and single requests."""
    fluid = fluid_completions([(arrival, volume) for arrival, volume, _ in jobs], memory)
    if slots is not None:
        served = fluid_completions([(arrival, output) for arrival, _, output in jobs], slots)
        fluid = list(map(max, fluid, served))
    return list(map(max, fluid, sorted(arrival + output for arrival, _, output in jobs)))


def fluid_completions(jobs: Sequence[tuple[int, int]], memory: int) -> list[int]:
    """Return the completion rounds of the shortest-remaining-volume fluid, ascending.

    Time is counted in tokens: round t is the tokens ``(t - 1) M + 1 .. t M``.
    """
    arriving = sorted(((arrival * memory, volume) for arrival, volume in jobs), reverse=True)
    waiting: list[int] = []
    completions: list[int] = []
    clock = 0
    while arriving or waiting:
        if not waiting:
            clock = max(clock, arriving[-1][0])
        while arriving and arriving[-1][0] <= clock:
            heapq.heappush(waiting, arriving.pop()[1])
        volume = heapq.heappop(waiting)
        served = volume if not arriving else min(volume, arriving[-1][0] - clock)
        clock += served
        if served == volume:
            completions.append(-(-clock // memory))
        else:
            heapq.heappush(waiting, volume - served)
    return completions
