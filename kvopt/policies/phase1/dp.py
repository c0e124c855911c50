"""The paper's dynamic program (wang-2025 section 5.1, Algorithm 2).

Least sum of outputs for each number of members k and each sum m of their peaks, up to m = M.
It is exact for batches whose peaks fit together, which is more than phase 1 asks for: with
M = 2 it takes (s, o) = (0, 1) alone, F = 1, though (0, 2) can start beside it, F = 3/4.  Of
equal outputs all complete at once, when all peaks stand together: there the two are the same.

As printed it keeps the smallest k among equal F, against Algorithm 1, which wants the largest:
here the largest wins.  Entries that are no better than one of a smaller m are left out
(`kvopt.policies.fronts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from kvopt.policies.fronts import Together, undominated
from kvopt.policies.phase1.batch import Candidate, best_count, columns, peaks_fit
from kvopt.policies.phase1.swap import swap


def dp(waiting: Sequence[Candidate], memory: int) -> list[Candidate]:
    """Return the batch of least F among those whose peaks fit together.

    Among equal F the larger batch, then the one that is lexicographically first in tie order.
    """
    prompts, outputs = columns(waiting)
    shortest = [0, *outputs.cumsum().tolist()]
    easy = waiting[: best_count(shortest)]
    if peaks_fit(easy, memory):
        return list(easy)  # the shortest of each count: nothing is better, fitting or not
    known = [0, *accumulate(candidate.output for candidate in swap(waiting, memory))]
    size = best_count(known)  # without the longest members the batch may be better
    most = int(np.sort(prompts + outputs).cumsum().searchsorted(memory, "right"))
    longest = [known[size] * count**2 // size**2 for count in range(most + 1)]
    good = [count for count in range(1, most + 1) if shortest[count] <= longest[count]]
    # Without its longest member, of output o, the best batch of n has no smaller F, which says
    # o <= (2 n - 1) F (the proof of Lemma 3.3).
    limit = (2 * good[-1] - 1) * known[size] // size**2
    peaks = (prompts + outputs)[: int(outputs.searchsorted(limit, "right"))]
    places = undominated(peaks, good[-1])
    together = Together(peaks[places], outputs[places], memory, good[-1])
    together.joins[:] = memory  # the sum of all peaks counts, whatever completes earlier
    sizes = range(good[0], good[-1] + 1)
    found = together.best(sizes, longest[good[0] : good[-1] + 1])
    best = best_count([found[n][0] if n in found else None for n in range(good[-1] + 1)])
    return [waiting[place] for place in places[found[best][1]].tolist()]
