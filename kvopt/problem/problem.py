"""The problem: an instance, the clock, what schedules may do, and what counts beside latency."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kvopt.problem.clocks import ROUNDS, Clock
from kvopt.problem.deadlines import Deadline
from kvopt.problem.instance import Instance
from kvopt.problem.scopes import Scope


@dataclass(frozen=True)
class Problem:
    """What is asked: the least total latency of an instance, on a clock, within a scope.

    Parameters
    ----------
    instance
        Requests, memory, workers and block size.
    clock
        How long rounds last.
    scope
        What schedules may do, and bounds have to cover.
    deadline
        By when requests should be done, where that counts as well.
    """

    instance: Instance
    clock: Clock = ROUNDS
    scope: Scope = Scope.RUNS
    deadline: Deadline | None = None

    @property
    def in_seconds(self) -> bool:
        """Whether rounds last as long as their batches."""
        return not self.clock.is_even

    @property
    def has_pauses(self) -> bool:
        """Whether requests may pause."""
        return self.scope.covers(Scope.PAUSES)

    @property
    def is_plain(self) -> bool:
        """Whether it is in rounds, without pauses, and counts tokens: workers may be several."""
        return not (self.in_seconds or self.in_blocks or self.has_pauses)

    @property
    def has_segments(self) -> bool:
        """Whether its schedules say the times of all tokens: where one worker may pause."""
        return self.has_pauses and not self.in_seconds and not self.is_fleet

    @property
    def is_fleet(self) -> bool:
        """Whether there are several workers."""
        return self.instance.workers > 1

    @property
    def in_blocks(self) -> bool:
        """Whether memory is given out in blocks of several tokens."""
        return self.instance.block_size > 1

    def of(self, instance: Instance) -> Problem:
        """Return the same question of another instance."""
        return replace(self, instance=instance)


def as_problem(given: Problem | Instance) -> Problem:
    """Return a problem; an instance alone is asked in rounds, without pauses."""
    return given if isinstance(given, Problem) else Problem(given)
