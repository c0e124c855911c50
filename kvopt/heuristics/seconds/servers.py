"""A server on a clock of seconds as arrays: its requests, and their costs at prices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kvopt.bounds.fluid import machine_prices
from kvopt.bounds.seconds_evaluation import RequestTimes
from kvopt.heuristics.attaining.loops import timed_of
from kvopt.heuristics.seconds.dispatch import Ranked, Server, Times, find_cheapest
from kvopt.problem.arrays import Floats, columns_of
from kvopt.problem.batch_time import BatchTime
from kvopt.problem.instance import Instance

_GRID = 16_384
"""Number of times with stored prices."""


def server_of(
    instance: Instance,
    model: BatchTime,
    lines: Sequence[int],
    arrivals: Sequence[int],
    part: RequestTimes,
    slower: float,
) -> Server:
    """Return a server, with the prices of the fluid on a machine so many times as slow.

    Parameters
    ----------
    instance, model
        The requests, and how long rounds last.
    lines
        Positions of the lines of the bound.
    arrivals
        Arrivals in nanoseconds.
    part
        Machine time of requests, by these lines.
    slower
        Factor by which the machine of the prices is slower.
    """
    _, prompts, outputs = columns_of(instance)
    moments = np.array(arrivals, dtype=np.int64)
    timed = timed_of(instance.memory, model, moments, prompts, outputs)
    takes: Floats = part.takes / instance.memory
    line = np.argsort(takes, kind="stable")
    ranks = np.empty_like(line)
    ranks[line] = np.arange(len(line))
    waits: Floats = part.alone - part.delays / (2.0 * part.takes)
    chosen = [model.lines[i] for i in lines]
    fixed, decode = (max(x.round_ns + x.token_ns * b for x in chosen) for b in (0, 1))
    tokens = [x.round_ns + x.token_ns * (timed.prompts + 1) for x in chosen]
    works: Floats = np.max(tokens, axis=0) - float(fixed) + model.prompt_ns * timed.prompts
    grid, prices = machine_prices(arrivals, slower * takes, _GRID)
    least, cheapest = np.zeros((2, len(line)))
    times = Times(
        prices,
        min(arrivals),
        float(grid[1] - grid[0]),
        takes,
        works,
        waits,
        least,
        cheapest,
        float(fixed),
        float(decode - fixed),
    )
    find_cheapest(timed, times)
    return Server(timed, times, Ranked(line, ranks, np.log(takes)))
