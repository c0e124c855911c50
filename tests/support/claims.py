"""What the claims of a certificate say, put to brute force; nothing of kvopt is used to judge.

Only for tiny instances: every schedule of the scope is tried, with several workers every way to
deal requests to them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import chain, combinations, product
from typing import Any

import block_oracle
import oracle
import pause_oracle
import sharing_oracle
from deadline_oracle import ROUNDS, most_in_time
from fleet_oracle import Dated, dealt, most_on_workers
from oracle import Triple
from timed_oracle import Server, scoped_optimum

Content = dict[str, Any]
Active = frozenset[int]


def untrue(content: Content) -> Iterator[str]:
    """Yield what a certificate claims and brute force refutes."""
    problem = Problem(content)
    best = problem.least()
    lower, upper = content["lower"], content["upper"]
    if lower is not None and lower["value"] > best:
        yield f"lower: {lower['value']}, the optimum is {best}"
    if upper is not None and upper["value"] < best:
        yield f"upper: {upper['value']}, the optimum is {best}"
    for run in (upper, *content.get("policies", [])):
        if run is not None and run["value"] is not None and not problem.fits(run):
            yield f"a run does not fit: {run}"
    yield from problem.untrue_in_time(content.get("deadlines"))


class Problem:
    """The instance of a certificate as plain numbers, and the scope of what is claimed of it."""

    def __init__(self, content: Content) -> None:
        instance = content["instance"]
        self.memory: int = instance["memory"]
        self.rows: list[Content] = instance["requests"]
        self.workers: int = instance.get("workers", 1)
        self.block: int = instance.get("block_size", 1)
        self.round_ns = Fraction(instance.get("round_ms", 0)) * 1_000_000
        self.scope: str = content["scope"]
        self.server, model = ROUNDS, content["clock"]
        self.in_rounds = model == "rounds"
        if not self.in_rounds:
            lines = [(line["round_ns"], line["token_ns"]) for line in model["lines"]]
            self.server = Server(lines, model["prompt_ns"], model["kv_ns"])
        self.most: int = instance.get("max_active", len(self.rows))
        self.size: int = instance.get("block_tokens", 0)
        self.is_restricted = "max_active" in instance or any(
            {"weight", "prefix"} & row.keys() for row in self.rows
        )
        self.requests = [(self._arrival(r), r["prompt"], r["output"]) for r in self.rows]

    def _arrival(self, row: Content) -> int:
        if self.in_rounds:
            return int(row["arrival"])
        if "arrival_seconds" in row:
            return round(Fraction(row["arrival_seconds"]) * 10**9)
        return round(int(row["arrival"]) * self.round_ns)

    def least(self) -> float:
        """Return the least total latency."""
        if not self.requests:
            return 0
        if self.is_restricted:
            known = cache(self._least_restricted if self.in_rounds else self._least_shared)
            deals = dealt([(i, 0, 0) for i in range(len(self.rows))], self.workers)
            return min(sum(known(tuple(i for i, _, _ in own)) for own in parts) for parts in deals)
        if self.block > 1:
            pauses = "pauses" in self.scope
            return block_oracle.optimum(self.memory, self.requests, self.block, pauses=pauses)
        deals = dealt(self.requests, self.workers)
        return min(sum(self._alone(tuple(part)) for part in parts) for parts in deals)

    def _least_shared(self, own: Sequence[int]) -> float:
        """Return the least total latency in seconds of requests with prefixes on one worker."""
        rows = [(*self.requests[i], tuple(self.rows[i].get("prefix", ()))) for i in own]
        return sharing_oracle.timed_optimum(self.memory, rows, self.size, self.server)

    def _least_restricted(self, own: Sequence[int]) -> float:
        """Return the least weighted latency of some requests on one worker, round by round."""
        rows = {i: self.rows[i] for i in own}
        last = oracle.last_time([self.requests[i] for i in own])

        @cache
        def least(now: int, made: tuple[int, ...], ends: tuple[int, ...], active: Active) -> float:
            """Return what is to come, with so many tokens of each made, and some just active."""
            if all(ends[i] for i in own):
                return 0
            if now >= last:
                return math.inf
            there = [i for i in own if not ends[i] and rows[i]["arrival"] <= now]
            found = math.inf
            for some in chain.from_iterable(combinations(there, n) for n in range(len(there) + 1)):
                if self.holds({i: made[i] + 1 for i in some}) and active.issubset(some):
                    more = tuple(n + (i in some) for i, n in enumerate(made))
                    over = {i for i in some if more[i] == rows[i]["output"]}
                    then = tuple(now + 1 if i in over else end for i, end in enumerate(ends))
                    goes_on = Active() if "pauses" in self.scope else Active(some) - over
                    found = min(found, least(now + 1, more, then, goes_on))
            cost: float = found + sum(rows[i].get("weight", 1) for i in there)
            return cost

        none = (0,) * len(self.rows)
        return least(0, none, none, Active())

    def holds(self, made: dict[int, int]) -> bool:
        """Whether requests may be active together that have so many tokens, a prefix held once."""
        prefixes = {i: self.rows[i].get("prefix", []) for i in made}
        blocks = len(set().union(*prefixes.values())) - sum(map(len, prefixes.values()))
        held = sum(self.rows[i]["prompt"] + n for i, n in made.items()) + self.size * blocks
        return len(made) <= self.most and held <= self.memory

    def weighted(self, times: Sequence[Sequence[int]], on: Sequence[int]) -> int | None:
        """Return the weighted latency of runs on workers, None if they break a rule."""
        ends = [own[-1] for own in times]
        for worker, time in product(set(on), range(1, max(ends) + 1)):
            own = (i for i, each in enumerate(on) if each == worker and time in times[i])
            if not self.holds({i: times[i].index(time) + 1 for i in own}):
                return None
        if any(own[0] <= row["arrival"] for own, row in zip(times, self.rows, strict=True)):
            return None
        ended = zip(self.rows, ends, strict=True)
        total: int = sum(row.get("weight", 1) * (end - row["arrival"]) for row, end in ended)
        return total

    def _alone(self, part: Sequence[Triple]) -> int:
        """Return the same of a worker with some of the requests."""
        if not self.in_rounds:
            return scoped_optimum(self.server, self.memory, part, self.scope)
        if "pauses" in self.scope:
            return pause_oracle.optimum(self.memory, part)
        return oracle.optimum(self.memory, part)[0]

    def fits(self, run: Content) -> bool:
        """Whether each worker holds its requests, and the value is that of the run.

        What was lost is looked at with one worker; of seconds, runs of one worker without pauses
        and prefixes.
        """
        if not self.in_rounds:
            is_plain = self.workers == 1 and "starts" in run and not self.is_restricted
            return not is_plain or run["value"] == self.nanoseconds(run)
        on = run.get("workers", [0] * len(self.rows))
        if "segments" in run:
            times = [[t for a, b in rows for t in range(a, b + 1)] for rows in run["segments"]]
        else:
            pairs = zip(run["starts"], self.requests, strict=True)
            times = [list(range(k + 1, k + o + 1)) for k, (_, _, o) in pairs]
        if self.is_restricted:
            return bool(run["value"] == self.weighted(times, on))
        for worker in set(on):
            own = [i for i, each in enumerate(on) if each == worker]
            some, when = [self.requests[i] for i in own], [times[i] for i in own]
            if self.workers == 1:
                lost = run.get("lost", [])
                some += [(self.requests[i][0], self.requests[i][1], b - a) for i, a, b in lost]
                when += [list(range(a + 1, b + 1)) for _, a, b in lost]
            if not pause_oracle.feasible(self.memory, some, when):
                return False
            if block_oracle.most_blocks(some, when, self.block) > self.memory // self.block:
                return False
        return bool(run["value"] == pause_oracle.latency(self.requests, times))

    def nanoseconds(self, run: Content) -> int | None:
        """Go through a run round by round; return its total latency, None if it breaks a rule."""
        waits = dict(run.get("waits", []))
        pieces = [(i, k, k + self.requests[i][2]) for i, k in enumerate(run["starts"])]
        pieces += [tuple(row) for row in run.get("lost", [])]
        if min((k for _, k, _ in pieces), default=0) < 0:
            return None
        now = total = 0
        for r in range(1, max((end for _, _, end in pieces), default=0) + 1):
            if waits.get(r - 1, now) < now:
                return None
            now = waits.get(r - 1, now)
            active = [(i, k) for i, k, end in pieces if k < r <= end]
            is_early = any(self.requests[i][0] > now for i, _ in active)
            if is_early or len({i for i, _ in active}) < len(active):
                return None
            if active:
                prompts = sum(self.requests[i][1] for i, k in active if k + 1 == r)
                held = sum(self.requests[i][1] + r - k for i, k in active)
                if held > self.memory:
                    return None
                now += self.server.round_ns(len(active) + prompts, prompts, held)
            done = (i for i, k in enumerate(run["starts"]) if k + self.requests[i][2] == r)
            total += sum(now - self.requests[i][0] for i in done)
        return total

    def untrue_in_time(self, claim: Content | None) -> Iterator[str]:
        """Yield what is wrong about deadlines."""
        if claim is None:
            return
        after = claim["after"]
        length = 1 if self.in_rounds else self.round_ns
        allowed = [
            after if isinstance(after, int) else math.floor(row["deadline"] * length)
            for row in self.rows
        ]
        first, scope = claim["aim"] == "first-token", self.scope
        if self.in_rounds:
            scope = scope.replace("chunks", "")

        def alone(some: Sequence[Dated]) -> int:
            rows, after = [row[:3] for row in some], [row[3] for row in some]
            return most_in_time(self.server, self.memory, rows, after, scope, first=first)

        dated = [(*row, most) for row, most in zip(self.requests, allowed, strict=True)]
        most = most_on_workers(self.workers, dated, alone) if dated else 0
        if claim["ceiling"] < most:
            yield f"ceiling: {claim['ceiling']}, {most} can attain"
        if claim["best"] is not None and claim["best"]["attained"] > most:
            yield f"best: {claim['best']['attained']}, {most} can attain"
