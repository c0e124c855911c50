"""Servers of vLLM that kvopt and a literal scheduler both run, and what they serve."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from hypothesis import strategies as st
from literal_vllm import LiteralVllm, One

from kvopt import BatchTime, Instance, Line, Request
from kvopt.problem.clocks import Clock, Seconds

MODEL = BatchTime([Line(90, 1), Line(0, 10)], kv_ns=3, prompt_ns=2)
CLOCK = Seconds(MODEL)


@dataclass
class Case:
    """A server and what it serves; with prefixes it caches them."""

    instance: Instance
    limits: dict[str, int]
    watermark: float
    by_priority: bool
    victims: str = "last"

    @property
    def policy(self) -> str:
        """The server, as kvopt spells it."""
        keys = ",".join(f"{key}={value}" for key, value in self.limits.items())
        name = "vllm-priority:by=priority" if self.by_priority else "vllm-fcfs:seed=0"
        return f"{name},{keys},watermark={self.watermark},victims={self.victims}"

    def literal(
        self, clock: Clock, *, caching: bool | None = None
    ) -> tuple[LiteralVllm, list[One]]:
        """Return the literal server after it has served, and its requests."""
        limits, instance = self.limits, self.instance
        ones = [
            One(
                i, arrival, r.prompt + 1, r.output, r.priority or 0,
                prefix=tuple(r.prefix), unit=instance.block_tokens or 1,
            )
            for i, (r, arrival) in enumerate(zip(instance, clock.arrivals(instance), strict=True))
        ]  # fmt: skip
        blocks = instance.memory // limits["block"]
        server = LiteralVllm(
            limits["block"], blocks, min(limits["max_seqs"], instance.max_active or 99),
            limits["budget"], bool(limits["chunked"]), int(self.watermark * (blocks + 1)),
            self.by_priority, None if clock.is_even else MODEL, bool(limits["asynchronous"]),
            caching="prefix" in instance.extras if caching is None else caching,
            spares_work=self.victims == "least-computed",
        )  # fmt: skip
        server.serve(ones)
        return server, ones


@st.composite
def cases(draw: st.DrawFn, *, prefixes: bool = True) -> Case:
    """Draw a server and at most twelve requests, of which several may share blocks."""
    block = draw(st.sampled_from([1, 2, 3, 4, 8]))
    unit = block * draw(st.integers(1, 3))
    least = max(unit // block, 4) if prefixes else 1
    memory = block * draw(st.integers(least, 40 // block + 2))
    max_seqs = draw(st.sampled_from([1, 2, 3, 100]))
    budget = max_seqs + draw(st.sampled_from([0, 1, 5, 40]))
    chunked = draw(st.booleans())
    most = memory if chunked else min(memory, budget)
    nodes = draw(st.integers(1, 5)) if prefixes else 0
    parents = [draw(st.integers(-1, v - 1)) for v in range(nodes)]
    requests, arrival = [], 0
    for _ in range(draw(st.integers(1, 12))):
        node, path = draw(st.integers(-1, len(parents) - 1)), list[str]()
        while node >= 0:
            path.insert(0, f"b{node}")
            node = parents[node]
        path = path[: (most - 1) // unit]
        prompt = draw(st.integers(len(path) * unit, min(most - 1, len(path) * unit + 9)))
        output = draw(st.integers(1, min(most - prompt, 12)))
        arrival += draw(st.sampled_from([0, 0, 0, 1, 7]))
        requests.append(
            Request(
                arrival, prompt, output, arrival_seconds=arrival * 80 / 10**9,
                priority=draw(st.integers(-2, 2)), weight=draw(st.integers(1, 2)), prefix=path,
            )
        )  # fmt: skip
    limits = {"block": block, "max_seqs": max_seqs, "budget": budget, "chunked": int(chunked)}
    limits["asynchronous"] = draw(st.integers(0, 1))
    instance = Instance(
        memory, requests, block_tokens=unit if prefixes else None,
        max_active=draw(st.sampled_from([None, None, 2])),
        block_size=draw(st.sampled_from([1, block])),
    )  # fmt: skip
    victims = draw(st.sampled_from(["last", "last", "least-computed"]))
    watermark = draw(st.sampled_from([0, 0.1, 0.5]))
    return Case(instance, limits, watermark, draw(st.booleans()), victims)


def in_stretches(times: list[int]) -> tuple[tuple[int, int], ...]:
    """Return the first and last of times in a row."""
    groups = groupby(enumerate(times), lambda pair: pair[1] - pair[0])
    runs = ([time for _, time in group] for _, group in groups)
    return tuple((times[0], times[-1]) for times in runs)
