"""Beams for any kind of node: keep the cheapest distinct expansions of a layer.

The history of a node is the list of its draws, from which the seed of the next ones follows.  So
the run of the best node is replayed at the end, with its starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from kvopt.kernels.budget import Budget
from kvopt.kernels.compiled import compiled, with_names
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
_WORTH_WHILE = 0.5
"""No further beam is tried with less than this part of the effort of the last one."""
SHARED = 16
"""From so many expansions of a layer on threads share them; one thread is faster for fewer."""
SEEN = 2048
"""Limit of the waiting requests of an expansion, the first in line."""
_IN_PLACE = -1
"""Instead of a number of waiting requests: run the node itself, not a copy."""


class BeamPlan(NamedTuple):
    """How to search.

    Parameters
    ----------
    width, draws
        Nodes that are kept, and expansions of each.
    stretch, ahead
        Rounds or nanoseconds of a layer, and of the look-ahead beyond it.
    seed
        Seed of the random generator.
    weight
        Weight of the loss of waiting requests.
    """

    width: int
    draws: int
    stretch: int
    ahead: int
    seed: int
    weight: float = 1.0


class Kept(NamedTuple):
    """Nodes of a beam, in rows, with the expansions and choices of a layer.

    Parameters
    ----------
    costs, seeds
        Cost of each so far above the bound of the prices, and the seed of its expansions.
    rules
        The parts of the rule that made each.
    seen, paid, states
        For each expansion, at row times draws plus draw, its cost with the look-ahead, and two
        numbers that identify it: its state and, if this is incomplete, its cost without.
    chosen
        The cheapest expansions.
    next_costs, next_seeds, next_rules
        Results of the chosen expansions.
    """

    costs: Floats
    seeds: Integers
    rules: Floats
    seen: Floats
    paid: Floats
    states: Integers
    chosen: Integers
    next_costs: Floats
    next_seeds: Integers
    next_rules: Floats


class Beam(NamedTuple):
    """Nodes of a layer, nodes of the next one, and their costs; a node is a row of each field."""

    here: Any
    there: Any
    kept: Kept

    def after(self, taken: int) -> Beam:
        """Replace the nodes by the chosen expansions."""
        kept = self.kept
        kept.costs[:taken], kept.seeds[:taken] = kept.next_costs[:taken], kept.next_seeds[:taken]
        kept.rules[:taken] = kept.next_rules[:taken]
        return Beam(self.there, self.here, kept)


class Stretch(NamedTuple):
    """Layer: its end, expansions of each node, whether to keep them, and requests that they see."""

    until: int
    draws: int
    is_kept: bool
    seen: int


def one_kept(plan: BeamPlan, rule: Sequence[float]) -> Kept:
    """Return a beam of one node with the usual dispatch rule, and space for the largest beam."""
    width, tries = plan.width, plan.width * plan.draws
    rules, (costs, next_costs) = np.tile(np.array(rule), (width, 1)), np.zeros((2, width))
    chosen, seeds, next_seeds = np.zeros((3, width), dtype=np.int64)
    (seen, paid), states = np.zeros((2, tries)), np.zeros(tries, dtype=np.int64)
    seeds[0] = plan.seed
    return Kept(
        costs,
        seeds,
        rules,
        seen,
        paid,
        states,
        chosen,
        next_costs,
        next_seeds,
        np.zeros_like(rules),
    )


@compiled
def choose(kept: Kept, order: Integers, draws: int, most: int) -> int:
    """Choose the first distinct expansions in an order, so many of a node; return their number."""
    taken, states, paid = 0, kept.states, kept.paid
    children = np.zeros(len(order) // draws, dtype=np.int64)
    for x in order:
        new = children[x // draws] < most
        for place in range(taken):
            y = kept.chosen[place]
            new = new and (states[x] != states[y] or abs(paid[x] - paid[y]) > _SAME)
        if new:
            kept.chosen[taken] = x
            children[x // draws] += 1
            taken += 1
            if taken == len(kept.chosen):
                break
    return taken


class Operations(NamedTuple):
    """Compiled functions for one kind of node, and the identity of nodes.

    Parameters
    ----------
    row_of
        Given nodes and a row: that node.
    copy_of
        Given two nodes and how many waiting requests: copy the first into the second one.
    arranged
        Given world, node, last rule, work arrays, random state and whether to keep the rule: blur
        the line, and return a rule, of floats.
    run_on
        Given world, node, rule, time and work arrays: run up to the time, and return the cost.
    lost
        Given world and node: the loss of waiting requests.
    entry, tells_all
        Position of the state among the counts of a node, and whether nodes of one state are equal.
    """

    row_of: Callable[[Any, int], Any]
    copy_of: Callable[[Any, Any, int], None]
    arranged: Callable[[Any, Any, Floats, Any, State, bool], Any]
    run_on: Callable[[Any, Any, Any, int, Any], float]
    lost: Callable[[Any, Any], float]
    entry: int
    tells_all: bool


_of = cast("Operations", None)  # `tries_of` gives them


def _tries(
    world: Any,
    plan: BeamPlan,
    here: Any,
    there: Any,
    kept: Kept,
    stretch: Stretch,
    room: Any,
    first: int,
    last: int,
) -> None:
    """Expand nodes by random dispatch rules, or repeat the chosen expansions to keep their nodes.

    Parameters
    ----------
    world, plan
        Requests and prices, and the parameters of the search.
    here, there, kept
        As of `Beam`.
    stretch
        The end of the layer, and the purpose.
    room
        Work arrays, with a node for expansions.
    first, last
        A range of expansions, or of chosen ones.
    """
    rng = np.zeros(1, dtype=np.int64)
    for x in range(first, last):
        number = kept.chosen[x] if stretch.is_kept else x
        row, draw = number // stretch.draws, number % stretch.draws
        node = _of.row_of(there, x) if stretch.is_kept else room.copy
        if stretch.seen >= 0:
            _of.copy_of(_of.row_of(here, row), node, stretch.seen)
        reseed(rng, kept.seeds[row], draw, 0)
        seed = rng[0]
        rule = _of.arranged(world, node, kept.rules[row], room, rng, draw == 0)
        paid = kept.costs[row] + _of.run_on(world, node, rule, stretch.until, room)
        if stretch.is_kept:
            kept.next_costs[x], kept.next_seeds[x] = paid, seed
            for part in range(len(rule)):
                kept.next_rules[x, part] = rule[part]
            continue
        kept.states[x] = node.counts[_of.entry]
        if not _of.tells_all:
            kept.paid[x] = paid
        paid += _of.run_on(world, node, rule, stretch.until + plan.ahead, room)
        kept.seen[x] = paid + plan.weight * _of.lost(world, node)


def tries_of(name: str, operations: Operations) -> Callable[..., None]:
    """Return the compiled loop over expansions for one kind of node, under a name of its own."""
    return compiled(with_names(name, _tries, _of=operations))


class Past(NamedTuple):
    """History of a node: its draw in each layer, and the end of the layer."""

    draws: list[int]
    ends: list[int]


class Course(NamedTuple):
    """Layers of a beam: chosen expansions, expansions of each node, and ends."""

    chosen: list[Integers]
    draws: list[int]
    ends: list[int]

    def past(self, row: int) -> Past:
        """Return the history of the node of a row."""
        found = []
        for chosen, draws in zip(reversed(self.chosen), reversed(self.draws), strict=True):
            row, draw = divmod(int(chosen[row]), draws)
            found.append(draw)
        return Past(found[::-1], self.ends)


class Work(NamedTuple):
    """Work of a beam.

    Parameters
    ----------
    arrivals
        Arrivals of all requests, ascending.
    progress
        Given nodes: whether each has work, and its number of arrived requests.
    attempt
        Given nodes, the next nodes, kept data, a layer, work arrays and a range: `_tries`.
    """

    arrivals: Integers
    progress: Callable[[Any], tuple[Flags, Integers]]
    attempt: Callable[[Any, Any, Kept, Stretch, Any, int, int], None]

    def begin(self, nodes: Any, alive: int, until: int) -> int | None:
        """Return the begin of the next layer, None if all nodes are finished."""
        busy, come = (column[:alive] for column in self.progress(nodes))
        if busy.any():
            return until
        least = int(come.min())
        return None if least == len(self.arrivals) else max(until, int(self.arrivals[least]))


def run_beam(
    pool: Executor,
    rooms: Sequence[Any],
    beam: Beam,
    work: Work,
    plan: BeamPlan,
    budget: Budget,
) -> tuple[Course, Beam | None]:
    """Run layers until all nodes are finished; return them, None if time runs out before."""
    kept, course, alive, until = beam.kept, Course([], [], []), 1, 0
    shared = rooms if len(kept.seen) >= SHARED else rooms[:1]
    while not budget.over():
        begin = work.begin(beam.here, alive, until)
        if begin is None:
            return course, beam
        more = plan.width // alive  # few get as many expansions as a full beam
        until, draws = begin + plan.stretch, plan.draws * more
        attempt = partial(work.attempt, *beam)
        share(pool, shared, partial(attempt, Stretch(until, draws, False, SEEN)), alive * draws)
        order = np.argsort(kept.seen[: alive * draws], kind="stable")
        alive = choose(kept, order, draws, _CHILDREN * more)
        whole = Stretch(until, draws, True, len(work.arrivals))
        share(pool, shared, partial(attempt, whole), alive)
        course.chosen.append(kept.chosen[:alive].copy())
        course.draws.append(draws)
        course.ends.append(until)
        beam = beam.after(alive)
    return course, None


def go_again(beam: Beam, work: Work, past: Past, stretch: int, room: Any) -> None:
    """Replay the draws of a node from a beam of one node, and run it to the end."""
    until, rest = 0, iter(zip(past.draws, past.ends, strict=True))
    while (begin := work.begin(beam.here, 1, until)) is not None:
        # The rest also runs in layers: a rule may let all requests wait while nothing is active.
        draw, until = next(rest, (0, min(begin + stretch, NEVER)))
        beam.kept.chosen[0] = draw
        work.attempt(
            beam.here, beam.here, beam.kept, Stretch(until, draw + 1, True, _IN_PLACE), room, 0, 1
        )
        beam = beam.after(1)._replace(here=beam.here)


def next_effort(effort: float, took: float, left: float) -> float:
    """Return the effort of the next beam, 0 if too little time remains for a useful one."""
    took = max(took, 1e-3)
    more = _GROWTH if left > _GROWTH**2 * took else 0.9 * left / took
    return more * effort if more >= _WORTH_WHILE else 0.0


def share(
    pool: Executor, rooms: Sequence[Any], work: Callable[[Any, int, int], None], count: int
) -> None:
    """Do a part of the expansions, or of the chosen ones, in each set of work arrays."""
    if len(rooms) == 1:
        work(rooms[0], 0, count)
        return
    cuts = [count * k // len(rooms) for k in range(len(rooms) + 1)]
    for part in [pool.submit(work, *each) for each in zip(rooms, cuts, cuts[1:], strict=False)]:
        part.result()
