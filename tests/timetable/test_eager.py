"""The one eager schedule: a replay in which nothing waits, in certificates and in the check."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvopt import BatchTime, Instance, Line, Problem, Request, Seconds, certify, run, solve
from kvopt.certificates.certificate_files import (
    certificate_text,
    read_certificate,
    write_certificate,
)
from kvopt.timetable.eager import eager_schedule
from kvopt.verify import verify_text

CLOCK = Seconds(BatchTime([Line(7, 2), Line(3, 4)], kv_ns=1, prompt_ns=2))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    memory = draw(st.integers(9, 30))
    requests = [
        Request(
            0,
            draw(st.integers(0, 5)),
            draw(st.integers(1, 4)),
            arrival_seconds=draw(st.integers(0, 60)) / 1e9,
            weight=draw(st.integers(1, 2)),
        )
        for _ in range(draw(st.integers(1, 5)))
    ]
    limit = draw(st.none() | st.integers(1, 4))
    return Problem(Instance(memory, requests, max_active=limit), CLOCK)


@given(problems())
def test_it_is_the_replay_that_never_waits(problem: Problem) -> None:
    """Of first come, first served where nothing is in the way, if memory and limit allow it."""
    schedule, instance = eager_schedule(problem), problem.instance
    free = run(instance.replace(memory=10**6, max_active=None), "fcfs", clock=CLOCK)
    active = Counter(chain.from_iterable(free.active_times))
    fits = free.peak_memory <= instance.memory
    fits = fits and max(active.values()) <= (instance.max_active or len(instance))
    assert (schedule and schedule.objective) == (free.objective if fits else None)
    if schedule is not None:
        assert run(instance, "fcfs", clock=CLOCK).objective == schedule.objective


@pytest.mark.parametrize(("memory", "is_eager"), [(9, True), (5, False)])
def test_a_certificate_states_it_and_the_check_replays_it(memory: int, is_eager: bool) -> None:
    pair = [Request(0, 2, 2, arrival_seconds=0), Request(0, 2, 1, arrival_seconds=5e-9)]
    problem = Problem(Instance(memory, pair), CLOCK)
    certificate = certify(problem, time_limit=2)
    schedule = eager_schedule(problem)
    assert certificate.eager == (schedule and schedule.objective)
    text = certificate_text(certificate)
    if certificate.eager is None:
        assert not is_eager
        spoiled = text.replace('"provenance"', '"eager": 76, "provenance"', 1)
        assert verify_text(spoiled).lines[-1].startswith("INVALID: eager: 2 requests")
        return
    report = verify_text(text)
    assert report.valid
    assert is_eager
    assert any("there is one eager schedule" in line for line in report.lines)
    spoiled = text.replace(f'"eager": {certificate.eager}', f'"eager": {certificate.eager - 1}')
    assert verify_text(spoiled).lines[-1].startswith("INVALID: eager: says")


def test_results_say_that_there_is_one() -> None:
    problem = Problem(Instance(9, [Request(0, 2, 2)]), CLOCK)
    found = solve(problem, time_limit=2)
    assert found.eager == found.to_json()["eager_ns"] == found.objective
    assert "one eager schedule of whole prompts" in str(found)
    assert "eager" not in solve(problem.instance).to_json()


def test_it_survives_a_file(tmp_path: Path) -> None:
    path = tmp_path / "one.cert.json"
    written = certify(Problem(Instance(9, [Request(0, 2, 2)]), CLOCK), time_limit=2)
    write_certificate(written, path)
    assert read_certificate(path).eager == written.eager is not None
