"""The paper's dynamic program (wang-2025 section 5.1, Algorithm 2).

Least sum of outputs for each number of members k and each sum m of their peaks, up to m = M.
It is exact for batches whose peaks fit together, which is more than phase 1 asks for: with
M = 2 it takes (s, o) = (0, 1) alone, F = 1, though (0, 2) can start beside it, F = 3/4.  Of
equal outputs all complete at once, when all peaks stand together: there the two are the same.

As printed it keeps the smallest k among equal F, against Algorithm 1, which wants the largest:
here the largest wins.
"""

from __future__ import annotations

from collections.abc import Sequence

from kvopt.policies.phase1.batch import Candidate, peaks_fit
from kvopt.policies.phase1.table import Rule, least_f


def dp(waiting: Sequence[Candidate], memory: int) -> list[Candidate]:
    """Return the batch of least F among those whose peaks fit together."""
    rule = Rule(
        weight=lambda candidate: candidate.peak,
        room=lambda _, __: memory,
        fits=lambda batch: peaks_fit(batch, memory),
    )
    return least_f(waiting, memory, rule)
