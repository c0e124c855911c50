r"""All schedules with pauses below a value, round by round: an exhaustive search for few requests.

After a round only the tokens produced by each request matter, and the total waiting so far, which
counts all rounds from arrival to completion: a label is such a list of tokens with the least
waiting that leads to it.  Every set of requests that fits, and to which none can be added, gives a
label of the next round.  Smaller sets are omitted: a label with more tokens can follow the same
schedule, and idle where it is ahead.

A label is dropped if another one of the round has waited at most as long, has more tokens of one
request, and at least as many of the others.

Prices bound the remaining cost of a label, by groups of up to three requests.  Requests of a group
pay for the memory that they hold, as alone, but never hold more than M in one round.  So a group
costs at least the sum of its members alone, and the sum over disjoint groups, less M times the
prices, is still a lower bound.  With g the groups and p the prices of a token at the times t,

.. math:: L(p) = \sum_g c_g(p) - M \sum_t p_t \le \mathrm{OPT}.

The table of a group has the least remaining cost, by the tokens that its members have produced and
the time.  All numbers are integers; ``unit`` is the cost of a round of waiting.  A label is dropped
if waiting, tables and later prices of the memory show that no completion of it is below the value.
So the result is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from kvopt.errors import Stopped, TooLarge
from kvopt.incumbent.proofs import PriceProof
from kvopt.kernels.compiled import compiled
from kvopt.kernels.magnitudes import fits
from kvopt.problem.arrays import Flags, Integers
from kvopt.problem.instance import Instance
from kvopt.timetable.schedule import Schedule

LARGEST_LAYER = 5_000_000
"""Default limit of the labels of a round, of 16 bytes each; those of all rounds are kept."""
MAX_TOGETHER = 3
"""Requests of a group: four take ten times as long and close a tenth more of the gap."""
_CHUNK = 2**22
"""New labels before equal ones are merged."""
_BITS = 62
"""Bits of a label with the packed tokens of all requests."""


class RequestGroup(NamedTuple):
    """Some requests and their table.

    Parameters
    ----------
    members
        Their positions in the instance.
    rows
        Arrival, prompt and output of each, in rows.
    strides
        Stride of a token of each in ``table``.
    table
        Least cost after each time (rows) by place; ``table[0, 0]`` is the whole cost.
    """

    members: tuple[int, ...]
    rows: Integers
    strides: Integers
    table: Integers


class Packed(NamedTuple):
    """The instance of the search, in arrays.

    Parameters
    ----------
    memory, block, unit
        Tokens, those of a block, and the denominator of the prices.
    arrivals, prompts, outputs
        Columns of requests.
    shifts
        Position of the bits of a request in a label.
    group, strides
        For each request its group, with neighbouring members, and the stride of a token in the
        table of the group.
    firsts
        Begins of the tables of groups in those of a time.
    ahead
        Price of the whole memory after each time.
    """

    memory: int
    block: int
    unit: int
    arrivals: Integers
    prompts: Integers
    outputs: Integers
    shifts: Integers
    group: Integers
    strides: Integers
    firsts: Integers
    ahead: Integers


class PausedLayer(NamedTuple):
    """Labels of a round, and their waiting so far."""

    labels: Integers
    waits: Integers


def search_layers(
    instance: Instance,
    prices: PriceProof,
    upper: int,
    should_stop: Callable[[], bool],
    limit: int = LARGEST_LAYER,
) -> Schedule | None:
    """Return the best schedule below a value, None without one.

    Raises
    ------
    Stopped
        If it was asked to stop.
    TooLarge
        If requests have too many tokens, or a round has too many labels.
    """
    problem, groups = _packed(instance, prices)
    layers = [np.zeros(1, dtype=np.int64)]
    waits = [np.zeros(1, dtype=np.int64)]
    everything = int((problem.outputs << problem.shifts).sum())
    best: list[Integers] | None = None
    while len(layers[-1]):
        # After the last row of the tables there are no prices and no arrivals: all times are alike.
        after = min(len(layers), len(problem.ahead) - 1)
        costs = np.concatenate([group.table[after] for group in groups] or [np.zeros(1, np.int64)])
        labels, waited = _following(
            problem, costs, layers[-1], waits[-1], len(layers) - 1, upper, should_stop, limit
        )
        place = len(labels) - 1  # the label with all tokens is the largest
        if len(labels) and labels[place] == everything:
            upper, best = int(waited[place]), [*layers, labels[place : place + 1]]
            labels, waited = labels[:place], waited[:place]
        kept = ~_behind(problem, labels, waited)
        layers.append(labels[kept])
        waits.append(waited[kept])
    if best is None:
        return None
    times = _active_times(problem, best, waits, upper)
    order = [i for group in groups for i in group.members]
    return Schedule.at_times(instance, [times[order.index(i)] for i in range(len(order))])


def _following(
    problem: Packed,
    costs: Integers,
    labels: Integers,
    waits: Integers,
    time: int,
    upper: int,
    should_stop: Callable[[], bool],
    limit: int,
) -> tuple[Integers, Integers]:
    """Return the labels after the next round in ascending order, and their waiting."""
    reached, waited = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    begin = 0
    room = _CHUNK + (1 << len(problem.outputs))
    while begin < len(labels):
        if should_stop():
            raise Stopped
        new = PausedLayer(np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64))
        count, begin = _extend(problem, costs, PausedLayer(labels, waits), begin, time, upper, new)
        reached, waited = _merged(
            np.concatenate((reached, new.labels[:count])),
            np.concatenate((waited, new.waits[:count])),
        )
        if len(reached) > limit:
            raise TooLarge(f"round {time + 1} has more than {limit:,} labels with pauses")
    return reached, waited


def _merged(labels: Integers, waits: Integers) -> tuple[Integers, Integers]:
    """Keep the least waiting of equal labels."""
    order = np.lexsort((waits, labels))
    labels, waits = labels[order], waits[order]
    firsts = np.flatnonzero(np.diff(labels, prepend=-1))
    return labels[firsts], waits[firsts]


def _packed(instance: Instance, prices: PriceProof) -> tuple[Packed, list[RequestGroup]]:
    """Return the arrays of the search, with requests in the order of groups, and the groups."""
    last = max(len(prices.numerators), instance.last_arrival)
    if sum(request.output.bit_length() for request in instance) > _BITS:
        raise TooLarge(f"{len(instance)} requests have too many tokens for labels with pauses")
    if not fits(_largest_cost(instance, prices, last)):
        raise TooLarge("costs do not fit into 64 bits")
    numerators = np.zeros(last, dtype=np.int64)
    numerators[: len(prices.numerators)] = prices.numerators
    groups = groups_of(instance, last)
    fill(groups, instance.memory, numerators, prices.denominator)
    none = np.zeros((0, 3), dtype=np.int64)
    arrivals, prompts, outputs = np.concatenate([none, *(group.rows for group in groups)]).T.copy()
    bits = [int(output).bit_length() for output in outputs]
    sizes = [group.table.shape[1] for group in groups]
    problem = Packed(
        instance.memory,
        instance.block_size,
        prices.denominator,
        arrivals,
        prompts,
        outputs,
        np.cumsum([0, *bits[:-1]]),
        np.array([g for g, group in enumerate(groups) for _ in group.members], dtype=np.int64),
        np.array([stride for group in groups for stride in group.strides], dtype=np.int64),
        np.cumsum([0, *sizes[:-1]]),
        np.append(np.cumsum(numerators[::-1])[::-1], 0) * instance.memory,
    )
    return problem, groups


def _largest_cost(instance: Instance, prices: PriceProof, last: int) -> int:
    """Return an upper limit on sums of costs: waiting of all, or the price of all memory."""
    waiting = prices.denominator * (last + instance.total_output + 1)
    dearest = instance.memory * max(prices.numerators, default=0)
    return len(instance) * (waiting + dearest) + instance.memory * sum(prices.numerators)


def _behind(problem: Packed, labels: Integers, waits: Integers) -> Flags:
    """Tell for which labels, in ascending order, another one has a token more."""
    behind, sizes = np.zeros(len(labels), dtype=np.bool_), np.diff(np.append(problem.shifts, _BITS))
    for shift, size, output in zip(problem.shifts, sizes, problem.outputs, strict=True):
        further = labels + (1 << shift)
        places = np.minimum(np.searchsorted(labels, further), len(labels) - 1)
        is_behind = (labels[places] == further) & (waits[places] <= waits)
        behind |= is_behind & ((labels >> shift) & ((1 << size) - 1) < output)
    return behind


@compiled
def _extend(
    problem: Packed,
    costs: Integers,
    layer: PausedLayer,
    begin: int,
    time: int,
    upper: int,
    new: PausedLayer,
) -> tuple[int, int]:
    """Extend labels from one on until the arrays are full; return how many, and the next one.

    Sets of requests are enumerated as bits.  Members of a group are neighbours, so that their bits
    are the position of its cost in ``parts``.  ``costs`` are the tables at the end of this round.
    """
    (labels, waits), (children, waited) = layer, new
    requests, groups = len(problem.outputs), len(problem.firsts)
    needed, gained, stride = np.empty((3, requests), dtype=np.int64)
    # Of each group: its place in ``costs``, and the first and the number of its active bits.
    place, first, width = np.empty((3, groups), dtype=np.int64)
    parts = np.empty((groups, 1 << MAX_TOGETHER), dtype=np.int64)
    held, added = np.zeros(1 << requests, dtype=np.int64), np.zeros(1 << requests, dtype=np.int64)
    last = len(problem.ahead) - 1
    count = 0
    for label in range(begin, len(labels)):
        # Requests that may be active, as bits, and the place of the label in each table.
        size, left = 0, 0
        for g in range(groups):
            place[g], first[g], width[g] = problem.firsts[g], 0, 0
        for i in range(requests):
            bits, g = labels[label] >> problem.shifts[i], problem.group[i]
            if i + 1 < requests:
                bits &= (np.int64(1) << (problem.shifts[i + 1] - problem.shifts[i])) - 1
            place[g] += bits * problem.strides[i]
            left += problem.outputs[i] - bits
            if bits < problem.outputs[i] and problem.arrivals[i] <= time:
                first[g] = size - width[g]
                width[g] += 1
                needed[size] = -(-(problem.prompts[i] + bits + 1) // problem.block) * problem.block
                gained[size] = np.int64(1) << problem.shifts[i]
                stride[size] = problem.strides[i]
                size += 1
        if count + (1 << size) > len(children):
            return count, label
        # Tokens of each set, and the remaining cost of each group after each subset of its members.
        now = waits[label] + size
        base = now * problem.unit - problem.ahead[min(time + 1, last)]
        for g in range(groups):
            parts[g, 0] = costs[place[g]]
            for chosen in range(1, 1 << width[g]):
                after = place[g]
                for x in range(width[g]):
                    if chosen >> x & 1:
                        after += stride[first[g] + x]
                parts[g, chosen] = costs[after]
        for x in range(size):
            for chosen in range(1 << x):
                held[1 << x | chosen] = held[chosen] + needed[x]
                added[1 << x | chosen] = added[chosen] + gained[x]
        # A child for each set that fits, to which nothing can be added, and may be good enough.
        for chosen in range(1 << size):
            room = problem.memory - held[chosen]
            if room < 0:
                continue
            cost = base
            for g in range(groups):
                cost += parts[g, chosen >> first[g] & ((1 << width[g]) - 1)]
            if cost > (upper - 1) * problem.unit:
                continue
            # Each token that is left costs another round of waiting at least.
            lowest, fits = now + left, False
            for x in range(size):
                if chosen >> x & 1:
                    lowest -= 1
                elif needed[x] <= room:
                    fits = True
            if not fits and lowest < upper:
                children[count], waited[count] = labels[label] + added[chosen], now
                count += 1
    return count, len(labels)


def _active_times(
    problem: Packed, layers: list[Integers], waits: list[Integers], value: int
) -> list[list[int]]:
    """Trace the last label back, and return the active times of each request.

    In each layer some label leads to it: by a set that fits, with the same waiting in all.
    """
    times: list[list[int]] = [[] for _ in problem.outputs]
    label = layers[-1][0]
    for time in range(len(layers) - 1, 0, -1):
        before = _tokens(problem, layers[time - 1])
        steps = _tokens(problem, np.array([label])) - before
        unfinished = (before < problem.outputs) & (problem.arrivals < time)
        held = -(-(problem.prompts + before + 1) // problem.block) * problem.block
        fits = (steps * held).sum(axis=1) <= problem.memory
        fits &= ((steps == 0) | (steps == 1) & unfinished).all(axis=1)
        fits &= waits[time - 1] + unfinished.sum(axis=1) == value
        place = int(np.flatnonzero(fits)[0])
        for i in np.flatnonzero(steps[place]):
            times[i].insert(0, time)
        label, value = layers[time - 1][place], int(waits[time - 1][place])
    return times


def _tokens(problem: Packed, labels: Integers) -> Integers:
    """Return the tokens of each request in each label."""
    bits = np.diff(np.append(problem.shifts, _BITS))
    return (labels[:, None] >> problem.shifts) & ((1 << bits) - 1)


# ---- groups at prices --------------------------------------------------------------------------


def groups_of(instance: Instance, last: int, max_entries: int = 1 << 24) -> list[RequestGroup]:
    """Group requests of large peaks, as many as tables of so many entries, 8 bytes each, allow.

    Raises
    ------
    TooLarge
        If the table of a single request is too large.
    """
    limit = max_entries // (last + 1)
    groups: list[list[int]] = []
    places = limit + 1  # too many, so that the first request begins a group
    for i in sorted(range(len(instance)), key=lambda i: -instance.requests[i].peak):
        size = instance.requests[i].output + 1
        if size > limit:
            raise TooLarge(f"a table of {size:,} tokens and {last + 1:,} rounds is too large")
        if places * size > limit or len(groups[-1]) == MAX_TOGETHER:
            groups.append([])
            places = 1
        groups[-1].append(i)
        places *= size
    return [_empty(instance, tuple(members), last) for members in groups]


def _empty(instance: Instance, members: tuple[int, ...], last: int) -> RequestGroup:
    rows = np.array([instance.requests[i].kind for i in members], dtype=np.int64)
    strides = np.cumprod([1, *(rows[:, 2] + 1)])
    table = np.empty((last + 1, strides[-1]), dtype=np.int64)
    return RequestGroup(members, rows, strides[:-1], table)


def fill(groups: Sequence[RequestGroup], memory: int, prices: Integers, unit: int) -> int:
    """Fill the tables at these prices and return their value, in units."""
    for group in groups:
        _fill(memory, prices, unit, group.rows, group.strides, group.table)
    return sum(int(group.table[0, 0]) for group in groups) - memory * int(prices.sum())


@compiled
def _fill(
    memory: int, prices: Integers, unit: int, rows: Integers, strides: Integers, table: Integers
) -> None:
    """Fill the table of a `RequestGroup` with these rows and strides, from the last time back."""
    last, members = len(prices), len(rows)
    done = np.zeros(members, dtype=np.int64)
    needed, steps = np.empty_like(done), np.empty_like(done)
    for time in range(last, -1, -1):
        done[:] = 0
        for place in range(table.shape[1]):
            size, left = 0, 0
            for i in range(members):
                left += rows[i, 2] - done[i]
                if done[i] < rows[i, 2] and rows[i, 0] <= time:
                    needed[size], steps[size] = rows[i, 1] + done[i] + 1, strides[i]
                    size += 1
            # After the last time nothing has a price, and a token costs a round of waiting.
            # Before, the cheapest set that fits proceeds, and all unfinished members wait.
            if time == last:
                table[time, place] = unit * left
            else:
                lowest = table[time + 1, place]
                for chosen in range(1, 1 << size):
                    held, after = 0, place
                    for x in range(size):
                        if chosen >> x & 1:
                            held += needed[x]
                            after += steps[x]
                    if held <= memory:
                        lowest = min(lowest, table[time + 1, after] + prices[time] * held)
                table[time, place] = lowest + unit * size
            for i in range(members):  # the next place, with the tokens of the first one fastest
                done[i] += 1
                if done[i] <= rows[i, 2]:
                    break
                done[i] = 0
