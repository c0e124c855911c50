"""A server in continuous time, written down round by round: slow, and without kvopt's parts.

Each round looks at every request.  It knows three schedulers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from kvopt.problem.batch_time import BatchTime
from kvopt.problem.instance import Instance

_ENDLESS = 3000


@dataclass
class Served:
    """Times by request, evictions, and the most tokens held."""

    starts: list[int | None]
    first_tokens: list[int | None]
    completions: list[int | None]
    evictions: int = 0
    peak: int = 0


@dataclass
class Server:
    """What a server knows between rounds: tokens produced, and when it saw each request."""

    instance: Instance
    policy: str
    time: int = 0
    produced: dict[int, int] = field(default_factory=dict)
    waiting: list[int] = field(default_factory=list)
    seen: dict[int, int] = field(default_factory=dict)

    def held(self) -> int:
        """Tokens held when the next round ends."""
        requests = self.instance.requests
        return sum(requests[i].prompt + g + 1 for i, g in self.produced.items())

    def fits(self, new: int) -> bool:
        """Whether a request may start."""
        requests, limit = self.instance.requests, self.instance.memory
        if self.policy.startswith("alpha-protect"):
            alpha = Fraction(self.policy.partition("=")[2])
            return self.held() + requests[new].prompt + 1 <= int((1 - alpha) * limit)
        there = {**self.produced, new: 0}
        for later in range(1, max(requests[i].output for i in there) + 1):
            tokens = sum(
                requests[i].prompt + g + later
                for i, g in there.items()
                if g + later <= requests[i].output
            )
            if tokens > limit:
                return False
        return True

    def rank(self, i: int) -> tuple[int, ...]:
        """Return the place in line; what arrived during one round arrived together."""
        r = self.instance.requests[i]
        if self.policy == "mc-sf":
            return (r.output, r.prompt, self.seen[i], i)
        return (self.seen[i], i)


def serve(instance: Instance, policy: str, model: BatchTime) -> Served | None:
    """Serve an instance to its end, None if there is none."""
    server, count = Server(instance, policy), len(instance)
    found = Served([None] * count, [None] * count, [None] * count)
    arrivals = [round((r.arrival_seconds or 0) * 10**9) for r in instance]
    to_come = sorted(range(count), key=lambda i: arrivals[i])
    for turn in range(_ENDLESS):
        if not (to_come or server.waiting or server.produced):
            return found
        if not server.produced and not server.waiting:
            server.time = max(server.time, arrivals[to_come[0]])
        while to_come and arrivals[to_come[0]] <= server.time:
            server.seen[to_come[0]] = turn
            server.waiting.append(to_come.pop(0))
        if server.held() > instance.memory:
            found.evictions += len(server.produced)
            server.waiting += server.produced
            server.produced.clear()
        new = admitted(server)
        for i in new:
            found.starts[i] = server.time
        if not server.produced:
            if not to_come:
                return None  # those that wait would do so for ever
            server.time = arrivals[to_come[0]]
            continue
        one_round(server, model, new, found)
    return None


def admitted(server: Server) -> list[int]:
    """Start from the front of the line while the next fits."""
    server.waiting.sort(key=server.rank)
    new = []
    while server.waiting and server.fits(server.waiting[0]):
        new.append(server.waiting.pop(0))
        server.produced[new[-1]] = 0
    return new


def one_round(server: Server, model: BatchTime, new: list[int], found: Served) -> None:
    """Let the batch run once."""
    requests = server.instance.requests
    prompts = sum(requests[i].prompt for i in new)
    tokens = len(server.produced) + prompts
    found.peak = max(found.peak, server.held())
    server.time += (
        max(line.round_ns + line.token_ns * tokens for line in model.lines)
        + model.prompt_ns * prompts
        + model.kv_ns * server.held()
    )
    for i in list(server.produced):
        server.produced[i] += 1
        if server.produced[i] == 1:
            found.first_tokens[i] = server.time
        if server.produced[i] == requests[i].output:
            found.completions[i] = server.time
            del server.produced[i]
