"""What is not installed is named in one line, with what to type."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvopt import KvoptError, MissingPackage
from kvopt.show.optional import optional


def test_what_is_there_is_loaded() -> None:
    assert optional("json.decoder", "plot").JSONDecoder


@pytest.mark.parametrize("name", ["not_there", "not_there.part"])
def test_what_is_missing_is_named_with_the_extra_that_brings_it(name: str) -> None:
    with pytest.raises(MissingPackage) as caught:
        optional(name, "plot")
    assert str(caught.value) == (
        "not_there is not installed: pip install 'kvopt[plot]'; without it no pictures and reports"
    )
    assert isinstance(caught.value, KvoptError)
    assert isinstance(caught.value, ImportError)


def test_what_fails_inside_a_package_is_its_own_affair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_inside.py").write_text("import not_there_either\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="not_there_either") as caught:
        optional("broken_inside", "plot")
    assert not isinstance(caught.value, MissingPackage)
