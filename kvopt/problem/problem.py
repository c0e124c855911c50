"""The problem: an instance, a clock, a scope, and perhaps a deadline."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kvopt.errors import InvalidInput
from kvopt.problem.batch_time import BatchTime
from kvopt.problem.clocks import ROUNDS, Clock, Seconds, checked_clock
from kvopt.problem.deadlines import Deadline
from kvopt.problem.hardware.batch_time_files import DEFAULT_MODEL, batch_time
from kvopt.problem.instance import Instance, refuse_blocks, refuse_extras, refuse_fleet
from kvopt.problem.instance_files import as_instance
from kvopt.problem.scopes import Scope

_LOGGER = logging.getLogger("kvopt")


@dataclass(frozen=True)
class Problem:
    """The problem to solve: least total latency of an instance, on a clock, within a scope.

    Parameters
    ----------
    instance
        Requests, memory, workers and block size.
    clock
        How long rounds last.
    scope
        The schedules that bounds cover.  Without ``sharing`` the prefixes of the instance are
        ignored.  By default ``sharing`` if requests have prefixes and the other options support
        them, else ``runs``.
    deadline
        Deadline of requests, if that counts as well.
    """

    instance: Instance
    clock: Clock = ROUNDS
    scope: Scope = None  # type: ignore[assignment]
    deadline: Deadline | None = None

    def __post_init__(self) -> None:
        self._settle_scope()
        for is_asked, what in (
            (
                self.has_pauses or (self.in_seconds and self.scope.covers(Scope.CHUNKS)),
                f"the scope {self.scope}",
            ),
            (self.deadline is not None, "a deadline"),
        ):
            if is_asked:
                refuse_extras(self.instance, what)
        if self.deadline is not None:
            refuse_blocks(self.instance, "a deadline")
            self.deadline.allowed(self.instance, rounds=self.clock.is_even)

    def _settle_scope(self) -> None:
        """Choose a default scope; drop prefixes without sharing, and sharing without prefixes."""
        has_prefixes = "prefix" in self.instance.extras
        if (scope := self.scope) is None:
            is_known = has_prefixes and self.deadline is None
            scope = Scope.SHARING if is_known else Scope.RUNS
            if has_prefixes and not is_known:
                _LOGGER.warning("prefixes are left out: a deadline does not know them")
        if not has_prefixes:
            scope = scope.without_sharing
        said = vars(self)
        said["scope"] = scope
        if not scope.covers(Scope.SHARING):
            said["instance"] = self.instance.without_prefixes()

    def refuse_unbounded(self) -> None:
        """Refuse a problem that schedulers can run, but that no bound covers."""
        if self.in_seconds:
            refuse_extras(self.instance, "a bound in seconds", ("prefix",))
            refuse_blocks(self.instance, "a bound in seconds")
        elif self.in_blocks:
            refuse_fleet(self.instance, "a bound in whole blocks")
            if self.instance.extras:
                refuse_blocks(self.instance, self.instance.extras[0])

    @property
    def in_seconds(self) -> bool:
        """Whether rounds last as long as their batches."""
        return not self.clock.is_even

    @property
    def is_restricted(self) -> bool:
        """Whether it is in rounds, with fields beyond the problem of the papers."""
        return bool(self.instance.extras) and not self.in_seconds

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
        """Whether its schedules have the times of all tokens: with pauses on one worker."""
        return self.has_pauses and not self.in_seconds and not self.is_fleet

    @property
    def is_fleet(self) -> bool:
        """Whether it has several workers."""
        return self.instance.workers > 1

    @property
    def in_blocks(self) -> bool:
        """Whether memory is given out in blocks of several tokens."""
        return self.instance.block_size > 1

    def of(self, instance: Instance) -> Problem:
        """Return the problem of another instance, without deadlines, which count all requests."""
        return replace(self, instance=instance, deadline=None)


def as_problem(
    given: Problem | Instance | str | Path,
    *,
    clock: Clock | str | None = None,
    model: BatchTime | str | Path | None = None,
    scope: Scope | str | None = None,
    workers: int | None = None,
    deadline: Deadline | str | int | None = None,
) -> Problem:
    """Return a problem, with the given values that are not None.

    An instance, or its file, means rounds, without pauses and deadlines.  ``clock`` may be a word:
    ``rounds``, or ``seconds`` with a batch-time model or the name of one.
    """
    changed: dict[str, Any] = {}
    instance = given.instance if isinstance(given, Problem) else as_instance(given)
    if workers is not None:
        instance = changed["instance"] = replace(instance, workers=workers)
    if clock == "seconds":
        model = DEFAULT_MODEL if model is None else model
        changed["clock"] = Seconds(model if isinstance(model, BatchTime) else batch_time(model))
    elif model is not None:
        raise InvalidInput('goes with clock="seconds"', field="batch_time")
    elif clock is not None:
        changed["clock"] = ROUNDS if clock == "rounds" else checked_clock(clock)
    if scope is not None:
        changed["scope"] = Scope.parse(scope)
    if deadline is not None:
        changed["deadline"] = Deadline.parse(deadline)
    if not isinstance(given, Problem):
        return Problem(**{"instance": instance, **changed})
    return replace(given, **changed) if changed else given
