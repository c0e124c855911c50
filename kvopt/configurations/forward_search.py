"""An exhaustive search forward in time, over all schedules that prices have not ruled out.

With integer prices, bound L and largest sums R_t, D times the latency of a schedule is

    L + sum_i excess_i(k_i) + sum_t (R_t - F_t(what is active at t)),

and no term is negative.  So a partial schedule is dropped once its terms, and the least ones of
the requests that wait, exceed what a better schedule may spend.  Partial schedules that leave
the same work are one, and some beat others: see `kvopt.configurations.dominance`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from kvopt.configurations.dominance import undominated
from kvopt.configurations.evaluation import CLOSED, Evaluation
from kvopt.configurations.expand import Stopped, TooWide, next_layer
from kvopt.configurations.labels import BLIND, WAITING, Layer, Round, members_of
from kvopt.configurations.lookahead import Ahead
from kvopt.configurations.states import Integers, States
from kvopt.model.instance import Instance

MOST_REQUESTS = 128
"""Requests up to which a search is worth its memory."""

_CHILDREN = 100
"""Continuations that a search for good schedules looks at, for each one that it keeps."""

_LAST_SHORT = 2**15 - 1
"""Completion rounds up to here are kept in 16 bits."""

_MOST_KEPT = 150_000_000
"""Partial schedules of all layers together: 12 bytes each with 64 requests, then 20."""


@dataclass
class Sweep:
    """A search for schedules below a target.

    What a schedule costs above the bound is Claim 11 of docs/configurations.md; what a partial
    one costs at least, so that it can be dropped, is Claim 14 there.

    Parameters
    ----------
    states, twins
        The requests, and for each the last one before it of the same shape that arrives no
        later, -1 if there is none: twins may be taken to start in their order.
    evaluation
        Prices, and the starts they leave.
    target
        Only schedules with a smaller total latency count.
    ahead
        Sees what is too dear, or less promising, some rounds earlier; for this target or more.
    threads
        Threads that share the work.

    Attributes
    ----------
    kept
        Partial schedules that the last search kept, of all rounds.
    """

    states: States
    twins: Integers
    evaluation: Evaluation
    target: int
    ahead: Ahead | None = None
    threads: int = 1
    kept: int = field(default=0, init=False)

    def all_of_them(
        self,
        most: int,
        should_stop: Callable[[], bool] = lambda: False,
        *,
        in_all: int = _MOST_KEPT,
    ) -> tuple[int, ...] | None:
        """Return the starts of a best schedule below the target, None if there is none.

        Raises
        ------
        TooWide
            If more than ``most`` partial schedules are left at one round, or ``in_all`` of all.
        Stopped
            If it was asked to stop.
        """
        return self._run(most, None, in_all, should_stop)

    def some_of_them(
        self, width: int, should_stop: Callable[[], bool] = lambda: False
    ) -> tuple[int, ...] | None:
        """Return the starts of a good schedule: each round keeps the most promising ones only.

        None proves nothing.

        Raises
        ------
        TooWide
            If too many are equally promising.
        Stopped
            If it was asked to stop.
        """
        return self._run(_CHILDREN * width, width, _MOST_KEPT, should_stop)

    def _run(
        self, most: int, width: int | None, in_all: int, should_stop: Callable[[], bool]
    ) -> tuple[int, ...] | None:
        evaluation = self.evaluation
        budget = (self.target - 1) * evaluation.denominator - evaluation.total
        if budget < 0:
            return None
        count = len(self.states.outputs)
        steps = _rounds(evaluation, self.states.arrivals, budget)
        latest = len(steps) + int(self.states.outputs.max())
        kind = np.int16 if latest <= _LAST_SHORT else np.int32
        nothing = np.zeros(1, dtype=np.int64)
        layer = Layer(np.zeros((1, count), kind), nothing, nothing, nothing.astype(np.int32))
        trail = [(layer.waiting(), layer.parents)]
        self.kept = 0
        for step in steps:
            if should_stop():
                raise Stopped
            layer = self._next(step, layer, most, width is not None, should_stop)
            far = width is None and self.ahead is not None
            layer = undominated(layer, self.states, step.now, self.threads, one_more=far)
            if width is not None and len(layer.spent) > width:
                layer = _most_promising(layer, step, width, self.ahead)
            if not len(layer.spent):
                return None
            self.kept += len(layer.spent)
            if self.kept > in_all:
                raise TooWide(f"more than {in_all:,} partial schedules in all")
            trail.append((layer.waiting(), layer.parents))
        return _starts(trail, int(layer.spent.argmin()), count)

    def _next(
        self,
        step: Round,
        layer: Layer,
        most: int,
        narrow: bool,
        should_stop: Callable[[], bool],
    ) -> Layer:
        """Return the next layer; if it would be too wide and may be narrower, its better part."""
        sight = BLIND if narrow or self.ahead is None else self.ahead.sight(step.now)
        while True:
            try:
                return next_layer(
                    self.states, self.twins, step, layer, most, should_stop, self.threads, sight
                )
            except TooWide:
                if not narrow:
                    raise
                lowest = int(_least_costs(layer, step).min())
                if step.budget <= lowest:
                    raise
                step = step._replace(budget=lowest + (step.budget - lowest) // 2)


def twins_of(instance: Instance) -> Integers:
    """Return for each request the last one before it of the same shape that arrives no later."""
    twins = np.full(len(instance), -1)
    for i, request in enumerate(instance):
        for j, other in enumerate(instance.requests[:i]):
            if other.shape == request.shape and other.arrival <= request.arrival:
                twins[i] = j
    return twins


def _rounds(evaluation: Evaluation, arrivals: Integers, budget: int) -> list[Round]:
    """Return the rounds up to the last one at which a better schedule may start anything.

    After the last priced time every round of waiting costs a round of latency.
    """
    late = evaluation.excesses[:, -1:]
    # The last excess is of the first start from T on, which an arrival may put off.
    first = np.maximum(0, arrivals[:, None] - (evaluation.excesses.shape[1] - 1))
    more = (budget - late) // evaluation.denominator + first
    waits = np.arange(max(0, int(more.max())) + 1) - first
    drawn = late + waits * evaluation.denominator
    drawn = np.where((waits >= 0) & (drawn <= budget), drawn, CLOSED)
    closed = np.full_like(late, CLOSED)
    excesses = np.concatenate((evaluation.excesses[:, :-1], drawn, closed), axis=1)
    later = np.minimum.accumulate(excesses[:, ::-1], axis=1)[:, ::-1]
    # Sums over all requests must not overflow.
    excesses, later = np.minimum(excesses, budget + 1), np.minimum(later, budget + 1)
    beyond = excesses.shape[1] - len(evaluation.largest)
    prices = np.pad(evaluation.prices, ((0, beyond), (0, 0)))
    largest = np.pad(evaluation.largest, (0, beyond)).tolist()
    return [
        Round(
            now,
            budget,
            np.ascontiguousarray(excesses[:, now]),
            np.ascontiguousarray(later[:, now + 1]),
            prices[now + 1],
            largest[now + 1],
        )
        for now in range(excesses.shape[1] - 1)
    ]


def _most_promising(layer: Layer, step: Round, width: int, ahead: Ahead | None) -> Layer:
    costs = _least_costs(layer, step, ahead)
    return layer.only(np.sort(np.argpartition(costs, width)[:width]))


def _least_costs(layer: Layer, step: Round, ahead: Ahead | None = None) -> Integers:
    """Return what schedules that complete each partial one spend at least."""
    costs = layer.spent + (layer.rows == WAITING) @ step.later
    return np.asarray(costs if ahead is None else costs + ahead.slacks(layer.rows, step.now))


def _starts(trail: list[tuple[Integers, Integers]], at: int, count: int) -> tuple[int, ...]:
    """Follow a complete schedule back to its starts."""
    starts = [0] * count
    for now in range(len(trail) - 1, 0, -1):
        (waiting, parents), (before, _) = trail[now], trail[now - 1]
        begun = before[parents[at]] & ~waiting[at]
        for i in members_of(begun, count):
            starts[i] = now - 1
        at = int(parents[at])
    return tuple(starts)
