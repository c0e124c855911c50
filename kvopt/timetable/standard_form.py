"""The standard form of a schedule: one of all that differ only in places of requests of one shape.

Two requests are of one **shape** if prompt, output and path of shared blocks are equal.  They can
swap places: each runs as the other did, from its start and on its worker, so memory, active
requests and shared blocks stay as they are.  If both have arrived at the earlier start, it should
be that of the heavier one: otherwise a swap lowers total latency.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import combinations

from kvopt.problem.instance import Instance
from kvopt.timetable.schedule import Schedule


def groups_of_one_shape(instance: Instance) -> list[list[int]]:
    """Group the positions of requests of one shape, each by arrival, the heaviest first."""
    groups = defaultdict[tuple[object, ...], list[int]](list)
    requests = instance.requests
    for i in sorted(range(len(instance)), key=lambda i: (requests[i].arrival, -requests[i].weight)):
        groups[*requests[i].shape, instance.forest.paths[i]].append(i)
    return [members for _, members in sorted(groups.items()) if len(members) > 1]


def start_order(instance: Instance) -> Iterator[tuple[int, int]]:
    """Yield pairs (i, j) of one shape where i starts no later than j in a standard form.

    This is so if i arrives no later and weighs no less.  Pairs that follow from others are left
    out: those given are the edges of the transitive reduction of this order.

    Examples
    --------
    >>> from kvopt import Request
    >>> list(start_order(Instance(9, [Request(0, 2, 1, weight=w) for w in (1, 3, 2, 3)])))
    [(1, 3), (3, 2), (2, 0)]
    """
    weights = [request.weight for request in instance]
    for group in groups_of_one_shape(instance):
        for place, i in enumerate(group):
            heaviest = 0  # of the requests yielded after i, which come before all that weigh less
            for j in group[place + 1 :]:
                if heaviest < weights[j] <= weights[i]:
                    heaviest = weights[j]
                    yield i, j
                if heaviest == weights[i]:
                    break


def heavier_but_later(instance: Instance) -> Iterator[tuple[int, int]]:
    """Yield pairs (i, j) of one shape where i weighs more and arrives later.

    In every optimal schedule j starts before the arrival of i, or no earlier than i.
    """
    requests = instance.requests
    for group in groups_of_one_shape(instance):
        for j, i in combinations(group, 2):
            first, second = requests[j], requests[i]
            if first.weight < second.weight and first.arrival < second.arrival:
                yield i, j


def in_standard_form(schedule: Schedule) -> Schedule:
    """Return a schedule at least as good, in which requests of one shape have their best places.

    Each start is that of the heaviest request of its shape that has arrived, of equals the first;
    workers are numbered in the order of the first request of each.  With pauses, where all weigh
    the same, requests of one shape produce each token in order of arrival.
    """
    instance, groups = schedule.instance, groups_of_one_shape(schedule.instance)
    if schedule.pauses:
        times = list(schedule.active_times)
        for group in groups:
            by_token = zip(*(times[i] for i in group), strict=True)
            for i, active in zip(group, zip(*map(sorted, by_token), strict=True), strict=True):
                times[i] = list(active)
        return Schedule.at_times(instance, times)
    places, requests = list(range(len(instance))), instance.requests
    for group in groups:
        waiting, arrived = list[tuple[int, int]](), 0
        for place in sorted(group, key=schedule.starts.__getitem__):
            while arrived < len(group) and (
                requests[group[arrived]].arrival <= schedule.starts[place]
            ):
                heappush(waiting, (-requests[group[arrived]].weight, arrived))
                arrived += 1
            places[group[heappop(waiting)[1]]] = place
    names: dict[int, int] = {}
    workers = [names.setdefault(schedule.workers[i], len(names)) for i in places]
    return Schedule(instance, [schedule.starts[i] for i in places], workers)
