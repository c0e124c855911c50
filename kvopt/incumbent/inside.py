"""A search of another instance inside one: of a part, of blocks, of a slower machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Observer, StopCriterion, ignore
from kvopt.problem.instance import Instance

AnySearch = TypeVar("AnySearch", bound=Search)


def inside(
    whole: Search, kind: Callable[..., AnySearch], instance: Instance,
    seconds: float | None = None, *, observer: Observer | None = None,
    stop: StopCriterion | None = None, checkable: bool | None = None,
) -> AnySearch:  # fmt: skip
    """Return a search of another instance with the engine and the limits of one.

    It has so many seconds, by default all that are left, and ends where the whole does, unless it
    is said when to stop.
    """
    limits = replace(
        whole.limits,
        time_limit=whole.remaining if seconds is None else max(0.0, seconds),
        observer=observer or ignore,
        stop=stop or (lambda _: whole.should_stop()),
        gap=None,
    )
    inner = kind(instance, limits, checkable=whole.checkable if checkable is None else checkable)
    inner.engine = whole.engine
    return inner
