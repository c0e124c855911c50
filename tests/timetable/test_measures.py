"""What users wait, as runs and certificates say it: by hand, and the same in both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import EC1, Run

from kvopt import (
    BatchTime,
    Certificate,
    Instance,
    Line,
    Request,
    certify,
    generate,
    read_certificate,
    run,
    write_certificate,
)
from kvopt.problem.clocks import ROUNDS, Clock, Seconds
from kvopt.timetable.waiting_times import MEASURES, summary

CLOCK = Seconds(BatchTime([Line(1_000_000_000, 0)], prompt_ns=500_000_000))
"""A second a round, and half a second more for each prompt token."""


def test_measures_in_rounds_are_what_a_hand_computes() -> None:
    found = run(Instance(4, [Request(0, 1, 3), Request(1, 1, 2)]), "fcfs").measures()
    assert found["latency"] == {"mean": 3.5, "median": 3, "p99": 4}
    assert found["time_to_first_token"] == {"mean": 2, "median": 1, "p99": 3}
    assert found["time_per_output_token"] == {"mean": 1, "median": 1, "p99": 1}


def test_measures_in_seconds_are_what_a_hand_computes() -> None:
    """The second prefill falls between the first and the last token of the first request."""
    requests = [Request(0, 2, 3, arrival_seconds=0), Request(0, 4, 1, arrival_seconds=0.5)]
    found = run(Instance(20, requests), "fcfs", clock=CLOCK)
    assert found.times_to_first_token == [2_000_000_000, 4_500_000_000]
    assert found.times_per_output_token == [(6 - 2) / 2 * 1e9]  # of one token there is none
    assert found.measures()["time_per_output_token"]["p99"] == 2.0


def test_nothing_is_said_of_what_is_not_there() -> None:
    unknown = {"mean": None, "median": None, "p99": None}
    assert run(Instance(5, []), "svf").measures() == dict.fromkeys(MEASURES, unknown)
    short = run(Instance(5, [Request(0, 1, 1)]), "svf").measures()
    assert short["time_per_output_token"] == unknown
    assert short["latency"]["p99"] == 1


def test_the_99th_percentile_is_one_of_the_values() -> None:
    assert summary(range(1, 101), 1) == {"mean": 50.5, "median": 50, "p99": 99}
    assert summary([7], 1)["p99"] == 7


@pytest.mark.parametrize("clock", [ROUNDS, CLOCK], ids=["rounds", "seconds"])
@pytest.mark.parametrize("policy", ["svf", "fcfs", "alpha-beta:alpha=0,beta=0.5,seed=1"])
def test_a_certificate_says_the_same_as_the_run(clock: Clock, policy: str, tmp_path: Path) -> None:
    instance = generate("arrival-1", n=6, seed=3)
    made = run(instance, policy, clock=clock)
    found = certify(instance, [made], clock=clock, time_limit=0)
    assert found.measures(found.runs[0]) == counted_again(found, tmp_path) == made.measures()
    (row,) = found.to_json()["policies"]
    assert {name: row[name] for name in MEASURES} == made.measures()
    assert {name: made.to_json()[name] for name in MEASURES} == made.measures()


def counted_again(found: Certificate, folder: Path) -> object:
    write_certificate(found, folder / "c.json")
    return read_certificate(folder / "c.json").runs[0].measures()


def test_tables_have_columns_for_it(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "ec1.json"
    file.write_text(json.dumps(EC1))
    rows = {
        verb: [line.split() for line in run(verb, file, "-P", "mc-sf", *more)[1].splitlines()]
        for verb, more in (("run", ()), ("certify", ("-o", tmp_path / "cert.json")))
    }
    head, row = rows["run"]
    assert " ".join(head[:6]) == "policy latency mean p99 first token"
    assert row[:5] == ["mc-sf", "12", "3.00", "6", "1.50"]
    assert "p99 first token outcome" in " ".join(rows["certify"][1])
    assert rows["certify"][2][-3:] == ["6", "1.50", "completed"]
    _, out, _ = run("run", file, "-P", "mc-sf", "--seconds")
    assert "first token s  per token s" in out
