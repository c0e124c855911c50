"""The standard form of a schedule: one of all that differ only in names of equal requests."""

from __future__ import annotations

from collections import defaultdict

from kvopt.problem.instance import Instance
from kvopt.timetable.schedule import Schedule


def identical_groups(instance: Instance) -> list[list[int]]:
    """Group the positions of requests of one shape, path and weight, each in order of arrival.

    Two requests of equal prompt and output can swap starts when the later start is
    given to the later arrival: neither feasibility nor total latency changes.  So some
    optimum starts every group in this order.
    """
    groups = defaultdict[tuple[object, ...], list[int]](list)
    for i in sorted(range(len(instance)), key=lambda i: instance.requests[i].arrival):
        request = instance.requests[i]
        groups[*request.shape, request.weight, instance.forest.paths[i]].append(i)
    return [members for _, members in sorted(groups.items()) if len(members) > 1]


def in_standard_form(schedule: Schedule) -> Schedule:
    """Return an equally good schedule in which requests of one shape are in order of arrival.

    These start in this order, and workers are numbered in the order of the first request of each.
    With pauses the times of each token are swapped instead.
    """
    instance, groups = schedule.instance, identical_groups(schedule.instance)
    if schedule.segments:
        times = list(schedule.active_times)
        for group in groups:
            by_token = zip(*(times[i] for i in group), strict=True)
            for i, active in zip(group, zip(*map(sorted, by_token), strict=True), strict=True):
                times[i] = list(active)
        return Schedule.at_times(instance, times)
    places = list(range(len(instance)))
    for group in groups:
        for i, place in zip(group, sorted(group, key=schedule.starts.__getitem__), strict=True):
            places[i] = place
    names: dict[int, int] = {}
    workers = [names.setdefault(schedule.workers[i], len(names)) for i in places]
    return Schedule(instance, [schedule.starts[i] for i in places], workers)
