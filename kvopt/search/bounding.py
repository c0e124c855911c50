"""``bound``, ``bounds_by_workers`` and the functions of `kvopt.bounds`.

Each bound is re-evaluated in integers.  The functions of `kvopt.bounds` take a problem in rounds,
an instance, or the file of one.  Their budget is in seconds, None for as long as it takes; if that
does not suffice, the bound is that of the volumes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

from kvopt.bounds.lp import lp_bounds
from kvopt.bounds.relaxations import chain
from kvopt.errors import InvalidInput, shown
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import signals_interrupt
from kvopt.incumbent.limits import LimitOptions, limits_of
from kvopt.incumbent.proofs import CheckedBound, PriceProof, Proof, prices_of
from kvopt.incumbent.result import BoundResult
from kvopt.kernels.budget import Budget
from kvopt.problem.clocks import ROUNDS, Clock
from kvopt.problem.instance import Instance
from kvopt.problem.problem import Source, as_problem
from kvopt.problem.scopes import Scope
from kvopt.problem.slo import Slo
from kvopt.search import plan, stages
from kvopt.search.engines import method_of

_LP_KINDS = 10
"""Up to so many kinds of requests the method lagrangian ends with an LP: starts jump together."""
_MIN_GAIN = 0.002
"""Share of the bound that two stages of the method configuration must add without a limit."""
_IN_BLOCKS = ("volume", "lagrangian", "auto")
"""Methods that support blocks; others bound the tokens of all blocks."""


def volume(search: Search) -> None:
    """Offer volume bounds; with pauses without staircases, which look ahead along a run."""
    stages.offer_volume(search)
    if not (search.problem.has_pauses or search.problem.in_blocks):
        stages.offer_staircases(search)


def lp(search: Search) -> None:
    """Solve the LP relaxation."""
    with search.timing("solve"):
        stages.offer_all(search, "lp", lp_bounds(search.instance, search.budget, search.limits))


def lagrangian(search: Search) -> None:
    """Ascend; with few kinds of requests, whose starts all jump at once, finish with the LP.

    If the limit ends it before a first step, the volume bound replaces its result: that takes less
    time than the first prices.
    """
    stages.ascend(search, search.budget)
    kinds = {(r.arrival, r.prompt, r.output) for r in search.instance}
    if len(kinds) <= _LP_KINDS and search.problem.is_plain and not search.budget.over():
        stages.solve_lp(search, search.budget)
    if search.checked is None and not search.budget.left:
        stages.offer_volume(search)
        search.note("lagrangian: nothing within the limit; this is the volume bound")


def slots(search: Search) -> None:
    """Ascend with prices of slots, which need a schedule for their last time."""
    stages.offer_lists(search)
    if not stages.ascend_slots(search, search.budget):
        search.note("slots: no gain over prices of tokens, or no time")


def configuration(search: Search) -> None:
    """Ascend with prices of states; without a limit only while two stages gain together.

    A search for the optimum proves more than the last stages, in less time.
    """
    stages.offer_lists(search)
    min_gain = _MIN_GAIN if search.budget.left == math.inf else 0.0
    stages.ascend_states(search, search.budget, min_gain=min_gain)


def bound(
    instance: Source,
    method: str = "auto",
    *,
    scope: Scope | str | None = None,
    slo: Slo | str | None = None,
    **options: Unpack[LimitOptions],
) -> BoundResult:
    """Return a proved lower bound on the total latency of every schedule of a scope.

    Parameters
    ----------
    instance
        The problem, or the file that it is read from; a `Problem` may be in seconds, for ``auto``.
    method
        ``volume``, ``lp``, ``lagrangian``, ``slots``, ``configuration``, or ``auto`` for the best
        of them.
    scope
        Schedules to cover, by default ``runs``: with ``pauses`` requests may be interrupted and
        keep their tokens, and the methods are ``volume``, ``lagrangian`` and ``auto``.
    slo
        Also a ceiling on how many requests attain a service level, see `certify`; it is in
        ``in_time`` of the result.
    options
        As of `Limits`.  A method that did not finish within ``time_limit`` gives None.  If idle
        gaps cut an instance into parts, volumes bound the parts that it did not finish.  Without a
        limit ``configuration`` ends, with a note, when two stages hardly raise the bound.  If
        ``lagrangian`` has no result by then, the volume bound replaces it, with a note.

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
    problem = as_problem(instance, scope=scope, slo=slo)
    if problem.in_seconds and method != "auto":
        raise InvalidInput(f"must be auto in seconds, got {shown(method)}", field="method")
    work = method_of(method, problem.scope)

    def in_parts(inner: Search) -> None:
        plan.Driver(inner, only_bounds=True).work(lambda part, _: work(part))

    search = Search(replace(problem, slo=None), limits_of(options), checkable=True)
    timely = Search(problem, search.limits, budget=search.granted, checkable=True)
    with signals_interrupt(search):
        plan.run(plan.CEILING, timely, timely.budget)
        if method == "auto":
            plan.bounding(search)
        elif problem.is_restricted and chain(problem):
            if method == "volume":
                stages.offer_volume(search)
            knows_prices = stages.has_prices(search) and method == "lagrangian"
            part = search.budget.part(0.5 if knows_prices else 1.0)
            stages.bound_by_wider(search, chain(problem), in_parts, part)
            if knows_prices:
                stages.bound_by_prices(search, search.budget)
        elif problem.in_blocks and method not in _IN_BLOCKS:
            stages.bound_by_wider(search, ("tokens",), in_parts)
        else:
            in_parts(search)
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
        problem.scope,
        problem.clock,
        timely.in_time,
    )


def bounds_by_workers(
    instance: Instance | str | Path,
    counts: Iterable[int],
    clock: Clock = ROUNDS,
    *,
    scope: Scope | str | None = None,
    **options: Unpack[LimitOptions],
) -> dict[int, CheckedBound]:
    """Return for each number of workers a lower bound on total latency, with its proof.

    A bound for more workers holds for fewer, so bounds never rise with their number.  The largest
    number comes first, and its bound is used for fewer workers unless theirs is better.

    Parameters
    ----------
    instance
        The problem, or the file that it is read from; its own number of workers is ignored.
    counts
        Numbers of workers.
    clock
        How long rounds last; totals are in its unit.
    scope
        Schedules that the bounds must cover, as for `kvopt.bound`.
    options
        As of `Limits`, for all of them.  After ``stop`` turns true only immediate bounds
        are computed.

    Examples
    --------
    >>> from kvopt import Instance, Request
    >>> found = bounds_by_workers(Instance(5, [Request(0, 2, 1)] * 3), (1, 2, 3))
    >>> {workers: bound.value for workers, bound in found.items()}
    {1: 6, 2: 4, 3: 3}
    """
    problem = as_problem(instance, clock=clock, scope=scope)
    limits = limits_of(options)
    budget = Budget(limits.time_limit, ram=limits.ram)
    bounds: dict[int, CheckedBound] = {}
    best: CheckedBound | None = None
    left = sorted(set(counts), reverse=True)
    for place, workers in enumerate(left):
        fleet = problem.of(replace(problem.instance, workers=workers))
        part = budget.part(1 / (len(left) - place))
        search = Search(fleet, limits, budget=part, checkable=True)
        plan.bounding(search)
        assert search.checked is not None
        if best is None or search.checked.value > best.value:
            best = search.checked
        bounds[workers] = best
    return dict(sorted(bounds.items()))


# ---- one bound by one method --------------------------------------------------------------------


@dataclass(frozen=True)
class Bound:
    """A lower bound on the total latency of every schedule of a problem.

    Parameters
    ----------
    value
        No schedule has a smaller total latency: in rounds, or in nanoseconds.
    proof
        What proves it; evaluated again in integers.
    prices
        Prices of tokens over time in the proof, None if it has none.
    """

    value: int
    proof: Proof
    prices: PriceProof | None


def _bounded(source: Source, method: str, budget: float | None) -> Bound:
    """Return the bound of a method, or that of the volumes if the budget ends before it."""
    problem = as_problem(source)
    limit = {} if budget is None else {"time_limit": budget}
    checked = bound(problem, method, **limit).checked  # type: ignore[arg-type]
    if checked is None and method != "volume":
        checked = bound(problem, "volume").checked
    assert checked is not None, "volumes bound every problem in rounds at once"
    return Bound(checked.value, checked.proof, prices_of(checked.proof))


def volume_bound(problem: Source) -> Bound:
    """Bound by volumes of tokens over time, and by staircases of one after another; takes no time.

    Examples
    --------
    >>> from kvopt import Instance, Request
    >>> from kvopt.bounds import volume_bound
    >>> volume_bound(Instance(memory=7, requests=[Request(0, 1, o) for o in (1, 2, 3, 4)])).value
    11
    """
    return _bounded(problem, "volume", None)


def lp_bound(problem: Source, budget: float | None = None) -> Bound:
    """Bound by the linear program over starts; its duals are the prices.

    Parameters
    ----------
    problem
        The problem in rounds, an instance, or a file of one.
    budget
        Seconds, None for as long as it takes.  If they do not suffice, the bound is that of the
        volumes.  So for the other functions here.

    Examples
    --------
    >>> from kvopt import Instance, Request
    >>> from kvopt.bounds import lp_bound
    >>> lp_bound(Instance(memory=7, requests=[Request(0, 1, o) for o in (1, 2, 3, 4)])).value
    12
    """
    return _bounded(problem, "lp", budget)


def lagrangian_bound(problem: Source, budget: float | None = None) -> Bound:
    """Bound by prices of tokens over time, which an ascent improves towards the LP bound.

    Pauses and blocks are covered.

    Examples
    --------
    >>> from kvopt import generate
    >>> from kvopt.bounds import lagrangian_bound
    >>> found = lagrangian_bound(generate("arrival-1", n=6, seed=3))
    >>> found.value, found.prices.denominator > 0
    (129, True)
    """
    return _bounded(problem, "lagrangian", budget)


def slot_bound(problem: Source, budget: float | None = None) -> Bound:
    """Bound by prices of tokens and of slots: places for large requests in the cache.

    Examples
    --------
    >>> from kvopt import generate
    >>> from kvopt.bounds import lagrangian_bound, slot_bound
    >>> instance = generate("arrival-1", n=6, seed=3)
    >>> slot_bound(instance).value >= lagrangian_bound(instance).value
    True
    """
    return _bounded(problem, "slots", budget)


def configuration_bound(problem: Source, budget: float | None = None) -> Bound:
    """Bound by prices of the states of the cache: the strongest one, for few requests at a time.

    Examples
    --------
    >>> from kvopt import generate
    >>> from kvopt.bounds import configuration_bound, lagrangian_bound
    >>> instance = generate("arrival-1", n=6, seed=3)
    >>> configuration_bound(instance).value > lagrangian_bound(instance).value
    True
    """
    return _bounded(problem, "configuration", budget)


def seconds_bound(problem: Source, budget: float | None = None) -> Bound:
    """Bound in seconds: by shares of the machine that requests take from each other.

    Parameters
    ----------
    problem
        The problem in seconds, whose totals are nanoseconds.
    budget
        Seconds of work; a first bound is computed under any budget.

    Examples
    --------
    >>> from kvopt import Problem, Seconds, batch_time, generate
    >>> from kvopt.bounds import seconds_bound
    >>> clock = Seconds(batch_time("llama-3-8b@h100"))
    >>> chat = generate("conversation", n=4, memory=1_000, seed=1)
    >>> seconds_bound(Problem(chat, clock)).value > 0
    True
    """
    settled = as_problem(problem)
    if not settled.in_seconds:
        raise InvalidInput("must be one of seconds: Problem(instance, clock)", field="clock")
    return _bounded(settled, "auto", budget)
