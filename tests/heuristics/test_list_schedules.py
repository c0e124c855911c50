"""List schedules: something feasible at once."""

from __future__ import annotations

from kvopt import generate, run
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits

INSTANCE = generate("arrival-2", n=12, seed=1)


def test_the_best_of_four_is_kept() -> None:
    search = Search(INSTANCE)
    offer_list_schedules(search)
    values = [run(INSTANCE, name).objective for name in ("svf", "mc-sf", "mc-sf-total", "fcfs")]
    assert search.progress.objective == min(value for value in values if value is not None)


def test_of_many_requests_one_policy_is_tried() -> None:
    search = Search(INSTANCE)
    offer_list_schedules(search, few_requests=11)
    assert search.progress.objective == run(INSTANCE, "svf").objective
    assert search.found_by == "policy svf"


def test_without_time_there_is_still_a_schedule() -> None:
    search = Search(INSTANCE, Limits(time_limit=0))
    offer_list_schedules(search)
    assert search.found_by == "one after another"
