"""A list scheduler on a clock of seconds whose state can be copied, extended and evaluated.

Of the first in line that fit, it starts the one of lowest key: the machine time of a request less a
preference for long prompts.  This fills memory that would stay empty: a short prompt can fill the
memory next to a long one later, but not the other way round.

The total latency of a run is a bound by prices of machine time (``docs/theory/seconds.md``), plus
the *reduced costs* of starts, plus the price of all time that no request takes.  So a run can be
evaluated by its first rounds.

It has a node and loops of its own.  With those of rounds (`kvopt.heuristics.nodes`), which know
workers and shared blocks, beams had the same runs, but took 5.6 s of processor time instead of 4.1:
each call counts references to three times as many arrays.  With fewer calls they take 2.9 s, and
half of that since no loop passes on a tuple of arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.heuristics.attaining.serving import Timed, fits, join, round_length
from kvopt.kernels.compiled import borrowing
from kvopt.kernels.copying import place_of
from kvopt.kernels.magnitudes import NEVER
from kvopt.problem.arrays import Floats, Integers

COME, ACTIVE, BASE, NOW, TIME, DONE, _ASK, WAITING, WAITS, _IDLE, LATENCY = range(11)
"""Entries of `TimedNode.counts`: numbers of arrived and of active requests, the sum of their
prompts less starts, the round, its time, the number of completed ones, whether to scan the line,
the number of waiting ones, how often the server resumed work, whether it is idle, the latency of
started requests so far."""
_UNHURRIED = 300
"""After so many requests in a row that lose nothing by waiting, later ones are not tried."""


class Rules(NamedTuple):
    """Dispatch rule: how requests are taken from the line; all floats, so that loops can vary them.

    Parameters
    ----------
    window
        Requests to try.
    fill
        A prompt of all memory divides the machine time in the key by e to this power.
    together
        Requests that may start with one round.
    """

    window: float
    fill: float
    together: float


class NodeTimes(NamedTuple):
    """Prices of machine time, and the machine time of requests.

    Parameters
    ----------
    prices, begin, step
        Prices of a nanosecond from ``begin`` on, every ``step`` nanoseconds, with 0 after the last.
    takes, works, waits
        For each request its machine time, the work of its first round, and the time from its start
        to its mean service.
    lowest, cheapest
        Lowest cost of each request, and a start that has it.
    fixed, decode
        Fixed part of a round, and work of a round of one token, by the lines of the bound.
    """

    prices: Floats
    begin: int
    step: float
    takes: Floats
    works: Floats
    waits: Floats
    lowest: Floats
    cheapest: Floats
    fixed: float
    decode: float


class TimedNode(NamedTuple):
    """State of a run.

    Parameters
    ----------
    counts
        Numbers with the entries `NOW` and others.
    queue
        Ranks of waiting requests, ascending.
    active
        End, peak and position of each active request, by its end.
    """

    counts: Integers
    queue: Integers
    active: Integers


class TimedServer(NamedTuple):
    """Requests on a clock, prices of machine time, and the line in which requests wait.

    Parameters
    ----------
    timed, times
        Requests and prices.
    line, ranks, keys
        Requests by rank, their ranks, and the logarithms of their machine times.
    """

    timed: Timed
    times: NodeTimes
    line: Integers
    ranks: Integers
    keys: Floats


class Done(NamedTuple):
    """Events of a run.

    Parameters
    ----------
    starts
        Rounds in which requests start.
    resumed
        Rounds and times at which an idle server resumed work.
    """

    starts: Integers
    resumed: Integers


class Room(NamedTuple):
    """Work arrays of one expansion: nodes of one row, its node, its run, and changes to keys."""

    nodes: TimedNode
    copy: TimedNode
    done: Done
    noise: Floats


def empty_nodes(width: int, count: int, limit: int) -> TimedNode:
    """Return nodes before any request has arrived, for at most so many active requests."""
    counts = np.zeros((width, 11), dtype=np.int64)
    counts[:, [_ASK, _IDLE]] = 1
    queue, active = (np.zeros((width, *size), dtype=np.int64) for size in ((count,), (limit, 3)))
    return TimedNode(counts, queue, active)


@borrowing
def copy_timed(nodes: TimedNode, row: int, copies: TimedNode, at: int, seen: int) -> None:
    """Copy a node into a row of others, with the given number of its waiting requests."""
    for entry in range(nodes.counts.shape[1]):
        copies.counts[at, entry] = nodes.counts[row, entry]
    copies.counts[at, WAITING] = min(nodes.counts[row, WAITING], seen)
    for place in range(copies.counts[at, WAITING]):
        copies.queue[at, place] = nodes.queue[row, place]
    for place in range(nodes.counts[row, ACTIVE]):
        for entry in range(3):
            copies.active[at, place, entry] = nodes.active[row, place, entry]


@borrowing
def run_on(server: TimedServer, node: TimedNode, rules: Rules, until: int, room: Room) -> float:
    """Run a node until a time, and return its cost above the bound of the prices.

    Arrays are taken from the tuples once: tuples that loops pass on cost more than the rounds.
    """
    timed, times, line, ranks, keys = server
    counts, queue, active = node
    memory, arrivals, coming, prompts, outputs, _, pace = timed
    starts, resumed, noise, kv = room.done.starts, room.done.resumed, room.noise, pace.kv_ns
    prices, takes, works, waits = times.prices, times.takes, times.works, times.waits
    cost, share = 0.0, times.fixed / memory
    while counts[TIME] < until and counts[DONE] < len(arrivals):
        if counts[ACTIVE] == 0 and counts[WAITING] == 0:
            arrival = arrivals[coming[counts[COME]]]
            if arrival >= until:
                break
            counts[TIME] = max(counts[TIME], arrival)
            counts[_IDLE] = 1

        # Requests that arrived join the line by rank.
        while counts[COME] < len(arrivals):
            i = coming[counts[COME]]
            if arrivals[i] > counts[TIME]:
                break
            rank = ranks[i]
            place = place_of(rank, queue, 0, counts[WAITING])
            for x in range(counts[WAITING], place, -1):
                queue[x] = queue[x - 1]
            queue[place] = rank
            counts[WAITING] += 1
            counts[COME] += 1
            counts[_ASK] = 1

        # Requests of the line start, as many together as the rule says: of the first that fit the
        # one of lowest key.
        now, started, fresh, work = counts[NOW], 0, 0, 0.0
        while counts[_ASK] and started < rules.together:
            number, best, lowest = counts[ACTIVE], -1, np.inf
            free, first = memory - counts[BASE], active[0, 0] if number else NEVER
            for place in range(min(counts[WAITING], int(rules.window))):
                rank = queue[place]
                i = line[rank]
                prompt, output = prompts[i], outputs[i]
                key = keys[i] + noise[rank] - rules.fill * prompt / memory
                soon = min(first, now + output)  # the first completion, where most requests fail
                if key >= lowest or (number + 1) * soon + prompt - now > free:
                    continue
                if fits(active, number, now + output, prompt + output, memory):
                    best, lowest = place, key
            if best < 0:
                counts[_ASK] = 0
                break
            i = line[queue[best]]
            join(active, number, now + outputs[i], prompts[i] + outputs[i], i)
            counts[ACTIVE] += 1
            counts[BASE] += prompts[i] - now
            for x in range(best, counts[WAITING] - 1):
                queue[x] = queue[x + 1]
            counts[WAITING] -= 1
            if counts[_IDLE]:
                resumed[counts[WAITS], 0], resumed[counts[WAITS], 1] = now, counts[TIME]
                counts[WAITS] += 1
                counts[_IDLE] = 0
            starts[i] = now
            counts[LATENCY] += counts[TIME] - arrivals[i]
            started, fresh, work = started + 1, fresh + prompts[i], work + works[i]
            served = counts[TIME] + waits[i]
            paid = takes[i] * price_at(prices, times.begin, times.step, served)
            cost += served - arrivals[i] + paid - times.lowest[i]

        # Requests take the time of their works, and of the fixed part of a round the ``share`` of
        # each token that they hold (Claim 5.1).  The rest of the time has its price.
        now, time, number = now + 1, counts[TIME], counts[ACTIVE]
        held, decode = counts[BASE] + number * now, times.decode * number
        length = round_length(pace, number + fresh, fresh, held)
        taken = work + decode - times.decode * started + (kv + share) * held
        paid = price_at(prices, times.begin, times.step, float(time)) * (length - taken)
        # Nothing changes until a completion or an arrival.  In these rounds all time for held
        # tokens is taken, so ``kv`` cancels out.  They are short: all have the price of their
        # middle.
        time += length
        last, stop = until, now if counts[_ASK] else active[0, 0]
        if counts[COME] < len(arrivals):
            last = min(last, arrivals[coming[counts[COME]]])
        began, spare, flat = time, 0.0, round_length(pace, number, 0, 0)
        while now < stop and time < last:
            now += 1
            held += number
            time += flat + kv * held
            spare += flat - decode - share * held
        cost += paid + price_at(prices, times.begin, times.step, 0.5 * (began + time)) * spare
        counts[LATENCY] += number * (time - counts[TIME])
        counts[NOW], counts[TIME] = now, time

        # Completed requests leave.
        gone = 0
        while gone < number and active[gone, 0] == now:
            counts[BASE] -= active[gone, 1] - now
            gone += 1
        if gone:
            for place in range(gone, number):
                for entry in range(3):
                    active[place - gone, entry] = active[place, entry]
            counts[ACTIVE] -= gone
            counts[DONE] += gone
            counts[_ASK] = 1
    return cost


@borrowing
def cost_of_line(server: TimedServer, node: TimedNode) -> float:
    """Return the loss of waiting requests by now against their cheapest starts."""
    cost, unhurried, now = 0.0, 0, node.counts[TIME]
    line, queue, times = server.line, node.queue, server.times
    arrivals, cheapest, waits = server.timed.arrivals, times.cheapest, times.waits
    takes, lowest, prices = times.takes, times.lowest, times.prices
    for place in range(node.counts[WAITING]):
        i = line[queue[place]]
        if cheapest[i] < now:
            served = now + waits[i]
            paid = takes[i] * price_at(prices, times.begin, times.step, served)
            cost += served - arrivals[i] + paid - lowest[i]
            unhurried = 0
        else:
            unhurried += 1
            if unhurried > _UNHURRIED:
                break
    return cost


@borrowing
def price_at(prices: Floats, begin: int, step: float, time: float) -> float:
    """Return the price of a nanosecond at a time, from prices of so many nanoseconds each."""
    place = (time - begin) / step
    before = int(place)
    if place < 0 or before >= len(prices) - 1:
        return 0.0
    low, high = prices[before], prices[before + 1]
    return float(low + (place - before) * (high - low))


def find_cheapest(timed: Timed, times: NodeTimes) -> None:
    """Find the lowest cost of each request, at its arrival or at the times of given prices.

    Between these the price is a line, so that no cost is lower than at both ends.
    """
    grid = times.begin + np.arange(len(times.prices)) * times.step
    served = timed.arrivals + times.waits
    now: Floats = times.waits + times.takes * np.interp(served, grid, times.prices, 0.0, 0.0)
    times.lowest[:], times.cheapest[:] = now, timed.arrivals
    # Beyond the last of these times waiting alone costs more than a start at once.
    first, last = (
        np.searchsorted(grid, served, side="right"),
        np.searchsorted(grid, timed.arrivals + now),
    )
    for i in np.flatnonzero(first < last):
        late = grid[first[i] : last[i]]
        costs = late - timed.arrivals[i] + times.takes[i] * times.prices[first[i] : last[i]]
        place = costs.argmin()
        if costs[place] < now[i]:
            times.lowest[i], times.cheapest[i] = costs[place], late[place] - times.waits[i]
