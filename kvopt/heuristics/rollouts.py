"""A schedule made stretch by stretch, each stretch the best of many tries.

The total latency of a schedule is the bound of any prices, plus the reduced costs of its starts,
plus the price of the memory it leaves empty.  All of that is known as time goes on.  So a
schedule can be judged by its first rounds: run on from where it stands in many ways
(`kvopt.heuristics.passing` with other windows, other patience, a shuffled line), a stretch and
some rounds ahead, add what waiting requests have lost by then, keep the stretch of the
cheapest, and go on from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from kvopt.bounds.fluid import fluid_end
from kvopt.heuristics.passing import Habit, advance, cost_of_waiting, finish
from kvopt.heuristics.reduced_costs import Worth, worth_of
from kvopt.heuristics.scenes import (
    FRONT,
    FULLEST,
    NOW,
    STOP,
    Crowd,
    Made,
    Scene,
    copy_scene,
    first_scene,
    is_over,
    nothing_made,
    skip_idle_rounds,
)
from kvopt.kernels.arrays import Floats, columns_of
from kvopt.kernels.compiled import compiled
from kvopt.kernels.compiling import working_time
from kvopt.kernels.random_numbers import State, below, normal, reseed, uniform
from kvopt.model.instance import Instance
from kvopt.search.incumbent import Search

_SLICE = 500
"""Tries between two questions whether to stop."""
_WIDEST, _MOST_PATIENT = 200.0, 200.0
"""Largest window in requests, and largest patience in times passed over, that are drawn."""
_MOST_FILL = 2.0
"""Largest worth of filling memory that is drawn, in its price."""
_GAINING = 0.7
"""Share of new habits in which what gains most is started, not what is first in line."""
_HOLDING, _ALLOWED = 0.5, (0.05, 5.0)
"""Share of new habits in which a request may wait for its cheapest start, and what an earlier one
may cost more then, in mean outputs: a range."""
USUAL = (32.0, 16.0, float(FULLEST), -1.0, np.inf)
"""The parts of a habit to begin with."""


class Plan(NamedTuple):
    """How to roll.

    Parameters
    ----------
    stretch, ahead
        Rounds that are kept, and rounds of the look-ahead beyond.
    draws
        Tries for each stretch.
    seed
        Seed of the random generator.
    """

    stretch: int
    ahead: int
    draws: int
    seed: int


def search_rollouts(search: Search, seconds: float, seed: int = 0) -> None:
    """Roll with more and more tries, for so long or until nothing improves any more."""
    instance = search.instance
    params, longest = search.params.improve, search.params.lagrangian.longest
    if search.schedule is None or len(instance) < 2 or fluid_end(instance.pooled()) > longest:
        return
    end = working_time() + seconds
    crowd, keys = crowd_of(instance)
    proof = None if search.checked is None else search.checked.proof
    worth = worth_of(instance, proof, search.threads)
    stretch = max(1, params.rollout_starts * search.schedule.makespan // len(instance))
    mean, horizons = int(crowd.outputs.mean()), params.rollout_horizons
    idle, draws, count = 0, params.first_draws, 0

    def is_late() -> bool:
        return working_time() >= end or search.should_stop()

    with ThreadPoolExecutor(search.threads) as pool:
        while idle < params.idle_rollouts and not is_late():
            began, before = working_time(), search.schedule.objective
            ahead = int(horizons[count % len(horizons)] * mean) + 1
            seeds = [seed + count * search.threads + k for k in range(search.threads)]
            plans = [Plan(stretch, ahead, draws, seed) for seed in seeds]
            work = [
                pool.submit(rolled, crowd, worth, keys, plan, is_late, instance.workers)
                for plan in plans
            ]
            for made in [part.result() for part in work]:
                search.offer_starts(made.starts.tolist(), "rollouts", made.workers.tolist())
            idle = 0 if search.schedule.objective < before else idle + 1
            count += 1
            took, left = working_time() - began, end - working_time()
            draws = min(_next_draws(draws, took, left), params.most_draws)


def _next_draws(draws: int, took: float, left: float) -> int:
    """Return twice the tries, unless another roll with as many would not end in time."""
    if left == math.inf or left > 4 * took:
        return 2 * draws
    return max(2, min(draws, int(draws * left / max(took, 1e-3))))


def crowd_of(instance: Instance) -> tuple[Crowd, Floats]:
    """Return an instance as arrays, lined up by volume, and the logarithms of the volumes."""
    arrivals, prompts, outputs = columns_of(instance)
    volumes = np.array([float(request.volume) for request in instance])
    keys = np.log(volumes)
    line = np.lexsort((arrivals, prompts, volumes))
    coming = np.argsort(arrivals[line], kind="stable")
    mean = int(outputs.mean()) if len(outputs) else 0
    return Crowd(instance.memory, arrivals, prompts, outputs, line, coming, mean), keys


def rolled(
    crowd: Crowd,
    worth: Worth,
    keys: Floats,
    plan: Plan,
    should_stop: Callable[[], bool],
    workers: int = 1,
) -> Made:
    """Return what one roll makes; once it has to stop it goes on without tries."""
    count = len(crowd.line)
    scene, copy, made = *(first_scene(count, workers) for _ in range(2)), nothing_made(count)
    usual = np.array(USUAL)
    stretches = max(1, _SLICE // plan.draws)
    number = 0
    while not is_over(crowd, scene):
        if should_stop():
            end_usually(crowd, worth, scene, usual, made)
            break
        roll(crowd, worth, keys, scene, copy, plan, usual, number, stretches, made)
        number += stretches
    return made


@compiled
def roll(
    crowd: Crowd,
    worth: Worth,
    keys: Floats,
    scene: Scene,
    copy: Scene,
    plan: Plan,
    usual: Floats,
    number: int,
    stretches: int,
    made: Made,
) -> None:
    """Add so many stretches; usual is the habit of the last one."""
    rng = np.zeros(1, dtype=np.int64)
    for stretch in range(number, number + stretches):
        if is_over(crowd, scene):
            return
        skip_idle_rounds(crowd, scene)
        kept = scene.counts[NOW] + plan.stretch
        least, best = np.inf, 0
        for draw in range(plan.draws):
            copy_scene(scene, copy)
            reseed(rng, plan.seed, stretch, draw)
            habit = Habit(*arrange(crowd, keys, copy, usual, rng, draw == 0))
            cost = advance(crowd, copy, worth, habit, kept + plan.ahead, made)
            cost += cost_of_waiting(crowd, copy, worth)
            if cost < least:
                least, best = cost, draw
        reseed(rng, plan.seed, stretch, best)
        habit = Habit(*arrange(crowd, keys, scene, usual, rng, best == 0))
        advance(crowd, scene, worth, habit, kept, made)
        note(habit, usual)


@compiled
def end_usually(crowd: Crowd, worth: Worth, scene: Scene, usual: Floats, made: Made) -> None:
    """Run a scene on to its end with a habit that has been noted."""
    finish(crowd, scene, worth, Habit(*_noted(usual)), made)


@compiled
def note(habit: Habit, parts: Floats) -> None:
    """Note the parts of a habit."""
    parts[0], parts[1] = habit.window, habit.patience
    parts[2], parts[3], parts[4] = habit.choice, habit.fill, habit.allowed


@compiled
def _noted(parts: Floats) -> tuple[int, int, int, float, float]:
    return int(parts[0]), int(parts[1]), int(parts[2]), float(parts[3]), float(parts[4])


@compiled
def arrange(
    crowd: Crowd, keys: Floats, scene: Scene, usual: Floats, rng: State, plain: bool
) -> tuple[int, int, int, float, float]:
    """Shuffle the front of the line a little, and return the parts of a habit.

    The plain way is to go on as before.  Otherwise it is near the one before, or new.
    """
    if plain:
        return _noted(usual)
    fill, allowed = -1.0, np.inf
    if uniform(rng) < 0.5:
        window, patience = (usual[0] * _factor(rng), usual[1] * _factor(rng))
        fill, allowed = usual[3] * _factor(rng), usual[4] * _factor(rng)
        blur, tilt = 0.1 * uniform(rng), 0.0
    else:
        window = 2.0 * (_WIDEST / 2.0) ** uniform(rng)
        patience = _MOST_PATIENT ** uniform(rng)
        blur, tilt = 0.2 * uniform(rng), 0.3 * uniform(rng) - 0.1
        if uniform(rng) < _GAINING:
            fill = _MOST_FILL * uniform(rng)
        if uniform(rng) < _HOLDING:
            least, most = _ALLOWED
            allowed = crowd.mean_output * least * (most / least) ** uniform(rng)
    _shuffle(crowd, keys, scene, 4 * int(window) + 20, blur, tilt, rng)
    choice = int(usual[2])
    if len(scene.active) > 1 and uniform(rng) < 0.3:
        choice = below(rng, 3)
    return max(1, int(window + 0.5)), max(1, int(patience + 0.5)), choice, fill, allowed


@compiled
def _factor(rng: State) -> float:
    return float(np.exp(0.3 * normal(rng)))


@compiled
def _shuffle(
    crowd: Crowd, keys: Floats, scene: Scene, many: int, blur: float, tilt: float, rng: State
) -> None:
    """Sort the first in line by blurred volumes, times a power of their peaks."""
    front = scene.counts[FRONT]
    size = min(many, scene.counts[STOP] - front)
    blurred = np.empty(size)
    for x in range(size):
        i = crowd.line[scene.queue[front + x]]
        peak = float(crowd.prompts[i] + crowd.outputs[i])
        blurred[x] = keys[i] + blur * normal(rng) + tilt * np.log(peak)
    order = np.argsort(blurred)
    ranks = scene.queue[front : front + size].copy()
    for x in range(size):
        scene.queue[front + x] = ranks[order[x]]
