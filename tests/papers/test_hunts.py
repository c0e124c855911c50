"""A hunt finds the worst instance that there is, and what it reports is certified."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import hunt
import pytest
from brute_force import Triple, every_problem, optimum
from literal import jaillet
from literal.common import Job
from space import Case, Space, needs_order

from kvopt import Scope, Stopped, policy, read_certificate, run, tiny_optimum


def mc_sf(memory: int, requests: Sequence[Triple]) -> int:
    """Return the total latency of ``mc-sf``, by its transcription."""
    return jaillet.mc_sf([Job(*request) for request in requests], memory).objective or 0


def judge(label: str) -> hunt.Judge:
    return hunt.Judge([policy(label)], Scope.RUNS, float("inf"))


@pytest.mark.slow
def test_a_hunt_finds_the_worst_there_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    worst = max(
        Fraction(mc_sf(memory, requests), optimum(memory, requests))
        for memory, requests in every_problem(4, 3, 0)
    )
    file = tmp_path / "worst.json"
    arguments = ["-P", "mc-sf", "--n", "3", "-m", "4", "-t", "120", "-o", str(file)]
    assert hunt.main(arguments) == 0
    out = capsys.readouterr().out
    assert "every instance of up to 3 requests and 4 tokens of memory\n" in out
    assert "(proved and verified)" in out
    found = read_certificate(file)
    (value,) = [each.objective for each in found.runs]
    assert Fraction(value, found.objective or 1) == worst > 1


@pytest.mark.slow
def test_a_hunt_with_pauses_compares_both_optima(capsys: pytest.CaptureFixture[str]) -> None:
    assert hunt.main(["--scope", "pauses", "--n", "1", "-m", "3"]) == 3
    assert capsys.readouterr().out.endswith("pausing is worth nothing on any\n")
    arguments = ["--scope", "pauses", "--n", "2", "-m", "5", "--last-arrival", "2", "-t", "60"]
    assert hunt.main(arguments) == 0
    assert "optimum of runs over the optimum with pauses:\nratio 9 / 7" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--n", "2"], "--policy: needs one; none goes with --scope pauses"),
        (["-P", "nobody", "--n", "2"], "policy"),
        (["-P", "sglang", "--scope", "runs", "--n", "2"], "sglang: needs --scope pauses"),
    ],
)
def test_what_is_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hunt.main([*arguments, "-m", "4"]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("equal", [False, True])
def test_the_space_counts_what_it_yields(equal: bool, ordered: bool) -> None:
    space = Space(4, 3, last_arrival=1, equal_prompts=equal, ordered=ordered)
    for count in (1, 2, 3):
        cases = list(space.every(count))
        assert len(cases) == len(set(cases)) == space.size(count)
        assert all(map(space.holds, cases))
    rng = random.Random(1)
    case = space.drawn(rng)
    for _ in range(300):
        case = space.neighbour(case, rng)
        assert space.holds(case)
        hunt.instance_of(case)  # which refuses what is no instance


@pytest.mark.parametrize("label", ["mc-sf", "mc-sf:alpha=0.1", "mc-sf-total", "svf", "h-sf"])
def test_the_order_of_requests_is_nothing_to_the_blind(label: str) -> None:
    assert not needs_order([policy(label)])
    assert needs_order([policy(label), policy("fcfs")])
    rng = random.Random(5)
    for _ in range(30):
        case = Space(9, 6, last_arrival=2).drawn(rng)
        shuffled = (case[0], tuple(rng.sample(case[1], len(case[1]))))
        one, other = (run(hunt.instance_of(c), label).objective for c in (case, shuffled))
        assert one == other


@pytest.mark.slow
def test_local_search_is_shrunk_and_keeps_its_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    space, judged = Space(10, 6, equal_prompts=True), judge("mc-sf")
    monkeypatch.setattr(hunt.Judge, "is_late", lambda self: self.tried > 1200)  # not the clock
    chase = hunt.Chase(space, judged, 1)
    with pytest.raises(Stopped):
        chase.search()
    monkeypatch.undo()
    assert chase.worst is not None
    small = hunt.shrunk(chase.worst, judge("mc-sf"), space.holds)
    assert small.ratio >= chase.worst.ratio > Fraction(28, 27)
    case: Case = small.case
    assert small.ratio == Fraction(mc_sf(*case), tiny_optimum(hunt.instance_of(case)) or 1)
    assert hunt.shrunk(small, judge("mc-sf"), space.holds) == small
