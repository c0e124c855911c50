"""Best batches of phase 1 (wang-2025 Algorithm 1, lines 4-5), and those of the paper's program.

Take the members of a batch by descending output.  When c of them with prompts of S tokens in
all run longer, a request (s, o) completes while all of them are still active, and then
``S + s + (c + 1) o`` tokens are held.  Whether it may join therefore depends on c and S alone:
a dynamic program over the candidates finds the best batch (`kvopt.simulate.policies.fronts`).

The paper's own program (section 5.1, Algorithm 2) requires that all peaks fit together.  That
misses batches whose short members leave before the long ones have grown: with M = 2 it takes
(s, o) = (0, 1) alone, F = 1, though (0, 2) can start with it, F = 3/4.  Requests of equal output
complete together, with all peaks at one time: for these the two are the same.  As printed it keeps
the smallest number of members among equal F, in contrast to Algorithm 1: here the largest wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate

import numpy as np

from kvopt.errors import TooLarge
from kvopt.simulate.policies.fronts import Together, undominated
from kvopt.simulate.policies.phase1.batch import (
    Candidate,
    Solver,
    best_count,
    columns,
    peaks_fit,
    starts_together,
)

MOST = 1_000
"""Up to so many candidates the best batch usually takes seconds."""


def _best(waiting: Sequence[Candidate], memory: int, *, grows: bool) -> list[Candidate]:
    """Return the batch of least F among those that fit.

    Among equal F the larger batch, then the one that is lexicographically first in tie order.

    Parameters
    ----------
    waiting, memory
        Candidates in tie order, and tokens.
    grows
        Whether a batch fits if it may start together; else all peaks have to fit together.
    """
    prompts, outputs = columns(waiting)
    fits, sizes = (starts_together, prompts) if grows else (peaks_fit, prompts + outputs)
    least = np.sort(sizes).cumsum() + grows * outputs[0] * np.arange(1, len(waiting) + 1)
    most = int(least.searchsorted(memory, "right"))  # no batch has more members
    easy = waiting[: best_count([0, *accumulate(outputs[:most].tolist())])]
    if fits(easy, memory):
        return list(easy)  # the shortest of each size: no batch is better, fitting or not
    if grows and len(waiting) > MOST:
        raise TooLarge(f"phase1=exact takes {MOST} waiting requests, here are {len(waiting):,}")
    places = undominated(sizes, most)
    found = Together(sizes[places], outputs[places], memory, most, grows=grows).best(1)
    best = best_count([found[each][0] if each in found else None for each in range(most + 1)])
    return [waiting[place] for place in places[found[best][1]].tolist()]


exact: Solver = partial(_best, grows=True)
"""The best of all batches that may start together."""
dp: Solver = partial(_best, grows=False)
"""The best of the batches whose peaks fit together."""
