"""Random dispatch rules for expansions: near the last one, or new, with a shuffled line.

Nobody knows which way of taking requests from the line is best next, so a beam
(`kvopt.heuristics.beams`) tries many: other windows, other patience, another line.
"""

from __future__ import annotations

import numpy as np

from kvopt.heuristics.passing import Habit, finish
from kvopt.heuristics.reduced_costs import Worth
from kvopt.heuristics.scenes import FRONT, FULLEST, STOP, Crowd, Made, Scene
from kvopt.kernels.compiled import compiled
from kvopt.kernels.random_numbers import State, below, normal, uniform
from kvopt.problem.arrays import Floats

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


@compiled
def end_usually(crowd: Crowd, worth: Worth, scene: Scene, usual: Floats, made: Made) -> None:
    """Run a node to its end with a stored dispatch rule."""
    finish(crowd, scene, worth, Habit(*_noted(usual)), made)


@compiled
def note(habit: Habit, parts: Floats) -> None:
    """Store the parts of a dispatch rule."""
    parts[0], parts[1] = habit.window, habit.patience
    parts[2], parts[3], parts[4] = habit.choice, habit.fill, habit.allowed


@compiled
def _noted(parts: Floats) -> tuple[int, int, int, float, float]:
    return int(parts[0]), int(parts[1]), int(parts[2]), float(parts[3]), float(parts[4])


@compiled
def arrange(
    crowd: Crowd, keys: Floats, scene: Scene, usual: Floats, rng: State, plain: bool
) -> tuple[int, int, int, float, float]:
    """Shuffle the front of the line a little, and return the parts of a dispatch rule.

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
