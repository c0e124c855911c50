"""Climb from fluid prices to the configuration bound in stages, and remove starts.

A stage has knots and a temperature.  It climbs until gains are small, and evaluates its best prices
in integers.  Then it removes starts that no better schedule can have.  This raises later bounds:
fewer requests can be in a state, so fewer configurations remain.
"""

from __future__ import annotations

import math

import numpy as np

from kvopt.bounds.configurations.ascent import Evaluator, Stage, climb_stage
from kvopt.bounds.configurations.evaluation import (
    Evaluation,
    denominator_for,
    evaluate,
    rounded,
    total_of,
)
from kvopt.bounds.configurations.size import check_large, check_size
from kvopt.bounds.configurations.states import Knots, States
from kvopt.bounds.fluid import fluid_prices
from kvopt.incumbent.proofs import ConfigurationProof, StatePrices
from kvopt.kernels.budget import Budget
from kvopt.problem.arrays import Flags, Floats, Integers
from kvopt.problem.instance import Instance

_WORTH_RULING_OUT = 0.9
"""A stage removes starts if at most this share remains: each removal lengthens the proof."""
_FIRST_KNOTS, _FEW_KNOTS = 24, 8
"""Fewest knots of the first stage, and for thousands of requests: more are slower and interpolate
better."""
_LOOKS = 8
"""Evaluated completions from one knot to the next."""


class Rising:
    """Prices of states that climb, and the remaining starts.

    Parameters
    ----------
    instance
        The problem; not empty.
    last
        The last time at which states have prices: the makespan of a good schedule.
    threads
        Threads that share the work.
    budget
        Asked after every step; it may be changed between stages.
    few_knots
        Whether prices have few knots, for thousands of requests: then no start is removed, so
        no table of all starts at all times is needed.

    Attributes
    ----------
    states, knots
        The states that have prices, and their times.
    starts
        The remaining starts, see `States.all_starts`.

    Raises
    ------
    TooLarge
        If states and times take too much memory.
    """

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
        self._last, self._threads, self.budget = last, threads, budget or Budget()
        # A power of two, for so many knots at least.
        least = _FEW_KNOTS if few_knots else _FIRST_KNOTS
        self._coarsest = 1 << int(math.log2(max(1.0, last / least)))
        self.knots = Knots.every(self._coarsest, last)
        self._prices = _prices_of_tokens(instance, self.states, self.knots)
        self._stages: list[StatePrices] = []
        self._latest: StatePrices | None = None

    def climb(self, stage: Stage, value: int) -> Evaluation:
        """Run a stage; the value of a good schedule sets the scale."""
        prices = self._climbed(stage, value)
        return evaluate(self.states, self.knots, self.starts, *prices)

    def climb_with_all_starts(self, stage: Stage, value: int) -> int:
        """Run a stage, and return the bound of its prices over all starts."""
        return self._with_all_starts(*self._climbed(stage, value))

    def _climbed(self, stage: Stage, value: int) -> tuple[Integers, int]:
        """Return numerators of the best prices of a stage, and their denominator."""
        apart = max(1, self._coarsest // stage.refinement)
        knots = Knots.every(apart, self._last)
        prices = self.knots.moved_to(knots, self._prices)
        self.knots, states, tau = knots, self.states, stage.heat * value / self._last
        copies = knots.copies_by_arrival(states) if self._few_knots else None
        looks = max(1, apart // _LOOKS)
        evaluator = Evaluator(states, knots, self.starts, tau, self._threads, copies, looks)
        best, self._prices = climb_stage(evaluator, prices, stage, value, self.budget)
        denominator = denominator_for(states, knots, best)
        numerators = rounded(best, denominator)
        self._latest = state_prices(states, knots, numerators, denominator)
        return numerators, denominator

    def _with_all_starts(self, numerators: Integers, denominator: int) -> int:
        """Return the bound of prices, with all starts."""
        copies = self.knots.copies_by_arrival(self.states)
        total = total_of(self.states, self.knots, copies, numerators, denominator)
        return -(-total // denominator)

    def rule_out(self, evaluation: Evaluation, target: int) -> None:
        """Remove the starts that no schedule below the target can have, if they are many.

        Claim 3.8 of docs/theory.  Targets must not rise from one call to the next.
        """
        assert self._latest is not None
        budget = (target - 1) * evaluation.denominator - evaluation.total
        left = evaluation.reduced_costs <= budget
        if left.sum() <= _WORTH_RULING_OUT * self.starts.sum():
            self.starts = left
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
        numerators = np.array(self._latest.numerators)
        alone = self._with_all_starts(numerators, self._latest.denominator)
        if alone >= value:
            return alone, ConfigurationProof((self._latest,))
        return value, self.proof(target)

    def proof(
        self,
        target: int,
        *,
        searched: bool = False,
        kept: tuple[int, ...] = (),
        cuts: tuple[int, ...] = (),
    ) -> ConfigurationProof:
        """Return the proof of the last evaluation, or of a search with it below the target."""
        assert self._latest is not None
        stages = [*self._stages, self._latest]
        if self._stages and self._stages[-1] is self._latest:
            stages.pop()  # nothing has changed since
        claimed = target if searched or self._stages else None
        return ConfigurationProof(tuple(stages), claimed, searched, kept, cuts)


def _prices_of_tokens(instance: Instance, states: States, knots: Knots) -> Floats:
    """Return first prices: the price of the tokens of a state in a fluid."""
    tokens = np.zeros(knots.last)
    fluid = fluid_prices(instance)[: knots.last]
    tokens[: len(fluid)] = fluid
    return np.asarray(tokens[knots.times - 1, None] * states.holds)


def state_prices(
    states: States, knots: Knots, numerators: Integers, denominator: int
) -> StatePrices:
    """Return prices in the form of a proof."""
    peaks = {}
    for hold, left in zip(states.holds.tolist(), states.lefts.tolist(), strict=True):
        peaks[hold + left] = left + 1
    return StatePrices(
        denominator,
        tuple(peaks.items()),
        tuple(knots.times.tolist()),
        tuple(map(tuple, numerators.tolist())),
    )
