"""Certificates of fleets: what `certify` writes is valid, and what was changed in it is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from certificates import changed, judged
from known import known

from kvopt import (
    BatchTime,
    Certificate,
    Instance,
    Line,
    Request,
    Schedule,
    certify,
    read_certificate,
    verify,
    write_certificate,
)
from kvopt.problem.clocks import ROUNDS, Clock, Seconds
from kvopt.problem.instance_files import instance_from_json

pytestmark = pytest.mark.usefixtures("processor_clock")

ROWS = [(0, 0, 3), (0, 0, 3), (0, 1, 2), (5, 1, 1), (9, 1, 2)]
FLEET = Instance(3, [Request(*row, arrival_seconds=row[0] * 1e-6) for row in ROWS], workers=2)
CLOCKS: dict[str, Clock] = {"rounds": ROUNDS, "seconds": Seconds(BatchTime([Line(1000, 20)], 1, 2))}
POLICIES = ["fcfs", "svf", "alpha-beta:alpha=0,beta=0.5"]


def written(tmp_path: Path, found: Certificate) -> tuple[Path, dict[str, Any]]:
    path = tmp_path / "fleet.cert.json"
    write_certificate(found, path)
    return path, json.loads(path.read_text())


def test_a_given_schedule_is_judged() -> None:
    given = Schedule(FLEET, (0, 0, 3, 5, 9), (0, 1, 0, 1, 0))
    found = certify(FLEET, schedule=given)
    assert found.runs[0].objective == given.objective == 14
    assert found.objective == found.lower_bound == 13
    assert found.runs[0].workers == given.workers


def rehashed(content: dict[str, Any], workers: int) -> dict[str, Any]:
    """Return a certificate of a fleet of so many workers, with the hash that goes with it."""
    other = changed(content, ("instance", "workers"), lambda _: workers)
    return {**other, "hash": instance_from_json(other["instance"]).hash}


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_proof_of_fewer_workers_proves_less_of_more(clock: str, tmp_path: Path) -> None:
    crowded = Instance(4, [Request(0, 1, 3, arrival_seconds=0.0)] * 6, workers=2)
    found = certify(crowded, clock=CLOCKS[clock])
    _, content = written(tmp_path, found)
    verdict = judged(tmp_path / "c.json", {**rehashed(content, 3), "upper": None})
    assert not verdict.valid
    assert "lower: says" in verdict.lines[-1]
    assert judged(tmp_path / "c.json", {**rehashed(content, 2), "upper": None}).valid


def test_a_search_speaks_of_one_worker(tmp_path: Path) -> None:
    _, content = written(tmp_path, certify(FLEET, ["fcfs"]))
    parts = content["lower"]["proof"].get("parts", [{"proof": content["lower"]["proof"]}])
    proof = next(p["proof"] for p in parts if p["proof"]["kind"] == "configurations")
    proof.update(searched=True, target=proof["target"] or 100)
    assert "a search is of one worker" in judged(tmp_path / "c.json", content).lines[-1]


SHAPES = ((2, 7), (2, 2), (4, 9), (0, 5))
SERVED = Instance(
    16, [Request(0, *shape, arrival_seconds=0.0) for shape in SHAPES for _ in range(2)], workers=2
)
SERVERS = ("vllm-priority:block=1,max_seqs=4,budget=4", "vllm-fcfs:block=1")


def test_the_best_run_of_a_fleet_may_pause(tmp_path: Path) -> None:
    found = certify(SERVED, SERVERS[0].partition(",")[0], router="round-robin", time_limit=0.5)
    assert (found.objective, found.provenance["found_by"]) == (52, f"policy {found.runs[0].policy}")
    path, content = written(tmp_path, found)
    assert len(content["upper"]["segments"]) == len(content["upper"]["workers"]) == 8
    assert verify(path).valid
    again = read_certificate(path)
    assert again.objective == 52
    assert known(again.upper).segments == again.runs[0].segments
