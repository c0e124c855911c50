"""About the best prices of states, by the linear program over all configurations."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import brute_force
import numpy as np
from scipy.optimize import linprog

from literal import configurations as literal
from literal.configurations import Prices, State


def present(request: brute_force.Triple, start: int, time: int) -> State:
    state = literal.state_of(request, start, time)
    assert state is not None
    return state


def best_prices(memory: int, requests: Sequence[brute_force.Triple]) -> Prices:
    """Return about the best prices of all, from the linear program over all configurations.

    Variables: u_i, then R_t and F_t of each time.  Maximise sum u - sum R, where u_i is at
    most each cost of request i and R_t at least the weight of each configuration.
    """
    end = brute_force.last_time(requests)
    states, times = sorted(literal.copies_at(requests)), range(1, end + 1)
    place = {pair: i for i, pair in enumerate(itertools.product(times, states))}
    first = len(requests) + len(times)
    rows, sides = [], []
    for i, request in enumerate(requests):
        for start in range(request[0], end - request[2] + 1):
            row = np.zeros(first + len(place))
            row[i] = 1
            for time in range(start + 1, start + request[2] + 1):
                row[first + place[time, present(request, start, time)]] = -1
            rows.append(row)
            sides.append(start + request[2] - request[0])
    for t, time in enumerate(times):
        copies = literal.copies_at(requests, time)
        for configuration in literal.configurations(memory, states, copies):
            row = np.zeros(first + len(place))
            row[len(requests) + t] = -1
            for state in configuration:
                row[first + place[time, state]] += 1
            rows.append(row)
            sides.append(0)
    gain = np.array([-1.0] * len(requests) + [1.0] * len(times) + [0.0] * len(place))
    solved = linprog(gain, A_ub=np.array(rows), b_ub=sides, bounds=(0, None))
    assert solved.status == 0
    weights = [Fraction(round(float(value) * 720), 720) for value in solved.x[first:]]
    return {time: {s: weights[place[time, s]] for s in states} for time in times}
