"""The true optimum of phase 1 (wang-2025 Algorithm 1, lines 4-5).

Take the members of a batch by descending output.  When c of them with prompts of S tokens in
all run longer, a request (s, o) completes while they all are still there, and then
``S + s + (c + 1) o`` tokens are held.  Whether it may join therefore depends on c and S alone:
a dynamic program over the candidates finds the best batch (`kvopt.simulate.policies.fronts`).

Prices on memory say early what cannot become a batch better than one that is known.  A batch
holds, at the time t after it starts, ``s + t`` tokens for each member of output at least t.  Where
every token at t costs ``p_t``, a candidate costs its output and what it holds, and no batch of C
members has outputs that sum up to less than the C cheapest cost, less what all the memory costs.
The ascent of that is by hand, not scipy's: the value has kinks, which L-BFGS-B asks not to meet,
and each step is a chance to meet a good batch.  Prices steer; what is proved is integers.

The paper's own program (`kvopt.simulate.policies.phase1.dp`) asks that all peaks fit together.
That misses batches whose short members leave before the long ones have grown.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from kvopt.kernels.interruptible import machine_code
from kvopt.problem.arrays import Floats, Integers
from kvopt.simulate.policies.fronts import FREE, NO_LIMIT, Prices, Together, undominated
from kvopt.simulate.policies.phase1.batch import Candidate, best_count, columns, starts_together

_LARGEST_MEMORY = 2**26
"""Memory up to which priced tokens are sure to fit into 64 bits."""

_SCALE, _HIGHEST = 2**16, 2**6
"""Parts that prices are counted in, and the most that all of them may be together."""

_STEPS = 20
"""Steps of an ascent; more take longer than they save."""

_WIDE = 3
"""Sizes that one set of prices is good for."""

_FEW = 60
"""Candidates up to which an ascent, and a compiler for it, take longer than they save."""


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
    places = undominated(prompts, most)
    found = _Search(prompts[places], outputs[places], memory).best(most)
    return [waiting[place] for place in places[found].tolist()]


class _Search:
    """The best batch by ranges of sizes: what one range needs is short, all sizes are not."""

    def __init__(self, prompts: Integers, outputs: Integers, memory: int) -> None:
        self.prompts, self.outputs, self.memory = prompts, outputs, memory
        self.known = 0, 0  # sum of outputs and size of the best batch that was met

    def best(self, most: int) -> list[int]:
        """Return the places of the best batch of at most so many."""
        found: dict[int, tuple[int, list[int]]] = {}
        ranges = [range(1, most + 1)]
        while ranges:
            sizes, prices = self._narrowed(ranges.pop())
            if len(sizes) > _WIDE:
                middle = (sizes.start + sizes.stop) // 2
                halves = range(middle, sizes.stop), range(sizes.start, middle)
                ranges += sorted(halves, key=lambda half: self.known[1] in half)  # that one next
            elif sizes:
                found |= self._of_sizes(sizes, prices)
                for size, (sum_, _) in found.items():
                    self._meet(sum_, size)
        size = best_count([found[size][0] if size in found else None for size in range(most + 1)])
        return found[size][1]

    def _meet(self, sum_: int, size: int) -> None:
        if sum_ * self.known[1] ** 2 < self.known[0] * size**2:
            self.known = sum_, size

    def _narrowed(self, sizes: range) -> tuple[range, Prices]:
        """Return the sizes that a batch no worse than the known one can have, and prices."""
        count = len(self.outputs)
        few = count <= _FEW
        prices, met = np.zeros(count), np.zeros(2, np.int64)
        (ascend if few else machine_code(ascend))(
            self.prompts, self.outputs, self.memory, (sizes.start, sizes.stop - 1),
            self.known, 1 if few else _STEPS, prices, met,
        )  # fmt: skip
        self.known = int(met[0]), int(met[1])
        rounded = self._rounded(prices)
        paid, timed = rounded.until(self.outputs)
        costs = np.sort(self.outputs * rounded.scale + self.prompts * paid[1:] + timed[1:])
        cheapest = np.append(0, costs.cumsum()) - self.memory * paid[-1]
        shortest = np.append(0, self.outputs.cumsum())
        good = [
            size
            for size, longest in zip(sizes, self._longest(sizes, rounded.scale), strict=True)
            if size <= count
            and shortest[size] <= longest
            and cheapest[size] <= longest * rounded.scale
        ]
        return range(good[0], good[-1] + 1) if good else range(0), rounded

    def _rounded(self, prices: Floats) -> Prices:
        """Return prices in integers; none where sums of them might not fit into 64 bits."""
        if self.memory > _LARGEST_MEMORY or not prices.sum() < _HIGHEST:
            return FREE
        places = np.flatnonzero(prices)
        numerators = (prices[places] * _SCALE).astype(np.int64)
        return Prices(self.outputs[places], numerators, _SCALE)

    def _longest(self, sizes: range, scale: int) -> list[int]:
        """Return the most that outputs may sum up to in a batch no worse than the known one."""
        total, size = self.known
        return [min(total * each**2 // size**2, NO_LIMIT // scale) for each in sizes]

    def _of_sizes(self, sizes: range, prices: Prices) -> dict[int, tuple[int, list[int]]]:
        # Without its longest member, of output o, the best batch of n has no smaller F, which
        # says o <= (2 n - 1) F (the proof of Lemma 3.3).
        total, size = self.known
        longest = (2 * sizes[-1] - 1) * total // size**2
        count = int(self.outputs.searchsorted(longest, "right"))
        places = undominated(self.prompts[:count], sizes[-1])
        together = Together(self.prompts[places], self.outputs[places], self.memory, sizes[-1])
        found = together.best(sizes, self._longest(sizes, prices.scale), prices)
        return {size: (sum_, places[chosen].tolist()) for size, (sum_, chosen) in found.items()}


def ascend(
    prompts: Integers,
    outputs: Integers,
    memory: int,
    sizes: tuple[int, int],
    known: tuple[int, int],
    steps: int,
    best_prices: Floats,
    met: Integers,
) -> None:
    """Find better prices, and sum of outputs and size of the best batch that was met.

    Parameters
    ----------
    prompts, outputs
        Of the candidates, in tie order.
    memory
        Tokens that may be held.
    sizes
        The least and the largest size for which prices are wanted.
    known
        Sum of outputs and size of a batch that is known, both 0 for none.
    steps
        How often prices are changed.
    best_prices, met
        Where the answers go; the price at an output stands at the first candidate that has it.
    """
    count, (total, size), best_value = len(prompts), known, -np.inf
    prices = np.zeros(count)
    costs, excess, loads = np.empty(count), np.empty(count), np.empty(count, np.int64)
    for step in range(steps):
        paid = timed = 0.0
        for place in range(count):
            paid += prices[place]
            timed += prices[place] * outputs[place]
            costs[place] = outputs[place] + prompts[place] * paid + timed
        order = np.argsort(costs)
        if step % 4 == 0:  # take the cheapest that fit
            loads[:] = 0
            taken = length = 0
            for place in order:
                fits = True
                for earlier in range(place + 1):
                    if loads[earlier] + prompts[place] + outputs[earlier] > memory:
                        fits = False
                        break
                if not fits:
                    continue
                for earlier in range(place + 1):
                    loads[earlier] += prompts[place] + outputs[earlier]
                length += outputs[place]
                taken += 1
                if size == 0 or length * size**2 < total * taken**2:
                    total, size = length, taken
        worth = total / size**2  # then the size that could beat it by most
        value, likely, cost, shortest = np.inf, 0, -memory * paid, 0
        for number in range(1, sizes[1] + 1):
            cost += costs[order[number - 1]]
            shortest += outputs[number - 1]
            reach = worth * number**2
            if number >= sizes[0] and shortest <= reach and cost - reach < value:
                value, likely = cost - reach, number
        if value > best_value:
            best_value = value
            best_prices[:] = prices
        chosen = np.zeros(count, np.bool_)
        chosen[order[:likely]] = True
        held = alive = 0
        steepness = 0.0
        for place in range(count - 1, -1, -1):
            if chosen[place]:
                held += prompts[place]
                alive += 1
            first = place == 0 or outputs[place - 1] < outputs[place]
            excess[place] = held + alive * outputs[place] - memory if first else 0.0
            if excess[place] < 0 and prices[place] == 0:
                excess[place] = 0.0
            steepness += excess[place] ** 2
        if steepness == 0 or value > 0:
            break
        prices = np.maximum(prices - value / steepness * excess, 0.0)
    met[0], met[1] = total, size
