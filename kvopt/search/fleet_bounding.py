"""``bounds_by_workers``: what no fleet can do, for many numbers of workers at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from kvopt.bounds.configurations.size import check_size
from kvopt.bounds.fluid import fluid_end
from kvopt.bounds.registry import bounds_for
from kvopt.bounds.seconds import seconds_bound
from kvopt.errors import TooLarge
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import LimitOptions, limits_of
from kvopt.incumbent.proofs import CheckedBound, VolumeProof
from kvopt.kernels.compile_clock import working_time
from kvopt.problem.clocks import ROUNDS, Clock, Seconds
from kvopt.problem.instance import Instance
from kvopt.problem.instance_files import as_instance
from kvopt.problem.scopes import Scope
from kvopt.search.parts import Divided
from kvopt.search.portfolio import climb, offer_volume


def bounds_by_workers(
    instance: Instance | str | Path,
    counts: Iterable[int],
    clock: Clock = ROUNDS,
    *,
    scope: Scope | str = Scope.RUNS,
    **options: Unpack[LimitOptions],
) -> dict[int, CheckedBound]:
    """Return for each number of workers a lower bound on total latency, with its proof.

    What more workers cannot do fewer cannot do either, so bounds never rise with their number.
    The largest number comes first, and its bound is taken where that of fewer is no better.

    Parameters
    ----------
    instance
        The problem, or the file that it is read from; its own number of workers does not count.
    counts
        Numbers of workers.
    clock
        How long rounds last; totals are in its unit.
    scope
        What the bounds have to cover, as for `kvopt.bound`.
    options
        As of `Limits`, for all of them.  When ``stop`` turns true the bounds that are there at once
        are the last ones.

    Examples
    --------
    >>> from kvopt import Instance, Request
    >>> found = bounds_by_workers(Instance(5, [Request(0, 2, 1)] * 3), (1, 2, 3))
    >>> {workers: bound.value for workers, bound in found.items()}
    {1: 6, 2: 4, 3: 3}
    """
    instance, covered = as_instance(instance), Scope.parse(scope)
    limits = limits_of(options)
    end = working_time() + limits.time_limit
    found: dict[int, CheckedBound] = {}
    fewest_known: CheckedBound | None = None
    left = sorted(set(counts), reverse=True)
    for place, workers in enumerate(left):
        fleet = replace(instance, workers=workers)
        seconds = max(0.0, end - working_time()) / (len(left) - place)
        search = Search(fleet, replace(limits, time_limit=seconds))
        if isinstance(clock, Seconds):
            part = seconds_bound(
                fleet,
                clock.batch_time,
                scope=covered,
                time_limit=seconds,
                should_stop=search.should_stop,
            )
            bound = CheckedBound(part.value_ns, "shares", part.proof)
        else:
            bound = _in_rounds(search, covered)
        if fewest_known is None or bound.value > fewest_known.value:
            fewest_known = bound
        found[workers] = fewest_known
    return dict(sorted(found.items()))


def _in_rounds(search: Search, scope: Scope) -> CheckedBound:
    """Return the best bound within the limit of a search."""

    def work(part: Search, _: float) -> None:
        if not part.should_stop() and _is_small(part.instance):
            bounds_for(scope).find("auto")(part)
            return
        offer_volume(part)
        climb(part, pauses=scope.covers(Scope.PAUSES))

    if not len(search.instance):
        search.offer_checked(0, "volume", VolumeProof())
    else:
        offer_volume(search)
        Divided(search).work(work)
    assert search.checked is not None
    return search.checked


def _is_small(instance: Instance) -> bool:
    """Whether configurations may be few enough: no schedule ends before the fluid."""
    try:
        check_size(instance, fluid_end(instance))
    except TooLarge:
        return False
    return True
