"""Settings of servers, and a grid of them: coarse on a sample of the requests, then finer on all.

Every point of the grid is a policy with a name.  Points are compared in three classes, since an
answer names the best of each: all of them, those that ``vllm serve`` has options for, and of these
the ones whose order knows no output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Self

import numpy as np

from kvopt.heuristics.seconds.vllm_rules import LARGEST_CAP, WindowLimits
from kvopt.kernels.budget import Budget
from kvopt.problem.batch_time import BatchTime
from kvopt.problem.instance import Instance
from kvopt.simulate.policies.by_name import policy
from kvopt.simulate.policies.server_policies import ServerPolicy, VllmPriority

UNLIMITED = 2**31
"""Prompts of a round without a limit."""
SERVERS_ON_SAMPLE = 0.3
"""Share of the time for coarse settings on a sample, or in loops; finer ones have the rest."""
ORDERS = ("total", "volume", "prompt", "output", "arrival")
"""Orders of the line."""
_BUDGETS = (256, 512, 1024, 2048, 4096, 8192)
_CAPS = (16, 32, 64, 128, 256, 512, 1024)
_PROMPTS = (None, 1, 2)
_SAMPLE = 2_000
"""Requests in a row on which the whole grid is tried, if there are twice as many."""
_FINALISTS = 12
"""Points of each class that are tried on all requests."""
_STEPS = (2.0, 1.4, 1.15, 1.05)
"""Factors of the limits around the best point, one after the other."""
_SMALLEST_BUDGET, _LARGEST_BUDGET = 16, 65_536
"""Limits of the tokens of a round."""


@dataclass(frozen=True)
class ServerSetting:
    """Order and limits of a server.

    Parameters
    ----------
    by
        Order of the line: ``arrival``, or as of `VllmPriority`.
    budget, cap
        Limits of the tokens of a round, and of requests at once.
    prompts
        Limit of the prompts of a round, None without one.
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
        limits = server.budget, server.max_seqs, server.prompts, server.chunked, server.block
        return cls(by, *limits)

    @property
    def label(self) -> str:
        """Name of the policy with these limits."""
        limits = f"block={self.block},budget={self.budget},max_seqs={self.cap}"
        limits += "" if self.prompts is None else f",prompts={self.prompts}"
        limits += "" if self.chunked else ",chunked=0"
        return ("vllm-fcfs:" if self.by == "arrival" else f"vllm-priority:by={self.by},") + limits

    @property
    def flags(self) -> str | None:
        """Options of ``vllm serve`` for these limits, None if it has none."""
        if self.prompts is not None:
            return None
        order = "fcfs" if self.by == "arrival" else "priority"
        flags = f"--max-num-batched-tokens {self.budget} --max-num-seqs {self.cap}"
        flags += "" if self.chunked else " --no-enable-chunked-prefill"
        return f"{flags} --scheduling-policy {order}"

    @property
    def knows_outputs(self) -> bool:
        """Whether the order needs the lengths of outputs."""
        return self.by not in ("arrival", "prompt")

    def limits(self) -> WindowLimits:
        """Return the limits for loops."""
        prompts = UNLIMITED if self.prompts is None else self.prompts
        rows = np.array([[self.budget], [self.cap], [prompts]], dtype=np.int64)
        return WindowLimits(np.zeros(1, dtype=np.int64), rows, self.chunked)

    def scaled(self, factor: float) -> tuple[Self, Self]:
        """Return the settings with another budget, and with another cap."""
        budget = max(_SMALLEST_BUDGET, round(self.budget * factor))
        cap = min(max(1, round(self.cap * factor)), LARGEST_CAP)
        return replace(self, budget=budget, cap=min(self.cap, budget)), replace(self, cap=cap)


Latency = Callable[[ServerSetting], float]
"""Total latency of a server with some settings, infinite without a schedule within the scope."""
Kind = Callable[[ServerSetting], bool]
"""Whether settings belong to a class."""


def _any(_: ServerSetting) -> bool:
    return True


def has_flags(setting: ServerSetting) -> bool:
    """Whether ``vllm serve`` has options for these settings."""
    return setting.flags is not None


def is_blind(setting: ServerSetting) -> bool:
    """Whether it has options, and its order knows no output."""
    return has_flags(setting) and not setting.knows_outputs


CLASSES = {"all": _any, "vllm": has_flags, "vllm without outputs": is_blind}
"""Classes of settings, of which each has a best one."""


class SettingsGrid:
    """Settings to try for an instance; a budget where two lines of the model meet is good.

    Parameters
    ----------
    instance, model
        The requests, and how long rounds last.
    chunked
        Whether prompts may be processed in pieces; else a round must hold the largest request.
    """

    def __init__(self, instance: Instance, model: BatchTime, *, chunked: bool) -> None:
        largest = max((request.peak for request in instance), default=1)
        self.chunked, self.block = chunked, instance.block_size
        self.budgets: tuple[int, ...] = largest, max(largest, _BUDGETS[-1])
        if chunked:
            self.budgets = tuple(sorted({*_BUDGETS, *_crossings(model)}))
        self._smallest = _SMALLEST_BUDGET if chunked else max(_SMALLEST_BUDGET, largest)

    def points(self) -> list[ServerSetting]:
        """Return the points of the coarse grid."""
        rows = product(ORDERS, self.budgets, _CAPS, _PROMPTS)
        return [*dict.fromkeys(self.allowed(ServerSetting(*row)) for row in rows)]

    def allowed(self, setting: ServerSetting) -> ServerSetting:
        """Return a setting within the limits that servers have, with blocks of the instance."""
        cap = min(max(setting.cap, 1), LARGEST_CAP)
        smallest = max(self._smallest, cap)
        budget = max(smallest, min(setting.budget, _LARGEST_BUDGET))
        return replace(setting, cap=cap, budget=budget, chunked=self.chunked, block=self.block)

    def near(self, setting: ServerSetting, step: float) -> Iterator[ServerSetting]:
        """Yield settings around one."""
        for factor in (step, 1 / step):
            yield from map(self.allowed, setting.scaled(factor))
        for prompts in (None, 1, 2, 3):
            yield replace(setting, prompts=prompts)
        for order in ORDERS:
            yield replace(setting, by=order)


def _crossings(model: BatchTime) -> Iterator[int]:
    """Yield the tokens of a round from which on the arithmetic takes longer than the weights."""
    for flat, steep in product(model.lines, repeat=2):
        if steep.token_ns > flat.token_ns and flat.round_ns > steep.round_ns:
            yield (flat.round_ns - steep.round_ns) // (steep.token_ns - flat.token_ns)


def sampled(instance: Instance, arrivals: list[int], count: int = _SAMPLE) -> Instance | None:
    """Return requests in a row from the middle, None if there are few."""
    if len(instance) < 2 * count:
        return None
    begin = (len(instance) - count) // 2
    in_order = sorted(range(len(arrivals)), key=lambda i: (arrivals[i], i))
    members = sorted(in_order[begin : begin + count])
    return replace(instance, requests=tuple(instance.requests[i] for i in members))


class Explored:
    """The settings that were tried on all requests, with their latencies.

    Parameters
    ----------
    latency
        Latency of a setting.
    budget
        Time.
    """

    def __init__(self, latency: Latency, budget: Budget) -> None:
        self._latency, self._budget = latency, budget
        self.latencies: dict[ServerSetting, float] = {}

    def try_all(self, settings: Iterable[ServerSetting]) -> None:
        """Try settings until the time is over."""
        for setting in settings:
            if setting not in self.latencies and not self._budget.over():
                self.latencies[setting] = self._latency(setting)

    def best(self, kind: Kind = _any) -> ServerSetting | None:
        """Return the best setting of a class, None without a schedule."""
        return next(iter(self.ranked(kind)), None)

    def ranked(self, kind: Kind = _any) -> list[ServerSetting]:
        """Return the settings of a class with a schedule, the best first."""
        settings = [s for s, value in self.latencies.items() if kind(s) and value < math.inf]
        return sorted(settings, key=self.latencies.__getitem__)

    def refine(self, grid: SettingsGrid, kind: Kind) -> None:
        """Try settings around the best one of a class, while these gain."""
        for step in _STEPS:
            before = None
            while (best := self.best(kind)) != before and not self._budget.over():
                before = best
                if best is not None:
                    self.try_all(filter(kind, grid.near(best, step)))

    def finalists(self, count: int) -> list[ServerSetting]:
        """Return so many of the best settings of each class, those of the first class first."""
        rows = (self.ranked(kind)[:count] for kind in CLASSES.values())
        return [*dict.fromkeys(setting for row in rows for setting in row)]


def explored(
    grid: SettingsGrid, latency: Latency, on_sample: Latency | None, budget: Budget
) -> Explored:
    """Return the settings that were tried: coarse on a sample, then finer on all requests.

    Parameters
    ----------
    grid
        The settings.
    latency, on_sample
        Latency on all requests, and on a sample of them if there are many.
    budget
        Time.
    """
    points = grid.points()
    if on_sample is not None:
        coarse = Explored(on_sample, budget.part(SERVERS_ON_SAMPLE))
        coarse.try_all(points)
        points = coarse.finalists(_FINALISTS)
    tried = Explored(latency, budget)
    tried.try_all(points)
    for kind in CLASSES.values():
        tried.refine(grid, kind)
    return tried
