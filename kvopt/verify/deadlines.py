"""Check ceilings on the number of requests that meet a deadline."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from operator import itemgetter, le
from typing import Any

from kvopt.verify.problem import LARGEST_FIELD, Problem, Request
from kvopt.verify.runs import checked_run, uncovered
from kvopt.verify.seconds import part_of
from kvopt.verify.work import Invalid, Work, ascend, paired, pairwise, quoted, refuse


def check_in_time(
    certificate: dict[str, Any], problem: Problem, reached: Sequence[list[int] | None], work: Work
) -> tuple[str, list[str]]:
    """Check the number of requests in time; return checked and proved claims.

    Request i attains if it completes, or has its first token, by ``d_i``: so long after its
    arrival.  The runs ``reached`` these times.
    """
    claim, scope, work.part = certificate["deadlines"], certificate["scope"], "deadlines: "
    first, ceiling, best = claim["aim"] == "first-token", claim["ceiling"], claim["best"]
    due = _due(certificate, problem)
    proved, misses = most_in_time(problem, claim["proof"], due, work, first=first)
    if ceiling < proved:
        raise Invalid(f"deadlines: says at most {ceiling:,}, the proof gives {proved:,}")
    runs = certificate.get("policies", [])
    if len(claim["attained"]) != len(runs):
        raise Invalid("deadlines: needs a number, or null, for each policy")
    counted: list[tuple[str, list[int] | None, int | None]]
    counted = [*paired(map(itemgetter("policy"), runs), reached, claim["attained"])]
    if best is not None:
        used = uncovered(best, scope)
        refuse(used, f"deadlines: the best has {used}, which the scope does not cover")
        _, times = checked_run(problem, best, "deadlines", work, first=first)
        counted.append(("best in time", times, best["attained"]))
    for name, ends, attained in counted:
        found = None if ends is None else sum(map(le, ends, due))
        if attained != found:
            raise Invalid(f"deadlines: {quoted(name)} says {attained} attain, {found} do")
    if best and best["attained"] > ceiling:
        raise Invalid("deadlines: more attain than the ceiling, an error of the checker itself")
    within, after = "by a deadline of their own", claim["after"]
    if isinstance(after, int):
        seconds = f"{after // 10**9:,}.{after % 10**9:09} s"
        length = f"{after:,} rounds" if problem.clock is None else seconds
        within = f"within {length} of their arrival"
    aim = "have their first token" if first else "complete"
    said = f"  at most {ceiling:,} of {len(due):,} requests can {aim} {within}"
    said += f"; {misses:,} cannot even alone" if misses else ""
    lines = [said, *([f"  a schedule does for {best['attained']:,}"] if best else [])]
    for run, attained in paired(runs, claim["attained"]):
        if attained is not None:
            used = uncovered(run, scope)
            beyond = f" with {used}, which the ceiling does not cover" if used else ""
            lines.append(f"  {quoted(run['policy'])} does for {attained:,}{beyond}")
    return f"  deadlines: the ceiling {ceiling:,}: its proof by prices gives {proved:,}", lines


def _due(certificate: dict[str, Any], problem: Problem) -> list[int]:
    """Return the deadline of each request as a time; its own deadline counts rounds."""
    instance, after = certificate["instance"], certificate["deadlines"]["after"]
    rows, length = instance["requests"], Fraction(1)
    if isinstance(after, int):
        refuse(not 0 <= after <= LARGEST_FIELD, "deadlines: needs a length of time")
        return [request.arrival + after for request in problem.requests]
    has_all = all("deadline" in row for row in rows)
    refuse(not has_all, "deadlines: a request has none of its own")
    if problem.clock is not None:
        refuse("round_ms" not in instance, "deadlines: rounds have no length")
        length = Fraction(instance["round_ms"]) * 1_000_000
    own = (math.floor(row["deadline"] * length) for row in rows)
    return [request.arrival + most for request, most in paired(problem.requests, own)]


def most_in_time(
    problem: Problem, proof: dict[str, Any], due: list[int], work: Work, *, first: bool
) -> tuple[int, int]:
    """Return an upper bound on the requests that attain, and how many cannot even alone.

    *Rounds.*  Let a token held at time t cost p_t >= 0, and let g_i be the least that a run of
    request i costs if it attains.  On m workers a schedule holds at most m M tokens, so those that
    attain pay at most m M sum_t p_t together.  Each counts 1 <= max(0, 1 - g_i) + g_i.  So at most
    sum_i max(0, 1 - g_i) + m M sum_t p_t attain.  With pauses it costs at least its
    cheapest times, as many as it is active, with the largest holdings at the cheapest of them.

    *Seconds.*  Prices are of time of a machine.  Each worker serves requests at rates that sum to
    at most 1, each at most at 1, so m of them sell m times the prices; request i takes X_i, see
    `by_shares`: at least its X_i cheapest nanoseconds.  For a first token X_i is that of the
    first round, which is a request that produces one token.
    """
    borders, prices, one = proof["times"], proof["numerators"], proof["denominator"]
    memory, clock, chosen = problem.memory, problem.clock, sorted(set(proof.get("lines", [])))
    if one < 1 or min(prices, default=0) < 0 or len(prices) != max(len(borders) - 1, 0):
        raise Invalid("deadlines: needs a denominator, and between borders no negative price")
    refuse(not ascend(borders), "deadlines: the borders of prices must ascend")
    refuse(clock is None and chosen, "deadlines: rounds have no lines")
    refuse(clock and not clock.has(chosen), "deadlines: needs lines of the model")
    is_uneven = clock and problem.chunks and len(chosen) > 1
    refuse(is_uneven, "deadlines: several lines do not cover prompts in pieces")
    table = TimePrices(borders, prices)
    total, misses = problem.workers * memory * table.paid[-1], 0
    ends = (end + first * r.output for r, end in paired(problem.requests, due))
    cells = (table.cells(r.arrival, end) for r, end in paired(problem.requests, ends))
    work.spend(90 * sum(max(0, right - left) for left, right in cells))
    for request, end in paired(problem.requests, due):
        arrival, prompt, _ = request
        brief = request._replace(output=1) if first else request
        if clock is None:
            alone = amount = brief.output
            most, slope, rate = prompt + amount, 1, 1
        else:
            amount, _, alone = part_of(memory, brief, clock, chosen, brief.prompt)
            most, slope, rate = 1, 0, memory
        if arrival + alone > end:
            misses += 1
            continue
        if clock is None and not problem.pauses:  # a run continues after its first token
            cost = table.of_run(request, end - brief.output)
        else:
            cost = table.of_cheapest(arrival, end, amount, most, slope, rate)
        total += max(0, one - cost)
    return min(total // one, len(due) - misses), misses


class TimePrices:
    """Prices that are constant between borders, and 0 before the first and after the last."""

    def __init__(self, borders: list[int], prices: list[int]) -> None:
        # So each time is in a cell, since none is negative.
        borders = borders or [0]
        early = [0] * (borders[0] > 0)
        self.borders, self.prices = [*early, *borders], [*early, *prices, 0]
        cells = [*zip(self.prices, pairwise(self.borders))]
        self.paid = [*accumulate((p * (b - a) for p, (a, b) in cells), initial=0)]
        self.moments = [*accumulate((p * _sum_of_times(*cell) for p, cell in cells), initial=0)]

    def cells(self, begin: int, end: int) -> tuple[int, int]:
        """Return the range of the prices that the times begin + 1 .. end touch."""
        return bisect_right(self.borders, begin) - 1, bisect_left(self.borders, end)

    def sums(self, time: int) -> tuple[int, int]:
        """Return the sums of p_t and of t p_t up to a time."""
        cell = bisect_right(self.borders, time) - 1
        begin, price = self.borders[cell], self.prices[cell]
        paid = self.paid[cell] + price * (time - begin)
        return paid, self.moments[cell] + price * _sum_of_times(begin, time)

    def after(self, time: int) -> int:
        """Return the price of the time that follows."""
        return self.prices[bisect_right(self.borders, time) - 1]

    def of_start(self, request: Request, start: int) -> int:
        """Return sum_{j=1..o} p_{k+j} (s + j) = sum p_t (s - k) + sum p_t t."""
        paid, moment = self.sums(start)
        more, later = self.sums(start + request.output)
        return (request.prompt - start) * (more - paid) + later - moment

    def of_run(self, request: Request, latest: int) -> int:
        """Return the least cost over the starts from the arrival to the latest.

        A step from k to k + 1 moves the run past each border b in k + 1 .. k + o, at which the
        price jumps by D_b, and adds sum_b D_b (s + b - k).  So as long as neither begin nor end
        passes a border, the second difference is -sum_b D_b, the price at the begin less the one
        after the end: costs are least at an end of such a range, or where the step turns positive.
        """
        arrival, output, borders = request.arrival, request.output, self.borders
        inner = borders[bisect_right(borders, arrival) : bisect_left(borders, latest)]
        low = bisect_right(borders, arrival + output)
        ends = borders[low : bisect_left(borders, latest + output)]
        events = sorted({arrival, latest, *inner, *(end - output for end in ends)})
        costs = [self.of_start(request, start) for start in events]
        best = min(costs)
        for (begin, end), cost in zip(pairwise(events), costs):
            bend = self.after(begin) - self.after(begin + output)
            if bend > 0 and end > begin + 1:
                step = self.of_start(request, begin + 1) - cost
                if step < 0:
                    turn = min(begin - step // bend, end)
                    for start in range(max(turn - 1, begin), min(turn + 1, end) + 1):
                        best = min(best, self.of_start(request, start))
        return best

    def of_cheapest(
        self, begin: int, end: int, amount: int, top: int, slope: int, rate: int
    ) -> int:
        """Return the cost of the cheapest amount of time, ``rate`` of it in a unit.

        At the cheapest time ``top`` tokens are held, then ``slope`` less at each next one.
        """
        left, right = self.cells(begin, end)
        edges, cost = pairwise([begin, *self.borders[left + 1 : right], end]), 0
        for price, (first, last) in sorted(paired(self.prices[left:right], edges)):
            most = rate * (last - first)
            size = min(most, amount)
            cost += price * (size * top - slope * (size * (size - 1) // 2))
            top, amount = top - slope * size, amount - size
            if not amount:
                break
        return cost


def _sum_of_times(begin: int, end: int) -> int:
    """Return begin + 1 + .. + end."""
    return (end * (end + 1) - begin * (begin + 1)) // 2
