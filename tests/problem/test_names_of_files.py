"""What takes an instance takes the name of its file as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvopt import InvalidInput, bound, certify, generate, run, solve, write_instance

INSTANCE = generate("arrival-1", n=4, seed=1)


@pytest.mark.parametrize("kind", [str, Path])
def test_a_file_is_as_good_as_what_is_in_it(tmp_path: Path, kind: type) -> None:
    path = tmp_path / "i.json"
    write_instance(INSTANCE, path)
    assert solve(kind(path)).objective == solve(INSTANCE).objective
    assert bound(kind(path), "volume").value == bound(INSTANCE, "volume").value
    assert run(kind(path), "svf").starts == run(INSTANCE, "svf").starts
    assert certify(kind(path), ["svf"]).objective == certify(INSTANCE, ["svf"]).objective


def test_what_is_neither_is_refused_and_a_missing_file_is_named(tmp_path: Path) -> None:
    for wrong in (None, 3, {"memory": 7}):
        with pytest.raises(InvalidInput, match=r"instance: must be an Instance or the name of a"):
            solve(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"none\.json"):
        run(tmp_path / "none.json", "svf")
