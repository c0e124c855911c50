"""``deadline_ceiling`` bounds the number of deadlines that a covered schedule attains.

Charge prices p_t >= 0 for each token held at time t, and let g_i be the least that request i pays
if it attains.  Those that attain pay at most M sum_t p_t together, and each of them counts 1, which
is at most max(0, 1 - g_i) + g_i.  So at most

    sum_i max(0, 1 - g_i)  +  M sum_t p_t

attain, for any prices.  In seconds prices are of time of the machine, of which request i
takes X_i: its g_i is the price of the X_i cheapest nanoseconds between arrival and deadline.
``docs/deadlines.md`` has the proofs, also with pauses and with prompts in pieces.

Prices are found in floats, by steps against a slope of the ceiling, and evaluated in integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from kvopt.bounds.deadline_prices import Kind, OfCheapestTimes, OfRuns, Window
from kvopt.bounds.lagrangian import Ascent, Pace
from kvopt.bounds.seconds_evaluation import shares
from kvopt.bounds.shares import Processed, shared_out
from kvopt.incumbent.in_time import Ceiling
from kvopt.incumbent.proofs import DeadlinePrices
from kvopt.kernels.budget import Budget
from kvopt.problem.arrays import columns_of
from kvopt.problem.batch_time import BatchTime, Line
from kvopt.problem.clocks import arrivals_ns
from kvopt.problem.deadlines import Aim
from kvopt.problem.instance import Instance
from kvopt.problem.scopes import Scope

_LONGEST = 2**31
"""Rounds from which on sums over them do not fit into 64 bits; then there are no prices."""
_STEPS = 400
"""Limit of the steps."""
_PACE = Pace(((20, 0.02),), memory=0.8, lowered=0.6, end=5e-4, largest=0.0)
"""Parameters of the steps, which raise minus the ceiling."""


def least_times(
    instance: Instance, aim: Aim, model: BatchTime | None, *, chunks: bool = False
) -> list[int]:
    """Return the least time of each request alone, its prefix cached, from arrival to aim."""
    if aim is Aim.FIRST_TOKEN:
        instance = _of_first_tokens(instance)
    if model is None:
        return [request.output for request in instance]
    plain = shared_out(instance, chunks=chunks)
    done = Processed(instance.forest.private, [()] * len(instance))
    alone: list[int] = shares(plain, model, model.lines, object, done=done).alone.tolist()
    return alone


def deadline_ceiling(
    instance: Instance,
    allowed: Sequence[int],
    aim: Aim = Aim.COMPLETION,
    model: BatchTime | None = None,
    *,
    scope: Scope = Scope.RUNS,
    budget: Budget | None = None,
) -> Ceiling:
    """Return a proved ceiling on how many requests attain their deadlines.

    Parameters
    ----------
    instance, model
        The problem; without a model in rounds.  Blocks count as tokens, prefixes as shares of them
        (`kvopt.bounds.relaxations`), and a limit of active requests as none.
    allowed
        How long each request may take, in rounds or nanoseconds.
    aim
        Whether the first or the last token is due by then.
    scope
        Scope of the schedules.
    budget
        Time for the search for prices.

    Examples
    --------
    >>> from kvopt import Request
    >>> three = Instance(4, [Request(0, 2, 2) for _ in range(3)])
    >>> deadline_ceiling(three, [4, 4, 4]).value
    2
    """
    budget = budget or Budget()
    arrivals = [request.arrival for request in instance] if model is None else arrivals_ns(instance)
    chunks = scope.covers(Scope.CHUNKS)
    alone = least_times(instance, aim, model, chunks=chunks)
    fresh = instance.forest.private
    instance = shared_out(instance.in_tokens(), chunks=chunks)
    can = [i for i, (own, most) in enumerate(zip(alone, allowed, strict=True)) if own <= most]
    tail = 0
    if model is None and aim is Aim.FIRST_TOKEN and not scope.covers(Scope.PAUSES):
        tail = max((instance.requests[i].output for i in can), default=0)
    busy = tail + sum(alone[i] for i in can)
    window = Window.of(instance, arrivals, allowed, can, busy, tail)
    costs = np.full(len(instance), np.inf)
    best, prices = None, np.zeros(0)
    if window.last and (model is not None or window.last < _LONGEST):
        kinds = list(_kinds(aim, model, scope, window, [fresh[i] for i in can]))
        ascents = [Ascent(kind.evaluate, kind.first_prices(), pace=_PACE) for kind in kinds]
        best, ascent = max(zip(kinds, ascents, strict=True), key=lambda pair: pair[1].value)
        for _ in range(_STEPS):
            if budget.over() or not ascent.step():
                break
        prices = ascent.prices
        costs[can] = best.least(prices)[0]
    else:
        costs[can] = 0.0
    free = DeadlinePrices((), (), 1, () if model is None else (0,))
    proof = free if best is None else best.rounded(prices)
    value = len(can) if best is None else min(len(can), best.proved(proof))
    return Ceiling(value, len(instance) - len(can), proof, costs)


def _of_first_tokens(instance: Instance) -> Instance:
    short = [replace(request, output=1, predicted=None) for request in instance]
    return replace(instance, requests=tuple(short))


def _kinds(
    aim: Aim, model: BatchTime | None, scope: Scope, window: Window, fresh: Sequence[int]
) -> Iterator[Kind]:
    """Yield the kinds of prices that may give a ceiling; requests process so many tokens."""
    first = aim is Aim.FIRST_TOKEN
    some = _of_first_tokens(window.instance) if first else window.instance
    if model is not None:
        for lines in _lines(model, scope.covers(Scope.CHUNKS)):
            chosen: list[Line] = [model.lines[i] for i in lines]
            done = Processed(fresh, [()] * len(some))
            takes = shares(some, model, chosen, object, done=done).takes.tolist()
            yield OfCheapestTimes(window, takes, [1] * len(some), 0, lines)
    elif scope.covers(Scope.PAUSES):
        yield OfCheapestTimes(window, [r.output for r in some], [r.peak for r in some], 1)
    else:
        outputs = columns_of(some)[2]
        yield OfRuns(window, window.ends - outputs)


def _lines(model: BatchTime, chunks: bool) -> Iterator[tuple[int, ...]]:
    """Yield lines whose largest counts; only a single one covers prompts in pieces."""
    count = len(model.lines)
    yield from ((line,) for line in range(count))
    if count > 1 and not chunks:
        yield tuple(range(count))
