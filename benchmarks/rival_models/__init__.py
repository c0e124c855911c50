"""Other solvers on the problem of one worker, a model in each file.

Each file has a function ``(problem, offers)``: it builds its model, solves it within the limit, and
says what it finds the moment it finds it.  ``benchmarks/rivals.py`` runs them, each in a process of
its own, and judges every schedule and every bound.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kvopt import Instance, Schedule
from kvopt.formulations.windows import Windows


@dataclass(frozen=True)
class Problem:
    """What a rival is given; its clock begins when this is made.

    Parameters
    ----------
    instance
        The problem.
    known
        Schedule of the best policy, to begin from.
    windows
        Start rounds of each request; they hold every schedule at least as good as ``known``.
    seconds
        Processor time that it may take, model building included: what a busy machine does beside
        it does not count.
    threads
        How many it may use.
    clock_seconds
        What the limit is on the clock, for solvers that can be told nothing else.
    began
        Processor time of this process when its clock began.
    """

    instance: Instance
    known: Schedule
    windows: Windows
    seconds: float
    threads: int
    clock_seconds: float
    began: float = field(default_factory=time.process_time)

    def over(self, seconds: float | None = None) -> bool:
        """Whether so many seconds, or all, are over."""
        limit = self.seconds if seconds is None else seconds
        return time.process_time() - self.began > limit

    def stop(self, solver: Callable[[], object], seconds: float | None = None) -> None:
        """Call what stops a solver when so many seconds, or all, are over."""

        def watch() -> None:
            while not self.over(seconds):
                time.sleep(0.1)
            solver()

        threading.Thread(target=watch, daemon=True).start()


class Offers(Protocol):
    """Takes what a rival finds."""

    def starts(self, starts: Sequence[int]) -> None:
        """Take a schedule."""

    def bound(self, value: float) -> None:
        """Take a claim that no schedule has less total latency."""
