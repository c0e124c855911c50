"""Search for good runs with shared prefixes: requests wait for later turns of their conversation.

Two turns that run together compute and read their common blocks once, so the machine has time for
others.  Where many requests wait this gains more than the wait costs.  A first run tells how many
wait at each time; by that each request waits for the turn that gains most, or for none.  Then a
local search changes what requests wait for, factors of their works, and the tokens of a round.
"""

from __future__ import annotations

import math
from itertools import product
from math import exp, sqrt
from operator import attrgetter
from random import Random
from typing import Any, NamedTuple

import numpy as np

from kvopt.heuristics.seconds.prefix_runs import (
    LARGEST_GROUP,
    Choices,
    PrefixRun,
    PrefixTables,
    serve,
)
from kvopt.heuristics.seconds.server_search import offer_work
from kvopt.heuristics.seconds.vllm_rules import OneServer
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.budget import Budget
from kvopt.problem.arrays import Floats, Integers
from kvopt.problem.clocks import Seconds, arrivals_ns
from kvopt.problem.instance import Instance
from kvopt.problem.prefixes import Forest
from kvopt.problem.scopes import Scope

_BUDGETS = (256, 384, 512, 640, 768, 1024, 2048)
"""Limits of the tokens of a round."""
_WHOLE = (2**31,)
"""The same where prompts are whole."""
_LOADS = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0)
"""What a nanosecond of the machine is worth, over the number of waiting requests."""
_FIRST = 0.2
"""Share of the time before the local search."""
_REPEATS = 3
"""Runs after which requests start about when the cache expects them."""
_TURNS = 5
"""Limit of the later turns for which a request may wait."""
_IDLE = 1000
"""Changes without a gain that end the search; with a time limit a hundred times as many."""
_BY_WAIT, _BY_FACTOR = 0.4, 0.97
"""Shares of changes of waits, and of these and of factors; others are of the tokens of a round."""
_SPREADS = (0.1, 0.3, 1.0)
"""Standard deviations of logarithms of factors."""
_LABEL = "conversations"


class _Point(NamedTuple):
    """What each request waits for, -1 for none; choices, total latency and starts of their run."""

    waits_for: list[int]
    choices: Choices
    latency: int
    starts: Integers


def search_conversations(search: Search, budget: Budget) -> None:
    """Offer good runs with shared prefixes; in a fleet each machine has the requests of the best.

    They are offered before the local search, and after it if it gains.
    """
    members, random = [[*range(len(search.instance))]], Random(search.limits.seed)
    if search.problem.is_fleet:
        assert search.best is not None
        members = search.best.members
    parts = [search.instance.of_one_worker(row) for row in members]
    assert isinstance(search.clock, Seconds)
    if not all(OneServer.of(part.without_prefixes(), search.clock) for part in parts):
        return  # numbers are too large for the loops, or a machine has nothing to do
    budgets = _BUDGETS if search.problem.scope.covers(Scope.CHUNKS) else _WHOLE
    servers = [_Conversations(part, search.clock, budgets) for part in parts]
    points = [server.first(budget.part(_FIRST / len(servers))) for server in servers]
    for left in range(len(servers), -1, -1):
        latency = sum(point.latency for point in points)
        is_better = search.objective is None or latency < search.objective
        if left in (0, len(servers)) and is_better:
            events = [s.events(point) for s, point in zip(servers, points, strict=True)]
            offer_work(search, _LABEL, events)
        if left:
            points[-left] = servers[-left].improved(points[-left], budget.part(1 / left), random)


class _Conversations:
    """Runs of one server, and what they choose.

    Parameters
    ----------
    instance, clock
        Its requests, and how long rounds last.
    budgets
        Limits of the tokens of a round.
    """

    def __init__(self, instance: Instance, clock: Seconds, budgets: tuple[int, ...]) -> None:
        self._budgets, self._origin = budgets, min(arrivals_ns(instance))
        self._tables = PrefixTables.of(instance, clock)
        self._arrivals = self._tables.timed.arrivals
        self._run, self._alone = PrefixRun.empty(len(instance)), [-1] * len(instance)
        by_arrival = np.argsort(self._arrivals, kind="stable").tolist()
        self._turns = self._later_turns(instance.forest, by_arrival)
        self._latest_first = [i for i in reversed(by_arrival) if self._turns[i]]

    def _later_turns(self, forest: Forest, by_arrival: list[int]) -> list[list[tuple[int, float]]]:
        """Return for each request the next turns that share blocks of its conversation.

        With each comes about the machine time that both together save.
        """
        outputs, turns = self._tables.timed.outputs.tolist(), [list[Any]() for _ in by_arrival]
        few = [{v for v in p if len(forest.users[v]) <= LARGEST_GROUP} for p in forest.paths]
        members: dict[int, list[int]] = {}
        for j in by_arrival:
            row = members.setdefault(int(self._tables.group_of[j]), [])
            for i in row[-_TURNS:]:
                tokens = sum(forest.weights[v] for v in few[i] & few[j])
                read = self._tables.held_ns * min(outputs[i], outputs[j])
                if tokens:
                    turns[i].append((j, tokens * (self._tables.token_ns + read)))
            row.append(j)
        return turns

    def first(self, budget: Budget) -> _Point:
        """Return the best point in which requests wait by the load."""
        middle = self._budgets[len(self._budgets) // 2]
        choices = Choices(self._arrivals, np.ones(len(self._turns)), self._arrivals, middle)
        best = self._settled(self._alone, choices)
        # The weight of those that wait when a request arrives.
        come, begun = map(self._weight_until_arrivals, (self._arrivals, best.starts))
        waiting = np.maximum(come - begun, 1).astype(float)
        for load, tokens in product(_LOADS, self._budgets):
            if budget.over():
                break
            waits_for = self._by_load(load * waiting)
            choices = best.choices._replace(releases=self._releases(waits_for), budget=tokens)
            best = min(best, self._settled(waits_for, choices), key=attrgetter("latency"))
        return best

    def _weight_until_arrivals(self, times: Integers) -> Integers:
        """Return for each arrival the weight of the requests whose time has come."""
        order = np.argsort(times)
        weights = np.append(0, np.cumsum(self._tables.weights[order]))
        return weights[np.searchsorted(times[order], self._arrivals, side="right")]

    def _settled(self, waits_for: list[int], choices: Choices) -> _Point:
        """Return a point whose requests start about when the cache expects them."""
        point = self._served(waits_for, choices)
        for _ in range(_REPEATS):
            again = self._served(waits_for, choices._replace(uses=point.starts))
            point = min(point, again, key=attrgetter("latency"))
        return point

    def _served(self, waits_for: list[int], choices: Choices) -> _Point:
        """Return the point of a run."""
        latency = int(serve(self._tables, choices, self._run))
        return _Point(waits_for, choices, latency, self._run.starts.copy())

    def _by_load(self, worth: Floats) -> list[int]:
        """Return the turn for which each request waits, by the worth of a nanosecond."""
        releases, waits_for = self._arrivals.tolist(), self._alone.copy()
        worth = worth / self._tables.weights
        for i in self._latest_first:
            gain, j = max((worth[i] * saves - releases[j], j) for j, saves in self._turns[i])
            if gain + releases[i] > 0:
                waits_for[i], releases[i] = j, max(releases[i], releases[j])
        return waits_for

    def _releases(self, waits_for: list[int]) -> Integers:
        """Return when requests join the line."""
        releases = self._arrivals.tolist()
        for i in self._latest_first:
            if waits_for[i] >= 0:
                releases[i] = max(releases[i], releases[waits_for[i]])
        return np.array(releases, dtype=np.int64)

    def improved(self, point: _Point, budget: Budget, random: Random) -> _Point:
        """Return a point after random changes, of which those that gain are kept."""
        limit = _IDLE * (1 if budget.left == math.inf else 100)
        saved = [sqrt(max(saves for _, saves in self._turns[i])) for i in self._latest_first]
        prompts = self._tables.timed.prompts.tolist()
        members, groups, idle = range(len(prompts)), self._tables.groups, 0
        while idle < limit and not budget.over():
            waits_for, choices = point.waits_for, point.choices._replace(uses=point.starts)
            kind = random.random()
            if kind < _BY_WAIT and saved:
                # A request, or two of them, wait for another turn, or for none.
                waits_for = waits_for.copy()
                for i in random.choices(self._latest_first, saved, k=random.randint(1, 2)):
                    waits_for[i] = random.choice([-1, -1, *(j for j, _ in self._turns[i])])
                choices = choices._replace(releases=self._releases(waits_for))
            elif kind < _BY_FACTOR:
                # Keys of some requests, or of a conversation, change; large ones wait longest.
                factors, changed = choices.factors.copy(), random.choices(members, prompts, k=4)
                if random.random() < 0.3:
                    group = self._tables.group_of[changed[0]]
                    changed = groups.values[groups.first[group] : groups.first[group + 1]].tolist()
                elif random.random() < 0.5:
                    del changed[1:]
                spread = random.choice(_SPREADS)
                same = random.gauss(0, spread)
                for i in changed:
                    factors[i] *= exp(same if len(changed) != 4 else random.gauss(0, _SPREADS[0]))
                choices = choices._replace(factors=factors)
            elif len(self._budgets) > 1:
                tokens = choices.budget * exp(random.gauss(0, _SPREADS[0]))
                choices = choices._replace(budget=max(round(tokens), self._budgets[0]))
            after = self._served(waits_for, choices)
            idle = 0 if after.latency < point.latency else idle + 1
            point = min(point, after, key=attrgetter("latency"))
        return point

    def events(self, point: _Point) -> dict[str, Any]:
        """Return the work of a run as arguments of a schedule."""
        run = PrefixRun.empty(len(self._turns))
        for _ in range(2):  # the first run tells how many pieces there are
            run = PrefixRun.empty(len(self._turns), int(run.counts[0]))
            serve(self._tables, point.choices, run)
        return run.work(self._tables.timed.outputs, self._origin)
