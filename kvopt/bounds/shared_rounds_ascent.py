"""``shared_rounds_bound``: prices of shared rounds climb in floats, and integers prove the best."""

from __future__ import annotations

from itertools import product

from kvopt.bounds.gradient_ascent import Steps, Top, ascend
from kvopt.bounds.round_prices import RoundPoint, RoundPrices
from kvopt.bounds.seconds import SecondsBound
from kvopt.bounds.shared_rounds import shared_rounds_value
from kvopt.incumbent.proofs import SharedRoundsProof
from kvopt.kernels.budget import Budget
from kvopt.problem.batch_time import BatchTime
from kvopt.problem.instance import Instance, refuse_blocks
from kvopt.problem.scopes import Scope

_STEPS = Steps(600, 0.05, 40, momentum=0.9, memory=0.99, recent=0.1, patience=40, enough=2e-4)
"""Steps of prices."""
_REFINED, _REFINED_BLOCKS = _STEPS._replace(length=0.02), _STEPS._replace(length=0.01)
"""Steps of prices from those of a coarse grid on, and with block shares."""
_ON_COARSE, _COARSER = 0.3, 6
"""Share of the time for a first ascent on a coarse grid, and how much longer its cells are."""
_MOST_ROWS = 4
"""Limit of the rows of a proof."""
_FIRST = ((0.1, 0.0), (0.5, 0.5))
"""First prices of rounds, with shares of interference."""
_FLUID = (0.0, 0.5, 1.0)
"""First shares of the prices of the fluid."""
_ALONE = 0.25
"""Share of the time before windows grow."""


def shared_rounds_bound(
    instance: Instance,
    model: BatchTime,
    *,
    scope: Scope | str = Scope.PAUSES,
    budget: Budget | None = None,
    threads: int = 1,
) -> SecondsBound[SharedRoundsProof] | None:
    """Return a proved lower bound on total latency in nanoseconds, by prices of shared rounds.

    None without requests, if rounds have no fixed part, or without time for a first step.

    Parameters
    ----------
    instance
        Requests, and when they arrive (`kvopt.problem.clocks.arrivals_ns`).
    model
        The batch-time model; rounds may last longer, never less.
    scope
        Schedules to cover.  All proofs cover pauses; with ``chunks`` prompts are processed in
        pieces, and with ``sharing`` they may be in any case: then users count parts of a block.
    budget
        Time for the ascent; without a limit it ends when it gains little.
    threads
        Threads that share the requests.

    Examples
    --------
    >>> from kvopt import BatchTime, Instance, Line, Request
    >>> requests = [Request(0, 9, 20), Request(0, 9, 20)]
    >>> bound = shared_rounds_bound(Instance(1000, requests), BatchTime([Line(100, 1), Line(0, 9)]))
    >>> 4000 <= bound.value_ns <= 4478
    True
    """
    refuse_blocks(instance, "the bound in seconds")
    budget, scope = budget or Budget(), Scope.parse(scope)
    has_prefixes = scope.covers(Scope.SHARING) and "prefix" in instance.extras
    chunks = has_prefixes or scope.covers(Scope.CHUNKS)
    rows = rows_of(model, chunks=chunks)
    if not len(instance) or not max(model.lines[line].round_ns for line in rows[0]):
        return None
    prices = RoundPrices(instance, model, rows, has_prefixes, chunks, threads)
    # Most of the way a step may be much quicker.
    coarse = RoundPrices(instance, model, rows, has_prefixes, chunks, threads, _COARSER)
    start = _start(coarse, budget)
    if start is None:
        return None
    alone = budget if prices.quiet is None else budget.part(_ALONE)
    on_coarse = _climbed(coarse, start, alone.part(_ON_COARSE), _STEPS)
    start = prices.refined(RoundPoint(*on_coarse.point), coarse)
    prices.rates = coarse.rates
    top = _climbed(prices, start, alone, _REFINED_BLOCKS if has_prefixes else _REFINED)
    proof, is_final = prices.proof(top.point), top.is_final
    if prices.quiet is not None:
        grown = _climbed(prices, prices.growing(RoundPoint(*top.point)), budget, _STEPS)
        proof = prices.proof(grown.point) if grown.value > top.value else proof
        is_final = grown.is_final
    value = shared_rounds_value(instance, model, proof, chunks=chunks)
    return SecondsBound(value, proof, is_final)


def rows_of(model: BatchTime, *, chunks: bool) -> list[tuple[int, ...]]:
    """Return the rows of a proof: the first one has the largest fixed part.

    Whole prompts have the roof of all lines, and single lines, under which prompts share rounds.
    """
    count = len(model.lines)
    lines = sorted(range(count), key=lambda line: -model.lines[line].round_ns)
    single: list[tuple[int, ...]] = [(line,) for line in lines]
    if chunks or count == 1:
        return single[:_MOST_ROWS]
    return [tuple(range(count)), *single[1:_MOST_ROWS]]


def _start(prices: RoundPrices, budget: Budget) -> RoundPoint | None:
    """Return the best of some simple prices."""
    best: tuple[float, RoundPoint] | None = None
    choice = prices.rates
    for rates, (height, beside), share in product(prices.choices, _FIRST, _FLUID):
        prices.rates = rates
        for row in range(len(prices.rows) if share else 1):
            if budget.over():
                break
            point = prices.simple(height, beside * prices.interferes, share, row)
            value = prices.evaluate(point)[0]
            if best is None or value > best[0]:
                best, choice = (value, point), rates
    prices.rates = choice
    return None if best is None else best[1]


def _climbed(prices: RoundPrices, start: RoundPoint, budget: Budget, steps: Steps) -> Top:
    """Return the end of an ascent from a point."""
    # Block shares gain more under load, where interference only costs steps.
    interferes = not prices.users or bool(start.beside.any())
    prices.interferes = prices.machines == 1 and interferes
    return ascend(prices, start, steps, budget)
