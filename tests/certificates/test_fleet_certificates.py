"""Certificates of fleets: what `certify` writes is valid, and what was changed in it is not."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from certificates import changed, judged, numbers_in
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


@pytest.fixture(scope="module", params=CLOCKS)
def valid(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    found = certify(FLEET, POLICIES, clock=CLOCKS[request.param])
    return written(tmp_path_factory.mktemp("fleet"), found)[1]


Change = Callable[[dict[str, Any]], object]


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
    verdict = judged(tmp_path / "c.json", content)
    assert "a search is of one worker" in verdict.lines[-1]


def test_no_value_or_start_can_be_changed(valid: dict[str, Any], tmp_path: Path) -> None:
    """In seconds a start may move within rounds that are not there: only values are looked at."""
    looked_at = ("value", "starts") if valid["clock"] == "rounds" else ("value",)
    runs = {"upper": valid["upper"], "policies": valid["policies"]}
    places = [place for place in numbers_in(runs) if set(place) & set(looked_at)]
    for place, change in itertools.product(places, (-1, 1)):
        other = changed(valid, place, partial(int.__add__, change))
        assert not judged(tmp_path / "c.json", other).valid, place


SHAPES = ((2, 7), (2, 2), (4, 9), (0, 5))
SERVED = Instance(
    16, [Request(0, *shape, arrival_seconds=0.0) for shape in SHAPES for _ in range(2)], workers=2
)
SERVERS = ("vllm-priority:block=1,max_seqs=4,budget=4", "vllm-fcfs:block=1")


@pytest.fixture(scope="module", params=CLOCKS)
def served(request: pytest.FixtureRequest) -> Certificate:
    clock = CLOCKS[request.param]
    return certify(SERVED, SERVERS, clock=clock, router="round-robin", time_limit=0.5)


def test_servers_of_a_fleet_are_certified(served: Certificate, tmp_path: Path) -> None:
    path, content = written(tmp_path, served)
    claims = content["policies"]
    assert all(claim["workers"] == [0, 1] * 4 and claim["segments"] for claim in claims)
    assert ("chunks" in claims[0]) == (not served.clock.is_even)
    verdict = verify(path)
    assert verdict.valid, verdict.lines
    again = read_certificate(path)
    assert (again.objective, again.scope) == (served.objective, served.scope)
    for made, run in zip(served.runs, again.runs, strict=True):
        assert run.scope is made.scope
        assert again.measures(run) == served.measures(made)


def test_the_best_run_of_a_fleet_may_pause(tmp_path: Path) -> None:
    found = certify(SERVED, SERVERS[0].partition(",")[0], router="round-robin", time_limit=0.5)
    assert (found.objective, found.provenance["found_by"]) == (52, f"policy {found.runs[0].policy}")
    path, content = written(tmp_path, found)
    assert len(content["upper"]["segments"]) == len(content["upper"]["workers"]) == 8
    assert verify(path).valid
    again = read_certificate(path)
    assert again.objective == 52
    assert known(again.upper).segments == again.runs[0].segments


SERVED_CHANGES: dict[str, tuple[Change, str]] = {
    "other workers": (lambda c: c.update(workers=[0, 0, 1, 1] * 2), "of 2 workers|held|give|begin"),
    "no workers": (lambda c: c.pop("workers"), "one of 2 workers"),
    "segments too few": (lambda c: c["segments"].pop(), "segments"),
    "a token too many": (
        lambda c: c["segments"].__setitem__(
            0, [[first - 1, last] for first, last in c["segments"][0]]
        ),
        "makes 8 tokens",
    ),
    "pieces of none": (lambda c: c["chunks"][0].update(request=8), "of request 8"),
    "pieces below none": (lambda c: c["chunks"][0].update(request=-1), "of request -1"),
    "pieces of another": (
        lambda c: c["chunks"][0].update(request=(c["chunks"][0]["request"] + 1) % 8),
        "no prompt to process|rounds give|not in order",
    ),
}


@pytest.mark.parametrize("change", SERVED_CHANGES)
def test_what_is_wrong_of_servers_is_refused(
    served: Certificate, tmp_path: Path, change: str
) -> None:
    _, content = written(tmp_path, served)
    if "pieces" in change and served.clock.is_even:
        pytest.skip("a prompt in pieces is one that comes later")
    apply, said = SERVED_CHANGES[change]
    apply(content["policies"][0])
    verdict = judged(tmp_path / "c.json", content)
    assert (verdict.valid, verdict.readable) == (False, True), verdict.lines
    assert re.search(said, verdict.lines[-1]), verdict.lines[-1]
