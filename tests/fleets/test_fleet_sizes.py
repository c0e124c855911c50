"""How many machines: no fleet of fewer does as well, on all schedules of tiny fleets."""

from __future__ import annotations

import random
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypedDict

import pytest
from brute_force import Server, most_in_time, optimum
from known import known
from strategies import SERVERS, batch_time, plain, random_instances, timed_instance

from kvopt import (
    BatchTime,
    Instance,
    InvalidInput,
    Line,
    Request,
    certify,
    generate,
    read_certificate,
    run,
    verify,
)
from kvopt.fleets import FleetMatch, FleetSizes, fleet_sizes
from kvopt.fleets.sizes import bands_of
from kvopt.fleets.targets import Band, Latency
from kvopt.kernels.budget import Budget
from kvopt.problem.clocks import ROUNDS, Clock, Seconds
from kvopt.problem.problem import Problem
from kvopt.problem.scopes import Scope

pytestmark = pytest.mark.usefixtures("processor_clock")

LIMIT = 0.1


class Aim(TypedDict, total=False):
    """What a fleet is to reach."""

    target: str
    attain: str
    slo: str


CONVERSATIONS = generate("conversation", 30, 400, seed=1)
FEW = CONVERSATIONS[:10]
"""Certificates of these are verified in a moment."""
LONG = max(request.output for request in CONVERSATIONS)


def assert_bands_hold(found: FleetSizes, optima: dict[int, int]) -> None:
    """Compare each claim with the least values, of latency or of misses, by number of machines."""
    for band in found.bands:
        assert known(band.lower) <= optima[band.workers] <= known(band.upper)
        assert all(count is None or count >= known(band.upper) for count in band.runs.values())
    least, sufficient = found.machines
    enough = [workers for workers, value in optima.items() if value <= found.target.limit]
    assert known(least) <= min(enough)
    assert sufficient is None or sufficient in enough


@pytest.mark.slow
@pytest.mark.parametrize("server", [None, *SERVERS[2:5]], ids=["rounds", *map(str, SERVERS[2:5])])
@pytest.mark.parametrize("of_misses", [False, True])
def test_no_claim_is_beaten_by_any_schedule(server: Server | None, of_misses: bool) -> None:
    source, pace = random.Random(4), 9 if server else 1
    for drawn in random_instances(
        1 if server else 6, 4, least_requests=2, most_requests=4 - of_misses, most_memory=8,
        most_output=3,
    ):  # fmt: skip
        rows = [(a * pace, s, o) for a, s, o in plain(drawn)[1]]
        allowed, most_late = source.randint(2, 6) * pace, len(rows)
        optima = {
            m: most_late - most_in_time(
                drawn.memory, rows, [allowed] * len(rows), server=server, workers=m
            )
            if of_misses
            else optimum(drawn.memory, rows, server=server, workers=m)
            for m in range(1, len(rows) + 1)
        }  # fmt: skip
        if server:
            found = fleet_sizes(
                timed_instance(drawn.memory, rows), FleetMatch("fcfs", "round-robin", 2),
                slo=f"e2e={allowed}ns" if of_misses else None, counts=optima,
                clock=Seconds(batch_time(server)), time_limit=LIMIT,
            )  # fmt: skip
        else:
            value = source.randint(min(optima.values()), max(optima.values()))
            aim: Aim = {"target": f"mean={value / len(rows) + 1e-4:.9f}"}
            if of_misses:
                aim = {"attain": str(len(rows) - value), "slo": f"e2e={allowed}"}
            found = fleet_sizes(drawn, **aim, time_limit=LIMIT)
        assert_bands_hold(found, optima)


def test_a_machine_for_each_request_is_the_least_total() -> None:
    """Below it a target is refused with the reason; at it that many machines are enough."""
    model = BatchTime([Line(7, 1), Line(0, 5)], kv_ns=2, prompt_ns=1)
    requests = [Request(0, s, o) for s, o in ((3, 4), (0, 1), (5, 2))]
    instance = Instance(20, requests)
    apart = replace(instance, workers=3)
    for clock in (ROUNDS, Seconds(model)):
        alone = run(apart, "fcfs", router="round-robin", clock=clock).objective
        assert Latency(Problem(instance, clock)).minimum()[0] == alone
    with pytest.raises(InvalidInput, match=r"by any number of machines: .* takes 2.333 rounds"):
        fleet_sizes(instance, "mean=2.3")
    assert fleet_sizes(Instance(7, requests), "mean=2.34", time_limit=LIMIT).machines == (2, 2)


def test_bounds_hold_for_fewer_machines_and_schedules_for_more() -> None:
    few, some, many = (
        certify(Instance(5, [Request(0, 2, 1)] * 6, workers=m), "svf") for m in (1, 2, 3)
    )
    weak = replace(few, lower=None), replace(some, upper=None), replace(many, upper=None)
    bands = bands_of(dict(enumerate(weak, 1)), Latency(Problem(few.instance)))
    assert [band.lower for band in bands] == [some.lower_bound, some.lower_bound, many.lower_bound]
    assert [band.lower_from for band in bands] == [2, 2, 3]
    assert [band.upper for band in bands] == [few.objective] * 3
    assert [band.upper_from for band in bands] == [1, 1, 1]


def test_what_a_run_does_is_known_to_be_enough() -> None:
    match = FleetMatch("fcfs", "round-robin", 3)
    found = fleet_sizes(CONVERSATIONS, match, time_limit=LIMIT, counts=[1])
    alone = run(replace(CONVERSATIONS, workers=3), "fcfs", router="round-robin")
    assert found.target.limit == alone.objective == found.bands[-1].runs["round-robin + fcfs"]
    assert [band.workers for band in found.bands] == [1, 3]
    least, sufficient = found.machines
    assert known(least) <= known(sufficient) <= 3


def test_what_was_matched_is_enough_even_if_nothing_else_is_known() -> None:
    found = fleet_sizes(CONVERSATIONS, FleetMatch("fcfs", "round-robin", 3), time_limit=LIMIT)
    cut = replace(found, bands=found.bands[:0])
    assert cut.answer == "Nothing is known yet."
    cut = replace(found, bands=tuple(replace(band, upper=None) for band in found.bands[:1]))
    assert cut.machines[1] == 3
    assert "with 3 machines a schedule is known that does (round-robin + fcfs)" in cut.answer


def test_the_range_reaches_from_what_is_ruled_out_to_what_is_enough() -> None:
    found = fleet_sizes(CONVERSATIONS, "mean=60", time_limit=LIMIT)
    assert found.is_impossible(found.bands[0])
    assert found.is_reached(found.bands[-1])
    counts = [band.workers for band in found.bands]
    assert counts == [*range(counts[0], counts[-1] + 1)]


def test_a_budget_limits_all_numbers_of_machines_together() -> None:
    instance = Instance(5, [Request(0, 2, 1)] * 4)
    found = fleet_sizes(instance, "mean=1.5", counts=[1, 2], budget=Budget(0.0))
    assert (found.bands, found.left, found.machines) == ((), (1, 2), (None, None))
    assert fleet_sizes(instance, "mean=1.5", time_limit=1, budget=Budget(60.0)).machines == (2, 2)


def test_a_run_that_never_ends_is_nothing_to_match() -> None:
    stuck = Instance(6, [Request(0, 0, 5)] * 2)
    with pytest.raises(InvalidInput, match="did not complete every request"):
        fleet_sizes(stuck, FleetMatch("alpha-protect:alpha=0", "central", 1), time_limit=LIMIT)


@pytest.mark.parametrize(
    ("target", "attain", "slo", "wanted"),
    [
        ("p99=5", None, None, "p99 cannot be bounded"),
        ("median", None, None, "median cannot be bounded"),
        ("mean=5s", None, None, "needs --seconds, or an instance with round_ms"),
        ("mean=0", None, None, "must be more than 0"),
        ("mean=x", None, None, "must be mean=100 or mean=5s"),
        ("mean=5", None, "e2e=40", "a mean has no --slo"),
        ("misses=1%", None, None, "misses are given as --attain 99%"),
        (None, None, None, "give --match, --target or --attain, one of them"),
        ("mean=5", "99%", "e2e=40", "one of them"),
        (None, "99%", None, "needs a service level"),
        (None, "99%", "own", "ttft, tpot, e2e: is missing"),
        (None, "101%", f"e2e={LONG}", "must be a share such as 99%"),
        (None, "few", f"e2e={LONG}", "a number of the 30 requests, got 'few'"),
        (None, "100%", f"e2e={LONG - 1}", r"1 of 30 requests \(3.33%\) miss even with a machine"),
    ],
)
def test_targets_that_are_refused(
    target: str | None, attain: str | None, slo: str | None, wanted: str
) -> None:
    with pytest.raises(InvalidInput, match=wanted):
        fleet_sizes(CONVERSATIONS, target, attain=attain, slo=slo)


@pytest.mark.parametrize(
    ("policies", "counts", "wanted"),
    [
        (("svf", "sorted-lp:hindsight=1"), (1, 3), "sorted-lp: plans for one worker"),
        (("svf",), (0,), "--counts: must be at least 1"),
    ],
)
def test_what_is_refused_is_refused_before_anything_is_simulated(
    policies: tuple[str, ...], counts: tuple[int, ...] | None, wanted: str
) -> None:
    told: list[str] = []
    with pytest.raises(InvalidInput, match=wanted):
        fleet_sizes(FEW, "mean=75", policies=policies, counts=counts, observer=told.append)
    assert told == []


def test_seconds_and_rounds_are_one_target() -> None:
    timed = replace(CONVERSATIONS, round_ms=50.0)
    clock = Seconds(BatchTime([Line(50_000_000, 0)]))
    assert Latency(Problem(timed)).target("mean=5s").limit == 100 * 30
    assert Latency(Problem(timed, clock)).target("mean=5000ms").limit == 5 * 30 * 10**9
    with pytest.raises(InvalidInput, match="needs a unit"):
        Latency(Problem(timed, clock)).target("mean=5")


@pytest.mark.parametrize(
    ("instance", "aim"),
    [(FEW, {"target": "mean=75"}), (CONVERSATIONS, {"attain": "90%", "slo": f"e2e={LONG}"})],
)
class TestFolderOfEachMeasure:
    def test_certificates_prove_each_claim_and_are_not_made_again(
        self, instance: Instance, aim: Aim, tmp_path: Path
    ) -> None:
        ask = partial(
            fleet_sizes, instance, **aim, time_limit=LIMIT, out=tmp_path, counts=[1, 2, 3]
        )
        found = ask()
        for band in found.bands:
            assert verify(tmp_path / f"{band.workers}.cert.json").valid
            for value, by in ((band.lower, band.lower_from), (band.upper, band.upper_from)):
                of = read_certificate(tmp_path / f"{by}.cert.json")
                assert of.instance.workers == by
                assert value is not None
                if of.in_time is None:
                    assert value in (of.lower_bound, of.objective)
                else:
                    assert 30 - value in (of.in_time.ceiling, of.in_time.best_attained)
        said: list[str] = []
        assert (ask(observer=said.append).to_json(), said) == (found.to_json(), [])
        more = ask(policies=["fcfs"])
        assert "central + fcfs" in more.labels
        for old, new in zip(found.bands, more.bands, strict=True):
            assert (old.lower or 0) <= (new.lower or 0)
            assert (new.upper or 0) <= (old.upper or 0)

    def test_an_interrupt_keeps_what_was_found(
        self, instance: Instance, aim: Aim, tmp_path: Path
    ) -> None:
        def interrupt(line: str) -> None:
            if line == "2 machines: schedules and bounds":
                signal.raise_signal(signal.SIGINT)

        ask = partial(
            fleet_sizes, instance, **aim, time_limit=LIMIT, out=tmp_path, counts=[1, 2, 3]
        )
        found = ask(observer=interrupt)
        assert found.signal_number == signal.SIGINT
        assert found.left[-1] == 3
        assert (tmp_path / "1.cert.json").exists()
        after = ask()
        assert [band.workers for band in after.bands] == [1, 2, 3]
        assert (after.left, after.signal_number) == ((), None)


class TestFolder:
    def test_folders_of_something_else_are_refused(self, tmp_path: Path) -> None:
        fleet_sizes(FEW, "mean=75", counts=[2], time_limit=LIMIT, out=tmp_path)
        other = generate("conversation", 14, 400, seed=2)
        with pytest.raises(InvalidInput, match=r"2\.cert\.json: --out: .* another instance"):
            fleet_sizes(other, "mean=75", counts=[2], out=tmp_path)
        clock = Seconds(BatchTime([Line(10**9, 0)]))
        with pytest.raises(InvalidInput, match="another clock"):
            fleet_sizes(FEW, "mean=75s", clock=clock, out=tmp_path)

    def test_false_certificates_are_refused(self, tmp_path: Path) -> None:
        fleet_sizes(FEW, "mean=75", counts=[2], time_limit=LIMIT, out=tmp_path)
        path = tmp_path / "2.cert.json"
        text = path.read_text()
        value = read_certificate(path).lower_bound
        path.write_text(
            text.replace(f'"lower": {{"value": {value}', f'"lower": {{"value": {value}0')
        )
        assert path.read_text() != text
        with pytest.raises(InvalidInput, match=r"2\.cert\.json"):
            fleet_sizes(FEW, "mean=75", counts=[2], out=tmp_path)


@pytest.mark.parametrize("clock", [ROUNDS, Seconds(BatchTime([Line(10**7, 1000)]))])
def test_servers_go_without_the_line_for_all(clock: Clock, tmp_path: Path) -> None:
    found = fleet_sizes(
        FEW, FleetMatch("vllm-fcfs:block=1", "least-requests", 2), policies=["svf"],
        counts=[1, 2], clock=clock, time_limit=LIMIT, out=tmp_path,
    )  # fmt: skip
    assert found.labels == [
        "least-requests + vllm-fcfs:block=1",
        "least-volume + vllm-fcfs:block=1",
        "least-requests + svf",
        "least-volume + svf",
        "central + svf",
    ]
    fleet = replace(FEW, workers=2)
    for label, value in found.bands[1].runs.items():
        router, _, policy = label.partition(" + ")
        assert run(fleet, policy, router=router, clock=clock).objective == value
    assert found.scope.covers(Scope.PAUSES)
    for count in (1, 2):
        assert verify(tmp_path / f"{count}.cert.json").valid
    again = fleet_sizes(
        FEW, FleetMatch("vllm-fcfs:block=1", "least-requests", 2), policies=["svf"],
        counts=[1, 2], clock=clock, time_limit=LIMIT, out=tmp_path,
    )  # fmt: skip
    assert again.bands == found.bands


def test_an_open_answer_has_the_distance_of_both_sides() -> None:
    found = fleet_sizes(CONVERSATIONS, FleetMatch("fcfs", "round-robin", 3), time_limit=LIMIT)
    most = found.target.limit
    band = replace(found.bands[0], workers=1, lower=most // 2, upper=most + 1)
    enough = replace(band, workers=2, upper=most)
    cut = replace(found, bands=(band, enough))
    assert (
        "whether 1 can be enough is open, as with 1 machine the bound and the best schedule are "
        "50% apart." in cut.answer
    )
    near = replace(found, bands=(replace(band, lower=most), enough))
    assert "whether 1 can be enough is open." in near.answer


def test_what_hindsight_needs_is_apart_from_what_schedulers_need() -> None:
    found = fleet_sizes(CONVERSATIONS, "mean=60", time_limit=LIMIT, counts=[1, 2, 3])
    most = found.target.limit
    values: list[dict[str, int | None]] = [
        {"r + a": most + 1, "q + a": most + 1, "r + b": most + 1},
        {"r + a": most + 1, "q + a": most, "r + b": None},
        {"r + a": most, "q + a": most, "r + b": most + 1},
    ]
    bands = tuple(
        Band(workers, most, most, workers, workers, "beams", runs)
        for workers, runs in enumerate(values, 1)
    )
    cut = replace(found, bands=bands, gpus=None)
    assert cut.machines == (1, 1)
    assert cut.needs == {"r + a": 3, "q + a": 2, "r + b": None}
    assert "with 1 machine a schedule is known that does (beams), so with hindsight" in cut.answer
    assert cut.answer.endswith(
        " As a scheduler, q + a needs 2 machines; r + b needs more than 3 machines."
    )


# ---- misses of a service level


def test_one_machine_may_be_enough_where_rate_over_service_says_ten() -> None:
    """Ten at once, one served in a second: with ten seconds for each, they may wait."""
    clock = Seconds(BatchTime([Line(10**9, 0)]))
    ten = Instance(1, [Request(0, 0, 1)] * 10)
    found = fleet_sizes(ten, attain="100%", slo="e2e=10s", clock=clock, time_limit=LIMIT)
    assert found.machines == (1, 1)
    found = fleet_sizes(ten, attain="100%", slo="e2e=9s", clock=clock, time_limit=LIMIT)
    assert found.machines == (2, 2)


def test_the_run_to_match_is_counted() -> None:
    match = FleetMatch("fcfs", "round-robin", 2)
    found = fleet_sizes(CONVERSATIONS, match, slo="e2e=200", time_limit=LIMIT, counts=[1])
    made = run(replace(CONVERSATIONS, workers=2), "fcfs", router="round-robin")
    late = sum(latency > 200 for latency in made.latencies)
    assert late == 2
    assert found.target.limit == late == found.bands[-1].runs["round-robin + fcfs"]
    assert "round-robin + fcfs does on 2 machines with e2e=200" in found.answer
    assert found.to_json()["unit"] == "misses"
    assert list(found.to_dataframe()["upper"]) == [
        100 * (band.upper or 0) / 30 for band in found.bands
    ]


def test_folders_of_another_level_are_refused(tmp_path: Path) -> None:
    ask = partial(
        fleet_sizes, CONVERSATIONS, attain="90%", time_limit=LIMIT, out=tmp_path, counts=[2]
    )
    ask(slo=f"e2e={LONG}")
    for slo in (f"e2e={LONG + 1}", f"ttft={LONG}"):
        with pytest.raises(InvalidInput, match=r"2\.cert\.json: --out: .* another service level"):
            ask(slo=slo)
    with pytest.raises(InvalidInput, match="another service level"):
        fleet_sizes(CONVERSATIONS, "mean=1000", out=tmp_path)
