"""Several instances in one call, a table of progress, and other fields of an instance."""

from __future__ import annotations

import pytest

from kvopt import InvalidInput, generate, solve, solve_many


@pytest.mark.slow
def test_processes_find_what_one_process_finds(capfd: pytest.CaptureFixture[str]) -> None:
    instances = [generate("arrival-1", n=5, seed=seed) for seed in range(3)]
    found = solve_many(instances, "exact", jobs=2, display=True, time_limit=60)
    expected = [solve(instance, "exact").objective for instance in instances]
    assert [None if each is None else each.objective for each in found] == expected
    lines = capfd.readouterr().err.splitlines()
    assert [line[:6] for line in lines] == ["1 of 3", "2 of 3", "3 of 3"]


def test_what_no_process_can_be_handed_is_refused() -> None:
    with pytest.raises(InvalidInput, match="stop: is a function"):
        solve_many([], stop=lambda _: True)
    with pytest.raises(InvalidInput, match="jobs: must be at least 1"):
        solve_many([], jobs=0)


def test_a_table_of_progress_ends_with_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    result = solve(generate("arrival-1", n=5, seed=1), display=True)
    heads, *rows = capsys.readouterr().err.splitlines()
    assert heads.split() == ["seconds", "latency", "bound", "gap", "by"]
    assert rows[-1].split()[1:4] == [f"{result.objective:,}", f"{result.lower_bound:,}", "0.00%"]


def test_an_instance_with_other_fields() -> None:
    instance = generate("arrival-1", n=5, seed=1)
    larger = instance.replace(memory=100, name="larger")
    assert (larger.memory, larger.name, larger.requests) == (100, "larger", instance.requests)
    with pytest.raises(InvalidInput, match="memory"):
        instance.replace(memory=1)
