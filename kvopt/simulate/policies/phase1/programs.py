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

from bisect import bisect
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np

from kvopt.errors import TooLarge
from kvopt.problem.arrays import Integers
from kvopt.simulate.policies.fronts import NO_LIMIT, Together, undominated
from kvopt.simulate.policies.phase1.batch import (
    Candidate,
    best_count,
    columns,
    peaks_fit,
    starts_together,
)

MOST = 2_000
"""Up to so many candidates the best batch usually takes seconds."""


def exact(waiting: Sequence[Candidate], memory: int) -> list[Candidate]:
    """Return the batch of least F among all that may start together.

    Among equal F the larger batch, then the one that is lexicographically first in tie order.
    """
    prompts, outputs = columns(waiting)
    least = np.sort(prompts).cumsum() + outputs[0] * np.arange(1, len(waiting) + 1)
    most = int(least.searchsorted(memory, "right"))  # no batch has more members
    return _best(waiting, memory, most, starts_together, prompts)


def dp(waiting: Sequence[Candidate], memory: int) -> list[Candidate]:
    """Return the batch of least F among those whose peaks fit together; ties as in `exact`."""
    prompts, outputs = columns(waiting)
    peaks = prompts + outputs
    most = int(np.sort(peaks).cumsum().searchsorted(memory, "right"))
    return _best(waiting, memory, most, peaks_fit, peaks)


def _best(
    waiting: Sequence[Candidate],
    memory: int,
    most: int,
    fits: Callable[[Sequence[Candidate], int], bool],
    sizes: Integers,
) -> list[Candidate]:
    """Return the best of the batches of at most so many that fit.

    Parameters
    ----------
    waiting, memory, most
        Candidates in tie order, tokens, and members.
    fits
        The condition on a batch: that it `starts_together`, or that `peaks_fit`.
    sizes
        Tokens of each from its start on: its prompt, or its peak if peaks have to fit.
    """
    outputs = columns(waiting)[1]
    easy = waiting[: best_count([0, *accumulate(outputs[:most].tolist())])]
    if fits(easy, memory):
        return list(easy)  # the shortest of each size: no batch is better, fitting or not
    grows = fits is starts_together
    if grows and len(waiting) > MOST:
        raise TooLarge(f"phase1=exact takes {MOST} waiting requests, here are {len(waiting):,}")
    places = undominated(sizes, most)
    together = Together(sizes[places], outputs[places], memory, most, grows=grows)
    # The best batch among the shortest that fit: others are worse with more output.
    count = bisect(range(1, len(waiting) + 1), False, key=lambda n: not fits(waiting[:n], memory))
    sums = [0, *accumulate(outputs[:count].tolist())]
    size = best_count(sums)
    longest = [min(sums[size] * each**2 // size**2, NO_LIMIT) for each in range(1, most + 1)]
    found = together.best(range(1, most + 1), longest)
    best = best_count([found[each][0] if each in found else None for each in range(most + 1)])
    return [waiting[place] for place in places[found[best][1]].tolist()]
