r"""Least joint costs of groups of up to three requests at given prices, with pauses.

They bound the rest of a label of `kvopt.search.exact.paused_layers`.  Requests of a group pay for
the memory that they hold, as alone, but never hold more than M in one round.  So a group costs at
least the sum of its members alone, and the sum over disjoint groups, less M times the prices, is
still a lower bound.  With g the groups,

.. math:: L(p) = \sum_g c_g(p) - M \sum_t p_t \le \mathrm{OPT}.

The table of a group has the least remaining cost, by the tokens that its members have produced and
the time.  All numbers are integers; ``unit`` is the cost of a round of waiting.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kvopt.errors import TooLarge
from kvopt.kernels.compiled import compiled
from kvopt.problem.arrays import Integers
from kvopt.problem.instance import Instance
from kvopt.problem.requests import Request

MOST_TOGETHER = 3
"""Requests of a group: four take ten times as long and close a tenth more of the gap."""
_MOST_ENTRIES = 1 << 24
"""Limit of the entries of a table, of 8 bytes each."""


class Group(NamedTuple):
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


def groups_of(instance: Instance, last: int) -> list[Group]:
    """Group requests of large peaks, as many as tables for so many rounds allow.

    Raises
    ------
    TooLarge
        If the table of a single request is too large.
    """
    most = _MOST_ENTRIES // (last + 1)
    left = sorted(range(len(instance)), key=lambda i: -instance.requests[i].peak)
    groups: list[list[int]] = []
    places = most + 1
    for i in left:
        size = instance.requests[i].output + 1
        if size > most:
            raise TooLarge(f"a table of {size:,} tokens and {last + 1:,} rounds is too large")
        if places * size > most or len(groups[-1]) == MOST_TOGETHER:
            groups.append([])
            places = 1
        groups[-1].append(i)
        places *= size
    return [_empty([instance.requests[i] for i in members], members, last) for members in groups]


def _empty(requests: Sequence[Request], members: Sequence[int], last: int) -> Group:
    rows = np.array([(r.arrival, r.prompt, r.output) for r in requests], dtype=np.int64)
    strides = np.cumprod([1, *(rows[:, 2] + 1)])
    table = np.empty((last + 1, strides[-1]), dtype=np.int64)
    return Group(tuple(members), rows, strides[:-1], table)


def fill(groups: Sequence[Group], memory: int, prices: Integers, unit: int) -> int:
    """Fill the tables at these prices and return their value, in units."""
    for group in groups:
        _fill(memory, prices, unit, group.rows, group.strides, group.table)
    return sum(int(group.table[0, 0]) for group in groups) - memory * int(prices.sum())


@compiled
def _fill(
    memory: int, prices: Integers, unit: int, rows: Integers, strides: Integers, table: Integers
) -> None:
    """Fill the table of a group, from the last time back."""
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
            if time == last:
                table[time, place] = unit * left
            else:
                least = table[time + 1, place]
                for chosen in range(1, 1 << size):
                    held, after = 0, place
                    for x in range(size):
                        if chosen >> x & 1:
                            held += needed[x]
                            after += steps[x]
                    if held <= memory:
                        least = min(least, table[time + 1, after] + prices[time] * held)
                table[time, place] = least + unit * size
            for i in range(members):  # the next place, with the tokens of the first one fastest
                done[i] += 1
                if done[i] <= rows[i, 2]:
                    break
                done[i] = 0
