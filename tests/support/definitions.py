"""Define each fast evaluator of ``kvopt.verify`` by literal loops, which share no code with it."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import product, repeat
from math import ceil
from typing import Any

import pytest
from literal import configurations as literal
from price_oracle import bound_of

from kvopt.verify import check_configurations as configurations
from kvopt.verify import check_proofs as proofs
from kvopt.verify import check_seconds, check_slo
from kvopt.verify import check_volume as volume
from kvopt.verify.certified_problem import Clock, Problem, Request, held_together
from kvopt.verify.check_prices import NO_PREFIX, Cell, levels_of
from kvopt.verify.step_budget import Invalid, Prepared, Work

Proof = dict[str, Any]
Evaluator = Callable[[Problem, Proof, Work], Prepared]


def prices(problem: Problem, proof: dict[str, Any]) -> int:
    """Return the bound of prices: least costs of all requests less the price of all capacities."""
    memory, private, most = held_together(problem)
    prefixes = next((r for r in proof["resources"] if r["name"] == "prefixes"), NO_PREFIX)
    levels = levels_of(problem, prefixes, most)

    def shared(i: int, time: int) -> int:
        x = bisect_left(prefixes["times"], time) - 1
        return levels[i][x] if 0 <= x < len(levels[i]) else 0

    rows = [(r.arrival, own, r.output) for r, own in zip(problem.requests, private, strict=True)]
    return ceil(
        bound_of(
            memory, rows, proof, block=problem.block, workers=problem.used, pauses=problem.pauses,
            weights=problem.weights or (), shared=shared, unit=prefixes["denominator"],
        )
    )  # fmt: skip


def fluid(requests: list[Request], volumes: list[int], rate: int) -> list[int]:
    """Return the completions of the fluid: drop by drop, the least remaining need first."""
    left, time = list(volumes), 0
    ends = [request.arrival for request, volume in zip(requests, left, strict=True) if volume == 0]
    while any(left):
        time += 1
        for _ in range(rate):
            there = [i for i, r in enumerate(requests) if left[i] and r.arrival < time]
            if there:
                first = min(there, key=left.__getitem__)
                left[first] -= 1
                ends += [time] * (left[first] == 0)
    return sorted(ends)


def passed(memory: int, thresholds: list[int], request: Request) -> int:
    """Count the states (h, r) of a request, i >= 1 thresholds up to h, in a staircase."""
    count = 0
    for h in range(request.prompt + 1, request.prompt + request.output + 1):
        below = [threshold for threshold in thresholds if threshold <= h]
        r = request.prompt + request.output - h
        count += bool(below) and h + (len(below) + 1) * r + sum(below) > memory
    return count


def costs(stage: Any, starts: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the costs of starts: latency, and the price of the state at each time."""
    found: list[list[int]] = []
    for (arrival, prompt, output), own in zip(stage.requests, starts, strict=True):
        found.append([])
        for k in own:
            times = range(k + 1, min(k + output, stage.last) + 1)
            paid = sum(stage.price(t, prompt + output, k + output - t) for t in times)
            found[-1].append(stage.scale * (k + output - arrival) + paid)
    return found


def heaviest(stage: Any, starts: Sequence[Sequence[int]]) -> list[int]:
    """Return R at each knot: over all states, within their copies, that fit together."""
    around = literal.copies_around(stage.requests, starts, stage.times)
    weights = (
        {state: stage.price(time, sum(state), state[1]) for state in copies}
        for time, copies in zip(stage.times, around, strict=True)
    )
    largest = map(literal.largest, weights, repeat(stage.memory), around)
    return [int(stage.used * weight) for weight in largest]


def search(stage: Any, target: int) -> int:
    """Try all schedules below the target; return their number."""
    requests = stage.requests
    spare = target - 1 - sum(request.output for request in requests)
    ranges = [range(r.arrival, r.arrival + spare + 1) for r in requests]
    tried = 0
    for starts in product(*ranges):
        tried += 1
        pairs = list(zip(requests, starts, strict=True))
        total = sum(k + r.output - r.arrival for r, k in pairs)
        held: dict[int, int] = defaultdict(int)
        for request, k in pairs if total < target else ():
            for j in range(1, request.output + 1):
                held[k + j] += request.prompt + j
        if total < target and max(held.values(), default=0) <= stage.memory:
            raise Invalid(f"lower: a schedule has a total latency of {total:,}")
    return tried


def part_of(
    memory: int,
    request: Request,
    clock: Clock,
    chosen: list[int],
    prompt: int,
    nodes: Sequence[int] = (),
    fixed: tuple[int, int] | None = None,
) -> tuple[int, int, int]:
    """Return M X, 2 M X e and E of a request, from its last round to its first."""
    none, takes, delays, after = clock.line(0, chosen), Fraction(0), Fraction(0), 0
    by_memory, by_slot = fixed or (none, 0)
    for held in range(request.prompt + request.output, request.prompt, -1):
        fresh = prompt if held == request.prompt + 1 else 0
        own = clock.prompt * fresh + clock.kv * held
        work = clock.line(1 + fresh, chosen) - none + own + by_slot
        share = Fraction(by_memory * held, memory)
        for node in nodes if held == request.prompt + 1 else ():
            work += clock.line(node, chosen) - none + clock.prompt * node
        takes += work + share
        delays += work * (after + by_memory + Fraction(work, 2))
        delays += share * (after + Fraction(by_memory, 2))
        after += clock.line(1 + fresh) + own
    return int(memory * takes), int(2 * memory * delays), after


def served(jobs: list[tuple[int, int, int]]) -> int:
    """Return the sum of slope (end^2 - begin^2) over jobs (arrival, -slope, amount).

    The largest slope is served first: each set of all slopes above some number at once.
    """
    ranks, total = sorted({rank for _, rank, _ in jobs}), 0
    for rank, after in zip(ranks, [*ranks[1:], 0], strict=False):
        now = 0
        for arrival, _, amount in sorted(job for job in jobs if job[1] <= rank):
            begin = max(now, arrival)
            now = begin + amount
            total += (after - rank) * (now * now - begin * begin)
    return total


def company(
    windows: list[tuple[int, int]],
    works: list[list[tuple[int, int, int]]],
    shares: list[int],
    rest: list[int],
    _budget: Work,
) -> int:
    """Return the gain by works over times alone, times 64: each begins where it is cheapest.

    Windows include their begin; but if one ends and another begins at a time, neither counts.
    """
    total, around = 0, [*zip(windows, shares, strict=True)]
    events = {time for window in windows for time in window}
    for (arrival, _), parts, share, rate in zip(windows, works, shares, rest, strict=True):
        work, paid = sum(added for _, added, _ in parts), 0
        for begin, added, early in parts if rate and work else ():
            first = arrival + begin
            choices = [first, *(time for time in events if time > first)]
            paid += added * min(
                rate * max(t - first - early, 0)
                + work * sum(c for (a, end), c in around if a < t + (t == first) and t < end)
                for t in choices
            )
        total += (paid // work if work else 0) - share * work
    return total


def attaining(problem: Problem, proof: Proof, latest: Sequence[float], _: Work) -> int:
    """Return how many attain at prices of tokens, if they start no later in a run."""
    (tokens,), one = proof["resources"], proof["denominator"]
    prices = dict(enumerate(tokens["numerators"], tokens["first"]))
    total = problem.used * problem.memory * sum(prices.values())
    for request, until in zip(problem.requests, latest, strict=True):
        free = max(request.arrival, *prices, 0)  # later starts cost nothing
        total += max(0, one - cheapest_run(prices, request, int(min(until, free))))
    return int(total // one)


def cheapest_run(prices: dict[int, int], request: Request, latest: int) -> int:
    """Return the least price of a run that starts at a time or earlier."""
    return min(
        sum(prices.get(k + j, 0) * (request.prompt + j) for j in range(1, request.output + 1))
        for k in range(request.arrival, latest + 1)
    )


def cheapest_times(
    window: tuple[int, float, float],
    cells: Sequence[Cell],
    amount: int,
    later: int,
    top: int,
    slope: int,
    rate: int,
) -> int:
    """Return the cost of an amount of the times of a window, most tokens at the cheapest.

    Tried with each amount that is early; prices end long before times without end do.
    """
    begin, *ends = window
    last = max((a for a, _, _ in cells), default=0)
    early, end = (int(min(t, max(begin, last) + amount)) for t in ends)

    def cheapest(first: int, last: int) -> list[int]:
        times = range(first + 1, last + 1)
        at = {t: next(p for a, b, p in cells if a < t <= b) for t in times}
        return sorted(price for t in times for price in [at[t]] * rate)

    before, after = cheapest(begin, early), cheapest(early, end)
    return min(
        sum(p * (top - slope * n) for n, p in enumerate(sorted(before[: amount - n] + after[:n])))
        for n in range(min(later, len(after), amount) + 1)
        if len(before) >= amount - n
    )


class AllSchedules:
    """In place of a search: all schedules below its target."""

    completions = None

    def __init__(self, stage: Any, left: Any, target: int, *_: Any) -> None:
        self.stage, self.target = stage, target

    def run(self, _: Sequence[int]) -> int:
        """Try them; return the number of schedules."""
        return search(self.stage, self.target)


def state_costs(stage: Any, starts: Sequence[Sequence[int]]) -> list[list[int]]:
    """Set R and return the costs of starts under prices of states."""
    knots = heaviest(stage, starts)
    stage.largest = [literal.between(stage.times, knots, t) for t in range(stage.last + 1)]
    return costs(stage, starts)


def whole(value: Callable[[Problem, Proof], int], fast: Evaluator) -> Evaluator:
    """Return an evaluator that checks the form of a proof as the fast one, then by definition."""

    def prepared(problem: Problem, proof: Proof, work: Work) -> Prepared:
        steps, _ = fast(problem, proof, work)
        return steps, lambda: (value(problem, proof), "definition")

    return prepared


@contextmanager
def by_definition() -> Iterator[None]:
    """Let the checker evaluate proofs by these definitions, in this process."""
    with pytest.MonkeyPatch.context() as patch:
        for kind, (modules, fast) in proofs.KINDS.items():
            if kind == "prices":
                patch.setitem(proofs.KINDS, kind, (modules, whole(prices, fast)))
        for module, name, definition in (
            (volume, "_passed", passed),
            (volume, "_fluid", fluid),
            (check_seconds, "part_of", part_of),
            (check_seconds, "_served", served),
            (check_seconds, "_company", company),
            (configurations, "RepeatedSearch", AllSchedules),
            (configurations.Stage, "costs", state_costs),
            (check_slo, "attaining_by_prices", attaining),
            (check_slo, "cheapest_cost", cheapest_times),
        ):
            patch.setattr(module, name, definition)
        yield
