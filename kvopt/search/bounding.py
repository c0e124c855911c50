"""``bound``: lower bounds on total latency, every one re-evaluated in integers."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from kvopt.bounds.lp import offer_lp_bound
from kvopt.bounds.registry import bounds_for, register
from kvopt.bounds.staircases import offer_staircase_bound
from kvopt.bounds.volume import volume_bound
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import signals_interrupt
from kvopt.incumbent.limits import LimitOptions, limits_of
from kvopt.incumbent.proofs import VolumeProof
from kvopt.incumbent.result import BoundResult
from kvopt.problem.instance import Instance
from kvopt.problem.instance_files import as_instance
from kvopt.problem.scopes import Scope
from kvopt.search.blocks import bound_in_blocks
from kvopt.search.parts import Divided
from kvopt.search.portfolio import (
    bound_within,
    climb,
    climb_slots,
    climb_states,
    has_configurations,
    offer_volume,
    solve_lp,
)
from kvopt.search.registry import ENGINES

_LP_KINDS = 10
"""Kinds of requests up to which the method ``lagrangian`` ends with an LP."""
_MOST_SEARCHED = 14
"""Requests up to which `auto` searches what bounds leave."""


@register("volume")
def _volume(search: Search) -> None:
    offer_volume(search)
    offer_staircase_bound(search)


@register("lp")
def _lp(search: Search) -> None:
    offer_list_schedules(search)
    with search.surviving("lp"):
        offer_lp_bound(search)


@register("lagrangian")
def _lagrangian(search: Search) -> None:
    """Climb; with few kinds of requests, whose starts all jump at once, finish with the LP.

    Where the limit came before a first step the volume bound stands in: it takes less time than
    the first prices do.
    """
    spare = volume_bound(search.instance)
    climb(search)
    kinds = {(r.arrival, r.prompt, r.output) for r in search.instance}
    if len(kinds) <= _LP_KINDS and not search.should_stop():
        offer_list_schedules(search)
        solve_lp(search)
    if search.checked is None and not search.remaining:
        search.offer_checked(spare, "volume", VolumeProof())
        search.note("lagrangian: nothing within the limit; this is the volume bound")


@register("slots")
def _slots(search: Search) -> None:
    """Climb with prices of slots, which need a schedule to know how far they have to reach."""
    offer_list_schedules(search)
    if not climb_slots(search):
        search.note("slots: worth nothing beside tokens, or no time")


@register("configuration")
def _configuration(search: Search) -> None:
    offer_list_schedules(search)
    climb_states(search)


@register("auto")
def _auto(search: Search) -> None:
    """Take the quick ones, then configurations or, where they are too many, prices.

    With few requests what configurations leave is searched, which takes no longer.
    """
    offer_volume(search)
    if search.schedule is None:
        offer_list_schedules(search)
    few = len(search.instance) <= _MOST_SEARCHED and search.instance.workers == 1
    if has_configurations(search) and few:
        ENGINES.find("exact")(search)
    else:
        bound_within(search)


def bound(
    instance: Instance | str | Path,
    method: str = "auto",
    *,
    scope: Scope | str = Scope.RUNS,
    **options: Unpack[LimitOptions],
) -> BoundResult:
    """Return a proved lower bound on the total latency of every schedule of a scope.

    Parameters
    ----------
    instance
        The problem, or the file that it is read from.
    method
        ``volume``, ``lp``, ``lagrangian``, ``slots``, ``configuration``, ``auto`` for the best of
        them, or one that was registered.
    scope
        What it has to cover: with ``pauses`` requests may be interrupted and keep their tokens,
        and the methods are ``volume``, ``lagrangian`` and ``auto``.
    options
        As of `Limits`.  A method that did not finish within ``time_limit`` gives None.  Where idle
        gaps cut an instance into parts, volumes bound the parts that it did not finish.  Where
        ``lagrangian`` has nothing by then, the volume bound takes its place without pauses, and
        the note says so.

    Examples
    --------
    >>> from kvopt import Instance, Request, bound
    >>> instance = Instance(memory=7, requests=[Request(0, 1, o) for o in (1, 2, 3, 4)])
    >>> bound(instance, "volume").value
    11

    The optimum of this one is 14, and 12 with a pause:

    >>> instance = Instance(memory=10, requests=[Request(0, 0, 10), Request(6, 5, 1)])
    >>> bound(instance, scope="pauses").value
    12
    """
    instance = as_instance(instance)
    scope = Scope.parse(scope)
    work = bounds_for(scope).find(method)
    search = Search(instance, limits_of(options), checkable=True)
    with signals_interrupt(search):
        if instance.block_size > 1 and len(instance):
            bound_in_blocks(search, method, scope)
        elif len(instance):
            Divided(search).work(lambda part, _: work(part))
        else:
            search.offer_checked(0, method, VolumeProof())
    result = search.result(method)
    value = result.lower_bound if result.checked is None else result.checked.value
    note = "; ".join(result.notes) or None
    if value is None and note is None:
        note = str(result.stop_reason)
    return BoundResult(
        method,
        value,
        result.seconds,
        note,
        result.signal_number,
        result.checked,
        result.compile_seconds,
        scope,
    )
