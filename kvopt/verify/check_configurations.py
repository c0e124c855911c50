"""Evaluate proofs by stages of prices of the states of configurations, and searches under them."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate
from operator import add
from typing import Any

from kvopt.verify.certified_problem import Problem
from kvopt.verify.check_search import RepeatedSearch
from kvopt.verify.step_budget import Invalid, Prepared, Work, ascend, paired, pairwise, refuse

# A request with h tokens now and r rounds to go is in the *state* (h, r); h + r, its peak, never
# changes.  At time t a state costs F_t(h, r) >= 0, and R_t is at least the sum of the costs of all
# states that a schedule can have at t.  Times a denominator D, the cost of a start k is
#
#     D (k + o - a) + sum_{g=1..o} F_{k+g}(s + g, o - g).
#
# Let L = sum_i (least cost of i) - sum_t R_t, and *reduced cost* be cost - least.  Then
#
#     D (total latency) - L  =  sum_i (reduced cost of i) + sum_t (R_t - F_t of what is active),
#
# with no negative term on the right.  (Each worker of a fleet has states of its own, so R_t is
# that of one worker times their number.)  So no total latency is below L / D.  A schedule below
# the *target* has at most the *budget* (target - 1) D - L on the right: it has no start of more
# reduced cost.  Later stages need to hold only for schedules with the remaining starts.
# Each request keeps its cheapest start, whose reduced cost is 0.


def by_configurations(problem: Problem, proof: dict[str, Any], work: Work) -> Prepared:
    """Prepare the value of stages of prices, one after the other.

    The estimate ignores remaining copies of states, and a search.
    """
    stages = _stages(problem, proof, work)
    return sum(stage.steps() for stage in stages), lambda: _value(problem, proof, stages, work)


def _value(
    problem: Problem, proof: dict[str, Any], stages: Sequence[Stage], work: Work
) -> tuple[int, str]:
    """Return the value of stages of prices, and a description.

    Without a target no start is removed, so costs of one peak at a time suffice.
    """
    target, cuts, searched = proof["target"], proof.get("cuts", ()), proof["searched"]
    refuse(searched and problem.used > 1, "lower: a search is of one worker")
    refuse(cuts and not searched, "lower: cuts are those of a search")
    requests, last, times, how = stages[0].requests, stages[0].last, 0, ""
    starts: Sequence[Sequence[int]]
    # From the last priced time on a start pays nothing: the first of those represents all.
    starts = [range(request.arrival, max(request.arrival, last) + 1) for request in requests]
    for used, stage in enumerate(stages, 1):
        times += len(stage.times)
        how = f"prices of configurations at {times:,} time" + "s" * (times > 1)
        how += f" in {used:,} stages" * (used > 1)
        costs = stage.evaluate(starts)
        value = -(-stage.total // stage.scale)
        if target is None:
            return value, how
        budget = (target - 1) * stage.scale - stage.total
        if budget < 0:  # L is above target - 1
            return target, how
        pairs = [paired(*pair) for pair in paired(starts, costs)]
        left = [{k: cost for k, cost in pair if cost <= budget} for pair in pairs]
        starts = list(map(list, left))
    if not searched:
        return min(target, value), how
    search = RepeatedSearch(stage, left, target, budget, work, cuts)
    partials = search.run(proof.get("kept", ()))
    if search.completions:
        how += f", {search.completions.size:,} sets of states"
    return target, f"{how} and a search of {partials:,} partial schedules, none below {target:,},"


def _stages(problem: Problem, proof: dict[str, Any], work: Work) -> list[Stage]:
    """Return the stages of prices of states of a proof."""
    target = proof["target"]
    stages = [Stage(problem, stage, target is not None, work) for stage in proof["stages"]]
    if not stages or (target is None and (len(stages) > 1 or proof["searched"])):
        raise Invalid("lower: must have a stage, and just one and no search without a target")
    ends = {stage.times[-1] for stage in stages}
    refuse(len(ends) > 1, "lower: the stages must have the same last time")
    return stages


class Stage:
    """Prices of the states of each [peak, rounds], those with r < rounds.

    A row of ``numerators`` has the prices at one of the ``times``: peak by peak, r upwards.
    Other states cost 0, and so do all states before the first time and after the last.  At times
    t between two neighbours a and b the price is ((b - t) F_a + (t - a) F_b) // (b - a).

    Times count from the first arrival.  Until then nothing can be active, so R is 0.  ``last`` is
    the last time with a price, or 0; ``largest`` are R up to it; ``total`` is L.
    """

    def __init__(self, problem: Problem, stage: dict[str, Any], keep: bool, work: Work) -> None:
        self.memory, self.used, self.work = problem.memory, problem.used, work
        self.scale: int = stage["denominator"]
        self.offset = min((request.arrival for request in problem.requests), default=0)
        self.requests = [r._replace(arrival=r.arrival - self.offset) for r in problem.requests]
        self.total, self.largest = 0, list[int]()
        self.rows: list[list[int]] = stage["numerators"]
        self.keep = keep
        peaks, times = stage["peaks"], stage["times"]
        first = min([self.scale, *times]) if times else 0
        refuse(first < 1, "lower: needs a denominator and times of at least 1")
        refuse(not ascend(times), "lower: times must ascend")
        is_formed = all(len(pair) == 2 and pair[1] >= 0 for pair in peaks)
        refuse(not is_formed, "lower: peaks must be pairs [peak, rounds]")
        self.times = [time - self.offset for time in times]
        ends = list(accumulate((rounds for _, rounds in peaks), initial=0))
        self.places = {p: range(end - n, end) for (p, n), end in paired(peaks, ends[1:])}
        refuse(len(self.places) < len(peaks), "lower: a peak is listed twice")
        is_full = [len(row) for row in self.rows] == [ends[-1]] * len(times)
        refuse(not is_full, "lower: needs a price of each state at each of the times")
        lowest = min((min(row, default=0) for row in self.rows), default=0)
        refuse(lowest < 0, "lower: no price may be negative")
        self.last = max(0, self.times[-1])
        self.alike: dict[int, list[int]] = defaultdict(list)  # positions of requests by peak
        for i, request in enumerate(self.requests):
            self.alike[request.prompt + request.output].append(i)
        # The price at a time has weight strictly between its neighbours.
        around = [0, *self.times, self.times[-1] + 1]
        self.windows = [(max(0, a), b) for a, b in paired(around[:-2], around[2:])]

    def evaluate(self, starts: Sequence[Sequence[int]]) -> list[list[int]]:
        """Set R and L, and return the reduced costs of starts."""
        costs, self.largest[0] = self.costs(starts), 0
        lowest = list(map(min, costs))
        self.total = sum(lowest) - sum(self.largest)
        return [[cost - low for cost in row] for row, low in paired(costs, lowest)]

    def price(self, time: int, peak: int, r: int) -> int:
        """Return the price of a state at a time up to the last."""
        places, x = self.places.get(peak, range(0)), bisect_right(self.times, time) - 1
        if x < 0 or r >= len(places):
            return 0
        knot, price = self.times[x], self.rows[x][places[r]]
        if time == knot:
            return int(price)
        gap, later = self.times[x + 1] - knot, self.rows[x + 1][places[r]]
        return int(((gap - time + knot) * price + (time - knot) * later) // gap)

    def steps(self) -> int:
        """Estimate the steps of costs and R, except those that depend on the remaining copies."""
        many = max(map(len, self.alike.values()), default=0)
        kept = len(self.requests) if self.keep else many
        rounds = sum(len(self._rounds(peak)) for peak in self.alike)
        last: int = self.last
        tables = 200 * last * (kept + 9) + 15 * (last + 1) * len(self.requests)
        return tables + rounds * (6 * last + 30 * len(self.times))

    def _rounds(self, peak: int) -> range:
        """Return the places of the prices of a peak that its requests reach."""
        places = self.places.get(peak, range(0))
        return places[: max(self.requests[i].output for i in self.alike[peak])]

    def costs(self, starts: Sequence[Sequence[int]]) -> list[list[int]]:
        """Set R and return the cost of each start, or of the cheapest ones only."""
        costs: list[list[int]] = [[]] * len(starts)
        states = [state for peak in self.alike for state in self._along(peak, starts, costs)]
        states.sort(reverse=True)
        heaviest = []
        for x, row in enumerate(self.rows):
            priced = [(r, h, row[i], many[x]) for r, h, i, many in states if row[i] and many[x]]
            heaviest.append(self.used * _heaviest(self.memory, priced, self.work))
        # Rounded down as well: the cost of states is an integer, at most the interpolation.
        self.largest = _filled(self.times, heaviest)
        return costs

    def _along(
        self, peak: int, starts: Sequence[Sequence[int]], costs: list[list[int]]
    ) -> list[tuple[int, int, int, list[int]]]:
        """Set the costs of the requests of one peak, or keep the least; return the peak's states.

        A state is (r, h, place, copies).  A request that completes at c is in the state of r at
        the time c - r.  ``paid[c]`` is the sum of those prices below some r; ``ends[c]`` counts the
        requests of more than r rounds that may complete at c.  So at time t at most ends[t + r]
        are in the state of r: the largest of those counts in a window limits its copies in R.
        """
        places, last, scale = self._rounds(peak), self.last, self.scale
        outputs = {i: self.requests[i].output for i in self.alike[peak]}
        waiting = sorted(outputs, key=lambda i: -outputs[i])
        rounds = len(places)
        paid, ends = ([0] * (2 * last + rounds + 1) for _ in range(2))
        done = {}  # from last + rounds on starts pay nothing, and may count as one
        for i in outputs:
            done[i] = [min(k, last) + min(outputs[i], last + rounds) for k in starts[i]]
            for c in done[i]:
                ends[c] += 1
        states = []
        for r in range(rounds + 1):
            while waiting and (r == rounds or outputs[waiting[-1]] == r):
                i = waiting.pop()
                for c in done[i]:
                    ends[c] -= 1
                delay = outputs[i] - self.requests[i].arrival
                pairs = paired(starts[i], done[i])
                costs[i] = [scale * (k + delay) + paid[c] for k, c in pairs]
                if not self.keep:
                    costs[i] = [min(costs[i])]
            if r < rounds:
                column = _filled(self.times, [row[places[r]] for row in self.rows])
                paid[r : r + last + 1] = map(add, paid[r : r + last + 1], column)
                copies = [max(ends[a + 1 + r : b + r]) if a + 1 < b else 0 for a, b in self.windows]
                states.append((r, peak - r, places[r], copies))
        return states


def _filled(times: list[int], values: list[int]) -> list[int]:
    """Return the values at 0, 1, ..: 0 before the times, interpolated and rounded in between."""
    line = [0] * times[0]
    for (a, low), (b, high) in pairwise(paired(times, values)):
        if b > 0:
            gap, step, skip = b - a, high - low, max(0, -a)
            begin, end = low * gap + skip * step, high * gap
            points = range(begin, end, step) if step else [begin] * (gap - skip)
            line += [point // gap for point in points]
    return [*line, values[-1]] if times[-1] >= 0 else [0]


def _heaviest(memory: int, states: list[tuple[int, int, int, int]], work: Work) -> int:
    """Return the largest weight of states (r, h, weight, copies) that fit together.

    They come by r descending.  A member fits if memory suffices when it completes, when those
    before it are still active: H + h + (c + 1) r <= M, where H is the sum of the h of these c.
    ``best[c][H]`` is the weight of some members that fit, at most c and with a sum of at most
    H, and is at least that of all with exactly c and H.
    """
    if not states:
        return 0
    members = min(sum(state[3] for state in states), memory // min(state[1] for state in states))
    steps, low = 20 + 29 * (members + 1) * (memory + 1), memory
    moves: list[tuple[int, int, int, range, int]] = []
    for r, h, weight, copies in states:
        low = min(low, h)
        # With c members H is at least c low, and leaves room for one more.
        sizes = range(memory - h - r + 1, 0, -low - r)[:members]
        passes = copies if copies < memory // (h + r) else 0
        steps += (12 * len(sizes) + 2 * sum(sizes)) * max(passes, 1)
        moves.append((h, weight, low, sizes, passes))
    work.spend(steps)
    best = [[0] * (memory + 1) for _ in range(members + 1)]
    for h, weight, low, sizes, passes in moves:
        # Ascending counts may add a state repeatedly, descending ones add one copy.
        counts = list(enumerate(sizes))
        for c, size in counts[::-1] * passes if passes else counts:
            begin, end = c * low, c * low + size
            fewer, more = best[c], best[c + 1]
            pairs = paired(fewer[begin:end], more[begin + h : end + h])
            more[begin + h : end + h] = [
                new if (new := old + weight) > before else before for old, before in pairs
            ]
    return max(map(max, best))
