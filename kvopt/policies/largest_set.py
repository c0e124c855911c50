"""The largest set of waiting requests that can start now, beside what is running."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kvopt.policies.fronts import Integers, Together, undominated


def largest_set(
    prompts: Integers, outputs: Integers, running: Sequence[tuple[int, int]], memory: int
) -> list[int]:
    """Return the places of the largest set that fits, in ascending order.

    Among largest sets the least sum of outputs wins, then the set whose first differing place
    is earlier.

    Parameters
    ----------
    prompts, outputs
        Of waiting requests, by ascending output.
    running
        Of each active request the tokens held now, and the rounds to its believed completion.
    memory
        Tokens that may be held.
    """
    room = memory - sum(held for held, _ in running) - len(running)  # in the next round
    most = int(np.searchsorted((np.sort(prompts) + 1).cumsum(), room, "right"))
    places = undominated(prompts, most)
    together = Together.of(prompts[places], outputs[places], memory, most, running)
    size, longest = together.largest()
    places = places[undominated(prompts[places], size)]
    together = Together.of(prompts[places], outputs[places], memory, size, running)
    _, best = together.best(range(size, size + 1), [longest])[size]
    found: list[int] = places[best].tolist()
    return found
