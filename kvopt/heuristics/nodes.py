"""Nodes: the state of a run at a time, and its steps.

Numba counts a reference to each array of a tuple argument, which takes longer than many steps of a
loop.  So the most frequent test, whether a request fits, gets a `Load` and a `Prompt` instead of a
node: beams over 6,000 conversations take 27 s instead of 38.

A `Node` can be copied, and run by different rules (`kvopt.heuristics.dispatch`).  The workers of a
fleet share one line, from which a request goes to a worker where it fits (`FIRST`, `EMPTIEST`,
`FULLEST`).

The look-ahead decides as that of `kvopt.simulate.policies.promised_memory`, in compiled loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kvopt.bounds.prefix_shares import shared_out
from kvopt.kernels.compiled import compiled
from kvopt.kernels.copying import copy_into, place_of
from kvopt.problem.arrays import Floats, Integers, columns_of
from kvopt.problem.instance import Instance

Rows = Integers
"""Integers in two dimensions: a row for each worker."""

FRONT, STOP, COME, STATE, NOW = range(5)
"""First entries of `Node.counts`; a clock of seconds adds its own."""
FIRST, EMPTIEST, FULLEST = 0.0, 1.0, 2.0
"""The worker that takes a request: the first where it fits, or the one that holds least or most."""


class Requests(NamedTuple):
    """An instance as arrays, and the line in which requests wait.

    Parameters
    ----------
    memory
        Memory M of each worker.
    arrivals, prompts, outputs
        Those of each request; prompts include its shares of blocks (`kvopt.bounds.prefix_shares`).
    line
        Requests in the order of the line.  The place there is a request's **rank**.
    coming
        Ranks by arrival.
    mean_output
        Mean over all requests, in rounds.
    workers
        Number of workers.
    private, paths, blocks
        Prompt tokens that a request holds alone, and its blocks of the forest:
        ``blocks[paths[i]:paths[i + 1]]``.
    weights
        Tokens of each block, which is held once on a worker.
    """

    memory: int
    arrivals: Integers
    prompts: Integers
    outputs: Integers
    line: Integers
    coming: Integers
    mean_output: int
    workers: int
    private: Integers
    paths: Integers
    blocks: Integers
    weights: Integers


class Made(NamedTuple):
    """Rounds and workers of the started requests."""

    starts: Integers
    workers: Integers


class Node(NamedTuple):
    """State of a run.

    Parameters
    ----------
    counts
        Begin and end of the waiting requests in ``queue``, the number of arrived ones, a hash of
        the state (started requests, and the future holdings of active ones), the round, and more.
    active, bases
        Number of active requests on each worker, and the sum of their offsets.
    queue
        Ranks of waiting requests, about ascending.
    passed
        How often each rank was passed over.
    ends, offsets, loads
        In a row for each worker, for each active request: its completion, ascending; its prompt
        less its start (it holds this plus t at t); and the tokens of all requests of the worker
        at its completion.
    until
        In a row for each worker, the completion of the last active user of each block.
    """

    counts: Integers
    active: Integers
    bases: Integers
    queue: Integers
    passed: Integers
    ends: Rows
    offsets: Rows
    loads: Rows
    until: Rows


def requests_of(instance: Instance) -> tuple[Requests, Floats]:
    """Return an instance as arrays, with a line by volume, and the logarithms of the volumes."""
    arrivals, prompts, outputs = columns_of(plain := shared_out(instance))
    volumes = np.array([float(request.volume) for request in plain])
    forest = instance.without_common_prefix().forest
    line = np.lexsort((arrivals, prompts, volumes))
    coming = np.argsort(arrivals[line], kind="stable")
    mean = int(outputs.mean()) if len(outputs) else 0
    requests = Requests(
        plain.memory,
        arrivals,
        prompts,
        outputs,
        line,
        coming,
        mean,
        instance.workers,
        np.array(forest.private, dtype=np.int64),
        np.cumsum([0, *map(len, forest.paths)]),
        np.array([block for path in forest.paths for block in path], dtype=np.int64),
        np.array(forest.weights, dtype=np.int64),
    )
    return requests, np.log(volumes)


def most_active(requests: Requests) -> int:
    """Return how many requests may be active on a worker, plus one."""
    held = np.sort(requests.private) + 1
    return int(np.searchsorted(held.cumsum(), requests.memory, side="right")) + 1


def nothing_made(count: int) -> Made:
    """Return arrays for starts and workers."""
    return Made(np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64))


def first_node(requests: Requests, more: Sequence[int] = ()) -> Node:
    """Return the node before any request has arrived, with the first values of further counts."""
    return Node(*(field[0] for field in empty_nodes(requests, 1, more)))


def empty_nodes(requests: Requests, width: int, more: Sequence[int] = ()) -> Node:
    """Return empty nodes, one in each row, with the first values of further counts."""
    count, workers, most = len(requests.line), requests.workers, most_active(requests)
    counts = np.tile(np.array([count, count, 0, 0, 0, *more], dtype=np.int64), (width, 1))
    active, bases = np.zeros((2, width, workers), dtype=np.int64)
    queue, passed = (np.zeros((width, size), dtype=np.int64) for size in (2 * count, count))
    ends, offsets, loads = np.zeros((3, width, workers, most), dtype=np.int64)
    until = np.zeros((width, workers, len(requests.weights)), dtype=np.int64)
    return Node(counts, active, bases, queue, passed, ends, offsets, loads, until)


@compiled
def node_of(nodes: Node, row: int) -> Node:
    """Return one of many nodes, which share their arrays."""
    return Node(
        nodes.counts[row],
        nodes.active[row],
        nodes.bases[row],
        nodes.queue[row],
        nodes.passed[row],
        nodes.ends[row],
        nodes.offsets[row],
        nodes.loads[row],
        nodes.until[row],
    )


@compiled
def copy_node(node: Node, copy: Node, seen: int) -> None:
    """Copy a node, with the given number of its waiting requests."""
    copy_into(copy.counts, node.counts, len(node.counts))
    copy_into(copy.active, node.active, len(node.active))
    copy_into(copy.bases, node.bases, len(node.active))
    front = node.counts[FRONT]
    stop = min(node.counts[STOP], front + seen)
    copy.counts[STOP] = stop
    queue, passed, to_queue, to_passed = node.queue, node.passed, copy.queue, copy.passed
    for place in range(front, stop):
        rank = queue[place]
        to_queue[place], to_passed[rank] = rank, passed[rank]
    for worker in range(len(node.active)):
        active = node.active[worker]
        copy_into(copy.ends[worker], node.ends[worker], active)
        copy_into(copy.offsets[worker], node.offsets[worker], active)
        copy_into(copy.loads[worker], node.loads[worker], active)
        copy_into(copy.until[worker], node.until[worker], node.until.shape[1])


@compiled
def arrive(requests: Requests, node: Node, time: int) -> None:
    """Let requests that arrive by a time join the line, each in its place."""
    counts, queue, passed = node.counts, node.queue, node.passed
    line, coming, arrivals = requests.line, requests.coming, requests.arrivals
    while counts[COME] < len(line) and arrivals[line[coming[counts[COME]]]] <= time:
        rank, front, stop = coming[counts[COME]], counts[FRONT], counts[STOP]
        counts[COME] += 1
        passed[rank] = 0  # an earlier use of this copy may have passed it over
        place = place_of(rank, queue, front, stop)
        if place - front < stop - place and front > 0:  # the shorter side moves
            for x in range(front, place):
                queue[x - 1] = queue[x]
            queue[place - 1] = rank
            counts[FRONT] -= 1
            continue
        for x in range(stop, place, -1):
            queue[x] = queue[x - 1]
        queue[place] = rank
        counts[STOP] += 1


@compiled
def leave(node: Node, worker: int) -> None:
    """Let completed requests leave a worker."""
    counts, now, gone, active = node.counts, node.counts[NOW], 0, node.active[worker]
    ends, offsets, loads = node.ends[worker], node.offsets[worker], node.loads[worker]
    while gone < active and ends[gone] <= now:
        node.bases[worker] -= offsets[gone]
        counts[STATE] -= mixed(ends[gone], offsets[gone])
        gone += 1
    for x in range(gone, active):
        ends[x - gone], offsets[x - gone], loads[x - gone] = ends[x], offsets[x], loads[x]
    node.active[worker] -= gone


@compiled
def held_before(ends: Integers, loads: Integers, active: int, x: int, time: int) -> int:
    """Return the tokens held at a time up to the completion in place x, after the one before it."""
    return 0 if x == active else int(loads[x] - (active - x) * (ends[x] - time))


class Load(NamedTuple):
    """Parts of a `Node` for the test whether a request fits."""

    active: Integers
    bases: Integers
    ends: Rows
    loads: Rows
    until: Rows


class Prompt(NamedTuple):
    """Prompt of a request: its private tokens, and its range among the blocks of all paths."""

    private: int
    first: int
    last: int
    blocks: Integers
    weights: Integers


@compiled
def _added(prompt: Prompt, until: Integers, time: int) -> int:
    """Return the tokens that a prompt adds to a worker at a time: it shares blocks held there."""
    tokens = prompt.private
    for place in range(prompt.first, prompt.last):
        block = prompt.blocks[place]
        if until[block] < time:
            tokens += prompt.weights[block]
    return int(tokens)


@compiled
def worker_for(
    load: Load, prompt: Prompt, output: int, now: int, memory: int, choice: float
) -> int:
    """Return the worker that takes a request now, -1 if it fits on none."""
    best, least, is_sharing = -1, 0, prompt.first < prompt.last
    end, more = now + output, prompt.private
    for worker in range(len(load.active)):
        active, ends, loads = load.active[worker], load.ends[worker], load.loads[worker]
        held = load.bases[worker] + active * now
        if choice == FULLEST:
            held = -held
        if best >= 0 and (choice == FIRST or held >= least):
            continue
        # It has to fit in the next round, and at every completion, its own included.
        until = load.until[worker]
        if is_sharing:
            more = _added(prompt, until, now + 1)
        if held_before(ends, loads, active, 0, now + 1) + 1 + more > memory:
            continue
        x, fits = 0, True
        while fits and x < active and ends[x] < end:
            if is_sharing:
                more = _added(prompt, until, ends[x])
            fits = loads[x] + more + ends[x] - now <= memory
            x += 1
        if is_sharing:
            more = _added(prompt, until, end)
        if fits and held_before(ends, loads, active, x, end) + more + output <= memory:
            best, least = worker, held
    return best


@compiled
def mixed(first: int, second: int) -> int:
    """Return a hash of two numbers; a set has the sum of its hashes."""
    x = np.uint64(np.int64(first)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(np.int64(second))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return int((x ^ (x >> np.uint64(27))) >> np.uint64(1))


@compiled
def start_on(requests: Requests, node: Node, worker: int, i: int) -> None:
    """Make a request active now."""
    ends, offsets, loads = node.ends[worker], node.offsets[worker], node.loads[worker]
    now, output = node.counts[NOW], requests.outputs[i]
    end, offset = now + output, requests.prompts[i] - now
    x = active = node.active[worker]
    while x > 0 and ends[x - 1] >= end:
        x -= 1
    first, stop, until = requests.paths[i], requests.paths[i + 1], node.until[worker]
    prompt = Prompt(requests.private[i], first, stop, requests.blocks, requests.weights)
    last = _added(prompt, until, end) + output
    own = held_before(ends, loads, active, x, end) + last
    for y in range(active, x, -1):
        ends[y], offsets[y], loads[y] = ends[y - 1], offsets[y - 1], loads[y - 1]
    ends[x], offsets[x], loads[x] = end, offset, own
    for y in range(x):
        loads[y] += _added(prompt, until, ends[y]) + ends[y] - now
    y = x + 1
    while y <= active and ends[y] == end:
        loads[y] += last
        y += 1
    for place in range(prompt.first, prompt.last):
        block = prompt.blocks[place]
        until[block] = max(until[block], end)
    node.active[worker] += 1
    node.bases[worker] += offset
    node.counts[STATE] += mixed(end, offset)
