"""Studies with deadlines: their key, their records, their section."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Run

from kvopt import InvalidInput
from kvopt.experiments.studies import read_study, run_study
from kvopt.experiments.studies.description import resolved_text, study_from_text

TEXT = """
name = "late"
policies = ["svf", "fcfs"]
[limits]
time_limit = 4
deadline = ["12", "first-token:4"]
[[instances]]
family = "arrival-2"
n = 8
"""


def test_each_deadline_is_a_limit_of_its_own_and_survives_its_text() -> None:
    study = study_from_text(TEXT)
    assert [limits.deadline for limits in study.limits] == ["12", "first-token:4"]
    assert study_from_text(resolved_text(study)).limits == study.limits


@pytest.mark.parametrize(("old", "new"), [('"12"', '"soon"'), ('"12"', "12")])
def test_what_is_no_deadline_is_refused(old: str, new: str) -> None:
    with pytest.raises(InvalidInput, match="deadline"):
        study_from_text(TEXT.replace(old, new))


@pytest.mark.slow
def test_records_and_report_say_how_many_are_in_time(tmp_path: Path, run: Run) -> None:
    (tmp_path / "late.toml").write_text(TEXT)
    found = run_study(read_study(tmp_path / "late.toml"), tmp_path / "out", jobs=1)
    assert len(found.records) == 4
    for record in found.records:
        assert record.attained is not None
        assert record.best_attained is not None
        assert record.attained <= record.best_attained <= (record.ceiling or 0)
    code, _, err = run("report", tmp_path / "out", "--verify")
    assert code == 0
    assert "verified 2 of 2 certificates" in err
    page = (tmp_path / "out" / "report.html").read_text()
    assert "share of the requests in time" in page
    assert "first-token:4" in page
