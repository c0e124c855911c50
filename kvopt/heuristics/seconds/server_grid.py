"""A grid of settings of servers: coarse on a sample of the requests, then finer on all of them.

Every point of the grid is a policy with a name.  Points are compared in three classes, since an
answer names the best of each: all of them, those that ``vllm serve`` has options for, and of these
the ones whose order knows no output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from kvopt.heuristics.seconds.server_runs import LARGEST_CAP, ServerSetting
from kvopt.kernels.budget import Budget
from kvopt.problem.batch_time import BatchTime
from kvopt.problem.instance import Instance

SERVERS_ON_SAMPLE = 0.3
"""Share of the time for coarse settings on a sample, or in loops; finer ones have the rest."""
Latency = Callable[[ServerSetting], float]
"""Total latency of a server with some settings, infinite without a schedule within the scope."""
Kind = Callable[[ServerSetting], bool]
"""Whether settings belong to a class."""

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
_LEAST_BUDGET, _LARGEST_BUDGET = 16, 65_536
"""Limits of the tokens of a round."""


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


@dataclass
class Grid:
    """Settings and their latencies.

    Parameters
    ----------
    chunked
        Whether prompts may be processed in pieces.
    largest
        Largest number of tokens of a request, which a round must hold without pieces.
    budgets
        First budgets to try.
    block
        Tokens of a block.
    orders
        Orders of the line.
    """

    chunked: bool
    largest: int
    budgets: tuple[int, ...]
    block: int
    orders: tuple[str, ...]

    @classmethod
    def of(cls, instance: Instance, model: BatchTime, *, chunked: bool) -> Grid:
        """Return the grid for an instance; a budget where two lines of the model meet is good."""
        largest = max((request.peak for request in instance), default=1)
        budgets = tuple(sorted({*_BUDGETS, *_crossings(model)}))
        if not chunked:
            budgets = largest, max(largest, _BUDGETS[-1])
        orders = (*ORDERS, "work") if "prefix" in instance.extras else ORDERS
        return cls(chunked, largest, budgets, instance.block_size, orders)

    def points(self) -> list[ServerSetting]:
        """Return the points of the coarse grid."""
        rows = product(self.orders, self.budgets, _CAPS, _PROMPTS)
        return [
            *dict.fromkeys(
                self.allowed(ServerSetting(*row, self.chunked, self.block)) for row in rows
            )
        ]

    def allowed(self, setting: ServerSetting) -> ServerSetting:
        """Return a setting within the limits that servers have."""
        cap = min(max(setting.cap, 1), LARGEST_CAP)
        least = max(_LEAST_BUDGET, cap, 0 if self.chunked else self.largest)
        budget = max(least, min(setting.budget, max(_LARGEST_BUDGET, least)))
        return replace(setting, cap=cap, budget=budget)

    def near(self, setting: ServerSetting, step: float) -> Iterator[ServerSetting]:
        """Yield settings around one."""
        for factor in (step, 1 / step):
            budget = round(setting.budget * factor)
            cap = min(setting.cap, max(budget, _LEAST_BUDGET))
            yield self.allowed(replace(setting, budget=budget, cap=cap))
            yield self.allowed(replace(setting, cap=round(setting.cap * factor)))
        for prompts in (None, 1, 2, 3):
            yield replace(setting, prompts=prompts)
        for order in self.orders:
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

    def tried(self, setting: ServerSetting) -> float:
        """Return the latency of a setting, infinite if it is not known by the end of the time."""
        if setting not in self.latencies:
            if self._budget.over():
                return math.inf
            self.latencies[setting] = self._latency(setting)
        return self.latencies[setting]

    def try_all(self, settings: Iterable[ServerSetting]) -> None:
        """Try settings until the time is over."""
        for setting in settings:
            self.tried(setting)

    def best(self, kind: Kind = _any) -> ServerSetting | None:
        """Return the best setting of a class, None without a schedule."""
        return next(iter(self.ranked(kind)), None)

    def ranked(self, kind: Kind = _any) -> list[ServerSetting]:
        """Return the settings of a class with a schedule, the best first."""
        rows = [(value, s) for s, value in self.latencies.items() if kind(s) and value < math.inf]
        return [setting for _, setting in sorted(rows, key=lambda row: row[0])]

    def refine(self, grid: Grid, kind: Kind) -> None:
        """Try settings around the best one of a class, while these gain."""
        for step in _STEPS:
            before = None
            while (best := self.best(kind)) != before and not self._budget.over():
                before = best
                for setting in grid.near(best, step) if best is not None else ():
                    if kind(setting):
                        self.tried(setting)

    def finalists(self, count: int) -> list[ServerSetting]:
        """Return so many of the best settings of each class, those of the first class first."""
        chosen: dict[ServerSetting, None] = {}
        for kind in CLASSES.values():
            chosen |= dict.fromkeys(self.ranked(kind)[:count])
        return [*chosen]


def explored(grid: Grid, latency: Latency, on_sample: Latency | None, budget: Budget) -> Explored:
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
    made = Explored(latency, budget)
    made.try_all(points)
    for kind in CLASSES.values():
        made.refine(grid, kind)
    return made
