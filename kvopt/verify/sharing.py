"""Evaluate proofs by prices of tokens and of shared nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, count, repeat
from operator import add, mul, sub
from typing import Any

from kvopt.verify import definitions
from kvopt.verify.pairs import paired, pairwise
from kvopt.verify.prices import Costs, check_prices
from kvopt.verify.problem import Problem, held_together
from kvopt.verify.work import Invalid, Prepared, Work

CHUNK = 1024
"""Fewest starts that are evaluated together."""


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
    check_prices({name: proof[name] for name in ("denominator", "first", "numerators")})
    borders, unit = proof["borders"], proof["unit"]
    if len(borders) < 2 or borders[0] < 0 or any(a >= b for a, b in pairwise(borders)):
        raise Invalid("lower: shares need two borders or more, which ascend from 0 on")
    if unit < 1 or any(len(row) != len(borders) - 1 or min(row) < 0 for row in proof["shares"]):
        raise Invalid("lower: shares have a unit of at least 1, and none is negative or missing")
    before, requests = proof["first"] - 1, problem.requests
    begin = min([before, *(request.arrival for request in requests)])
    last = before + len(proof["numerators"]) - begin

    def value() -> int:
        memory, private, most = held_together(problem)
        levels, scale = _levels(problem, proof, private, most), int(unit * proof["denominator"])
        total: int = -problem.used * memory * unit * sum(proof["numerators"])
        if work.naive:
            total += definitions.shared_prices(problem, proof, levels, work)
            return -(-total // scale)
        prices = [0] * (before - begin) + proof["numerators"]
        longest = max((request.output for request in requests), default=0)
        alone = Costs(proof["denominator"], prices, longest, work)
        shared = SharedCosts(scale, unit, prices, longest, work)
        end = len(shared.prices)
        ends = [min(max(border - begin, 0), end) for border in borders]
        lengths = list(map(sub, [*ends, end], [0, *ends]))
        for (arrival, _, output), own, row in paired(requests, private, levels):
            total += scale * output
            if any(row):
                work.spend(end)
                tokens = [unit * own, *(unit * own + more for more in row), unit * own]
                line = list(chain.from_iterable(map(repeat, tokens, lengths)))
                total += shared.least(arrival - begin, output, line)
            else:
                total += unit * alone.least(arrival - begin, own, output)
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
    if next(rows, None) is not None:
        raise Invalid("lower: has not a share of each node for each of its users")
    for v, shares in users.items():
        for interval in zip(*shares):
            if sum(sorted(interval)[-most[v] :]) > proof["unit"]:
                raise Invalid("lower: shares of users that can be active together pass 1")
    return levels


class SharedCosts:
    """Least costs of requests that pay for shares of nodes, which change over time.

    With P_k = sum_{t <= k} p_t, W_k = sum_{t <= k} t p_t and Q_k = sum_{t <= k} p_t h_t, where h_t
    are the prompt tokens that it pays for at time t, a start at k costs, times D U and without
    the output,

        D U (k - a) + Q_{k+o} - Q_k + U (W_{k+o} - W_k - k (P_{k+o} - P_k)).

    No start is cheaper than its wait.  After the last price a later start only costs more.
    """

    def __init__(self, scale: int, unit: int, prices: list[int], longest: int, work: Work) -> None:
        self.scale, self.unit, self.work, self.last = scale, unit, work, len(prices)
        self.longest = min(longest, self.last)
        self.prices = prices + [0] * self.longest
        self.paid = [*accumulate(self.prices, initial=0)]
        self.moment = [*accumulate(map(mul, self.prices, count(1)), initial=0)]

    def least(self, arrival: int, output: int, line: Sequence[int]) -> int:
        """Return the least cost of a request with so many prompt tokens at each time."""
        best, output = self.scale * max(0, self.last - arrival), min(output, self.last)
        size = max(CHUNK, output)
        for begin in range(arrival, self.last, size):
            if self.scale * (begin - arrival) >= best:
                break
            end = min(begin + size, self.last)
            self.work.spend(12 * (end - begin) + 5 * output)
            best = min(best, *self._costs(arrival, begin, end, output, line))
        return best

    def _costs(
        self, arrival: int, begin: int, end: int, output: int, line: Sequence[int]
    ) -> Iterator[int]:
        """Return the costs of the starts ``begin .. end - 1``."""
        stop = end + output
        shares = [*accumulate(map(mul, self.prices[begin:stop], line[begin:stop]), initial=0)]
        paid = map(sub, self.paid[begin + output : stop], self.paid[begin:end])
        moment = map(sub, self.moment[begin + output : stop], self.moment[begin:end])
        own = map(mul, repeat(self.unit), map(sub, moment, map(mul, paid, count(begin))))
        waits = count(self.scale * (begin - arrival), self.scale)
        return map(add, map(add, own, map(sub, shares[output:], shares)), waits)
