"""How many examples tests try: few of what is slow, and many more where there is all night."""

from __future__ import annotations

from hypothesis import settings

NORMAL = 60
"""Examples of a test that says nothing, in the profile of `make test`."""
THOROUGH = 1000
"""The same for `make test-thorough`."""


def examples(count: int) -> settings:
    """Return settings with so many examples in `make test`, and more where others have more."""
    return settings(max_examples=count * settings().max_examples // NORMAL)
