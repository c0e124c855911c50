"""Evaluate the machine time of requests, and the bound of shares, in integers.

All of it covers pauses; with a single line, or lines in a mix, and interference of pieces it also
covers prompts in pieces.

Let f(b) be the time of a round that processes b tokens, without what each token held and each
prompt token cost in addition: the largest of some *lines*, so convex.  Then f(b) - f(0) of a sum
is at least the sum of f(b_i) - f(0), and a round in which request i processes b_i tokens and
holds h_i lasts at least

    sum_i  f(0) h_i / M  +  [f(b_i) - f(0) + prompt_ns P_i + kv_ns h_i],

since at most M tokens are held.  The sum over its rounds is the machine time that request i
*takes*.  Any of the lines may be left out in this.  A round with request i alone lasts at least the
maximum of all lines.

The machine has one second in a second.  So a schedule is a *fluid*: request i is served at rates
that sum to at most 1, from its arrival on; to at most the number of workers in a fleet.  Its
latency is counted in three shares, by its time alone E_i and by the works of others:

- *weight*: it completes some least time after the mean of the times at which it is served.  The
  least sum of weighted means is that of a fluid that serves the largest weight_i / takes_i first;
- *interference* (`company` in proofs): it is at least E_i and the works of all other prompts whose
  round begins in the *window* from its arrival to its arrival + E_i;
- *the rest*: it completes at the begin of its first round + E_i or later.

So each prompt that begins at t pays for its work the sum of interference over all windows around
t, and for its delay until then with the rest; the cheapest t counts.  A request may be cut into
*parts*: its first round, and consecutive ones after it.  Then interference counts the work of
tokens too.  Pieces of prompts make rounds longer by f(1) - f(0) for each token at least.
``docs/theory/seconds.md`` has the proofs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from kvopt.bounds.fluid import one_at_a_time
from kvopt.bounds.prefix_shares import Processed
from kvopt.incumbent.proofs import SharesProof
from kvopt.kernels.loop_calls import machine_code
from kvopt.kernels.magnitudes import fits
from kvopt.problem.arrays import Integers, Numbers, columns_of
from kvopt.problem.batch_time import BatchTime, Line
from kvopt.problem.clocks import arrivals_ns
from kvopt.problem.instance import Instance
from kvopt.problem.requests import volume_of

FULL = 64
"""Denominator of weights."""

_FINE = 30
"""Bits by which slopes are finer than the largest request needs: rounding loses 2^-30."""


def shares_bound(
    instance: Instance,
    model: BatchTime,
    proof: SharesProof,
    arrivals: Sequence[int] | None = None,
    *,
    chunks: bool = False,
    done: Processed | None = None,
) -> int:
    """Return the lower bound in nanoseconds that a proof gives, exactly and rounded up.

    With ``chunks`` its interference is that of pieces; ``done`` is as of `request_times`.
    """
    memory = instance.total_memory  # one server of this size is as fast as all workers
    model, lines, scale = mixed_lines(model, proof)
    when = scale * integers(arrivals_ns(instance) if arrivals is None else arrivals)
    assert not (chunks and proof.parts), "parts are not of prompts in pieces"
    fixed = fixed_parts(instance, lines, proof.by_memory)
    part = request_times(instance, model, lines, object, chunks=chunks, done=done, fixed=fixed)
    cut = parts_of(instance, model, lines, part, proof.parts, fixed)
    counts = integers([request.weight for request in instance])
    weights = integers(proof.weights) if proof.weights else FULL * counts
    unit = max(part.takes.tolist(), default=1) << _FINE
    # Rounded down, what is missing counts the time alone: any slopes prove a bound.
    slopes = weights * unit // (FULL * part.takes)
    begins = (when[cut.owners] + cut.begins) * memory
    squares = cut.summed(served(begins, cut.takes, slopes[cut.owners]))
    # Everything is 2 M unit times a time in nanoseconds.
    left = unit * counts - slopes * part.takes
    values = 2 * memory * (left * (when + part.alone) - unit * counts * when)
    total = int((values + slopes * (memory * part.delays + squares)).sum())
    if proof.company:
        assert instance.workers == 1, "company is of one worker"
        interference = integers(proof.company)
        rest = FULL * counts - weights - interference
        added = _interference_value(when, part.alone, cut, interference, rest)
        total += 2 * memory * (unit // FULL) * added
    return -(-total // (2 * memory * unit * scale))


def integers(values: Sequence[int]) -> Numbers:
    """Return an array of integers of any size."""
    return np.array(values, dtype=object)


def longest(lines: Sequence[Line], tokens: Any) -> Any:
    """Return the length of a round by some lines, for a number of tokens or an array of numbers."""
    times = [line.round_ns + line.token_ns * tokens for line in lines]
    return reduce(np.maximum, times) if isinstance(tokens, np.ndarray) else max(times)


def mixed_lines(model: BatchTime, proof: SharesProof) -> tuple[BatchTime, list[Line], int]:
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


def line_sets(model: BatchTime, *, chunks: bool) -> list[tuple[int, ...]]:
    """Return each line, and all whose maximum counts; only one line covers prompts in pieces."""
    count = len(model.lines)
    single: list[tuple[int, ...]] = [(line,) for line in range(count)]
    return single if chunks or count == 1 else [*single, tuple(range(count))]


def machine_times(
    instance: Instance,
    model: BatchTime,
    private: Sequence[int],
    *,
    chunks: bool,
    fixed: tuple[int, int] | None = None,
) -> Iterator[tuple[tuple[int, ...], Numbers]]:
    """Yield `line_sets`, and by each the machine times that requests take, times the memory.

    Parameters are those of `request_times`.
    """
    for chosen in line_sets(model, chunks=chunks):
        lines, done = [model.lines[line] for line in chosen], Processed(private)
        yield chosen, request_times(instance, model, lines, object, done=done, fixed=fixed).takes


def served(begins: Numbers, takes: Numbers, slopes: Numbers) -> Numbers:
    """Serve one at a time, the largest slope first; return of each part 2 * (sum of t dt)."""
    begin, end, requests = one_at_a_time(begins, takes, -slopes)
    squares = 0 * takes
    np.add.at(squares, requests, (end - begin) * (end + begin))
    return squares


def _interference_value(
    arrivals: Numbers, alone: Numbers, cut: Parts, interference: Numbers, rest: Numbers
) -> int:
    """Return the gain by interference over the times alone, for shares in 64 parts, times 64.

    This is Claim 5.5 of ``docs/theory/seconds.md``.  The parts of a request share its delay by
    their works, so their costs are averaged with these.  Its own window does not count: it is
    subtracted.
    """
    arrivals, longest_alone = arrivals - arrivals.min(), int(alone.max())
    # The largest numbers compared: a share times a delay, and a work times all interference.
    share = max(FULL, int((interference + rest).max()))
    largest = max(
        share * (int(arrivals.max()) + longest_alone), longest_alone * int(interference.sum())
    )
    kind = np.int64 if fits(largest) else object
    windows = InterferenceWindows.of(arrivals.astype(kind), alone.astype(kind), cut)
    costs, _ = windows.cheapest(interference.astype(kind), rest.astype(kind))
    works, paid = windows.works.astype(object), cut.summed(cut.works * costs)
    there = works > 0
    return int((paid[there] // works[there]).sum() - (interference * works).sum())


@dataclass(frozen=True, eq=False)
class InterferenceWindows:
    """Windows of requests by their ends and begins, and the works that begin in them.

    Parameters
    ----------
    begins, ends, works
        The window of each request, and by how much all of its parts make rounds longer.
    cut, first
        The parts, and when each begins at the earliest.
    order, times, after
        The order of the ends and the begins of windows, their times, and their number up to
        the earliest begin of each part.
    """

    begins: Numbers
    ends: Numbers
    works: Numbers
    cut: Parts
    first: Numbers
    order: Integers
    times: Numbers
    after: Integers

    @classmethod
    def of(cls, arrivals: Numbers, alone: Numbers, cut: Parts) -> InterferenceWindows:
        """Return the windows of requests, in floats or in integers."""
        columns = (column.astype(arrivals.dtype) for column in (cut.begins, cut.works, cut.early))
        # Machine time stays as it is: times M it may pass 64 bits.
        ends, cut = arrivals + alone, Parts(cut.owners, cut.takes, *columns)
        times, first = np.append(ends, arrivals), arrivals[cut.owners] + cut.begins
        order = np.argsort(times, kind="stable")
        after = np.searchsorted(times[order], first, side="right")
        works = cut.summed(cut.works)
        return cls(arrivals, ends, works, cut, first, order, times[order], after)

    def cheapest(self, interference: Numbers, per_delay: Numbers) -> tuple[Numbers, Numbers]:
        """Return the least payment of each part, and its delay at this payment.

        It pays the interference of the windows in which it begins, and ``per_delay`` for each unit
        of delay.
        """
        changes, owners = np.append(-interference, interference)[self.order], self.cut.owners
        # No sum is negative, but for rounding.
        prices = np.append(0 * changes[:1], np.maximum(np.cumsum(changes), 0))
        costs, waits = np.zeros((2, len(owners)), dtype=self.times.dtype)
        quick = _find_cheapest
        if self.times.dtype != object:
            quick = machine_code(_find_cheapest, or_python=True)
        parts = (self.first, self.works[owners], self.cut.early, per_delay[owners])
        quick((self.times, prices, self.after), parts, costs, waits)
        return costs, waits


def _find_cheapest(
    windows: tuple[Numbers, Numbers, Integers],
    parts: tuple[Numbers, Numbers, Numbers, Numbers],
    costs: Numbers,
    waits: Numbers,
) -> None:
    """Find the cheapest begin of each part; in Python where integers pass 64 bits.

    Entry k of the prices holds after the first k times.  Between these the price is constant and
    the delay never falls: the earliest begin and the times are enough.  At equal times ends come
    before begins, so that a price can only be too low.  Being late by ``early`` costs nothing.
    """
    times, prices, after = windows
    first, works, early, per_delay = parts
    for i in range(len(first)):
        best, wait = works[i] * prices[after[i]], 0 * first[i]
        for k in range(after[i], len(times)):
            late = times[k] - first[i]
            delay = per_delay[i] * max(late - early[i], 0)
            if delay >= best:
                break
            if delay + works[i] * prices[k + 1] < best:
                best, wait = delay + works[i] * prices[k + 1], late
        costs[i], waits[i] = best, wait


class RequestTimes(NamedTuple):
    """Machine time of each request, in columns, in nanoseconds.

    Parameters
    ----------
    takes
        Time of the machine, times M.
    delays
        Machine time, times the least time from then to the completion: twice the sum, times M.
    alone
        The time from its start to its completion when nothing else runs.
    prompts
        Least time by which its prompt, at once or in pieces, makes rounds longer, by all lines.
    early
        Latest begin of a piece of its prompt if it completes as early as alone.
    """

    takes: Numbers
    delays: Numbers
    alone: Numbers
    prompts: Numbers
    early: Numbers


def fixed_parts(instance: Instance, lines: Sequence[Line], by_memory: int) -> tuple[int, int]:
    """Return what all tokens in memory pay of f(0), and what each active request pays.

    Tokens pay ``by_memory`` of 64 parts.  At most K requests are active, so each may pay one K-th
    of the rest.
    """
    whole = longest(lines, 0)
    part = whole * by_memory // FULL
    if instance.max_active is None:
        assert by_memory == FULL, "active requests pay only if there is a limit of them"
        return part, 0
    return part, (whole - part) // instance.max_active


def request_times(
    instance: Instance,
    model: BatchTime,
    lines: Sequence[Line],
    kind: type,
    *,
    chunks: bool = False,
    done: Processed | None = None,
    fixed: tuple[int, int] | None = None,
) -> RequestTimes:
    """Return the machine time of all requests by some lines of a model.

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
    done
        Prompt tokens that are surely processed, if requests hold other ones as well.
    fixed
        How f(0) is shared out, as of `fixed_parts`; by default tokens in memory pay all of it.

    Notes
    -----
    In a round its work and what it pays as an active request come first, and its part of f(0) by
    memory last.  The last round has r = 0 rounds after it.  A round other than the first holds h =
    top - r tokens and has work w = wide - kv r; the time from its end to the completion is at least
    T with 2 T = p r - kv r^2.  Its machine time counts times that from then to the completion: work
    is served w / 2 before its end on average, and f(0), here ``base``, comes after it, base / 2
    before the end of the round.  So, times 2 M, with M tokens of memory, a round adds

        M w (2 T + 2 base + w)  +  base h (2 T + base)

    to the delays: a polynomial in r, which is summed by the sums of 1, r, r^2, r^3.
    """
    memory = instance.memory
    _, prompts, outputs = columns_of(instance)
    prompt: Numbers = prompts.astype(kind)
    output: Numbers = outputs.astype(kind)
    fresh: Numbers = prompt if done is None else np.array(done.private, dtype=kind)
    kv, whole_fixed = model.kv_ns, longest(lines, 0)
    base, slot = fixed or (whole_fixed, 0)
    top, rest = prompt + output, output - 1
    wide = longest(lines, 1) - whole_fixed + slot + kv * top
    p = 2 * (longest(model.lines, 1) + kv * top) + kv
    n1 = rest * (rest - 1) // 2
    n2 = n1 * (2 * rest - 1) // 3
    n3 = n1 * n1
    a, b = 2 * base + wide, p - kv  # 2 T + 2 base + w = a + b r - kv r^2
    later = memory * (
        wide * a * rest + (wide * b - kv * a) * n1 - kv * (wide + b) * n2 + kv * kv * n3
    )
    later += base * (top * base * rest + (top * p - base) * n1 - (kv * top + p) * n2 + kv * n3)
    # The first round processes the prompt as well.
    more = model.prompt_ns * fresh + kv * (prompt + 1)
    work, twice = longest(lines, fresh + 1) - whole_fixed + more + slot, p * rest - kv * rest * rest
    if done is not None and done.nodes:  # other requests may process them in earlier rounds
        by_nodes = [
            sum(longest(lines, tokens) - whole_fixed + model.prompt_ns * tokens for tokens in nodes)
            for nodes in done.nodes
        ]
        work = work + np.array(by_nodes, dtype=kind)
    first = memory * work * (twice + 2 * base + work) + base * (prompt + 1) * (twice + base)
    none, one, whole = (longest(model.lines, tokens) for tokens in (0, 1, fresh + 1))
    return RequestTimes(
        takes=base * volume_of(prompt, output) + memory * (work + wide * rest - kv * n1),
        delays=first + later,
        alone=twice // 2 + whole + more,
        prompts=more + ((one - none) * (fresh + 1) if chunks else whole - none),
        early=whole - one + model.prompt_ns * fresh if chunks else 0 * prompt,
    )


class Parts(NamedTuple):
    """Machine time of parts of consecutive rounds of requests, in columns.

    Parameters
    ----------
    owners
        Position of the request.
    takes
        Time of the machine, times M.
    begins
        Earliest begin of its first round, from the arrival on.
    works
        Least time by which it makes rounds longer, by all lines.
    early
        Latest begin of its rounds without a delay, from the earliest begin on.
    """

    owners: Integers
    takes: Numbers
    begins: Numbers
    works: Numbers
    early: Numbers

    def summed(self, values: Numbers) -> Numbers:
        """Return the sum of values over the parts of each request."""
        sums: Numbers = np.zeros(max(self.owners.tolist(), default=-1) + 1, dtype=values.dtype)
        np.add.at(sums, self.owners, values)
        return sums


def parts_of(
    instance: Instance,
    model: BatchTime,
    lines: Sequence[Line],
    whole: RequestTimes,
    count: int,
    fixed: tuple[int, int],
) -> Parts:
    """Return each request as one part, or its first round and so many parts of the rest.

    As one part it makes rounds longer by its prompt alone.

    Parameters
    ----------
    instance, model, lines, fixed
        As of `request_times`.
    whole
        Its result.
    count
        Parts of the rounds after the first; 0 for one part in all.
    """
    owners = np.arange(len(instance))
    if count == 0:
        return Parts(owners, whole.takes, 0 * whole.takes, whole.prompts, whole.early)
    kind = whole.takes.dtype
    _, prompts, outputs = columns_of(instance)
    prompt, rest = prompts.astype(kind), outputs.astype(object) - 1
    by_memory, by_slot = fixed
    token = longest(lines, 1) - longest(lines, 0) + by_slot
    none, one = (longest(model.lines, tokens) for tokens in (0, 1))
    memory, kv = instance.memory, model.kv_ns
    rows = []
    for part in range(count):
        first, last = rest * part // count + 2, rest * (part + 1) // count + 1  # its rounds
        rounds = last - first + 1
        held = prompt * rounds.astype(kind) + ((first + last) * rounds // 2).astype(kind)
        rounds, last = rounds.astype(kind), last.astype(kind)
        alone = one * rounds + kv * held
        takes = memory * (token * rounds + kv * held) + by_memory * held
        early = alone - one - kv * (prompt + last)
        rows.append((rounds > 0, takes, alone, (one - none) * rounds + kv * held, early))
    begins = whole.alone - sum(alone for _, _, alone, _, _ in rows)
    prefill = np.maximum(whole.takes - sum(takes for _, takes, _, _, _ in rows), 0 * begins)
    columns = [(owners, prefill, 0 * begins, whole.prompts, whole.early)]
    for there, takes, alone, works, early in rows:
        columns.append(tuple(column[there] for column in (owners, takes, begins, works, early)))
        begins = begins + alone
    return Parts(*(np.concatenate(column) for column in zip(*columns, strict=True)))
