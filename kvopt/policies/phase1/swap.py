"""Local swap search (wang-2025 section 5.2, Algorithm 3).

Fill a batch greedily by peak, then exchange a member for an outsider as long as that lowers
F.  The size stays, so F falls exactly when the outsider's output is smaller.  The paper scans
pairs, members first, makes the first exchange that helps and begins again, which costs up to
n^2 looks an exchange.  The same pair is found here with one pass: among outsiders sorted by
peak, the least output up to a peak tells each member whether anybody small enough is shorter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kvopt.policies.phase1.batch import Candidate

Integers = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]

_NOBODY = 2**62
"""More than any output."""


def swap(waiting: Sequence[Candidate], memory: int) -> list[Candidate]:
    """Return the batch of the greedy fill by peak after local swaps."""
    return swapped(sorted(waiting, key=by_peak), memory)


def by_peak(candidate: Candidate) -> tuple[int, ...]:
    """Return the order of Algorithm 3, line 1, with ties by prompt, arrival, position."""
    return candidate.peak, *candidate[1:]


def swapped(order: Sequence[Candidate], memory: int) -> list[Candidate]:
    """Fill greedily in the given order and swap while that helps, scanning in that order.

    Everything keeps to the sufficient condition that all peaks fit together.
    """
    peaks = np.array([candidate.peak for candidate in order], dtype=np.int64)
    outputs = np.array([candidate.output for candidate in order], dtype=np.int64)
    chosen = _filled(peaks.tolist(), memory)
    slack = memory - int(peaks[chosen].sum())
    by_size = peaks.argsort(kind="stable")
    while pair := _first_exchange(peaks, outputs, by_size, chosen, slack):
        out, into = pair
        chosen[out], chosen[into] = False, True
        slack += int(peaks[out] - peaks[into])
    return sorted(order[place] for place in np.flatnonzero(chosen).tolist())


def _filled(peaks: list[int], memory: int) -> Marks:
    """Take whatever still fits, in order; what does not is skipped."""
    chosen = np.zeros(len(peaks), dtype=np.bool_)
    for place, peak in enumerate(peaks):
        if peak <= memory:
            chosen[place] = True
            memory -= peak
    return chosen


def _first_exchange(
    peaks: Integers, outputs: Integers, by_size: Integers, chosen: Marks, slack: int
) -> tuple[int, int] | None:
    """Return the first member that somebody shorter can replace, and the first who can."""
    outsiders = np.where(chosen, _NOBODY, outputs)
    shortest = np.minimum.accumulate(outsiders[by_size])  # among outsiders up to a peak
    members = np.flatnonzero(chosen)
    within = peaks[by_size].searchsorted(peaks[members] + slack, "right")
    helped = shortest[within - 1] < outputs[members]
    first = int(helped.argmax())
    if not helped[first]:
        return None
    out = int(members[first])
    able = (outsiders < outputs[out]) & (peaks <= peaks[out] + slack)
    return out, int(able.argmax())
