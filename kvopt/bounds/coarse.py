"""A coarse program of thousands of requests: some of them, cells of time, memory and slots.

A sample stands for all requests, hundreds of rounds are one cell, and a request takes all that it
needs from the cell in which it starts.  The result is not exact, but takes only seconds.
It estimates prices of memory and of slots (`kvopt.bounds.slots`) over time.  No proof depends on
it: prices are evaluated again in integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kvopt.bounds.prices import thresholds
from kvopt.formulations.highs import solved_relaxation
from kvopt.formulations.time_indexed import Program
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.budget import Budget
from kvopt.problem.arrays import Floats, Integers
from kvopt.problem.instance import Instance
from kvopt.timetable.schedule import Schedule

_LARGE_SHARE = 0.1
"""Share of the work in requests of more than half the memory from which on slots are priced."""
_GROUPS = 20
"""Groups of requests by arrival, in each of which the sample goes through all volumes."""
_SHORTEST = 20
"""Cells are not shorter than a mean one divided by this."""


@dataclass(frozen=True, eq=False)
class CoarsePrices:
    """Prices of memory and of slots in each cell of time.

    Parameters
    ----------
    borders
        Rounds at which cells begin and end, from 0 on.
    slots
        Numbers of slots that have prices in addition to tokens.
    worth
        Price of all tokens, and of all slots of each number, for one round: a row each.
    """

    borders: Integers
    slots: tuple[int, ...]
    worth: Floats

    @property
    def share_of_slots(self) -> float:
        """Return the share of slots in all payments."""
        return float(self.worth[1:].sum() / max(self.worth.sum(), 1e-9))

    def halves(self) -> Integers:
        """Return the borders, and the middles between them."""
        middles = (self.borders[:-1] + self.borders[1:]) // 2
        return np.unique(np.concatenate((self.borders, middles)))


def has_large_requests(search: Search) -> bool:
    """Whether requests that need more than half of the memory make a large share of the work."""
    instance = search.instance
    large = sum(r.volume for r in instance if 2 * r.peak > instance.memory)
    return large > _LARGE_SHARE * sum(r.volume for r in instance)


def needs_of(instance: Instance, slots: Sequence[int]) -> Floats:
    """Return for how many rounds each request would need all tokens, and all slots: a row each."""
    memory, workers = instance.memory, instance.used_workers
    prompts = np.array([request.prompt for request in instance], dtype=float)
    peaks = np.array([request.peak for request in instance], dtype=float)
    volumes = np.array([request.volume for request in instance], dtype=float)
    rows = [volumes / memory]
    for count in slots:
        reached = [np.maximum(prompts + 1, start) for start in thresholds(memory, count)]
        rounds = sum(np.maximum(peaks - begin + 1, 0.0) for begin in reached)
        rows.append(np.asarray(rounds) / count)
    return np.array(rows) / workers


def coarse_prices(
    search: Search, slots: Sequence[int], *, sample: int, cells: int, budget: Budget
) -> CoarsePrices | None:
    """Return the prices of a coarse program up to the end of the known schedule.

    None if there was no time.
    """
    assert search.schedule is not None
    instance = search.instance
    borders = _borders(search.schedule, cells)
    chosen, weight = sampled(instance, sample)
    model = _program(chosen, weight, needs_of(chosen, slots), borders)
    highs = solved_relaxation(model, search, budget)
    if highs is None or not highs.getSolution().dual_valid:
        return None
    duals = -np.array(highs.getSolution().row_dual)[len(chosen) :]
    return CoarsePrices(borders, tuple(slots), np.maximum(duals.reshape(len(slots) + 1, -1), 0.0))


def _borders(schedule: Schedule, cells: int) -> Integers:
    """Return borders of cells: half of these are equally long, the others have as many starts.

    A backlog starts small requests first, thousands of them within a few percent of the time.
    """
    shares, end = np.linspace(0, 1, cells // 2 + 1), schedule.makespan + 1
    even, full = shares * end, np.quantile(schedule.starts, shares)
    borders = np.unique(np.concatenate(([0, end], even, full)).astype(np.int64))
    kept: Integers = borders[np.append(True, np.diff(borders) >= end // (_SHORTEST * cells))]
    kept[-1] = end
    return kept


def sampled(instance: Instance, size: int) -> tuple[Instance, float]:
    """Return a sample of so many requests over arrivals and volumes, and the weight of each."""
    arrivals = np.array([request.arrival for request in instance])
    volumes = np.array([request.volume for request in instance], dtype=float)
    borders = np.unique(np.quantile(arrivals, np.linspace(0, 1, _GROUPS + 1))[1:-1])
    order = np.lexsort((volumes, np.searchsorted(borders, arrivals, side="right")))
    step = max(1, len(order) // size)
    chosen = order[step // 2 :: step].tolist()
    requests = tuple(instance.requests[i] for i in chosen)
    return replace(instance, requests=requests), len(instance) / len(chosen)


def _program(instance: Instance, weight: float, needs: Floats, borders: Integers) -> Program:
    """Return the program: a column for each request and cell, rows of requests, then of cells."""
    from scipy.sparse import csc_array

    count, resources = len(instance), len(needs)
    arrivals = np.array([request.arrival for request in instance])
    lengths, cells = np.diff(borders), len(borders) - 1
    first = np.searchsorted(borders[1:-1], arrivals, side="right")
    which, when = np.nonzero(np.arange(cells) >= first[:, None])
    rows = [which, *(count + resource * cells + when for resource in range(resources))]
    values = np.stack([np.ones(len(which)), *(weight * need[which] for need in needs)], axis=1)
    taken = values != 0
    middles = (borders[:-1] + borders[1:]) / 2
    cost: Floats = weight * middles[when]
    ones, room = np.ones(count), np.tile(lengths.astype(float), resources)
    ends = np.append(0, taken.sum(axis=1).cumsum())
    shape = count + resources * cells, len(which)
    return Program(
        cost,
        csc_array((values[taken], np.stack(rows, axis=1)[taken], ends), shape=shape),
        np.concatenate((ones, np.full(len(room), -np.inf))),
        np.concatenate((ones, room)),
    )
