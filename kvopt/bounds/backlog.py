"""Charge the prompts that wait: windows of interference that grow with the work that arrives.

While a request waits or runs, prompts arrive.  They delay it, or they are not yet processed: the
*backlog*, the work of all such prompts.  A request prices the backlog at borders of cells in its
*window*, and counts the work of all prompts that arrive there.  ``docs/theory/seconds.md`` proves
the bound.

Requests are sorted by arrival here, and prompts are counted as work by all lines of the model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from kvopt.kernels.interruptible import quick
from kvopt.kernels.magnitudes import fits
from kvopt.kernels.parallel import map_ranges
from kvopt.problem.arrays import Integers, Numbers

FINE = 2**20
"""Prices of waiting are over the unit of a proof and this."""
_EARLIEST, _LONGEST = 4, 3
"""A window begins this part of the time alone after the arrival, and ends after so many of it."""


class Arrived(NamedTuple):
    """The requests by arrival, and what the loops need of them.

    Parameters
    ----------
    arrivals, alone, prompts
        Times in nanoseconds, and works of prompts.
    begins, sizes
        First border of each window, and how many there are.
    """

    arrivals: Numbers
    alone: Numbers
    prompts: Numbers
    begins: Integers
    sizes: Integers


def find_windows(cell: Any, count: int, line: Arrived) -> None:
    """Find the borders of all windows: up to the first at which no work can be left."""
    arrivals, alone, prompts, begins, sizes = line
    for i in range(len(arrivals)):
        begin = int((arrivals[i] + alone[i] // _EARLIEST) // cell) + 1
        k, after, arrived = begin, i + 1, 0 * arrivals[i]
        while k < count and k * cell <= arrivals[i] + _LONGEST * alone[i]:
            while after < len(arrivals) and arrivals[after] <= k * cell:
                arrived += prompts[after]
                after += 1
            if arrived < k * cell - arrivals[i] - alone[i]:
                break
            k += 1
        begins[i], sizes[i] = min(begin, count), k - begin


class Charged(NamedTuple):
    """What the backlog adds to a bound, and how it comes about, of requests by arrival.

    Parameters
    ----------
    growth, works
        What the window of each request adds: the least of works that delay and of backlogs at
        their prices; and the works that then delay.
    growing
        The backlogs that then remain in each part of a window, if they are wanted.
    holds, starts
        What waiting prompts cost, divided by their work, and the events at which they then start.
    """

    growth: Numbers
    works: Numbers
    growing: Numbers
    holds: Numbers
    starts: Integers


def find_growth(
    first: int,
    last: int,
    cell: Any,
    line: Arrived,
    shares: Numbers,
    prices: Numbers,
    charged: Charged,
) -> None:
    """Find what the windows of some requests add, and the backlogs there if these are wanted.

    Let works s of prompts delay the request beyond the backlog at its arrival.  At time t the
    backlog is A(t) - max(s, t - a - E) at the least, where A(t) is the work that has arrived.  The
    price of s falls wherever it does not pass some A(t), so only these need be compared.
    """
    arrivals, alone, prompts, begins, sizes = line
    parts = len(prices)
    longest = 1
    for i in range(first, last):
        longest = max(longest, sizes[i])
    come = np.zeros(longest + 1, dtype=arrivals.dtype)
    since, mass = np.zeros_like(come), np.zeros_like(come)
    by_come, by_since = np.zeros_like(come), np.zeros_like(come)
    for i in range(first, last):
        size, after, arrived = sizes[i], i + 1, 0 * arrivals[i]
        # Sums over the borders before each one: prices, these times works, and times excess.
        for place in range(size):
            time = (begins[i] + place) * cell
            while after < len(arrivals) and arrivals[after] <= time:
                arrived += prompts[after]
                after += 1
            come[place], since[place] = arrived, max(time - arrivals[i] - alone[i], 0 * time)
            price = prices[((place + 1) * parts - 1) // size, i]
            mass[place + 1] = mass[place] + price
            by_come[place + 1] = by_come[place] + price * come[place]
            by_since[place + 1] = by_since[place] + price * since[place]
        low, high, works = 0, 0, 0 * arrived
        best, best_works = 0 * arrived, 0 * arrived
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


class Events(NamedTuple):
    """Arrivals and borders of cells in order of time, arrivals first.

    Parameters
    ----------
    times
        Their times.
    requests
        The request that arrives, -1 at a border.
    arrived, passed
        Number of arrivals, and of borders, up to and with each event.
    """

    times: Numbers
    requests: Integers
    arrived: Integers
    passed: Integers

    @classmethod
    def of(cls, arrivals: Numbers, cell: Any, count: int) -> Events:
        """Return the events of requests that are sorted by arrival."""
        borders = np.arange(count) * cell
        times = np.concatenate([arrivals, borders.astype(arrivals.dtype)])
        order = np.argsort(times, kind="stable")
        requests = np.concatenate([np.arange(len(arrivals)), np.full(count, -1)])[order]
        is_arrival = requests >= 0
        return cls(times[order], requests, np.cumsum(is_arrival), np.cumsum(~is_arrival))


def find_holds(
    cell: Any,
    events: Events,
    line: Arrived,
    shares: Numbers,
    waits: Numbers,
    backlog: Numbers,
    classes: Classes,
    charged: Charged,
) -> None:
    """Find when prompts of each class start at the lowest cost.

    ``shares``, ``waits`` and ``backlog`` are over `FINE` times the unit of a proof.
    """
    times, requests = events.times, events.requests
    partly = np.zeros((len(classes.limits), len(times)), dtype=times.dtype)
    for c in range(len(classes.limits)):
        # While a prompt is processed, its work is in the backlog in part.
        for e in range(len(times)):
            k, limit = events.passed[e], classes.limits[c]
            while k < len(backlog) and k * cell < times[e] + limit:
                partly[c, e] += -(-backlog[k] // limit) * (limit - (k * cell - times[e]))
                k += 1
    level, before = np.zeros_like(times), np.zeros_like(times)
    for p in range(len(classes.prices)):
        # The price of a wait up to each event: longer for all, delayed by others, in the backlog.
        price, total, now = classes.prices[p], 0 * cell, 0 * cell
        for e in range(len(times)):
            total, now = total + price * (times[e] - now), times[e]
            change, i = 0 * total, requests[e]
            if i < 0:
                change -= backlog[events.passed[e] - 1]
            else:
                change += shares[i] - max(waits[i], price) * line.prompts[i]
            total += change
            level[e], before[e] = total, total - max(change, 0 * change)
        for c in range(len(classes.limits)):
            if not classes.has_members[p, c]:
                continue
            lowest, place = 0 * price, -1
            for e in range(len(times) - 1, -1, -1):
                i, value = requests[e], level[e] - partly[c, e]
                if i >= 0 and classes.by_price[i] == p and classes.by_limit[i] == c:
                    is_now = place < 0 or value <= lowest
                    charged.holds[i] = (value if is_now else lowest) - level[e]
                    charged.starts[i] = e if is_now else place
                value = before[e] - partly[c, e]
                if place < 0 or value <= lowest:
                    lowest, place = value, e


class Classes(NamedTuple):
    """Classes of requests with one price of waiting and one limit of the works of their prompts.

    Parameters
    ----------
    prices, limits
        Prices of waiting, and limits: 2, 3 or 4 times a power of two.
    by_price, by_limit
        The places of each request in them.
    has_members
        For each price and limit whether some request has both.
    """

    prices: Numbers
    limits: Numbers
    by_price: Integers
    by_limit: Integers
    has_members: Numbers

    @classmethod
    def of(cls, waits: Numbers, prompts: Numbers) -> Classes:
        """Return the classes of requests."""
        powers = [2 ** max(int(work).bit_length() - 2, 0) for work in prompts]
        rounded = [
            max(-int(-work // power), 1) * power
            for work, power in zip(prompts, powers, strict=True)
        ]
        prices, by_price = np.unique(waits, return_inverse=True)
        limits, by_limit = np.unique(np.array(rounded, dtype=prompts.dtype), return_inverse=True)
        has_members = np.zeros((len(prices), len(limits)), dtype=bool)
        has_members[by_price, by_limit] = True
        return cls(prices, limits, by_price, by_limit, has_members)


@dataclass(frozen=True, eq=False)
class Queue:
    """Requests by arrival, with their windows on a grid.

    Its methods take and return columns in the order of the instance.

    Parameters
    ----------
    line
        The requests.
    order, places
        Their positions in the instance, and the place of each position.
    events
        Arrivals and borders.
    cell, count
        Length of a cell, and their number.
    """

    line: Arrived
    order: Integers
    places: Integers
    events: Events
    cell: Any
    count: int

    @classmethod
    def of(
        cls, arrivals: Numbers, alone: Numbers, prompts: Numbers, cell: Any, count: int
    ) -> Queue:
        """Return the queue of requests with these times alone and works of prompts."""
        order = np.argsort(arrivals, kind="stable")
        begins, sizes = np.zeros((2, len(order)), dtype=np.int64)
        line = Arrived(arrivals[order], alone[order], prompts[order], begins, sizes)
        quick(find_windows, arrivals.dtype)(cell, count, line)
        events = Events.of(line.arrivals, cell, count)
        return cls(line, order, np.argsort(order), events, cell, count)

    def in_numbers(self, kind: Any) -> Queue:
        """Return the queue in one kind of numbers; those of borders are integers in any case."""
        arrivals, alone, prompts = (column.astype(kind) for column in self.line[:3])
        line = Arrived(arrivals, alone, prompts, self.line.begins, self.line.sizes)
        events = self.events._replace(times=self.events.times.astype(kind))
        cell = float(self.cell) if kind is float else self.cell
        return replace(self, line=line, events=events, cell=cell)

    def _parts(self, count: int) -> Integers:
        """Return the first border of each of so many parts of windows, and the one after them."""
        places = np.arange(count + 1)[:, None] * self.line.sizes // count
        borders: Integers = self.line.begins + places
        return borders

    def sizes(self, count: int) -> Integers:
        """Return the number of borders in each of so many parts of windows."""
        sizes: Integers = np.diff(self._parts(count), axis=0)[:, self.places]
        return sizes

    def exactly(self, shares: Numbers, prices: Numbers, waits: Numbers) -> tuple[int, Numbers]:
        """Return what the backlog adds in integers, and what is left of shares, as of `charged`."""
        masses = (self.sizes(len(prices)) * prices).sum(axis=0)
        works = self.line.prompts[self.places]
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
        line, works = self.line, np.append(0, np.cumsum(self.line.prompts))
        ends = (line.begins + line.sizes) * self.cell
        come = int((works[np.searchsorted(line.arrivals, ends, side="right")] - works[:-1]).max())
        highest = int(masses.max()) + int(shares.max())
        windows = highest * (come + _LONGEST * int(line.alone.max()))
        times = int(self.events.times[-1]) + 3 * int(works[-1])
        sums = FINE * (2 * int(masses.sum()) + int(shares.sum()))
        return max(windows, int(waits.max()) * times + sums)

    def charged(
        self,
        shares: Numbers,
        prices: Numbers,
        waits: Numbers,
        threads: int = 1,
        *,
        with_slope: bool = False,
    ) -> tuple[Any, Numbers, Charged]:
        """Return what the backlog adds to a bound, over the unit and `FINE`, and how.

        The second number is what is left of each share for the works of tokens.

        Parameters
        ----------
        shares
            Shares of interference, over the unit.
        prices
            In each part of a window the price of the backlog at each border, over the unit.  Those
            of a window sum to its share at least.
        waits
            What a request pays for a nanosecond of waiting, for each nanosecond of its prompt's
            work, over the unit and `FINE`.
        threads
            Threads that share the requests.
        with_slope
            Whether `slopes` are wanted.
        """
        line, kind = self.line, shares.dtype
        shares, prices, waits = (column[..., self.order] for column in (shares, prices, waits))
        borders = self._parts(len(prices))
        changes = np.zeros(self.count + 1, dtype=kind)
        for begin, end, column in zip(borders[:-1], borders[1:], prices, strict=True):
            np.add.at(changes, begin, column)
            np.add.at(changes, end, -column)
        growth, works, holds = (np.zeros(len(shares), dtype=kind) for _ in range(3))
        growing = np.zeros_like(prices) if with_slope else np.zeros((0, 0), dtype=kind)
        charged = Charged(growth, works, growing, holds, np.zeros(len(shares), dtype=np.int64))
        search = quick(find_growth, kind)
        map_ranges(
            lambda first, last: search(first, last, self.cell, line, shares, prices, charged),
            len(shares),
            threads,
        )
        fine, classes = shares * FINE, Classes.of(waits, line.prompts)
        backlog = np.cumsum(changes[:-1]) * FINE
        quick(find_holds, kind)(
            self.cell, self.events, line, fine, waits, backlog, classes, charged
        )
        value = FINE * _exact(growth).sum() + (_exact(line.prompts) * _exact(holds)).sum()
        left = (fine - waits * line.prompts) // FINE
        return value, left[self.places], charged

    def slopes(self, waits: Numbers, charged: Charged) -> tuple[Numbers, Numbers, Numbers]:
        """Return how the sum of `charged` changes, in nanoseconds.

        With the price at each border of a part of a window, with the share of interference, and
        with the share of latency that pays for waiting.
        """
        line, events, starts = self.line, self.events, charged.starts
        count, works = len(line.arrivals), line.prompts
        places = np.arange(count)
        first, after = events.passed[events.requests >= 0], events.passed[starts]
        come = events.arrived[starts]
        # The backlog at borders: all of a prompt until it starts, then what is left of it.
        changes = np.zeros(self.count + 1)
        np.add.at(changes, first, works)
        np.add.at(changes, after, -works)
        left = np.cumsum(changes[:-1])
        times, place = events.times[starts], after.copy()
        while (inside := (place < self.count) & (place * self.cell < times + works)).any():
            np.add.at(left, place[inside], (works + times - place * self.cell)[inside])
            place[~inside] = self.count
            place += 1
        sums = np.append(0.0, np.cumsum(left))
        borders = self._parts(len(charged.growing))
        by_price = charged.growing - (sums[borders[1:]] - sums[borders[:-1]])
        # Works that wait at each arrival, by their price of waiting.
        levels, level = np.unique(waits[self.order], return_inverse=True)
        waiting, cheaper = np.zeros((2, len(levels), count + 1))
        np.add.at(waiting, (level, places + 1), works)
        np.add.at(waiting, (level, come), -works)
        below = np.cumsum(np.cumsum(waiting[:, :-1], axis=1), axis=0)
        np.add.at(cheaper, (level, places + 1), works)
        cheaper = np.cumsum(np.cumsum(cheaper, axis=0) - cheaper, axis=1)
        passed = cheaper[level, come] - cheaper[level, places + 1]
        by_wait = times - line.arrivals - passed - below[level, places]
        by_share = charged.works + below[-1]
        return by_price[:, self.places], by_share[self.places], by_wait[self.places]


def _exact(numbers: Numbers) -> Numbers:
    """Return numbers whose products are exact if they are integers."""
    return numbers if numbers.dtype.kind == "f" else numbers.astype(object)
