"""The clock of all limits, and the begin of a command."""

from __future__ import annotations

import math
import time

_COMMAND = {"began": math.inf}


def begin_command() -> None:
    """Remember that a command begins: loading the program is part of its time."""
    _COMMAND["began"] = wall_time()


def spent_loading(limit: float) -> float:
    """Return the seconds since the command began, half of its limit at most.

    On a busy machine the program takes seconds to load.
    """
    return min(max(wall_time() - _COMMAND["began"], 0.0), limit / 2)


def wall_time() -> float:
    """Return the seconds of a clock that never goes back."""
    return time.monotonic()
