"""Studies of fleets: numbers of machines as an axis, and every scheduler behind every router."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kvopt import InvalidInput, run
from kvopt.experiments.report import write_report
from kvopt.experiments.studies import read_study, run_study
from kvopt.experiments.studies.description import resolved_text, study_from_text

TEXT = """
name = "x"
policies = ["fcfs", "svf"]
router = ["round-robin", "central"]
[limits]
time_limit = 0.5
[[instances]]
family = "conversation"
n = 12
memory = 300
workers = [1, 2]
"""
LABELS = tuple(
    f"{router} + {policy}" for policy in ("fcfs", "svf") for router in ("round-robin", "central")
)


def test_each_scheduler_runs_behind_each_router_on_each_number_of_machines(tmp_path: Path) -> None:
    study = study_from_text(TEXT)
    assert study.entries[0].policies == LABELS
    assert study_from_text(resolved_text(study)).entries == study.entries
    found = run_study(study, tmp_path / "out", jobs=1)
    assert [entry.source.workers for entry in found.study.entries] == [1, 2]
    assert {(r.instance.parameters["workers"], r.policy) for r in found.records} == {
        (workers, label) for workers in (1, 2) for label in LABELS
    }
    for record in found.records:
        source = found.study.entries[record.instance.parameters["workers"] - 1].source
        assert record.policy is not None
        router, _, policy = record.policy.partition(" + ")
        assert record.value == run(source.instance(), policy, router=router).objective
        assert record.lower is not None
        assert record.lower <= (record.value or 0)
    assert "workers 1 to 2" in " ".join(found.answer)
    again = run_study(found.study, tmp_path / "out", jobs=1)
    assert again.progress.before == again.progress.done == 2
    page = write_report(tmp_path / "out").page.read_text()
    (picture,) = re.findall(r'<section id="by-workers".*?</section>', page, re.DOTALL)
    assert "round-robin + fcfs" in picture


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ('"central"]', '"nearest"]', "policies: nearest"),
        ("[1, 2]", "[0, 1]", "workers"),
        ('family = "conversation"\nn = 12', 'game = "theorem-5"', "workers"),
    ],
)
def test_what_is_refused(tmp_path: Path, old: str, new: str, wanted: str) -> None:
    (tmp_path / "x.toml").write_text(TEXT.replace(old, new))
    with pytest.raises(InvalidInput, match=wanted):
        read_study(tmp_path / "x.toml")
