"""Studies with a scope: which policies a bound covers, and what it is worth to do more."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import brute_force
import pytest
from commands import Run
from refusals import refusal
from strategies import plain
from studied import record

from kvopt import Instance, Request, write_instance
from kvopt.files.reading import parse_json, read_text
from kvopt.problem.instance_files import instance_from_json
from kvopt.problem.scopes import Scope
from kvopt.studies import builtin_study, read_records, read_study, run_study
from kvopt.studies.answers import answer
from kvopt.studies.description import resolved_text, study_from_text
from kvopt.studies.intervals import Interval, by_family, percents, worths
from kvopt.studies.report import write_report
from kvopt.studies.tasks import tasks_of

HEAD = 'policies = ["svf", "vllm-fcfs:block=1"]\n'
PAIR = '[[instances]]\ninline = "pair"\nmemory = 10\nrequests = [[0, 0, 10], [6, 5, 1]]\n'
BOTH = 'name = "both"\nscope = ["runs", "pauses"]\n'


def test_a_policy_meets_the_scopes_that_cover_it() -> None:
    study = study_from_text(BOTH + HEAD + PAIR)
    assert [limits.scope for limits in study.limits] == [Scope.RUNS, Scope.PAUSES]
    assert [(task.limits.scope, task.policies) for task in tasks_of(study)] == [
        (Scope.RUNS, ("svf",)),
        (Scope.PAUSES, ("svf", "vllm-fcfs:block=1")),
    ]
    assert study_from_text(resolved_text(study)) == study
    times = study_from_text(BOTH + HEAD + "[limits]\ntime_limit = [1, 2]\n" + PAIR)
    assert len(times.limits) == 4
    assert study_from_text(resolved_text(times)) == times


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (HEAD + PAIR, "policies: vllm-fcfs:block=1: pauses requests with tokens kept, wh"),
        ('scope = "runs"\n' + HEAD + PAIR, "policies: vllm-fcfs:block=1: pauses request"),
        (
            'scope = "pauses"\nclock = "seconds"\n' + HEAD + PAIR,
            "policies: vllm-fcfs:block=1: pauses requests and processes prompts in pieces",
        ),
        ('scope = "run"\n' + HEAD + PAIR, "scope: must be one of runs, restarts, pauses, "),
        ("scope = []\n" + HEAD + PAIR, "scope: must be a list of length >= 1"),
        ("scope = 3\n" + HEAD + PAIR, "scope: must be a text or a list, got an integer"),
    ],
)
def test_what_a_scope_does_not_cover_is_refused(text: str, wanted: str, tmp_path: Path) -> None:
    said = refusal(read_study, tmp_path / "study.toml", text)
    assert said.startswith(wanted)
    if "vllm" in wanted:
        line = said.partition("does: write ")[2]
        assert line == f'scope = "pauses{"+chunks" * ("seconds" in text)}"'
        bare = text.replace('scope = "runs"\n', "")
        if "seconds" not in text:
            study = study_from_text(f"{line}\n{bare}", tmp_path / "study.toml")
            assert study.limits[0].scope is Scope.PAUSES


def test_two_optima_share_what_is_known_of_either() -> None:
    limits = {"time_limit": 60.0, "threads": 1}
    wide = {**limits, "scope": "pauses"}
    records = [
        record(1, upper=30, lower=20, limits=limits),
        record(1, upper=32, lower=24, limits=wide),
        record(2, upper=40, lower=40, limits=limits),
        record(2, upper=30, lower=None, limits=wide),
        record(3, limits=limits),
        record(4, upper=9, lower=9, limits={**limits, "time_limit": 1.0}),
        record(4, upper=9, lower=9, limits=wide),
    ]
    first, second = worths(records)
    assert (first.runs, first.wider) == (Interval(24, 30), Interval(24, 30))  # type: ignore[arg-type]
    assert first.share == Interval(Fraction(0), Fraction(1, 5))
    assert second.share == Interval(Fraction(1, 4), None)
    (family,) = by_family([first, second])
    assert family.mean == Interval(Fraction(1, 8), None)
    assert family.largest == Interval(Fraction(1, 4), None)
    assert answer(records)[-1] == (
        "arrival-1: with scope pauses the optimum is 12.50% to -% below that of runs on average "
        "over 2 instances, and 25.00% to -% where it is most."
    )
    assert answer(records)[0].startswith("Scope runs: ")


def test_percentages_are_rounded_outward() -> None:
    assert percents(Interval(Fraction(1, 7), Fraction(1, 3))) == "14.28% to 33.34%"
    assert percents(Interval(Fraction(1, 7), Fraction(1, 7))) == "14.29%"


@pytest.mark.slow
@pytest.mark.usefixtures("sketched")
def test_a_study_certifies_both_optima(run: Run, tmp_path: Path) -> None:
    more = '[[instances]]\nfamily = "arrival-2"\nn = 3\nmemory = 8\ndraws = 2\n'
    limits = "[limits]\ntime_limit = 0.3\n"
    (tmp_path / "both.toml").write_text(
        BOTH + 'policies = ["svf", "vllm-fcfs:block=1", "sglang"]\n' + limits + PAIR + more
    )
    folder = tmp_path / "out"
    code, out, _ = run("study", tmp_path / "both.toml", "--jobs", 1, "--out", folder)
    assert code == 0
    assert re.search(r"^sglang +pauses +3 ", out, re.M)
    assert re.search(
        r"^pair: with scope pauses the optimum is .*% below that of runs on", out, re.M
    )
    records = read_records(folder)
    assert len(records) == 3 * 4
    for found in records:
        assert found.certificate is not None
        content = parse_json(read_text(folder / found.certificate))
        memory, requests = plain(instance_from_json(content["instance"]))
        least = (
            brute_force.optimum(memory, requests)
            if found.scope is Scope.RUNS
            else brute_force.optimum(memory, requests, scope="pauses")
        )
        assert found.lower is not None
        assert found.upper is not None
        assert found.lower <= least <= found.upper
        assert (found.value or 0) >= least
    again = run_study(tmp_path / "both.toml", folder, jobs=1)
    assert (again.progress.before, again.progress.done) == (6, 6)

    page = write_report(folder, verify=True)
    assert page.faults == ()
    text = page.page.read_text()
    assert "Not drawn" not in text
    assert 'id="worth"' in text
    for scope in (Scope.RUNS, Scope.PAUSES):
        assert f"Of bounds and optima with scope {scope}, {scope.sentence}." in text


@pytest.mark.usefixtures("sketched")
def test_prefixes_are_shared_within_the_scope_alone(tmp_path: Path) -> None:
    """Runs are judged by a bound that covers them: both hold two prompts, or one at a time."""
    shared = Instance(6, [Request(0, 4, 1, prefix=["system"])] * 2, block_tokens=4)
    write_instance(shared, tmp_path / "shared.json")
    (tmp_path / "both.toml").write_text(
        'scope = ["runs", "sharing"]\npolicies = ["svf", "lpm"]\n'
        '[limits]\ntime_limit = 2\n[[instances]]\nfile = "shared.json"\n'
    )
    run_study(tmp_path / "both.toml", tmp_path / "out", jobs=1)
    found = {(r.policy, r.scope, r.value, r.lower, r.error) for r in read_records(tmp_path / "out")}
    assert found == {
        (name, scope, value, value, None)
        for name in ("svf", "lpm")
        for scope, value in ((Scope.RUNS, 3), (Scope.SHARING, 2))
    }
    assert write_report(tmp_path / "out", verify=True).faults == ()


def test_the_built_in_study_of_pauses_compares_both_scopes() -> None:
    study = builtin_study("pausing", checked=False)
    assert [limits.scope for limits in study.limits] == [Scope.RUNS, Scope.PAUSES]
    families = {entry.name for entry in study.entries}
    assert {"arrival-1", "arrival-2", "uniform", "mixed", "conversation"} <= families
