"""Random dispatch rules for expansions: near the last one, or new, with a shuffled line.

The best rule for the next interval is unknown, so a beam (`kvopt.heuristics.trace_beams`) tries
many: other windows, other patience, another line.
"""

from __future__ import annotations

import numpy as np

from kvopt.heuristics.dispatch import Room, Rule, Trace
from kvopt.heuristics.nodes import FRONT, FULLEST, STOP, Node
from kvopt.kernels.compiled import compiled
from kvopt.kernels.copying import order_of
from kvopt.kernels.random_numbers import State, below, factor, normal, uniform
from kvopt.problem.arrays import Floats

_WIDEST, _MOST_PATIENT = 200.0, 200.0
"""Limits of the draws: window in requests, and patience in times passed over."""
_MOST_FILL = 2.0
"""Limit of the drawn value of filling memory, relative to its price."""
_GAINING = 0.7
"""Share of new rules that start the request that gains most, not the first in line."""
_HOLDING, _ALLOWED = 0.5, (0.05, 5.0)
"""Share of new rules in which a request may wait for its cheapest start, and the range of the
reduced cost that starts it earlier, in mean outputs."""
USUAL = (32.0, 16.0, FULLEST, -1.0, np.inf)
"""The parts of the first rule."""


@compiled
def arrange(
    trace: Trace,
    node: Node,
    usual: Floats,
    room: Room,  # noqa: ARG001
    rng: State,
    plain: bool,
) -> Rule:
    """Shuffle the front of the line a little, and return a dispatch rule.

    By default it is the last rule again.  Otherwise it is near the last one, or new.
    """
    choice, fill, allowed = usual[2], -1.0, np.inf
    if plain:
        return Rule(usual[0], usual[1], choice, usual[3], usual[4])
    if uniform(rng) < 0.5:
        window, patience = usual[0] * factor(rng, 0.3), usual[1] * factor(rng, 0.3)
        fill, allowed = usual[3] * factor(rng, 0.3), usual[4] * factor(rng, 0.3)
        blur, tilt = 0.1 * uniform(rng), 0.0
    else:
        window = 2.0 * (_WIDEST / 2.0) ** uniform(rng)
        patience = _MOST_PATIENT ** uniform(rng)
        blur, tilt = 0.2 * uniform(rng), 0.3 * uniform(rng) - 0.1
        if uniform(rng) < _GAINING:
            fill = _MOST_FILL * uniform(rng)
        if uniform(rng) < _HOLDING:
            least, most = _ALLOWED
            allowed = trace.requests.mean_output * least * (most / least) ** uniform(rng)
    # The first in line are sorted by blurred volumes, times a power of their peaks.
    requests, front = trace.requests, node.counts[FRONT]
    size = min(4 * int(window) + 20, node.counts[STOP] - front)
    blurred = np.empty(size)
    for x in range(size):
        i = requests.line[node.queue[front + x]]
        peak = float(requests.prompts[i] + requests.outputs[i])
        blurred[x] = trace.keys[i] + blur * normal(rng) + tilt * np.log(peak)
    order, ranks = order_of(blurred), node.queue[front : front + size].copy()
    for x in range(size):
        node.queue[front + x] = ranks[order[x]]
    if len(node.active) > 1 and uniform(rng) < 0.3:
        choice = float(below(rng, 3))
    window, patience = float(int(window + 0.5)), float(int(patience + 0.5))
    return Rule(max(1.0, window), max(1.0, patience), choice, fill, allowed)
