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

from kvopt.bounds.lagrangian import Ascent, Pace
from kvopt.bounds.seconds_evaluation import shares
from kvopt.bounds.shared_rounds_ascent import rows_of
from kvopt.bounds.shares import Processed, shared_out
from kvopt.bounds.slo_prices import Kind, OfCheapestTimes, OfRuns, Span, Window
from kvopt.bounds.slo_rounds import CELLS_OF_ROUNDS, OfSharedRounds
from kvopt.incumbent.in_time import Ceiling
from kvopt.incumbent.proofs import SharedRoundsProof, SloPrices
from kvopt.kernels.budget import Budget
from kvopt.problem.batch_time import BatchTime, Line
from kvopt.problem.clocks import arrivals_ns
from kvopt.problem.instance import Instance
from kvopt.problem.scopes import Scope
from kvopt.problem.slo import Levels

_MACHINE_TIME = 0.5
"""Share of the time: prices of machine time for a ceiling; those of shared rounds have the rest."""
_LONGEST = 2**31
"""Rounds from which on sums over them do not fit into 64 bits; then there are no prices."""
_STEPS = 400
"""Limit of the steps."""
_PACE = Pace(((20, 0.02),), memory=0.8, lowered=0.6, end=5e-4, largest=0.0)
"""Parameters of the steps, which raise minus the ceiling."""


def least_times(
    instance: Instance, model: BatchTime | None, *, chunks: bool = False
) -> tuple[list[int], list[int]]:
    """Return the least times of each request alone, its prefix cached, to its first and last token.

    The time between the two is a least one as well.
    """
    if model is None:
        return [1] * len(instance), [request.output for request in instance]
    plain = shared_out(instance, chunks=chunks)
    done = Processed(instance.forest.private, [()] * len(instance))
    first, total = (
        shares(some, model, model.lines, object, done=done).alone.tolist()
        for some in (_of_first_tokens(plain), plain)
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
        most_first, rest, most = (limits[i] for limits in levels)
        early = min(most_first, most - (alone - soonest))
        if soonest <= early and alone - soonest <= rest:
            late = early + (alone - soonest) if runs else min(most, most_first + rest)
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
    fresh = instance.forest.private
    instance = shared_out(instance.in_tokens(), chunks=chunks)
    runs = model is None and not scope.covers(Scope.PAUSES)
    spans = spans_of(levels, first, total, runs=runs)
    can = [*spans]
    busy = sum(total[i] for i in can)
    window = Window.of(instance, arrivals, spans, busy)
    costs = np.full(len(instance), np.inf)
    free = SloPrices((), (), 1, () if model is None else (0,))
    if not window.last or (model is None and window.last >= _LONGEST):
        costs[can] = 0.0
        return Ceiling(len(can), len(instance) - len(can), free, costs)
    is_due, processed = [levels.first[i] < np.inf for i in can], [fresh[i] for i in can]
    kinds = list(_kinds(model, scope, window, processed, is_due))
    ascents = [Ascent(kind.evaluate, kind.first_prices(), pace=_PACE) for kind in kinds]
    best, ascent = max(zip(kinds, ascents, strict=True), key=lambda pair: pair[1].value)
    _climb(ascent, budget if model is None else budget.part(_MACHINE_TIME))
    costs[can] = best.least(ascent.prices)[0]
    times = best.rounded(ascent.prices)
    proof: SloPrices | SharedRoundsProof = times
    value = min(len(can), best.proved(times))
    if model is not None and max(line.round_ns for line in model.lines) and not budget.over():
        rows = rows_of(model, chunks=chunks)
        coarse = Window.of(instance, arrivals, spans, busy, CELLS_OF_ROUNDS)
        rounds = OfSharedRounds(coarse, processed, model, rows, chunks=chunks)
        prices = rounds.climbed(rounds.started(best.lines, window, ascent.prices), budget)
        shared = rounds.shared(prices)
        if (proved := rounds.ceiling(shared)) < value:
            value, proof = proved, shared
            costs[can] = rounds.evaluate(prices)[1]
    return Ceiling(value, len(instance) - len(can), proof, costs)


def _climb(ascent: Ascent, budget: Budget) -> None:
    """Take steps until they gain little, or time is over."""
    for _ in range(_STEPS):
        if budget.over() or not ascent.step():
            break


def _of_first_tokens(instance: Instance) -> Instance:
    short = [replace(request, output=1, predicted=None) for request in instance]
    return replace(instance, requests=tuple(short))


def _kinds(
    model: BatchTime | None,
    scope: Scope,
    window: Window,
    fresh: Sequence[int],
    is_due: Sequence[bool],
) -> Iterator[Kind]:
    """Yield the kinds of prices that may give a ceiling.

    Requests process so many tokens, and the first tokens of some have limits of their own.
    In seconds the fixed part of a round is charged by the memory that a request holds.
    """
    some = window.instance
    if model is not None:
        for lines in _lines(model, scope.covers(Scope.CHUNKS)):
            chosen: list[Line] = [model.lines[i] for i in lines]
            done = Processed(fresh, [()] * len(some))
            takes, early = (
                shares(of, model, chosen, object, done=done).takes.tolist()
                for of in (some, _of_first_tokens(some))
            )
            later = _later(takes, early, is_due)
            yield OfCheapestTimes(window, takes, later, [1] * len(some), 0, lines)
    elif scope.covers(Scope.PAUSES):
        outputs = [request.output for request in some]
        later = _later(outputs, [1] * len(outputs), is_due)
        yield OfCheapestTimes(window, outputs, later, [r.peak for r in some], 1)
    else:
        yield OfRuns(window)


def _later(amounts: Sequence[int], early: Sequence[int], is_due: Sequence[bool]) -> list[int]:
    """Return how much of the amounts may be after the first token is due, all without a limit."""
    rows = zip(amounts, early, is_due, strict=True)
    return [amount - begun if due else amount for amount, begun, due in rows]


def _lines(model: BatchTime, chunks: bool) -> Iterator[tuple[int, ...]]:
    """Yield lines whose largest counts; only a single one covers prompts in pieces."""
    count = len(model.lines)
    yield from ((line,) for line in range(count))
    if count > 1 and not chunks:
        yield tuple(range(count))
