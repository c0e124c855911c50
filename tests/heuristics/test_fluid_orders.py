"""Placing requests of fleets in the order of a fluid: against the plain rule, limits, seeds."""

from __future__ import annotations

import pytest
from strategies import drawn_fleet

from kvopt import Instance, Request, Schedule, generate, run
from kvopt.errors import TooLarge
from kvopt.heuristics import improve
from kvopt.heuristics.fleets.fluid_orders import fluid_of, placed, search_fluid_orders
from kvopt.heuristics.fleets.placing import Tries
from kvopt.heuristics.list_schedules import one_after_another
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits
from kvopt.kernels.budget import Budget

pytestmark = pytest.mark.usefixtures("processor_clock")

CHAT = Instance(3_000, generate("conversation", n=240, memory=3_000, seed=1).requests, workers=3)
LATE = Instance(
    30, generate("arrival-2", n=40, memory=30, seed=3).requests, workers=2, name="arrivals"
)


def by_hand(instance: Instance, order: list[int]) -> tuple[list[int], list[int]]:
    """Place requests in an order, each on the worker and in the round where it starts earliest."""
    count = len(instance)
    starts, workers = [0] * count, [-1] * count
    for i in order:
        request, options = instance.requests[i], []
        for worker in range(instance.workers):
            there = [j for j in range(count) if workers[j] == worker]
            start = request.arrival
            while not fits(instance, [*there, i], [*(starts[j] for j in there), start]):
                start += 1
            options.append((start, worker))
        starts[i], workers[i] = min(options)
    return starts, workers


def fits(instance: Instance, members: list[int], starts: list[int]) -> bool:
    """Whether one worker can hold these requests."""
    return Schedule(instance.of_one_worker(members), starts).check().feasible


@pytest.mark.parametrize("instance", [*map(drawn_fleet, range(15)), LATE])
def test_one_order_is_the_plain_rule(instance: Instance) -> None:
    fluid = fluid_of(instance, 0.9)
    assert sorted(fluid.order) == list(range(len(instance)))
    found = placed(instance, fluid, Tries(1, 0), Budget())
    assert found == by_hand(instance, fluid.order.tolist())


@pytest.mark.parametrize("instance", [CHAT, LATE], ids=["backlog", "arrivals"])
def test_more_orders_are_better_and_repeatable(instance: Instance) -> None:
    fluid, totals = fluid_of(instance, 0.95), []
    for orders in (1, 4, 64):
        found, again = (placed(instance, fluid, Tries(orders, 7), Budget()) for _ in range(2))
        assert found is not None
        assert found == again
        schedule = Schedule(instance, *found)
        assert schedule.check().feasible
        totals.append(schedule.objective)
    assert totals[2] < totals[1] < totals[0]
    assert placed(instance, fluid, Tries(4, 7), Budget(0.0)) is None


def test_fluid_orders_beat_a_scheduler_near_saturation() -> None:
    chat = generate("conversation", n=600, memory=3_000, seed=1)
    span = 0.8 * sum(request.volume for request in chat) / (3 * chat.memory)
    rows = [(int(span * i / 600), r.prompt, r.output) for i, r in enumerate(chat)]
    busy = Instance(chat.memory, [Request(*row) for row in rows], workers=3)
    orders = Search(busy)
    search_fluid_orders(orders, Budget(0.5))
    assert orders.objective is not None
    assert orders.objective < 0.985 * run(busy, "svf").objective


def test_the_search_ends_when_nothing_improves() -> None:
    search = Search(drawn_fleet(5))
    search_fluid_orders(search, search.budget)
    assert search.schedule is not None


def test_times_count_from_the_first_arrival() -> None:
    late = [Request(10**12 + r.arrival, r.prompt, r.output) for r in LATE]
    values = []
    for requests in (LATE.requests, late):
        search = Search(Instance(30, requests, workers=2))
        search_fluid_orders(search, Budget(0.0))
        values.append(search.objective)
    assert values[0] == values[1] is not None


def test_arrivals_too_far_apart_are_noted() -> None:
    apart = Instance(9, [Request(0, 1, 3), Request(0, 2, 4), Request(10**9, 1, 1)], workers=2)
    search = Search(apart)
    search.offer(one_after_another(apart), "one after another")
    with pytest.raises(TooLarge, match="more than the limit"):
        search_fluid_orders(search, Budget(0.0))
    improve(search, Budget(0.1))
    assert any("no orders of fluids" in note for note in search.notes)
    assert search.objective == 8


@pytest.mark.parametrize("spread", [0, 1])
def test_beams_place_a_backlog_and_orders_what_is_served_as_it_comes(spread: int) -> None:
    requests = [Request(spread * i, r.prompt, r.output) for i, r in enumerate(CHAT)]
    instance = Instance(3_000, requests, workers=3)
    found = list[str | None]()
    search = Search(
        instance, Limits(time_limit=3.0, observer=lambda _: found.append(search.found_by))
    )
    search.offer(one_after_another(instance), "one after another")
    improve(search, Budget(1.0))
    assert ("beams over the whole trace" in found) == (spread == 0)
