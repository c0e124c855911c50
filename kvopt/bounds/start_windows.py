"""Start windows by a known schedule and a bound.

Let the total latency of the known schedule be U.  In any schedule at most as long, the other
requests alone have a total latency of at least L_-i, a lower bound for the instance without
request i.  So ``c_i - a_i <= U - L_-i``.  With the windows of `kvopt.formulations.windows`
they keep an optimum: every schedule of latency up to U that is in those windows.
"""

from __future__ import annotations

from kvopt.bounds.volume import volume_bounds_without_each
from kvopt.formulations.windows import Windows, latest_completions, windows_until
from kvopt.problem.instance import Instance


def start_windows(instance: Instance, upper: int | None = None) -> Windows:
    """Return start windows that hold at least one optimal schedule.

    Parameters
    ----------
    instance
        The problem.
    upper
        Total latency of some feasible schedule; windows get shorter with it.
    """
    latest = latest_completions(instance)
    if upper is not None and "prefix" not in instance.extras:  # volumes ignore sharing
        rest = volume_bounds_without_each(instance)
        latest = [
            min(end, r.arrival + upper - bound)
            for end, r, bound in zip(latest, instance, rest, strict=True)
        ]
    return windows_until(instance, latest)
