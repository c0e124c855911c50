"""Evaluate prices of the backlog: prompts that have arrived and are not processed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from itertools import accumulate
from operator import itemgetter, mul, sub
from typing import NamedTuple

from kvopt.verify.step_budget import Work, refuse

FINE = 2**20
"""Prices of waiting are over the unit of a proof and this."""
_Event = tuple[int, int, int]
"""Time, whether it is a border of cells, and the number of the border or of the request."""


class Waiting(NamedTuple):
    """A request: a, E, Y, g, its prices in parts of its window, and q over `FINE`."""

    arrival: int
    alone: int
    prompt: int
    share: int
    prices: tuple[int, ...]
    wait: int


def charge_backlog(requests: list[Waiting], cell: int, count: int, work: Work) -> int:
    """Return what the backlog adds to a bound, over the unit of prices.

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
    works of other kinds.  Prices are over a unit; a grid has ``count`` cells of ``cell``
    nanoseconds.
    """
    line, prices = sorted(requests, key=itemgetter(0)), [0] * count
    for request in line:
        is_negative = min(*request.prices, request.wait) < 0
        refuse(is_negative, "lower: a price of the backlog is negative")
        is_above = request.wait * request.prompt > FINE * request.share
        refuse(is_above, "lower: waits take more than the share of interference")
    growth = sum(_grown(line, i, prices, cell, work) for i in range(len(line)))
    return growth + _held(line, prices, cell, work) // FINE


def _grown(line: list[Waiting], i: int, prices: list[int], cell: int, work: Work) -> int:
    """Return the gain of the window of a request, and add its prices to those of borders.

    It is the minimum over s in `charge_backlog`: ``come`` are A(t) and ``excess`` (t - a - E)^+
    at the borders t from a + E / 4 to a + 3 E, as long as A(t) >= t - a - E.
    """
    arrival, alone, _, share, parts, _ = line[i]
    begin = k = (arrival + alone // 4) // cell + 1
    come, excess, after, total = list[int](), list[int](), i + 1, 0
    while k < len(prices) and k * cell <= arrival + 3 * alone:
        while after < len(line) and line[after].arrival <= k * cell:
            total += line[after].prompt
            after += 1
        if total < k * cell - arrival - alone:
            break
        come.append(total)
        excess.append(max(0, k * cell - arrival - alone))
        k += 1
    size, charges = len(come), list[int]()
    work.spend(20 * (size + 1))
    for part, price in enumerate(parts):
        charges += [price] * ((part + 1) * size // len(parts) - part * size // len(parts))
    for place, price in enumerate(charges, begin):
        prices[place] += price
    refuse(sum(charges) < share, "lower: prices of the backlog of a request are below its share")
    mass, by_come, by_excess = (
        [*accumulate(map(mul, charges, column), initial=0)] for column in ([1] * size, come, excess)
    )
    costs = list[int]()
    # Between two of the A(t) the sum is concave in s, so it is lowest at 0 or at some A(t).
    for works in {0, *come}:
        # Borders of which more has arrived, then those whose excess is the larger loss.
        low = bisect_right(come, works)
        late = max(low, bisect_left(excess, works))
        cost = share * works + by_come[-1] - by_come[low] - works * (mass[late] - mass[low])
        costs.append(cost - by_excess[-1] + by_excess[late])
    return min(costs)


def _held(line: list[Waiting], prices: list[int], cell: int, work: Work) -> int:
    """Return what prompts that wait cost, over `FINE`: by classes with one q and limit of Y.

    A limit is Y rounded up to 2, 3 or 4 times a power of two: chi in part for longer than Y lowers
    the cost.  Between events the cost of a begin is concave in u, so it is lowest at one of them.
    """
    borders = [(k * cell, 1, k) for k in range(len(prices))]
    events = sorted([*((r.arrival, 0, i) for i, r in enumerate(line)), *borders])
    classes: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, (_, is_border, i) in enumerate(events):
        if not is_border:
            power = 2 ** max(0, line[i].prompt.bit_length() - 2)
            limit = max(1, -(-line[i].prompt // power)) * power
            classes[line[i].wait][limit].append(place)
    limits = {limit for members in classes.values() for limit in members}
    work.spend(10 * len(events) * (len(limits) + 1))
    parts = {limit: _partly(prices, events, cell, limit, work) for limit in limits}
    total = 0
    for wait, members in classes.items():
        work.spend(len(events) * (8 + 4 * len(members)))
        after, lowest = _levels(line, prices, events, wait)
        for limit, places in members.items():
            minima = [*accumulate(map(sub, reversed(lowest), reversed(parts[limit])), min)][::-1]
            for place in places:
                # It begins as it arrives, or at a later event, perhaps just before that counts.
                now = after[place] - parts[limit][place]
                value = min([now, *minima[place + 1 : place + 2]])
                total += line[events[place][2]].prompt * (value - after[place])
    return total


def _partly(
    prices: list[int], events: list[_Event], cell: int, limit: int, work: Work
) -> list[int]:
    """Return what a prompt pays after its begin at each event, if it is processed at once.

    At border i it has 1 - (i cell - time) / limit of its work left, and pays the price for this.
    That is subtracted from costs, so that rates are rounded up.
    """
    rates, costs, k = [-(-price * FINE // limit) for price in prices], list[int](), 0
    for time, is_border, _ in events:
        k += is_border
        last = min(len(prices), max(k, -(-(time + limit) // cell)))
        costs.append(sum(rates[i] * (limit - i * cell + time) for i in range(k, last)))
        work.spend(last - k)
    return costs


def _levels(
    line: list[Waiting], prices: list[int], events: list[_Event], wait: int
) -> tuple[list[int], list[int]]:
    """Return the cost of a wait up to each event with it, and the lower one with or without.

    A wait costs ``wait`` in each nanosecond, and g of each request that arrives less the loss
    max(q, q_k) Y_k; at a border it pays chi.
    """
    level = now = 0
    after, lowest = list[int](), list[int]()
    for time, is_border, i in events:
        level += wait * (time - now)
        now = time
        if is_border:
            change = -prices[i] * FINE
        else:
            change = line[i].share * FINE - max(line[i].wait, wait) * line[i].prompt
        lowest.append(level + min(change, 0))
        level += change
        after.append(level)
    return after, lowest
