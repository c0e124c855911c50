"""The most requests that attain a deadline on one worker, among all runs, against brute force."""

from __future__ import annotations

import random

import pytest
from brute_force import Server, Triple, most_in_time
from effort import many
from known import known

from kvopt import BatchTime, Instance, Line, Request
from kvopt.heuristics.attaining.rounds import Attaining
from kvopt.problem.clocks import Rounds, Seconds
from kvopt.problem.slo import Aim
from kvopt.search.exact.runs import AllRuns
from kvopt.timetable.schedule import Schedule


def drawn(source: random.Random, count: int, output: int) -> tuple[int, list[Triple]]:
    memory, requests = source.randint(4, 12), list[Triple]()
    while len(requests) < count:
        prompt, tokens = source.randint(0, 3), source.randint(1, output)
        if prompt + tokens <= memory:
            requests.append((source.randint(0, 6), prompt, tokens))
    return memory, requests


def best(
    memory: int, requests: list[Triple], allowed: list[int], aim: Aim, model: BatchTime | None
) -> int:
    """Return how many attain in the best of all runs, which is checked."""
    instance = Instance(memory, [Request(*row) for row in requests], round_ms=1e-6)  # 1 ns
    found = AllRuns(instance, model, allowed, aim).best(-1, len(requests), lambda: False)
    assert isinstance(found, Attaining)
    clock = Rounds() if model is None else Seconds(model)
    resumed = {round_: time for round_, time, _ in found.resumed}
    run = Schedule(instance, found.starts, clock=clock, resumed=[resumed])
    assert not run.violations()
    times = run.first_tokens if aim is Aim.FIRST_TOKEN else run.completions
    rows = zip(times, run.arrivals, allowed, strict=True)
    assert sum(time is not None and time - a <= most for time, a, most in rows) >= found.count
    return found.count


@pytest.mark.slow
@pytest.mark.parametrize("aim", Aim)
def test_it_is_the_most_of_all_schedules_in_rounds(aim: Aim) -> None:
    source = random.Random(4)
    for _ in range(many(60)):
        memory, requests = drawn(source, source.randint(2, 4), 5)
        allowed = [source.randint(1, 12) for _ in requests]
        first = aim is Aim.FIRST_TOKEN
        most = most_in_time(memory, requests, allowed, first=first)
        assert first or most_in_time(memory, requests, allowed) == most
        assert best(memory, requests, allowed, aim, None) == most, (memory, requests, allowed)


@pytest.mark.slow
def test_it_is_the_most_of_all_runs_in_seconds() -> None:
    source = random.Random(5)
    for _ in range(many(40)):
        memory, requests = drawn(source, 3, 3)
        lines = [(source.randint(1, 9), source.randint(0, 4)) for _ in range(2)]
        prompt_ns, kv_ns = source.randint(0, 2), source.randint(0, 2)
        allowed = [source.randint(5, 70) for _ in requests]
        model = BatchTime([Line(*line) for line in lines], kv_ns=kv_ns, prompt_ns=prompt_ns)
        server = Server(lines, prompt_ns, kv_ns)
        most = most_in_time(memory, requests, allowed, server=server)
        found = best(memory, requests, allowed, Aim.COMPLETION, model)
        assert found == most, (memory, requests, allowed, model)


def test_a_start_that_leaves_room_for_two_later_ones_is_found() -> None:
    requests = [Request(0, 0, 2)] * 4
    found = AllRuns(Instance(4, requests), None, [3] * 4, Aim.COMPLETION).best(2, 3, lambda: False)
    assert sorted(known(found).starts) == [0, 1, 1, 3]


@pytest.mark.parametrize(
    "requests", [[Request(0, 0, 40)] * 9, [Request(0, 5, 4 * 10**10)] * 2], ids=["many", "long"]
)
def test_too_many_runs_are_refused_by_their_count(requests: list[Request]) -> None:
    instance = Instance(sum(r.peak for r in requests) - 1, requests)
    allowed = [2 * r.output for r in requests]
    runs = AllRuns(instance, None, allowed, Aim.COMPLETION)
    assert runs.best(-1, len(requests), lambda: pytest.fail("began")) is None
