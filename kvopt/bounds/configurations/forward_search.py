"""An exhaustive search forward in time, over all schedules with the remaining starts.

With integer prices, bound L and largest sums R_t, D times the latency of a schedule is

    L + sum_i rc_i(k_i) + sum_t (R_t - F_t(C_t)),

with the reduced costs rc of its starts and its configurations C_t.  No term is negative.  A label,
a partial schedule, is dropped when its terms and the least reduced costs of waiting requests exceed
the gap, or when another label dominates it (`kvopt.bounds.configurations.dominance`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kvopt.bounds.configurations.cost_to_go import CostToGo
from kvopt.bounds.configurations.dominance import undominated
from kvopt.bounds.configurations.evaluation import FORBIDDEN, Evaluation
from kvopt.bounds.configurations.expand import TooWide, fill_rest, next_layer
from kvopt.bounds.configurations.labels import NO_LOOKAHEAD, WAITING, Layer, Round, members_of
from kvopt.bounds.configurations.lookahead_tables import Lookahead
from kvopt.bounds.configurations.states import States
from kvopt.errors import Stopped
from kvopt.kernels.budget import Budget
from kvopt.problem.arrays import Integers
from kvopt.problem.instance import Instance

MOST_REQUESTS = 128
"""Limit of requests for a forward search; with more it needs too much memory."""

CHILDREN = 100
"""Largest number of children in the beam search, for each label of its width."""
_HALVINGS = 12
"""How often the range of a smaller gap is halved, until a beam has no more labels than that."""

_LABELS_IN_ALL = 150_000_000
"""Label limit of all layers together, unless one of them may be large."""
FULL_LAYERS = 12
"""Limit of labels in all layers together, in layers of the largest size."""


@dataclass
class ForwardSearch:
    """A search for schedules below a target.

    The cost of a schedule above the bound is Claim 3.7 of docs/theory, and the least cost
    of a label, by which it is dropped, is Claim 3.10 there.

    Parameters
    ----------
    states, predecessors
        The requests, and for each its predecessor: the last request before it of the same shape
        that arrives no later, -1 if none does.  These may be taken to start in their order.
    evaluation
        Prices, and the remaining starts.
    target
        Only schedules with a smaller total latency count.
    lookahead
        Bounds on the slack of the next rounds, for this target or a larger one.
    cost_to_go
        Bounds on the cost of all later rounds, for this target or a larger one.
    threads
        Threads that share the work.
    last_short
        Last completion round up to which labels have 16 bits for each request, then 32.

    Attributes
    ----------
    kept
        Labels that the last search kept, for each round.
    """

    states: States
    predecessors: Integers
    evaluation: Evaluation
    target: int
    lookahead: Lookahead | None = None
    cost_to_go: CostToGo | None = None
    threads: int = 1
    last_short: int = 2**15 - 1
    kept: list[int] = field(default_factory=list, init=False)

    def search_exhaustively(
        self, label_limit: int, limit: Budget | None = None, *, in_all: int | None = None
    ) -> tuple[int, ...] | None:
        """Return the starts of a best schedule below the target, or None.

        It raises `TooWide` if more than ``label_limit`` labels remain at one round, or ``in_all``
        in all rounds, and `Stopped` when its time is over.
        """
        if in_all is None:
            in_all = max(_LABELS_IN_ALL, FULL_LAYERS * label_limit)
        return self._run(label_limit, None, in_all, limit or Budget())

    def search_with_beam(self, width: int, limit: Budget | None = None) -> tuple[int, ...] | None:
        """Return the starts of a good schedule: each round keeps the ``width`` best labels only.

        A result of None proves nothing.  It raises `TooWide` if too many are equally promising, and
        `Stopped` when its time is over.
        """
        return self._run(CHILDREN * width, width, _LABELS_IN_ALL, limit or Budget())

    def _run(
        self, label_limit: int, width: int | None, in_all: int, limit: Budget
    ) -> tuple[int, ...] | None:
        """Extend the empty label round by round; a width makes it a beam, which proves nothing."""
        evaluation = self.evaluation
        gap = (self.target - 1) * evaluation.denominator - evaluation.total
        if gap < 0:
            return None
        count = len(self.states.outputs)
        steps = _rounds(evaluation, self.states.arrivals, self.predecessors, gap)
        latest = len(steps) + int(self.states.outputs.max())
        kind = np.int16 if latest <= self.last_short else np.int32
        nothing = np.zeros(1, dtype=np.int64)
        layer = Layer(np.zeros((1, count), kind), nothing, nothing, nothing.astype(np.int32))
        trail = [(layer.waiting(), layer.parents)]
        self.kept = []
        for step in steps:
            if limit.over():
                raise Stopped
            # A beam ranks labels by the look-ahead, and does not drop them by it.
            if self.cost_to_go is not None:
                step = step._replace(cost_to_go=self.cost_to_go.after(step.now))
            if self.lookahead is not None and width is None:
                step = step._replace(horizon=self.lookahead.after(step.now))
            layer = self._extended(layer, step, label_limit, limit, is_beam=width is not None)
            one_more = width is None
            layer = undominated(layer, self.states, step.now, self.threads, one_more=one_more)
            if width is not None and len(layer.spent) > width:
                layer = self._best_labels(layer, step, width)
            if not len(layer.spent):
                return None
            self.kept.append(len(layer.spent))
            if sum(self.kept) > in_all:
                raise TooWide(f"more than {in_all:,} labels in all")
            trail.append((layer.waiting(), layer.parents))
        return _starts(trail, int(layer.spent.argmin()), count)

    def _extended(
        self, layer: Layer, step: Round, label_limit: int, limit: Budget, *, is_beam: bool
    ) -> Layer:
        """Return all extensions within the gap, of a beam the better ones if they are too many.

        With bounds on the cost to go even the best ones may cost nearly the gap.  So a smaller gap
        grows again where it leaves none.
        """
        try:
            return next_layer(self.states, step, layer, label_limit, limit, self.threads)
        except TooWide:
            if not is_beam:
                raise
        # No label is within the one gap, too many are within the other.
        lowest = int((layer.spent + (layer.labels == WAITING) @ step.later).min()) - 1
        widest, found = step.gap, None
        finest = max(1, (widest - lowest) >> _HALVINGS)
        while widest - lowest > finest:
            if limit.over():
                raise Stopped
            step = step._replace(gap=lowest + (widest - lowest) // 2)
            try:
                found = next_layer(self.states, step, layer, label_limit, limit, self.threads)
            except TooWide:
                widest = step.gap
                continue
            if len(found.spent):
                return found
            lowest = step.gap
        if found is None:
            raise TooWide(f"more than {label_limit:,} labels cost the same at round {step.now}")
        return found

    def _best_labels(self, layer: Layer, step: Round, width: int) -> Layer:
        """Return the labels whose best extensions spend least, by the lower bounds on the rest."""
        horizon = NO_LOOKAHEAD if self.lookahead is None else self.lookahead.after(step.now)
        rest = np.zeros(len(layer.labels), dtype=np.int64)
        fill_rest(self.states, step, layer.labels, horizon, rest)
        return layer.only(np.sort(np.argpartition(layer.spent + rest, width)[:width]))


def predecessors_of(instance: Instance) -> Integers:
    """Return for each request the last one before it of the same shape that arrives no later."""
    predecessors = np.full(len(instance), -1)
    for i, request in enumerate(instance):
        for j, other in enumerate(instance.requests[:i]):
            if other.shape == request.shape and other.arrival <= request.arrival:
                predecessors[i] = j
    return predecessors


def _rounds(
    evaluation: Evaluation, arrivals: Integers, predecessors: Integers, gap: int
) -> list[Round]:
    """Return the rounds up to the last one at which a better schedule may start anything.

    After the last priced time every round of waiting costs a round of latency.
    """
    late = evaluation.reduced_costs[:, -1:]
    # The last reduced cost is of the first start from T on, which an arrival may put off.
    first = np.maximum(0, arrivals[:, None] - (evaluation.reduced_costs.shape[1] - 1))
    more = (gap - late) // evaluation.denominator + first
    waits = np.arange(max(0, int(more.max())) + 1) - first
    drawn = late + waits * evaluation.denominator
    drawn = np.where((waits >= 0) & (drawn <= gap), drawn, FORBIDDEN)
    closed = np.full_like(late, FORBIDDEN)
    reduced_costs = np.concatenate((evaluation.reduced_costs[:, :-1], drawn, closed), axis=1)
    later = np.minimum.accumulate(reduced_costs[:, ::-1], axis=1)[:, ::-1]
    # Sums over all requests must not overflow.
    reduced_costs, later = np.minimum(reduced_costs, gap + 1), np.minimum(later, gap + 1)
    beyond = reduced_costs.shape[1] - len(evaluation.largest)
    prices = np.pad(evaluation.prices, ((0, beyond), (0, 0)))
    largest = np.pad(evaluation.largest, (0, beyond)).tolist()
    return [
        Round(
            now,
            gap,
            np.ascontiguousarray(reduced_costs[:, now]),
            np.ascontiguousarray(later[:, now + 1]),
            prices[now + 1],
            largest[now + 1],
            predecessors,
        )
        for now in range(reduced_costs.shape[1] - 1)
    ]


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
