"""The true optimum of phase 1 (wang-2025 Algorithm 1, lines 4-5), of up to 2,000 requests.

Take the members of a batch by descending output.  When c of them with prompts of S tokens in
all run longer, a request (s, o) completes while they all are still there, and then
``S + s + (c + 1) o`` tokens are held.  Whether it may join therefore depends on c and S alone:
a dynamic program over the candidates finds the best batch (`kvopt.simulate.policies.fronts`).

The paper's own program (`kvopt.simulate.policies.phase1.dp`) asks that all peaks fit together.
That misses batches whose short members leave before the long ones have grown.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from kvopt.errors import TooLarge
from kvopt.simulate.policies.fronts import NO_LIMIT, Together, undominated
from kvopt.simulate.policies.phase1.batch import Candidate, best_count, columns, starts_together

MOST = 2_000
"""Candidates up to which a batch mostly takes seconds."""


def exact(waiting: Sequence[Candidate], memory: int) -> list[Candidate]:
    """Return the batch of least F among all that may start together.

    Among equal F the larger batch, then the one that is lexicographically first in tie order.
    """
    prompts, outputs = columns(waiting)
    least = np.sort(prompts).cumsum() + outputs[0] * np.arange(1, len(waiting) + 1)
    most = int(least.searchsorted(memory, "right"))  # no batch has more members
    easy = waiting[: best_count([0, *accumulate(outputs[:most].tolist())])]
    if starts_together(easy, memory):
        return list(easy)  # the shortest of each size: nothing is better, fitting or not
    if len(waiting) > MOST:
        raise TooLarge(f"phase1=exact takes {MOST} waiting requests, here are {len(waiting):,}")
    places = undominated(prompts, most)
    together = Together(prompts[places], outputs[places], memory, most)
    total, size = _shortest(waiting, memory)
    longest = [min(total * each**2 // size**2, NO_LIMIT) for each in range(1, most + 1)]
    found = together.best(range(1, most + 1), longest)
    best = best_count([found[each][0] if each in found else None for each in range(most + 1)])
    return [waiting[place] for place in places[found[best][1]].tolist()]


def _shortest(waiting: Sequence[Candidate], memory: int) -> tuple[int, int]:
    """Return sum of outputs and size of the best batch among the shortest that may start."""
    count = bisect(
        range(1, len(waiting) + 1), False, key=lambda n: not starts_together(waiting[:n], memory)
    )
    sums = [0, *accumulate(candidate.output for candidate in waiting[:count])]
    size = best_count(sums)
    return sums[size], size
