r"""Bounds by cases: which requests are active when one of them completes.

Request $i$ with start $k_i$ holds $s_i+t-k_i$ tokens at the times $k_i<t\le k_i+o_i$.  Take a
request $q$ and a set $A$ of others.  When $q$ completes, at $c=k_q+o_q$, one of these holds:

- some $i\in A$ has not started: $k_i-k_q\ge o_q$;
- some $i\in A$ is complete: $k_q-k_i\ge o_i-o_q+1$;
- all are active, and $\sum_{i\in A\cup\{q\}}(s_i+c-k_i)\le M$.

Each is a *row*: a sum of starts with integer coefficients, and what it is at least.  A case also
has the rows that deny the cases before it.  Multipliers $y_r\ge 0$ of the rows
$\sum_i\alpha_{ri}\,k_i\ge\beta_r$ of a case prove, over a denominator $D$,

$$
D\sum_i k_i\ \ge\ \sum_r y_r\,\beta_r+\sum_i\ \min_{a_i\le k\le u_i}
\Bigl(D-\sum_r y_r\,\alpha_{ri}\Bigr)\,k,
$$

where $u_i$ is the last start of request $i$ in a schedule below a target.  No time appears in this,
so the size of the cache and the length of outputs do not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kvopt.problem.instance import Instance


class Row(NamedTuple):
    """A sum of starts, by request, and its lower limit."""

    terms: tuple[tuple[int, int], ...]
    limit: int


class Case(NamedTuple):
    """Rows of a case, and those that deny it in the cases after it."""

    rows: tuple[Row, ...]
    denial: tuple[Row, ...]


def _apart(later: int, earlier: int, rounds: int) -> Row:
    """Return the row by which one request starts at least so many rounds after another."""
    return Row(((later, 1), (earlier, -1)), rounds)


def order_rows(instance: Instance) -> list[Row]:
    """Return the rows of the root: requests of one shape start in the order of arrival.

    Two of them may change places otherwise, and total latency stays the same.
    """
    before: dict[tuple[int, int], int] = {}
    rows = []
    for i in sorted(range(len(instance)), key=lambda i: instance[i].arrival):
        shape = instance[i].prompt, instance[i].output
        if shape in before:
            rows.append(_apart(i, before[shape], 0))
        before[shape] = i
    return rows


def cases(instance: Instance, branch: Sequence[int]) -> Iterator[Case]:
    """Yield the cases of a branch, of which every schedule is in one."""
    first, *others = branch
    if first < 0:
        i, (time,) = -1 - first, others
        until, later = Row(((i, -1),), -time), Row(((i, 1),), time + 1)
        yield Case((until,), (later,))
        yield Case((later,), ())
        return
    output = instance[first].output
    for i in others:
        yield Case((_apart(i, first, output),), (_apart(first, i, 1 - output),))
    for i in others:
        before = instance[i].output - output
        yield Case((_apart(first, i, before + 1),), (_apart(i, first, -before),))
    together = [first, *others]
    tokens = sum(instance[i].prompt for i in together) + len(together) * output
    terms = ((first, 1 - len(together)), *((i, 1) for i in others))
    # The denial of the last case is never needed.
    yield Case((Row(terms, tokens - instance.memory),), ())


class Latency(NamedTuple):
    """What a sum of starts proves of total latency.

    Parameters
    ----------
    bounds
        First and last start of each request in a schedule below the target.
    more
        Total latency less the sum of starts.
    """

    bounds: list[tuple[int, int]]
    more: int

    @classmethod
    def below(cls, instance: Instance, target: int) -> Latency:
        """Return it for schedules below a target: no request waits longer than all may."""
        waits = target - 1 - instance.total_output
        arrivals = [request.arrival for request in instance]
        return cls([(a, a + waits) for a in arrivals], instance.total_output - sum(arrivals))

    def value(self, rows: Sequence[Row], over: int, multipliers: Sequence[tuple[int, int]]) -> int:
        """Return the bound on total latency by multipliers of rows, over a denominator."""
        left, total = [over] * len(self.bounds), 0
        for place, multiplier in multipliers:
            terms, limit = rows[place]
            total += multiplier * limit
            for i, factor in terms:
                left[i] -= multiplier * factor
        for rest, (lowest, highest) in zip(left, self.bounds, strict=True):
            total += rest * (lowest if rest >= 0 else highest)
        return self.more - (-total // over)
