"""From fluid prices to the configuration bound, stage by stage, ruling out starts on the way.

A stage has knots and a temperature, climbs until that hardly pays, and has its best prices
evaluated in integers.  Starts that no schedule better than the best one can have are ruled out
then, which makes room: fewer requests can be in a state, so fewer configurations are left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice

import numpy as np

from kvopt.bounds.fluid import fluid_prices
from kvopt.configurations.ascent import Evaluator, climb
from kvopt.configurations.evaluation import Evaluation, denominator_for, evaluate, rounded
from kvopt.configurations.size import check_size
from kvopt.configurations.states import Flags, Floats, Integers, Knots, States
from kvopt.model.instance import Instance
from kvopt.search.params import DEFAULT, ConfigurationParams, ConfigurationStage
from kvopt.search.proofs import ConfigurationProof, StatePrices


class Rising:
    """Prices of states that rise, and the starts they leave.

    Parameters
    ----------
    instance
        The problem; not empty.
    last
        The last time at which states have prices: the makespan of a good schedule.
    threads
        Threads that share the work.
    should_stop
        Asked after every step.
    params
        Knots, and when to rule out.

    Attributes
    ----------
    states
        What is priced.
    starts
        Starts that are left, see `States.all_starts`.

    Raises
    ------
    TooLarge
        If states and times are more than memory should hold.
    """

    def __init__(
        self,
        instance: Instance,
        last: int,
        threads: int = 1,
        should_stop: Callable[[], bool] = lambda: False,
        params: ConfigurationParams = DEFAULT.configuration,
    ) -> None:
        check_size(instance, last)
        self.states = States.of(instance)
        self.starts: Flags = self.states.all_starts(last)
        self._last, self._threads, self._should_stop = last, threads, should_stop
        self._params = params
        self._knots = Knots.every(self._spacing(), last)
        tokens = np.zeros(last)
        fluid = fluid_prices(instance)[:last]
        tokens[: len(fluid)] = fluid
        self._prices: Floats = tokens[self._knots.times - 1, None] * self.states.holds
        self._stages: list[StatePrices] = []
        self._latest: StatePrices | None = None

    def climb(self, stage: ConfigurationStage, value: int) -> Evaluation:
        """Go through a stage; the value of a good schedule sets the scale."""
        knots = Knots.every(self._spacing(stage.refinement), self._last)
        prices = self._knots.moved_to(knots, self._prices)
        tau = stage.heat * value / self._last
        evaluator = Evaluator(self.states, knots, self.starts, tau, self._threads)
        best = at = evaluator.begin(prices)
        before = at.smooth
        for count, there in enumerate(islice(climb(evaluator, at), stage.steps), 1):
            at = there
            if at.hard > best.hard:
                best = at
            if self._should_stop():
                break
            if count % stage.window == 0:
                if at.smooth - before < stage.gain * value:
                    break
                before = at.smooth
        self._knots, self._prices = knots, at.prices
        denominator = denominator_for(self.states, knots, best.prices)
        numerators = rounded(best.prices, denominator)
        self._latest = state_prices(self.states, knots, numerators, denominator)
        return evaluate(self.states, knots, self.starts, numerators, denominator)

    def rule_out(self, evaluation: Evaluation, target: int) -> None:
        """Rule out the starts that no schedule below the target can have, if they are many.

        Claim 12 of docs/configurations.md.  Targets must not rise from one call to the next.
        """
        assert self._latest is not None
        budget = (target - 1) * evaluation.denominator - evaluation.total
        left = evaluation.reduced_costs <= budget
        if left.sum() <= self._params.worth_ruling_out * self.starts.sum():
            self.starts = left
            self._stages.append(self._latest)

    def proof(self, target: int, *, searched: bool = False, kept: int = 0) -> ConfigurationProof:
        """Return the proof of the last evaluation, or of a search with it below the target.

        After starts were ruled out it proves no more than the target: Claim 13 of
        docs/configurations.md.
        """
        assert self._latest is not None
        stages = [*self._stages, self._latest]
        if self._stages and self._stages[-1] is self._latest:
            stages.pop()  # nothing has changed since
        needs_target = searched or len(stages) > 1 or bool(self._stages)
        claimed = target if needs_target else None
        return ConfigurationProof(tuple(stages), claimed, searched, kept)

    @property
    def has_ruled_out(self) -> bool:
        """Whether bounds from now on speak of schedules below a target only."""
        return bool(self._stages)

    def _spacing(self, refinement: int = 1) -> int:
        coarsest = 1 << int(math.log2(max(1.0, self._last / self._params.first_knots)))
        return max(1, coarsest // refinement)


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
