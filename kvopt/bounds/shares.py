"""Shared prefixes: shares of a block, and the plain instance that they make.

A node of the forest that is used at some time is held once.  If at most K of its users can be
active together, its w tokens are at least w / K for each of those that are.  So what active
requests hold is at least the sum of u + g + (sum of w / K on the path) over them, with u private
tokens and g of output; as a sum of integers it is also at least the sum with floors of the whole
``u + sum w / K``.  Every schedule with sharing is therefore one of the plain instance with these
prompts: each of its bounds holds, whatever proves it.

What is on all paths comes first: while anything is active it is held once, so it leaves memory and
prompts without any loss (`Instance.without_common_prefix`).

In seconds a node may be in the cache, so a request surely processes only what is its own.  But each
node is computed once at least, no later than the first round of any user, and not before the
arrival of the first of them: so that one may count it as part of its prompt, later ones may not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, takewhile
from math import floor
from typing import NamedTuple

from kvopt.problem.instance import Instance


def most_together(instance: Instance) -> list[int]:
    """Return for each node how many of its users can be active together on a worker.

    These hold the path to the node once, and each of them its private tokens and one more.
    """
    forest, most = instance.forest, list[int]()
    to_node = list[int]()
    for weight, parent, users in zip(forest.weights, forest.parents, forest.users, strict=True):
        to_node.append(weight + (to_node[parent] if parent >= 0 else 0))
        held = accumulate(sorted(forest.private[i] + 1 for i in users), initial=to_node[-1])
        fit = sum(1 for _ in takewhile(lambda tokens: tokens <= instance.memory, held)) - 1
        most.append(max(1, min(fit, instance.max_active or fit)))
    return most


def shared_out(instance: Instance) -> Instance:
    """Return an instance without prefixes whose bounds hold for the sharing of this one.

    Where all share one prefix and nothing else, its schedules are the same.

    Examples
    --------
    >>> from kvopt import Request
    >>> both = [Request(0, 6, 2, prefix=("a",)), Request(0, 5, 1, prefix=("a",))]
    >>> instance = Instance(9, [*both, Request(0, 1, 1)], block_tokens=4)
    >>> [request.prompt for request in shared_out(instance)]
    [4, 3, 1]
    """
    instance = instance.without_common_prefix()
    if "prefix" not in instance.extras:
        return instance
    instance = instance.in_tokens()
    requests = [
        replace(request, prompt=prompt, prefix=())
        for request, prompt in zip(instance, _prompts(instance), strict=True)
    ]
    return replace(instance, requests=requests)


def _prompts(instance: Instance) -> Iterator[int]:
    forest = instance.forest
    shares = list(map(Fraction, forest.weights, most_together(instance)))
    for private, path in zip(forest.private, forest.paths, strict=True):
        yield private + floor(sum((shares[v] for v in path), Fraction()))


class Processed(NamedTuple):
    """Prompt tokens that are surely processed in seconds.

    Parameters
    ----------
    own
        Of each request, by itself.
    nodes
        Tokens of the nodes whose first user to arrive each request is, which somebody processes
        after its arrival and by its first round.
    """

    own: Sequence[int]
    nodes: Sequence[Sequence[int]]


def processed(instance: Instance, arrivals: Sequence[int]) -> Processed:
    """Return what requests surely process that arrive at these times."""
    forest, nodes = instance.forest, list[list[int]]([] for _ in instance)
    for weight, users in zip(forest.weights, forest.users, strict=True):
        nodes[min(users, key=arrivals.__getitem__)].append(weight)
    return Processed(forest.private, nodes)
