"""Tokens and blocks held over time: one sweep over begins and ends, in exact integers.

A request with prompt p and start k holds ``p - k + t`` tokens at time t.  So memory grows in a
straight line from each begin or end to the next: it follows from the number of active pieces of
work and the sum of their ``p - k``.  A server gives memory out in whole blocks,
which never hold less than the tokens.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from kvopt.kernels.magnitudes import fits
from kvopt.problem.prefixes import Forest

if TYPE_CHECKING:
    import numpy as np


class Sweep(NamedTuple):
    """Tokens of pieces of work, in columns.

    Parameters
    ----------
    starts, ends, before
        Those of the pieces: each is active at the times ``start + 1 .. end``, and has the tokens
        ``before`` at its start.
    times
        Times at which a piece starts or ends, ascending.
    active, held
        Numbers of pieces and of tokens in the round that ends at each of them.
    shared
        Those of the tokens that belong to shared prefixes; empty without any.
    """

    starts: Sequence[int]
    ends: Sequence[int]
    before: Sequence[int]
    times: list[int]
    active: list[int]
    held: list[int]
    shared: Sequence[int] = ()


def swept(starts: Sequence[int], ends: Sequence[int], before: Sequence[int]) -> Sweep:
    """Return the tokens of pieces of work over time, also of work that an eviction loses."""
    import numpy as np  # loaded only if there is work to count

    pieces = (starts, ends, before)
    largest = max((max(map(abs, column)) for column in pieces if column), default=0)
    dtype: Any = np.int64 if fits(largest * 2 * (len(starts) + 1)) else object
    begins, stops, held = (np.array(column, dtype) for column in pieces)
    times, places = np.unique(np.concatenate((begins, stops)), return_inverse=True)

    def sums(what: np.ndarray) -> np.ndarray:
        """Return the sums over active requests in the round that ends at each of the times."""
        change = np.zeros(len(times), dtype)
        np.add.at(change, places, np.concatenate((what, -what)))
        before_change: np.ndarray = change.cumsum() - change
        return before_change

    active = sums(np.ones_like(begins))
    columns = (times, active, sums(held - begins) + active * times)
    return Sweep(*pieces, *(column.tolist() for column in columns))


def sharing(sweep: Sweep, paths: Sequence[Sequence[int]], forest: Forest) -> Sweep:
    """Return the holdings of the same pieces with these nodes if a node is held once.

    The users of a node hold it from the first start until all that overlap have ended.  Pieces
    after those with nodes use none.
    """
    paths = [*paths, *[()] * (len(sweep.starts) - len(paths))]
    on_paths = [sum(forest.weights[v] for v in path) for path in paths]
    alone, once = Counter[int](), Counter[int]()
    ends: dict[int, int] = {}  # users of each node so far
    for start, end, path, tokens in sorted(
        zip(sweep.starts, sweep.ends, paths, on_paths, strict=True), key=lambda piece: piece[:2]
    ):
        alone[start] += tokens
        alone[end] -= tokens
        for node in path:
            last = ends.get(node, start - 1)
            once[max(start, last)] += forest.weights[node]
            ends[node] = max(end, last)
            once[ends[node]] -= forest.weights[node]

    def until(changes: Counter[int]) -> list[int]:
        """Return the sum of all changes before each time."""
        return list(accumulate((changes[time] for time in sweep.times), initial=0))[:-1]

    shared = until(once)
    rows = zip(sweep.held, until(alone), shared, strict=True)
    return sweep._replace(
        before=[held - tokens for held, tokens in zip(sweep.before, on_paths, strict=True)],
        held=[held - tokens + nodes for held, tokens, nodes in rows],
        shared=shared,
    )


def blocks_for(tokens: int, block: int) -> int:
    """Return how many blocks of so many tokens hold these tokens."""
    return -(-tokens // block)


def blocks_held(sweep: Sweep, block: int, also: Container[int] = ()) -> Iterator[tuple[int, int]]:
    """Yield each time at which work ends, and some others, ascending, and the blocks held then.

    Blocks are given back at ends only, so they peak at ends.  A piece with ``offset + t`` tokens at
    time t, with ``offset = q B + r`` and ``t = u B + v``, takes ``q + u`` blocks, one more if
    ``r + v > 0``, and one more if ``r + v > B``: so active pieces are counted by their r.
    Nodes of prefixes are whole blocks.
    """
    shared = dict(zip(sweep.times, sweep.shared, strict=False))
    changes: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for start, end, prompt in zip(sweep.starts, sweep.ends, sweep.before, strict=True):
        whole, rest = divmod(prompt - start, block)
        changes[start].append((1, whole, rest))
        changes[end].append((-1, -whole, rest))
    active = wholes = 0
    rests: Counter[int] = Counter()
    for time in sorted(changes):
        rounds, late = divmod(time, block)
        if time in also or any(change < 0 for change, _, _ in changes[time]):
            begun = sum(n for r, n in rests.items() if r + late > 0)
            more = sum(n for r, n in rests.items() if r + late > block)
            yield time, wholes + active * rounds + begun + more + shared.get(time, 0) // block
        for change, whole, rest in changes[time]:
            active, wholes = active + change, wholes + whole
            rests[rest] += change
            if not rests[rest]:
                del rests[rest]
