"""Local swaps in one pass each; written for a compiler, and run without one where few wait.

Among outsiders sorted by peak, the least output up to a peak tells each member whether any
small enough is shorter.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]


def exchange(
    peaks: Integers, outputs: Integers, by_size: Integers, chosen: Marks, slack: int
) -> None:
    """Exchange the first member that a shorter one can replace by the first that can.

    That is done to ``chosen`` as long as there is a pair.  Places are scanned in ascending
    order; ``by_size`` has them by ascending peak.
    """
    count = len(peaks)
    sizes, shortest = peaks[by_size], np.empty(count + 1, np.int64)
    shortest[0] = 2**62  # more than any output
    while True:
        for rank in range(count):
            place = by_size[rank]
            least = shortest[rank]
            shortest[rank + 1] = least if chosen[place] else min(least, outputs[place])
        out = 0
        while out < count:
            if chosen[out]:
                within = np.searchsorted(sizes, peaks[out] + slack, "right")
                if shortest[within] < outputs[out]:
                    break
            out += 1
        if out == count:
            return
        into = 0
        while chosen[into] or outputs[into] >= outputs[out] or peaks[into] > peaks[out] + slack:
            into += 1
        chosen[out], chosen[into] = False, True
        slack += peaks[out] - peaks[into]
