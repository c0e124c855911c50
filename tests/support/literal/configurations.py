"""Configurations of states, their cuts and their bound, by enumeration.

Written from the statements of docs/configurations.md alone, slow on purpose.  A state is a pair
``(h, r)``: the tokens an active request holds now, and the rounds it still has to go (0 in its
last active round).  A configuration is a multiset of states, kept as a sorted tuple.  Problems are
a number of tokens and ``(arrival, prompt, output)`` triples, as in `oracle`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from operator import le

from oracle import Starts, Triple, last_time, tel
from oracle import feasible as stands

State = tuple[int, int]
Configuration = tuple[State, ...]
Weights = Mapping[State, Fraction | int]
"""What each state weighs; a state that is not named weighs nothing."""
Copies = Mapping[State, int]
"""How many may be in each state together; a state that is not named: none."""
Item = tuple[int, int]
"""A request, by its position, and the tokens it has generated."""
ItemWeights = Mapping[Item, Fraction | int]
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


def configuration_at(requests: Sequence[Triple], starts: Sequence[int], time: int) -> Configuration:
    """Return the states of all that a schedule has active at ``time``."""
    found = [state_of(r, k, time) for r, k in zip(requests, starts, strict=True)]
    return tuple(sorted(state for state in found if state is not None))


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


# The largest weight of a configuration.


def largest(weights: Weights, memory: int, copies: Copies | None = None) -> Fraction:
    """Return the most that a feasible configuration weighs, over all of them.

    States that weigh nothing or less are left out: dropping members keeps a configuration
    feasible, so some heaviest one has none of them.
    """
    useful = [state for state, value in weights.items() if value > 0]
    return max(weight(each, weights) for each in configurations(memory, useful, copies))


def largest_by_program(weights: Weights, memory: int, copies: Copies | None = None) -> Fraction:
    """Return the same by the dynamic program over (count, sum of h), states by r descending."""
    best: dict[tuple[int, int], Fraction] = {(0, 0): Fraction()}
    for h, r in sorted(weights, key=lambda state: -state[1]):
        limit = memory if copies is None else copies.get((h, r), 0)
        value = Fraction(weights[h, r])
        for (count, held), old in list(best.items()):
            for more in range(1, limit + 1):
                if held + more * h + (count + more) * r > memory:
                    break
                state = count + more, held + more * h
                best[state] = max(best.get(state, old), old + more * value)
    return max(best.values())


# Each request once: weights of items (position of the request, tokens generated).


def largest_active(weights: ItemWeights, memory: int, requests: Sequence[Triple]) -> Fraction:
    """Return the most that a feasible choice of different requests weighs, over all of them."""
    options: list[list[Item | None]] = [[None] for _ in requests]
    for i, generated in weights:
        options[i].append((i, generated))
    best = Fraction()
    for choice in product(*options):
        items = [item for item in choice if item is not None]
        if feasible([state_of_item(requests, item) for item in items], memory):
            best = max(best, sum((Fraction(weights[item]) for item in items), Fraction()))
    return best


def largest_with_marks(
    weights: ItemWeights, memory: int, requests: Sequence[Triple], marked: Collection[int]
) -> Fraction:
    """Return the same by the program that takes only ``marked`` requests once for certain."""
    best: dict[tuple[int, int, frozenset[int]], Fraction] = {(0, 0, frozenset()): Fraction()}
    for item in sorted(weights, key=lambda item: -state_of_item(requests, item)[1]):
        h, r = state_of_item(requests, item)
        for (count, held, used), old in list(best.items()):
            if item[0] not in used and held + h + (count + 1) * r <= memory:
                taken = used | {item[0]} if item[0] in marked else used
                state = count + 1, held + h, taken
                best[state] = max(best.get(state, old), old + weights[item])
    return max(best.values())


def state_of_item(requests: Sequence[Triple], item: Item) -> State:
    """Return the state of a request that has generated so many tokens."""
    state = state_of(requests[item[0]], 0, item[1])
    assert state is not None
    return state


# Cuts.


def extension(weights: Weights, memory: int) -> dict[State, Fraction]:
    """Return F(h, r) = max over h' <= h, r' <= r, of weights that are not negative."""
    extended = dict.fromkeys(all_states(memory), Fraction())
    for (h, r), (low, short) in product(extended, weights):
        if low <= h and short <= r:
            extended[h, r] = max(extended[h, r], Fraction(weights[low, short]))
    return extended


def packing(weights: Weights, memory: int) -> dict[State, Fraction]:
    """Return the most that a configuration below each state weighs.

    Below (h, r) means: all members are done when it is, and never hold more than it does.
    """
    packed = {}
    for h, r in all_states(memory):
        shorter = {state: value for state, value in weights.items() if state[1] <= r and value > 0}
        packed[h, r] = max(
            weight(each, weights)
            for each in configurations(memory, shorter)
            if all(held_after(each, x) <= h + x for x in range(r + 1))
        )
    return packed


def thresholds_reached(thresholds: Sequence[int], held: int) -> int:
    """Return i(h), the number of thresholds that are at most ``held``."""
    return sum(threshold <= held for threshold in thresholds)


def staircase(memory: int, thresholds: Sequence[int]) -> tuple[set[State], int]:
    """Return the states of a staircase and how many of them can stand together.

    ``thresholds`` ascend; there are q - 1 of them.
    """
    assert list(thresholds) == sorted(thresholds)
    chosen = set()
    for h, r in all_states(memory):
        i = thresholds_reached(thresholds, h)
        if i >= 1 and h + (i + 1) * r >= memory + 1 - sum(thresholds[:i]):
            chosen.add((h, r))
    return chosen, len(thresholds)


def lifted_staircase(memory: int, thresholds: Sequence[int]) -> tuple[dict[State, int], int]:
    """Return the weights of a lifted staircase and the most that can stand together."""
    assert list(thresholds) == sorted(thresholds)
    weights = {}
    for h, r in all_states(memory):
        for factor in range(1, len(thresholds) + 1):
            i = sum(factor * threshold <= h - (factor - 1) * r for threshold in thresholds)
            others = i + 1 - factor
            if factor <= i and h + r + others * r + sum(thresholds[:others]) >= memory + 1:
                weights[h, r] = factor
    return weights, len(thresholds)


def most_violated_staircase(
    mass: Weights, memory: int, most_thresholds: int
) -> tuple[Fraction, tuple[int, ...]]:
    """Return the largest mass over the right-hand side and thresholds that have it.

    Every ascending list of at most ``most_thresholds`` numbers from 1 to memory is tried;
    the shortest and then the lexicographically first stays.
    """
    best: tuple[Fraction, tuple[int, ...]] | None = None
    for count in range(1, most_thresholds + 1):
        for thresholds in combinations_with_replacement(range(1, memory + 1), count):
            states, most = staircase(memory, thresholds)
            violation = weight(states, mass) - most
            if best is None or violation > best[0]:
                best = violation, thresholds
    assert best is not None
    return best


# The bound.


def last_priced(prices: Prices) -> int:
    """Return the last time at which some state costs something, 0 when none does."""
    return max((time for time, weights in prices.items() if any(weights.values())), default=0)


def scanned(request: Triple, last: int) -> range:
    """Return the start rounds a .. max(a, T) that have to be looked at."""
    return range(request[0], max(request[0], last) + 1)


def windows_of(requests: Sequence[Triple], prices: Prices) -> list[range]:
    """Return `scanned` for each request."""
    return [scanned(request, last_priced(prices)) for request in requests]


def cost(request: Triple, start: int, prices: Prices) -> Fraction:
    """Return latency plus the prices of the states that the request passes."""
    arrival, _, output = request
    paid = Fraction(start + output - arrival)
    for time in range(start + 1, start + output + 1):
        state = state_of(request, start, time)
        assert state is not None
        paid += Fraction(prices.get(time, {}).get(state, 0))
    return paid


def least_costs(
    requests: Sequence[Triple], prices: Prices, windows: Windows | None = None
) -> list[Fraction]:
    """Return the cheapest start of each request, over a .. max(a, T) or over its window."""
    looked_at = windows_of(requests, prices) if windows is None else windows
    return [
        min(cost(request, start, prices) for start in window)
        for request, window in zip(requests, looked_at, strict=True)
    ]


def right_sides(
    memory: int, prices: Prices, copies: Mapping[int, Copies] | None = None
) -> dict[int, Fraction]:
    """Return R_t for each priced time, ``copies`` holding limits for each time."""
    return {
        time: largest(weights, memory, None if copies is None else copies[time])
        for time, weights in prices.items()
    }


def configuration_bound(
    memory: int,
    requests: Sequence[Triple],
    prices: Prices,
    *,
    copies: Mapping[int, Copies] | None = None,
    windows: Windows | None = None,
) -> Fraction:
    """Return sum_i min_k cost_i(k) - sum_t R_t, not rounded.

    With ``windows`` it speaks only of schedules that start inside them.  Those have to be
    finite and not empty; only what lies in them is looked at.
    """
    least = least_costs(requests, prices, windows)
    return sum(least, Fraction()) - sum(right_sides(memory, prices, copies).values(), Fraction())


def reduced_cost(request: Triple, start: int, prices: Prices, least: Fraction) -> Fraction:
    """Return by how much a start costs more than the cheapest one."""
    return cost(request, start, prices) - least


def surviving(
    requests: Sequence[Triple],
    prices: Prices,
    bound: Fraction | int,
    upper: int,
    windows: Windows,
    *,
    inside: bool = False,
) -> list[list[int]]:
    """Return the starts of ``windows`` that are not removed: rc <= (U - 1) - bound.

    A reduced cost counts from the request's minimum over all starts, or with ``inside`` over
    its window: the same minimum that ``bound`` was made with.
    """
    least = least_costs(requests, prices, windows if inside else None)
    return [
        [k for k in window if reduced_cost(request, k, prices, cheapest) <= upper - 1 - bound]
        for request, window, cheapest in zip(requests, windows, least, strict=True)
    ]


# Schedules.


def schedules(
    memory: int, requests: Sequence[Triple], windows: Windows
) -> Iterator[tuple[Starts, int]]:
    """Yield every feasible schedule with starts in ``windows``, and its total latency."""
    for starts in product(*windows):
        if stands(memory, requests, starts):
            latencies = [k + o - a for k, (a, _, o) in zip(starts, requests, strict=True)]
            yield starts, sum(latencies)


def search_forward(
    memory: int, requests: Sequence[Triple], prices: Prices, upper: int, *, dominance: bool = True
) -> Starts | None:
    """Return a schedule of total latency below ``upper``, None when there is none.

    Starts are decided round by round.  A partial schedule is dropped when its reduced costs,
    the least later ones of the requests that wait, and its slacks so far exceed
    ``upper - 1 - bound``; or when one that is kept has started the same requests with no
    larger sum of starts and holds no more at any later time.
    """
    bound = configuration_bound(memory, requests, prices)
    right, last = right_sides(memory, prices), last_time(requests)
    kept: list[tuple[int | None, ...]] = [(None,) * len(requests)]
    for now in range(last):
        grown = [more for partial in kept for more in started_at(memory, requests, partial, now)]
        least = [least_loss(requests, more, now + 1, prices, right) for more in grown]
        kept = [m for m, loss in zip(grown, least, strict=True) if bound + loss <= upper - 1]
        if dominance:
            kept = undominated(requests, kept, now + 1)
    begun = [tuple(k for k in partial if k is not None) for partial in kept]
    complete = [starts for starts in begun if len(starts) == len(requests)]
    better = [starts for starts in complete if tel(requests, starts) < upper]
    return min(better, key=sum, default=None)


def started_at(
    memory: int, requests: Sequence[Triple], partial: Sequence[int | None], now: int
) -> Iterator[tuple[int | None, ...]]:
    """Yield every way to start some of the waiting requests at ``now``."""
    options = [
        [start] if start is not None else [None, now] if request[0] <= now else [None]
        for request, start in zip(requests, partial, strict=True)
    ]
    for choice in product(*options):
        if feasible(partial_configuration(requests, choice, now + 1), memory):
            yield choice


def partial_configuration(
    requests: Sequence[Triple], partial: Sequence[int | None], time: int
) -> Configuration:
    """Return what is active at ``time`` of the requests that have a start."""
    begun = [(r, k) for r, k in zip(requests, partial, strict=True) if k is not None]
    return configuration_at([r for r, _ in begun], [k for _, k in begun], time)


def least_loss(
    requests: Sequence[Triple],
    partial: Sequence[int | None],
    decided: int,
    prices: Prices,
    right: Mapping[int, Fraction],
) -> Fraction:
    """Return what every completion loses, all starts before ``decided`` being known."""
    least, latest = least_costs(requests, prices), max(decided, last_priced(prices))
    loss = Fraction()
    for request, start, cheapest in zip(requests, partial, least, strict=True):
        later = range(max(decided, request[0]), max(latest, request[0]) + 1)
        open_starts = later if start is None else [start]
        loss += min(reduced_cost(request, k, prices, cheapest) for k in open_starts)
    for time, weights in prices.items():
        if time <= decided:
            loss += right[time] - weight(partial_configuration(requests, partial, time), weights)
    return loss


def undominated(
    requests: Sequence[Triple], partials: Iterable[tuple[int | None, ...]], decided: int
) -> list[tuple[int | None, ...]]:
    """Keep one after the other, by sum of starts, what none of the kept dominates."""
    kept: dict[tuple[bool, ...], list[tuple[list[int], tuple[int | None, ...]]]] = {}
    for partial in sorted(partials, key=lambda each: sum(k or 0 for k in each)):
        times = range(decided + 1, last_time(requests) + 1)
        loads = [sum(h for h, _ in partial_configuration(requests, partial, t)) for t in times]
        rivals = kept.setdefault(tuple(k is not None for k in partial), [])
        if not any(all(map(le, rival, loads)) for rival, _ in rivals):
            rivals.append((loads, partial))
    return [partial for rivals in kept.values() for _, partial in rivals]
