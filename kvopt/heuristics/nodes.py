"""Nodes: the state of a run at a time, and its steps.

A `Node` can be copied, and run by different rules (`kvopt.heuristics.patient_dispatch`).  The
workers of a fleet share one line, from which a request goes to a worker where it fits
(`FIRST_FIT`, `WORST_FIT`, `BEST_FIT`).

The look-ahead decides as that of `kvopt.simulate.policies.promised_memory`, in compiled loops.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.bounds.prefix_shares import shared_out
from kvopt.kernels.compiled import borrowing
from kvopt.kernels.random_numbers import hash_pair
from kvopt.problem.arrays import Floats, Integers, columns_of
from kvopt.problem.instance import Instance
from kvopt.problem.prefixes import Forest

Rows = Integers
"""Integers in two dimensions: a row for each worker."""

FRONT, STOP, COME, STATE, NOW = range(5)
"""Entries of `Node.counts`."""
FIRST_FIT, WORST_FIT, BEST_FIT = 0.0, 1.0, 2.0
"""The worker that takes a request: the first where it fits, or the one that holds least or most."""


class JobArrays(NamedTuple):
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


class Decisions(NamedTuple):
    """Rounds and workers of the started requests."""

    starts: Integers
    workers: Integers


class Node(NamedTuple):
    """State of a run.

    Parameters
    ----------
    counts
        Begin and end of the waiting requests in ``queue``, the number of arrived ones, a hash of
        the state (started requests, and the future holdings of active ones), and the round.
    active, bases
        Number of active requests on each worker, and the sum of their offsets.
    queue
        Ranks of waiting requests, about ascending.
    overtaken
        How often later requests have overtaken each rank.
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
    overtaken: Integers
    ends: Rows
    offsets: Rows
    loads: Rows
    until: Rows


def job_arrays(instance: Instance) -> tuple[JobArrays, Floats]:
    """Return an instance as arrays, with a line by volume, and the logarithms of the volumes."""
    arrivals, prompts, outputs = columns_of(plain := shared_out(instance))
    volumes = np.array([float(request.volume) for request in plain])
    line = np.lexsort((arrivals, prompts, volumes))
    coming = np.argsort(arrivals[line], kind="stable")
    mean = int(outputs.mean()) if len(outputs) else 0
    jobs = JobArrays(
        plain.memory,
        arrivals,
        prompts,
        outputs,
        line,
        coming,
        mean,
        instance.workers,
        *forest_arrays(instance.without_common_prefix().forest),
    )
    return jobs, np.log(volumes)


def forest_arrays(forest: Forest) -> tuple[Integers, Integers, Integers, Integers]:
    """Return private tokens, begins of paths, the blocks of all paths, and tokens of blocks."""
    columns = (
        forest.private,
        np.cumsum([0, *map(len, forest.paths)]),
        [block for path in forest.paths for block in path],
        forest.weights,
    )
    private, paths, blocks, weights = (np.array(column, dtype=np.int64) for column in columns)
    return private, paths, blocks, weights


def most_active(jobs: JobArrays) -> int:
    """Return how many requests may be active on a worker, plus one."""
    held = np.sort(jobs.private) + 1
    return int(np.searchsorted(held.cumsum(), jobs.memory, side="right")) + 1


def empty_nodes(jobs: JobArrays, width: int) -> Node:
    """Return empty nodes, one in each row."""
    count, workers, limit = len(jobs.line), jobs.workers, most_active(jobs)
    counts = np.tile(np.array([count, count, 0, 0, 0], dtype=np.int64), (width, 1))
    active, bases = np.zeros((2, width, workers), dtype=np.int64)
    queue, overtaken = (np.zeros((width, size), dtype=np.int64) for size in (2 * count, count))
    ends, offsets, loads = np.zeros((3, width, workers, limit), dtype=np.int64)
    until = np.zeros((width, workers, len(jobs.weights)), dtype=np.int64)
    return Node(counts, active, bases, queue, overtaken, ends, offsets, loads, until)


@borrowing
def copy_node(nodes: Node, row: int, copies: Node, at: int, seen: int) -> None:
    """Copy a node into a row of others, with so many of its waiting requests, the first in line."""
    for entry in range(nodes.counts.shape[1]):
        copies.counts[at, entry] = nodes.counts[row, entry]
    front = nodes.counts[row, FRONT]
    stop = copies.counts[at, STOP] = min(nodes.counts[row, STOP], front + seen)
    for place in range(front, stop):
        rank = nodes.queue[row, place]
        copies.queue[at, place] = rank
        copies.overtaken[at, rank] = nodes.overtaken[row, rank]
    for worker in range(nodes.active.shape[1]):
        copies.active[at, worker] = nodes.active[row, worker]
        copies.bases[at, worker] = nodes.bases[row, worker]
        for x in range(nodes.active[row, worker]):
            copies.ends[at, worker, x] = nodes.ends[row, worker, x]
            copies.offsets[at, worker, x] = nodes.offsets[row, worker, x]
            copies.loads[at, worker, x] = nodes.loads[row, worker, x]
        for block in range(nodes.until.shape[2]):
            copies.until[at, worker, block] = nodes.until[row, worker, block]


@borrowing
def held_before(ends: Integers, loads: Integers, active: int, x: int, time: int) -> int:
    """Return the tokens held at a time up to the completion in place x, after the one before it.

    The ``active - x`` requests that still run add a token each in every round up to it.
    """
    return 0 if x == active else int(loads[x] - (active - x) * (ends[x] - time))


class WorkerLoad(NamedTuple):
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


@borrowing
def _added(prompt: Prompt, until: Integers, time: int) -> int:
    """Return the tokens that a prompt adds to a worker at a time: it shares blocks held there."""
    tokens = prompt.private
    for place in range(prompt.first, prompt.last):
        block = prompt.blocks[place]
        if until[block] < time:
            tokens += prompt.weights[block]
    return int(tokens)


@borrowing
def worker_for(
    load: WorkerLoad, prompt: Prompt, output: int, now: int, memory: int, choice: float
) -> int:
    """Return the worker that takes a request now, -1 if it fits on none."""
    best, lowest, is_sharing = -1, 0, prompt.first < prompt.last
    end, more = now + output, prompt.private
    for worker in range(len(load.active)):
        active, ends, loads = load.active[worker], load.ends[worker], load.loads[worker]
        held = load.bases[worker] + active * now
        if choice == BEST_FIT:
            held = -held
        if best >= 0 and (choice == FIRST_FIT or held >= lowest):
            continue
        # Between completions what is held only grows, so that it has to fit at each one up to its
        # own.  The next round is tested first, as most fail there already.
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
            best, lowest = worker, held
    return best


@borrowing
def start_on(jobs: JobArrays, node: Node, worker: int, i: int) -> None:
    """Make a request active now."""
    ends, offsets, loads = node.ends[worker], node.offsets[worker], node.loads[worker]
    now, output = node.counts[NOW], jobs.outputs[i]
    end, offset = now + output, jobs.prompts[i] - now
    x = active = node.active[worker]
    while x > 0 and ends[x - 1] >= end:
        x -= 1
    first, stop, until = jobs.paths[i], jobs.paths[i + 1], node.until[worker]
    prompt = Prompt(jobs.private[i], first, stop, jobs.blocks, jobs.weights)
    last = _added(prompt, until, end) + output
    tokens = held_before(ends, loads, active, x, end) + last
    for y in range(active, x, -1):
        ends[y], offsets[y], loads[y] = ends[y - 1], offsets[y - 1], loads[y - 1]
    ends[x], offsets[x], loads[x] = end, offset, tokens
    # At completions up to its own it holds its prompt and a token for each round since now.
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
    node.counts[STATE] += hash_pair(end, offset)
