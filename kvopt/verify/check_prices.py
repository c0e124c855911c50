"""Evaluate proofs by prices of resources: of tokens, slots and prefixes, or of machine time."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from itertools import accumulate, chain, count, groupby, repeat
from operator import add, itemgetter, mul, sub
from typing import Any

from kvopt.verify.certified_problem import Problem, held_together
from kvopt.verify.step_budget import (
    Invalid,
    Prepared,
    Work,
    ascend,
    paired,
    pairwise,
    refuse,
    resources_of,
)

SMALL = 6
"""The starts of a block of 2^6 are evaluated one by one."""
NO_PREFIX: dict[str, Any] = {"denominator": 1, "times": [0, 1], "numerators": []}
"""Shares of no prefix."""


def check_prices(proof: dict[str, Any], what: str = "lower", *, in_rounds: bool = True) -> None:
    """Refuse prices of a wrong form."""
    names = resources_of(proof)
    if in_rounds and (names.count("tokens") != 1 or names.count("prefixes") > 1):
        raise Invalid(f"{what}: needs prices of tokens once, and shares of prefixes once at most")
    if ("machine" in names) == in_rounds or not (in_rounds or len(names) == 1):
        raise Invalid(f"{what}: prices of machine time, and no others, are of seconds")
    for resource in (proof, *proof["resources"]):
        if min(resource.get(field, 1) for field in ("denominator", "first", "capacity")) < 1:
            raise Invalid(f"{what}: denominators, capacities and first times are at least 1")
    for resource in proof["resources"]:
        times, rows = resource.get("times", [0, 1]), [resource["numerators"]]
        if len(times) < 2 or times[0] < 0 or not ascend(times):
            raise Invalid(f"{what}: needs two times of prices or more, which ascend from 0 on")
        length = len(times) if "times" in resource else len(rows[0])
        if resource["name"] in ("prefixes", "machine"):  # a number for each interval
            rows = resource["numerators"] if resource["name"] == "prefixes" else rows
            length -= 1
        if any(len(row) != length or min(row, default=0) < 0 for row in rows):
            raise Invalid(f"{what}: a price is negative or missing")


def reach(proof: dict[str, Any]) -> tuple[int, int]:
    """Return the time before the first price, and that of the last."""
    spans = [_span(resource) for resource in proof["resources"] if resource["name"] != "prefixes"]
    return min(begin for begin, _ in spans), max(end for _, end in spans)


def _span(resource: dict[str, Any]) -> tuple[int, int]:
    if "times" in resource:
        return resource["times"][0], resource["times"][-1]
    begin = resource["first"] - 1
    return begin, begin + len(resource["numerators"])


def by_prices(problem: Problem, proof: dict[str, Any], work: Work) -> Prepared:
    """Prepare the bound of prices of resources.

    At each time a schedule uses no more of a resource than its capacity.  Let a unit of it cost
    q_t >= 0 at time t.  A request that starts at k costs its latency, times its weight, and the
    price of all that it uses.  The costs of a schedule sum to at most its total latency, and the
    prices of all capacities.  Hence no total latency is below the sum of the *least* costs of
    requests, less these prices.  In a fleet each worker has as much of all.

    *Tokens.*  There are M.  A request holds s + j of them at time k + j; in whole blocks it holds
    ``B ceil((s + j) / B)``.

    *Slots.*  There are c, and a request that holds h tokens needs ``(c + 1) h // (M + 1)`` of them.
    Requests that hold at most M tokens together need at most ``(c + 1) M // (M + 1) <= c``.

    *Prefixes.*  Of tokens a request holds its private ones, u + j, and the share l_iv(t) >= 0 of
    each node v of its prefix, of w_v tokens.  The shares of users that can be active together sum
    to 1 at most.  So active requests A hold

        sum over A of (u_i + t - k_i + sum_v l_iv(t) w_v)  <=  M

    of these.  Users that are active at time t have arrived before t, and at most K users of v can
    be active together, see `held_together`.  So it suffices that the K largest shares of those that
    arrive before the end of an interval sum to 1 at most.
    """
    check_prices(proof)
    weights = problem.weights or (1,) * len(problem.requests)
    steps, evaluate = _payments(problem, proof, weights, (math.inf,) * len(weights), work)

    def value() -> int:
        scale, paid, costs = evaluate()
        total: int = sum(weight * r.output for weight, r in paired(weights, problem.requests))
        # What is subtracted is rounded down, so that the bound is rounded up.
        return total - (paid - sum(times * cost for times, cost in costs)) // scale

    *others, final = dict.fromkeys(resources_of(proof))
    how = "prices" + (f" of {', '.join(others)} and {final}" if others else "")
    how += " of whole blocks" * (problem.block > 1)
    return steps, lambda: (value(), how)


def attaining_by_prices(
    problem: Problem, proof: dict[str, Any], latest: Sequence[float], work: Work
) -> int:
    """Return how many requests attain at most, if these start no later in a run.

    What they pay is at most the price of all capacities, and each of them counts
    1 <= max(0, 1 - g) + g, with g the least that it pays; its latency costs nothing.
    """
    steps, evaluate = _payments(problem, proof, (0,) * len(latest), latest, work)
    work.spend(steps)
    scale, paid, costs = evaluate()
    return (scale * len(latest) + paid - sum(n * min(cost, scale) for n, cost in costs)) // scale


def _payments(
    problem: Problem,
    proof: dict[str, Any],
    weights: Sequence[int],
    latest: Sequence[float],
    work: Work,
) -> tuple[int, Callable[[], tuple[int, int, list[tuple[int, int]]]]]:
    """Prepare the unit of prices, that of all capacities, and the least costs of requests.

    Costs are of requests that pay, without outputs, and come with how many requests have them.
    """
    (begin, end), resources, requests = reach(proof), proof["resources"], problem.requests
    slots = [resource for resource in resources if resource["name"] == "slots"]
    prefixes = next(
        (resource for resource in resources if resource["name"] == "prefixes"), NO_PREFIX
    )
    # A request that can complete before the first price costs o, the least cost.  The
    # others arrive at most o rounds before it, so the table begins with few prices of 0.
    pays = [request.arrival + request.output > begin for request in requests]
    paying = [(weight, r) for weight, r, does in zip(weights, requests, pays) if does]
    first = min([begin, *(request.arrival for _, request in paying)])
    longest = max((request.output for _, request in paying), default=0)
    steps = 60 * len(slots) * (end - begin)
    steps += 200 * (len(prefixes["times"]) + 9) * len(prefixes["numerators"])
    if paying:  # tables of prices of tokens, and of each threshold of slots
        length = end - first + min(longest, end - first)
        tables = len({weight for weight, _ in paying})
        steps += (50 + 15 * (length >> SMALL).bit_length()) * length * tables + 30 * len(paying)
        steps += (500 + 60 * length) * sum(1 + resource["capacity"] for resource in slots)

    def evaluate() -> tuple[int, int, list[tuple[int, int]]]:
        memory, private, together = held_together(problem)
        levels = levels_of(problem, prefixes, together)
        (tokens,), unit = _lines(resources, "tokens", first, end), prefixes["denominator"]
        scale: int = unit * proof["denominator"]  # prices count in 1 / (D unit)
        counts = [resource["capacity"] for resource in slots]
        lines = [[unit * q for q in line] for line in _lines(resources, "slots", first, end)]
        paid = memory * unit * sum(tokens) + sum(map(mul, counts, map(sum, lines)))
        rows = zip(weights, requests, private, levels, latest)
        kinds = Counter(row for row, does in zip(rows, pays) if does)
        stairs = _stairs(memory, paired(counts, lines)) if kinds else []
        units, payments = [unit * price for price in tokens], list[tuple[int, int]]()
        for weight in sorted({weight for weight, *_ in kinds}):
            costs = Costs(scale * weight, units, longest, work, problem.block, stairs)
            for (of_kind, (arrival, _, output), prompt, level, until), times in kinds.items():
                if of_kind == weight:
                    work.spend(4 * len(costs.prices) * bool(level))
                    shares = _shares(prefixes["times"], level, first, tokens, len(costs.prices))
                    arrives = arrival - first
                    lowest = costs.lowest(arrives, prompt, output, shares, until - first)
                    if problem.pauses:
                        lowest = costs.paused(arrives, prompt, output, lowest)
                    payments.append((times, lowest))
        return scale, problem.used * paid, payments

    return steps, evaluate


def _lines(resources: list[dict[str, Any]], name: str, first: int, end: int) -> list[list[int]]:
    """Return the prices of resources of a name at the times ``first + 1 .. end``.

    Between the times b and b' with the prices q and q' the price at t is

        q + (t - b) ceil((q' - q) / (b' - b))    for b < t <= b',

    which is at least the straight line from q to q', so it is not negative.
    """
    lines = []
    for resource in resources:
        if resource["name"] != name:
            continue
        prices, (begin, last) = resource["numerators"], _span(resource)
        if "times" in resource:
            pairs, prices = paired(pairwise(resource["times"]), pairwise(prices)), []
            for (before, after), (low, high) in pairs:
                slope = -((low - high) // (after - before))
                prices += [low + n * slope for n in range(1, after - before + 1)]
        lines.append([*repeat(0, begin - first), *prices, *repeat(0, end - last)])
    return lines


def _stairs(memory: int, lines: Iterable[tuple[int, list[int]]]) -> list[tuple[int, list[int]]]:
    """Return thresholds of tokens, and the prices of passing them, of pairs (c, prices)."""
    stairs = dict[int, list[int]]()
    for many, line in lines:
        for number in range(1, many + 1):
            threshold = -(-number * (memory + 1) // (many + 1))
            stairs[threshold] = list(map(add, stairs.get(threshold, repeat(0)), line))
    return sorted(stairs.items())


def levels_of(
    problem: Problem, prefixes: dict[str, Any], together: dict[int, int]
) -> list[tuple[int, ...]]:
    """Return the tokens of nodes that each request pays for in each interval, times the unit."""
    rows, users, levels = iter(prefixes["numerators"]), defaultdict(list), []
    ends = prefixes["times"][1:]
    for request, path in paired(problem.requests, problem.paths or [()] * len(problem.requests)):
        level = [0] * len(ends)
        for v in path:
            if v in together:
                row = next(rows, None)
                if row is None:
                    raise Invalid("lower: has not a share of each node for each of its users")
                users[v].append([part * (request.arrival < end) for part, end in paired(row, ends)])
                level = [
                    sum_before + part * problem.nodes[v] for sum_before, part in paired(level, row)
                ]
        levels.append(tuple(level) if any(level) else ())
    refuse([*rows], "lower: has not a share of each node for each of its users")
    for v, shares in users.items():
        # At most so many users are active together: if the largest shares fit, all do.
        for interval in zip(*shares):
            if sum(sorted(interval)[-together[v] :]) > prefixes["denominator"]:
                raise Invalid("lower: shares of users that can be active together pass 1")
    return levels


def _shares(
    times: list[int], level: tuple[int, ...], first: int, prices: list[int], length: int
) -> list[tuple[int, list[int]]]:
    """Return sums of the payments for so many tokens in each interval, as a step that all reach."""
    if not level:
        return []
    ends = [min(max(time - first, 0), len(prices)) for time in times]
    lengths = map(sub, ends, [0, *ends])
    tokens = chain.from_iterable(map(repeat, (0, *level), lengths))
    sums = [*accumulate(map(mul, prices, tokens), initial=0)]
    return [(0, sums + sums[-1:] * (length + 1 - len(sums)))]


Cell = tuple[float, float, int]
"""Begin, end and price of times with equal prices; the last end is infinite."""


def cells_of(resource: dict[str, Any]) -> list[Cell]:
    """Return the cells of a resource, with those of 0 around them."""
    begin, end = _span(resource)
    times = resource.get("times", range(begin, end + 1))
    prices = paired(resource["numerators"], pairwise(times))
    cells: list[Cell] = [(0, begin, 0)]
    for price, group in groupby(prices, key=itemgetter(0)):
        *_, (_, (_, last)) = group
        cells.append((cells[-1][1], last, price))
    return [*cells, (end, math.inf, 0)]


def cheapest_cost(
    window: tuple[int, float, float],
    cells: Iterable[Cell],
    amount: int,
    later: int,
    top: int = 1,
    slope: int = 0,
    rate: int = 1,
) -> int:
    """Return the cost of the cheapest amount of a window's time, ``rate`` of it in a unit.

    A window is from the arrival until the first and the last token are due; no more than ``later``
    is between these two.  At the cheapest time ``top`` tokens are held, then ``slope`` less at each
    next one.  To take the cheapest first is best, since all sets within such limits are a matroid.
    """
    begin, early, end = window
    parts = [
        (price, is_late, rate * (min(last, until) - max(first, since)))
        for first, last, price in cells
        for is_late, since, until in ((False, begin, early), (True, early, end))
        if min(last, until) > max(first, since)
    ]
    cost = 0
    for price, is_late, length in sorted(parts):
        size = int(min(length, amount, later if is_late else amount))
        cost += price * (size * top - slope * (size * (size - 1) // 2))
        top, amount = top - slope * size, amount - size
        later -= size * is_late
    return cost


class PriceTotals:
    """Sums of the prices q_1 .. q_T over D, which give the costs of starts.

    With P_k = q_1 + .. + q_k and the tokens held with token j, h_j = B ceil((s + j) / B) for blocks
    of B tokens, a start at k costs, without the latency o that every start has, times D,

        D (k - a) + h_o P_{k+o} - h_1 P_k - B sum P_{k+j}  over those j < o for which B divides s+j.

    These j are B apart, so with S_x = P_x + S_{x-B} the last sum is a difference of two.
    """

    def __init__(self, scale: int, prices: list[int], block: int = 1) -> None:
        self.scale, self.block = scale, block
        self.paid = list(accumulate(prices, initial=0))  # P
        self.strided = list(self.paid)  # S
        for x in range(block, len(self.paid)):
            self.strided[x] += self.strided[x - block]

    def of_starts(
        self, begin: int, end: int, arrival: int, prompt: int, output: int
    ) -> Iterable[int]:
        """Return the costs of the starts ``begin .. end - 1``, without those of steps."""
        block = self.block
        low, high = (-(-(prompt + j) // block) * block for j in (1, output))
        waits: Iterable[int] = repeat(0, end - begin)
        if self.scale:
            waits = range(self.scale * (begin - arrival), self.scale * (end - arrival), self.scale)
        pairs = self.paid[begin:end], self.paid[begin + output : end + output]
        costs = [wait + high * then - low * now for wait, now, then in paired(waits, *pairs)]
        first = block - prompt % block  # the token that fills a block
        if first >= output:
            return costs
        final = output - 1 - (output - 1 - first) % block  # the last of them
        x = begin + first - block
        missing = min(max(0, -x), end - begin)
        before = [0] * missing + self.strided[x + missing : x + end - begin]
        filled = map(sub, self.strided[begin + final : end + final], before)
        return map(sub, costs, map(mul, filled, repeat(block)))


class Costs(PriceTotals):
    """Least costs of requests under such prices; q_t = 0 after T.

    After T nothing is paid and waiting only costs latency, so k runs over a .. T, T included, or
    up to the ``latest`` start.

    *Which starts need no look.*  Of tokens, no more than of blocks, let q_t = b t + r_t at all
    times that the starts of a block pass through.  The line makes their costs linear in k, so
    least at an end of the block.  The rest adds sum_j r_{k+j} (s + j).  With v = sum_j (s + j)
    that is at least v min r.  It is also, for any number c and the sums E_t of r_u - c over u <= t,

        v c + (s + o) E_{k+o} - s E_k - sum_{j=0..o-1} E_{k+j} >= v c - (s + o) (max E - min E).

    The first is good where prices bend, the second where they are rough.  A block that may have
    a start cheaper than the best so far is cut in two, or evaluated start by start if it is
    small.  So the least cost is exact for any prices.

    *Steps* add a difference of sums for each table of thresholds that are reached.  Sums only grow,
    so for a block of starts it is at least the payment common to all of them.
    """

    def __init__(
        self,
        scale: int,
        prices: list[int],
        longest: int,
        work: Work,
        block: int = 1,
        stairs: Sequence[tuple[int, list[int]]] = (),
    ) -> None:
        self.last, self.work, self.stairs = len(prices), work, []
        self.prices = prices = prices + [0] * min(longest, self.last)  # so that k + o is in tables
        super().__init__(scale, prices, block)
        self.rises = [t for t, (now, after) in enumerate(pairwise(prices), 1) if now < after]
        self.thresholds = [tokens for tokens, _ in stairs]
        for tokens, line in stairs:
            row = line + [0] * (len(prices) - len(line))
            self.stairs.append((tokens, [*accumulate(row, initial=0)]))
        rows = (row for _, row in self.stairs)
        self.reached = [*accumulate(rows, lambda one, other: list(map(add, one, other)))]
        # Slopes of lines are fractions: numbers of lines count in units of 1 / (D 2^shift).
        self.shift = len(prices).bit_length()
        fine = [price << self.shift for price in prices]
        self.lines = [
            [self._line(fine, begin, 1 << level) for begin in range(0, len(fine), 1 << level)]
            for level in range(SMALL, max(self.shift, SMALL) + 1)
        ]

    def _line(self, fine: list[int], begin: int, half: int) -> tuple[int, int, int, int]:
        """Return b, min r, c and max E - min E for the times ``begin + 1 .. begin + 2 half``.

        Any b and c are valid; b is the slope from the mean of one half to that of the other.
        """
        middle, end = (min(begin + part * half, len(fine)) for part in (1, 2))
        slope = (self.paid[end] - 2 * self.paid[middle] + self.paid[begin] << self.shift) // half**2
        rest = list(map(sub, fine[begin:end], count(slope * (begin + 1), slope)))
        sums = list(accumulate(rest))
        mean = sums[-1] // len(rest)
        rough = list(map(sub, sums, count(mean, mean)))
        return slope, min(rest), mean, max(0, max(rough)) - min(0, min(rough))

    def lowest(
        self,
        arrival: int,
        prompt: int,
        output: int,
        shares: Sequence[tuple[int, list[int]]] = (),
        latest: float = math.inf,
    ) -> int:
        """Return the least cost of a request over all its starts, its output left out.

        Shares are sums of prices that it pays besides, as those of steps.
        """
        if arrival >= self.last:
            return 0
        output = min(output, self.last)  # after it no start pays
        peak = prompt + output
        volume = prompt * output + output * (output + 1) // 2
        moment = output * (output + 1) * (3 * prompt + 2 * output + 1) // 6  # sum_j j (s + j)
        wait = self.scale << self.shift
        end = int(min(latest, self.last))
        # A start at the last price waits, and pays nothing.
        best: float = wait * (end - arrival) if end == self.last else math.inf
        blocks = [(0, arrival, end + 1)]
        steps = [*self._steps(prompt, peak), *shares]
        looked = 0
        while blocks and blocks[0][0] < best:
            _, begin, end = heappop(blocks)
            looked += 10 + min(end - begin, 1 << SMALL)
            if end - begin <= 1 << SMALL:
                costs = self.of_starts(begin, end, arrival, prompt, output)
                for before, sums in steps:
                    ends, begins = (sums[begin + x : end + x] for x in (output, before))
                    costs = map(add, costs, map(sub, ends, begins))
                best = min(best, min(costs) << self.shift)
                continue
            middle = (begin + end) // 2
            for k, after in ((begin, middle), (middle, end)):
                # The shortest line that all these runs are under.  By it costs are linear in k, so
                # lowest for the first or the last of them.
                level = max((after - k + output - 2).bit_length() - SMALL, 0)
                slope, low, mean, rough = self.lines[level][k >> level + SMALL]
                bound = max(volume * low, volume * mean - peak * rough)
                bound += wait * (k - arrival) + slope * (volume * k + moment)
                bound += min(0, (wait + slope * volume) * (after - 1 - k))
                for before, sums in steps:
                    bound += max(0, sums[k + output] - sums[after - 1 + before]) << self.shift
                if bound < best:
                    heappush(blocks, (bound, k, after))
        self.work.spend((2 + 4 * len(steps)) * looked)  # less than the charge for a table
        return int(best) >> self.shift

    def _steps(self, prompt: int, peak: int) -> list[tuple[int, list[int]]]:
        """Return the sums of prices that a request pays, each after so many rounds.

        The thresholds that its first token reaches are one table.
        """
        first = bisect_right(self.thresholds, prompt + 1)
        final = bisect_right(self.thresholds, peak)
        later = self.stairs[first:final]
        steps = [(0, self.reached[first - 1])] if first else []
        return steps + [(tokens - prompt - 1, sums) for tokens, sums in later]

    def paused(self, arrival: int, prompt: int, output: int, of_run: int) -> int:
        """Return the least cost if the request may pause; ``of_run`` is that without pauses, U.

        Token j costs ``p_t B ceil((s + j) / B)``, at ascending times t; both are without the output
        and times D.  A completion more than U / D after the arrival costs more than U.  After the
        last price, and o tokens later, waiting only costs latency.  So completions lie in a window
        that begins with the arrival.

        Let q_t be the least price from the arrival to t.  It never rises, so under q the cheapest
        run produces the o tokens before a completion without a pause, and costs no less under p.  A
        completion where this is U or more is skipped.  If the prices themselves never rise up to
        the last other completion, pauses do not help.  Else token by token,

            m_j(t) = min(m_j(t - 1), p_t B ceil((s + j) / B) + m_{j-1}(t - 1))

        is the least price of the first j tokens, produced by t.
        """
        place = bisect_right(self.rises, arrival)
        rise = self.rises[place] - arrival if place < len(self.rises) else math.inf
        last = min(of_run // self.scale, max(0, self.last - arrival)) + output
        if rise >= last:
            return of_run
        prices = self.prices[arrival : arrival + last]
        prices += [0] * (last - len(prices))
        falling = PriceTotals(self.scale, [*accumulate(prices, min)])
        costs = enumerate(falling.of_starts(0, last - output + 1, 0, prompt, output))
        end = max((output + c for c, cost in costs if cost < of_run), default=0)
        slack = end - output + 1
        self.work.spend(10 * last + 5 * output * max(0, slack) * (rise < end))
        if rise >= end:
            return of_run
        paid_so_far = [0] * slack
        for j in range(output):
            tokens = -(-(prompt + j + 1) // self.block) * self.block
            paid = map(mul, prices[j : j + slack], repeat(tokens))
            paid_so_far = list(map(add, accumulate(paid_so_far, min), paid))
        best: int = min(map(add, paid_so_far, count(0, self.scale)))
        return min(best, of_run)
