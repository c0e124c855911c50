"""The limits of a search: time, memory, threads, seed, gap, observer and stop."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, TypedDict

from kvopt.errors import InvalidInput, did_you_mean, shown
from kvopt.incumbent.params import DEFAULT, SolveParams
from kvopt.incumbent.result import Progress
from kvopt.kernels import memory
from kvopt.problem.requests import checked_integer, checked_number

Observer = Callable[[Progress], None]
"""Called with both sides of the search whenever one of them improves."""

StopCriterion = Callable[[Progress], bool]
"""Returns True to end the search; asked often, so it should be quick."""


def gap_below(target: float) -> StopCriterion:
    """Stop as soon as the certified gap is at most ``target``, a share: 0.05 for 5%."""
    if not 0 <= target < 1:
        raise InvalidInput(f"must be a share below 1, 0.05 for 5%, got {target}", field="gap")
    return lambda progress: progress.gap is not None and progress.gap <= target


def available_threads() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ignore(_: Progress) -> None:
    """Do nothing: the default observer."""


def never(_: Progress) -> bool:
    """Return False: the default stop criterion."""
    return False


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a search, checked at construction.

    `limits_of` reads options that may be missing or in words.

    Parameters
    ----------
    time_limit
        Seconds of wall time.
    threads
        By default all cores that this process may use.
    seed
        Seed of random choices.
    ram
        Bytes that the process may hold; by default a share of the memory of the machine.
    params
        Sizes, a width and a share of time, see `kvopt.incumbent.params`.
    observer, stop
        Called on improvements; returns whether to end.
    gap
        A certified gap that suffices.
    presolve
        Whether solvers may simplify their models first.
    """

    time_limit: float = math.inf
    threads: int = field(default_factory=available_threads)
    seed: int = 0
    ram: int = field(default_factory=memory.default_budget)
    params: SolveParams = DEFAULT
    observer: Observer = ignore
    stop: StopCriterion = never
    gap: float | None = None
    presolve: bool = True

    def __post_init__(self) -> None:
        if not (isinstance(self.time_limit, Real) and self.time_limit >= 0):
            reason = f"must be a number of seconds, not negative, got {shown(self.time_limit)}"
            raise InvalidInput(reason, field="time limit")
        checked_integer(self.threads, "threads", 1)
        checked_integer(self.seed, "seed", 0)
        for name in ("observer", "stop"):
            if not callable(function := getattr(self, name)):
                reason = f"must be a function of a Progress, got {shown(function)}"
                raise InvalidInput(f"{reason}; for a gap write gap=0.05", field=name)
        if self.gap is not None:
            gap_below(checked_number(self.gap, "gap"))

    def suffices(self, now: Progress) -> bool:
        """Whether the gap is small enough, or the caller wants an end."""
        return (self.gap is not None and gap_below(self.gap)(now)) or self.stop(now)


class LimitOptions(TypedDict, total=False):
    """Options that `solve`, `bound` and `certify` share, see `Limits`.

    None is the default of each; ``ram`` may be a size such as ``"4G"``, ``params`` tables of
    changed parameters; ``display`` prints a row for each improvement on standard error.  ``limits``
    are those that the other options change.
    """

    limits: Limits
    time_limit: float | None
    threads: int | None
    seed: int
    ram: int | str | None
    params: SolveParams | Mapping[str, Any] | None
    observer: Observer | None
    stop: StopCriterion | None
    gap: float | None
    display: bool


def limits_of(options: LimitOptions) -> Limits:
    """Return the limits that options set."""
    changes: dict[str, Any] = {**options}
    names = LimitOptions.__annotations__
    for name in changes:
        if name not in names:
            raise TypeError(f"unknown option {name}{did_you_mean(name, names)}")
    before = changes.pop("limits", None) or Limits()
    if changes.pop("display", False):
        changes["observer"] = _ProgressTable(changes.get("observer") or before.observer)
    if changes.get("ram") is not None:
        changes["ram"] = memory.parsed_size(changes["ram"])
    if (params := changes.get("params")) is not None and not isinstance(params, SolveParams):
        changes["params"] = SolveParams.of(params)
    unset = {"time_limit", "threads", "ram", "params", "observer", "stop", "gap"}
    return replace(before, **{k: v for k, v in changes.items() if v is not None or k not in unset})


class _ProgressTable:
    """An observer that prints a row for each improvement, at most five a second.

    Parameters
    ----------
    observer
        Another observer, which is called too.
    """

    _EVERY = 0.2

    def __init__(self, observer: Observer) -> None:
        self._observer, self._printed = observer, -1.0

    def __call__(self, now: Progress) -> None:
        """Print both sides on standard error."""
        if self._printed < 0:
            heads = f"{'seconds':>8}  {'latency':>16}  {'bound':>16}  {'gap':>7}  by"
            print(heads, file=sys.stderr)
        if now.seconds >= self._printed + self._EVERY or now.gap == 0:
            sides = now.objective, now.lower_bound
            numbers = "  ".join(f"{'-' if x is None else f'{x:,}':>16}" for x in sides)
            gap = "-" if now.gap is None else f"{now.gap:.2%}"
            row = f"{now.seconds:8.1f}  {numbers}  {gap:>7}  {now.engine}"
            print(row, file=sys.stderr, flush=True)
            self._printed = now.seconds
        self._observer(now)
