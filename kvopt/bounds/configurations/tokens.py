"""Prices of tokens as prices of states: for caches so large that sets of requests are too many.

A state that holds h tokens costs h times the price of a token, and a configuration costs at most
M times that price.  The bound is that of the prices alone.  A forward search may still use reduced
costs and slacks, as under prices of configurations, and prove more.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from kvopt.bounds.configurations.evaluation import Evaluation, evaluation_of
from kvopt.bounds.configurations.size import check_starts
from kvopt.bounds.configurations.states import Knots, States
from kvopt.errors import TooLarge
from kvopt.incumbent.proofs import PriceProof, SearchProof, token_prices
from kvopt.problem.instance import Instance

_LARGEST_SUM = 2**58
"""Sums of costs, in units of 1 / D, stay below this and so inside 64 bits."""


class PricedTokens:
    """The states of an instance, under prices of tokens; `TooLarge` if memory or 64 bits lack.

    Parameters
    ----------
    instance
        The problem, of one worker.
    prices
        Prices of a token at the times 1, 2, ....
    last
        The makespan of a good schedule; later prices count as 0.
    """

    def __init__(self, instance: Instance, prices: PriceProof, last: int) -> None:
        check_starts(instance, last)
        self.states, self._memory, self._last = States.of(instance), instance.memory, last
        numerators = prices.numerators[:last]
        longest, latest = max(r.output for r in instance), max(r.arrival for r in instance)
        dearest = instance.memory * max(numerators, default=0)
        # In whole rounds: the costs of all requests together, and of memory at all times.
        largest = Fraction((len(instance) * longest + last) * dearest, prices.denominator)
        largest += len(instance) * (last + latest + 2 * longest)
        denominator = min(prices.denominator, int(_LARGEST_SUM / largest))
        if denominator < 1:
            raise TooLarge("prices of tokens, times the tokens, leave the range of integers")
        scaled = (price * denominator // prices.denominator for price in numerators)
        self.prices = token_prices((*scaled, *[0] * (last - len(numerators))), denominator)

    def evaluate(self) -> Evaluation:
        """Return the value of the prices and the reduced cost of every start."""
        states, prices = self.states, np.array(self.prices.numerators)
        return evaluation_of(
            states,
            Knots.every(1, self._last),
            states.all_starts(self._last),
            prices[:, None] * states.holds,
            np.append(0, self._memory * prices),
            self.prices.denominator,
        )

    def proof(
        self, target: int, kept: tuple[int, ...] = (), cuts: tuple[int, ...] = ()
    ) -> SearchProof:
        """Return the proof that a search below the target has ended."""
        return SearchProof(self.prices, target, kept, cuts)
