"""The notebooks run, print what they hold, and the gallery shows their pictures."""

from __future__ import annotations

import pytest
from notebooks import DOCS, FOLDER, NAMES, cells_of, executed, figures_of, pictures, stored


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_gives_what_it_holds(name: str) -> None:
    """After a change that is meant: ``python tests/support/notebooks.py``."""
    found = executed(name)
    assert figures_of(found) == figures_of(stored(name))
    drawn = [
        [kind for kind, _ in outputs if kind == "image/png"] for _, _, outputs in cells_of(found)
    ]
    assert sum(map(len, drawn)) >= 1


def test_every_notebook_is_known() -> None:
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == {*NAMES}


def test_pictures_of_the_gallery_are_those_of_the_notebooks() -> None:
    held = {path.name: path.read_bytes() for path in (DOCS / "images").glob("gallery-*.png")}
    assert held == pictures()
    assert sum(map(len, held.values())) < 400_000
