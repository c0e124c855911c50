"""Limits of a server that change from window to window, with hindsight or by the load.

*Over time.* A window gets the limits that are best for the time up to a horizon, where the requests
that are not done count as well.  The next window begins from there.  Several passes follow each
other, then windows are divided.  The chosen limits know the future: their run is a schedule, not
advice.

*By load.* The load of a window are the prompt tokens that arrived in the window before it, which a
server knows.  Limits for three classes of load are chosen on the first half of a log and judged on
the second: this is a simulation of advice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

from kvopt.heuristics.seconds.server_settings import UNLIMITED, ServerSetting
from kvopt.heuristics.seconds.vllm_rules import (
    LATENCY,
    MASS,
    SINCE,
    SPANS,
    OneServer,
    ServerState,
    WindowLimits,
    copy_state,
    serve_until,
)
from kvopt.kernels.budget import Budget
from kvopt.kernels.magnitudes import NEVER
from kvopt.problem.arrays import Floats, Integers
from kvopt.problem.clocks import Seconds, arrivals_ns
from kvopt.problem.instance import Instance

_LEVELS = ((600, 4), (150, 16), (40, 64))
"""Requests of a window and windows of a horizon, one pair after the other."""
_TRIES = 8
"""Limits to try for a window in a pass."""
_PASSES = 40
"""Limit of passes over windows of one size."""
_IDLE_PASSES, _GAIN = 3, 0.0005
"""Windows are divided after so many passes that gain less than this share each."""
_SPREAD = 0.3
"""Deviation of the logarithm of a limit."""
_LARGEST_PROMPTS, _LARGEST_BUDGET = 3, 10**6
"""Limits of prompts and tokens of a round to try."""
_MINIMUM_FOR_LOADS = 1_000
"""Fewer requests say too little about loads."""
_LOAD_CLASSES, _PER_LOAD = 3, 150
"""Classes of loads, and requests of a window, on average."""
_LOAD_STEPS = (2.0, 1.4, 1.15)
"""Factors of limits to try, one after the other."""


class SettingsByWindow:
    """Limits by window on one machine, and the best run so far.

    Parameters
    ----------
    server
        The requests.
    setting
        Order, and limits of all windows at first.
    budget, seed
        Time, and seed of the random generator.
    may_pause
        Whether runs that pause requests count.

    Attributes
    ----------
    best, best_limits
        Total latency of the best run, and its limits.
    """

    def __init__(
        self,
        server: OneServer,
        setting: ServerSetting,
        budget: Budget,
        seed: int,
        *,
        may_pause: bool,
    ) -> None:
        self._server, self._budget, self._by = server, budget, setting.by
        self._served = server.line(setting.by)
        self._windows = self.best_limits = server.capped(setting.limits())
        self._smallest = 1 if setting.chunked else max(r.peak for r in server.instance)
        self._may_pause, self._random = may_pause, Random(seed)
        self._record, self._work = server.record(), server.state()
        latency, pauses = server.latency(setting.by, self._windows)
        self.best: float = latency if may_pause or not pauses else math.inf
        self._mean = latency // max(1, server.instance.total_weight)

    def search(self) -> Iterator[dict[str, Any]]:
        """Divide windows and pass over them, until the time is over or nothing gains.

        Yields the work of the best run whenever windows are divided, and at the end.
        """
        for requests, horizon in _LEVELS:
            self.divide(requests)
            self._repeat(horizon)
            yield self.events()
            if self._budget.over():
                return

    def events(self) -> dict[str, Any]:
        """Return the work of the best run as arguments of a schedule."""
        return self._server.events(self._by, self.best_limits)

    def _repeat(self, horizon: int) -> None:
        """Pass over the windows until the time is over or passes gain little."""
        idle, before = 0, self.best
        for _ in range(_PASSES):
            if idle == _IDLE_PASSES or self._budget.over():
                return
            self.go_over(horizon)
            idle = 0 if self.best < before * (1 - _GAIN) else idle + 1
            before = min(before, self.best)

    def divide(self, requests: int) -> None:
        """Cut time into windows with about so many arrivals, which keep their limits."""
        timed, old = self._served.timed, self._windows
        times = np.unique(timed.arrivals[timed.coming[requests // 2 :: requests]])
        borders = np.concatenate([np.zeros(1, dtype=np.int64), times[1:]])
        places = np.searchsorted(old.borders, borders, side="right") - 1
        limits = np.take(old.limits, places, axis=1)
        self._windows = old._replace(borders=borders, limits=limits)

    def go_over(self, horizon: int) -> None:
        """Choose limits for each window in turn; keep the run if it is better."""
        windows, state = self._windows, self._server.state()
        limits, ends = windows.limits, [*windows.borders[1:].tolist(), NEVER]
        for window, end in enumerate(ends):
            last = min(window + horizon, len(ends)) - 1
            cost = self._cost(state, ends[last])
            for _ in range(_TRIES):
                if self._budget.over():
                    break
                old = limits[:, window].copy()
                limits[:, window] = self._varied(limits, window)
                changed = self._cost(state, ends[last])
                if changed > cost:
                    limits[:, window] = old
                cost = min(cost, changed)
            serve_until(self._served, windows, state, end, self._record)
        pauses = state.counts[SPANS] > len(self._server.instance)
        if state.counts[LATENCY] < self.best and (self._may_pause or not pauses):
            self.best = int(state.counts[LATENCY])
            self.best_limits = windows._replace(limits=limits.copy())

    def _cost(self, state: ServerState, until: int) -> int:
        """Return the latency up to a time from a state on, and about what is left after it.

        Unfinished requests, of weight ``mass`` in all, count as completed a mean latency later.
        """
        work = self._work
        copy_state(state, work)
        serve_until(self._served, self._windows, work, until, self._record)
        latency, mass, since = (int(work.counts[entry]) for entry in (LATENCY, MASS, SINCE))
        if until == NEVER:
            return latency
        return latency + mass * (until + self._mean) - since

    def _varied(self, limits: Integers, window: int) -> tuple[int, int, int]:
        """Return the limits of a window with one of them varied, or those of a neighbour."""
        random, last = self._random, limits.shape[1] - 1
        budget, cap, prompts = limits[:, window].tolist()
        way = random.random()
        if way < 0.15 and last > 0:
            near = min(max(window + random.choice((-1, 1)), 0), last)
            budget, cap, prompts = limits[:, near].tolist()
        elif way < 0.5:
            budget = round(budget * math.exp(random.gauss(0.0, _SPREAD)))
        elif way < 0.85:
            cap = round(cap * math.exp(random.gauss(0.0, _SPREAD)))
        else:
            prompts = random.choice((UNLIMITED, *range(1, _LARGEST_PROMPTS + 1)))
        cap = min(max(cap, 1), self._server.max_active)
        return min(max(budget, self._smallest), _LARGEST_BUDGET), cap, prompts


# ---- by load ------------------------------------------------------------------------------


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
    ends: Sequence[float]
    settings: Sequence[ServerSetting]
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
    if count < _MINIMUM_FOR_LOADS or not span:
        return None
    length = max(1, span * _PER_LOAD // count)
    in_order = sorted(range(count), key=lambda i: (arrivals[i], i))
    first, second = (
        _Half(instance.of_one_worker(sorted(members)), clock, length, setting)
        for members in (in_order[: count // 2], in_order[count // 2 :])
    )
    ends = np.quantile(first.loads, np.arange(1, _LOAD_CLASSES) / _LOAD_CLASSES)
    classes, later = (np.searchsorted(ends, half.loads) for half in (first, second))
    one = first.chosen([setting], 0 * classes, budget)
    chosen = first.chosen(one * _LOAD_CLASSES, classes, budget)
    in_hindsight = second.chosen(chosen, later, budget)
    if budget.over():
        return None
    means = (
        second.mean(chosen, later),
        second.mean(one, 0 * later),
        second.mean(in_hindsight, later),
    )
    return ByLoad(length / clock.scale, ends.tolist(), chosen, *means)


class _Half:
    """A half of a log: its requests on a machine, and the load of each window of a length.

    Parameters
    ----------
    instance, clock
        The requests, and how long rounds last.
    length
        Nanoseconds of a window.
    setting
        Order, and whether prompts may be processed in pieces.
    """

    def __init__(
        self, instance: Instance, clock: Seconds, length: int, setting: ServerSetting
    ) -> None:
        self._server, self._setting = OneServer(instance, clock), setting
        timed = self._server.line(setting.by).timed
        tokens = np.bincount(timed.arrivals // length, weights=timed.prompts)
        self._borders = length * np.arange(len(tokens), dtype=np.int64)
        before = np.concatenate([tokens[:1], tokens[:-1]])  # nothing is known of the first
        self.loads: Floats = before * clock.scale / length

    def mean(self, settings: Sequence[ServerSetting], classes: Integers) -> float:
        """Return the mean latency with a setting for each class of load, in seconds."""
        return self._latency(settings, classes) / self._server.instance.total_weight / 1e9

    def _latency(self, settings: Sequence[ServerSetting], classes: Integers) -> int:
        rows = np.hstack([one.limits().limits for one in settings])
        limits = np.take(rows, classes.astype(np.int64), axis=1)
        windows = WindowLimits(self._borders, limits, self._setting.chunked)
        return self._server.latency(self._setting.by, windows)[0]

    def chosen(
        self, settings: Sequence[ServerSetting], classes: Integers, budget: Budget
    ) -> list[ServerSetting]:
        """Return the best settings near the given ones, one limit after the other."""
        best, lowest = list(settings), self._latency(settings, classes)
        for step in _LOAD_STEPS:
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


def _near(setting: ServerSetting, step: float) -> Iterator[ServerSetting]:
    """Yield settings with a larger or smaller limit that servers accept."""
    for factor in (step, 1 / step):
        other_budget, other_cap = setting.scaled(factor)
        yield other_budget
        yield replace(other_cap, cap=min(other_cap.cap, setting.budget))
