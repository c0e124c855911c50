"""What requests take of the machine, and what weights prove then, evaluated in integers.

All of it covers pauses; with a single line, or lines in a mix, and company of pieces it also
covers prompts in pieces.

Let f(b) be the time of a round that processes b tokens, without what each token held and each
prompt token cost in addition: the largest of some *lines*, so convex.  Then f(b) - f(0) of a sum
is at least the sum of f(b_i) - f(0), and a round in which request i processes b_i tokens and
holds h_i lasts at least

    sum_i  f(0) h_i / M  +  [f(b_i) - f(0) + prompt_ns P_i + kv_ns h_i],

since at most M tokens are held.  The sum over its rounds is what request i *takes*.  Any of the
lines may be left out in this; alone, a round with request i lasts at least as long as all lines
say.

The machine has one second in a second.  So a schedule is a *fluid*: request i is served at rates
that sum to at most 1, from its arrival on; to at most the number of workers in a fleet.  Let B_i
be the mean of the times at which it is served, delta_i the least time from there to its completion,
and E_i its time alone.  The latency of i is counted in three shares:

*weight*: it completes at B_i + delta_i or later.  The least sum of weighted B_i over all fluids
is that of one that always serves the largest weight_i / takes_i.

*company*: while the prompt of another is processed, i waits, even if it is active.  So its latency
is at least E_i and the works of all prompts whose round begins in the *window* from its arrival
to its arrival + E_i, its own left out.

*the rest*: it completes at the begin of its first round + E_i or later.

So each prompt that begins at t pays for its work the sum of company over all windows that t is
in, and for its delay until then with the rest; what is cheapest counts.

*Company of pieces*: a piece of a prompt makes a round longer by f(1) - f(0) for each token at
least, and may be processed while its request waits for the rest of it.  So the work of a prompt is
less, and its delay is counted only beyond what its prompt takes alone.
``docs/seconds-bounds.md`` has the proofs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kvopt.bounds.fluid import one_at_a_time
from kvopt.model.arrivals import arrivals_ns
from kvopt.model.batch_time import BatchTime, Line
from kvopt.model.instance import Instance
from kvopt.search.proofs import SharesProof

Numbers = npt.NDArray[Any]
"""float64 to look for good weights; Python integers, which are exact, to prove."""

FULL = 64
"""Denominator of weights."""

_FINE = 30
"""Bits by which slopes are finer than the largest request needs: rounding loses 2^-30."""
_BLOCK = 64
"""Ends of windows that are looked at, or left out, together."""


def shares_bound(
    instance: Instance,
    model: BatchTime,
    proof: SharesProof,
    arrivals: Sequence[int] | None = None,
    *,
    chunks: bool = False,
) -> int:
    """Return the lower bound in nanoseconds that a proof gives, exactly and rounded up.

    With ``chunks`` its company is that of pieces.
    """
    memory = instance.total_memory  # one of this size is served as fast as all workers
    model, lines, scale = mixed(model, proof)
    when = [scale * a for a in (arrivals_ns(instance) if arrivals is None else arrivals)]
    part = shares(instance, model, lines, object, chunks=chunks)
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
        assert instance.workers == 1, "company is of one worker"
        rest = [FULL - w - c for w, c in zip(weights, proof.company, strict=True)]
        prompts, early = part.prompts.tolist(), part.early.tolist()
        added = company_value(when, alone, prompts, early, proof.company, rest)
        total += 2 * memory * (unit // FULL) * added
    return -(-total // (2 * memory * unit * scale))


def mixed(model: BatchTime, proof: SharesProof) -> tuple[BatchTime, list[Line], int]:
    """Return the lines that count, the model, and how many times as slow it was made for them.

    A mix of lines is one with integers on a model that is ``sum(mix)`` times as slow.
    """
    lines, by = [model.lines[i] for i in proof.lines], sum(proof.mix)
    if not by:
        return model, lines, 1
    slow = [Line(by * line.round_ns, by * line.token_ns) for line in model.lines]
    parts = list(zip(proof.mix, lines, strict=True))
    line = Line(sum(m * x.round_ns for m, x in parts), sum(m * x.token_ns for m, x in parts))
    return BatchTime(slow, by * model.kv_ns, by * model.prompt_ns), [line], by


def served(arrivals: list[Any], takes: list[Any], slopes: list[Any]) -> list[Any]:
    """Serve one at a time, the largest slope first; return of each request 2 * (sum of t dt)."""
    squares = [0 * x for x in takes]
    for begin, end, i in one_at_a_time(arrivals, takes, [-slope for slope in slopes]):
        squares[i] += (end - begin) * (end + begin)
    return squares


def company_value(
    arrivals: Sequence[int],
    alone: Sequence[int],
    works: Sequence[int],
    early: Sequence[int],
    company: Sequence[int],
    rest: Sequence[int],
) -> int:
    """Return what company adds beyond the times alone, times 64.

    Parameters
    ----------
    arrivals, alone, works
        Of each request, in nanoseconds.
    early
        How late each of them may begin and delay nothing, in nanoseconds too.
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
    for a, work, free, rate in zip(arrivals, works, early, rest, strict=True):
        if rate == 0:
            continue  # it begins when no request is there
        after = bisect_right(times, a)
        best, a = work * prices[after], a + free
        while after < len(times) and rate * (times[after] - a) < best:
            block = after // _BLOCK
            end = min((block + 1) * _BLOCK, len(times))
            if rate * max(times[after] - a, 0) + work * lows[block] < best:
                part = zip(times[after:end], prices[after + 1 : end + 1], strict=True)
                best = min(best, *(rate * max(t - a, 0) + work * p for t, p in part))
            after = end
        total += best
    return total


@dataclass(frozen=True, eq=False)
class Shares:
    """What each request takes, in columns; times are in nanoseconds.

    Parameters
    ----------
    takes
        Time of the machine, times M.
    delays
        What it takes, times the least time from then to its completion: twice the sum, times M.
    alone
        The time from its start to its completion when nothing else runs.
    prompts
        By how much its prompt, at once or in pieces, makes rounds longer at least, by all lines.
    early
        How late any piece of its prompt may begin if it completes as early as alone.
    """

    takes: Numbers
    delays: Numbers
    alone: Numbers
    prompts: Numbers
    early: Numbers


def shares(
    instance: Instance,
    model: BatchTime,
    lines: Sequence[Line],
    kind: type,
    *,
    chunks: bool = False,
) -> Shares:
    """Return what the requests take by some lines of a model.

    Parameters
    ----------
    instance
        The requests, and the memory that they share.
    model
        How long rounds last.
    lines
        Some of the lines of the model.
    kind
        ``float``, or ``object`` for exact integers.
    chunks
        Whether prompts may be processed in pieces.

    Notes
    -----
    In a round its work comes first and its part of f(0) last.  The last round has r = 0 rounds
    after it.  A round other than the first holds h = top - r tokens and has work w = wide - kv r;
    the time from its end to the completion is at least T with 2 T = p r - kv r^2.  So a round adds

        M w (2 T + 2 base + w)  +  base h (2 T + base)

    to the delays: a polynomial in r, which is summed by the sums of 1, r, r^2, r^3.
    """
    memory = instance.memory
    prompt: Numbers = np.array([request.prompt for request in instance], dtype=kind)
    output: Numbers = np.array([request.output for request in instance], dtype=kind)
    kv, base = model.kv_ns, _time(lines, 0)
    top, rest = prompt + output, output - 1
    wide = _time(lines, 1) - base + kv * top
    p = 2 * (_time(model.lines, 1) + kv * top) + kv
    n1 = rest * (rest - 1) // 2
    n2 = n1 * (2 * rest - 1) // 3
    n3 = n1 * n1
    a, b = 2 * base + wide, p - kv
    later = memory * (wide * a * rest + (wide * b - kv * a) * n1 - kv * (wide + b) * n2
                      + kv * kv * n3)  # fmt: skip
    later += base * (top * base * rest + (top * p - base) * n1 - (kv * top + p) * n2 + kv * n3)
    # The first round processes the prompt as well.
    own = model.prompt_ns * prompt + kv * (prompt + 1)
    work, twice = _times(lines, prompt + 1) - base + own, p * rest - kv * rest * rest
    first = memory * work * (twice + 2 * base + work) + base * (prompt + 1) * (twice + base)
    volume = prompt * output + output * (output + 1) // 2
    none, least, whole = *(_time(model.lines, b) for b in (0, 1)), _times(model.lines, prompt + 1)
    return Shares(
        takes=base * volume + memory * (work + wide * rest - kv * n1),
        delays=first + later,
        alone=twice // 2 + whole + own,
        prompts=own + ((least - none) * (prompt + 1) if chunks else whole - none),
        early=whole - least + model.prompt_ns * prompt if chunks else 0 * prompt,
    )


def _time(lines: Sequence[Line], tokens: int) -> int:
    return max(line.round_ns + line.token_ns * tokens for line in lines)


def _times(lines: Sequence[Line], tokens: Numbers) -> Numbers:
    times = lines[0].round_ns + lines[0].token_ns * tokens
    for line in lines[1:]:
        times = np.maximum(times, line.round_ns + line.token_ns * tokens)
    return times
