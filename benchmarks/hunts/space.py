"""Search space of a hunt: instances of few requests, enumerated or changed one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from math import comb
from random import Random

from kvopt import Policy

Triple = tuple[int, int, int]
Case = tuple[int, tuple[Triple, ...]]
"""Memory, and ``(arrival, prompt, output)`` of each request."""

_BLIND = {"mc-sf", "mc-sf-total", "svf", "h-sf"}
"""Policies that ask for the position of a request only where two are equal in all else."""


@dataclass(frozen=True)
class Space:
    """The instances that a hunt may try.

    Parameters
    ----------
    memory
        M, at most.
    most
        Requests, at most.
    last_arrival
        Arrivals are 0 .. this.
    equal_prompts
        Whether all requests of an instance have the same prompt.
    ordered
        Whether the order of the requests matters to a policy.
    """

    memory: int
    most: int
    last_arrival: int = 0
    equal_prompts: bool = False
    ordered: bool = False

    def size(self, count: int) -> int:
        """Return how many instances have so many requests."""
        kinds = [len(pool) for _, pool in self._pools()]
        return sum(k**count if self.ordered else comb(k + count - 1, count) for k in kinds)

    def every(self, count: int) -> Iterator[Case]:
        """Yield every instance with so many requests; of equal ones up to order, one."""
        for memory, pool in self._pools():
            unordered = combinations_with_replacement(pool, count)
            for requests in product(pool, repeat=count) if self.ordered else unordered:
                yield memory, requests

    def drawn(self, rng: Random) -> Case:
        """Draw an instance with the largest number of requests."""
        prompt = rng.randrange(self.memory) if self.equal_prompts else None
        return self.memory, tuple(self._request(rng, prompt) for _ in range(self.most))

    def neighbour(self, case: Case, rng: Random) -> Case:
        """Return an instance that differs in one thing."""
        memory, requests = case[0], list(case[1])
        i = rng.randrange(len(requests))
        prompt = requests[0][1] if self.equal_prompts else None
        match rng.randrange(7):
            case 0 if len(requests) > 1:
                del requests[i]
            case 1 if len(requests) < self.most:
                requests.insert(i, rng.choice(requests))
            case 2 if len(requests) < self.most:
                requests.insert(i, self._request(rng, prompt))
            case 3:
                requests[i] = self._request(rng, prompt)
            case 4:
                memory += rng.choice((-1, 1))
            case 5 if self.equal_prompts:
                step = rng.choice((-1, 1))
                requests = [(a, s + step, o) for a, s, o in requests]
            case _:
                column = rng.choice((0, 2) if self.equal_prompts else (0, 1, 2))
                requests[i] = changed(requests[i], column, rng.choice((-2, -1, 1, 2)))
        found = (memory, tuple(requests))
        return found if self.holds(found) else case

    def holds(self, case: Case) -> bool:
        """Whether an instance is valid and inside."""
        memory, requests = case
        prompts = {prompt for _, prompt, _ in requests}
        return (
            1 <= memory <= self.memory
            and 1 <= len(requests) <= self.most
            and not (self.equal_prompts and len(prompts) > 1)
            and all(
                0 <= a <= self.last_arrival and s >= 0 and o >= 1 and s + o <= memory
                for a, s, o in requests
            )
        )

    def _pools(self) -> Iterator[tuple[int, list[Triple]]]:
        """Yield each memory with the requests to choose from: one pool, or one for each prompt."""
        arrivals = range(self.last_arrival + 1)
        for memory in range(1, self.memory + 1):
            every = [(prompt,) for prompt in range(memory)]
            for prompts in every if self.equal_prompts else [range(memory)]:
                shapes = [(s, o) for s in prompts for o in range(1, memory - s + 1)]
                yield memory, [(arrival, *shape) for arrival in arrivals for shape in shapes]

    def _request(self, rng: Random, prompt: int | None) -> Triple:
        s = rng.randrange(self.memory) if prompt is None else prompt
        return rng.randint(0, self.last_arrival), s, rng.randint(1, self.memory - s)


def changed(request: Triple, column: int, by: int) -> Triple:
    """Return a request with one of its numbers changed."""
    numbers = list(request)
    numbers[column] += by
    return numbers[0], numbers[1], numbers[2]


def needs_order(policies: Sequence[Policy]) -> bool:
    """Whether the order of requests may matter to one of the policies."""
    return any(policy.name not in _BLIND or policy.pred == "noise" for policy in policies)
