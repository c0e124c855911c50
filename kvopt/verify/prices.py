"""Evaluate proofs by prices of tokens, of whole blocks, and of slots."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import accumulate, count, repeat
from operator import add, mul, sub
from typing import Any

from kvopt.verify import definitions
from kvopt.verify.pairs import paired, pairwise
from kvopt.verify.problem import Problem
from kvopt.verify.work import Invalid, Prepared, Work

SMALL = 6
"""The starts of a block of 2^6 are evaluated one by one."""


def check_prices(proof: dict[str, Any]) -> None:
    """Refuse prices of tokens, and of slots, of a wrong form."""
    if proof["denominator"] < 1 or proof["first"] < 1 or min(proof["numerators"], default=0) < 0:
        raise Invalid("lower: needs a denominator and times of at least 1, and no negative price")
    borders, slots = proof.get("borders", []), proof.get("slots", ())
    if "borders" in proof and (
        len(borders) < 2 or borders[0] < 0 or any(a >= b for a, b in pairwise(borders))
    ):
        raise Invalid("lower: slots need two borders of prices or more, which ascend from 0 on")
    for each in slots:
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
        paused = PausedCosts(scale, prices, work, problem.block) if problem.pauses else None
        for (arrival, prompt, output), times in kinds.items():
            least = costs.least(arrival - first, prompt, output)
            if paused is not None:
                least = paused.least(arrival - first, prompt, output, least)
            total += times * least
        return -(-total // scale)

    how = {"slot-prices": "prices of tokens and slots"}.get(proof["kind"], "prices")
    how = "prices of whole blocks" if problem.block > 1 else how
    return steps, lambda: (definitions.prices(problem, proof, work) if work.naive else value(), how)


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
        prices = prices + [0] * min(longest, self.last)  # so that k + o is in the tables
        super().__init__(scale, prices, block)
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


class PausedCosts:
    """Least costs of requests that may pause: token j costs p_t (s + j), at ascending times t.

    With whole blocks it costs ``p_t B ceil((s + j) / B)``, which is no less.

    Let U be the least cost without pauses.  A completion more than U / D after the arrival costs
    more than U.  After T, the last time with a price, and o tokens later, waiting only costs
    latency.  So completions c lie in a window that begins with the arrival.

    Let q_t be the least price from the arrival to t.  It never rises, so under q the
    cheapest run produces the o tokens before c without a pause, and it costs no less under p.  A
    completion where this is U or more is skipped.  If the prices themselves never rise up to the
    last other completion, pauses do not help.  Else token by token,

        m_j(t) = min(m_j(t - 1), p_t (s + j) + m_{j-1}(t - 1))

    is the least price of the first j tokens, produced by t.
    """

    def __init__(self, scale: int, prices: list[int], work: Work, block: int) -> None:
        self.scale, self.prices, self.work, self.block = scale, prices, work, block
        self.rises = [t for t, (now, after) in enumerate(pairwise(prices), 1) if now < after]

    def least(self, arrival: int, prompt: int, output: int, most: int) -> int:
        """Return the least cost without its output times D; ``most`` is the cost without pauses."""
        place = bisect_right(self.rises, arrival)
        rise = self.rises[place] - arrival if place < len(self.rises) else math.inf
        last = min(most // self.scale, max(0, len(self.prices) - arrival)) + output
        if rise >= last:
            return most
        prices = self.prices[arrival : arrival + last]
        prices += [0] * (last - len(prices))
        falling = Sums(self.scale, [*accumulate(prices, min)])
        costs = enumerate(falling.of_starts(0, last - output + 1, 0, prompt, output))
        end = max((output + c for c, cost in costs if cost < most), default=0)
        has_pauses = rise < end
        self.work.spend(10 * last + 5 * output * max(0, end - output + 1) * has_pauses)
        return min(most, self._with_pauses(prices[:end], prompt, output)) if has_pauses else most

    def _with_pauses(self, prices: list[int], prompt: int, output: int) -> int:
        slack = len(prices) - output
        held = [-(-(prompt + j) // self.block) * self.block for j in range(1, output + 1)]
        made = [0] * (slack + 1)
        for j, tokens in enumerate(held):
            prices_of = map(mul, prices[j : j + slack + 1], repeat(tokens))
            made = list(map(add, accumulate(made, min), prices_of))
        best: int = min(map(add, made, count(0, self.scale)))
        return best
