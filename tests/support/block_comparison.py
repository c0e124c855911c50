"""Both sides of an answer in whole blocks against brute force, on random instances."""

from __future__ import annotations

import random
from collections.abc import Iterator

import block_oracle
from scope_comparison import Figures
from strategies import plain

from kvopt import Instance, Request, bound
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits
from kvopt.incumbent.params import LagrangianParams, SolveParams
from kvopt.problem.problem import Problem
from kvopt.problem.scopes import Scope
from kvopt.search.registry import engines_for
from kvopt.search.stages import as_longer_prompts

_STEPS = SolveParams(lagrangian=LagrangianParams(most_steps=60))
"""Prices need not be the best ones to be compared."""


def drawn(source: random.Random) -> Instance:
    """Return few requests, and blocks of two to four tokens that hold each of them."""
    block, blocks = source.randint(2, 4), source.randint(2, 4)
    requests = []
    for _ in range(source.choice((1, 2, 2, 3, 3, 4))):
        peak = source.randint(1, min(8, block * blocks))
        output = source.randint(1, min(4, peak))
        requests.append(Request(source.choice((0, 0, 1, 3)), peak - output, output))
    return Instance(block * blocks + source.randint(0, block - 1), requests, block_size=block)


def in_blocks(scope: Scope, seed: int) -> Iterator[Figures]:
    """Compare instances without end: bounds, optimum, and a schedule; yield what is known."""
    source, figures = random.Random(seed), Figures()
    pauses = scope.covers(Scope.PAUSES)
    while True:
        instance = drawn(source)
        best = block_oracle.optimum(*plain(instance), instance.block_size, pauses=pauses)
        values = [
            bound(instance, method, scope=scope, threads=1, params=_STEPS).value or 0
            for method in ("volume", "lagrangian")
        ]
        upper = _reached(instance, scope)
        figures.count(best, *values)
        figures.violations += upper < best
        yield figures


def _reached(instance: Instance, scope: Scope) -> int:
    """Return the total latency of a schedule that the engine found, checked in blocks."""
    search = Search(
        Problem(instance, scope=scope), Limits(threads=1, params=_STEPS, time_limit=0.2)
    )
    as_longer_prompts(search, engines_for(scope).find("auto"))
    schedule = search.best
    assert schedule is not None
    assert schedule.check().feasible, schedule.check().violations
    return schedule.objective
