"""Tokens that stay in memory between the work that computed them and that which finds them.

A request may find tokens in the cache (`Chunks.cached`): of nodes that others hold, or compute in
the same round; of nodes that no request holds any more, or of its own before a pause.  The last two
have to stay in memory from the end of the last work that held so many of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush
from itertools import accumulate, groupby
from typing import NamedTuple

from kvopt.errors import InvalidInput
from kvopt.problem.prefixes import Forest


class Piece(NamedTuple):
    """Work that holds tokens of one request.

    Parameters
    ----------
    start, end
        It is active at the times ``start + 1 .. end``.
    before, held
        Tokens of the request before its first round, and in it.
    request
        The request.
    cached
        Those of the tokens before that it found in the cache; 0 if it goes on.
    """

    start: int
    end: int
    before: int
    held: int
    request: int
    cached: int


def kept_tokens(pieces: Iterable[Piece], forest: Forest, size: int) -> Mapping[int, int]:
    """Return by how many tokens more or fewer are kept for later use after each time.

    Parameters
    ----------
    pieces
        All work of one worker.
    forest
        Its requests.
    size
        Tokens of a block of memory.

    Raises
    ------
    InvalidInput
        If a request finds tokens that were never computed.
    """
    ends_of = defaultdict[int, dict[int, int]](dict)  # of a node the last end by its tokens
    private_of = defaultdict[int, list[tuple[int, int]]](list)  # of a request ends and tokens
    kept = defaultdict[int, dict[tuple[int, int], int]](dict)  # of either tokens by times

    def nodes(i: int, tokens: int) -> Iterator[tuple[int, int]]:
        """Yield nodes of a request and how many of its first tokens are theirs."""
        for v in forest.paths[i]:
            if tokens <= 0:
                return
            yield v, min(tokens, forest.weights[v])
            tokens -= forest.weights[v]

    def computes(piece: Piece, node: int, tokens: int) -> bool:
        """Whether a piece of work computes the last of so many tokens of a node."""
        before = dict(nodes(piece.request, piece.before)).get(node, 0)
        return before < tokens <= dict(nodes(piece.request, piece.held)).get(node, 0)

    def keep(holder: int, begin: int, end: int, tokens: int) -> None:
        if begin < 0:
            reason = f"finds {tokens} tokens at {end} that were not computed"
            raise InvalidInput(reason, field="chunks")
        row, count = kept[holder], -(-tokens // size) * size
        row[begin, end] = max(row.get((begin, end), 0), count)

    for start, group in groupby(sorted(pieces), key=lambda piece: piece.start):
        now = list(group)
        # Tokens that are neither held nor computed now have to be kept since their last use.
        for piece in now:
            i, private = piece.request, piece.cached
            for v, tokens in nodes(i, piece.cached):
                private -= tokens
                end = max((end for n, end in ends_of[v].items() if n >= tokens), default=-1)
                if end <= start and not any(computes(other, v, tokens) for other in now):
                    keep(v, end, start, tokens)
            if private:
                ends = [end for end, n in private_of[i] if n >= piece.cached and end <= start]
                keep(-1 - i, max(ends, default=-1), start, private)
        for piece in now:
            for v, tokens in nodes(piece.request, piece.held):
                ends_of[v][tokens] = max(ends_of[v].get(tokens, 0), piece.end)
            private_of[piece.request].append((piece.end, piece.held + piece.end - start - 1))
    changes = Counter[int]()
    for row in kept.values():
        times, begins = sorted({time for pair in row for time in pair}), sorted(row)[::-1]
        # Uses may overlap: at each time as many tokens are kept as the largest one needs.
        needed, before = [(0, times[-1] + 1)], 0  # a heap of the uses to come
        for time in times:
            while begins and begins[-1][0] == time:
                pair = begins.pop()
                heappush(needed, (-row[pair], pair[1]))
            while needed[0][1] <= time:
                heappop(needed)
            changes[time] -= needed[0][0] + before
            before = -needed[0][0]
    return changes


def kept_at(changes: Mapping[int, int], times: Iterable[int]) -> dict[int, int]:
    """Return the tokens that are kept in the rounds that end at these times."""
    marks = sorted({*changes, *times})
    sums = accumulate((changes.get(time, 0) for time in marks), initial=0)
    return dict(zip(marks, sums, strict=False))
