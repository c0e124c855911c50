"""How many examples tests try: few of what is slow, and many more where there is all night."""

from __future__ import annotations

from hypothesis import settings

NORMAL = 60
"""Examples of a test that says nothing, in the profile of `make test`."""
THOROUGH = 1000
"""The same for `make test-thorough`."""


def many(count: int) -> int:
    """Return how many draws a loop tries: so many in `make test`, more in a thorough run."""
    return count * settings().max_examples // NORMAL


def examples(count: int) -> settings:
    """Return settings with so many examples in `make test`, and more where others have more."""
    return settings(max_examples=many(count))
