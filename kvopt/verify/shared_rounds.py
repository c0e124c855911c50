"""Evaluate proofs in seconds: rounds that active requests share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import accumulate
from operator import mul
from typing import Any

from kvopt.verify.backlog import Backlog
from kvopt.verify.certified_problem import Clock, Problem, surely_processed
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

    Of the shares ``grown`` prompts interfere by `Backlog`, and works of tokens in the window.

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
    assert problem.clock is not None, "shared rounds are of a clock in seconds"
    weights = proof.get("block_shares", [])
    steps = 200 * len(problem.requests) + 40 * sum(map(len, proof["row_prices"]))
    steps += 8 * sum(len(row) * len(path) for row, path in zip(weights, problem.paths))
    return steps, lambda: (_Bound(problem, problem.clock, proof, work).value(work), "shared rounds")


class _Bound:
    """The prices of a proof, and what requests pay at them; all over ``unit``."""

    def __init__(self, problem: Problem, clock: Clock, proof: dict[str, Any], work: Work) -> None:
        self.problem, self.clock = problem, clock
        self.rows, self.prices = proof["rows"], proof["row_prices"]
        self.unit, self.cell = proof["unit"], proof["cell"]
        self.counts = list(problem.weights or (1,) * len(problem.requests))
        self.fixed, self.slopes = proof["fixed"], proof["slopes"]
        self.beside = proof["interference"]
        self.grown = proof.get("grown") or [0] * len(self.counts)
        self.charged = [share + more for share, more in zip(self.beside, self.grown)]
        self.first = min((request.arrival for request in problem.requests), default=0)
        self.fresh = list(problem.fresh or [request.prompt for request in problem.requests])
        self.nodes, self.period = [0] * len(problem.requests), 1 << 62
        self.held = [[request.prompt + 1] for request in problem.requests]
        self._check(proof.get("by_memory", 64))
        self.length = len(self.prices[0])
        self.most = clock.line(1) - clock.line(0)
        self.in_pieces = problem.chunks or bool(proof.get("block_shares"))
        both = self.in_pieces and bool(proof.get("grown"))
        refuse(both, "lower: the backlog is one of whole prompts, without block shares")
        if proof.get("block_shares"):
            self._share(proof["block_shares"], proof.get("period", 0))
        self.left, self.added = self.grown, 0
        if proof.get("grown"):
            self._charge_backlog(proof.get("backlog", []), proof.get("waits", []), work)
        self._price(proof.get("by_memory", 64))

    def _share(self, weights: list[list[int]], period: int) -> None:
        """Compute the tokens that requests count in each period of cells."""
        problem, length = self.problem, period * self.cell
        if not problem.paths or len(weights) != len(problem.requests) or period < 1:
            raise Invalid("lower: block shares need prefixes, a period and weights of each request")
        refuse(min(map(min, filter(None, weights)), default=0) < 0, "lower: a weight is negative")
        refuse(any(len(row) > 1 for row in self.rows), "lower: block shares need rows of one line")
        fresh, firsts = surely_processed(problem)
        self.fresh, self.nodes, self.period = list(fresh), list(map(sum, firsts)), period
        count = -(-self.length // period)
        begins = [(request.arrival - self.first) // length for request in problem.requests]
        sums: dict[int, list[int]] = defaultdict(lambda: [0] * count)
        for begin, row, path in paired(begins, weights, problem.paths):
            for v in path:
                for place, weight in enumerate(row[: max(0, count - begin)], begin):
                    sums[v][place] += weight
        self.held = []
        for request, begin, row, path in paired(problem.requests, begins, weights, problem.paths):
            private = request.prompt - sum(problem.nodes[v] for v in path)
            self.held.append([private + 1] * count)
            for v in path:
                for place, weight in enumerate(row[: max(0, count - begin)], begin):
                    if weight:
                        self.held[-1][place] += problem.nodes[v] * weight // sums[v][place]

    def _charge_backlog(self, parts: list[list[int]], waits: list[int], work: Work) -> None:
        """Let prompts interfere in windows that grow."""
        requests = self.problem.requests
        if not parts or {*map(len, (*parts, waits, self.grown))} != {len(requests)}:
            raise Invalid("lower: needs prices of the backlog and of waiting for each request")
        order = sorted(range(len(requests)), key=lambda i: (requests[i].arrival, i))
        arrivals = [request.arrival - self.first for request in requests]
        shares = [share * (self.unit // 64) for share in self.grown]
        alone = [self._alone(i) for i in order]
        prompts = [self._prompts(i)[-1] for i in order]
        rows = [[row[i] for i in order] for row in (arrivals, shares, waits, *parts)]
        backlog = Backlog(
            rows[0], alone, prompts, rows[1], rows[3:], rows[2], self.cell, self.length
        )
        self.added, left = backlog.value(work)
        self.left = [share for _, share in sorted(paired(order, left))]

    def _check(self, by_memory: int) -> None:
        """Refuse what is no proof of this problem."""
        clock, count = self.clock, len(self.problem.requests)
        if self.unit < 64 or self.unit % 64 or self.cell < 1:
            raise Invalid("lower: needs a unit that is a multiple of 64, and a cell of 1 or more")
        refuse(not self.rows, "lower: needs a row")
        refuse(not all(map(clock.has, self.rows)), "lower: needs lines of the model")
        if self.problem.chunks and any(len(row) > 1 for row in self.rows):
            raise Invalid("lower: a row of several lines does not cover prompts in pieces")
        if {*map(len, (self.fixed, self.slopes, self.beside, self.grown))} != {count}:
            raise Invalid("lower: needs two prices and interference for each request")
        if len(self.prices) != len(self.rows) or len({*map(len, self.prices)}) > 1:
            raise Invalid("lower: needs a price for each row and cell")
        numbers = [self.fixed, self.slopes, self.beside, self.grown, *self.prices]
        refuse(min(map(min, filter(None, numbers)), default=0) < 0, "lower: a price is negative")
        if any(share > 64 * times for share, times in paired(self.charged, self.counts)):
            raise Invalid("lower: interference of a request is in 0 .. 64 for each of its weight")
        is_fleet = any(self.charged) and self.problem.used > 1
        refuse(is_fleet, "lower: interference is of one worker")
        limited = self.problem.max_active is not None
        if not 0 <= by_memory <= 64 or (by_memory < 64 and not limited):
            raise Invalid(
                "lower: by_memory is in 0 .. 64, and 64 without a limit of active requests"
            )

    def _price(self, by_memory: int) -> None:
        """Compute what a round, and a token held in it, cost in each cell."""
        clock, problem, fixed = self.clock, self.problem, [self.clock.line(0, r) for r in self.rows]
        token = [clock.line(1, row) - none for row, none in paired(self.rows, fixed)]
        self.first_row, self.a_round, self.a_token = list[int](), list[int](), list[int]()
        unit = self.unit // 64
        self.windows = [*self._windows([share * unit for share in self.beside])]
        lefts = self._windows(self.left)
        columns = paired(self._payments(), self.windows, lefts, *self.prices)
        for payments, window, rest, first, *others in columns:
            paid = sum(price * none for price, none in zip(others, fixed[1:]))
            if payments > paid:
                refuse(fixed[0] == 0, "lower: rounds of the first row have no fixed part")
                first += -((paid - payments) // fixed[0])
            left = paid + first * fixed[0] - payments
            by_tokens = left * by_memory // 64
            rows = [first, *others]
            cost = (
                sum(price * each for price, each in paired(rows, token))
                + (window + rest) * self.most
            )
            if problem.max_active is not None:
                cost += (left - by_tokens) // problem.max_active
            self.first_row.append(first)
            self.a_round.append(cost)
            self.a_token.append(
                clock.kv * (sum(rows) + window + rest) + by_tokens // problem.memory
            )

    def _payments(self) -> Iterator[int]:
        """Yield what all requests pay for a round in each cell: sums of falling lines."""
        levels, falls = [0] * (self.length + 1), [0] * (self.length + 1)
        for request, fixed, slope in paired(self.problem.requests, self.fixed, self.slopes):
            arrival = request.arrival - self.first
            begin = arrival // self.cell
            if begin >= self.length or not fixed:
                continue
            levels[begin] += fixed  # where it arrives it pays this much, then along a line
            levels[begin + 1] -= fixed
            end = self.length
            if slope:
                end = min(end, ((fixed - 1) // slope + arrival) // self.cell + 1)
            if end > begin + 1:
                for place, sign in ((begin + 1, 1), (end, -1)):
                    levels[place] += sign * (fixed + slope * arrival)
                    falls[place] += sign * slope * self.cell
        pairs = paired(accumulate(levels[:-1]), accumulate(falls[:-1]))
        return (level - fall * place for place, (level, fall) in enumerate(pairs))

    def _windows(self, shares: list[int]) -> Iterator[int]:
        """Yield the sum of the shares of the times alone that contain each cell."""
        changes = [0] * (self.length + 1)
        for i, (request, share) in enumerate(paired(self.problem.requests, shares)):
            if share:
                arrival = request.arrival - self.first
                begin, end = -(-arrival // self.cell), (arrival + self._alone(i)) // self.cell
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

    def _prompts(self, i: int) -> list[int]:
        """Return the work of a prompt beyond that of a token, by each row, then in interference."""
        clock, fresh = self.clock, self.fresh[i]
        works = [clock.line(fresh + 1, row) - clock.line(1, row) for row in self.rows]
        if self.in_pieces:
            works.append(self.most * fresh)
        else:
            works.append(clock.line(fresh + 1) - clock.line(1))
        return [work + clock.prompt * fresh for work in works]

    def value(self, work: Work) -> int:
        """Return the bound."""
        total = -self.problem.used * self.cell * sum(map(sum, (self.first_row, *self.prices[1:])))
        total += self.added
        unit = self.unit // 64
        for i, (_, prompt, output) in enumerate(self.problem.requests):
            alone, prompts = self._alone(i), self._prompts(i)
            own = output * self.most
            own += self.clock.kv * (output * prompt + output * (output + 1) // 2)
            total += self._cheapest(i, alone, prompts, work) + unit * self.charged[i] * alone
            total -= unit * self.beside[i] * (own + prompts[-1]) + self.left[i] * own
        return int(-(-total // self.unit))

    def _cheapest(self, i: int, alone: int, prompts: list[int], work: Work) -> int:
        """Return the least cost of a request over all cells in which it may complete.

        Of the cells from its arrival up to that one it uses the cheapest: a heap has those in use,
        the dearest on top, which is used in part.
        """
        arrival, output = (
            self.problem.requests[i].arrival - self.first,
            self.problem.requests[i].output,
        )
        held = self.problem.requests[i].prompt + 1
        profile, period, nodes = self.held[i], self.period, self.nodes[i]
        growth, waiting = output * (output - 1) // 2, 64 * self.counts[i] - self.charged[i]
        waiting *= self.unit // 64
        shortest = self.clock.line(1) + self.clock.kv * held
        needed, later, cell = output * shortest, (output - 1) * shortest, self.cell
        fixed, slope, begin = self.fixed[i], self.slopes[i], arrival // cell
        best = waiting * max(alone, self.length * cell - arrival)
        a_round, a_token = self.a_round, self.a_token
        used: list[tuple[int, int]] = []
        time = cost = 0
        cheapest_token = cheapest_prompt = cheapest_node = -1
        next_prompt = begin
        for k in range(begin, self.length):
            since = max(k * cell - arrival, 0)
            wait = waiting * max(alone, since)
            if wait >= best:
                break
            price = max(fixed - slope * since, 0) + a_round[k]
            price += a_token[k] * profile[k // period]
            price //= shortest
            end = (k + 1) * cell - arrival
            size = end - since
            heappush(used, (-price, size))
            time += size
            cost += size * price
            while time - used[0][1] >= needed:
                dear, size = heappop(used)
                time -= size
                cost += size * dear
            if cheapest_token < 0 or a_token[k] < cheapest_token:
                cheapest_token = a_token[k]
            if end <= alone:
                continue
            while next_prompt <= k and next_prompt * cell - arrival < end - later:
                paid = self._prompt_cost(next_prompt, prompts)
                if cheapest_prompt < 0 or paid < cheapest_prompt:
                    cheapest_prompt = paid
                paid = self._node_cost(next_prompt, nodes)
                if cheapest_node < 0 or paid < cheapest_node:
                    cheapest_node = paid
                next_prompt += 1
            value = wait + cost + (time - needed) * used[0][0]
            value += growth * cheapest_token + cheapest_prompt + cheapest_node
            best = min(best, value)
        else:
            k = self.length
        work.spend(30 * max(k - begin, 1))
        return int(best)

    def _node_cost(self, k: int, tokens: int) -> int:
        """Return what tokens of nodes cost in a cell."""
        prices = (self.first_row[k], *(row[k] for row in self.prices[1:]))
        each = (self.clock.lines[line][1] + self.clock.prompt for (line,) in self.rows)
        return sum(map(mul, prices, each)) * tokens if tokens else 0

    def _prompt_cost(self, k: int, prompts: list[int]) -> int:
        """Return what a prompt costs in a cell."""
        cost = self.first_row[k] * prompts[0] + self.windows[k] * prompts[-1]
        for prices, prompt in zip(self.prices[1:], prompts[1:]):
            cost += prices[k] * prompt
        return cost


class Attaining(_Bound):
    """Prices for requests that count 1 if they attain, see `kvopt.verify.slo`.

    Request i pays ``fixed`` for a round in each cell that its window touches, from its arrival
    until its last token is due.
    """

    def __init__(
        self,
        problem: Problem,
        clock: Clock,
        proof: dict[str, Any],
        dues: list[tuple[float, float]],
        work: Work,
    ) -> None:
        beside = {"slopes", "interference", "block_shares", "period", "grown", "backlog", "waits"}
        refuse(any(proof.get(name) for name in beside), "slo: a ceiling has no such prices")
        none = [0] * len(problem.requests)
        self.dues = dues
        super().__init__(problem, clock, {**proof, "slopes": none, "interference": none}, work)

    def _payments(self) -> Iterator[int]:
        """Yield what all requests pay for a round in each cell."""
        changes = [0] * (self.length + 1)
        for i, fixed in enumerate(self.fixed):
            begin, end = self._cells(i)
            changes[begin] += fixed
            changes[end] -= fixed
        return accumulate(changes[:-1])

    def _cells(self, i: int) -> tuple[int, int]:
        """Return the range of the cells that the window of a request touches."""
        begin, end = self.problem.requests[i].arrival - self.first, self.dues[i][1] - self.first
        last = self.length if end >= self.length * self.cell else int(-(-end // self.cell))
        return min(begin // self.cell, self.length), last

    def counted(self, work: Work) -> int:
        """Return how many attain at most."""
        total = self.problem.used * self.cell * sum(map(sum, (self.first_row, *self.prices[1:])))
        for i in range(len(self.fixed)):
            begin, end = self._cells(i)
            work.spend(60 * (end - begin + 1))
            total += max(0, self.unit - self._paid(i, begin, end))
        return int(total // self.unit)

    def _paid(self, i: int, begin: int, end: int) -> int:
        """Return the least payment of a request for its rounds, their tokens and its prompt.

        All of its rounds but one may be after its first token is due, and its prompt before that.
        """
        arrival, prompt, output = self.problem.requests[i]
        arrival, horizon = arrival - self.first, self.length * self.cell
        shortest = self.clock.line(1) + self.clock.kv * (prompt + 1)
        left, later, cost = output * shortest, (output - 1) * shortest, 0
        # So long after the last price it does not matter when a token is due.
        early, late = (int(min(due - self.first, horizon + left)) for due in self.dues[i])
        parts = []
        for k in range(begin, end):
            price = self.fixed[i] + self.a_round[k] + self.a_token[k] * (prompt + 1)
            since, until = max(arrival, k * self.cell), min(late, (k + 1) * self.cell)
            middle = max(since, min(early, until))
            parts.append((price // shortest, middle - since, until - middle))
        # Time after the last price is free.
        free = max(0, early - max(arrival, horizon)), max(0, late - max(early, horizon))
        parts.append((0, *free))
        for price, before, after in sorted(parts):
            before = min(before, left)
            after = min(after, later, left - before)
            cost += price * (before + after)
            left, later = left - before - after, later - after
        if late <= horizon:
            cost += output * (output - 1) // 2 * min(self.a_token[begin:end])
        if early <= horizon:
            works, until = self._prompts(i), -(-early // self.cell)
            cost += min(self._prompt_cost(k, works) for k in range(begin, until))
        return cost
