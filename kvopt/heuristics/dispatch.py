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

Everything here is compiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.heuristics.nodes import (
    COME,
    FRONT,
    NOW,
    STATE,
    STOP,
    Load,
    Made,
    Node,
    Prompt,
    Requests,
    arrive,
    first_node,
    held_before,
    leave,
    mixed,
    nothing_made,
    start_on,
    worker_for,
)
from kvopt.heuristics.reduced_costs import Worth, tokens_of
from kvopt.kernels.compiled import compiled
from kvopt.problem.arrays import Floats

_UNHURRIED = 300
"""After so many requests in a row that lose nothing by waiting, later ones are not tried."""


class Rule(NamedTuple):
    """Dispatch rule: how requests are taken from the line; all floats, so that loops can vary them.

    Parameters
    ----------
    window, patience
        Requests to try, and times that one may be passed over.
    choice
        The worker that takes a request: `FIRST`, `EMPTIEST` or `FULLEST`.
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


class Trace(NamedTuple):
    """Constants of a search: requests in their line, their prices, and the keys of the line."""

    requests: Requests
    worth: Worth
    keys: Floats


class Room(NamedTuple):
    """Work arrays of one expansion: a node, and the starts of its requests."""

    copy: Node
    made: Made


def room_for(requests: Requests) -> Room:
    """Return work arrays of one expansion."""
    return Room(first_node(requests), nothing_made(len(requests.line)))


@compiled
def advance(trace: Trace, node: Node, rule: Rule, until: int, room: Room) -> float:
    """Run a node until a round, and return its cost above the bound of the prices.

    Requests are started at arrivals and completions only.
    """
    requests, counts, cost = trace.requests, node.counts, 0.0
    paid, moment, last = trace.worth.paid, trace.worth.moment, len(trace.worth.paid) - 1
    memory, active, ends = requests.memory * len(node.active), node.active, node.ends
    line, coming, arrivals = requests.line, requests.coming, requests.arrivals
    while counts[NOW] < until:
        now = counts[NOW]
        # Both are called where something happens only: references to their arrays are counted.
        if counts[COME] < len(line) and arrivals[line[coming[counts[COME]]]] <= now:
            arrive(requests, node, now)
        for worker in range(len(active)):
            if active[worker] > 0 and ends[worker, 0] <= now:
                leave(node, worker)
        if counts[FRONT] < counts[STOP]:
            cost += _admit(requests, node, trace.worth, rule, room.made)
        following = until
        for worker in range(len(active)):
            if active[worker] > 0:
                following = min(following, ends[worker, 0])
        if counts[COME] < len(line):
            following = min(following, arrivals[line[coming[counts[COME]]]])
        begin, end = min(now, last), min(following, last)  # idle memory in the meantime has a price
        cost += (memory - node.bases.sum()) * (paid[end] - paid[begin])
        cost -= node.active.sum() * (moment[end] - moment[begin])
        counts[NOW] = following
    return cost


@compiled
def cost_of_waiting(trace: Trace, node: Node) -> float:
    """Return the loss of waiting requests by now against their cheapest starts."""
    cost, unhurried, now, requests, worth = 0.0, 0, node.counts[NOW], trace.requests, trace.worth
    for place in range(node.counts[FRONT], node.counts[STOP]):
        i = requests.line[node.queue[place]]
        if worth.cheapest[i] < now:
            cost += _reduced_cost(requests, worth, i, now)
            unhurried = 0
        else:
            unhurried += 1
            if unhurried > _UNHURRIED:
                break
    return cost


@compiled
def _reduced_cost(requests: Requests, worth: Worth, i: int, start: int) -> float:
    """Return the reduced cost of a start."""
    prompt, output = requests.prompts[i], requests.outputs[i]
    held = tokens_of(worth.paid, worth.moment, start, prompt, output)
    return float(start - requests.arrivals[i] + output + held - worth.least[i])


@compiled
def _admit(requests: Requests, node: Node, worth: Worth, rule: Rule, made: Made) -> float:
    """Start the first that fits, or the one that gains most, while some fit; return the costs."""
    counts, queue, cost, worker = node.counts, node.queue, 0.0, 0
    paid, moment, gaining = worth.paid, worth.moment, rule.fill >= 0
    now, last = counts[NOW], len(paid) - 1
    later = now + requests.mean_output
    price = rule.fill * (paid[min(later, last)] - paid[min(now, last)])
    line, private, passed, memory = requests.line, requests.private, node.passed, requests.memory
    paths, blocks, weights = requests.paths, requests.blocks, requests.weights
    load = Load(node.active, node.bases, node.ends, node.loads, node.until)
    prompts, outputs, holding = requests.prompts, requests.outputs, rule.allowed < np.inf
    while worker >= 0:
        free, front, worker, best, most = -1, counts[FRONT], -1, 0, -np.inf
        for each in range(len(load.active)):
            held = held_before(load.ends[each], load.loads[each], load.active[each], 0, now + 1)
            free = max(free, memory - held)
        stop = min(counts[STOP], front + int(rule.window))
        is_next = front < stop and passed[queue[front]] >= rule.patience
        if is_next and not (
            holding and _is_kept_back(requests, node, worth, rule, line[queue[front]])
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
            if gain > most and not (holding and _is_kept_back(requests, node, worth, rule, i)):
                prompt = Prompt(private[i], paths[i], paths[i + 1], blocks, weights)
                fits = worker_for(load, prompt, outputs[i], now, memory, rule.choice)
                if fits >= 0:
                    worker, best, most = fits, place, gain
                    if not gaining:
                        break
        if worker >= 0:
            i = line[queue[best]]
            start_on(requests, node, worker, i)
            made.starts[i], made.workers[i] = now, worker
            if best > front:
                passed[queue[front]] += 1
            for x in range(best, front, -1):
                queue[x] = queue[x - 1]
            counts[FRONT] += 1
            counts[STATE] += mixed(i, -1)
            cost += _reduced_cost(requests, worth, i, now)
    return cost


@compiled
def _is_kept_back(requests: Requests, node: Node, worth: Worth, rule: Rule, i: int) -> bool:
    """Tell whether a request waits for a start that is cheaper."""
    now = node.counts[NOW]
    if now >= worth.cheapest[i]:
        return False
    return _reduced_cost(requests, worth, i, now) > rule.allowed
