"""The prefix cache of a server: tokens of active requests, and of others while they fit."""

from __future__ import annotations

import heapq

from kvopt.problem.prefixes import Forest

_Place = tuple[int, int, int]
"""When tokens were last used, by whom, and their part of a request: the last part leaves first."""


class Cache:
    """Computed tokens on a server that serves requests of a forest.

    Tokens of active requests are in the cache.  Those of inactive ones remain while they fit next
    to these: the least recently used leave first, a request from its last token, a node by blocks.
    These are the blocks of vLLM with their counts of users, and its queue of free ones: of a node
    the blocks have the same users, so nodes and private tokens stand for their blocks.

    Parameters
    ----------
    forest
        The requests.
    block
        Tokens of a node that leave together.
    memory
        Tokens of the server.
    unit
        Tokens of a block of memory; all tokens in a cache are in whole blocks.

    Attributes
    ----------
    excess
        Tokens that active requests would hold more if each had nodes of its own.
    """

    def __init__(self, forest: Forest, block: int, memory: int, unit: int = 1) -> None:
        self._forest, self._block, self._memory, self._unit = forest, block, memory, unit
        self._users = [0] * len(forest.weights)
        self._left = [(-1, -1)] * len(forest.weights)  # last use of a node, and its user
        self._unused: dict[_Place, int] = {}  # tokens
        self._line: list[_Place] = []  # a heap of these; entries may be stale
        self._kept: dict[int, _Place] = {}  # private tokens of requests that paused
        self._total = 0  # tokens that are unused
        self.excess = 0

    def matched(self, i: int) -> int:
        """Return the tokens of a request's prefix that are in the cache."""
        forest = self._forest
        return sum(
            forest.weights[v] if self._users[v] else self._unused.get((*self._left[v], -v), 0)
            for v in forest.paths[i]
        )

    def found(self, i: int) -> tuple[int, int]:
        """Return the tokens of a request that are in the cache, and those that no one uses.

        A request that paused also finds its private tokens.
        """
        private = self._unused.get(self._kept.get(i, (-1, -1, 0)), 0)
        tokens = private + self.matched(i)
        used = sum(self._forest.weights[v] for v in self._forest.paths[i] if self._users[v])
        return tokens, tokens - used

    def start(self, i: int) -> int:
        """Make a request active; return the tokens of its prompt that are not in the cache."""
        forest, path = self._forest, self._forest.paths[i]
        missing = forest.private[i] + sum(forest.weights[v] for v in path) - self.matched(i)
        for v in path:
            if self._users[v]:
                self.excess += forest.weights[v]
            else:
                self._total -= self._unused.pop((*self._left[v], -v), 0)
            self._users[v] += 1
        if i in self._kept:
            self._total -= self._unused.pop(self._kept.pop(i), 0)
        return missing

    def stop(self, i: int, time: int, tokens: int) -> None:
        """Make a request inactive, with its number of private tokens; its nodes follow."""
        tokens += sum(self._forest.weights[v] for v in self._forest.paths[i])
        self.leave(i, (time, i), tokens, tokens)

    def leave(
        self, i: int, when: tuple[int, int], tokens: int, computed: int, *, pauses: bool = False
    ) -> int:
        """Make a request inactive; return the tokens that no one uses any more.

        Parameters
        ----------
        i, when
            The request, and a pair that ascends from call to call.
        tokens
            Its tokens, of its nodes first.
        computed
            Those of them that can be found again, in whole blocks.
        pauses
            Whether the request goes on later, and finds its private tokens.
        """
        forest, path, unit = self._forest, self._forest.paths[i], self._unit
        computed = computed // unit * unit
        # The last tokens leave first: those that cannot be found, private ones, then nodes.
        place = (*when, -len(self._users) - 1)
        freed = self._put((*when, place[2] - 1), -(-tokens // unit) * unit - computed)
        left = computed
        for v in path:
            self._users[v] -= 1
            self._left[v] = max(self._left[v], when)
            if self._users[v]:
                self.excess -= forest.weights[v]
            else:
                freed += self._put((*self._left[v], -v), min(left, forest.weights[v]))
            left = max(left - forest.weights[v], 0)
        if pauses:
            self._kept[i] = place
        return freed + self._put(place, left)

    def _put(self, place: _Place, tokens: int) -> int:
        """Let tokens be unused from now on; return their number."""
        if tokens:
            self._unused[place] = tokens
            self._total += tokens
            heapq.heappush(self._line, place)
        return tokens

    def make_room(self, held: int) -> None:
        """Drop tokens that do not fit next to those of active requests."""
        while self._unused and (over := held + self._total - self._memory) > 0:
            tokens = self._unused.get(place := self._line[0], 0)
            if place[2] > -len(self._users):
                over = -(-over // self._block) * self._block
            if tokens > over:
                self._unused[place] = tokens - over
            else:
                heapq.heappop(self._line)
                self._unused.pop(place, None)
            self._total -= min(tokens, over)
