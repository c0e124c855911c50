"""Prefixes that prompts share: a forest of blocks, without those of one user.

Only blocks on the paths of two requests or more matter for memory: a block of a single request is
like its private tokens.  Blocks in a row that the same requests use are one node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from kvopt.errors import InvalidInput, shown

if TYPE_CHECKING:
    from networkx import DiGraph

Block = int | str
"""The id of a block: equal ids have equal tokens after equal tokens."""


@dataclass(frozen=True)
class Forest:
    """Shared blocks and private tokens of requests.

    Parameters
    ----------
    weights
        Tokens of each node.
    paths
        For each request its nodes, from a root.
    private
        Prompt tokens of each request that are on none of its nodes.

    Examples
    --------
    >>> forest_of([[1, 2, 3], [1, 2, 4], [5]], [40, 50, 20], 16)
    Forest(weights=(32,), paths=((0,), (0,), ()), private=(8, 18, 20))
    """

    weights: tuple[int, ...]
    paths: tuple[tuple[int, ...], ...]
    private: tuple[int, ...]

    @cached_property
    def users(self) -> tuple[tuple[int, ...], ...]:
        """For each node the requests that have it on their path."""
        rows: list[list[int]] = [[] for _ in self.weights]
        for i, path in enumerate(self.paths):
            for node in path:
                rows[node].append(i)
        return tuple(map(tuple, rows))

    def of(self, members: Sequence[int]) -> Forest:
        """Return the forest of some of the requests, with all nodes."""
        paths = tuple(self.paths[i] for i in members)
        return replace(self, paths=paths, private=tuple(self.private[i] for i in members))

    def covered(self, i: int, tokens: int) -> tuple[int, ...]:
        """Return the nodes of a request that its first so many tokens hold fully."""
        count, path = 0, self.paths[i]
        while count < len(path) and (tokens := tokens - self.weights[path[count]]) >= 0:
            count += 1
        return path[:count]

    def tokens(self, active: Iterable[int]) -> int:
        """Return the tokens of the nodes that some of these requests use, each counted once."""
        return sum(self.weights[v] for v in {v for i in active for v in self.paths[i]})

    def graph(self) -> DiGraph:
        """Return the nodes as a graph, as `kvopt.Instance.prefix_forest` describes it."""
        import networkx as nx  # takes as long as all of kvopt's own modules

        graph = nx.DiGraph()
        for node, (tokens, users) in enumerate(zip(self.weights, self.users, strict=True)):
            graph.add_node(node, tokens=tokens, users=users)
        for path in self.paths:
            nx.add_path(graph, path)
        return graph


def forest_of(
    paths: Sequence[Sequence[Block]], prompts: Sequence[int], block_tokens: int
) -> Forest:
    """Return the forest of valid paths.

    Users of a block are among those of the block before it, so equal numbers mean equal users.
    """
    uses = Counter(block for path in paths for block in path)
    nodes: dict[Block, int] = {}
    weights, merged = list[int](), list[tuple[int, ...]]()
    for path in paths:
        merged_path, last = list[int](), None
        for block in path:
            if uses[block] < 2:
                break
            if block not in nodes and last is not None and uses[last] == uses[block]:
                nodes[block] = nodes[last]
                weights[nodes[last]] += block_tokens
            elif block not in nodes:
                nodes[block] = len(weights)
                weights.append(block_tokens)
            if not merged_path or merged_path[-1] != nodes[block]:
                merged_path.append(nodes[block])
            last = block
        merged.append(tuple(merged_path))
    private = (
        prompt - sum(weights[v] for v in path) for prompt, path in zip(prompts, merged, strict=True)
    )
    return Forest(tuple(weights), tuple(merged), tuple(private))


def checked_prefix(prefix: object) -> tuple[Block, ...]:
    """Return the ids of blocks as a tuple, else raise."""
    if type(prefix) is tuple and all(type(block) in (int, str) for block in prefix):
        return prefix
    if not isinstance(prefix, list | tuple):
        raise InvalidInput(f"must be a list of block ids, got {shown(prefix)}", field="prefix")
    for block in prefix:
        if isinstance(block, bool) or not isinstance(block, int | str):
            reason = f"must hold integers or strings, got {shown(block)}"
            raise InvalidInput(reason, field="prefix")
    return tuple(prefix)


def check_forest(paths: Iterable[Sequence[Block]], names: Sequence[str | None]) -> None:
    """Refuse a block that follows two others: equal tokens after unequal ones are not equal."""
    firsts: dict[Block, tuple[Block | None, int]] = {}
    for i, path in enumerate(paths):
        for block, before in zip(path, (None, *path), strict=False):
            first, where = firsts.setdefault(block, (before, i))
            if first != before:
                ways = [
                    "is the first one" if parent is None else f"follows {parent!r}"
                    for parent in (before, first)
                ]
                reason = f"block {block!r} {ways[0]}, of request {names[where]!r} it {ways[1]}"
                raise InvalidInput(reason, field="prefix", request=repr(names[i]))


def numbered(paths: Iterable[Sequence[Block]]) -> list[list[int]]:
    """Return paths with blocks numbered by appearance, for a hash: ids are labels."""
    numbers: dict[Block, int] = {}
    return [[numbers.setdefault(block, len(numbers)) for block in path] for path in paths]
