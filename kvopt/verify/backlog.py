"""Evaluate prices of the backlog: prompts that have arrived and are not processed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import sub

from kvopt.verify.step_budget import Invalid, Work, paired, pairwise, refuse

FINE = 2**20
"""Prices of waiting are over the unit of a proof and this."""


@dataclass(frozen=True)
class Backlog:
    """Prices of the backlog, of requests in order of arrival; prices are over a unit.

    Let c and v be the completion of request i and the time that it waits while no prompt of another
    is processed, E its time alone, S the works of others' prompts in [a, c).  Then c - a is at
    least E + S + v.  Let B be the work of the prompts that have arrived and are not processed, R
    that of others when i arrives, and A(t) what arrives later.  Prompts of a round are processed
    one after another, at rate 1 or later.  So with s = S - R, at any time t

        B(t) >= A(t) - s - (t - c)^+  >= A(t) - max(s, t - a - E)  if s >= 0,

    and for s < 0 it is A(t) + |s| - (t - a - E)^+ at the least.  If prices chi at borders t of
    cells sum to the share g of i or more, wherever A(t) >= t - a - E, then

        g S + sum of chi B(t) >= g R + the minimum over s >= 0 of
                                 g s + sum of chi (A(t) - max(s, t - a - E))^+.

    Add up.  The prompt of k pays chi of all others while it is in the backlog, and earns g of all
    that arrive before it is processed.  It earns q Y for each nanosecond that it waits, at most
    its share g, less what is processed in that time.  Let j arrive before k and still wait then.
    If k comes first j loses q_j Y_j Y_k, else k loses q_k Y_k Y_j: at most max(q_j, q_k) Y_j Y_k.
    Later, while j is processed, k earns no less than it loses.  So the prompt of j costs

        Y_j min over its begin u of  q_j (u - a_j) + sum of g_k - max(q_j, q_k) Y_k over a_k <= u
                                     - sum of chi,

    chi in full up to u, and in part for Y_j after it.  What is left of the share, g - q Y, charges
    works of other kinds.

    Parameters
    ----------
    arrivals, alone, prompts
        Of the requests, by arrival.
    shares
        g of each of them.
    parts
        For each part of the windows the price at a border, for each request.
    waits
        q of each request, over `FINE` as well.
    cell, count
        Nanoseconds of a cell, and the number of cells.
    """

    arrivals: Sequence[int]
    alone: Sequence[int]
    prompts: Sequence[int]
    shares: Sequence[int]
    parts: Sequence[Sequence[int]]
    waits: Sequence[int]
    cell: int
    count: int

    def value(self, work: Work) -> tuple[int, list[int]]:
        """Return what the backlog adds to the bound, and what is left of each share."""
        for column in (*self.parts, self.waits):
            refuse(len(column) != len(self.arrivals), "lower: needs prices of each request")
            refuse(min(column, default=0) < 0, "lower: a price of the backlog is negative")
        left = [
            FINE * share - wait * prompt
            for share, wait, prompt in paired(self.shares, self.waits, self.prompts)
        ]
        refuse(min(left, default=0) < 0, "lower: waits take more than the share of interference")
        prices = [0] * self.count
        growth = sum(self._grown(i, prices, work) for i in range(len(self.arrivals)))
        return growth + self._held(prices, work) // FINE, [share // FINE for share in left]

    def _grown(self, i: int, prices: list[int], work: Work) -> int:
        """Return what the window of a request adds, and add its prices to those of borders."""
        arrival, alone, cell = self.arrivals[i], self.alone[i], self.cell
        begin = k = (arrival + alone // 4) // cell + 1
        come, excess, after, total = list[int](), list[int](), i + 1, 0
        while k < self.count and k * cell <= arrival + 3 * alone:
            while after < len(self.arrivals) and self.arrivals[after] <= k * cell:
                total += self.prompts[after]
                after += 1
            if total < k * cell - arrival - alone:
                break
            come.append(total)
            excess.append(max(0, k * cell - arrival - alone))
            k += 1
        work.spend(20 * (len(come) + 1))
        ends = [part * len(come) // len(self.parts) for part in range(len(self.parts) + 1)]
        charges = list[int]()
        for (first, last), column in paired(pairwise(ends), self.parts):
            charges += [column[i]] * (last - first)
        for place, price in enumerate(charges, begin):
            prices[place] += price
        if sum(charges) < self.shares[i]:
            raise Invalid(f"lower: prices of the backlog of request {i} are below its share")
        return min(self._costs(self.shares[i], come, excess, charges), default=0)

    @staticmethod
    def _costs(share: int, come: list[int], excess: list[int], charges: list[int]) -> Iterator[int]:
        """Yield the cost for each number of works that may be the cheapest, the largest first."""
        low = high = len(come)  # borders from which on works are above, and excess is not below
        above = mass = fixed = 0  # sums: all works there, prices before ``high``, others' excess
        for works in sorted({0, *come}, reverse=True):
            while low and come[low - 1] > works:
                low -= 1
                above += charges[low] * come[low]
                if low < high:
                    mass += charges[low]
                else:
                    fixed += charges[low] * excess[low]
            while high and excess[high - 1] >= works:
                high -= 1
                if low <= high:
                    mass -= charges[high]
                    fixed += charges[high] * excess[high]
            yield share * works + above - mass * works - fixed

    def _held(self, prices: list[int], work: Work) -> int:
        """Return what prompts that wait cost, over `FINE`."""
        borders = [(k * self.cell, 1, k) for k in range(self.count)]
        arrivals = [(arrival, 0, i) for i, arrival in enumerate(self.arrivals)]
        events = sorted(arrivals + borders)
        classes = dict[int, dict[int, list[int]]]()
        for i, (wait, prompt) in enumerate(paired(self.waits, self.prompts)):
            power = 2 ** max(0, prompt.bit_length() - 2)
            limit = max(1, -(-prompt // power)) * power
            classes.setdefault(wait, {}).setdefault(limit, []).append(i)
        limits = {limit for members in classes.values() for limit in members}
        work.spend(10 * len(events) * (len(limits) + 1))
        parts = {limit: self._partly(prices, events, limit, work) for limit in limits}
        places = [0] * len(self.arrivals)
        for place, (_, is_border, i) in enumerate(events):
            if not is_border:
                places[i] = place
        total = 0
        for wait, members in classes.items():
            work.spend(len(events) * (8 + 4 * len(members)))
            after, lowest = self._levels(prices, events, wait)
            for limit, requests in members.items():
                values = [*map(sub, lowest, parts[limit])]
                minima = [*accumulate(reversed(values), min)][::-1]
                for i in requests:
                    place = places[i]
                    value = after[place] - parts[limit][place]
                    if place + 1 < len(minima):
                        value = min(value, minima[place + 1])
                    total += self.prompts[i] * (value - after[place])
        return total

    def _partly(
        self, prices: list[int], events: list[tuple[int, int, int]], limit: int, work: Work
    ) -> list[int]:
        """Return what a prompt pays after its begin at each event, if it is processed at once."""
        rates, costs, k = [-(-price * FINE // limit) for price in prices], list[int](), 0
        for time, is_border, _ in events:
            k += is_border
            cost, later = 0, k
            while later < self.count and later * self.cell < time + limit:
                cost += rates[later] * (limit - later * self.cell + time)
                later += 1
            work.spend(later - k)
            costs.append(cost)
        return costs

    def _levels(
        self, prices: list[int], events: list[tuple[int, int, int]], wait: int
    ) -> tuple[list[int], list[int]]:
        """Return the cost of a wait up to each event with it, and the lower one with or without."""
        level = now = 0
        after, lowest = list[int](), list[int]()
        for time, is_border, i in events:
            level += wait * (time - now)
            now = time
            if is_border:
                change = -prices[i] * FINE
            else:
                change = self.shares[i] * FINE - max(self.waits[i], wait) * self.prompts[i]
            lowest.append(level + min(change, 0))
            level += change
            after.append(level)
        return after, lowest
