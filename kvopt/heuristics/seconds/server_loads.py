"""Settings by load: limits of a server that is set again when more or fewer prompts arrive.

The load of a window are the prompt tokens that arrived in the window before it, which a server
knows.  Limits for three classes of load are chosen on the first half of a log and judged on the
second: this is a simulation of advice, unlike a schedule that was chosen with hindsight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from kvopt.heuristics.seconds.server_loops import Settings
from kvopt.heuristics.seconds.server_runs import LARGEST_CAP, OneServer, ServerSetting
from kvopt.kernels.budget import Budget
from kvopt.problem.arrays import Floats, Integers
from kvopt.problem.clocks import Seconds, arrivals_ns
from kvopt.problem.instance import Instance

LEAST_REQUESTS = 1_000
"""Fewer requests say too little about loads."""
_CLASSES = 3
_WINDOW = 150
"""Requests of a window, on average."""
_STEPS = (2.0, 1.4, 1.15)
"""Factors of limits to try, one after the other."""


@dataclass(frozen=True)
class ByLoad:
    """Limits by load, and what they give on the second half of a log.

    Parameters
    ----------
    seconds
        Length of a window.
    ends
        Largest load of each class but the last, in prompt tokens a second.
    settings
        Limits of each class.
    mean, mean_of_one, mean_in_hindsight
        Mean latency in seconds on the second half: with these, with one setting that was chosen on
        the first half, and with limits by load that were chosen on the second half itself.
    """

    seconds: float
    ends: tuple[float, ...]
    settings: tuple[ServerSetting, ...]
    mean: float
    mean_of_one: float
    mean_in_hindsight: float

    @property
    def sentence(self) -> str:
        """Return a remark for users."""
        heads = [f"up to {end:,.0f}" for end in self.ends] + ["above"]
        limits = [f"{head}: {one.flags}" for head, one in zip(heads, self.settings, strict=True)]
        return (
            f"settings by load, order {self.settings[0].by}, simulated: chosen on the first half "
            f"of the log they give a mean of {self.mean:.3f} s on the second, one setting "
            f"{self.mean_of_one:.3f} s, hindsight {self.mean_in_hindsight:.3f} s; by the prompt "
            f"tokens a second of the {self.seconds:.0f} s before: {'; '.join(limits)}"
        )


def settings_by_load(
    instance: Instance, clock: Seconds, setting: ServerSetting, budget: Budget
) -> ByLoad | None:
    """Return limits by load near a setting, None if requests are few or the time is over.

    Parameters
    ----------
    instance, clock
        The requests, on one worker, and how long rounds last.
    setting
        Order and first limits, without a limit of prompts.
    budget
        Time.
    """
    count, arrivals = len(instance), arrivals_ns(instance)
    span = max(arrivals, default=0) - min(arrivals, default=0)
    if count < LEAST_REQUESTS or not span:
        return None
    length = max(1, span * _WINDOW // count)
    in_order = sorted(range(count), key=lambda i: (arrivals[i], i))
    halves = [
        _Half.of(instance, clock, setting, in_order[first:last], length)
        for first, last in ((0, count // 2), (count // 2, count))
    ]
    first, second = halves
    ends = np.quantile(first.loads, [k / _CLASSES for k in range(1, _CLASSES)])
    alike = np.zeros(len(first.loads), dtype=np.int64), np.zeros(len(second.loads), dtype=np.int64)
    classes = first.classes(ends), second.classes(ends)
    one = first.chosen([setting], alike[0], budget)
    chosen = first.chosen(one * _CLASSES, classes[0], budget)
    known = second.chosen(chosen, classes[1], budget)
    if budget.over():
        return None
    return ByLoad(
        length / clock.scale,
        tuple(float(end) for end in ends),
        tuple(chosen),
        second.mean(chosen, classes[1]),
        second.mean(one, alike[1]),
        second.mean(known, classes[1]),
    )


@dataclass(frozen=True)
class _Half:
    """A half of a log: its requests on a machine, and borders and loads of windows."""

    server: OneServer
    by: str
    borders: Integers
    loads: Floats

    @classmethod
    def of(
        cls,
        whole: Instance,
        clock: Seconds,
        setting: ServerSetting,
        members: Sequence[int],
        length: int,
    ) -> Self:
        """Return a half with windows of a length."""
        server = OneServer(whole.of_one_worker(sorted(members)), clock)
        times = server.served.since
        windows = times // length
        tokens = np.bincount(windows, weights=server.served.timed.prompts)
        borders = length * np.arange(len(tokens), dtype=np.int64)
        before = np.concatenate([tokens[:1], tokens[:-1]])  # nothing is known of the first
        return cls(server, setting.by, borders, before * clock.scale / length)

    def classes(self, ends: Floats) -> Integers:
        """Return the class of load of each window."""
        return np.searchsorted(ends, self.loads).astype(np.int64)

    def mean(self, settings: Sequence[ServerSetting], classes: Integers) -> float:
        """Return the mean latency with a setting for each class, in seconds."""
        count = sum(request.weight for request in self.server.instance)
        return self._latency(settings, classes) / count / 1e9

    def _latency(self, settings: Sequence[ServerSetting], classes: Integers) -> int:
        budgets = np.array([one.budget for one in settings], dtype=np.int64)[classes]
        caps = np.array([one.cap for one in settings], dtype=np.int64)[classes]
        prompts = np.full(len(classes), settings[0].limits().prompts[0], dtype=np.int64)
        limits = Settings(self.borders, budgets, caps, prompts, settings[0].chunked)
        served = self.server.by(self.server.keys_by(self.by))
        return self.server.latency(served, limits)[0]

    def chosen(
        self, settings: Sequence[ServerSetting], classes: Integers, budget: Budget
    ) -> list[ServerSetting]:
        """Return the best settings near the given ones, one limit after the other."""
        best, lowest = list(settings), self._latency(settings, classes)
        for step in _STEPS:
            before = None
            while before != lowest:
                before = lowest
                for place in range(len(best)):
                    for near in _near(best[place], step):
                        if budget.over():
                            return best
                        tried = [*best[:place], near, *best[place + 1 :]]
                        if (latency := self._latency(tried, classes)) < lowest:
                            best, lowest = tried, latency
        return best


def _near(setting: ServerSetting, step: float) -> list[ServerSetting]:
    """Return settings with a larger or smaller limit that servers accept."""
    found = []
    for factor in (step, 1 / step):
        budget = max(16, round(setting.budget * factor))
        found.append(replace(setting, budget=budget, cap=min(setting.cap, budget)))
        cap = min(max(1, round(setting.cap * factor)), LARGEST_CAP, setting.budget)
        found.append(replace(setting, cap=cap))
    return found
