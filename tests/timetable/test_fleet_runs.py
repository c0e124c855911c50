"""Fleets: routers, the line for all, and workers that behave as a server alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
from brute_force import feasible
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from routed import assert_routed
from strategies import instances, plain

from kvopt import (
    BatchTime,
    Instance,
    InvalidInput,
    Line,
    Outcome,
    Policy,
    PolicyRun,
    Request,
    View,
    compare,
    run,
)
from kvopt.errors import Stopped
from kvopt.problem.clocks import ROUNDS, Clock, Seconds
from kvopt.simulate.routers import ROUTERS, ArrivalRouter, Load, register, router

AT_ARRIVAL = [name for name in ROUTERS.names() if router(name).is_irrevocable]
MANY_KINDS = (
    "fcfs", "svf", "patient", "h-sf", "sorted-f", "paced:gap=2",
    "a-l:intervals=buckets,width=2", "alpha-protect:alpha=0.2", "mc-sf:pred=lower,intervals=rough",
)  # fmt: skip
CLOCK = Seconds(BatchTime([Line(30, 1), Line(0, 7)], kv_ns=1))
fleets = st.builds(
    lambda instance, workers: replace(instance, workers=workers), instances(), st.integers(1, 3)
)


def test_the_soonest_token_is_where_the_fewest_rounds_of_prompts_wait() -> None:
    """Active requests take theirs of 10 tokens a round: 35 over 10 - 1 are fewer than 25 over 4."""

    @dataclass
    class Seen:
        requests: int
        unprocessed: int
        volume: int = 0

        def tokens(self) -> int:
            return 0

        def matched(self, i: int) -> int:
            return i

    way = router("soonest-token:tokens=10")
    assert isinstance(way, ArrivalRouter)
    assert way.choose([Seen(6, 20), Seen(1, 30)], 5, 1) == 1
    assert way.choose([Seen(6, 20), Seen(1, 90)], 5, 1) == 0
    assert way.choose([Seen(30, 20), Seen(10, 20)], 5, 1) == 1


def served_centrally(
    instance: Instance, key: Callable[[Request], tuple[int, ...]]
) -> tuple[list[int], list[int]]:
    """Return starts and workers where the first in line by a key blocks those behind it.

    The worker that will hold the fewest tokens in the next round is asked first, and again after
    a start; a worker starts the first in line if that fits from now on.
    """
    requests, rows = instance.requests, plain(instance)[1]
    starts, workers = [-1] * len(requests), [-1] * len(requests)
    running: list[list[int]] = [[] for _ in range(instance.workers)]
    now = 0
    while -1 in starts:
        for each in running:
            each[:] = [i for i in each if starts[i] + requests[i].output > now]
        line = [i for i, r in enumerate(requests) if starts[i] < 0 and r.arrival <= now]
        line.sort(key=lambda i: (*key(requests[i]), i))
        asking = set(range(instance.workers))
        while asking and line:
            loads = [
                sum(requests[i].prompt + now + 1 - starts[i] for i in each) for each in running
            ]
            worker = min(asking, key=lambda w: (loads[w], w))
            first = line[0]
            starts[first] = now
            there = [*running[worker], first]
            if feasible(instance.memory, [rows[i] for i in there], [starts[i] for i in there]):
                workers[first] = worker
                running[worker].append(first)
                line.pop(0)
                asking = set(range(instance.workers))
            else:
                starts[first] = -1
                asking.remove(worker)
        now += 1
    return starts, workers


def in_seconds(instance: Instance) -> Instance:
    """Return the instance with rounds of 20 ns."""
    return replace(instance, round_ms=20e-6)


def fleet_run(instance: Instance, policy: str, way: str, clock: Clock = ROUNDS) -> PolicyRun:
    found = run(
        replace(instance, workers=max(2, instance.workers)), policy, router=way, clock=clock
    )
    return found


@pytest.mark.parametrize("policy", MANY_KINDS)
@examples(20)
@given(fleet=fleets, way=st.sampled_from(AT_ARRIVAL), seconds=st.booleans())
def test_a_worker_does_what_a_server_alone_would(
    policy: str, fleet: Instance, way: str, seconds: bool
) -> None:
    fleet, clock = (in_seconds(fleet), CLOCK) if seconds else (fleet, ROUNDS)
    found = fleet_run(fleet, policy, way, clock)
    for part in found.parts:
        alone = run(part.instance, policy, clock=clock)
        assert (part.starts, part.outcome) == (alone.starts, alone.outcome)
        if part.outcome is Outcome.COMPLETED:  # a loop is noticed when nothing more can arrive
            assert part.lost == alone.lost
        assert (part.completions, part.objective) == (alone.completions, alone.objective)


@pytest.mark.parametrize(
    ("policy", "key"),
    [
        ("fcfs", lambda r: (r.arrival,)),
        ("svf", lambda r: (r.volume, r.prompt, r.arrival)),
        ("mc-sf", lambda r: (r.output, r.prompt, r.arrival)),
    ],
)
@given(fleet=fleets)
def test_one_line_goes_by_its_rules(policy: str, key: object, fleet: Instance) -> None:
    fleet = replace(fleet, workers=max(2, fleet.workers))
    found = fleet_run(fleet, policy, "central")
    assert (list(found.starts), list(found.workers)) == served_centrally(fleet, key)  # type: ignore[arg-type]


@given(fleet=fleets, seconds=st.booleans())
def test_with_one_line_no_worker_idles_while_a_request_waits(
    fleet: Instance, seconds: bool
) -> None:
    fleet, clock = (in_seconds(fleet), CLOCK) if seconds else (fleet, ROUNDS)
    found = fleet_run(fleet, "fcfs", "central", clock)
    busy = [[(s.began, s.ended) for s in part.stretches] for part in found.parts]
    for arrival, start in zip(found.arrivals, found.start_times, strict=True):
        assert start is not None
        for stretches in busy:
            ends = [end for begin, end in stretches if begin <= arrival]
            idle_from = max(ends, default=0)
            if idle_from < arrival and start > arrival:
                # Another request of the same time may have taken the worker.
                assert any(begin <= arrival < end for begin, end in stretches) or any(
                    begin == arrival for begin, _ in stretches
                )


@given(fleet=fleets, policy=st.sampled_from(("fcfs", "svf")))
def test_routers_choose_by_what_is_there(fleet: Instance, policy: str) -> None:
    assert_routed(replace(fleet, workers=max(2, fleet.workers)), policy, ROUNDS)


def test_round_robin_takes_turns_and_draws_have_a_seed() -> None:
    fleet = Instance(9, [Request(i, 1, 2) for i in range(7)], workers=3)
    assert fleet_run(fleet, "fcfs", "round-robin").workers == (0, 1, 2, 0, 1, 2, 0)
    drawn = {fleet_run(fleet, "fcfs", f"random:seed={seed}").workers for seed in range(8)}
    assert len(drawn) > 1
    assert fleet_run(fleet, "fcfs", "random").workers in drawn  # seed 0


def test_two_choices_takes_the_shorter_of_two() -> None:
    """With two workers both are drawn each time, so it is the shortest line."""
    fleet = Instance(9, [Request(0, 1, 1 + i % 4) for i in range(9)], workers=2)
    two = fleet_run(fleet, "fcfs", "two-choices").parts
    assert sorted(len(part.instance) for part in two) == [4, 5]


def test_a_fleet_of_one_is_one_server() -> None:
    one = Instance(9, [Request(0, 1, 3)], workers=1)
    found = run(one, "fcfs", router="round-robin")
    assert (found.router, found.workers) == (None, (0,))


def test_a_fleet_run_has_router_workers_and_totals() -> None:
    fleet = Instance(4, [Request(0, 1, 3), Request(0, 1, 3), Request(1, 1, 3)], workers=2)
    found = fleet_run(fleet, "svf", "least-requests")
    said = found.to_json()
    assert (said["router"], said["workers"], said["starts"]) == (
        "least-requests",
        [0, 1, 0],
        [0, 0, 3],
    )
    assert found.facts()["router"] == "least-requests"
    assert (found.busy, found.rounds, found.makespan, found.throughput) == (9, 9, 6, 9 / 6)
    assert compare(fleet, ["svf", "fcfs"]).best == found.objective == 11


def test_a_livelock_of_one_worker_is_one_of_the_fleet() -> None:
    fleet = Instance(10, [Request(0, 1, 9), Request(0, 1, 9), Request(0, 1, 1)], workers=2)
    found = fleet_run(fleet, "alpha-protect:alpha=0", "round-robin")
    assert found.outcome is Outcome.COMPLETED
    found = fleet_run(
        replace(fleet, requests=[*fleet, *(Request(0, 1, 9, f"x{i}") for i in range(3))]),
        "alpha-protect:alpha=0",
        "round-robin",
    )
    assert found.outcome is Outcome.LIVELOCK
    assert found.objective is None
    assert found.schedule is None


def test_a_run_can_be_stopped() -> None:
    fleet = Instance(9, [Request(0, 1, 3)] * 5, workers=2)
    for way in ("central", "round-robin"):
        with pytest.raises(Stopped):
            run(fleet, "fcfs", router=way, should_stop=lambda: True)


@dataclass
class _Forgetful(Policy):
    """Starts what arrived, and cannot forget."""

    name: ClassVar[str] = "forgetful"

    def begin(self, view: View) -> None:
        self.line: list[int] = []

    def arrived(self, view: View, i: int) -> None:
        self.line.append(i)

    def admit(self, view: View) -> Iterable[int]:
        named, self.line = self.line, []
        return named


def test_one_line_needs_policies_that_forget() -> None:
    fleet = Instance(9, [Request(0, 1, 3)] * 2, workers=2)
    assert run(fleet, _Forgetful(), router="round-robin").objective == 6
    with pytest.raises(InvalidInput, match="withdrawn"):
        run(fleet, _Forgetful())


def test_routers_of_ones_own_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ROUTERS, "entries", dict(ROUTERS.entries))

    @register
    @dataclass
    class Small(ArrivalRouter):
        """Short prompts to the first, others to the last."""

        name: ClassVar[str] = "small"
        most: int

        def choose(self, loads: Sequence[Load], prompt: int, output: int) -> int:
            return 0 if prompt <= self.most else len(loads) - 1

    fleet = Instance(9, [Request(0, s, 3) for s in (1, 5, 2)], workers=3)
    assert fleet_run(fleet, "fcfs", "small:most=2").workers == (0, 2, 0)
    assert fleet_run(fleet, "fcfs", "small:most=1").workers == (0, 2, 2)
    with pytest.raises(InvalidInput, match="most"):
        router("small:most=x")
    with pytest.raises(InvalidInput, match=r"^router small: needs most$"):
        router("small")
