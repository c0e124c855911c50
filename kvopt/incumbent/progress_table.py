"""A table of progress on standard error, for Python and notebooks."""

from __future__ import annotations

import sys

from kvopt.incumbent.result import Progress


class ProgressTable:
    """An observer that prints a row for each improvement, at most five a second."""

    _EVERY = 0.2

    def __init__(self) -> None:
        self._printed = -1.0

    def __call__(self, now: Progress) -> None:
        """Print both sides."""
        if self._printed < 0:
            heads = f"{'seconds':>8}  {'latency':>16}  {'bound':>16}  {'gap':>7}  by"
            print(heads, file=sys.stderr)
        elif now.seconds < self._printed + self._EVERY and now.gap != 0:
            return
        self._printed = now.seconds
        sides = (f"{'-' if x is None else f'{x:,}':>16}" for x in (now.objective, now.lower_bound))
        gap = "-" if now.gap is None else f"{now.gap:.2%}"
        row = f"{now.seconds:8.1f}  {'  '.join(sides)}  {gap:>7}  {now.engine}"
        print(row, file=sys.stderr, flush=True)
