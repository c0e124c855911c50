"""What the claims of a certificate say, put to brute force; nothing of kvopt is used to judge.

Only for tiny instances: every schedule of the scope is tried, with several workers every way to
deal requests to them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any

from brute_force import Due, Server, active_times, feasible, most_in_time, optimum

Content = dict[str, Any]


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
    yield from problem.untrue_in_time(content.get("slo"))


class Problem:
    """The instance of a certificate as plain numbers, and the scope of what is claimed of it."""

    def __init__(self, content: Content) -> None:
        instance, model = content["instance"], content["clock"]
        self.memory: int = instance["memory"]
        self.rows: list[Content] = instance["requests"]
        self.workers: int = instance.get("workers", 1)
        self.block: int = instance.get("block_size", 1)
        self.unit: int = instance.get("block_tokens", 1)
        self.most_active: float = instance.get("max_active", math.inf)
        self.round_ns = Fraction(instance.get("round_ms", 0)) * 1_000_000
        self.weights = [row.get("weight", 1) for row in self.rows]
        self.scope: str = content["scope"]
        self.server: Server | None = None
        if model != "rounds":
            lines = [(line["round_ns"], line["token_ns"]) for line in model["lines"]]
            self.server = Server(lines, model["prompt_ns"], model["kv_ns"])
        self.requests = [
            (self._arrival(row), row["prompt"], row["output"], tuple(row.get("prefix", ())))
            for row in self.rows
        ]

    def _arrival(self, row: Content) -> int:
        if self.server is None:
            return int(row["arrival"])
        if "arrival_seconds" in row:
            return round(Fraction(row["arrival_seconds"]) * 10**9)
        return round(int(row["arrival"]) * self.round_ns)

    @property
    def rules(self) -> dict[str, Any]:
        """What brute force is told of it."""
        scope = self.scope if self.server else self.scope.replace("chunks", "")
        return {"workers": self.workers, "server": self.server, "scope": scope, "block": self.block,
                "unit": self.unit, "most_active": self.most_active}  # fmt: skip

    def least(self) -> int:
        """Return the least total latency."""
        return optimum(self.memory, self.requests, weights=self.weights, **self.rules)

    def fits(self, run: Content) -> bool:
        """Whether each worker holds its requests, and the value is that of the run.

        What was lost is looked at with one worker; of seconds, runs of one worker without pauses
        and prefixes.
        """
        if self.server is not None:
            has_prefixes = any(path for *_, path in self.requests)
            is_plain = self.workers == 1 and "starts" in run and not has_prefixes
            return not is_plain or run["value"] == self.nanoseconds(run)
        on = run.get("workers", [0] * len(self.rows))
        if "segments" in run:
            times: list[Sequence[int]] = [
                [t for a, b in rows for t in range(a, b + 1)] for rows in run["segments"]
            ]
        else:
            times = active_times(self.requests, run["starts"])
        for worker in set(on):
            own = [i for i, other in enumerate(on) if other == worker]
            some, when = [self.requests[i] for i in own], [times[i] for i in own]
            if self.workers == 1:
                for i, begin, end in run.get("lost", []):
                    arrival, prompt, _, path = self.requests[i]
                    some.append((arrival, prompt, end - begin, path))
                    when.append(range(begin + 1, end + 1))
            if not feasible(self.memory, some, when, block=self.block, unit=self.unit):
                return False
            every = [*chain.from_iterable(when)]
            if any(every.count(time) > self.most_active for time in every):
                return False
        rows = zip(self.weights, self.requests, times, strict=True)
        return bool(run["value"] == sum(w * (own[-1] - r[0]) for w, r, own in rows))

    def nanoseconds(self, run: Content) -> int | None:
        """Go through a run round by round; return its total latency, None if it breaks a rule."""
        assert self.server is not None
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
                blocks = sum(-(-(self.requests[i][1] + r - k) // self.block) for i, k in active)
                if blocks > self.memory // self.block or len(active) > self.most_active:
                    return None
                now += self.server.round_ns(len(active) + prompts, prompts, held)
            done = (i for i, k in enumerate(run["starts"]) if k + self.requests[i][2] == r)
            total += sum(self.weights[i] * (now - self.requests[i][0]) for i in done)
        return total

    def untrue_in_time(self, claim: Content | None) -> Iterator[str]:
        """Yield what is wrong about a service level."""
        if claim is None:
            return
        due = [self.due_of(row, claim["limits"]) for row in self.rows]
        most = most_in_time(self.memory, self.requests, due, **self.rules)
        if claim["ceiling"] < most:
            yield f"ceiling: {claim['ceiling']}, {most} can attain"
        if claim["best"] is not None and claim["best"]["attained"] > most:
            yield f"best: {claim['best']['attained']}, {most} can attain"

    def due_of(self, row: Content, limits: Content) -> Due:
        """Return when the tokens of a request are due; drawn limits are rounds or nanoseconds."""
        lengths = []
        for name in ("ttft", "tpot", "e2e"):
            limit = limits.get(name)
            length = Fraction(1) if self.server is None else self.round_ns
            if limit == "own":
                limit = row.get(name)
            elif isinstance(limit, str):
                limit, length = int(limit.removesuffix("ns")), Fraction(1)
            more = row["output"] - 1 if name == "tpot" else 1
            lengths.append(math.inf if limit is None else math.floor(limit * more * length))
        return Due(*lengths)
