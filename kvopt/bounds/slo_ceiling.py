"""``slo_ceiling`` bounds the number of requests that attain their service levels.

Charge prices p_t >= 0 for each token held at time t, and let g_i be the least that request i pays
if it attains.  Those that attain pay at most M sum_t p_t together, and each of them counts 1, which
is at most max(0, 1 - g_i) + g_i.  So at most

    sum_i max(0, 1 - g_i)  +  M sum_t p_t

attain, for any prices.  A request that attains has its first token by a + ttft, and by
a + e2e less the least time of the others; its last one by a + ttft + tpot (o - 1), and by a + e2e.
In seconds prices are of time of the machine, of which request i takes X_i, and
Y_i of it in the rounds up to its first token: its g_i is the price of the cheapest X_i nanoseconds
until its last token is due, of which Y_i are before its first one is due.  Or it pays for rounds
that active requests share (`kvopt.bounds.slo_rounds`); the better of both counts.
``docs/service-levels.md`` has the proofs, also with pauses and with prompts in pieces.

Prices are found in floats, by steps against a slope of the ceiling, and evaluated in integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from kvopt.bounds.gradient_ascent import Ascent, Steps
from kvopt.bounds.lagrangian import ConcaveInPrices
from kvopt.bounds.prefix_shares import Processed, shared_out
from kvopt.bounds.seconds_evaluation import integers, longest, machine_times, request_times
from kvopt.bounds.shared_rounds_ascent import rows_of
from kvopt.bounds.slo_prices import ActiveTimes, OfCheapestTimes, OfRuns, PricesOfTime, Span
from kvopt.bounds.slo_rounds import CELLS_OF_ROUNDS, OfSharedRounds
from kvopt.incumbent.in_time import Ceiling
from kvopt.incumbent.proofs import MachinePrices, PriceProof, SharedRoundsProof, token_prices
from kvopt.kernels.budget import Budget
from kvopt.problem.arrays import Numbers
from kvopt.problem.batch_time import BatchTime
from kvopt.problem.clocks import arrivals_ns
from kvopt.problem.instance import Instance
from kvopt.problem.scopes import Scope
from kvopt.problem.slo import Levels

_MACHINE_TIME = 0.5
"""Share of the time: prices of machine time for a ceiling; those of shared rounds have the rest."""
_LONGEST = 2**22
"""Rounds from which on there are no prices, since each of them has one."""
_STEPS = Steps(400, 0.1, patience=20, enough=1e-4, shorter=0.5, shortest=1e-3)
"""Steps, which raise minus the ceiling."""


def least_times(
    instance: Instance, model: BatchTime | None, *, chunks: bool = False
) -> tuple[list[int], list[int]]:
    """Return the least times of each request alone, its prefix cached, to its first and last token.

    The time between the two is a least one as well.
    """
    if model is None:
        return [1] * len(instance), [request.output for request in instance]
    plain, done = shared_out(instance, chunks=chunks), Processed(instance.forest.private)
    first, total = (
        request_times(requests, model, model.lines, object, done=done).alone.tolist()
        for requests in (_of_first_tokens(plain), plain)
    )
    return first, total


def spans_of(
    levels: Levels, first: Sequence[int], total: Sequence[int], *, runs: bool = False
) -> dict[int, Span]:
    """Return when the tokens of each request are due that can attain with these least times.

    Without pauses, with ``runs``, a first token in time has the others when they are due.
    """
    spans = {}
    for i, (soonest, alone) in enumerate(zip(first, total, strict=True)):
        first_due, rest, last_due = (limits[i] for limits in levels)
        early = min(first_due, last_due - (alone - soonest))
        if soonest <= early and alone - soonest <= rest:
            late = early + (alone - soonest) if runs else min(last_due, first_due + rest)
            spans[i] = Span(early, late, rest)
    return spans


def slo_ceiling(
    instance: Instance,
    levels: Levels,
    model: BatchTime | None = None,
    *,
    scope: Scope = Scope.RUNS,
    budget: Budget | None = None,
) -> Ceiling:
    """Return a proved ceiling on how many requests attain their service levels.

    Parameters
    ----------
    instance, model
        The problem; without a model in rounds.  Blocks count as tokens, prefixes as shares of them
        (`kvopt.bounds.relaxations`), and a limit of active requests as none.
    levels
        The limits of each request, in rounds or nanoseconds.
    scope
        Scope of the schedules.
    budget
        Time for the search for prices.

    Examples
    --------
    >>> from kvopt import Request, Slo
    >>> three = Instance(4, [Request(0, 2, 2) for _ in range(3)])
    >>> slo_ceiling(three, Slo(e2e=4).levels(three, rounds=True)).value
    2
    """
    budget = budget or Budget()
    arrivals = [request.arrival for request in instance] if model is None else arrivals_ns(instance)
    chunks = scope.covers(Scope.CHUNKS)
    first, total = least_times(instance, model, chunks=chunks)
    private = instance.forest.private
    instance = shared_out(instance.in_tokens(), chunks=chunks)
    runs = model is None and not scope.covers(Scope.PAUSES)
    spans = spans_of(levels, first, total, runs=runs)
    can = [*spans]
    busy = sum(total[i] for i in can)
    times = ActiveTimes.of(instance, arrivals, spans, busy)
    costs = np.full(len(instance), np.inf)
    if not times.last or (model is None and times.last >= _LONGEST):
        costs[can] = 0.0  # without prices nothing tells that one of them misses
        free = PriceProof(1, (MachinePrices((0, 1), (0,), (0,)),))
        free = token_prices((), 1) if model is None else free
        return Ceiling(len(can), len(instance) - len(can), free, costs)
    is_due, fresh = [levels.first[i] < np.inf for i in can], [private[i] for i in can]
    kinds = list(_kinds(model, scope, times, fresh, is_due, [span.end for span in spans.values()]))
    ascents = [
        Ascent(ConcaveInPrices(kind.evaluate, 0.0), (kind.first_prices(),), _STEPS)
        for kind in kinds
    ]
    best, ascent = max(zip(kinds, ascents, strict=True), key=lambda pair: pair[1].value)
    of_time = budget if model is None else budget.part(_MACHINE_TIME)
    while not of_time.over() and ascent.step():
        pass
    ascent.try_mean()
    (prices,) = ascent.point
    costs[can] = best.cheapest(prices)[0]
    of_times = best.rounded(prices)
    proof: PriceProof | SharedRoundsProof = of_times.later(times.first)
    value = min(len(can), best.proved(of_times))
    # Any prices prove a ceiling, so the lowest one counts.
    if model is not None and max(line.round_ns for line in model.lines) and not budget.over():
        rows = rows_of(model, chunks=chunks)
        coarse = ActiveTimes.of(instance, arrivals, spans, busy, CELLS_OF_ROUNDS)
        rounds = OfSharedRounds(coarse, fresh, model, rows, chunks=chunks)
        of_machines = prices * instance.memory  # before: of a token for a nanosecond
        point = rounds.climbed(rounds.started(best.lines, times, of_machines), budget)
        shared = rounds.rounded(point)
        if (proved := rounds.proved(shared)) < value:
            value, proof = proved, shared
            costs[can] = rounds.evaluate(point)[1][0]
    return Ceiling(value, len(instance) - len(can), proof, costs)


def _of_first_tokens(instance: Instance) -> Instance:
    """Return an instance whose requests end with their first token."""
    short = [replace(request, output=1, predicted=None) for request in instance]
    return replace(instance, requests=tuple(short))


def _kinds(
    model: BatchTime | None,
    scope: Scope,
    times: ActiveTimes,
    fresh: Sequence[int],
    is_due: Sequence[bool],
    ends: Sequence[float],
) -> Iterator[PricesOfTime]:
    """Yield the kinds of prices that may give a ceiling.

    ``fresh`` are the prompt tokens that requests surely process, ``is_due`` says whose first tokens
    have limits of their own: then all after the first may be late, else all.  ``ends`` is when last
    tokens are due, from the arrival on.  In seconds the fixed part of a round is charged by the
    memory that a request holds, or by its prompt.
    """
    instance = times.instance
    if model is None and not scope.covers(Scope.PAUSES):
        yield OfRuns(times)
        return
    if model is None:
        outputs = [request.output for request in instance]
        later = [o - is_first for o, is_first in zip(outputs, is_due, strict=True)]
        yield OfCheapestTimes(times, outputs, later, [r.peak for r in instance], 1)
        return
    for fixed in (None, (0, 0)):
        whole, early = (
            machine_times(requests, model, fresh, chunks=scope.covers(Scope.CHUNKS), fixed=fixed)
            for requests in (instance, _of_first_tokens(instance))
        )
        for (lines, takes), (_, until_first) in zip(whole, early, strict=True):
            reach = 0
            if fixed is not None:
                part = longest([model.lines[line] for line in lines], 0)
                reach, shares = _shares_by_prompts(instance, part, takes, until_first, ends)
                takes, until_first = takes + _outputs(instance) * shares, until_first + shares
            if fixed is None or (reach and takes.all()):
                later = (takes - until_first * np.array(is_due, dtype=object)).tolist()
                tops = [1] * len(instance)
                yield OfCheapestTimes(times, takes.tolist(), later, tops, 0, lines, reach)


def _outputs(instance: Instance) -> Numbers:
    return integers([request.output for request in instance])


def _shares_by_prompts(
    instance: Instance, fixed: int, works: Numbers, firsts: Numbers, ends: Sequence[float]
) -> tuple[int, Numbers]:
    """Return a reach, 0 without one, and what requests pay for the fixed part of a round.

    ``works`` are those of requests and ``firsts`` those of their first rounds, times the memory, as
    are the payments.  The reach is that at which all pay most.
    """
    memory, outputs = instance.memory, _outputs(instance)
    prompts = firsts // memory
    left = np.array(ends, dtype=object) - fixed * outputs - (works - firsts) // memory
    order = np.argsort(left.astype(float))
    times = np.maximum(left.astype(float)[order], 1.0)
    best = left[order[np.argmax(np.cumsum((outputs * prompts).astype(float)[order]) / times)]]
    if not 1 <= best < np.inf:
        return 0, 0 * firsts
    return best, memory * np.where(left <= best, fixed * prompts // best, 0)
