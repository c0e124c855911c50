"""The plan says which stages apply, and a result which ran."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Run

from kvopt import Instance, Request, solve, write_instance

INSTANCE = Instance(7, [Request(0, 1, output) for output in (1, 2, 3, 4)])


@pytest.mark.parametrize(
    ("options", "stage"),
    [
        ((), "exact"),
        (("--scope", "pauses"), "all with pauses"),
        (("--workers", "2"), "sets of requests"),
        (("--block-size", "2"), "longer prompts"),
        (("--seconds",), "shares"),
    ],
)
def test_stages_that_apply_are_named_with_their_times(
    options: tuple[str, ...], stage: str, run: Run, tmp_path: Path
) -> None:
    write_instance(INSTANCE, tmp_path / "i.json")
    code, out, _ = run("solve", tmp_path / "i.json", "--explain", *options)
    assert code == 0
    assert stage in out
    assert "nan" not in out


def test_a_result_says_which_stages_ran_and_what_they_brought() -> None:
    found = solve(INSTANCE, time_limit=0)
    assert [log.name for log in found.stages] == ["volume", "staircases", "list schedules"]
    assert found.stages[0].rose == 11
    assert str(found.stages[2]).endswith("the first schedule")
