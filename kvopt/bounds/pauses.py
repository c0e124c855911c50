"""Bounds by prices of tokens for requests that may pause.

The bound is the one of `kvopt.bounds.prices` with another minimum: request i may be active at any
``o_i`` times ``t_1 < t_2 < ...`` after its arrival, and costs

    t_o - a_i + sum_{j=1..o_i} p_{t_j} (s_i + j).

Let U be the least cost without a pause.  Nothing that completes after ``a_i + U`` is cheaper.
Completions after ``max(a_i, T) + o_i``, with T the time of the last price, need no look either:
tokens after T are free and may be produced in a row.  Where prices do not rise from
``a_i + 1`` to the end of this window, U itself is the least cost: active times can be moved later
until they are the last ones, and none of them gets dearer.  This needs only
that the memory of a request never shrinks while it runs, which is true of whole blocks too.
``docs/theory`` has the proofs.  Elsewhere a dynamic program over tokens and times finds the
least cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kvopt.bounds.kinds import Kinds
from kvopt.problem.arrays import Integers, Numbers

if TYPE_CHECKING:
    from kvopt.bounds.prices import Sums


def windows_with_pauses(kinds: Kinds, costs: Numbers, prices: Numbers, unit: int) -> Integers:
    """Return the rounds after each arrival in which pauses may pay, 0 if they cannot.

    Costs are those of runs.
    """
    last = len(prices)
    rises = np.append(np.flatnonzero(prices[1:] > prices[:-1]) + 1, 2**62)
    most = (costs // (unit * kinds.weights.astype(costs.dtype))).astype(np.int64) + 1
    spans = np.minimum(most, last - kinds.arrivals + kinds.outputs)
    following = rises[np.searchsorted(rises[:-1], kinds.arrivals + 1)]
    pays = (kinds.arrivals < last) & (following < kinds.arrivals + spans)
    return np.where(pays, spans, 0)


def lower_with_pauses(costs: Numbers, kinds: Kinds, sums: Sums) -> None:
    """Lower costs of runs to those with pauses; exact, and nothing compiled."""
    prices, unit = sums.prices[: sums.last], sums.unit
    windows = windows_with_pauses(kinds, costs, prices, unit)
    for i in np.flatnonzero(windows):
        arrival, window, output = (int(x[i]) for x in (kinds.arrivals, windows, kinds.outputs))
        spare = window - output
        window_prices: Numbers = np.zeros(window, dtype=prices.dtype)
        window_prices[: sums.last - arrival] = prices[arrival : arrival + window]
        tokens = np.arange(kinds.prompts[i] + 1, kinds.prompts[i] + output + 1)
        held = (-(-tokens // kinds.block) * kinds.block).astype(prices.dtype)
        # The least price of the first tokens, each at most so many rounds later than it could be.
        least = np.zeros(spare + 1, dtype=prices.dtype)
        for j in range(min(output - 1, sums.last - arrival)):
            least = np.minimum.accumulate(least + held[j] * window_prices[j : j + spare + 1])
        waits = np.arange(output, window + 1, dtype=prices.dtype)
        weight = int(kinds.weights[i])
        least += held[-1] * window_prices[output - 1 :] + weight * unit * waits
        costs[i] = min(costs[i], least.min())
