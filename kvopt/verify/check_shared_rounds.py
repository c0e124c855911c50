"""Evaluate proofs in seconds: rounds that active requests share."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import accumulate
from operator import mul
from typing import Any

from kvopt.verify.certified_problem import Problem, surely_processed
from kvopt.verify.check_backlog import FINE, Waiting, charge_backlog
from kvopt.verify.check_prices import Cell, cheapest_cost
from kvopt.verify.check_seconds import by_memory_of
from kvopt.verify.step_budget import Invalid, Prepared, Work, paired, refuse


def by_shared_rounds(problem: Problem, proof: dict[str, Any], work: Work) -> Prepared:
    """Prepare the bound of prices of rounds and of machine time.

    A *row* is a set of lines of the model; f(b) is their largest value for b tokens, and
    f(b) - f(0) is superadditive.  A round lasts at least f(0) and the sum of its requests' works by
    the row, f(b) - f(0) + prompt_ns S + kv_ns h.  Serve everything in a round evenly over its
    length: request i at x_i = 1 / length if it yields a token, the round at phi = 1 / length.  So

        for each row  f(0) phi + sum of works <= 1,   x_i <= phi,   sum of x_i h_i <= M phi,

    and with a limit of K active requests the sum of x_i is at most K phi.  With prices L of the
    machine by each row, p_i of rounds, v of tokens and s of active requests, such that

        sum of p_i + v M + s K <= sum of L f(0) over the rows          at each time,

    the integral of L, times the number of machines, is at least what requests pay: p_i + v h_i + s
    and L of its work in each round.  So total latency is at least what the cheapest services and
    completions cost, latency included, less that integral.  Request i has ``output`` rounds, of
    which a nanosecond holds 1 / (its least length) at most; its prompt comes before the last
    ``output`` - 1 of them, and it completes after its arrival + E, its time alone.

    *Interference.*  Its latency is at least E and the works of others by all lines that are served
    in the window of E after its arrival, on one machine.  A share of it is bounded so, which makes
    works in the window dearer; its own works in it are at most all of them.

    Of the shares ``grown`` prompts interfere by `charge_backlog`, works of tokens in the window.

    *Pieces.*  With prompts in pieces a row is one line, so that works are linear; and in
    interference a token of a prompt counts f(1) - f(0).

    *Prefixes.*  Requests hold shares of prefixes, and process private tokens alone.  With
    ``block_shares`` they hold all of their prompts, and those that yield a token in a round hold at
    least their private tokens and a part of each block: the users that have arrived have weights,
    constant over ``period`` cells, and such a part is that of its weight in their sum.  Each node
    is processed after its first user arrives, and before this user has a token, if in pieces: rows
    are then single lines.  It may be processed at another time than the prompt of that user, so
    each has a minimum of its own.

    Times are cut into cells with constant prices.  p_i is ``fixed`` at the arrival and ``slopes``
    less in each nanosecond, taken at the begin of a cell.  The first row is raised until prices of
    rounds are paid; what is left of the fixed parts goes to tokens and active requests.
    """
    weights = proof.get("block_shares", [])
    steps = 200 * len(problem.requests) + 40 * sum(map(len, proof["row_prices"]))
    steps += 8 * sum(len(row) * len(path) for row, path in zip(weights, problem.paths))
    return steps, lambda: (_Bound(problem, proof, work).value(), "shared rounds")


class _Bound:
    """The prices of a proof, and what requests pay at them; all over ``unit``.

    ``charged`` are all shares in 64 parts, ``left`` those of ``grown`` that charge works of tokens
    in times alone, ``added`` what the backlog adds.  ``held`` are the tokens of a first round by
    periods of cells.  Block shares replace ``fresh``, ``nodes``, ``held`` and ``period``.
    """

    def __init__(self, problem: Problem, proof: dict[str, Any], work: Work) -> None:
        assert problem.clock is not None, "shared rounds are of a clock in seconds"
        self.problem, self.clock, self.work = problem, problem.clock, work
        requests = problem.requests
        self.rows, self.prices = proof["rows"], proof["row_prices"]
        self.unit, self.cell = proof["unit"], proof["cell"]
        self.counts = list(problem.weights or (1,) * len(requests))
        self.fixed, self.slopes = proof["fixed"], proof["slopes"]
        self.interference = proof["interference"]
        self.grown = proof.get("grown") or [0] * len(self.counts)
        self.charged = [share + more for share, more in zip(self.interference, self.grown)]
        self.first = min((request.arrival for request in requests), default=0)
        self.arrivals = [request.arrival - self.first for request in requests]
        self.fresh = list(problem.fresh or [request.prompt for request in requests])
        self.nodes, self.period = [list[int]() for _ in requests], 1 << 62
        self.held = [[request.prompt + 1] for request in requests]
        by_memory, blocks = by_memory_of(problem, proof), proof.get("block_shares")
        self._check()
        self.length, self.token = len(self.prices[0]), self.clock.line(1) - self.clock.line(0)
        self.in_pieces = problem.chunks or bool(blocks)
        both = self.in_pieces and bool(proof.get("grown"))
        refuse(both, "lower: the backlog is one of whole prompts, without block shares")
        if blocks:
            self._share(blocks, proof.get("period", 0))
        # Times alone need the block shares, the backlog these times, and prices all of them.
        self.alone = [self._alone(i) for i in range(len(requests))]
        self.works = [self._prompts(fresh) for fresh in self.fresh]
        self.left, self.added = [share * (self.unit // 64) for share in self.grown], 0
        if proof.get("grown"):
            self._charge_backlog(proof.get("backlog", []), proof.get("waits", []))
        self._price(by_memory)

    def _share(self, weights: list[list[int]], period: int) -> None:
        """Compute the tokens that requests count in each period of cells."""
        problem, length = self.problem, period * self.cell
        if not problem.paths or len(weights) != len(problem.requests) or period < 1:
            raise Invalid("lower: block shares need prefixes, a period and weights of each request")
        refuse(min(map(min, filter(None, weights)), default=0) < 0, "lower: a weight is negative")
        refuse(any(len(row) > 1 for row in self.rows), "lower: block shares need rows of one line")
        fresh, firsts = surely_processed(problem)
        self.fresh, self.period = list(fresh), period
        slopes = [self.clock.lines[line][1] + self.clock.prompt for (line,) in self.rows]
        self.nodes = [[slope * sum(nodes) for slope in slopes] for nodes in firsts]
        count = -(-self.length // period)
        begins = [min(arrival // length, count) for arrival in self.arrivals]
        sums = defaultdict[int, list[int]](lambda: [0] * count)
        for begin, row, path in paired(begins, weights, problem.paths):
            for v in path:
                for place, weight in enumerate(row[: count - begin], begin):
                    sums[v][place] += weight
        self.held = []
        for request, begin, row, path in paired(problem.requests, begins, weights, problem.paths):
            private = request.prompt - sum(problem.nodes[v] for v in path)
            self.held.append([private + 1] * count)
            for v in path:
                for place, weight in enumerate(row[: count - begin], begin):
                    if weight:  # rounded down: all users count no more than the node
                        self.held[-1][place] += problem.nodes[v] * weight // sums[v][place]

    def _charge_backlog(self, parts: list[list[int]], waits: list[int]) -> None:
        """Let prompts interfere in windows that grow."""
        if not parts or {*map(len, (*parts, waits))} != {len(self.arrivals)}:
            raise Invalid("lower: needs prices of the backlog and of waiting for each request")
        prompts = [works[-1] for works in self.works]
        rows = paired(self.arrivals, self.alone, prompts, self.left, paired(*parts), waits)
        requests = [Waiting(*row) for row in rows]
        self.added = charge_backlog(requests, self.cell, self.length, self.work)
        self.left = [(FINE * r.share - r.wait * r.prompt) // FINE for r in requests]

    def _check(self) -> None:
        """Refuse what is no proof of this problem."""
        clock, count = self.clock, len(self.problem.requests)
        if self.unit < 64 or self.unit % 64 or self.cell < 1:
            raise Invalid("lower: needs a unit that is a multiple of 64, and a cell of 1 or more")
        refuse(not self.rows, "lower: needs a row")
        refuse(not all(map(clock.has, self.rows)), "lower: needs lines of the model")
        if self.problem.chunks and any(len(row) > 1 for row in self.rows):
            raise Invalid("lower: a row of several lines does not cover prompts in pieces")
        if {*map(len, (self.fixed, self.slopes, self.interference, self.grown))} != {count}:
            raise Invalid("lower: needs two prices and interference for each request")
        if len(self.prices) != len(self.rows) or len({*map(len, self.prices)}) > 1:
            raise Invalid("lower: needs a price for each row and cell")
        numbers = [self.fixed, self.slopes, self.interference, self.grown, *self.prices]
        refuse(min(map(min, filter(None, numbers)), default=0) < 0, "lower: a price is negative")
        if any(share > 64 * times for share, times in paired(self.charged, self.counts)):
            raise Invalid("lower: interference of a request is in 0 .. 64 for each of its weight")
        is_fleet = any(self.charged) and self.problem.used > 1
        refuse(is_fleet, "lower: interference is of one worker")

    def _price(self, by_memory: int) -> None:
        """Compute the cost of a round, and of a token held in it, in each cell, and its prices."""
        clock, problem, fixed = self.clock, self.problem, [self.clock.line(0, r) for r in self.rows]
        token = [clock.line(1, row) - none for row, none in paired(self.rows, fixed)]
        self.cells, self.a_round, self.a_token = list[list[int]](), list[int](), list[int]()
        windows = self._windows([share * (self.unit // 64) for share in self.interference])
        columns = paired(self._payments(), windows, self._windows(self.left), *self.prices)
        for needed, window, rest, *rows in columns:
            # The first row is raised until fixed parts pay for rounds, rounded up.  What is left is
            # shared out rounded down: requests may pay less than it.
            missing = needed - sum(map(mul, rows[1:], fixed[1:]))
            if missing > 0:
                refuse(fixed[0] == 0, "lower: rounds of the first row have no fixed part")
                rows[0] -= -missing // fixed[0]
            left = sum(map(mul, rows, fixed)) - needed
            by_tokens = left * by_memory // 64
            cost = sum(map(mul, rows, token)) + (window + rest) * self.token
            if problem.max_active is not None:
                cost += (left - by_tokens) // problem.max_active
            held = clock.kv * (sum(rows) + window + rest) + by_tokens // problem.memory
            self.cells.append([*rows, window])
            self.a_round.append(cost)
            self.a_token.append(held)
        self.sold = problem.used * self.cell * sum(sum(cell[:-1]) for cell in self.cells)

    def _cost(self, k: int, works: list[int]) -> int:
        """Return the cost of works by each row, and perhaps by interference, in a cell."""
        return sum(map(mul, self.cells[k], works))

    def _payments(self) -> Iterable[int]:
        """Return what all requests pay for a round in each cell: sums of falling lines."""
        sums = [0] * self.length
        for arrival, fixed, slope in paired(self.arrivals, self.fixed, self.slopes):
            k, begin, pays = arrival // self.cell, arrival // self.cell, fixed
            while k < self.length and pays > 0:
                sums[k] += pays
                k += 1
                pays = fixed - slope * (k * self.cell - arrival)
            self.work.spend(4 * (k - begin + 1))
        return sums

    def _windows(self, shares: list[int]) -> Iterator[int]:
        """Yield the sum of the shares of the times alone that contain each cell.

        Only whole cells count: works in others pay no interference, which lowers the bound.
        """
        begins = (-(-arrival // self.cell) for arrival in self.arrivals)
        ends = (sum(pair) // self.cell for pair in paired(self.arrivals, self.alone))
        return self._sums(begins, ends, shares)

    def _sums(self, begins: Iterable[int], ends: Iterable[int], shares: list[int]) -> Iterator[int]:
        """Yield for each cell the sum of the shares whose ranges of cells contain it."""
        changes = [0] * (self.length + 1)
        for begin, end, share in paired(begins, ends, shares):
            if begin < min(end, self.length):
                changes[begin] += share
                changes[min(end, self.length)] -= share
        return accumulate(changes[:-1])

    def _alone(self, i: int) -> int:
        """Return the time of a request alone."""
        _, prompt, output = self.problem.requests[i]
        first = self.clock.line(self.fresh[i] + 1) + self.clock.prompt * self.fresh[i]
        held = output * prompt + output * (output + 1) // 2
        return first + (output - 1) * self.clock.line(1) + self.clock.kv * held

    def _prompts(self, fresh: int) -> list[int]:
        """Return the work of a prompt beyond that of a token, by each row, then in interference."""
        clock = self.clock
        works = [clock.line(fresh + 1, row) - clock.line(1, row) for row in self.rows]
        whole = clock.line(fresh + 1) - clock.line(1)
        works.append(self.token * fresh if self.in_pieces else whole)
        return [work + clock.prompt * fresh for work in works]

    def value(self) -> int:
        """Return the bound."""
        total, unit = self.added - self.sold, self.unit // 64
        for i, (_, prompt, output) in enumerate(self.problem.requests):
            tokens = output * self.token
            tokens += self.clock.kv * (output * prompt + output * (output + 1) // 2)
            total += self._cheapest(i) + unit * self.charged[i] * self.alone[i]
            # Its own works in its window do not delay it: at most all of them.
            total -= unit * self.interference[i] * (tokens + self.works[i][-1])
            total -= self.left[i] * tokens
        return int(-(-total // self.unit))

    def _cheapest(self, i: int) -> int:
        """Return the least cost of a request over all cells in which it may complete.

        Of the cells from its arrival up to that one it uses the cheapest: a heap has those in use,
        the dearest on top, which is used in part.
        """
        _, prompt, output = self.problem.requests[i]
        arrival, alone, profile, cell = self.arrivals[i], self.alone[i], self.held[i], self.cell
        growth, waiting = output * (output - 1) // 2, 64 * self.counts[i] - self.charged[i]
        waiting *= self.unit // 64
        shortest = self.clock.line(1) + self.clock.kv * (prompt + 1)
        needed, later = output * shortest, (output - 1) * shortest
        fixed, slope, begin = self.fixed[i], self.slopes[i], arrival // cell
        best = waiting * max(alone, self.length * cell - arrival)
        used: list[tuple[int, int]] = []
        time = cost = 0
        cheapest_token = cheapest_prompt = cheapest_node = math.inf
        next_prompt = begin
        for k in range(begin, self.length):
            since = max(k * cell - arrival, 0)
            wait = waiting * max(alone, since)
            if wait >= best:
                break
            price = max(fixed - slope * since, 0) + self.a_round[k]
            price += self.a_token[k] * profile[k // self.period]
            # A round lasts ``shortest`` or longer, so a nanosecond holds at most this part of it.
            # Tokens beyond those of a first round, ``growth``, are paid at the cheapest time.
            price //= shortest
            end = (k + 1) * cell - arrival
            # The cell joins those in use, and what is dearer than needed leaves.
            heappush(used, (-price, end - since))
            time += end - since
            cost += (end - since) * price
            while time - used[0][1] >= needed:
                dear, size = heappop(used)
                time -= size
                cost += size * dear
            cheapest_token = min(cheapest_token, self.a_token[k])
            if end <= alone:
                continue
            # It may complete here: its prompt, and its nodes, were in some cells before.
            while next_prompt <= k and next_prompt * cell - arrival < end - later:
                cheapest_prompt = min(cheapest_prompt, self._cost(next_prompt, self.works[i]))
                cheapest_node = min(cheapest_node, self._cost(next_prompt, self.nodes[i]))
                next_prompt += 1
            value = wait + cost + (time - needed) * used[0][0]
            value += growth * cheapest_token + cheapest_prompt + cheapest_node
            best = min(best, value)
        else:
            k = self.length
        self.work.spend(30 * max(k - begin, 1))
        return int(best)


class Attaining(_Bound):
    """Prices for requests that count 1 if they attain, see `kvopt.verify.check_slo`.

    Request i pays ``fixed`` for a round in each cell that its window touches, from its arrival
    until its last token is due.
    """

    def __init__(
        self, problem: Problem, proof: dict[str, Any], dues: list[tuple[float, float]], work: Work
    ) -> None:
        others = {"slopes", "interference", "block_shares", "period", "grown", "backlog", "waits"}
        refuse(any(proof.get(name) for name in others), "slo: a ceiling has no such prices")
        none = [0] * len(problem.requests)
        self.dues = dues
        super().__init__(problem, {**proof, "slopes": none, "interference": none}, work)

    def _payments(self) -> Iterable[int]:
        """Return what all requests pay for a round in each cell."""
        ranges = [self._cells(i) for i in range(len(self.fixed))]
        return self._sums((a for a, _ in ranges), (b for _, b in ranges), self.fixed)

    def _cells(self, i: int) -> tuple[int, int]:
        """Return the range of the cells that the window of a request touches."""
        end = self.dues[i][1] - self.first
        last = self.length if end >= self.length * self.cell else int(-(-end // self.cell))
        return min(self.arrivals[i] // self.cell, self.length), last

    def counted(self) -> int:
        """Return how many attain at most."""
        total = self.sold
        for i in range(len(self.fixed)):
            begin, end = self._cells(i)
            self.work.spend(60 * (end - begin + 1))
            total += max(0, self.unit - self._paid(i, begin, end))
        return int(total // self.unit)

    def _paid(self, i: int, begin: int, end: int) -> int:
        """Return the least payment of a request for its rounds, their tokens and its prompt.

        All of its rounds but one may be after its first token is due, and its prompt before that.
        """
        _, prompt, output = self.problem.requests[i]
        arrival, horizon = self.arrivals[i], self.length * self.cell
        shortest = self.clock.line(1) + self.clock.kv * (prompt + 1)
        whole = output * shortest
        early, late = (due - self.first for due in self.dues[i])
        # Time after the last price is free.
        cells: list[Cell] = [(horizon, math.inf, 0)]
        for k in range(begin, end):
            price = self.fixed[i] + self.a_round[k] + self.a_token[k] * (prompt + 1)
            cells.append((k * self.cell, (k + 1) * self.cell, price // shortest))
        cost = cheapest_cost((arrival, early, late), cells, whole, whole - shortest)
        if late <= horizon:
            cost += output * (output - 1) // 2 * min(self.a_token[begin:end])
        if early <= horizon:
            until = int(-(-early // self.cell))
            cost += min(self._cost(k, self.works[i]) for k in range(begin, until))
        return cost
