"""The clock of all limits."""

from __future__ import annotations

import time


def wall_time() -> float:
    """Return the seconds of a clock that never goes back."""
    return time.monotonic()
