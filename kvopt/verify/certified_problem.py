"""State the problem of a certificate: its instance, clock and hash; and wider problems.

Bounds of a wider problem hold for it.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from operator import mul
from typing import Any, NamedTuple

from kvopt.verify.step_budget import Invalid, paired, refuse

LARGEST_FIELD = 2**53 - 1
"""Limit of numbers of an instance: every JSON reader keeps them exactly."""
LIMITS = frozenset(("ttft", "tpot", "e2e", "deadline"))
"""Fields of requests for service levels; the last one is an old name of the one before."""
_MOST_LINES = 9
"""Limit of the lines of a model that the report names one by one."""


class Request(NamedTuple):
    """Arrival on the clock, prompt tokens, output tokens."""

    arrival: int
    prompt: int
    output: int


@dataclass(frozen=True)
class Problem:
    """The scheduling problem: requests, workers with a cache each, and a clock."""

    memory: int
    """Tokens of each cache."""
    requests: list[Request]
    workers: int = 1
    block: int = 1
    """Memory is given out in blocks of so many tokens."""
    clock: Clock | None = None
    """Length of rounds, None on the clock of rounds."""
    pauses: bool = False
    chunks: bool = False
    """Whether requests may pause, and prompts be processed in pieces."""
    weights: tuple[int, ...] = ()
    """Weight of the latency of each request; empty if each counts once."""
    max_active: int | None = None
    """Limit of the requests that are active together on a worker."""
    nodes: tuple[int, ...] = ()
    paths: tuple[tuple[int, ...], ...] = ()
    """Tokens of nodes that several requests share, and the nodes of each request from a root."""
    unit: int = 1
    """Tokens of a block of these nodes."""
    fresh: tuple[int, ...] = ()
    firsts: tuple[tuple[int, ...], ...] = ()
    """If prompts are shares of prefixes, the prompt tokens that each request surely processes, and
    the nodes whose first user to arrive it is."""

    @property
    def is_restricted(self) -> bool:
        """Whether it has fields beyond the problem of the papers."""
        return bool(self.weights or self.max_active or self.paths)

    @property
    def used(self) -> int:
        """Number of useful workers: at most the number of requests."""
        return min(self.workers, max(1, len(self.requests)))

    def within(self, scope: str) -> Problem:
        """Return the problem with the schedules of a scope.

        In rounds a prompt in pieces is only a later start.
        """
        in_pieces = self.clock is not None and "chunks" in scope
        return replace(self, pauses="pauses" in scope, chunks=in_pieces)

    def arriving(self, arrivals: Iterable[int]) -> Problem:
        """Return the problem with other arrivals."""
        pairs = paired(self.requests, arrivals)
        return replace(self, requests=[r._replace(arrival=a) for r, a in pairs])


def problem_of(certificate: dict[str, Any]) -> Problem:
    """Return the problem of a certificate, after a check of the rules of its instance."""
    instance = certificate["instance"]
    memory, rows, is_older = instance["memory"], instance["requests"], instance["schema"][-1] == "1"
    workers, block = instance.get("workers", 1), instance.get("block_size", 1)
    requests = [Request(row["arrival"], row["prompt"], row["output"]) for row in rows]
    refuse(not 1 <= memory <= LARGEST_FIELD, "instance: memory must be in 1 .. 2^53 - 1")
    if "workers" in instance and (workers < 2 or is_older):
        raise Invalid("instance: workers must be 2 or more, and need the schema kvopt.instance/2")
    if "block_size" in instance and (not 2 <= block <= LARGEST_FIELD or is_older):
        raise Invalid("instance: blocks have at least 2 tokens, and the schema kvopt.instance/2")
    refuse(block > memory, "instance: memory has not one block")
    for i, (arrival, prompt, output) in enumerate(requests):
        if not (0 <= arrival <= LARGEST_FIELD and prompt >= 0 and output >= 1):
            raise Invalid(f"instance: request {i} has a number that is too small or too large")
        if -(-(prompt + output) // block) > memory // block:
            raise Invalid(f"instance: request {i} needs more than the memory, so none is feasible")
    if is_older and any(({"priority"} | LIMITS) & row.keys() for row in rows):
        raise Invalid("instance: priorities and service levels need the schema kvopt.instance/2")
    if not _in_range(1, (row[name] for row in rows for name in LIMITS & row.keys())):
        raise Invalid("instance: a limit of a service level is too small or too large")
    if any("e2e" in row and "deadline" in row for row in rows):
        raise Invalid("instance: a request has a deadline and e2e, which are the same")
    ids = {row.get("id", f"r{i}") for i, row in enumerate(rows)}
    refuse(len(ids) < len(rows) or "" in ids, "instance: an id is empty or used twice")
    refuse(certificate["hash"] != hash_of(instance), "hash: is not that of the instance")
    max_active, weights = instance.get("max_active"), tuple(row.get("weight", 1) for row in rows)
    if max_active is not None and not _in_range(1, [max_active]):
        raise Invalid("instance: max_active must be in 1 .. 2^53 - 1")
    refuse(not _in_range(1, weights), "instance: a weight is too small or too large")
    problem = Problem(memory, requests, workers, block, max_active=max_active)
    nodes, paths = _shared(problem, instance)
    weights = weights if max(weights, default=1) > 1 else ()
    unit = instance.get("block_tokens", 1)
    problem = replace(problem, weights=weights, nodes=nodes, paths=paths, unit=unit)
    if problem.is_restricted:
        refuse(is_older, "instance: weights, limits and prefixes need kvopt.instance/2")
    if bool(problem.paths) != ("sharing" in certificate["scope"]):
        raise Invalid("instance: prefixes go with the scope sharing, and it with them")
    if certificate["clock"] == "rounds":
        return problem
    clock = Clock.of(certificate["clock"])
    return replace(problem.arriving(_arrivals(instance)), clock=clock)


def _in_range(minimum: int, numbers: Iterable[int]) -> bool:
    return all(minimum <= number <= LARGEST_FIELD for number in numbers)


def _shared(
    problem: Problem, instance: dict[str, Any]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Return the nodes of prefixes and the path of each request: blocks in a row with equal users.

    Only blocks of several requests count, or of all requests.
    """
    prefixes = [row.get("prefix", []) for row in instance["requests"]]
    size = instance.get("block_tokens", 0)
    if not any(prefixes):
        refuse(size, "instance: block_tokens go with prefixes")
        return (), ()
    if not _in_range(1, [size]) or size % problem.block:
        raise Invalid("instance: block_tokens must be in 1 .. 2^53 - 1, in whole blocks")
    before: dict[int | str, int | str | None] = {}
    for prefix, request in paired(prefixes, problem.requests):
        refuse(len(prefix) * size > request.prompt, "instance: a prefix is longer than its prompt")
        for last, block in zip([None, *prefix], prefix):
            if before.setdefault(block, last) != last:
                raise Invalid("instance: a block of a prefix follows two others")
    uses, fewest = Counter(chain.from_iterable(prefixes)), min(2, len(prefixes))
    place: dict[int | str | None, int] = {}
    nodes, paths = list[int](), []
    for prefix in prefixes:
        shared = [block for block in prefix if uses[block] >= fewest]
        for block in shared:
            last = before[block]
            if block not in place:
                # Users of a block are users of the one before it: as many are the same.
                is_new = last is None or uses[last] > uses[block]
                place[block] = len(nodes) if is_new else place[last]
                if is_new:
                    nodes.append(0)
                nodes[place[block]] += size
        paths.append(tuple(dict.fromkeys(map(place.__getitem__, shared))))
    return tuple(nodes), tuple(paths)


def surely_processed(problem: Problem) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Return the prompt tokens that only each request has, and nodes of which it is the first user.

    Some user processes such a node after the arrival of this request, since other users arrive
    later, and before this request has a token.  In a tie the first in the instance counts.
    """
    users: dict[int, list[int]] = defaultdict(list)
    for i, path in enumerate(problem.paths):
        for v in path:
            users[v].append(i)
    fresh, firsts = [r.prompt for r in problem.requests], [list[int]() for _ in problem.requests]
    for v, sharing in users.items():
        if len(sharing) > 1:
            first = min((problem.requests[i].arrival, i) for i in sharing)[1]
            firsts[first].append(problem.nodes[v])
            for i in sharing:
                fresh[i] -= problem.nodes[v]
    return tuple(fresh), tuple(map(tuple, firsts))


def held_together(problem: Problem) -> tuple[int, list[int], dict[int, int]]:
    """Return memory and private tokens without the nodes on all paths, and K of each other node.

    Nodes on all paths are held once while anything is active, so memory and prompts lose them.  At
    most K users of another node can be active together: they hold the path to the node once, and
    each its private tokens and one more.  Where prompts are processed in pieces, they need not hold
    these at once: then K is the number of users, and a node on all paths is one as others are.
    """
    everywhere = set[int]()
    if problem.paths and not problem.chunks:
        everywhere = set(problem.paths[0]).intersection(*problem.paths)
    memory = problem.memory - sum(problem.nodes[v] for v in everywhere)
    private, users = [], defaultdict(list)
    for request, path in paired(problem.requests, problem.paths or [()] * len(problem.requests)):
        private.append(request.prompt - sum(problem.nodes[v] for v in path))
        to_node = 0
        for v in path:
            if v not in everywhere:
                to_node += problem.nodes[v]
                users[v, to_node].append(private[-1] + 1)
    together = dict[int, int]()
    for (v, held), tokens in users.items():
        fit = 0
        # The smallest users come first, so no other choice has more of them.
        for more in sorted(tokens):
            held += more
            fit += held <= memory
        limit = len(tokens) if problem.chunks else min(fit, problem.max_active or fit)
        together[v] = max(1, limit)
    return memory, private, together


def relaxed(problem: Problem, names: Sequence[str]) -> tuple[Problem, int, str]:
    """Return a wider problem, what is added to its bounds, and the steps in words.

    Each schedule of a problem is one of the next problem, whose total latency is less by ``more``
    at least.  So a bound of the last problem, and all that is added, is one of the first.
    """
    total, words = 0, list[str]()
    for name in names:
        step, sentence = STEPS[name]
        problem, more = step(problem)
        total, words = total + more, [*words, sentence]
    return problem, total, " and ".join(words)


def _tokens(problem: Problem) -> tuple[Problem, int]:
    """Count tokens: h tokens take B ceil(h / B) >= h in blocks, of B floor(M / B) in all."""
    memory = problem.memory - problem.memory % problem.block
    return replace(problem, memory=memory, block=1, unit=1), 0


def _shares(problem: Problem) -> tuple[Problem, int]:
    """Leave out prefixes; prompts count shares of them.

    If K users of a node can be active together, see `held_together`, each of them counts w / K
    of its w tokens: together at most the held ones.  Prompts are the whole sums rounded down,
    so active requests hold at least these.  In whole blocks only nodes on all paths may be left
    out, which are whole blocks of memory.
    """
    memory, private, together = held_together(problem)
    in_blocks = problem.block > 1 and together
    refuse(in_blocks, "lower: shares of prefixes count tokens, which come first")
    prompts = [
        tokens + int(sum(Fraction(problem.nodes[v], together[v]) for v in path if v in together))
        for tokens, path in paired(private, problem.paths or [()] * len(private))
    ]
    fresh, firsts = surely_processed(problem) if problem.nodes else ((), ())
    requests = [r._replace(prompt=s) for r, s in paired(problem.requests, prompts)]
    changed = replace(problem, memory=memory, requests=requests, fresh=fresh, firsts=firsts)
    return replace(changed, nodes=(), paths=()), 0


def _limit(problem: Problem) -> tuple[Problem, int]:
    """Drop the limit of active requests, which only forbids schedules."""
    return replace(problem, max_active=None), 0


def _weights(problem: Problem) -> tuple[Problem, int]:
    """Count each request once: no latency is below its output, so w - 1 outputs are added."""
    pairs = paired(problem.weights or (1,) * len(problem.requests), problem.requests)
    more = sum((weight - 1) * request.output for weight, request in pairs)
    return replace(problem, weights=()), more


STEPS: dict[str, tuple[Callable[[Problem], tuple[Problem, int]], str]] = {
    "tokens": (_tokens, "tokens for blocks"),
    "shares": (_shares, "a share of its prefix for each request"),
    "limit": (_limit, "no limit of active requests"),
    "weights": (_weights, "outputs for weights above 1"),
}
"""Names of the steps, what they do, and the same in words."""


def hash_of(instance: dict[str, Any]) -> str:
    """Return the hash of the problem: name, notes and ids are labels.

    Fields of later versions are hashed only where they are used, so that hashes stay.
    """
    rows: list[Any] = []
    numbers: dict[int | str, int] = {}
    for row in instance["requests"]:
        predicted, weight = row.get("predicted"), row.get("weight", 1)
        rows.append([row["arrival"], row["prompt"], row["output"]])
        if predicted or "arrival_seconds" in row:
            rows[-1].append(predicted and [predicted["lower"], predicted["upper"]])
        if "arrival_seconds" in row:
            rows[-1].append(_duration(row["arrival_seconds"]))
        newer = {name: row[name] for name in ("priority", *sorted(LIMITS)) if name in row}
        if "e2e" in newer:  # hashes have its first name
            newer["deadline"] = newer.pop("e2e")
        if weight > 1:
            newer["weight"] = weight
        if row.get("prefix"):
            newer["prefix"] = [numbers.setdefault(b, len(numbers)) for b in row["prefix"]]
        if newer:
            rows[-1].append(newer)
    names = ("schema", "memory", "workers", "block_size", "max_active", "block_tokens")
    content = {name: instance[name] for name in names if name in instance}
    content["requests"] = rows
    if "round_ms" in instance:
        content["round_ms"] = _duration(instance["round_ms"])
    text = json.dumps(content, separators=(",", ":"), sort_keys=True)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _duration(number: float) -> float:
    if not 0 <= number <= sys.float_info.max:
        raise Invalid("instance: a time in seconds or milliseconds is negative or endless")
    return float(number) + 0.0  # turns -0.0 into 0.0


class Clock(NamedTuple):
    """Rounds that last as long as their batch, in nanoseconds.

    With A active requests, S prompt tokens of those that start with it, and H tokens held at its
    end, a round lasts at least

        max over lines of (round_ns + token_ns (A + S))  +  prompt_ns S  +  kv_ns H.
    """

    lines: list[tuple[int, int]]
    prompt: int
    kv: int

    @classmethod
    def of(cls, model: dict[str, Any]) -> Clock:
        """Return the clock of a batch-time model."""
        lines = [(line["round_ns"], line["token_ns"]) for line in model["lines"]]
        numbers = [model["kv_ns"], model["prompt_ns"], *chain.from_iterable(lines)]
        if not (lines and _in_range(0, numbers)):
            raise Invalid("model: needs a line, and numbers in 0 .. 2^53 - 1")
        refuse(min(map(sum, lines)) == 0, "model: a line without any time")
        return cls(lines, model["prompt_ns"], model["kv_ns"])

    def line(self, tokens: int, chosen: Iterable[int] | None = None) -> int:
        """Return the length of a round by some lines, for a number of tokens."""
        among = self.lines if chosen is None else [self.lines[i] for i in chosen]
        return max(fixed + slope * tokens for fixed, slope in among)

    def has(self, chosen: Collection[int]) -> bool:
        """Whether these are positions of lines, one at least."""
        return 0 <= min(chosen, default=-1) <= max(chosen, default=0) < len(self.lines)

    def mixed(self, chosen: list[int], mix: list[int]) -> Clock:
        """Return a clock whose last line mixes some lines, all of it ``sum(mix)`` times as long."""
        times, mixed_lines = sum(mix), [self.lines[i] for i in chosen]
        lines = [(times * fixed, times * slope) for fixed, slope in self.lines]
        fixed, slope = paired(*mixed_lines)
        lines.append((sum(map(mul, mix, fixed)), sum(map(mul, mix, slope))))
        return Clock(lines, times * self.prompt, times * self.kv)

    def words(self) -> str:
        """Return the assumptions about rounds, in words."""
        shown = [f"{fixed:,} + {slope:,} b" for fixed, slope in self.lines[:_MOST_LINES]]
        if more := len(self.lines) - len(shown):
            shown.append(f"{more:,} more")
        return (
            f"a round of b tokens lasts {' and '.join(shown)} ns or more, and {self.prompt:,} ns "
            f"for each prompt token, {self.kv:,} ns for each token held"
        )


def _arrivals(instance: dict[str, Any]) -> list[int]:
    """Return arrivals in nanoseconds: those in seconds, else rounds of round_ms."""
    rows = instance["requests"]
    times = [_duration(row["arrival_seconds"]) for row in rows if "arrival_seconds" in row]
    if times and len(times) == len(rows):
        return [round(Fraction(seconds) * 10**9) for seconds in times]
    if times or ("round_ms" not in instance and any(row["arrival"] for row in rows)):
        raise Invalid("instance: says not of every request at which second it arrives")
    length = Fraction(_duration(instance.get("round_ms", 0))) * 10**6
    return [round(row["arrival"] * length) for row in rows]
