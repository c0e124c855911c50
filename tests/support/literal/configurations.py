"""Configurations of states, their cuts and their bound, by enumeration.

Written from the statements of docs/theory alone, slow on purpose.  A state is a pair
``(h, r)``: the tokens an active request holds now, and the rounds it still has to go (0 in its
last active round).  A configuration is a multiset of states, kept as a sorted tuple.  Problems are
a number of tokens and ``(arrival, prompt, output)`` triples, as in `oracle`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product

import brute_force
from brute_force import Starts, Triple

State = tuple[int, int]
Configuration = tuple[State, ...]
Weights = Mapping[State, Fraction | int]
"""What each state weighs; a state that is not named weighs nothing."""
Copies = Mapping[State, int]
"""How many may be in each state together; a state that is not named: none."""
Prices = Mapping[int, Weights]
"""Weights of the states at each time; a time that is not named is free."""
Windows = Sequence[Collection[int]]
"""The start rounds that each request has left."""


# States and which of them can stand together.


def all_states(memory: int) -> list[State]:
    """Return every state of a request that fits alone."""
    return [(h, r) for h in range(1, memory + 1) for r in range(memory - h + 1)]


def held_after(states: Iterable[State], rounds: int) -> int:
    """Return the tokens that the members still hold some rounds from now."""
    return sum(h + rounds for h, r in states if r >= rounds)


def feasible(states: Collection[State], memory: int) -> bool:
    """Whether memory holds at the completion of each member."""
    return all(held_after(states, r) <= memory for _, r in states)


def state_of(request: Triple, start: int, time: int) -> State | None:
    """Return the state of a request at ``time``, None when it is not active then."""
    _, prompt, output = request
    generated = time - start
    return (prompt + generated, output - generated) if 1 <= generated <= output else None


def configurations(
    memory: int, states: Iterable[State] | None = None, copies: Copies | None = None
) -> Iterator[Configuration]:
    """Yield every feasible multiset of the states, the empty one as well.

    Multisets grow one member at a time.  One that is not feasible is not grown further:
    members only add tokens, so what contains it is not feasible either.
    """
    chosen = sorted(set(all_states(memory) if states is None else states))

    def grow(multiset: Configuration, first: int) -> Iterator[Configuration]:
        yield multiset
        for place in range(first, len(chosen)):
            state = chosen[place]
            if copies is not None and multiset.count(state) >= copies.get(state, 0):
                continue
            if feasible((*multiset, state), memory):
                yield from grow((*multiset, state), place)

    return grow((), 0)


def weight(configuration: Iterable[State], weights: Weights) -> Fraction:
    """Return what the members weigh together."""
    return sum((Fraction(weights.get(state, 0)) for state in configuration), Fraction())


# How many requests can be in a state together.


def copies_at(requests: Sequence[Triple], time: int | None = None) -> Counter[State]:
    """Count the requests that can be in each state, at ``time`` or (None) at any time."""
    found: Counter[State] = Counter()
    for arrival, prompt, output in requests:
        for generated in range(1, output + 1):
            if time is None or arrival + generated <= time:
                found[prompt + generated, output - generated] += 1
    return found


def copies_in(requests: Sequence[Triple], windows: Windows, time: int) -> Counter[State]:
    """Count the requests that some start of their windows puts into each state at ``time``."""
    found: Counter[State] = Counter()
    for request, window in zip(requests, windows, strict=True):
        states = {state_of(request, start, time) for start in window}
        found.update(state for state in states if state is not None)
    return found


def copies_around(
    requests: Sequence[Triple], windows: Windows, times: Sequence[int]
) -> list[Copies]:
    """Return the copies of each time: the most at any time strictly between its neighbours."""
    found: list[Copies] = []
    for before, after in zip([0, *times], [*times[1:], times[-1] + 1], strict=False):
        near = [copies_in(requests, windows, time) for time in range(before + 1, after)]
        found.append({state: max(c[state] for c in near) for state in set().union(*near)})
    return found


def between(times: Sequence[int], values: Sequence[int], time: int) -> int:
    """Return a value at a time, rounded down, from those at neighbouring times; 0 outside."""
    if time in times:
        return values[times.index(time)]
    if not times[0] < time < times[-1]:
        return 0
    x = max(x for x, known in enumerate(times) if known < time)
    (a, b), (low, high) = times[x : x + 2], values[x : x + 2]
    return ((b - time) * low + (time - a) * high) // (b - a)


# The largest weight of a configuration.


def largest(weights: Weights, memory: int, copies: Copies | None = None) -> Fraction:
    """Return the most that a feasible configuration weighs, over all of them.

    States that weigh nothing or less are left out: dropping members keeps a configuration
    feasible, so some heaviest one has none of them.
    """
    useful = [state for state, value in weights.items() if value > 0]
    return max(weight(each, weights) for each in configurations(memory, useful, copies))


# Staircases.


def staircase(memory: int, thresholds: Sequence[int]) -> set[State]:
    """Return the states of a staircase, of which as many as there are thresholds stand together.

    ``thresholds`` ascend.
    """
    assert list(thresholds) == sorted(thresholds)
    chosen = set()
    for h, r in all_states(memory):
        i = sum(threshold <= h for threshold in thresholds)
        if i >= 1 and h + (i + 1) * r >= memory + 1 - sum(thresholds[:i]):
            chosen.add((h, r))
    return chosen


# Costs of starts, and schedules.


def cost(request: Triple, start: int, prices: Prices) -> Fraction:
    """Return latency plus the prices of the states that the request passes."""
    arrival, _, output = request
    paid = Fraction(start + output - arrival)
    for time in range(start + 1, start + output + 1):
        state = state_of(request, start, time)
        assert state is not None
        paid += Fraction(prices.get(time, {}).get(state, 0))
    return paid


def least_costs(requests: Sequence[Triple], prices: Prices, windows: Windows) -> list[Fraction]:
    """Return the cheapest start of each request in its window."""
    return [
        min(cost(request, start, prices) for start in window)
        for request, window in zip(requests, windows, strict=True)
    ]


def schedules(
    memory: int, requests: Sequence[Triple], windows: Windows
) -> Iterator[tuple[Starts, int]]:
    """Yield every feasible schedule with starts in ``windows``, and its total latency."""
    for starts in product(*windows):
        if brute_force.feasible(memory, requests, starts):
            latencies = [k + o - a for k, (a, _, o) in zip(starts, requests, strict=True)]
            yield starts, sum(latencies)
