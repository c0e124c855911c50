"""What weights prove, evaluated in integers.

Each request takes a part of the machine (`kvopt.bounds.seconds_shares`), and the machine has one
second in a second.  So a schedule is a *fluid*: request i is served at rates that sum to at most
1, from its arrival on.  Let B_i be the mean of the times at which it is served, delta_i the least
time from there to its completion, and E_i its time alone.  The latency of i is counted in three
shares:

*weight*: it completes at B_i + delta_i or later.  The least sum of weighted B_i over all fluids
is that of one that always serves the largest weight_i / takes_i.

*company*: while the prompt of another is processed, i waits, even if it is active.  So its latency
is at least E_i and the works of all prompts whose round begins in the *window* from its arrival
to its arrival + E_i, its own left out.

*the rest*: it completes at the begin of its first round + E_i or later.

So each prompt that begins at t pays for its work the sum of company over all windows that t is
in, and for its delay until then with the rest; what is cheapest counts.
``docs/seconds-bounds.md`` has the proofs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

from kvopt.bounds.seconds_shares import shares
from kvopt.model.arrivals import arrivals_ns
from kvopt.model.batch_time import BatchTime
from kvopt.model.instance import Instance
from kvopt.search.proofs import SharesProof

FULL = 64
"""Denominator of weights."""

_FINE = 30
"""Bits by which slopes are finer than the largest request needs: rounding loses 2^-30."""
_BLOCK = 64
"""Ends of windows that are looked at, or left out, together."""


def shares_bound(
    instance: Instance, model: BatchTime, proof: SharesProof, arrivals: Sequence[int] | None = None
) -> int:
    """Return the lower bound in nanoseconds that a proof gives, exactly and rounded up."""
    memory = instance.memory
    when = arrivals_ns(instance) if arrivals is None else arrivals
    part = shares(instance, model, [model.lines[i] for i in proof.lines], object)
    takes, delays, alone = (column.tolist() for column in (part.takes, part.delays, part.alone))
    weights = proof.weights or (FULL,) * len(instance)
    unit = max(takes, default=1) << _FINE
    slopes = [w * unit // (FULL * x) for w, x in zip(weights, takes, strict=True)]
    squares = served([a * memory for a in when], takes, slopes)
    # Everything is 2 M unit times a time in nanoseconds.
    total = 0
    for a, x, delay, own, slope, square in zip(
        when, takes, delays, alone, slopes, squares, strict=True
    ):
        total += 2 * memory * ((unit - slope * x) * (a + own) - unit * a)
        total += slope * (memory * delay + square)
    if proof.company:
        rest = [FULL - w - c for w, c in zip(weights, proof.company, strict=True)]
        added = company_value(when, alone, part.prompts.tolist(), proof.company, rest)
        total += 2 * memory * (unit // FULL) * added
    return -(-total // (2 * memory * unit))


def served(arrivals: list[Any], takes: list[Any], slopes: list[Any]) -> list[Any]:
    """Serve one at a time, the largest slope first; return of each request 2 * (sum of t dt)."""
    arriving = sorted(range(len(arrivals)), key=lambda i: -arrivals[i])
    left, squares = list(takes), [0 * x for x in takes]
    waiting: list[tuple[Any, int]] = []
    clock: Any = 0
    while arriving or waiting:
        if not waiting:
            clock = max(clock, arrivals[arriving[-1]])
        while arriving and arrivals[arriving[-1]] <= clock:
            i = arriving.pop()
            heappush(waiting, (-slopes[i], i))
        i = waiting[0][1]
        until = clock + left[i]
        if arriving and arrivals[arriving[-1]] < until:
            until = arrivals[arriving[-1]]
            left[i] -= until - clock
        else:
            heappop(waiting)
        squares[i] += (until - clock) * (until + clock)
        clock = until
    return squares


def company_value(
    arrivals: Sequence[int],
    alone: Sequence[int],
    works: Sequence[int],
    company: Sequence[int],
    rest: Sequence[int],
) -> int:
    """Return what company adds beyond the times alone, times 64.

    Parameters
    ----------
    arrivals, alone, works
        Of each request, in nanoseconds.
    company, rest
        Shares of its latency, in parts of 64.
    """
    changes = [(a, c) for a, c in zip(arrivals, company, strict=True) if c]
    changes += [(a + e, -c) for a, e, c in zip(arrivals, alone, company, strict=True) if c]
    changes.sort()
    times, prices, price = [time for time, _ in changes], [0], 0
    for _, change in changes:
        price += change
        prices.append(price)
    lows = [min(prices[i + 1 : i + 1 + _BLOCK]) for i in range(0, len(times), _BLOCK)]
    total = -sum(c * w for c, w in zip(company, works, strict=True))
    for a, work, rate in zip(arrivals, works, rest, strict=True):
        if rate == 0:
            continue  # it begins when no request is there
        after = bisect_right(times, a)
        best = work * prices[after]
        while after < len(times) and rate * (times[after] - a) < best:
            block = after // _BLOCK
            end = min((block + 1) * _BLOCK, len(times))
            if rate * (times[after] - a) + work * lows[block] < best:
                part = zip(times[after:end], prices[after + 1 : end + 1], strict=True)
                best = min(best, *(rate * (t - a) + work * p for t, p in part))
            after = end
        total += best
    return total
