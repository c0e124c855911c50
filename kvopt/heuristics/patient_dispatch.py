"""A list scheduler that passes over a request a limited number of times.

A scheduler that waits for the first in line wastes memory that a later request could use.  One
that starts every request that fits never has enough memory for large requests, which run last.
In between: try the first ``window`` in line, start those that fit, and pass over no request more
than ``patience`` times; then the next ones wait for it.

Of the requests in the window the rule starts the first that fits, as the policy `patient` does, or
the one that gains most: the increase of the cost of its start after a mean output, and the price
of the memory that it fills until then.

A request that would hold much of the memory for long should wait until others are done, even if it
fits, and prices show this: it waits for its cheapest start while a start costs more than a rule
allows.

The best rule for the next interval is unknown, so a beam (`kvopt.heuristics.trace_beams`) draws
many: other windows, other patience, another line.  Everything here is compiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.heuristics.nodes import (
    BEST_FIT,
    COME,
    FRONT,
    NOW,
    STATE,
    STOP,
    Decisions,
    JobArrays,
    Node,
    Prompt,
    WorkerLoad,
    empty_nodes,
    held_before,
    start_on,
    worker_for,
)
from kvopt.heuristics.reduced_costs import StartPrices, tokens_of
from kvopt.kernels.compiled import borrowing, compiled
from kvopt.kernels.copying import order_of, place_of
from kvopt.kernels.random_numbers import State, below, hash_pair, normal, uniform
from kvopt.problem.arrays import Floats

_UNHURRIED = 300
"""After so many requests in a row that lose nothing by waiting, later ones are not tried."""
_WIDEST, _MOST_PATIENT = 200.0, 200.0
"""Limits of the draws: window in requests, and patience in times passed over."""
_NEAR = 0.3
"""Deviation of the logarithm of a part of a rule that is near the last one."""
_UNLIMITED = 0.3
"""Share of new rules that pass over a request as often as they like.

Where most outputs are of one length, a rule that sets no limit stays ahead for thousands of starts:
one large request is first in line meanwhile, and is passed over hundreds of times.
"""
_FILLS = (0.02, 2.0)
"""Range of the drawn value of filling memory, relative to its price, in equal ratios."""
_GAINING = 0.7
"""Share of new rules that start the request that gains most, not the first in line."""
_HOLDING, _ALLOWED = 0.5, (0.05, 5.0)
"""Share of new rules in which a request may wait for its cheapest start, and the range of the
reduced cost that starts it earlier, in mean outputs."""
USUAL = (32.0, 16.0, BEST_FIT, -1.0, np.inf)
"""The parts of the first rule."""


class Rule(NamedTuple):
    """Dispatch rule: how requests are taken from the line; all floats, so that loops can vary them.

    Parameters
    ----------
    window, patience
        Requests to try, and times that one may be passed over.
    choice
        The worker that takes a request: `FIRST_FIT`, `WORST_FIT` or `BEST_FIT`.
    fill
        Value of filling memory at once, relative to its price; below 0 the first that fits starts.
    allowed
        Limit of the reduced cost at which a request starts before its cheapest start.
    """

    window: float
    patience: float
    choice: float
    fill: float = -1.0
    allowed: float = np.inf


class DispatchTrace(NamedTuple):
    """Constants of a search: requests in their line, their prices, and the keys of the line."""

    jobs: JobArrays
    prices: StartPrices
    keys: Floats


class Workspace(NamedTuple):
    """Work arrays of one expansion: nodes of one row, its node, and the starts of its requests."""

    nodes: Node
    copy: Node
    decisions: Decisions


def workspace_for(jobs: JobArrays) -> Workspace:
    """Return work arrays of one expansion."""
    nodes = empty_nodes(jobs, 1)
    copy = Node(*(field[0] for field in nodes))
    decisions = Decisions(*np.zeros((2, len(jobs.line)), dtype=np.int64))
    return Workspace(nodes, copy, decisions)


@borrowing
def advance(
    trace: DispatchTrace, node: Node, rule: Rule, until: int, workspace: Workspace
) -> float:
    """Run a node until a round, and return its cost above the bound of the prices.

    These are the reduced costs of its starts and the price of idle memory.  Requests are started at
    arrivals and completions only.
    """
    jobs, counts, cost = trace.jobs, node.counts, 0.0
    paid, moment, last = trace.prices.paid, trace.prices.moment, len(trace.prices.paid) - 1
    memory, active, bases = jobs.memory * len(node.active), node.active, node.bases
    ends, offsets, loads = node.ends, node.offsets, node.loads
    queue, overtaken = node.queue, node.overtaken
    line, coming, arrivals = jobs.line, jobs.coming, jobs.arrivals
    while counts[NOW] < until:
        now = counts[NOW]
        # Requests that have arrived join the line, each in its place: the shorter side moves.
        while counts[COME] < len(line) and arrivals[line[coming[counts[COME]]]] <= now:
            rank, front, stop = coming[counts[COME]], counts[FRONT], counts[STOP]
            counts[COME] += 1
            overtaken[rank] = 0  # an earlier use of this copy may have passed it over
            place = place_of(rank, queue, front, stop)
            if place - front < stop - place and front > 0:
                for x in range(front, place):
                    queue[x - 1] = queue[x]
                queue[place - 1] = rank
                counts[FRONT] -= 1
            else:
                for x in range(stop, place, -1):
                    queue[x] = queue[x - 1]
                queue[place] = rank
                counts[STOP] += 1
        # Completed requests leave their workers.
        for worker in range(len(active)):
            gone, number = 0, active[worker]
            while gone < number and ends[worker, gone] <= now:
                bases[worker] -= offsets[worker, gone]
                counts[STATE] -= hash_pair(ends[worker, gone], offsets[worker, gone])
                gone += 1
            if gone > 0:
                for x in range(gone, number):
                    ends[worker, x - gone] = ends[worker, x]
                    offsets[worker, x - gone] = offsets[worker, x]
                    loads[worker, x - gone] = loads[worker, x]
                active[worker] -= gone
        if counts[FRONT] < counts[STOP]:
            cost += _admit(jobs, node, trace.prices, rule, workspace.decisions)
        # Time passes until the next event.  Up to then ``memory - bases - active t`` tokens are
        # idle at each t, and have its price.
        following = until
        for worker in range(len(active)):
            if active[worker] > 0:
                following = min(following, ends[worker, 0])
        if counts[COME] < len(line):
            following = min(following, arrivals[line[coming[counts[COME]]]])
        begin, end = min(now, last), min(following, last)
        cost += (memory - bases.sum()) * (paid[end] - paid[begin])
        cost -= active.sum() * (moment[end] - moment[begin])
        counts[NOW] = following
    return cost


@borrowing
def cost_of_waiting(trace: DispatchTrace, node: Node) -> float:
    """Return the loss of waiting requests by now against their cheapest starts."""
    cost, unhurried, now, jobs, prices = 0.0, 0, node.counts[NOW], trace.jobs, trace.prices
    for place in range(node.counts[FRONT], node.counts[STOP]):
        i = jobs.line[node.queue[place]]
        if prices.cheapest[i] < now:
            cost += _reduced_cost(jobs, prices, i, now)
            unhurried = 0
        else:
            unhurried += 1
            if unhurried > _UNHURRIED:
                break
    return cost


@borrowing
def _reduced_cost(jobs: JobArrays, prices: StartPrices, i: int, start: int) -> float:
    """Return the reduced cost of a start."""
    prompt, output = jobs.prompts[i], jobs.outputs[i]
    held = tokens_of(prices.paid, prices.moment, start, prompt, output)
    return float(start - jobs.arrivals[i] + output + held - prices.costs[i])


@borrowing
def _admit(
    jobs: JobArrays, node: Node, prices: StartPrices, rule: Rule, decisions: Decisions
) -> float:
    """Start the first that fits, or the one that gains most, while some fit; return the costs.

    A start now gains what its tokens would cost more a mean output later, and the rule's price of
    the memory that its prompt fills until then.  The wait itself is the same for all.
    """
    counts, queue, cost, worker = node.counts, node.queue, 0.0, 0
    paid, moment, gaining = prices.paid, prices.moment, rule.fill >= 0
    now, last = counts[NOW], len(paid) - 1
    later = now + jobs.mean_output
    price = rule.fill * (paid[min(later, last)] - paid[min(now, last)])
    line, private, overtaken, memory = jobs.line, jobs.private, node.overtaken, jobs.memory
    paths, blocks, weights, cheapest = jobs.paths, jobs.blocks, jobs.weights, prices.cheapest
    load = WorkerLoad(node.active, node.bases, node.ends, node.loads, node.until)
    prompts, outputs, allowed = jobs.prompts, jobs.outputs, rule.allowed
    while worker >= 0:
        # The memory that is free in the next round, on any worker.
        free, front, worker, best, highest = -1, counts[FRONT], -1, 0, -np.inf
        for w in range(len(load.active)):
            held = held_before(load.ends[w], load.loads[w], load.active[w], 0, now + 1)
            free = max(free, memory - held)
        # One that was passed over often enough is next, unless it waits for a cheaper start.
        stop = min(counts[STOP], front + int(rule.window))
        if front < stop and overtaken[queue[front]] >= rule.patience:
            i = line[queue[front]]
            if (
                allowed == np.inf
                or now >= cheapest[i]
                or _reduced_cost(jobs, prices, i, now) <= allowed
            ):
                stop = front + 1
        for place in range(front, stop):
            i, gain = line[queue[place]], 0.0
            if private[i] >= free:  # a fast path, since most do not fit
                continue
            if gaining:
                gain = price * prompts[i]
                gain += tokens_of(paid, moment, later, prompts[i], outputs[i])
                gain -= tokens_of(paid, moment, now, prompts[i], outputs[i])
            if gain > highest and (
                allowed == np.inf
                or now >= cheapest[i]
                or _reduced_cost(jobs, prices, i, now) <= allowed
            ):
                prompt = Prompt(private[i], paths[i], paths[i + 1], blocks, weights)
                fits = worker_for(load, prompt, outputs[i], now, memory, rule.choice)
                if fits >= 0:
                    worker, best, highest = fits, place, gain
                    if not gaining:
                        break
        if worker >= 0:
            i = line[queue[best]]
            start_on(jobs, node, worker, i)
            decisions.starts[i], decisions.workers[i] = now, worker
            if best > front:
                overtaken[queue[front]] += 1
            for x in range(best, front, -1):
                queue[x] = queue[x - 1]
            counts[FRONT] += 1
            counts[STATE] += hash_pair(i, -1)
            cost += _reduced_cost(jobs, prices, i, now)
    return cost


@compiled
def draw_rule(
    trace: DispatchTrace,
    node: Node,
    usual: Floats,
    workspace: Workspace,  # noqa: ARG001
    rng: State,
    plain: bool,
) -> Rule:
    """Shuffle the front of the line a little, and return a dispatch rule.

    By default it is the last rule again.  Otherwise it is near the last one, or new.
    """
    choice, fill, allowed = usual[2], -1.0, np.inf
    if plain:
        return Rule(usual[0], usual[1], choice, usual[3], usual[4])
    if uniform(rng) < 0.5:
        window = usual[0] * np.exp(_NEAR * normal(rng))
        patience = usual[1] * np.exp(_NEAR * normal(rng))
        fill = usual[3] * np.exp(_NEAR * normal(rng))
        allowed = usual[4] * np.exp(_NEAR * normal(rng))
        blur, tilt = 0.1 * uniform(rng), 0.0
    else:
        window = 2.0 * (_WIDEST / 2.0) ** uniform(rng)
        patience = _MOST_PATIENT ** uniform(rng) if uniform(rng) > _UNLIMITED else np.inf
        blur, tilt = 0.2 * uniform(rng), 0.3 * uniform(rng) - 0.1
        if uniform(rng) < _GAINING:
            low, high = _FILLS
            fill = low * (high / low) ** uniform(rng)
        if uniform(rng) < _HOLDING:
            low, high = _ALLOWED
            allowed = trace.jobs.mean_output * low * (high / low) ** uniform(rng)
    # The first in line are sorted by blurred volumes, times a power of their peaks.
    jobs, front = trace.jobs, node.counts[FRONT]
    size = min(4 * int(window) + 20, node.counts[STOP] - front)
    blurred = np.empty(size)
    for x in range(size):
        i = jobs.line[node.queue[front + x]]
        peak = float(jobs.prompts[i] + jobs.outputs[i])
        blurred[x] = trace.keys[i] + blur * normal(rng) + tilt * np.log(peak)
    order, ranks = order_of(blurred), node.queue[front : front + size].copy()
    for x in range(size):
        node.queue[front + x] = ranks[order[x]]
    if len(node.active) > 1 and uniform(rng) < 0.3:
        choice = float(below(rng, 3))
    window, patience = np.floor(window + 0.5), np.floor(patience + 0.5)
    return Rule(max(1.0, window), max(1.0, patience), choice, fill, allowed)
