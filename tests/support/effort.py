"""How many examples tests try: few of what is slow, and many more where there is all night."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from hypothesis import settings

from kvopt.bounds import lagrangian
from kvopt.kernels import budget

NORMAL = 30
"""Examples of a test that says nothing, in the profile of `make test`."""
THOROUGH = 1000
"""The same for `make test-thorough`."""
_UNIT = 60
"""Examples by which the counts of tests are meant; `make test` tries half of them."""


def many(count: int) -> int:
    """Return how many draws a loop tries: half of a count in `make test`, more at night."""
    return max(count * settings().max_examples // _UNIT, 1)


def examples(count: int) -> settings:
    """Return settings with half as many examples in `make test`, and more at night."""
    return settings(max_examples=many(count))


@contextmanager
def few_steps(most: int = 200) -> Iterator[None]:
    """Let ascents of prices end soon: most of their time goes into the last digits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lagrangian, "MAX_STEPS", most)
        yield


@contextmanager
def processor_time() -> Iterator[None]:
    """Let limits count what this process computes: they get as far on a busy machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budget, "time", SimpleNamespace(monotonic=time.process_time))
        yield
