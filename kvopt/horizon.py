"""Start windows: which start rounds have to be considered, with the proof that no others do.

A time-indexed model needs a last round.  A schedule can be optimal and finish later than a
worse one, so the makespan of a heuristic is no safe horizon.  Two arguments are:

*No idle round.*  After the last arrival an optimal schedule is never idle while something
is left: otherwise every later start could move one round earlier.  From then on each round
has an active request, so everything completes by ``max a + sum o``.  Where no request arrives
between that round and much later, this holds for each part (`kvopt.parts`) by itself.

*A known schedule.*  Let its total latency be U.  In any schedule at most as long, the other
requests alone have a total latency of at least B_i, where B_i is a lower bound for the
instance without request i.  So ``c_i - a_i <= U - B_i``.

Both keep at least one optimum; the second keeps every schedule of latency up to U that the first
keeps.
"""

from __future__ import annotations

from kvopt.bounds.volume import volume_bounds_without_each
from kvopt.instance import Instance
from kvopt.parts import split

Windows = tuple[range, ...]
"""For each request the start rounds that have to be considered."""


def start_windows(instance: Instance, upper: int | None = None) -> Windows:
    """Return start windows that hold at least one optimal schedule.

    Parameters
    ----------
    instance
        The problem.
    upper
        Total latency of some feasible schedule; windows get shorter with it.
    """
    latest = [0] * len(instance)
    for part in split(instance):
        end = part.begin + part.instance.last_arrival + part.instance.total_output
        for i in part.members:
            latest[i] = end
    if upper is not None:
        rest = volume_bounds_without_each(instance)
        latest = [
            min(end, r.arrival + upper - least)
            for end, r, least in zip(latest, instance, rest, strict=True)
        ]
    return tuple(range(r.arrival, c - r.output + 1) for r, c in zip(instance, latest, strict=True))


def horizon(instance: Instance, windows: Windows) -> int:
    """Return the last time at which a request can be active, 0 without requests."""
    last = (w[-1] + r.output for w, r in zip(windows, instance, strict=True) if w)
    return max(last, default=0)
