"""The true optimum of phase 1 (wang-2025 Algorithm 1, lines 4-5).

Take the members of a batch by descending output.  When c of them with prompts of S tokens in
all run longer, a request (s, o) completes while they all are still there, and then
``S + s + (c + 1) o`` tokens are held.  Whether it may join therefore depends on c and S alone,
and of two ways to the same c and S only the one with the smaller sum of outputs matters: a
dynamic program over the candidates with one entry for each c and S finds the best batch.

The paper's own program (`kvopt.policies.phase1.dp`) asks that all peaks fit together.  That
misses batches whose short members leave before the long ones have grown.
"""

from __future__ import annotations

from collections.abc import Sequence

from kvopt.policies.phase1.batch import Candidate, starts_together
from kvopt.policies.phase1.table import Rule, least_f


def exact(waiting: Sequence[Candidate], memory: int) -> list[Candidate]:
    """Return the batch of least F among all that may start together."""
    rule = Rule(
        weight=lambda candidate: candidate.prompt,
        room=lambda candidate, count: memory - count * candidate.output,
        fits=lambda batch: starts_together(batch, memory),
    )
    return least_f(waiting, memory, rule)
