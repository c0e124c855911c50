"""Raise the configuration bound from fluid prices in stages, and fix starts by reduced costs.

A stage has knots and a temperature.  It ascends until gains are small, and evaluates the best
prices in integers.  Then it removes starts that no better schedule can have.  This raises later
bounds: fewer requests can be in a state, so fewer configurations remain.  For thousands of requests
in a small cache prices have few knots, and no start is removed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from copy import copy

import numpy as np

from kvopt.bounds.configurations.ascent import AscentStage, Evaluator, ascend
from kvopt.bounds.configurations.evaluation import (
    Evaluation,
    denominator_for,
    evaluate,
    rounded,
    total_of,
)
from kvopt.bounds.configurations.size import check_large, check_size
from kvopt.bounds.configurations.states import Knots, Shape, States
from kvopt.bounds.fluid import fluid_prices
from kvopt.incumbent.proofs import CheckedBound, ConfigurationProof, StatePrices
from kvopt.kernels.budget import Budget
from kvopt.problem.arrays import Flags, Floats, Integers
from kvopt.problem.instance import Instance

_WORTH_FIXING = 0.9
"""A stage removes starts if at most this share remains: each removal lengthens the proof."""
_FIRST_KNOTS, _FEW_KNOTS = 24, 8
"""Fewest knots of the first stage, and for thousands of requests: more are slower and interpolate
better."""
_COMPLETIONS_PER_KNOT = 8
"""Evaluated completions from one knot to the next."""

_FINE = 64
"""Refinement at which all times are knots, for instances that can be proved."""
STAGES = (
    AscentStage(1, 0.06, 2e-3, 60),
    AscentStage(1, 0.02, 1e-3, 100),
    AscentStage(2, 0.01, 1e-3, 150),
    AscentStage(2, 0.006, 3e-4, 200),
    AscentStage(4, 0.006, 2e-4, 200),
    AscentStage(8, 0.006, 1e-4, 200),
    AscentStage(8, 0.003, 5e-5, 300),
    AscentStage(16, 0.003, 5e-5, 300),
    AscentStage(32, 0.002, 3e-5, 400),
    AscentStage(_FINE, 0.004, 5e-5, 600, window=40),
    AscentStage(_FINE, 0.002, 4e-5, 800, window=40),
    AscentStage(_FINE, 0.001, 2e-5, 800, window=40),
)
"""Stages of the ascent: coarse and hot to fine and cold, then patient ones with all knots."""

_STAGES_AT_FEW_KNOTS = (
    AscentStage(1, 0.02, 1e-3, 100),
    AscentStage(2, 0.01, 1e-3, 100),
    AscentStage(4, 0.006, 4e-4, 150),
    AscentStage(4, 0.003, 2e-4, 300),
    AscentStage(8, 0.003, 1e-4, 300),
    AscentStage(8, 0.0015, 5e-5, 500),
    AscentStage(16, 0.0015, 5e-5, 500),
)
"""Stages that end before all times are knots."""


class DualAscent:
    """Prices of states that rise stage by stage, and the remaining starts.

    It raises `TooLarge` if states and times take too much memory, or too long to check.

    Parameters
    ----------
    instance
        The problem; not empty.
    last
        The last time at which states have prices: the makespan of a good schedule.
    threads
        Threads that share the work.
    budget
        Its end ends a stage after any step.
    few_knots
        Whether prices have few knots, for thousands of requests: then no start is removed, so
        no table of all starts at all times is needed.

    Attributes
    ----------
    states, knots
        The states that have prices, and their times.
    starts
        The remaining starts, see `States.all_starts`.
    evaluation
        That of the last stage of `bounds`, none with few knots.
    """

    evaluation: Evaluation

    def __init__(
        self,
        instance: Instance,
        last: int,
        threads: int = 1,
        budget: Budget | None = None,
        *,
        few_knots: bool = False,
    ) -> None:
        (check_large if few_knots else check_size)(instance, last)
        self.states, self._few_knots = States.of(instance), few_knots
        self.starts: Flags = self.states.all_starts(last)
        self._last, self._threads, self._budget = last, threads, budget or Budget()
        # A power of two, for so many knots at least.
        fewest = _FEW_KNOTS if few_knots else _FIRST_KNOTS
        self._coarsest = 1 << int(math.log2(max(1.0, last / fewest)))
        self.knots = Knots.every(self._coarsest, last)
        # First prices are those of the tokens of a state in a fluid.
        tokens, fluid = np.zeros(last), fluid_prices(instance)[:last]
        tokens[: len(fluid)] = fluid
        self._prices: Floats = tokens[self.knots.times - 1, None] * self.states.holds
        self._stages: list[StatePrices] = []
        self._latest: StatePrices | None = None

    def bounds(
        self, target: Callable[[], int], *, fixes: bool = True, patience: float = 1.0
    ) -> Iterator[CheckedBound]:
        """Ascend stage by stage; yield each bound, then remove starts.

        The target is the total latency of the best schedule, by which starts are removed.  Stages
        end after that share of the time, so that callers can use the rest.
        """
        whole = self._budget
        self._budget = whole.part(patience)
        for stage in _STAGES_AT_FEW_KNOTS if self._few_knots else STAGES:
            if self._budget.over():
                return
            if self._few_knots:
                numerators, unit = self._ascended(stage, target())
                value = -(-total_of(self.states, self.knots, numerators, unit) // unit)
                proof = self.proof(target())
            else:
                self.evaluation = self.ascend(stage, target())
                value, proof = self.proved(self.evaluation, target())
            yield CheckedBound(value, "configuration", proof)
            if fixes and not self._few_knots and not whole.over():
                self.fix_starts(self.evaluation, target())

    def ascend(self, stage: AscentStage, value: int) -> Evaluation:
        """Run a stage; the value of a good schedule sets the scale."""
        prices = self._ascended(stage, value)
        return evaluate(self.states, self.knots, self.starts, *prices)

    def _ascended(self, stage: AscentStage, value: int) -> tuple[Integers, int]:
        """Return numerators of the best prices of a stage, and their denominator."""
        apart = max(1, self._coarsest // stage.refinement)
        knots = Knots.every(apart, self._last)
        prices = self.knots.moved_to(knots, self._prices)
        self.knots, states, tau = knots, self.states, stage.heat * value / self._last
        copies = knots.copies_by_arrival(states) if self._few_knots else None
        spacing = max(1, apart // _COMPLETIONS_PER_KNOT)
        evaluator = Evaluator(states, knots, self.starts, tau, self._threads, copies, spacing)
        best, self._prices = ascend(evaluator, prices, stage, value, self._budget)
        denominator = denominator_for(states, knots, best)
        numerators = rounded(best, denominator)
        # Of each peak the last state counts, since rounds to go ascend.
        peaks = (states.holds + states.remaining).tolist()
        pairs = zip(peaks, states.remaining.tolist(), strict=True)
        self._latest = StatePrices(
            denominator,
            tuple({peak: left + 1 for peak, left in pairs}.items()),
            tuple(knots.times.tolist()),
            tuple(map(tuple, numerators.tolist())),
        )
        return numerators, denominator

    def with_entry_prices(self, rises: Mapping[Shape, float]) -> DualAscent:
        """Return a copy whose least cost of each shape is so many rounds higher, if starts allow.

        The first state of a request gets dearer where a start costs less than that.  So the bound
        of the prices falls, and cost-to-go bounds, which depend on least costs alone, may rise.
        All times become knots.
        """
        assert self._latest is not None
        states, evaluation, knots = self.states, self.evaluation, Knots.every(1, self._last)
        unit, numerators = evaluation.denominator, evaluation.prices[1:].copy()
        shapes = list(zip(states.peaks - states.outputs, states.outputs, strict=True))
        for shape, rounds in rises.items():
            i = shapes.index(shape)
            lacking = int(rounds * unit) - evaluation.reduced_costs[i, :-1]
            numerators[:, states.firsts[i] + states.outputs[i] - 1] += np.maximum(lacking, 0)
        other = copy(self)
        rows = tuple(map(tuple, numerators.tolist()))
        other._latest = StatePrices(unit, self._latest.peaks, tuple(knots.times.tolist()), rows)
        other.evaluation = evaluate(states, knots, self.starts, numerators, unit)
        return other

    def fix_starts(self, evaluation: Evaluation, target: int) -> None:
        """Remove the starts that no schedule below the target can have, if they are many.

        Claim 3.8 of docs/theory.  Targets must not rise from one call to the next.
        """
        assert self._latest is not None
        gap = (target - 1) * evaluation.denominator - evaluation.total
        remaining = evaluation.reduced_costs <= gap
        if remaining.sum() <= _WORTH_FIXING * self.starts.sum():
            self.starts = remaining
            self._stages.append(self._latest)

    def proved(self, evaluation: Evaluation, target: int) -> tuple[int, ConfigurationProof]:
        """Return the bound of the last evaluation, and its proof.

        After removals it is a bound on schedules below the target, and at most the
        target itself: Claim 3.9 of docs/theory.  Mostly the last prices give as much
        with all starts.  Then they are the whole proof, and no target is needed.
        """
        if not self._stages:
            return evaluation.bound, self.proof(target)
        assert self._latest is not None
        value = min(evaluation.bound, target)
        numerators, unit = np.array(self._latest.numerators), self._latest.denominator
        alone = -(-total_of(self.states, self.knots, numerators, unit) // unit)
        if alone >= value:
            return alone, ConfigurationProof((self._latest,))
        return value, self.proof(target)

    def proof(
        self, target: int, kept: tuple[int, ...] | None = None, cuts: tuple[int, ...] = ()
    ) -> ConfigurationProof:
        """Return the proof of the last evaluation, or of a search that kept so many labels."""
        assert self._latest is not None
        stages = [*self._stages, self._latest]
        if self._stages and self._stages[-1] is self._latest:
            stages.pop()  # nothing has changed since
        claimed = None if kept is None and not self._stages else target
        return ConfigurationProof(tuple(stages), claimed, kept is not None, kept or (), cuts)
