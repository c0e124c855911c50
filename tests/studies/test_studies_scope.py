"""Studies with a scope: which policies a bound covers, and refusals of others."""

from __future__ import annotations

from pathlib import Path

import brute_force
import pytest
from commands import Run
from known import known
from refusals import refusal
from strategies import plain

from kvopt import Instance, Request, write_instance
from kvopt.files.reading import parse_json, read_text
from kvopt.problem.instance_files import instance_from_json
from kvopt.problem.scopes import Scope
from kvopt.studies import read_records, read_study, run_study
from kvopt.studies.description import resolved_text, study_from_text
from kvopt.studies.report import write_report

HEAD = 'policies = ["svf", "vllm-fcfs:block=1"]\n'
PAIR = '[[instances]]\ninline = "pair"\nmemory = 10\nrequests = [[0, 0, 10], [6, 5, 1]]\n'
PAUSES = 'name = "pair"\nscope = "pauses"\n'


def test_a_study_has_the_scope_that_it_names() -> None:
    study = study_from_text(PAUSES + HEAD + PAIR)
    assert [limits.scope for limits in study.limits] == [Scope.PAUSES]
    assert study_from_text(resolved_text(study)) == study


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
        ('scope = ["runs"]\n' + HEAD + PAIR, "scope: must be a text, got a list"),
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


@pytest.mark.slow
@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("scope", [Scope.RUNS, Scope.PAUSES])
def test_a_study_certifies_the_optimum_of_its_scope(scope: Scope, run: Run, tmp_path: Path) -> None:
    more = '[[instances]]\nfamily = "arrival-2"\nn = 3\nmemory = 8\ndraws = 2\n'
    names = ["svf", "vllm-fcfs:block=1", "sglang"][: 1 if scope is Scope.RUNS else 3]
    head = f'name = "pair"\nscope = "{scope}"\npolicies = {names}\n'.replace("'", '"')
    (tmp_path / "pair.toml").write_text(f"{head}[limits]\ntime_limit = 0.3\n{PAIR}{more}")
    folder = tmp_path / "out"
    code, *_ = run("study", tmp_path / "pair.toml", "--jobs", 1, "--out", folder)
    assert code == 0
    records = read_records(folder)
    assert len(records) == 3 * len(names)
    for found in records:
        content = parse_json(read_text(folder / known(found.certificate)))
        memory, requests = plain(instance_from_json(content["instance"]))
        least = brute_force.optimum(memory, requests, scope=str(scope))
        assert known(found.lower) <= least <= known(found.upper)
        assert (found.value or 0) >= least
    again = run_study(tmp_path / "pair.toml", folder, jobs=1)
    assert (again.progress.before, again.progress.done) == (3, 3)

    page = write_report(folder, verify=True)
    assert page.faults == ()
    text = page.page.read_text()
    assert "Not drawn" not in text
    assert f"Of bounds and optima, {scope.sentence}." in text


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize(("scope", "value"), [("runs", 3), ("sharing", 2)])
def test_prefixes_are_shared_within_the_scope_alone(scope: str, value: int, tmp_path: Path) -> None:
    """Runs are judged by a bound that covers them: both hold two prompts, or one at a time."""
    shared = Instance(6, [Request(0, 4, 1, prefix=["system"])] * 2, block_tokens=4)
    write_instance(shared, tmp_path / "shared.json")
    (tmp_path / "one.toml").write_text(
        f'scope = "{scope}"\npolicies = ["svf", "lpm"]\n'
        '[limits]\ntime_limit = 2\n[[instances]]\nfile = "shared.json"\n'
    )
    run_study(tmp_path / "one.toml", tmp_path / "out", jobs=1)
    found = {(r.policy, r.value, r.lower, r.error) for r in read_records(tmp_path / "out")}
    assert found == {(name, value, value, None) for name in ("svf", "lpm")}
    assert write_report(tmp_path / "out", verify=True).faults == ()
