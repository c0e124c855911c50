"""Time that machines are on: a lower bound with its proof."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MachineTime:
    """A lower bound on the time that all machines are on, and what proves it.

    Parameters
    ----------
    value
        The bound, in units of the clock.
    every, misses
        Length of the windows, and how many requests that arrive in each of them may miss, from the
        window of the first arrival on.
    lines
        Positions of the lines of the batch-time model that count.
    relaxations
        Names of the steps to the wider problem that the proof is about.
    """

    value: int
    every: int
    misses: tuple[int, ...]
    lines: tuple[int, ...] = ()
    relaxations: tuple[str, ...] = ()
