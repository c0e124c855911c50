"""Evaluate proofs in seconds: shares of the machine."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from kvopt.verify.certified_problem import Clock, Problem, Request
from kvopt.verify.check_volume import serve
from kvopt.verify.step_budget import Invalid, Prepared, Work, paired, pairwise, refuse


def by_shares(problem: Problem, proof: dict[str, Any], work: Work) -> Prepared:
    """Prepare the bound of the machine time that each request takes.

    Let f(b) be the largest value of some lines for b tokens, and call a request's *work* in a
    round f(b) - f(0) + prompt_ns S + kv_ns h for its own b, S, h.  As f is convex and no more
    than M tokens are held, a round lasts at least the sum over its requests of work + f(0) h / M.
    Serve each of these parts within the round, one after another, works first and then f(0), which
    all share.  So requests are served at rates that sum to 1 at most.  For request i let

        X  be its machine time,  E  the least time from its start to its completion,
        B  the mean time at which it is served,  e  the least possible completion - B.

    For slopes y >= 0 with y X <= weight / 64,  completion >= B + e  for a share y X of it.  The
    sum of all y X B, which are integrals of y t over the service, is least when the largest y is
    always served first: then each set of all requests with a y above some number is served as early
    as possible.  `_company` uses the share ``company`` / 64 of the rest.

    *Pauses.*  In its j-th round of tokens a request processes and holds at least as many tokens as
    without a pause, and its later rounds last at least as long; a return only adds work.  *Pieces
    of prompts.*  If f is one line, or lines in a fixed ``mix``, the pieces take as much time as the
    whole, and sooner.  Company is that of pieces: each token makes a round longer by f(1) - f(0) or
    more, with all lines, and a piece may begin ``early``, before the round of the first token.

    *Weights* of requests multiply what is counted of their latency.  *Limit.*  With at most K
    active requests each may pay a part of f(0) like work, as K of them pay no more than that part;
    ``by_memory`` is what tokens pay, in parts of 64.

    *Parts.*  The rounds after the first may be cut into ``parts``.  The machine time in rounds of a
    part is not served before those of earlier parts, alone, could have ended; and all parts of a
    request have one slope.  Company then counts the work of tokens as well, see `_company`.

    *Prefixes.*  A request holds its share of a prefix, as its prompt, and surely processes only its
    private tokens, ``fresh``; rounds that process or hold more last longer.  Each node is
    processed at least once on the worker of its first user to arrive, perhaps by another one and in
    pieces: after that arrival, and before the first token of that user.  So the fluid serves it
    with the work of its first round: both are served by then, at rates that sum to 1 at most.
    """
    clock = problem.clock
    assert clock is not None, "shares are of a clock in seconds"
    # Company is not in the estimate, since it depends on the ends of windows.
    lines, count = len({*proof["lines"]}) + 2 * len(clock.lines), max(0, proof.get("parts", 0))
    steps = (600 * (1 + count) + 16 * lines) * len(problem.requests)
    return steps, lambda: (_value(problem, clock, proof, work), "shares of the machine")


def _value(problem: Problem, clock: Clock, proof: dict[str, Any], work: Work) -> int:
    """Return the bound of shares of requests, see `by_shares`."""
    requests = problem.requests
    chosen, weights = proof["lines"], proof.get("weights")
    company = proof.get("company") or [0] * len(requests)
    scale, mix, count = 1, proof.get("mix", []), proof.get("parts", 0)
    counts = problem.weights or (1,) * len(requests)
    refuse(not clock.has(chosen), "lower: needs lines of the model")
    if mix:
        if not (len(mix) == len(set(chosen)) == len(chosen) and min(mix) >= 1):
            raise Invalid("lower: a mix has a number of at least 1 for each of different lines")
        scale, clock, chosen = sum(mix), clock.mixed(chosen, mix), [len(clock.lines)]
    chosen = sorted(set(chosen))
    refuse(any(company) and problem.used > 1, "lower: company is of one worker")
    is_uneven = problem.chunks and len(chosen) > 1
    refuse(is_uneven, "lower: several lines unmixed do not cover prompts in pieces")
    if not 0 <= count <= 64 or (count and problem.chunks):
        raise Invalid("lower: needs 0 .. 64 parts, and none where prompts come in pieces")
    weights = weights or [64 * times for times in counts]
    if not len(weights) == len(company) == len(requests):
        raise Invalid("lower: needs a weight, and company, for each request, or none at all")
    rest = [64 * times - weight - beside for times, weight, beside in zip(counts, weights, company)]
    if min([*weights, *company, *rest, 0]) < 0:
        raise Invalid("lower: weight and company of a request are in 0 .. 64, and so is their sum")
    fixed = _fixed(problem, clock.line(0, chosen), by_memory_of(problem, proof))
    done = problem.fresh or [request.prompt for request in requests]
    firsts = problem.firsts or [()] * len(requests)
    parts = [
        part_of(problem.memory, r, clock, chosen, s, nodes, fixed)
        for r, s, nodes in paired(requests, done, firsts)
    ]
    refuse(any(takes <= 0 for takes, _, _ in parts), "lower: a request takes no machine time")
    # The total counts 1 / (2 memory unit scale), a weight of 1 is ``unit``, and y X of a request is
    # slope takes / unit.  Its weight less y X counts its time alone, y X counts e (``delays`` are
    # 2 M X e) and B, which is the fluid's: `_served`, on a clock of time times memory.
    # One server with this memory is as fast as all workers.
    memory, unit = problem.memory * problem.used, max((p[0] for p in parts), default=1) << 30
    total, jobs, works, windows = 0, [], [], []
    for request, times, weight, fresh, (takes, delays, alone) in paired(
        requests, counts, weights, done, parts
    ):
        arrival, slope, whole = scale * request.arrival, weight * unit // (64 * takes), unit * times
        total += 2 * memory * ((whole - slope * takes) * (arrival + alone) - whole * arrival)
        total += memory * slope * delays
        cut = _cut(problem, request, clock, chosen, count, (takes, alone), fresh, fixed)
        jobs += [((arrival + begin) * memory, -slope, part) for begin, part, _, _ in cut]
        works.append([(begin, added, free) for begin, _, added, free in cut])
        windows.append((arrival, arrival + alone))
    total += _served(jobs)
    if any(company):
        total += 2 * memory * (unit >> 6) * _company(windows, works, company, rest, work)
    return -(-total // (2 * memory * unit * scale))


def lines_of(problem: Problem, lines: Sequence[int], what: str) -> list[int]:
    """Return lines whose maximum bounds rounds from below, none in rounds."""
    clock, chosen = problem.clock, sorted(set(lines))
    refuse(clock is None and chosen, f"{what}: rounds have no lines")
    refuse(clock and not clock.has(chosen), f"{what}: needs lines of the model")
    is_uneven = clock and problem.chunks and len(chosen) > 1
    refuse(is_uneven, f"{what}: several lines do not cover prompts in pieces")
    return chosen


def _served(jobs: list[tuple[int, int, int]]) -> int:
    """Return the least sum of 2 slope t dt: the largest slope is served first."""
    return -sum(rank * (end * end - begin * begin) for rank, begin, end, _ in serve(jobs))


def _fixed(problem: Problem, whole: int, by_memory: int) -> tuple[int, int]:
    """Return what all tokens in memory pay of f(0), and what each active request pays of it.

    At most K requests are active on a worker, so one K-th of the rest for each is not too much.
    """
    part = whole * by_memory // 64
    return part, 0 if problem.max_active is None else (whole - part) // problem.max_active


def by_memory_of(problem: Problem, proof: dict[str, Any]) -> int:
    """Return how many of 64 parts of what is paid of f(0) tokens in memory pay."""
    by_memory: int = proof.get("by_memory", 64)
    if not 0 <= by_memory <= 64 or (problem.max_active is None and by_memory < 64):
        raise Invalid("lower: by_memory is in 0 .. 64, and 64 without a limit of active requests")
    return by_memory


def _cut(
    problem: Problem,
    request: Request,
    clock: Clock,
    chosen: list[int],
    count: int,
    whole: tuple[int, int],
    fresh: int,
    fixed: tuple[int, int],
) -> list[tuple[int, int, int, int]]:
    """Return begins, M times the machine time, works and free delays of a request's parts.

    ``whole`` is its machine time, times M, and its time alone.  Its first part is its first
    round, and all of it if the ``count`` of others is 0.  The others share its other rounds.

    Alone, a part ends where the next one begins, the last one when the request completes; begins
    are found from that end back.  Up to the begin of its last round, alone, a delay is free: a
    round of the part that begins later delays the request.  Works and times alone are by all lines.
    """
    _, prompt, output = request
    by_memory, by_slot = fixed
    token = clock.line(1, chosen) - clock.line(0, chosen) + by_slot
    none, one = clock.line(0), clock.line(1)
    parts, (taken, begin) = [], whole
    for part in reversed(range(count)):
        first, last = 2 + (output - 1) * part // count, 1 + (output - 1) * (part + 1) // count
        if (rounds := last - first + 1) == 0:
            continue
        held = rounds * prompt + (first + last) * rounds // 2
        takes = problem.memory * (token * rounds + clock.kv * held) + by_memory * held
        alone = one * rounds + clock.kv * held
        begin, taken = begin - alone, taken - takes
        works = (one - none) * rounds + clock.kv * held
        parts.append((begin, takes, works, alone - one - clock.kv * (prompt + last)))
    return [(0, taken, *_prompt(prompt, fresh, clock, problem.chunks)), *reversed(parts)]


def _company(
    windows: list[tuple[int, int]],
    works: list[list[tuple[int, int, int]]],
    company: list[int],
    rest: list[int],
    budget: Work,
) -> int:
    """Return the interference that prompts add to times alone, times 64.

    Let the *window* of request i go from its arrival to its arrival + E.  A round that begins
    before i completes lasts at least the works of its prompts, and if i is active as long as with
    i alone in addition.  So the latency of i is at least E and the works of all other prompts
    whose rounds begin in its window.  This is counted for a share ``company`` of the latency, and
    for a share ``rest`` that i completes E after the begin of its own first round.  So a prompt
    that begins at t pays the company of all windows around t for its work, and the rest for its
    delay: at least the cheapest t, which is at its arrival or where a window begins or ends.
    In pieces each token of it pays so, and its delay counts beyond ``early`` only.

    The same holds with the works of tokens.  In parts, as triples of the earliest begin, work and
    free delay: no part is delayed more than its request, so each is given the part of the rest that
    its work is of all works of the request.
    """
    shares = paired(windows, company)
    changes = sorted(pair for (a, end), c in shares if c for pair in ((a, c), (end, -c)))
    times = [time for time, _ in changes]
    prices = [*accumulate((change for _, change in changes), initial=0)]
    # Blocks of 64 changes are skipped by their lowest price.  At equal times windows end before
    # others begin, so that a price can only be too low.
    lows = [min(prices[i + 1 : i + 65]) for i in range(0, len(times), 64)]
    total = 0
    for (arrival, _), parts, share, rate in paired(windows, works, company, rest):
        work, paid, looked = sum(added for _, added, _ in parts), 0, 0
        for begin, added, early in parts if rate and work else ():  # without rest it waits for ever
            place = bisect_right(times, arrival + begin)
            best, free = work * prices[place], arrival + begin + early
            while place < len(times) and rate * (times[place] - free) < best:
                end = min((place | 63) + 1, len(times))
                lowest = rate * max(times[place] - free, 0) + work * lows[place >> 6]
                looked += 2
                if lowest < best:
                    looked += end - place
                    part = paired(times[place:end], prices[place + 1 : end + 1])
                    best = min(best, *(rate * max(t - free, 0) + work * p for t, p in part))
                place = end
            paid += added * best
        budget.spend(6 * looked)
        total += (paid // work if work else 0) - share * work
    return total


def _prompt(prompt: int, fresh: int, clock: Clock, chunks: bool) -> tuple[int, int]:
    """Return the work of a prompt that delays others, and how early its pieces may begin."""
    none, one, whole = map(clock.line, (0, 1, fresh + 1))
    more = clock.prompt * fresh
    work = more + clock.kv * (prompt + 1)
    if chunks:
        return work + (one - none) * (fresh + 1), whole - one + more
    return work + whole - none, 0


def part_of(
    memory: int,
    request: Request,
    clock: Clock,
    chosen: list[int],
    fresh: int,
    nodes: Sequence[int] = (),
    fixed: tuple[int, int] | None = None,
) -> tuple[int, int, int]:
    """Return M X, 2 M X e and E of a request that processes so many prompt tokens, and nodes.

    With r rounds to go it holds h tokens, has some work, and alone it lasts at least ``length``;
    ``after`` is the sum of the lengths that follow.  The four columns are polynomials in r of a
    degree below 4, so their first four values give their sums over all rounds but the first.

    In a round its work w is served first, then for the time ``by_memory`` its part h / M of that.
    So w is served, on average, at least ``w / 2 + by_memory + after`` before the completion, the
    part ``by_memory / 2 + after``.  Machine time times these sums to X e.
    """
    _, prompt, output = request
    none, after = clock.line(0, chosen), 0
    by_memory, by_slot = fixed or (none, 0)

    def row(tokens: int, prompts: int, h: int, after: int, more: int = 0) -> tuple[int, int, int]:
        held = clock.prompt * prompts + clock.kv * h
        work = clock.line(tokens, chosen) - none + held + more + by_slot
        last = 2 * after + by_memory
        delays = memory * work * (last + by_memory + work) + by_memory * h * last
        return memory * work + by_memory * h, delays, clock.line(tokens) + held

    rows = []
    for r in range(4):
        rows.append(row(1, 0, prompt + output - r, after))
        after += rows[-1][2]
    takes, delays, alone = (_summed(list(column), output - 1) for column in paired(*rows))
    more = sum(clock.line(node, chosen) - none + clock.prompt * node for node in nodes)
    first = row(fresh + 1, fresh, prompt + 1, alone, more)
    return takes + first[0], delays + first[1], alone + first[2]


def _summed(values: list[int], count: int) -> int:
    """Return p(0) + .. + p(count - 1) of the polynomial p with these first values."""
    total = 0
    for k in range(1, len(values) + 1):
        total += values[0] * math.comb(count, k)
        values = [after - before for before, after in pairwise(values)]
    return total
