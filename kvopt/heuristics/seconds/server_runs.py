"""Servers with the rules of vLLM on one machine: their settings, latency and schedules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from kvopt.bounds.seconds_evaluation import request_times
from kvopt.heuristics.attaining.loops import timed_of
from kvopt.heuristics.seconds.server_loops import (
    LATENCY,
    PIECES,
    SPANS,
    WAITS,
    Served,
    ServerState,
    Settings,
    record_of,
    serve_until,
    state_before,
)
from kvopt.kernels.magnitudes import NEVER, fits
from kvopt.problem.arrays import Integers, columns_of
from kvopt.problem.clocks import Seconds, arrivals_ns
from kvopt.problem.instance import Instance
from kvopt.simulate.policies.registry import policy
from kvopt.simulate.policies.servers import LeastWork, ServerPolicy, VllmPriority
from kvopt.timetable.work import Chunks

UNLIMITED = 2**31
"""Prompts of a round without a limit."""
LARGEST_CAP = 1024
"""Limit of active requests."""
_MOST_ROUNDS, _MOST_TOKENS = 20_000_000, 2_000_000_000
"""Limits of all outputs, and of all tokens, which are simulated round by round."""


@dataclass(frozen=True)
class ServerSetting:
    """Order and limits of a server.

    Parameters
    ----------
    by
        Order of the line: ``arrival``, ``work`` as of `LeastWork`, or as of `VllmPriority`.
    budget, cap
        Most tokens of a round, and requests at once.
    prompts
        Most prompts of a round, None without a limit.
    chunked
        Whether a prompt may be processed in pieces.
    block
        Tokens of a block.
    """

    by: str
    budget: int
    cap: int
    prompts: int | None = None
    chunked: bool = True
    block: int = 1

    @classmethod
    def of_policy(cls, text: str) -> Self:
        """Return the settings of a policy."""
        server = policy(text)
        assert isinstance(server, ServerPolicy)
        by: str = server.by if isinstance(server, VllmPriority) else "arrival"
        by = "work" if isinstance(server, LeastWork) else by
        limits = server.budget, server.max_seqs, server.prompts, server.chunked, server.block
        return cls(by, *limits)

    @property
    def label(self) -> str:
        """Name of the policy with these limits."""
        limits = f"block={self.block},budget={self.budget},max_seqs={self.cap}"
        limits += "" if self.prompts is None else f",prompts={self.prompts}"
        limits += "" if self.chunked else ",chunked=0"
        names = {"arrival": "vllm-fcfs:", "work": "least-work:keeps=next,"}
        return names.get(self.by, f"vllm-priority:by={self.by},") + limits

    @property
    def flags(self) -> str | None:
        """Options of ``vllm serve`` for these limits, None if it has none."""
        if self.prompts is not None or self.by == "work":
            return None
        order = "fcfs" if self.by == "arrival" else "priority"
        flags = f"--max-num-batched-tokens {self.budget} --max-num-seqs {self.cap}"
        flags += "" if self.chunked else " --no-enable-chunked-prefill"
        return f"{flags} --scheduling-policy {order}"

    @property
    def knows_outputs(self) -> bool:
        """Whether the order needs the lengths of outputs."""
        return self.by not in ("arrival", "prompt")

    def limits(self) -> Settings:
        """Return the limits for loops."""
        prompts = UNLIMITED if self.prompts is None else self.prompts
        borders, budgets, caps, limits = (
            np.array([value], dtype=np.int64) for value in (0, self.budget, self.cap, prompts)
        )
        return Settings(borders, budgets, caps, limits, self.chunked)


class OneServer:
    """Requests on one machine, in arrays, and runs of servers in compiled loops.

    Parameters
    ----------
    instance, clock
        The requests, on one worker and without prefixes, and how long rounds last.

    Attributes
    ----------
    served
        The requests, in line by arrival.
    """

    def __init__(self, instance: Instance, clock: Seconds) -> None:
        self.instance = instance
        times = arrivals_ns(instance)
        self._origin = min(times, default=0)  # on a clock of its own, where sums are small
        arrivals = np.array([time - self._origin for time in times], dtype=np.int64)
        _, prompts, outputs = columns_of(instance)
        timed = timed_of(instance.memory, clock.batch_time, arrivals, prompts, outputs)
        weights = np.array([request.weight for request in instance], dtype=np.int64)
        keys = _places(np.zeros(len(instance), dtype=np.int64), arrivals)
        self.served = Served(timed, arrivals, weights, keys, instance.block_size, instance.blocks)

    @classmethod
    def of(cls, instance: Instance, clock: Seconds) -> OneServer | None:
        """Return a server for requests, None if they are too many or too long for the loops."""
        arrivals, model = arrivals_ns(instance), clock.batch_time
        tokens = sum(request.peak for request in instance)
        if not (0 < instance.total_output <= _MOST_ROUNDS and tokens <= _MOST_TOKENS):
            return None
        late = (
            max(arrivals)
            - min(arrivals)
            + sum(request_times(instance, model, model.lines, object).alone)
        )
        weight = sum(request.weight for request in instance)
        if not fits(late * weight):
            return None
        return cls(instance, clock)

    def keys_by(self, by: str) -> Integers:
        """Return the keys of an order."""
        if by == "arrival":
            return self.served.keys
        server = policy(f"vllm-priority:by={by}")
        assert isinstance(server, ServerPolicy)
        first = np.array(server.priorities(self.instance), dtype=np.int64)
        return _places(first, self.served.timed.arrivals)

    def by(self, keys: Integers) -> Served:
        """Return the requests with other keys."""
        return self.served._replace(keys=keys)

    def obeyed(self, settings: Settings) -> Settings:
        """Return settings within the instance's own limit of active requests."""
        most = min(self.instance.max_active or LARGEST_CAP, LARGEST_CAP)
        return settings._replace(caps=np.minimum(settings.caps, most))

    def state(self) -> ServerState:
        """Return the state before any request has arrived."""
        return state_before(self.served, LARGEST_CAP)

    def latency(self, served: Served, settings: Settings) -> tuple[int, bool]:
        """Return the total latency of a run, and whether it pauses requests."""
        count, state = len(self.instance), self.state()
        serve_until(served, self.obeyed(settings), state, NEVER, record_of(count))
        return int(state.counts[LATENCY]), bool(state.counts[SPANS] > count)

    def events(self, served: Served, settings: Settings) -> dict[str, Any]:
        """Return the work of a run as arguments of a schedule."""
        count, settings = len(self.instance), self.obeyed(settings)
        spans, pieces = count, 2 * count
        while True:
            record, state = record_of(count, spans, pieces), self.state()
            serve_until(served, settings, state, NEVER, record)
            if state.counts[SPANS] <= spans and state.counts[PIECES] <= pieces:
                break
            spans, pieces = int(state.counts[SPANS]), int(state.counts[PIECES])
        segments: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        for i, first, last in record.spans[: state.counts[SPANS]].tolist():
            segments[i].append((first, last))
        resumed = record.resumed[: state.counts[WAITS]].tolist()
        return {
            "segments": segments,
            "chunks": list(_chunks(record.pieces[: state.counts[PIECES]].tolist())),
            "resumed": [{now: time + self._origin for now, time in resumed}],
        }


def _places(first: Integers, second: Integers) -> Integers:
    """Return keys that order requests by a pair of numbers, then by position."""
    keys = np.empty(len(first), dtype=np.int64)
    keys[np.lexsort((second, first))] = np.arange(len(first), dtype=np.int64)
    return keys


def _chunks(rows: list[list[int]]) -> Iterator[Chunks]:
    """Yield the pieces of prompts in a row."""
    unfinished: dict[int, Chunks] = {}
    for i, start, tokens, is_first in rows:
        if is_first and i in unfinished:
            yield unfinished.pop(i)  # it was preempted
        before = unfinished.get(i, Chunks(i, start, ()))
        unfinished[i] = before._replace(tokens=(*before.tokens, tokens))
    yield from unfinished.values()
