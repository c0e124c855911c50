"""The configuration bound of thousands of requests in a small cache.

There prices have few knots, and what steers them looks at few completions.  No start is ruled
out, so nothing has to be known of all starts at all times, neither here nor by a checker.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from kvopt.bounds.configurations.ascent import Evaluator, Stage, climb_stage
from kvopt.bounds.configurations.evaluation import denominator_for, rounded, total_of
from kvopt.bounds.configurations.size import check_large
from kvopt.bounds.configurations.stages import looked_at, prices_of_tokens, spacing, state_prices
from kvopt.bounds.configurations.states import Knots, States
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.proofs import ConfigurationProof
from kvopt.kernels.compile_clock import working_time

_STAGES = (
    Stage(1, 0.02, 1e-3, 100),
    Stage(2, 0.01, 1e-3, 100),
    Stage(4, 0.006, 4e-4, 150),
    Stage(4, 0.003, 2e-4, 300),
    Stage(8, 0.003, 1e-4, 300),
    Stage(8, 0.0015, 5e-5, 500),
    Stage(16, 0.0015, 5e-5, 500),
)
"""Stages of the climb, which ends before all times are knots."""


def rising_large_bounds(search: Search, time_limit: float = math.inf) -> Iterator[Knots]:
    """Climb stage by stage; offer each bound, yield the knots of the prices that prove it.

    Raises
    ------
    TooLarge
        If states and times are more than memory should hold, or than a checker goes through.
    """
    assert search.schedule is not None
    end = working_time() + min(time_limit, search.remaining)

    def is_over() -> bool:
        return search.should_stop() or working_time() >= end

    instance, last = search.instance, search.schedule.makespan
    check_large(instance, last)
    params, states = search.params.configuration, States.of(instance)
    starts = states.all_starts(last)
    known = Knots.every(spacing(last, params.few_knots), last)
    prices = prices_of_tokens(instance, states, known)
    for stage in _STAGES[: params.most_stages]:
        if is_over():
            return
        value = search.schedule.objective
        apart = spacing(last, params.few_knots, stage.refinement)
        knots = Knots.every(apart, last)
        prices = known.moved_to(knots, prices)
        copies = knots.copies_by_arrival(states)
        evaluator = Evaluator(
            states,
            knots,
            starts,
            stage.heat * value / last,
            search.threads,
            copies,
            looked_at(apart),
        )
        best, prices = climb_stage(evaluator, prices, stage, value, is_over)
        known = knots
        denominator = denominator_for(states, knots, best)
        numerators = rounded(best, denominator)
        total = total_of(states, knots, copies, numerators, denominator)
        proof = ConfigurationProof((state_prices(states, knots, numerators, denominator),))
        search.offer_checked(-(-total // denominator), "configuration", proof)
        yield knots
