"""The configuration bound as a method of its own, and as the first half of an exact search.

For thousands of requests in a small cache prices have few knots, and no start is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kvopt.bounds.configurations.ascent import Stage
from kvopt.bounds.configurations.evaluation import Evaluation
from kvopt.bounds.configurations.size import check_size
from kvopt.bounds.configurations.stages import Rising
from kvopt.bounds.configurations.states import Knots
from kvopt.errors import TooLarge
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.budget import Budget

_FINE = 64
"""Refinement at which all times are knots, for instances that can be proved."""
STAGES = (
    Stage(1, 0.06, 2e-3, 60),
    Stage(1, 0.02, 1e-3, 100),
    Stage(2, 0.01, 1e-3, 150),
    Stage(4, 0.006, 2e-4, 200),
    Stage(8, 0.006, 1e-4, 200),
    Stage(8, 0.003, 5e-5, 300),
    Stage(16, 0.003, 5e-5, 300),
    Stage(32, 0.002, 3e-5, 400),
    Stage(_FINE, 0.004, 5e-5, 600, window=40),
    Stage(_FINE, 0.002, 4e-5, 800, window=40),
    Stage(_FINE, 0.001, 2e-5, 800, window=40),
)
"""Stages of the climb: coarse and hot to fine and cold, then patient ones with all knots."""

_STAGES_AT_FEW_KNOTS = (
    Stage(1, 0.02, 1e-3, 100),
    Stage(2, 0.01, 1e-3, 100),
    Stage(4, 0.006, 4e-4, 150),
    Stage(4, 0.003, 2e-4, 300),
    Stage(8, 0.003, 1e-4, 300),
    Stage(8, 0.0015, 5e-5, 500),
    Stage(16, 0.0015, 5e-5, 500),
)
"""Stages that end before all times are knots."""


def offer_configuration_bound(
    search: Search,
    budget: Budget | None = None,
    *,
    few_knots: bool = False,
    least_gain: float = 0.0,
) -> None:
    """Offer better and better bounds, until they hardly rise or the search has to stop.

    The search needs a schedule: it sets the scale, and the target by which starts are removed.

    Parameters
    ----------
    search
        The problem, and when to stop.
    budget
        By default that of the search.
    few_knots
        Whether prices have few knots; they also have if there are too many starts.
    least_gain
        Share of the bound that two stages together must add, or it ends with a note.

    Raises
    ------
    TooLarge
        If states and times take too much memory.
    """
    assert search.schedule is not None
    if not few_knots:
        try:
            check_size(search.instance, search.schedule.makespan)
        except TooLarge:
            few_knots = True
    rise: Callable[..., Iterator[object]] = rising_large_bounds if few_knots else rising_bounds
    values: list[int] = []
    for _ in rise(search, budget or search.budget):
        assert search.checked is not None
        values.append(search.checked.value)
        if len(values) > 2 and values[-1] - values[-3] < least_gain * values[-1]:
            search.note(
                f"configuration: ended after {len(values)} stages, since two of them together "
                f"raised the bound by less than {least_gain:.1%}; with a time limit it goes on"
            )
            return


def rising_bounds(
    search: Search,
    budget: Budget,
    *,
    rule_out: bool = True,
    patience: float = 1.0,
) -> Iterator[tuple[Rising, Evaluation]]:
    """Climb stage by stage; offer each bound, yield its proof, then remove starts.

    Patient stages end after that share of the time, so that callers can use the rest.
    """
    assert search.schedule is not None
    patient = budget.part(patience)
    rising = Rising(search.instance, search.schedule.makespan, search.limits.threads, budget)
    for stage in STAGES:
        if stage.window > STAGES[0].window:
            rising.budget = patient
        if rising.budget.over():
            return
        evaluation = rising.climb(stage, search.schedule.objective)
        value, proof = rising.proved(evaluation, search.schedule.objective)
        search.offer_checked(value, "configuration", proof)
        if not search.budget.over():
            yield rising, evaluation
        if rule_out and not search.budget.over():
            rising.rule_out(evaluation, search.schedule.objective)


def rising_large_bounds(search: Search, budget: Budget) -> Iterator[Knots]:
    """Climb stage by stage; offer each bound, yield the knots of the prices that prove it.

    Raises
    ------
    TooLarge
        If states and times take too much memory, or too long to check.
    """
    assert search.schedule is not None
    last = search.schedule.makespan
    rising = Rising(search.instance, last, search.limits.threads, budget, few_knots=True)
    for stage in _STAGES_AT_FEW_KNOTS:
        if budget.over():
            return
        objective = search.schedule.objective
        value = rising.climb_with_all_starts(stage, objective)
        search.offer_checked(value, "configuration", rising.proof(objective))
        yield rising.knots
