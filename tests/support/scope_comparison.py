"""Bounds of each scope against brute force of that scope, on random instances."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import brute_force
from effort import few_steps
from strategies import plain, random_instances, random_shape

from kvopt import BatchTime, Instance, Line, Request, bound
from kvopt.bounds.seconds import seconds_bound
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits
from kvopt.problem.problem import Problem
from kvopt.problem.scopes import Scope
from kvopt.search.engines import engine_of, methods_for
from kvopt.search.stages import as_longer_prompts

ROUNDS = (Scope.RUNS, Scope.RESTARTS, Scope.PAUSES)
"""Scopes that are compared in rounds."""
SECONDS = (Scope.CHUNKS, Scope.PAUSES, Scope.PAUSES_AND_CHUNKS)
"""Scopes that are compared in seconds."""
_LINES = [[(9, 0), (0, 3)], [(9, 0), (0, 3), (2, 2)], [(5, 1)], [(4, 0), (1, 2)]]


@dataclass
class Figures:
    """How many instances and bounds were compared, how many bounds meet the optimum or pass it."""

    instances: int = 0
    bounds: int = 0
    met: int = 0
    violations: int = 0

    def count(self, optimum: int, *values: int | None) -> None:
        """Compare the bounds of an instance with its optimum."""
        known = [value for value in values if value is not None]
        self.instances += 1
        self.bounds += len(known)
        self.met += max(known, default=-1) == optimum
        self.violations += sum(value > optimum for value in known)


def in_rounds(scope: Scope, seed: int) -> Iterator[Figures]:
    """Compare instances without end, every bound of the scope each; yield what is known so far."""
    figures = Figures()
    while True:
        seed += 1
        for instance in random_instances(50, seed, most_memory=9, most_output=4, last_arrival=4):
            with few_steps():
                values = [
                    bound(instance, method, scope=scope, threads=1).value
                    for method in methods_for(scope)
                    if method != "auto"  # the best of the others
                ]
            figures.count(brute_force.optimum(*plain(instance), scope=scope), *values)
            yield figures


def in_seconds(scope: Scope, seed: int) -> Iterator[Figures]:
    """Compare instances in seconds without end; yield what is known so far."""
    source, figures = random.Random(seed), Figures()
    while True:
        server, instance = _timed(source)
        model = BatchTime([Line(*line) for line in server.lines], server.kv_ns, server.prompt_ns)
        arrivals = [round((r.arrival_seconds or 0) * 10**9) for r in instance]
        memory, requests = plain(instance)
        timed = [(a, s, o) for a, (_, s, o) in zip(arrivals, requests, strict=True)]
        value = seconds_bound(instance, model, scope=scope).value_ns
        figures.count(brute_force.optimum(memory, timed, server=server, scope=scope), value)
        yield figures


def _timed(source: random.Random) -> tuple[brute_force.Server, Instance]:
    """Return a server and few requests that arrive at nanoseconds; most are one to three."""
    server = brute_force.Server(
        source.choice(_LINES), source.choice((0, 0, 1)), source.choice((0, 0, 1))
    )
    memory, count = source.randint(3, 8), source.choice((1, 2, 2, 3, 3, 3, 4, 5))
    most = 3 if count < 4 else 2
    requests = []
    for _ in range(count):
        prompt, output = random_shape(source, memory, most)
        arrival = source.choice((0, 0, 7))
        requests.append(
            Request(arrival, min(prompt, most), output, arrival_seconds=arrival / 10**9)
        )
    return server, Instance(memory, requests)


# ---- both sides of an answer in whole blocks against brute force, on random instances


def drawn_in_blocks(source: random.Random) -> Instance:
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
    while True:
        instance = drawn_in_blocks(source)
        best = brute_force.optimum(*plain(instance), block=instance.block_size, scope=scope)
        with few_steps(60):
            values = [
                bound(instance, method, scope=scope, threads=1).value or 0
                for method in ("volume", "lagrangian")
            ]
        upper = _reached(instance, scope)
        figures.count(best, *values)
        figures.violations += upper < best
        yield figures


def _reached(instance: Instance, scope: Scope) -> int:
    """Return the total latency of a schedule that the engine found, checked in blocks."""
    search = Search(Problem(instance, scope=scope), Limits(threads=1, time_limit=0.2))
    as_longer_prompts(search, engine_of("auto", scope))
    schedule = search.best
    assert schedule is not None
    assert schedule.check().feasible, schedule.check().violations
    return schedule.objective
