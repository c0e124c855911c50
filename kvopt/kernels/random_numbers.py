"""Random numbers and hashes in compiled loops, from a state that can be set again.

A linear congruential generator modulo 2^64, of which the high bits are used.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kvopt.kernels.compiled import compiled

State = NDArray[np.int64]
"""One number."""


@compiled
def reseed(state: State, seed: int, part: int, number: int) -> None:
    """Set the state by a seed, a stream and a number in that stream."""
    state[0] = (seed * 1_000_003 + part) * 1_000_003 + number
    for _ in range(3):
        uniform(state)


@compiled
def below(state: State, limit: int) -> int:
    """Return a number in 0 .. limit - 1, for limits up to 2^31."""
    state[0] = state[0] * 6364136223846793005 + 1442695040888963407
    return int((state[0] >> 33) & 0x7FFFFFFF) % limit


@compiled
def uniform(state: State) -> float:
    """Return a number in (0, 1)."""
    return (below(state, 2147483648) + 0.5) / 2147483648.0


@compiled
def normal(state: State) -> float:
    """Return a number of mean 0 and variance 1, about normal: a sum of four uniform ones."""
    total = uniform(state) + uniform(state) + uniform(state) + uniform(state)
    return float((total - 2.0) * 3.0**0.5)


@compiled
def hash_pair(first: int, second: int | np.int64) -> int:
    """Return a hash of two numbers below 2^63; a set has the sum of its hashes."""
    x = np.uint64(np.int64(first)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(np.int64(second))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return int((x ^ (x >> np.uint64(27))) >> np.uint64(1))
