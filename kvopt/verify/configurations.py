"""Evaluate proofs by stages of prices of configurations, and searches under them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvopt.verify import definitions
from kvopt.verify.pairs import paired
from kvopt.verify.prices import check_prices, reach
from kvopt.verify.problem import Problem
from kvopt.verify.search import Search
from kvopt.verify.stages import Stage, StateStage, TokenStage
from kvopt.verify.work import Invalid, Prepared, Work

# A request with h tokens now and r rounds to go is in the *state* (h, r); h + r, its peak, never
# changes.  At time t a state costs F_t(h, r) >= 0, and R_t is at least the sum of the costs of all
# states that a schedule can have at t.  Times a denominator D, the cost of a start k is
#
#     D (k + o - a) + sum_{g=1..o} F_{k+g}(s + g, o - g).
#
# Let L = sum_i (least cost of i) - sum_t R_t, and *reduced cost* be cost - least.  Then
#
#     D (total latency) - L  =  sum_i (reduced cost of i) + sum_t (R_t - F_t of what is active),
#
# with no negative term on the right.  (Each worker of a fleet has states of its own, so R_t is
# that of one worker times their number.)  So no total latency is below L / D.  A schedule below
# the *target* has at most the *budget* (target - 1) D - L on the right: it has no start of more
# reduced cost.  Later stages need to hold only for schedules with the remaining starts.
# Each request keeps its cheapest start, whose reduced cost is 0.


def by_configurations(problem: Problem, proof: dict[str, Any], work: Work) -> Prepared:
    """Prepare the value of stages of prices, one after the other.

    The estimate ignores remaining copies of states, and a search.
    """
    if proof["kind"] != "search":
        stages = _stages(problem, proof, work)
        return sum(stage.steps() for stage in stages), lambda: _value(problem, proof, stages, work)
    check_prices(proof)
    early = min((request.arrival for request in problem.requests), default=0)
    steps = (200 * len(problem.requests) + 2000) * max(0, reach(proof)[1] - early)
    return steps, lambda: _value(problem, proof, [TokenStage(problem, proof, work)], work)


def _value(
    problem: Problem, proof: dict[str, Any], stages: Sequence[Stage], work: Work
) -> tuple[int, str]:
    """Return the value of stages of prices, and a description.

    Without a target no start is removed, so costs of one peak at a time suffice.
    """
    target, cuts, searched = proof["target"], proof.get("cuts", ()), proof.get("searched", True)
    if searched and problem.used > 1:
        raise Invalid("lower: a search is of one worker")
    if cuts and not searched:
        raise Invalid("lower: cuts are those of a search")
    requests, last, times, how = stages[0].requests, stages[0].last, 0, "prices"
    starts: Sequence[Sequence[int]]
    # From the last priced time on a start pays nothing: the first of those represents all.
    starts = [range(request.arrival, max(request.arrival, last) + 1) for request in requests]
    for used, stage in enumerate(stages, 1):
        if isinstance(stage, StateStage):
            times += len(stage.times)
            how = f"prices of configurations at {times:,} time" + "s" * (times > 1)
            how += f" in {used:,} stages" * (used > 1)
        costs = stage.evaluate(starts)
        value = -(-stage.total // stage.scale)
        if target is None:
            return value, how
        budget = (target - 1) * stage.scale - stage.total
        if budget < 0:
            return target, how
        pairs = [paired(*pair) for pair in paired(starts, costs)]
        left = [{k: cost for k, cost in pair if cost <= budget} for pair in pairs]
        starts = list(map(list, left))
    if not searched:
        return min(target, value), how
    if work.naive:
        tried = definitions.search(problem, target, work)
        return target, f"{how} and all of {tried:,} ways to start requests, none below {target:,},"
    search = Search(stage, left, target, budget, work, cuts)
    known = search.run(proof.get("kept", ()))
    if search.completions:
        how += f", {search.completions.size:,} sets of states"
    return target, f"{how} and a search of {known:,} partial schedules, none below {target:,},"


def _stages(problem: Problem, proof: dict[str, Any], work: Work) -> list[StateStage]:
    """Return the stages of prices of states of a proof."""
    target = proof["target"]
    stages = [StateStage(problem, stage, target is not None, work) for stage in proof["stages"]]
    if not stages or (target is None and (len(stages) > 1 or proof.get("searched", True))):
        raise Invalid("lower: must have a stage, and just one and no search without a target")
    if any(stage.times[-1] != stages[0].times[-1] for stage in stages):
        raise Invalid("lower: the stages must have the same last time")
    return stages
