"""Beams for any kind of node: keep the cheapest distinct expansions of a layer.

The history of a node is the list of its draws, from which the seed of the next ones follows.  So
the run of the best node is replayed at the end, with its starts.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from types import FunctionType
from typing import Any, NamedTuple, cast

import numpy as np

from kvopt.kernels.budget import Budget, wall_time
from kvopt.kernels.compiled import compiled
from kvopt.kernels.magnitudes import NEVER
from kvopt.kernels.random_numbers import State, reseed
from kvopt.problem.arrays import Flags, Floats, Integers

_CHILDREN = 4
"""Limit of the children of one node in the next layer, so that the kept nodes differ, once the beam
is full."""
_SAME = 1e-7
"""Costs that differ by less belong to equal nodes."""
_GROWTH = 2.0
"""Largest factor on the effort of the next beam; the first one shows how long others take."""
_WIDER, _IN_TIME = 1.2, 0.95
"""The last beam is planned for this much of the time left, and becomes narrower if it would end
after this part."""
_FORESEEN = 0.1
"""A forecast of a beam's seconds counts like what it took in this part of it."""
_WORTH_WHILE = 0.5
"""No further beam is tried with less than this part of the effort of the last one."""
SHARED = 16
"""From so many expansions of a layer on threads share them; one thread is faster for fewer."""
SEEN = 2048
"""Limit of the waiting requests of an expansion, the first in line."""


class BeamPlan(NamedTuple):
    """How to search.

    Parameters
    ----------
    width, draws
        Nodes that are kept, and expansions of each.
    interval, ahead
        Rounds or nanoseconds of a layer, and of the look-ahead beyond it.
    seed
        Seed of the random generator.
    weight
        Weight of the loss of waiting requests.
    effort
        What one expansion of each layer takes, in runs of the whole trace.
    """

    width: int
    draws: int
    interval: int
    ahead: int
    seed: int
    weight: float = 1.0
    effort: float = 1.0


class BeamLayer(NamedTuple):
    """Nodes of a beam at one time.

    Parameters
    ----------
    nodes
        The nodes: each is a row of each field.
    costs, seeds
        Cost of each so far above the bound of the prices, and the seed of its expansions.
    rules
        The parts of the rule that led to each.
    """

    nodes: Any
    costs: Floats
    seeds: Integers
    rules: Floats


class Expansions(NamedTuple):
    """Expansions of the nodes of a layer, at row times draws plus draw.

    Parameters
    ----------
    seen
        The cost of each with the look-ahead.
    paid, states
        Two numbers that identify each: its state and, if this is incomplete, its cost without.
    chosen
        The cheapest expansions.
    """

    seen: Floats
    paid: Floats
    states: Integers
    chosen: Integers


class Beam(NamedTuple):
    """Nodes of a layer, those of the next one, and the expansions that lead to it."""

    here: BeamLayer
    there: BeamLayer
    expansions: Expansions


class ActiveInterval(NamedTuple):
    """Layer: its end, expansions of each node, whether to keep them, and requests that they see."""

    until: int
    draws: int
    is_kept: bool
    seen: int


def beam_of(here: Any, there: Any, plan: BeamPlan, rule: Sequence[float]) -> Beam:
    """Return a beam that begins with one node and the usual dispatch rule.

    ``here`` and ``there`` are empty nodes, as many as the beam is wide.
    """
    width, tries = plan.width, plan.width * plan.draws
    (seen, paid), states = np.zeros((2, tries)), np.zeros(tries, dtype=np.int64)
    chosen = np.zeros(width, dtype=np.int64)
    rules = np.tile(rule, (width, 1))
    first, second = (
        BeamLayer(nodes, np.zeros(width), np.full(width, plan.seed), rules.copy())
        for nodes in (here, there)
    )
    return Beam(first, second, Expansions(seen, paid, states, chosen))


def choose(expansions: Expansions, order: Integers, draws: int, limit: int, most: int) -> int:
    """Choose up to ``most`` distinct expansions in an order, and return their number.

    At most ``limit`` are of one node, which has so many draws.
    """
    states, paid = expansions.states.tolist(), expansions.paid.tolist()
    chosen, children, paid_by_state = (
        list[int](),
        Counter[int](),
        defaultdict[int, list[float]](list),
    )
    for x in order.tolist():
        if len(chosen) == most:
            break
        equal = paid_by_state[states[x]]
        if children[x // draws] < limit and all(abs(paid[x] - cost) > _SAME for cost in equal):
            chosen.append(x)
            children[x // draws] += 1
            equal.append(paid[x])
    expansions.chosen[: len(chosen)] = chosen
    return len(chosen)


class Operations(NamedTuple):
    """Compiled functions for one kind of node, and the identity of nodes.

    Parameters
    ----------
    copy_row
        From nodes and a row, other nodes and a row, and a number of waiting requests: copy the
        first node into the second one.
    draw_rule
        From world, node, last rule, work arrays, random state and whether to keep the rule: blur
        the line, and return a rule, of floats.
    run_on
        From world, node, rule, time and work arrays: run up to the time, and return the cost.
    lost
        From world and node: the loss of waiting requests.
    entry, tells_all
        Position of the state among the counts of a node, and whether nodes of one state are equal.
    """

    copy_row: Callable[[Any, int, Any, int, int], None]
    draw_rule: Callable[[Any, Any, Floats, Any, State, bool], Any]
    run_on: Callable[[Any, Any, Any, int, Any], float]
    lost: Callable[[Any, Any], float]
    entry: int
    tells_all: bool


_of = cast("Operations", None)  # `tries_of` gives them


def _tries(
    world: Any,
    plan: BeamPlan,
    here: BeamLayer,
    there: BeamLayer,
    expansions: Expansions,
    interval: ActiveInterval,
    workspace: Any,
    first: int,
    last: int,
) -> None:
    """Expand nodes by random dispatch rules, or repeat the chosen expansions to keep their nodes.

    The seed of a node and the number of the draw give the same rule again.

    Parameters
    ----------
    world, plan
        Requests and prices, and the parameters of the search.
    here, there, expansions
        As of `Beam`.
    interval
        The end of the layer, and the purpose.
    workspace
        Work arrays: ``nodes`` with one row, and ``copy``, the node in this row.
    first, last
        A range of expansions, or of chosen ones.
    """
    rng, node = np.zeros(1, dtype=np.int64), workspace.copy
    for x in range(first, last):
        number = expansions.chosen[x] if interval.is_kept else x
        row, draw = number // interval.draws, number % interval.draws
        _of.copy_row(here.nodes, row, workspace.nodes, 0, interval.seen)
        reseed(rng, here.seeds[row], draw, 0)
        seed = rng[0]
        rule = _of.draw_rule(world, node, here.rules[row], workspace, rng, draw == 0)
        paid = here.costs[row] + _of.run_on(world, node, rule, interval.until, workspace)
        if interval.is_kept:
            _of.copy_row(workspace.nodes, 0, there.nodes, x, interval.seen)
            there.costs[x], there.seeds[x] = paid, seed
            for part in range(len(rule)):
                there.rules[x, part] = rule[part]
            continue
        # A try is judged with a look-ahead, and equal nodes are told apart without it.
        expansions.states[x] = node.counts[_of.entry]
        if not _of.tells_all:
            expansions.paid[x] = paid
        paid += _of.run_on(world, node, rule, interval.until + plan.ahead, workspace)
        expansions.seen[x] = paid + plan.weight * _of.lost(world, node)


def tries_of(name: str, operations: Operations) -> Callable[..., None]:
    """Return the compiled loop over expansions for one kind of node.

    As a copy with other operations it is as fast as one that was written for them.  It needs a
    name of its own, for the cache of machine code.
    """
    loop = FunctionType(_tries.__code__, {**globals(), "_of": operations}, name)
    loop.__qualname__ = name
    return compiled(loop)


class Course(NamedTuple):
    """Layers of a beam: chosen expansions, expansions of each node, ends, and seconds of one."""

    chosen: list[Integers]
    draws: list[int]
    ends: list[int]
    seconds: list[float]

    def past(self, row: int) -> list[tuple[int, int]]:
        """Return the history of the node of a row: its draw in each layer, and the layer's end."""
        past = []
        layers = zip(self.chosen, self.draws, self.ends, strict=True)
        for chosen, draws, end in reversed([*layers]):
            row, draw = divmod(int(chosen[row]), draws)
            past.append((draw, end))
        return past[::-1]


class BeamPace:
    """What the beams of one search take: each is planned by the last one, and ends in time.

    Attributes
    ----------
    effort
        Effort of the next beam, 0 if too little time remains for a useful one.
    """

    def __init__(self) -> None:
        self.effort = 1.0
        self._seconds = 0.0  # of an effort of 1; 0 before the first beam has ended
        # The part of these seconds that is over by the end of each layer.
        self._ends, self._parts = np.zeros(1), np.zeros(1)

    def width(self, plan: BeamPlan, widest: int) -> int:
        """Return the width of the next beam."""
        return min(max(1, int(self.effort / (plan.draws * plan.effort))), widest)

    def part(self, until: int) -> float:
        """Return the part of the seconds of a beam of equal layers that is over by a time."""
        return float(np.interp(until, self._ends, self._parts, left=0.0))

    def tries(self, plan: BeamPlan, begin: int, planned: float, spent: float, left: float) -> int:
        """Return the expansions of a layer with which a beam ends in time.

        Parameters
        ----------
        plan, begin
            The beam, and the begin of the layer.
        planned, spent
            The part of the seconds that its layers should have taken, and those that they took.
        left
            Seconds until the limit.
        """
        tries = plan.width * plan.draws
        if not self._seconds or left == math.inf:
            return tries
        whole = self._seconds * tries * plan.effort
        slower = (spent / whole + _FORESEEN) / (planned + _FORESEEN)
        rest = slower * whole * (1.0 - self.part(begin))
        return tries if rest <= _IN_TIME * left else max(1, int(tries * _IN_TIME * left / rest))

    def learn(self, plan: BeamPlan, course: Course) -> None:
        """Keep the times of a beam."""
        if (whole := sum(course.seconds)) > 0.0:
            self._ends = np.array(course.ends, dtype=np.float64)
            self._parts = np.cumsum(course.seconds) / whole
            self._seconds = whole / plan.effort

    def go_on(self, plan: BeamPlan, took: float, left: float) -> bool:
        """Plan the beam after one that took so many seconds; return whether it is worth while."""
        effort = plan.width * plan.draws * plan.effort
        took = max(took, effort * self._seconds, 1e-3)
        more = _GROWTH if left > _GROWTH**2 * took else _WIDER * left / took
        self.effort = more * effort if more >= _WORTH_WHILE else 0.0
        return self.effort > 0.0


class BeamLoops(NamedTuple):
    """Loops of a beam over one kind of node.

    Parameters
    ----------
    arrivals
        Arrivals of all requests, ascending.
    progress
        From nodes: whether each has work, and its number of arrived requests.
    attempt
        From two layers, expansions, an interval, work arrays and a range: `_tries`.
    """

    arrivals: Integers
    progress: Callable[[Any], tuple[Flags, Integers]]
    attempt: Callable[[BeamLayer, BeamLayer, Expansions, ActiveInterval, Any, int, int], None]

    def begin(self, nodes: Any, alive: int, until: int) -> int | None:
        """Return the begin of the next layer, None if all nodes are finished."""
        busy, come = (column[:alive] for column in self.progress(nodes))
        if busy.any():
            return until
        fewest = int(come.min())
        return None if fewest == len(self.arrivals) else max(until, int(self.arrivals[fewest]))


def run_beam(
    pool: Executor,
    workspaces: Sequence[Any],
    beam: Beam,
    loops: BeamLoops,
    plan: BeamPlan,
    budget: Budget,
    pace: BeamPace,
) -> tuple[Course, BeamLayer | None]:
    """Run layers until all nodes are finished; return the last, None if time runs out before."""
    (here, there, expansions), course, alive, until = beam, Course([], [], [], []), 1, 0
    shared = workspaces if len(expansions.seen) >= SHARED else workspaces[:1]
    began, planned = wall_time(), 0.0
    while not budget.over():
        begin = loops.begin(here.nodes, alive, until)
        if begin is None:
            pace.learn(plan, course)
            return course, here
        # A beam that would not end in time goes on with its cheapest nodes.
        now = wall_time()
        tries = pace.tries(plan, begin, planned, now - began, budget.left)
        width = max(1, tries // plan.draws)
        alive = min(alive, width)
        # A few nodes get as many expansions as a full beam.
        more = width // alive
        until, draws = begin + plan.interval, min(tries, plan.draws) * more
        attempt = partial(loops.attempt, here, there, expansions)
        share(
            pool, shared, partial(attempt, ActiveInterval(until, draws, False, SEEN)), alive * draws
        )
        order = np.argsort(expansions.seen[: alive * draws], kind="stable")
        count, alive = alive * draws, choose(expansions, order, draws, _CHILDREN * more, width)
        whole = ActiveInterval(until, draws, True, len(loops.arrivals))
        share(pool, shared, partial(attempt, whole), alive)
        course.chosen.append(expansions.chosen[:alive].copy())
        course.draws.append(draws)
        course.ends.append(until)
        course.seconds.append((wall_time() - now) / count)
        planned += (pace.part(until) - pace.part(begin)) * count / (plan.width * plan.draws)
        here, there = there, here
    return course, None


def go_again(
    beam: Beam, loops: BeamLoops, past: Sequence[tuple[int, int]], interval: int, workspace: Any
) -> None:
    """Replay the draws of a node in a beam of one node, and run it to the end."""
    until, rest = 0, iter(past)
    while (begin := loops.begin(beam.here.nodes, 1, until)) is not None:
        # Of draw + 1 expansions of the only node the last one is this draw.
        # The rest also runs in layers: a rule may let all requests wait while nothing is active.
        draw, until = next(rest, (0, min(begin + interval, NEVER)))
        beam.expansions.chosen[0] = draw
        again = ActiveInterval(until, draw + 1, True, len(loops.arrivals))
        loops.attempt(beam.here, beam.here, beam.expansions, again, workspace, 0, 1)


def share(
    pool: Executor, workspaces: Sequence[Any], work: Callable[[Any, int, int], None], count: int
) -> None:
    """Do a part of the expansions, or of the chosen ones, in each set of work arrays."""
    if len(workspaces) == 1:
        work(workspaces[0], 0, count)
        return
    cuts = [count * k // len(workspaces) for k in range(len(workspaces) + 1)]
    any(pool.map(work, workspaces, cuts, cuts[1:]))
