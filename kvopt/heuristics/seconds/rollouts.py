"""Runs in seconds made stretch by stretch, each stretch the best of many tries.

As in rounds (`kvopt.heuristics.rollouts`), with prices of machine time for prices of memory: those
of the fluid of the bound, on a machine that is a little slower.  No run fills its memory all the
time, so a run is behind the fluid later on, and the prices of a slower fluid fit its times better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from kvopt.bounds.fluid import machine_prices
from kvopt.bounds.kinds import Floats
from kvopt.bounds.seconds_evaluation import Shares, shares
from kvopt.heuristics.attaining.loops import Timed
from kvopt.heuristics.seconds.passing import (
    DONE,
    NOW,
    WAITING,
    WAITS,
    Done,
    Habits,
    Ranked,
    TimedScene,
    Times,
    copy_timed,
    cost_of_line,
    empty_scene,
    find_cheapest,
    run_on,
)
from kvopt.kernels.compiled import compiled
from kvopt.kernels.compiling import working_time
from kvopt.kernels.random_numbers import State, normal, reseed, uniform
from kvopt.model.arrivals import arrivals_ns
from kvopt.model.batch_time import BatchTime
from kvopt.model.instance import Instance
from kvopt.simulation.clocks import Seconds
from kvopt.simulation.runs import Outcome, PolicyRun

SLOWER = (1.05, 1.03, 1.07, 1.0)
"""How many times as slow the machine of the prices is, in turn."""
AHEAD = (2.0, 1.0, 4.0)
"""Look-ahead beyond a stretch, in mean outputs, in turn."""
STARTS = 4
"""Requests that start in a stretch, about."""
FIRST_DRAWS, FEW_DRAWS, MOST_DRAWS = 16, 32, 1024
"""Tries for each stretch: at first, at most where there is no limit of time, and where there is."""
_GROWTH = 4.0
"""How many times as many tries the next roll has at most."""
IDLE_TURNS = 4
"""Rolls without improvement after which they end."""
_GRID = 16_384
"""Times at which prices are kept."""
_MOST_ROUNDS = 20_000_000
"""Limit of rounds, which are gone through one by one."""
_LARGEST = 2**61
"""Nanoseconds that loops in 64 bits can count to."""
_SLICE = 2_000
"""Tries between two questions whether to stop."""
_WIDEST, _FULLEST = 80.0, 100.0
"""Largest window in requests, and strongest preference for long prompts, that are drawn."""
_USUAL = (20.0, 50.0, 1.0)
"""Parts of `Habits` to begin with."""
_BLURRED = 200
"""Requests in line whose keys are blurred."""


class Roll(NamedTuple):
    """How to roll: rounds that are kept and looked ahead, tries for each stretch, and a seed."""

    stretch: int
    ahead: int
    draws: int
    seed: int


class TimedRun(NamedTuple):
    """A run: total latency in nanoseconds, rounds of starts, and rounds and times of resuming."""

    value: int
    starts: tuple[int, ...]
    resumed: tuple[tuple[int, int], ...]


def rolled_in_seconds(
    instance: Instance,
    clock: Seconds,
    lines: Sequence[int],
    *,
    time_limit: float = math.inf,
    threads: int = 1,
    seed: int = 0,
    should_stop: Callable[[], bool] = lambda: False,
) -> PolicyRun | None:
    """Return the best run of some rolls, with more and more tries; None where they are too large.

    Parameters
    ----------
    instance, clock
        The requests, on one worker, and how long rounds last.
    lines
        Positions of the lines of the bound.
    time_limit
        Seconds; without a limit the tries remain few.
    threads
        Rolls at the same time.
    seed
        Of the random generator.
    should_stop
        Asked now and then.
    """
    model, arrivals = clock.batch_time, arrivals_ns(instance)
    chosen = [model.lines[i] for i in lines]
    part = shares(instance, model, chosen, float)
    late = max(arrivals, default=0) + float(part.alone.sum())
    if len(instance) < 2 or instance.total_output > _MOST_ROUNDS or late >= _LARGEST:
        return None
    start = working_time()
    end = start + time_limit

    def is_over() -> bool:
        return should_stop() or working_time() >= end

    roller = _Roller(instance, model, lines, arrivals, part, is_over)
    first = Roll(1, 0, 1, seed)
    best = roller.roll(first, SLOWER[0])
    stretch = max(1, STARTS * roller.rounds // len(instance))
    most = FEW_DRAWS if time_limit == math.inf else MOST_DRAWS
    draws, turn, idle = FIRST_DRAWS, 0, 0
    with ThreadPoolExecutor(threads) as pool:
        while idle < IDLE_TURNS and not is_over():
            began = working_time()
            ahead = int(AHEAD[turn % len(AHEAD)] * instance.total_output / len(instance)) + 1
            slower = [SLOWER[turn % len(SLOWER)]] * threads
            rolls = [Roll(stretch, ahead, draws, seed + turn * threads + k) for k in range(threads)]
            made = list(pool.map(roller.roll, rolls, slower))
            turn, idle = turn + 1, idle + 1
            if min(made).value < best.value:
                best, idle = min(made), 0
            if draws == most and time_limit == math.inf:
                break
            draws = min(_next_draws(draws, working_time() - began, end - working_time()), most)
    made_run = PolicyRun(
        instance, "rollouts", best.starts, (), Outcome.COMPLETED, working_time() - start,
        clock=clock, resumed=dict(best.resumed),
    )  # fmt: skip
    broken = made_run.violations()
    assert not broken, broken[0]
    assert made_run.objective == best.value, "both compute the same times"
    return made_run


def _next_draws(draws: int, took: float, left: float) -> int:
    """Return more tries, as many as end in time."""
    fitting = math.inf if left == math.inf else 0.8 * left / max(took, 1e-3)
    return max(2, int(draws * min(_GROWTH, fitting)))


def _timed(instance: Instance, model: BatchTime, arrivals: Sequence[int]) -> Timed:
    """Return an instance on the clock of a model; no request is due."""
    times = np.array(arrivals, dtype=np.int64)
    return Timed(
        instance.memory, times, np.argsort(times, kind="stable"),
        np.array([r.prompt for r in instance], dtype=np.int64),
        np.array([r.output for r in instance], dtype=np.int64),
        np.zeros(len(times), dtype=np.int64), False,
        np.array([line.round_ns for line in model.lines], dtype=np.int64),
        np.array([line.token_ns for line in model.lines], dtype=np.int64),
        model.prompt_ns, model.kv_ns,
    )  # fmt: skip


class _Roller:
    """An instance as arrays."""

    def __init__(
        self, instance: Instance, model: BatchTime, lines: Sequence[int], arrivals: Sequence[int],
        part: Shares, is_over: Callable[[], bool],
    ) -> None:  # fmt: skip
        self._timed, self._is_over = _timed(instance, model, arrivals), is_over
        self._takes: Floats = part.takes / instance.memory
        line = np.argsort(self._takes, kind="stable")
        ranks = np.empty_like(line)
        ranks[line] = np.arange(len(line))
        self._ranked = Ranked(line, ranks, np.log(self._takes))
        self._waits: Floats = part.alone - part.delays / (2.0 * part.takes)
        chosen = [model.lines[i] for i in lines]
        self._fixed, self._decode = (
            max(x.round_ns + x.token_ns * b for x in chosen) for b in (0, 1)
        )
        tokens = [x.round_ns + x.token_ns * (self._timed.prompts + 1) for x in chosen]
        prompts = model.prompt_ns * self._timed.prompts
        self._works: Floats = np.max(tokens, axis=0) - float(self._fixed) + prompts
        self.rounds = 0

    def roll(self, roll: Roll, slower: float) -> TimedRun:
        """Return what a roll makes; once it is over it goes on without tries."""
        times, count = self._times(slower), len(self._takes)
        starts, ends = np.zeros((2, count), dtype=np.int64)
        done = Done(starts, ends, np.zeros((count + 1, 2), dtype=np.int64))
        scene, copy = empty_scene(count), empty_scene(count)
        usual, number, stretches = np.array(_USUAL), 0, max(1, _SLICE // roll.draws)
        while scene.counts[DONE] < count:
            plan = roll._replace(draws=1) if self._is_over() else roll
            go_on(
                self._timed, times, self._ranked, plan, usual, number, stretches, scene, copy, done
            )
            number += stretches
        self.rounds = int(scene.counts[NOW])
        value = sum((done.ends - self._timed.arrivals).tolist())
        rows = done.resumed[: scene.counts[WAITS]].tolist()
        resumed = tuple((number, time) for number, time in rows)
        return TimedRun(value, tuple(done.starts.tolist()), resumed)

    def _times(self, slower: float) -> Times:
        arrivals = self._timed.arrivals.tolist()
        grid, prices = machine_prices(arrivals, slower * self._takes, _GRID)
        least, cheapest = np.zeros((2, len(arrivals)))
        times = Times(
            prices, min(arrivals), float(grid[1] - grid[0]), self._takes, self._works, self._waits,
            least, cheapest, float(self._fixed), float(self._decode - self._fixed),
        )  # fmt: skip
        find_cheapest(self._timed, times)
        return times


@compiled
def go_on(
    timed: Timed, times: Times, ranked: Ranked, roll: Roll, usual: Floats, number: int,
    stretches: int, scene: TimedScene, copy: TimedScene, done: Done,
) -> None:  # fmt: skip
    """Add so many stretches; usual is the habit of the last one."""
    rng = np.zeros(1, dtype=np.int64)
    noise = np.zeros(len(ranked.line))
    for stretch in range(number, number + stretches):
        kept = scene.counts[NOW] + roll.stretch
        least, best = np.inf, 0
        for draw in range(roll.draws if roll.draws > 1 else 0):
            reseed(rng, roll.seed, stretch, draw)
            habits = Habits(*_drawn(scene, usual, noise, rng, draw == 0))
            copy_timed(scene, copy)
            cost = run_on(timed, times, ranked, noise, habits, copy, kept + roll.ahead, done)
            cost += cost_of_line(timed, times, ranked, copy)
            if cost < least:
                least, best = cost, draw
        reseed(rng, roll.seed, stretch, best)
        habits = Habits(*_drawn(scene, usual, noise, rng, best == 0))
        run_on(timed, times, ranked, noise, habits, scene, kept, done)
        usual[0], usual[1], usual[2] = habits.window, habits.fill, habits.together


@compiled
def _drawn(
    scene: TimedScene, usual: Floats, noise: Floats, rng: State, plain: bool
) -> tuple[int, float, int]:
    """Blur the keys of the first in line, and return the parts of a habit.

    The plain way is to go on as before.  Otherwise it is near the one before, or new.
    """
    noise[:] = 0.0
    if plain:
        return int(usual[0]), float(usual[1]), int(usual[2])
    if uniform(rng) < 0.5:
        window, fill = usual[0] * np.exp(0.3 * normal(rng)), usual[1] * np.exp(0.3 * normal(rng))
    else:
        window, fill = 2.0 * (_WIDEST / 2.0) ** uniform(rng), _FULLEST * uniform(rng) ** 2
    together = int(usual[2]) if uniform(rng) < 0.7 else int(2.0 ** (5.0 * uniform(rng)))
    blur = 0.0 if uniform(rng) < 0.2 else (1.0 + fill / 30.0) * uniform(rng) ** 2
    for place in range(min(scene.counts[WAITING], _BLURRED)):
        noise[scene.queue[place]] = blur * normal(rng)
    return max(1, int(window)), float(fill), together
