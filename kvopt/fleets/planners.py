"""The number of machines in use by planners: arrival rate over service rate.

It is no lower bound: of ten requests at once, each served in a second and due after ten, it makes
ten machines, and one is enough.  Nor need so many be enough, as requests do not arrive evenly.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction

from kvopt.problem.clocks import Clock
from kvopt.problem.instance import Instance
from kvopt.problem.slo import Levels


def planned_machines(arrivals: int, length: int, rate: Fraction) -> int:
    """Return the number of machines for so many arrivals in a time, at a service rate of one.

    Examples
    --------
    >>> planned_machines(10, 1, Fraction(1))
    10
    """
    return math.ceil(Fraction(arrivals, length) / rate)


def arrival_span(arrivals: Sequence[int], clock: Clock) -> int:
    """Return the time in which requests arrive, at least a round or a second."""
    return max(max(arrivals) - min(arrivals), clock.scale)


def service_rate(instance: Instance, clock: Clock, levels: Levels) -> Fraction:
    """Return how many mean requests one machine completes in a unit of the clock.

    As many are active as fit into the memory on average, and as keep the mean limits of pace and
    of latency; each round processes as many prompt tokens as arrive in it.  Prefixes are ignored.
    """
    count, outputs = len(instance), instance.total_output
    output = Fraction(outputs, count)
    prompt = Fraction(sum(request.prompt for request in instance), count)
    held = prompt + (output + 1) / 2
    most = min(int(instance.memory / held), instance.max_active or instance.memory)
    finite = [limit for limit in levels.rest if limit < math.inf]
    further = max(outputs - count, 1)
    pace = Fraction(int(sum(finite)), further) if len(finite) == count > 0 else math.inf
    ends = [limit for limit in levels.total if limit < math.inf]
    latency = Fraction(int(sum(ends)), count) / output if len(ends) == count else math.inf
    slowest = min(pace if outputs > count else math.inf, latency)

    def duration(active: int) -> int:
        prompts = math.ceil(active * prompt / output)
        return clock.batch_time.round_ns(active, prompts, int(active * held))

    sizes = range(1, max(most, 1) + 1)
    active = max(bisect_left(sizes, True, key=lambda size: duration(size) > slowest), 1)
    return Fraction(active) / (output * duration(active))
