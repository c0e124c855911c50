"""Evaluate proofs by prices of tokens, of whole blocks, of slots, and of shared nodes."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import accumulate, chain, count, repeat
from operator import add, mul, sub
from typing import Any

from kvopt.verify.problem import Problem, held_together
from kvopt.verify.work import Invalid, Prepared, Work, ascend, paired, pairwise, refuse

SMALL = 6
"""The starts of a block of 2^6 are evaluated one by one."""
CHUNK = 1024
"""Fewest starts of shared prefixes that are evaluated together."""


def check_prices(proof: dict[str, Any]) -> None:
    """Refuse prices of tokens, borders, and prices of slots of a wrong form."""
    if proof["denominator"] < 1 or proof["first"] < 1 or min(proof["numerators"], default=0) < 0:
        raise Invalid("lower: needs a denominator and times of at least 1, and no negative price")
    borders = proof.get("borders", [0, 1])
    if len(borders) < 2 or borders[0] < 0 or not ascend(borders):
        raise Invalid("lower: needs two borders of prices or more, which ascend from 0 on")
    for each in proof.get("slots", ()):
        prices = each["numerators"]
        if each["count"] < 1 or len(prices) != len(borders) or min(prices) < 0:
            raise Invalid("lower: there is a slot, and at each border its price, not negative")


def reach(proof: dict[str, Any]) -> tuple[int, int]:
    """Return the time before the first price, and that of the last, those of slots included."""
    begin, borders = proof["first"] - 1, proof.get("borders", [])
    return min([begin, *borders]), max([begin + len(proof["numerators"]), *borders])


def by_prices(problem: Problem, proof: dict[str, Any], work: Work) -> Prepared:
    """Prepare the bound of prices of tokens, of whole blocks, or of tokens and slots.

    Let a token held at time t cost p_t >= 0.  The cost of a request started at k is

        (k + o - a) + sum_{j=1..o} p_{k+j} (s + j),

    its latency and the price of its tokens.  A schedule holds at most M tokens at each time, so
    its costs sum to at most its total latency + M sum_t p_t.  Hence no total latency is below
    the sum of the *least* costs - M sum_t p_t.  In a fleet M is the memory of all workers together.
    For whole blocks it is the same with ``B ceil((s + j) / B)`` for ``s + j``.

    *Slots.*  Let a request which holds h tokens need ``(c + 1) h // (M + 1)`` of c slots.
    Requests that hold at most M tokens together need at most ``(c + 1) M // (M + 1) <= c`` slots
    together.  So the cost of a start may add a price for each slot at each time, and M sum_t p_t
    becomes that plus the prices of all c slots.  In a fleet each worker has its own.
    """
    check_prices(proof)
    (begin, end), slots, requests = reach(proof), proof.get("slots", ()), problem.requests
    # A request that can complete before the first price costs o, the least cost.  The
    # others arrive at most o rounds before it, so the table begins with few prices of 0.
    kinds = Counter(request for request in requests if request.arrival + request.output > begin)
    first = min([begin, *(request.arrival for request in kinds)])
    longest = max((request.output for request in kinds), default=0)
    steps = 60 * len(slots) * (end - begin)
    if kinds:  # tables of prices of tokens, and of each threshold of slots
        length = end - first + min(longest, end - first)
        steps += (50 + 15 * (length >> SMALL).bit_length()) * length + 30 * len(kinds)
        steps += (500 + 60 * length) * sum(1 + each["count"] for each in slots)

    def value() -> int:
        scale: int = proof["denominator"]
        lines = [(each["count"], _slot_prices(proof, each)) for each in slots]
        paid = problem.memory * sum(proof["numerators"])
        paid += sum(many * sum(line) for many, line in lines)
        total: int = scale * sum(request.output for request in requests) - problem.used * paid
        if not kinds:
            return -(-total // scale)
        prices = [0] * (proof["first"] - 1 - first) + proof["numerators"]
        prices += [0] * (end - first - len(prices))
        stairs: dict[int, list[int]] = {}
        for many, line in lines:
            line = [0] * (proof["borders"][0] - first) + line
            for number in range(1, many + 1):
                threshold = -(-number * (problem.memory + 1) // (many + 1))
                stairs[threshold] = list(map(add, stairs.get(threshold, repeat(0)), line))
        costs = Costs(scale, prices, longest, work, problem.block, sorted(stairs.items()))
        for (arrival, prompt, output), times in kinds.items():
            least = costs.least(arrival - first, prompt, output)
            if problem.pauses:
                least = costs.paused(arrival - first, prompt, output, least)
            total += times * least
        return -(-total // scale)

    how = "prices" + " of tokens and slots" * (proof["kind"] == "slot-prices")
    how += " of whole blocks" * (problem.block > 1)
    return steps, lambda: (value(), how)


def _slot_prices(proof: dict[str, Any], slot: dict[str, Any]) -> list[int]:
    """Return the prices of a slot at the times after the first border, up to the last.

    Between the borders b and b' with the prices q and q' the price at t is

        q + (t - b) ceil((q' - q) / (b' - b))    for b < t <= b',

    which is at least the straight line from q to q', so it is not negative.
    """
    prices = []
    pairs = paired(pairwise(proof["borders"]), pairwise(slot["numerators"]))
    for (begin, end), (low, high) in pairs:
        slope = -((low - high) // (end - begin))
        prices += [low + n * slope for n in range(1, end - begin + 1)]
    return prices


class Sums:
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


class Costs(Sums):
    """Least costs of requests under such prices; q_t = 0 after T.

    After T nothing is paid and waiting only costs latency, so k runs over a .. T, T included.

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
        """Return b, min r, c and max E - min E for the times ``begin + 1 .. begin + 2 half``."""
        middle, end = (min(begin + part * half, len(fine)) for part in (1, 2))
        slope = (self.paid[end] - 2 * self.paid[middle] + self.paid[begin] << self.shift) // half**2
        rest = list(map(sub, fine[begin:end], count(slope * (begin + 1), slope)))
        sums = list(accumulate(rest))
        mean = sums[-1] // len(rest)
        rough = list(map(sub, sums, count(mean, mean)))
        return slope, min(rest), mean, max(0, max(rough)) - min(0, min(rough))

    def least(self, arrival: int, prompt: int, output: int) -> int:
        """Return the least cost of a request over all its starts, its output left out."""
        if arrival >= self.last:
            return 0
        output = min(output, self.last)  # after it no start pays
        peak = prompt + output
        volume = prompt * output + output * (output + 1) // 2
        moment = output * (output + 1) * (3 * prompt + 2 * output + 1) // 6  # sum_j j (s + j)
        wait = self.scale << self.shift
        best = wait * (self.last - arrival)
        blocks = [(0, arrival, self.last + 1)]
        steps = self._steps(prompt, peak)
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
        return best >> self.shift

    def _steps(self, prompt: int, peak: int) -> list[tuple[int, list[int]]]:
        """Return the sums of prices that a request pays, each after so many rounds.

        The thresholds that its first token reaches are one table.
        """
        first = bisect_right(self.thresholds, prompt + 1)
        final = bisect_right(self.thresholds, peak)
        later = self.stairs[first:final]
        steps = [(0, self.reached[first - 1])] if first else []
        return steps + [(tokens - prompt - 1, sums) for tokens, sums in later]

    def paused(self, arrival: int, prompt: int, output: int, most: int) -> int:
        """Return the least cost if the request may pause; ``most`` is that without pauses, U.

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
        last = min(most // self.scale, max(0, self.last - arrival)) + output
        if rise >= last:
            return most
        prices = self.prices[arrival : arrival + last]
        prices += [0] * (last - len(prices))
        falling = Sums(self.scale, [*accumulate(prices, min)])
        costs = enumerate(falling.of_starts(0, last - output + 1, 0, prompt, output))
        end = max((output + c for c, cost in costs if cost < most), default=0)
        slack = end - output + 1
        self.work.spend(10 * last + 5 * output * max(0, slack) * (rise < end))
        if rise >= end:
            return most
        made = [0] * slack
        for j in range(output):
            tokens = -(-(prompt + j + 1) // self.block) * self.block
            paid = map(mul, prices[j : j + slack], repeat(tokens))
            made = list(map(add, accumulate(made, min), paid))
        best: int = min(map(add, made, count(0, self.scale)))
        return min(best, most)

    def shared(self, arrival: int, output: int, unit: int, line: Sequence[int]) -> int:
        """Return the least cost if ``line`` are the prompt tokens that it pays for at each time.

        These tokens h_t, and the cost, count in 1 / U.  So a start at k costs

            U (D (k - a) + sum_j p_{k+j} j) + sum_j p_{k+j} h_{k+j}.

        No start is cheaper than its wait.  After the last price a later start only costs more.
        """
        scale, output = unit * self.scale, min(output, self.last)
        best, size = scale * max(0, self.last - arrival), max(CHUNK, output)
        for begin in range(arrival, self.last, size):
            if scale * (begin - arrival) >= best:
                break
            end = min(begin + size, self.last)
            self.work.spend(12 * (end - begin) + 5 * output)
            there = slice(begin, end + output)
            paid = [*accumulate(map(mul, self.prices[there], line[there]), initial=0)]
            costs = map(mul, repeat(unit), self.of_starts(begin, end, arrival, 0, output))
            best = min(best, *map(add, costs, map(sub, paid[output:], paid)))
        return best


def by_shared_prices(problem: Problem, proof: dict[str, Any], work: Work) -> Prepared:
    """Prepare the bound of prices of tokens and shares of nodes.

    Let user i of node v pay for the share l_iv(t) >= 0 at time t.  Let the shares of all of its
    users that can be active together at a time sum to 1 at most.  Then active requests A, started
    at k_i, pay at time t for

        sum over A of (u_i + t - k_i + sum_v l_iv(t) w_v)  <=  what they hold  <=  M

    tokens: with a price p_t >= 0 for each, no more than M p_t.  Hence no total latency is below
    the sum of the least costs of all requests, latency and payment, less M sum_t p_t.

    Users that are active at time t have arrived before t, and at most K users of v can be active
    together, see `held_together`.  So it suffices that the K largest shares of those that have
    arrived before the end of an interval sum to 1 at most.
    """
    check_prices(proof)
    borders, unit = proof["borders"], proof["unit"]
    if unit < 1 or any(len(row) != len(borders) - 1 or min(row) < 0 for row in proof["shares"]):
        raise Invalid("lower: shares have a unit of at least 1, and none is negative or missing")
    before, requests = proof["first"] - 1, problem.requests
    begin = min([before, *(request.arrival for request in requests)])
    last = before + len(proof["numerators"]) - begin

    def value() -> int:
        memory, private, most = held_together(problem)
        levels, scale = _levels(problem, proof, private, most), int(unit * proof["denominator"])
        total: int = -problem.used * memory * unit * sum(proof["numerators"])
        prices = [0] * (before - begin) + proof["numerators"]
        longest = max((request.output for request in requests), default=0)
        costs = Costs(proof["denominator"], prices, longest, work)
        end = len(costs.prices)
        ends = [min(max(border - begin, 0), end) for border in borders]
        lengths = list(map(sub, [*ends, end], [0, *ends]))
        for (arrival, _, output), own, row in paired(requests, private, levels):
            total += scale * output
            if any(row):
                work.spend(end)
                tokens = [unit * own, *(unit * own + more for more in row), unit * own]
                line = list(chain.from_iterable(map(repeat, tokens, lengths)))
                total += costs.shared(arrival - begin, output, unit, line)
            else:
                total += unit * costs.least(arrival - begin, own, output)
        return -(-total // scale)

    steps = 200 * (last + len(requests) + (len(borders) + 9) * len(proof["shares"]))
    return steps, lambda: (value(), "prices of tokens and shared blocks")


def _levels(
    problem: Problem, proof: dict[str, Any], private: list[int], most: dict[int, int]
) -> list[list[int]]:
    """Return the tokens of nodes that each request pays for in each interval, times the unit."""
    rows, users, levels = iter(proof["shares"]), defaultdict(list), list[list[int]]()
    ends = proof["borders"][1:]
    for request, path in paired(problem.requests, problem.paths or [()] * len(private)):
        level = [0] * len(ends)
        for v in path:
            if v in most:
                row = next(rows, None)
                if row is None:
                    raise Invalid("lower: has not a share of each node for each of its users")
                users[v].append([part * (request.arrival < end) for part, end in paired(row, ends)])
                level = [known + part * problem.nodes[v] for known, part in paired(level, row)]
        levels.append(level)
    refuse([*rows], "lower: has not a share of each node for each of its users")
    for v, shares in users.items():
        for interval in zip(*shares):
            if sum(sorted(interval)[-most[v] :]) > proof["unit"]:
                raise Invalid("lower: shares of users that can be active together pass 1")
    return levels
