"""Define each fast evaluator by literal loops, which ``--naive`` runs instead.

They share no code with the evaluators.  Each counts its steps, so that a file which is too large
for them is refused.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any, TypeVar

from kvopt.verify.problem import Clock, Problem, Request
from kvopt.verify.work import Invalid, Work, pairwise

T = TypeVar("T")


def counted(items: Iterable[T], work: Work) -> Iterator[T]:
    """Yield items, each at the cost of a short loop."""
    for item in items:
        work.spend(200)
        yield item


def prices(problem: Problem, proof: dict[str, Any], work: Work) -> int:
    """Return the bound of prices: least costs of all requests less the price of all memory."""
    memory, block = problem.memory, problem.block
    scale: int = proof["denominator"]
    token: Counter[int] = Counter(dict(enumerate(proof["numerators"], proof["first"])))
    slots = [
        (each["count"], _line(proof["borders"], each["numerators"], work))
        for each in proof.get("slots", ())
    ]
    last = max([0, *token, *(time for _, line in slots for time in line)])

    def cost(request: Request, times: Sequence[int], weight: int) -> int:
        paid: int = scale * weight * (times[-1] - request.arrival)
        for held, time in enumerate(times, request.prompt + 1):
            paid += token[time] * -(-held // block) * block
            paid += sum((many + 1) * held // (memory + 1) * line[time] for many, line in slots)
        return paid

    def runs(request: Request) -> Iterator[Sequence[int]]:
        arrival, _, output = request
        end = max(arrival, last) + output
        if problem.pauses:
            return combinations(range(arrival + 1, end + 1), output)
        return (range(k + 1, k + output + 1) for k in range(arrival, end - output + 1))

    worth = memory * sum(token.values()) + sum(many * sum(line.values()) for many, line in slots)
    total: int = -problem.used * worth
    weights = problem.weights or (1,) * len(problem.requests)
    for request, weight in zip(problem.requests, weights):
        total += min(cost(request, times, weight) for times in counted(runs(request), work))
    return -(-total // scale)


def _line(borders: list[int], values: list[int], work: Work) -> Counter[int]:
    """Return prices of a slot at all times after the first border; slopes are rounded up."""
    line: Counter[int] = Counter()
    for x in range(len(borders) - 1):
        slope = -((values[x] - values[x + 1]) // (borders[x + 1] - borders[x]))
        for n in counted(range(1, borders[x + 1] - borders[x] + 1), work):
            line[borders[x] + n] = values[x] + n * slope
    return line


def shared_prices(
    problem: Problem, proof: dict[str, Any], levels: list[list[int]], work: Work
) -> int:
    """Return the least costs of all requests under prices of tokens and shares, times D U."""
    unit, borders = proof["unit"], proof["borders"]
    token: Counter[int] = Counter(dict(enumerate(proof["numerators"], proof["first"])))
    last, total = max([0, *token]), 0
    for i, (arrival, prompt, output) in enumerate(problem.requests):
        own = prompt - sum(problem.nodes[v] for v in problem.paths[i])
        costs = []
        for k in counted(range(arrival, max(arrival, last) + 1), work):
            costs.append(unit * proof["denominator"] * (k + output - arrival))
            for t in range(k + 1, k + output + 1):
                x = bisect_left(borders, t) - 1
                more = levels[i][x] if 0 <= x < len(levels[i]) else 0
                costs[-1] += token[t] * (unit * (own + t - k) + more)
        total += min(costs)
    return total


def fluid(requests: list[Request], volumes: list[int], rate: int, work: Work) -> list[int]:
    """Return the completions of the fluid: drop by drop, the least remaining need first."""
    left, time = list(volumes), 0
    ends = [request.arrival for request, volume in zip(requests, left) if volume == 0]
    while any(left):
        time += 1
        for _ in counted(range(rate), work):
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


def costs(stage: Any, starts: Sequence[Sequence[int]], work: Work) -> list[list[int]]:
    """Return the costs of starts: latency, and the price of the state at each time."""
    found: list[list[int]] = []
    for (arrival, prompt, output), own in zip(stage.requests, starts):
        found.append([])
        for k in counted(own, work):
            times = range(k + 1, min(k + output, stage.last) + 1)
            paid = sum(stage.price(t, prompt + output, k + output - t) for t in times)
            found[-1].append(stage.scale * (k + output - arrival) + paid)
    return found


def heaviest(stage: Any, starts: Sequence[Sequence[int]], work: Work) -> list[int]:
    """Return R at each knot: over all states, within their copies, that fit together.

    They can if memory suffices when each completes.  Copies are those of the largest number of
    requests that may be in a state at some time strictly between the neighbours of the knot.
    """
    found = []
    for x, time in enumerate(stage.times):
        before = stage.times[x - 1] if x else 0
        after = stage.times[x + 1] if x + 1 < len(stage.times) else time + 1
        copies: Counter[tuple[int, int]] = Counter()
        for t in counted(range(max(0, before) + 1, after), work):
            copies |= Counter(
                (r.prompt + t - k, k + r.output - t)
                for r, own in zip(stage.requests, starts)
                for k in own
                if k < t <= k + r.output
            )
        states = [state for state in copies if stage.price(time, sum(state), state[1])]
        best = 0
        for counts in counted(product(*(range(copies[state] + 1) for state in states)), work):
            some = [state for state, count in zip(states, counts) for _ in range(count)]
            if all(sum(h + r for h, left in some if left >= r) <= stage.memory for _, r in some):
                best = max(best, sum(stage.price(time, h + r, r) for h, r in some))
        found.append(stage.used * best)
    return found


def between(times: Sequence[int], values: Sequence[int], time: int) -> int:
    """Return a value at a time from those at its neighbours, rounded down; 0 outside of them."""
    if not times[0] <= time <= times[-1]:
        return 0
    x = bisect_left(times, time)
    if times[x] == time:
        return values[x]
    (a, b), (low, high) = times[x - 1 : x + 1], values[x - 1 : x + 1]
    return ((b - time) * low + (time - a) * high) // (b - a)


def search(problem: Problem, target: int, work: Work) -> int:
    """Try all schedules below the target; return the number of partial schedules."""
    requests = problem.requests
    spare = target - 1 - sum(request.output for request in requests)
    ranges = [range(r.arrival, r.arrival + spare + 1) for r in requests]
    tried = 0
    for starts in counted(product(*ranges), work):
        tried += 1
        pairs = list(zip(requests, starts))
        total = sum(k + r.output - r.arrival for r, k in pairs)
        held: dict[int, int] = defaultdict(int)
        for request, k in pairs if total < target else ():
            for j in range(1, request.output + 1):
                held[k + j] += request.prompt + j
        if total < target and max(held.values(), default=0) <= problem.memory:
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
    for rank, after in zip(ranks, [*ranks[1:], 0]):
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
    budget: Work,
) -> int:
    """Return the gain by works over times alone, times 64: each begins where it is cheapest.

    Windows include their begin; but if one ends and another begins at a time, neither counts.
    """
    total = 0
    events = {time for window in windows for time in window}
    for (arrival, _), parts, share, rate in zip(windows, works, shares, rest):
        work, paid = sum(added for _, added, _ in parts), 0
        for begin, added, early in parts if rate and work else ():
            first = arrival + begin
            choices = [first, *(time for time in events if time > first)]
            paid += added * min(
                rate * max(t - first - early, 0)
                + work
                * sum(c for (a, end), c in zip(windows, shares) if a < t + (t == first) and t < end)
                for t in counted(choices, budget)
            )
        total += (paid // work if work else 0) - share * work
    return total


def cheapest_run(
    borders: list[int], values: list[int], request: Request, latest: int, work: Work
) -> int:
    """Return the least price of a run that starts at a time or earlier."""
    starts = counted(range(request.arrival, latest + 1), work)
    return min(
        sum(
            _at(borders, values, k + j) * (request.prompt + j) for j in range(1, request.output + 1)
        )
        for k in starts
    )


def cheapest_time(
    borders: list[int],
    values: list[int],
    begin: int,
    end: int,
    amount: int,
    top: int,
    slope: int,
    rate: int,
    work: Work,
) -> int:
    """Return the cost of an amount of the times begin + 1 .. end, most at the cheapest."""
    work.expect(20 * rate * (end - begin))
    times = counted(range(begin + 1, end + 1), work)
    paid = sorted(price for t in times for price in [_at(borders, values, t)] * rate)
    return sum(price * (top - slope * n) for n, price in enumerate(paid[:amount]))


def _at(borders: list[int], values: list[int], time: int) -> int:
    """Return the price between the borders around a time, 0 outside of them."""
    pairs = pairwise(borders)
    return next((p for (a, b), p in zip(pairs, values) if a < time <= b), 0)
