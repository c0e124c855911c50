"""docs/capabilities.md has the axes and the strength of bounds; the rest is refused."""

from __future__ import annotations

import re

import pytest
from capabilities import PAGE, REFUSED, page, refusal

RATIO = re.compile(r"\b[01]\.\d\d\b")


@pytest.mark.slow
@pytest.mark.usefixtures("processor_clock")
def test_the_page_says_what_is_there_and_how_strong_bounds_are() -> None:
    """``python tests/support/capabilities.py`` writes it anew."""
    written, now = PAGE.read_text(), page()
    assert RATIO.sub("", written) == RATIO.sub("", now)
    pairs = zip(RATIO.findall(written), RATIO.findall(now), strict=True)
    assert not [pair for pair in pairs if abs(float(pair[0]) - float(pair[1])) > 0.1]


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_exist_is_refused_in_one_line(what: str) -> None:
    assert all("\n" not in refusal(work) for work in REFUSED[what])
