"""Budget: count the steps of a check, and refuse a file that needs more than it may."""

from __future__ import annotations

import math
from collections.abc import Callable

STEPS = 600_000_000
"""Steps that a check may take if its file states no more: half a minute, each about 50 ns."""
BYTES = 850_000_000
"""Bytes of tables that come with so many steps, about, at most."""
MOST_STATED = 20
"""Times as many steps that are granted to a file that states them: about ten minutes."""
UNLISTED = 2
"""Times as many for a search of which a file does not state how large its rounds are."""
MOST_TIMES = 1_000_000
"""Times the default budget; a refusal does not name more than this."""
MARK = STEPS // 2
"""Steps from one word of progress to the next."""

Prepared = tuple[int, Callable[[], tuple[int, str]]]
"""Steps that a proof takes, about, and its evaluation: a lower bound, and how it was found."""


class Unreadable(Exception):
    """The file does not have the shape of a certificate."""


class Invalid(Exception):
    """A claim of the file is false."""


class Work:
    """Counter of the steps of a check, so that no file keeps the checker busy for hours.

    What is linear in the size of a file is bounded with that.  Of each kind of proof an estimate
    is charged before its work begins.  Loops whose length follows from the numbers of a proof, not
    from how many there are, are charged as they go: starts that prices do not rule out, copies of
    states that are left, labels of a search.  Tables are charged so that BYTES come with STEPS at
    most; integers of many digits are slow, and large: a step counts ``weight`` times then.

    ``part`` is what is looked at, and ``naive`` whether proofs are evaluated by `definitions`.
    """

    def __init__(
        self,
        times: float | None = None,
        progress: Callable[[str], None] | None = None,
        *,
        jobs: int = 1,
        naive: bool = False,
    ) -> None:
        if times is not None and not 0 < times < math.inf:  # which NaN is not
            raise ValueError("budget: must be a positive number")
        self.naive, self.is_told, self.progress = naive, times is not None, progress
        self.times = times or 1.0
        self.used, self.weight, self.mark, self.part = 0, 1, MARK, ""
        self.jobs = jobs

    def grant(self, stated: int | None) -> None:
        """Grant the budget that a file asks for, unless the reader set one."""
        if stated is not None and stated < 2:
            raise Invalid("budget: must be at least 2")
        if stated is not None and not self.is_told:
            if stated > MOST_STATED:
                raise Unreadable(f"the file says that it needs {_needed(stated)}")
            self.times = stated

    def spend(self, steps: int, elsewhere: int = 0) -> None:
        """Take steps, each about the time of an entry of a table, or those of another process."""
        steps *= self.weight
        self.used += steps + elsewhere
        if self.used > self.times * STEPS:
            needed = -(-self.used // STEPS)
            if steps > STEPS:  # known before it is begun, so most of it all
                raise Unreadable(f"{self.part}needs about {_needed(needed)}")
            raise Unreadable(
                f"{self.part}the budget of {int(self.times * STEPS):,} steps is used up: "
                f"{budget_option(max(2 * math.ceil(self.times), needed))}"
            )
        if self.progress is not None and self.used >= self.mark:
            self.mark = self.used + MARK
            share = int(100 * self.used / (self.times * STEPS))
            self.progress(f"checking, {share}% of at most about {_minutes(self.times)}")

    def expect(self, steps: int) -> None:
        """Refuse work of so many steps, about, that is known before it is begun."""
        needed = self.used + steps * self.weight
        if needed > self.times * STEPS:
            raise Unreadable(f"{self.part}needs about {_needed(-(-needed // STEPS))}")

    def hold(self, size: int) -> None:
        """Refuse a table of so many bytes, about, if it is more than comes with the budget."""
        if size > self.times * BYTES:
            needed = max(2 * math.ceil(self.times), -(-size // BYTES))
            raise Unreadable(f"{self.part}needs more memory: {budget_option(needed)}")


def _needed(times: int) -> str:
    if times > MOST_TIMES:
        return f"more than {MOST_TIMES:,} times the default budget of steps"
    return f"{times:,} times the default budget of steps: {budget_option(times)}"


def budget_option(times: int) -> str:
    """Name the option that allows so many times the budget, with its time and memory."""
    size = f"{times * BYTES / 10**9:,.1f} GB"
    return f"verify --budget {times} allows it about {_minutes(times)} and {size}"


def _minutes(times: float) -> str:
    return "half a minute" if times <= 1 else f"{math.ceil(times / 2):,} min"
