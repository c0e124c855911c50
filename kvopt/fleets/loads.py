"""What limits a run: a full cache, machine time, or the requests themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from kvopt import PolicyRun
from kvopt.bounds.prefix_shares import Processed, shared_out
from kvopt.bounds.seconds_evaluation import request_times
from kvopt.bounds.slo_ceiling import least_times
from kvopt.problem.clocks import arrivals_ns
from kvopt.show.summary import percent

FULL = 0.95
"""Share of the cache from which on it counts as full."""
_OFTEN = 0.25
"""Share of the time with a full cache from which on memory limits a run, if no other is known."""
_IDLE = 0.8
"""Share of the latency that requests have alone from which on they hardly wait for each other."""


@dataclass(frozen=True)
class Loads:
    """Measurements of a run.

    ``full`` is the share of the time, from the first arrival to the last token, in which a cache
    is full; ``work`` the machine time that the requests need at least, over the time in which they
    arrive, None if they arrive at once.  Mean latencies are in seconds: of each request alone on a
    machine, with a cache that holds all requests (``roomy``), None if unknown, and in the run.
    """

    full: float
    work: float | None
    alone: float
    roomy: float | None
    latency: float

    @classmethod
    def of(cls, run: PolicyRun, block: int, roomy: PolicyRun | None) -> Self:
        """Return the measurements of a completed run in seconds, whose blocks have so many tokens.

        ``roomy`` is the run of its scheduler with a cache that holds all requests.
        """
        instance, model = run.instance, run.clock.batch_time
        arrivals = arrivals_ns(instance)
        span = max(arrivals) - min(arrivals)
        weights = [request.weight for request in instance]
        _, alone = least_times(instance, model)
        plain = shared_out(instance, chunks=False)
        done = Processed(instance.forest.private)
        times = request_times(plain, model, model.lines, object, done=done)
        takes = sum(times.takes) // instance.memory
        count = sum(weights) * run.clock.scale
        return cls(
            _share_full(run, block),
            takes / (span * instance.workers) if span else None,
            float(np.dot(weights, alone)) / count,
            None if roomy is None else roomy.objective / count,
            run.objective / count,
        )

    @property
    def limit(self) -> str:
        """What limits most: ``memory``, ``machine time`` or ``arrivals``."""
        if self.alone >= _IDLE * self.latency:
            return "arrivals"
        if self.roomy is None:
            return "memory" if self.full >= _OFTEN else "machine time"
        waits_for_room = self.latency - self.roomy
        return "memory" if waits_for_room > self.roomy - self.alone else "machine time"

    @property
    def sentence(self) -> str:
        """Return the measurements in words, the limit first."""
        heads = {
            "memory": "memory: requests wait for room in the cache",
            "machine time": "machine time: requests share rounds, which last longer with each",
            "arrivals": "arrivals: requests hardly wait for each other",
        }
        roomy = "" if self.roomy is None else f", {self.roomy:.3f} s with a cache for all"
        work = "" if self.work is None else f"; work is {self.work:.2f} times the span of arrivals"
        return (
            f"{heads[self.limit]} (a request takes {self.latency:.3f} s{roomy}, "
            f"{self.alone:.3f} s alone; the cache is {FULL:.0%} full for {percent(self.full)} of "
            f"the time{work})"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``kvopt headroom --json`` prints."""
        return {"limit": self.limit, **vars(self)}


def _share_full(run: PolicyRun, block: int) -> float:
    """Return the share of the time of all machines in which their caches are full."""
    first = min(run.arrivals)
    last = max(end for end in run.completions if end is not None)
    full = 0.0
    for part in run.parts:
        for stretch in part.stretches:
            # The last block of a request is half full on average.
            level = FULL * run.instance.memory - stretch.active * (block - 1) / 2
            low, high = stretch.held, stretch.held_last
            # Memory grows in a straight line, which is above the level from some time on.
            above = 1.0 if low >= level else (high - level) / (high - low) if high > level else 0.0
            full += (stretch.ended - stretch.began) * above
    return full / ((last - first) * run.instance.workers) if last > first else 0.0
