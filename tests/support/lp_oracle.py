"""The LP relaxation of the time-indexed program, from its definition, solved by SciPy.

As in `brute_force`, nothing of kvopt is imported.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from brute_force import Triple
from scipy.optimize import linprog


def relaxed_optimum(memory: int, requests: Sequence[Triple]) -> float:
    """Return the value of the LP up to a time by which all outputs fit one after another."""
    horizon = max((a for a, _, _ in requests), default=0) + sum(o for _, _, o in requests)
    columns = [
        (i, k)
        for i, (arrival, _, output) in enumerate(requests)
        for k in range(arrival, horizon - output + 1)
    ]
    tokens = np.zeros((horizon, len(columns)))
    starts = np.zeros((len(requests), len(columns)))
    latency = np.zeros(len(columns))
    for column, (i, start) in enumerate(columns):
        arrival, prompt, output = requests[i]
        starts[i, column] = 1
        latency[column] = start + output - arrival
        for age in range(1, output + 1):
            tokens[start + age - 1, column] = prompt + age
    limits = np.full(horizon, memory)
    if not columns:
        return 0.0
    return float(linprog(latency, tokens, limits, starts, np.ones(len(requests))).fun)
