"""Certificates of how many requests attain a service level: written, read, checked, falsified."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from certificates import judged, verified

from kvopt import (
    BatchTime,
    Instance,
    InvalidInput,
    Line,
    Request,
    certify,
    read_certificate,
    write_certificate,
)
from kvopt.certificates.certificate_files import certificate_text
from kvopt.incumbent.certificate import Certificate
from kvopt.problem.clocks import Clock, Rounds, Seconds
from kvopt.search import attaining

pytestmark = pytest.mark.usefixtures("processor_clock")

OWN = [Request(0, 2, 3, e2e=3), Request(0, 1, 6, e2e=2), Request(1, 3, 4, e2e=9)]
INSTANCE = Instance(9, [*OWN, Request(1, 3, 5, e2e=7)], round_ms=100)
SECONDS = Seconds(BatchTime([Line(90_000_000, 1_000_000), Line(0, 20_000_000)], kv_ns=1000))
CLOCKS: list[Clock] = [Rounds(), SECONDS]


FLEET = replace(INSTANCE, requests=tuple(replace(r, id=None) for r in INSTANCE) * 2, workers=2)


@cache
def made(clock: Clock, slo: str, instance: Instance = INSTANCE) -> Certificate:
    """Certify to the end in rounds; in seconds the least latency is never proved."""
    limit = 20 if clock.is_even else 2
    return certify(instance, ["svf", "fcfs"], clock=clock, slo=slo, scope="runs", time_limit=limit)


def slo_of(clock: Clock) -> str:
    """Return a service level that a request more cannot attain."""
    return "e2e=5" if clock.is_even else "ttft=300ms,tpot=200ms,e2e=600ms"


def test_json_has_the_ceiling_at_the_top_and_counts_of_policies() -> None:
    said = made(Rounds(), "e2e=6").to_json()
    assert (said["ceiling"], said["slo"], said["sure_misses"]) == (2, "e2e=6", 0)
    assert [policy["attained"] for policy in said["policies"]] == [2, 2]
    plain = certify(INSTANCE, ["svf"], time_limit=1)
    assert "ceiling" not in plain.to_json()
    assert "attained" not in plain.to_json()["policies"][0]
    assert "slo" not in json.loads(certificate_text(plain))


def prices_in(claim: Any) -> Any:
    """Return the resource of the prices of a ceiling."""
    return claim["proof"]["resources"][0]


Change = Callable[[Any], object]
CHANGES: dict[str, Change] = {
    "a lower ceiling": lambda c: c.update(ceiling=c["ceiling"] - 1),
    "a longer limit": lambda c: c["limits"].update(e2e=10 if c["limits"]["e2e"] == 5 else "1200ms"),
    "first tokens only": lambda c: c.update(limits={"ttft": c["limits"]["e2e"]}),
    "no limit": lambda c: c.update(limits={}),
    "a limit that is none": lambda c: c["limits"].update(e2e="soon"),
    "more of a policy": lambda c: c.update(attained=[c["attained"][0] + 1, *c["attained"][1:]]),
    "less of a policy": lambda c: c.update(attained=[c["attained"][0] - 1, *c["attained"][1:]]),
    "no number": lambda c: c.update(attained=[None, *c["attained"][1:]]),
    "a policy too few": lambda c: c["attained"].pop(),
    "more of the best": lambda c: c["best"].update(attained=c["best"]["attained"] + 1),
    "a value of the best": lambda c: c["best"].update(value=c["best"]["value"] - 1),
    "a start too few": lambda c: c["best"]["starts"].pop(),
    "a worker too few": lambda c: c["best"].update(workers=c["best"].get("workers", [0])[1:]),
    "a worker too many": lambda c: c["best"].update(workers=[2, *c["best"].get("workers", [])[1:]]),
    "an early start": lambda c: c["best"]["starts"].__setitem__(0, -1),
    "a negative price": lambda c: prices_in(c).__setitem__("numerators", [-1]),
    "a free time": lambda c: prices_in(c).update(numerators=[0] * len(prices_in(c)["numerators"])),
    "a price too many": lambda c: prices_in(c)["numerators"].append(10**9),
    "times of no price": lambda c: (
        prices_in(c)["times"].reverse() if "times" in prices_in(c) else prices_in(c).update(first=0)
    ),
    "prices of no resource": lambda c: c["proof"].update(resources=[]),
    "prices of two": lambda c: c["proof"].update(resources=2 * c["proof"]["resources"]),
    "no denominator": lambda c: c["proof"].update(denominator=0),
    "a limit before the arrival": lambda c: c["limits"].update(e2e=-1),
}


@pytest.fixture(
    scope="module",
    params=[(clock, instance) for instance in (INSTANCE, FLEET) for clock in CLOCKS],
    ids=["rounds", "seconds", "fleet-rounds", "fleet-seconds"],
)
def text(request: pytest.FixtureRequest) -> str:
    """Return a certificate whose service level a request more cannot attain."""
    clock, instance = request.param
    found = made(clock, slo_of(clock), instance)
    verified(found)
    return certificate_text(found)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_false_claim_is_found(change: Change, text: str, tmp_path: Path) -> None:
    said = json.loads(text)
    change(said["slo"])
    path = tmp_path / "c.json"
    verdict = judged(path, said)
    assert not verdict.valid
    assert verdict.readable
    with pytest.raises(InvalidInput):
        read_certificate(path)


MACHINE = {"name": "machine", "times": [0, 1], "numerators": [0]}
OTHERS: dict[str, tuple[Change, str]] = {
    "no line": (
        lambda c: c["slo"]["proof"].update(resources=[{**MACHINE, "lines": []}]), "INVALID"
    ),
    "a line of none": (
        lambda c: c["slo"]["proof"].update(resources=[{**MACHINE, "lines": [7]}]), "INVALID"
    ),
    "lines unmixed": (
        lambda c: (
            c["slo"]["proof"].update(resources=[{**MACHINE, "lines": [0, 1]}]),
            c.update(scope="chunks"),
        ),
        "INVALID",
    ),
    "the first schema": (lambda c: c.update(schema=c["schema"][:-1] + "1"), "UNREADABLE"),
    "a longer limit": (lambda c: c["instance"]["requests"][0].update(e2e=99), "hash"),
    "a limit of nothing": (
        lambda c: c["instance"]["requests"][0].update(e2e=0), "a limit of a service level is"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_what_does_not_go_with_a_level_is_found(name: str, text: str, tmp_path: Path) -> None:
    said, (change, words) = json.loads(text), OTHERS[name]
    change(said)
    assert words in judged(tmp_path / "c.json", said).lines[-1]


def test_a_failure_is_a_note_and_both_sides_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OverflowError("too\nlarge")

    monkeypatch.setattr(attaining, "slo_ceiling", fails)
    found = certify(INSTANCE, ["fcfs"], slo="e2e=9", scope="runs")
    assert (found.gap, found.in_time) == (0, None)
    assert "service level: failed, OverflowError: too\\nlarge" in found.notes
    write_certificate(found, tmp_path / "c")
    assert read_certificate(tmp_path / "c").objective == found.objective


def test_the_only_token_of_a_request_is_due_when_the_first_is(tmp_path: Path) -> None:
    """Else the price of its rounds would have to be paid after that, and the ceiling were 2."""
    clock = Seconds(BatchTime([Line(7, 4), Line(4, 4)], kv_ns=1))
    rows = [Request(0, 0, 3, arrival_seconds=3e-9), Request(0, 1, 1, arrival_seconds=0)]
    found = certify(Instance(8, rows), clock=clock, slo="ttft=18ns", scope="runs", time_limit=1)
    content = json.loads(certificate_text(found))
    prices = {"fixed": [0, 300_000], "row_prices": [[0] * 59, [0] * 59]}
    rounds = {"kind": "shared-rounds", "rows": [[0, 1], [1]], "unit": 10**6, "cell": 1, **prices}
    content["slo"] |= {"ceiling": 1, "proof": {**rounds, "slopes": [], "interference": []}}
    assert judged(tmp_path / "claim.json", content).lines[-1] == "VALID"
