"""What a computation may take: time and memory, and whether it was asked to end.

All limits of time have one clock, which a command starts before the program is loaded.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

from kvopt.errors import TooLarge
from kvopt.kernels import memory

_COMMAND = {"began": math.inf}


def wall_time() -> float:
    """Return the seconds of a clock that never goes back."""
    return time.monotonic()


def begin_command() -> None:
    """Remember that a command begins: loading the program is part of its time."""
    _COMMAND["began"] = wall_time()


def spent_loading(limit: float) -> float:
    """Return the seconds since the command began, half of its limit at most.

    On a busy machine the program takes seconds to load.
    """
    return min(max(wall_time() - _COMMAND["began"], 0.0), limit / 2)


class Budget:
    """Time up to an end, memory, and further reasons to end.

    A part ends with the whole, so long functions take a budget and know of no other limit.  Any
    thread may ask it.

    Parameters
    ----------
    seconds
        Wall time from now.
    ram
        Bytes that the process may hold, by default as the whole, or a share of the machine's.
    whole
        What this is a part of.
    until
        One more reason to end.

    Attributes
    ----------
    is_full
        Whether the current engine has to end because of its memory; others may follow.

    Examples
    --------
    >>> Budget(0.0).over(), Budget().part(0.5).left, Budget(until=lambda: True).over()
    (True, inf, True)
    """

    def __init__(
        self,
        seconds: float = math.inf,
        *,
        ram: int | None = None,
        whole: Budget | None = None,
        until: Callable[[], bool] = lambda: False,
    ) -> None:
        self._began = wall_time()
        self._end, self._whole, self._until = self._began + seconds, whole, until
        if ram is None:
            ram = memory.default_budget() if whole is None else whole.ram
        self.ram: int = ram
        self.is_full = self._is_interrupted = False
        self._signal: int | None = None

    def part(
        self,
        share: float = 1.0,
        most: float = math.inf,
        *,
        until: Callable[[], bool] = lambda: False,
    ) -> Budget:
        """Return a share of the remaining time, at most so many seconds; a share of 0 is none."""
        seconds = math.inf if share == 1.0 else share * self.left if share else 0.0
        return Budget(min(seconds, most), whole=self, until=until)

    @property
    def spent(self) -> float:
        """Wall time since it began."""
        return wall_time() - self._began

    @property
    def left(self) -> float:
        """Remaining seconds, infinite without a limit, never negative."""
        return max(0.0, self._last - wall_time())

    def over(self) -> bool:
        """Whether to end now."""
        now = wall_time()
        return any(
            level.is_full or level._is_interrupted or now >= level._end or level._until()
            for level in self._levels()
        )

    def ends_before(self, other: Budget) -> bool:
        """Whether its time ends before that of another one."""
        return self._last < other._last

    def expire(self) -> None:
        """End its time now: a solver with a clock of its own has kept the limit."""
        self._end = min(self._end, wall_time())

    def interrupt(self, signal_number: int | None = None) -> None:
        """Ask for an end, as Ctrl-C does; safe in signal handlers."""
        self._signal, self._is_interrupted = signal_number, True

    @property
    def is_interrupted(self) -> bool:
        """Whether it was asked for an end."""
        return any(level._is_interrupted for level in self._levels())

    @property
    def signal_number(self) -> int | None:
        """The signal that asked for an end, None without one."""
        return next((s for level in self._levels() if (s := level._signal) is not None), None)

    @property
    def memory_left(self) -> int:
        """Remaining bytes."""
        return max(0, self.ram - memory.used())

    def refuse(self, needed: float) -> None:
        """Raise `TooLarge` if something needs more than the remaining memory."""
        if needed > (left := self.memory_left):
            raise TooLarge(
                f"would take some {memory.in_words(needed)}, the memory budget of "
                f"{memory.in_words(self.ram)} leaves {memory.in_words(left)}"
            )

    @property
    def _last(self) -> float:
        """The end of its time, on the clock of limits."""
        return min(level._end for level in self._levels())

    def _levels(self) -> Iterator[Budget]:
        """Yield this budget, then the larger ones around it."""
        level: Budget | None = self
        while level is not None:
            yield level
            level = level._whole
