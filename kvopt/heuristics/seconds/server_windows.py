"""Settings of a server that change over time, chosen window by window.

A window gets the limits that are best for the time up to a horizon, where the requests that are not
done count as well.  The next window begins from there.  Several passes follow each other, then
windows are divided.  The chosen limits know the future: their run is a schedule, not advice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np

from kvopt.heuristics.seconds.server_loops import (
    LATENCY,
    MASS,
    SINCE,
    SPANS,
    Served,
    ServerState,
    Settings,
    copy_state,
    record_of,
    serve_until,
)
from kvopt.heuristics.seconds.server_runs import LARGEST_CAP, UNLIMITED, OneServer, ServerSetting
from kvopt.kernels.budget import Budget
from kvopt.kernels.magnitudes import NEVER

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
_MOST_PROMPTS = 3
"""Prompts of a round to try."""


class Windows:
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
    best, best_run
        Total latency of the best run, and its requests and limits.
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
        self._server, self._budget = server, budget
        self._served = server.by(server.keys_by(setting.by))
        self._settings = server.obeyed(setting.limits())
        self._least = 1 if setting.chunked else max(r.peak for r in server.instance)
        self._may_pause, self._random = may_pause, Random(seed)
        self._record = record_of(len(server.instance))
        self._work, self._base = server.state(), server.state()
        latency, pauses = server.latency(self._served, self._settings)
        self.best: float = latency if may_pause or not pauses else math.inf
        self.best_run: tuple[Served, Settings] = self._served, self._settings
        self._each = latency // max(1, sum(r.weight for r in server.instance))

    def search(self) -> Iterator[dict[str, Any]]:
        """Divide windows and pass over them, until the time is over or nothing gains.

        Yields the work of the best run whenever windows are divided, and at the end.
        """
        for requests, horizon in _LEVELS:
            self._divide(requests)
            self._repeat(horizon)
            yield self._server.events(*self.best_run)
            if self._budget.over():
                return

    def _repeat(self, horizon: int) -> None:
        """Pass over the windows until the time is over or passes gain little."""
        idle, before = 0, self.best
        for _ in range(_PASSES):
            if idle == _IDLE_PASSES or self._budget.over():
                return
            self._pass(horizon)
            idle = 0 if self.best < before * (1 - _GAIN) else idle + 1
            before = min(before, self.best)

    def _divide(self, requests: int) -> None:
        """Cut time into windows with about so many arrivals, which keep their limits."""
        timed, old = self._served.timed, self._settings
        times = np.unique(timed.arrivals[timed.coming[requests // 2 :: requests]])
        borders = np.concatenate([np.zeros(1, dtype=np.int64), times[1:]])
        places = np.searchsorted(old.borders, borders, side="right") - 1
        columns = (old.budgets[places], old.caps[places], old.prompts[places])
        self._settings = Settings(borders, *columns, old.is_chunked)

    def _pass(self, horizon: int) -> None:
        """Choose limits for each window in turn; keep the run if it is better."""
        settings, state = self._settings, self._base
        copy_state(self._server.state(), state)
        ends = [*settings.borders[1:].tolist(), NEVER]
        for window, end in enumerate(ends):
            last = min(window + horizon, len(ends)) - 1
            cost = self._cost(state, ends[last])
            for _ in range(_TRIES):
                if self._budget.over():
                    break
                old = self._vary(window)
                new = self._cost(state, ends[last])
                if new > cost:
                    self._put(window, old)
                cost = min(cost, new)
            serve_until(self._served, settings, state, end, self._record)
        pauses = state.counts[SPANS] > len(self._server.instance)
        if state.counts[LATENCY] < self.best and (self._may_pause or not pauses):
            self.best = int(state.counts[LATENCY])
            kept = {name: getattr(settings, name).copy() for name in ("budgets", "caps", "prompts")}
            self.best_run = self._served, settings._replace(**kept)

    def _cost(self, state: ServerState, until: int) -> int:
        """Return the latency up to a time from a state on, and about what is left after it."""
        work = self._work
        copy_state(state, work)
        serve_until(self._served, self._settings, work, until, self._record)
        latency, mass, since = (int(work.counts[entry]) for entry in (LATENCY, MASS, SINCE))
        if until == NEVER:
            return latency
        return latency + mass * (until + self._each) - since

    def _limits(self, window: int) -> tuple[int, int, int]:
        settings = self._settings
        columns = settings.budgets, settings.caps, settings.prompts
        return tuple(int(column[window]) for column in columns)  # type: ignore[return-value]

    def _put(self, window: int, limits: tuple[int, int, int]) -> None:
        settings = self._settings
        for column, limit in zip(settings[1:4], limits, strict=True):
            column[window] = limit

    def _vary(self, window: int) -> tuple[int, int, int]:
        """Vary a limit of a window, or take those of a neighbour; return the old ones."""
        random, old = self._random, self._limits(window)
        budget, cap, prompts = old
        way = random.random()
        if way < 0.15 and len(self._settings.borders) > 1:
            near = window + random.choice((-1, 1))
            budget, cap, prompts = self._limits(min(max(near, 0), len(self._settings.borders) - 1))
        elif way < 0.5:
            budget = round(budget * math.exp(random.gauss(0.0, _SPREAD)))
        elif way < 0.85:
            cap = round(cap * math.exp(random.gauss(0.0, _SPREAD)))
        else:
            prompts = random.choice((UNLIMITED, *range(1, _MOST_PROMPTS + 1)))
        most = min(self._server.instance.max_active or LARGEST_CAP, LARGEST_CAP)
        cap = min(max(cap, 1), most)
        self._put(window, (min(max(budget, self._least), 10**6), cap, prompts))
        return old
