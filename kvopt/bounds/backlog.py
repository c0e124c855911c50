"""Charge the prompts that wait: windows of interference that grow with the work that arrives.

While a request waits or runs, prompts arrive.  They delay it, or they are not yet processed: the
*backlog*, the work of all such prompts.  A request prices the backlog at borders of cells in its
*window*, and counts the work of all prompts that arrive there.  ``docs/theory/seconds.md`` proves
the bound.

Requests are sorted by arrival here, and prompts are counted as work by all lines of the model.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kvopt.kernels.loop_calls import map_ranges, quick
from kvopt.kernels.magnitudes import fits
from kvopt.problem.arrays import Integers, Numbers

FINE = 2**20
"""Prices of waiting are over the unit of a proof and this."""
_EARLIEST, _LONGEST = 4, 3
"""A window begins this part of the time alone after the arrival, and ends after so many of it."""


class Queue(NamedTuple):
    """Requests by arrival, with their windows on a grid; methods take those of the instance.

    Parameters
    ----------
    arrivals, alone, prompts, works
        Times in nanoseconds, works of prompts, and sums of these up to and with each.
    begins, sizes
        First border of each window, and how many there are.
    borders
        Work that has arrived at each border.
    times, requests
        Events: arrivals and borders of cells in order of time, arrivals first; and the request that
        arrives, -1 at a border.
    arrived, passed
        Number of arrivals, and of borders, up to and with each event.
    order, places
        Positions of the requests in the instance, and the place of each position.
    cell
        Length of a cell.
    """

    arrivals: Numbers
    alone: Numbers
    prompts: Numbers
    works: Numbers
    begins: Integers
    sizes: Integers
    borders: Numbers
    times: Numbers
    requests: Integers
    arrived: Integers
    passed: Integers
    order: Integers
    places: Integers
    cell: Any

    @classmethod
    def of(
        cls, arrivals: Numbers, alone: Numbers, prompts: Numbers, cell: int, count: int
    ) -> Queue:
        """Return the queue of requests with these times alone and works of prompts."""
        order = np.argsort(arrivals, kind="stable")
        arrivals, alone, prompts = arrivals[order], alone[order], prompts[order]
        works, borders = np.cumsum(prompts), np.arange(count) * cell
        come = np.append(0, works)[np.searchsorted(arrivals, borders, side="right")]
        begins, sizes = np.zeros((2, len(order)), dtype=np.int64)
        for i, (arrival, time) in enumerate(zip(arrivals, alone, strict=True)):
            begin = min(int((arrival + time // _EARLIEST) // cell) + 1, count)
            end = max(begin, min(int((arrival + _LONGEST * time) // cell) + 1, count))
            # A window ends before the first border at which no work can be left.
            is_over = come[begin:end] - works[i] < borders[begin:end] - arrival - time
            begins[i], sizes[i] = begin, is_over.argmax() if is_over.any() else end - begin
        times = np.concatenate([arrivals, borders])
        events = np.argsort(times, kind="stable")
        requests = np.concatenate([np.arange(len(order)), np.full(count, -1)])[events]
        arrived, passed = ((requests >= 0).cumsum(), (requests < 0).cumsum())
        return cls(
            arrivals,
            alone,
            prompts,
            works,
            begins,
            sizes,
            come,
            times[events],
            requests,
            arrived,
            passed,
            order,
            np.argsort(order),
            cell,
        )

    def in_numbers(self, kind: Any) -> Queue:
        """Return the queue in one kind of numbers; those of borders are integers in any case."""
        names = ("arrivals", "alone", "prompts", "works", "borders", "times")
        columns = {name: getattr(self, name).astype(kind) for name in names}
        return self._replace(**columns, cell=float(self.cell) if kind is float else self.cell)

    def _parts(self, count: int) -> Integers:
        """Return the first border of each of so many parts of windows, and the one after them."""
        places = np.arange(count + 1)[:, None] * self.sizes // count
        borders: Integers = self.begins + places
        return borders

    def part_sizes(self, count: int) -> Integers:
        """Return the number of borders in each of so many parts of windows."""
        sizes: Integers = np.diff(self._parts(count), axis=0)[:, self.places]
        return sizes

    def exactly(self, shares: Numbers, prices: Numbers, waits: Numbers) -> tuple[int, Numbers]:
        """Return what the backlog adds in integers, and what is left of shares, as of `charged`."""
        masses = (self.part_sizes(len(prices)) * prices).sum(axis=0)
        works = self.prompts[self.places]
        assert (masses >= shares).all(), "prices of a window sum to its share"
        assert (shares * FINE >= waits * works).all(), "waits are of a share"
        kind = np.int64 if fits(self._largest(shares, masses, waits)) else object
        shares, prices, waits = (column.astype(kind) for column in (shares, prices, waits))
        value, left, _ = self.in_numbers(kind).charged(shares, prices, waits)
        return value // FINE, left

    def _largest(self, shares: Numbers, masses: Numbers, waits: Numbers) -> int:
        """Return a limit of all numbers in the loops, of integers."""
        if not len(shares):
            return 0
        highest = int(masses.max()) + int(shares.max())
        ends = np.append(self.borders, self.works[-1])[self.begins + self.sizes]
        come = int((ends - self.works + self.prompts).max())
        # A window: its prices and share, times works that arrive and rounds that pass in it.
        windows = highest * (come + _LONGEST * int(self.alone.max()))
        times = int(self.times[-1]) + 3 * int(self.works[-1])
        # A wait: at the dearest price as long as all times and works, with all other prices.
        sums = FINE * (2 * int(masses.sum()) + int(shares.sum()))
        return max(windows, int(waits.max()) * times + sums)

    def charged(
        self, shares: Numbers, prices: Numbers, waits: Numbers, threads: int = 1
    ) -> tuple[Any, Numbers, Charged]:
        """Return what the backlog adds to a bound, over the unit and `FINE`, and how.

        Shares of interference, and prices of the backlog at each border of a part of a window, are
        over the unit; those of a window sum to its share at least.  ``waits`` is what a request
        pays for a nanosecond of waiting, for each nanosecond of its prompt's work, over the unit
        and `FINE`.  The second number is what is left of each share for the works of tokens.
        """
        kind = shares.dtype
        shares, prices, waits = (column[..., self.order] for column in (shares, prices, waits))
        borders = self._parts(len(prices))
        changes = np.zeros(len(self.borders) + 1, dtype=kind)
        for begin, end, column in zip(borders[:-1], borders[1:], prices, strict=True):
            np.add.at(changes, begin, column)
            np.add.at(changes, end, -column)
        growth, works, holds = (np.zeros(len(shares), dtype=kind) for _ in range(3))
        growing = np.zeros_like(prices) if kind.kind == "f" else np.zeros((0, 0), dtype=kind)
        charged = Charged(growth, works, growing, holds, np.zeros(len(shares), dtype=np.int64))
        search = quick(find_growth, kind)
        map_ranges(
            lambda first, last: search(first, last, self, shares, prices, charged),
            len(shares),
            threads,
        )
        fine, classes = shares * FINE, Classes.of(waits, self.prompts)
        backlog = np.cumsum(changes[:-1]) * FINE
        quick(find_holds, kind)(self, fine, waits, backlog, classes, charged)
        value = FINE * exact(growth).sum() + (exact(self.prompts) * exact(holds)).sum()
        left = (fine - waits * self.prompts) // FINE
        return value, left[self.places], charged

    def slopes(self, waits: Numbers, charged: Charged) -> tuple[Numbers, Numbers, Numbers]:
        """Return how the sum of `charged` changes, in nanoseconds.

        With the price at each border of a part of a window, with the share of interference, and
        with the share of latency that pays for waiting.

        Minima change as costs do where they are attained: at the works and starts in ``charged``.
        """
        starts, works, count = charged.starts, self.prompts, len(self.borders)
        places = np.arange(len(works))
        first, after = self.passed[self.requests >= 0], self.passed[starts]
        come, times = self.arrived[starts], self.times[starts]
        # The backlog at borders: all of a prompt until it starts, then what is left of it.
        changes = np.zeros(count + 1)
        np.add.at(changes, first, works)
        np.add.at(changes, after, -works)
        left = np.cumsum(changes[:-1])
        place = after.copy()
        while (inside := (place < count) & (place * self.cell < times + works)).any():
            np.add.at(left, place[inside], (works + times - place * self.cell)[inside])
            place[~inside] = count
            place += 1
        sums = np.append(0.0, np.cumsum(left))
        borders = self._parts(len(charged.growing))
        by_price = charged.growing - (sums[borders[1:]] - sums[borders[:-1]])
        # A price of waiting counts the wait, less the works of cheaper requests that arrive in it
        # and of those up to its price that wait as it arrives: max(q, q_k) Y_k in `find_holds`.
        levels, level = np.unique(waits[self.order], return_inverse=True)
        waiting, cheaper = np.zeros((2, len(levels), len(works) + 1))
        np.add.at(waiting, (level, places + 1), works)
        np.add.at(waiting, (level, come), -works)
        below = np.cumsum(np.cumsum(waiting[:, :-1], axis=1), axis=0)
        np.add.at(cheaper, (level, places + 1), works)
        cheaper = np.cumsum(np.cumsum(cheaper, axis=0) - cheaper, axis=1)
        passed = cheaper[level, come] - cheaper[level, places + 1]
        by_wait = times - self.arrivals - passed - below[level, places]
        by_share = charged.works + below[-1]
        return by_price[:, self.places], by_share[self.places], by_wait[self.places]


class Classes(NamedTuple):
    """Classes of requests with one price of waiting and one limit of the works of their prompts.

    Parameters
    ----------
    prices, limits
        Prices of waiting, and limits: 2, 3 or 4 times a power of two.
    pairs
        The classes: a place in prices, times the number of limits, and a place in limits.
    members
        The class of each request.
    """

    prices: Numbers
    limits: Numbers
    pairs: Integers
    members: Integers

    @classmethod
    def of(cls, waits: Numbers, prompts: Numbers) -> Classes:
        """Return the classes of requests."""
        powers = [2 ** max(int(work).bit_length() - 2, 0) for work in prompts]
        rounded = [max(-int(-w // k), 1) * k for w, k in zip(prompts, powers, strict=True)]
        prices, by_price = np.unique(waits, return_inverse=True)
        limits, by_limit = np.unique(np.array(rounded, dtype=prompts.dtype), return_inverse=True)
        pairs, members = np.unique(by_price * len(limits) + by_limit, return_inverse=True)
        return cls(prices, limits, pairs, members)


class Charged(NamedTuple):
    """What the backlog adds to a bound, and how it comes about, of requests by arrival.

    Parameters
    ----------
    growth, works
        What the window of each request adds: the least of works that delay and of backlogs at
        their prices; and the works that then delay.
    growing
        The backlogs that then remain in each part of a window; empty in integers.
    holds, starts
        What waiting prompts cost, divided by their work, and the events at which they then start.
    """

    growth: Numbers
    works: Numbers
    growing: Numbers
    holds: Numbers
    starts: Integers


def find_growth(
    first: int, last: int, queue: Queue, shares: Numbers, prices: Numbers, charged: Charged
) -> None:
    """Find what the windows of a range of requests add, and in floats the backlogs there.

    Let works s of prompts delay the request beyond the backlog at its arrival.  At time t the
    backlog is A(t) - max(s, t - a - E) at the least, where A(t) is the work that has arrived.
    Between two of the A(t) what the window adds is concave in s, so only 0 and these need be
    compared.  It is the first minimum of Claim 5.13 of ``docs/theory/seconds.md``.
    """
    parts, longest = len(prices), 1
    for i in range(first, last):
        longest = max(longest, queue.sizes[i])
    come = np.zeros(longest + 1, dtype=shares.dtype)
    since, mass = np.zeros_like(come), np.zeros_like(come)
    by_come, by_since = np.zeros_like(come), np.zeros_like(come)
    for i in range(first, last):
        begin, size, end = queue.begins[i], queue.sizes[i], queue.arrivals[i] + queue.alone[i]
        # Sums over the borders before each one: prices, these times works, and times excess.
        for place in range(size):
            excess = (begin + place) * queue.cell - end
            come[place] = queue.borders[begin + place] - queue.works[i]
            since[place] = max(excess, 0 * excess)
            price = prices[((place + 1) * parts - 1) // size, i]
            mass[place + 1] = mass[place] + price
            by_come[place + 1] = by_come[place] + price * come[place]
            by_since[place + 1] = by_since[place] + price * since[place]
        low, high, works = 0, 0, 0 * end
        best, best_works = 0 * end, 0 * end
        # Each number of works at a border, and none.
        for candidate in range(-1, size):
            if candidate >= 0:
                if come[candidate] == works:
                    continue
                works = come[candidate]
            while low < size and come[low] <= works:
                low += 1
            while high < size and since[high] < works:
                high += 1
            late = max(low, high)
            value = shares[i] * works + by_come[size] - by_come[low]
            value -= works * (mass[late] - mass[low]) + by_since[size] - by_since[late]
            if candidate < 0 or value < best:
                best, best_works = value, works
        charged.growth[i], charged.works[i] = best, best_works
        if len(charged.growing):
            for place in range(size):
                left = come[place] - max(best_works, since[place])
                if left > 0:
                    charged.growing[((place + 1) * parts - 1) // size, i] += left


def find_holds(
    queue: Queue,
    shares: Numbers,
    waits: Numbers,
    backlog: Numbers,
    classes: Classes,
    charged: Charged,
) -> None:
    """Find when prompts of each class start at the lowest cost: the second minimum of Claim 5.13.

    A prompt that arrives at a, with work Y and price q, and starts at u, costs, divided by Y,

        q (u - a) + sum over later arrivals k up to u of (share_k - max(q, q_k) Y_k)
        - sum over borders t >= a of backlog_t min(1, max(0, 1 - (t - u) / Y)):

    differences of ``level``, less ``partly`` for borders after u.  Between events this is concave
    in u, so it is lowest at an event or just before one.  A limit above Y only lowers it.

    ``shares``, ``waits`` and ``backlog`` are over `FINE` times the unit of a proof.
    """
    times, requests, limits, cell = queue.times, queue.requests, classes.limits, queue.cell
    partly = np.zeros((len(limits), len(times)), dtype=times.dtype)
    for c in range(len(limits)):
        # While a prompt is processed, its work is in the backlog in part.
        for e in range(len(times)):
            k = queue.passed[e]
            while k < len(backlog) and k * cell < times[e] + limits[c]:
                partly[c, e] += -(-backlog[k] // limits[c]) * (limits[c] - (k * cell - times[e]))
                k += 1
    level, before = np.zeros_like(times), np.zeros_like(times)
    p = -1
    for pair in range(len(classes.pairs)):
        # The price of a wait up to each event: longer for all, delayed by others, in the backlog.
        if classes.pairs[pair] // len(limits) > p:
            p = classes.pairs[pair] // len(limits)
            price, total, now = classes.prices[p], 0 * cell, 0 * cell
            for e in range(len(times)):
                total, now = total + price * (times[e] - now), times[e]
                change, i = 0 * total, requests[e]
                if i < 0:
                    change -= backlog[queue.passed[e] - 1]
                else:
                    change += shares[i] - max(waits[i], price) * queue.prompts[i]
                total += change
                level[e], before[e] = total, total - max(change, 0 * change)
        # Prompts of the class start at the cheapest event from their arrival on.
        c = classes.pairs[pair] - p * len(limits)
        lowest, place = 0 * cell, -1
        for e in range(len(times) - 1, -1, -1):
            i, value = requests[e], level[e] - partly[c, e]
            if i >= 0 and classes.members[i] == pair:
                is_now = place < 0 or value <= lowest
                charged.holds[i] = (value if is_now else lowest) - level[e]
                charged.starts[i] = e if is_now else place
            value = before[e] - partly[c, e]
            if place < 0 or value <= lowest:
                lowest, place = value, e


def exact(numbers: Numbers) -> Numbers:
    """Return numbers whose products are exact if they are integers."""
    return numbers if numbers.dtype.kind == "f" else numbers.astype(object)
