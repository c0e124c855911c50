"""Each capability on each axis does what docs/capabilities.md says."""

from __future__ import annotations

import pytest
from capabilities import PAGE, page


@pytest.mark.slow
@pytest.mark.usefixtures("processor_clock")
def test_the_page_says_what_is_done_and_what_is_refused() -> None:
    """``python tests/support/capabilities.py`` writes it anew."""
    assert PAGE.read_text() == page()
