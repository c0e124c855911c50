"""The problem: an instance, a clock, a scope, and perhaps a service level."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kvopt.errors import InvalidInput
from kvopt.problem.batch_time import BatchTime
from kvopt.problem.clocks import ROUNDS, Clock, Seconds, checked_clock
from kvopt.problem.hardware.batch_time_files import DEFAULT_MODEL, batch_time
from kvopt.problem.instance import Instance
from kvopt.problem.instance_files import as_instance
from kvopt.problem.scopes import Scope
from kvopt.problem.slo import Slo


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
        ignored.  By default ``sharing`` if requests have prefixes, else ``runs``.
    slo
        Service level of requests, if that counts as well.
    """

    instance: Instance
    clock: Clock = ROUNDS
    scope: Scope = None  # type: ignore[assignment]
    slo: Slo | None = None

    def __post_init__(self) -> None:
        self._settle_scope()
        if self.slo is not None:
            self.slo.levels(self.instance, rounds=self.clock.is_even)

    def _settle_scope(self) -> None:
        """Choose a default scope; drop prefixes without sharing, and sharing without prefixes."""
        has_prefixes = "prefix" in self.instance.extras
        if (scope := self.scope) is None:
            scope = Scope.SHARING if has_prefixes else Scope.RUNS
        if not has_prefixes:
            scope = scope.without_sharing
        fields = vars(self)
        fields["scope"] = scope
        if not scope.covers(Scope.SHARING):
            fields["instance"] = self.instance.without_prefixes()

    @property
    def in_seconds(self) -> bool:
        """Whether rounds last as long as their batches."""
        return not self.clock.is_even

    @property
    def is_restricted(self) -> bool:
        """Whether it is in rounds, and no search knows all of its fields together.

        Wider problems give its bounds, and narrower ones its schedules.
        """
        beyond = self.is_fleet and (self.in_blocks or self.has_pauses)
        return not self.in_seconds and (bool(self.instance.extras) or beyond)

    @property
    def has_pauses(self) -> bool:
        """Whether requests may pause."""
        return self.scope.covers(Scope.PAUSES)

    @property
    def is_plain(self) -> bool:
        """Whether it is in rounds, without pauses, and counts tokens: workers may be several."""
        return not (self.in_seconds or self.in_blocks or self.has_pauses)

    @property
    def is_starts(self) -> bool:
        """Whether its schedules are starts in rounds, and searches know all of its fields."""
        return self.is_plain and not self.is_restricted

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
        """Return the problem of another instance, without a service level, which counts all."""
        return replace(self, instance=instance, slo=None)


Source = Problem | Instance | str | Path
"""A problem; an instance or its file, which mean rounds."""


def as_problem(
    source: Source,
    *,
    clock: Clock | str | None = None,
    model: BatchTime | str | Path | None = None,
    scope: Scope | str | None = None,
    workers: int | None = None,
    slo: Slo | str | None = None,
) -> Problem:
    """Return a problem, with the given values that are not None.

    An instance, or its file, means rounds, without pauses or a service level.  ``clock`` is
    ``rounds``, or ``seconds`` with a batch-time model or the name of one.
    """
    changed: dict[str, Any] = {}
    instance = source.instance if isinstance(source, Problem) else as_instance(source)
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
    if slo is not None:
        changed["slo"] = Slo.parse(slo)
    if not isinstance(source, Problem):
        return Problem(**{"instance": instance, **changed})
    return replace(source, **changed) if changed else source
