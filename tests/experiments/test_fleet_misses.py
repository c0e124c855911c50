"""How many machines a deadline takes: no claim is beaten by any schedule of tiny fleets."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import starmap
from pathlib import Path
from typing import TypedDict

import pytest
from deadline_oracle import ROUNDS as EVEN
from deadline_oracle import most_in_time
from fleet_oracle import Dated, most_on_workers
from oracle import Triple
from strategies import plain, random_instances
from timed_oracle import Server

from kvopt import (
    BatchTime,
    Instance,
    InvalidInput,
    Line,
    Request,
    generate,
    run,
)
from kvopt.experiments.fleets import FleetMatch, FleetSizes, fleet_sizes
from kvopt.problem.clocks import Seconds
from kvopt.problem.deadlines import attained

LIMIT = 0.2
CONVERSATIONS = generate("conversation", 30, 400, seed=1)
"""Of conversations that all arrive at once."""
LONG = max(r.output for r in CONVERSATIONS)


class Given(TypedDict):
    """Arguments that calls have in common."""

    deadline: int | str
    time_limit: float
    out: Path
    counts: list[int]


def least_misses(
    server: Server, memory: int, requests: Sequence[Triple], allowed: int
) -> dict[int, int]:
    """Return the fewest misses of all schedules, by number of machines."""

    def alone(some: Sequence[Dated]) -> int:
        rows, after = [row[:3] for row in some], [row[3] for row in some]
        return most_in_time(server, memory, rows, after, "runs", first=False)

    dated = [(*row, allowed) for row in requests]
    counts = range(1, len(requests) + 1)
    return {m: len(requests) - most_on_workers(m, dated, alone) for m in counts}


def assert_held(found: FleetSizes, fewest: dict[int, int]) -> None:
    """Compare each claim with the fewest misses by number of machines."""
    for band in found.bands:
        assert band.lower is not None
        assert band.upper is not None
        assert band.lower <= fewest[band.workers] <= band.upper
        assert all(count is None or count >= band.upper for count in band.runs.values())
    least, known = found.machines
    enough = [workers for workers, value in fewest.items() if value <= found.target.most]
    assert least is not None
    assert least <= min(enough)
    assert known is None or known in enough


@pytest.mark.slow
def test_no_claim_in_rounds_is_beaten_by_any_schedule() -> None:
    source = random.Random(1)
    for drawn in random_instances(
        10, 1, least_requests=2, most_requests=3, most_memory=8, most_output=3
    ):
        memory, requests = plain(drawn)
        allowed = source.randint(2, 6)
        fewest = least_misses(EVEN, memory, requests, allowed)
        most = source.randint(min(fewest.values()), max(fewest.values()))
        found = fleet_sizes(drawn, f"misses={most}", deadline=allowed, time_limit=LIMIT)
        assert_held(found, fewest)


@pytest.mark.slow
def test_no_claim_in_seconds_is_beaten_by_any_schedule() -> None:
    source = random.Random(4)
    for server in (Server([(7, 1)], 2, 1), Server([(10, 0), (4, 3)], 0, 0)):
        outputs = [source.randint(1, 3) for _ in range(3)]
        triples = [(source.randint(0, 20), source.randint(0, 6 - o), o) for o in outputs]
        requests = [Request(0, s, o, arrival_seconds=a / 10**9) for a, s, o in triples]
        clock = Seconds(BatchTime([*starmap(Line, server.lines)], server.kv_ns, server.prompt_ns))
        fewest = least_misses(server, 6, triples, 45)
        found = fleet_sizes(
            Instance(6, requests), FleetMatch("fcfs", "round-robin", 2), counts=[1, 2, 3],
            deadline="0.000000045s", clock=clock, time_limit=LIMIT,
        )  # fmt: skip
        assert_held(found, fewest)


def test_the_run_to_match_is_counted() -> None:
    match = FleetMatch("fcfs", "round-robin", 2)
    found = fleet_sizes(CONVERSATIONS, match, deadline=200, time_limit=LIMIT, counts=[1])
    made = run(replace(CONVERSATIONS, workers=2), "fcfs", router="round-robin")
    late = 30 - attained(made.completions, made.arrivals, [200] * 30)
    assert late == 2
    assert found.target.most == late == found.bands[-1].runs["round-robin + fcfs"]
    assert "round-robin + fcfs does on 2 machines within 200 rounds" in found.answer
    assert found.to_json()["unit"] == "misses"
    assert list(found.to_dataframe()["upper"]) == [
        100 * (band.upper or 0) / 30 for band in found.bands
    ]


@pytest.mark.parametrize(
    ("target", "deadline", "wanted"),
    [
        ("misses=1%", None, "misses need a --deadline"),
        ("mean=5", 40, "a mean has no --deadline"),
        ("p99=5", 40, "p99 cannot be bounded"),
        ("misses=101%", LONG, "must be a share up to 100%"),
        ("misses=1.5", LONG, "a number of the 30 requests"),
        ("misses=few", LONG, "must be misses=1% or misses=20, got 'misses=few'"),
        ("misses=0%", LONG - 1, r"1 of 30 requests \(3.33%\) take longer than their deadline"),
        ("misses=1%", "own", "deadline: is missing"),
    ],
)
def test_targets_that_are_refused(target: str, deadline: str | int | None, wanted: str) -> None:
    with pytest.raises(InvalidInput, match=wanted):
        fleet_sizes(CONVERSATIONS, target, deadline=deadline)


def test_folders_of_another_deadline_are_refused(tmp_path: Path) -> None:
    given: Given = {"deadline": LONG, "time_limit": LIMIT, "out": tmp_path, "counts": [2]}
    fleet_sizes(CONVERSATIONS, "misses=10%", **given)
    for deadline in (LONG + 1, f"first-token:{LONG}"):
        given["deadline"] = deadline
        with pytest.raises(InvalidInput, match=r"2\.cert\.json: --out: .* another deadline"):
            fleet_sizes(CONVERSATIONS, "misses=10%", **given)
    with pytest.raises(InvalidInput, match="another deadline"):
        fleet_sizes(CONVERSATIONS, "mean=1000", out=tmp_path)
