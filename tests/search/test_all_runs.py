"""The most requests that attain service levels on a worker, among all runs, by brute force."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from math import inf

import pytest
from brute_force import Due, Server, Triple, most_in_time
from effort import many
from known import known
from strategies import batch_time

from kvopt import BatchTime, Instance, Request, Slo
from kvopt.bounds.slo_ceiling import least_times, spans_of
from kvopt.heuristics.attaining.in_rounds import AttainingSets
from kvopt.problem.clocks import Rounds, Seconds
from kvopt.problem.slo import Levels
from kvopt.search.exact.all_runs import best_in_time
from kvopt.timetable.schedule import Schedule


def drawn(source: random.Random, count: int, output: int) -> tuple[int, list[Triple]]:
    memory, requests = source.randint(4, 12), list[Triple]()
    while len(requests) < count:
        prompt, tokens = source.randint(0, 3), source.randint(1, output)
        if prompt + tokens <= memory:
            requests.append((source.randint(0, 6), prompt, tokens))
    return memory, requests


def best(memory: int, requests: list[Triple], due: list[Due], model: BatchTime | None) -> int:
    """Return how many attain in the best of all runs, which is checked."""
    instance = Instance(memory, [Request(*row) for row in requests], round_ms=1e-6)  # 1 ns
    levels = Levels(*([*column] for column in zip(*due, strict=True)))
    found = best_run(instance, model, levels, -1, len(requests))
    assert isinstance(found, AttainingSets)
    clock = Rounds() if model is None else Seconds(model)
    resumed = {round_: time for round_, time, _ in found.resumed}
    run = Schedule(instance, found.starts, clock=clock, resumed=[resumed])
    assert not run.violations()
    assert levels.attained(run.arrivals, run.first_tokens, run.completions) >= found.count
    return found.count


def best_run(
    instance: Instance,
    model: BatchTime | None,
    levels: Levels,
    attained: int,
    ceiling: int,
    should_stop: Callable[[], bool] = lambda: False,
) -> AttainingSets | None:
    spans = spans_of(levels, *least_times(instance, model), runs=model is None)
    return best_in_time(instance, model, spans, attained, ceiling, should_stop)


@pytest.mark.slow
def test_no_schedule_in_rounds_has_more_in_time() -> None:
    source = random.Random(4)
    for _ in range(many(60)):
        memory, requests = drawn(source, source.randint(2, 4), 5)
        due = [Due(source.choice((inf, 2, 4)), inf, source.randint(1, 12)) for _ in requests]
        most = most_in_time(memory, requests, due)
        assert best(memory, requests, due, None) == most, (memory, requests, due)


@pytest.mark.slow
def test_no_run_in_seconds_has_more_in_time() -> None:
    source = random.Random(5)
    for _ in range(many(40)):
        memory, requests = drawn(source, 3, 3)
        lines = [(source.randint(1, 9), source.randint(0, 4)) for _ in range(2)]
        server = Server(lines, source.randint(0, 2), source.randint(0, 2))
        paces = [source.choice((inf, source.randint(1, 15) * (o - 1))) for *_, o in requests]
        due = [Due(source.choice((inf, 20)), pace, source.randint(5, 70)) for pace in paces]
        model = batch_time(server)
        most = most_in_time(memory, requests, due, server=server)
        assert best(memory, requests, due, model) == most, (memory, requests, due, model)


def test_a_start_that_leaves_room_for_two_later_ones_is_found() -> None:
    requests = [Request(0, 0, 2)] * 4
    instance = Instance(4, requests)
    found = best_run(instance, None, Slo(e2e=3).levels(instance, rounds=True), 2, 3)
    assert sorted(known(found).starts) == [0, 1, 1, 3]


@pytest.mark.parametrize(
    "requests", [[Request(0, 0, 40)] * 9, [Request(0, 5, 4 * 10**10)] * 2], ids=["many", "long"]
)
def test_too_many_runs_are_refused_by_their_count(requests: list[Request]) -> None:
    instance = Instance(sum(r.peak for r in requests) - 1, requests)
    none = [inf] * len(requests)
    levels = Levels(none, none, [2 * r.output for r in requests])
    began = partial(pytest.fail, "began")
    assert best_run(instance, None, levels, -1, len(requests), began) is None
