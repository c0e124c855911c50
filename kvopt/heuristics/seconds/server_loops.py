"""The rules of vLLM's scheduler in compiled loops, with limits that may change over time.

`kvopt.simulate.server` has the same rules for every clock, prefixes and fleets, and is the
reference: with one setting both take the same decisions.  Here a run of 20,000 requests takes 5 ms
instead of seconds, its state can be copied, and limits and the line of requests are arrays, so that
a search can vary them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.heuristics.attaining.serving import Timed, round_length
from kvopt.kernels.compiled import compiled
from kvopt.kernels.copying import copy_into, order_of
from kvopt.problem.arrays import Integers

(
    NOW, TIME, COME, WAITING, ACTIVE, FREE, BASE, WINDOW, LATENCY, DONE, SPANS, PIECES, WAITS,
    NUMBER, PARTIAL, PROCESSED, BEFORE, PARTIAL_NUMBER, MASS, SINCE,
) = range(20)  # fmt: skip
"""Entries of `ServerState.counts`: the round and its time, numbers of arrived, waiting and decoding
requests, free blocks, the sum of tokens before less starts over decoding requests, the window,
total latency, numbers of completed requests, of recorded spans, pieces and resumptions, and of
admissions; the request with an unfinished prompt or -1, its processed tokens, its tokens before
it was admitted, and the number of its admission; the weights of arrived unfinished requests, and
these times their arrivals."""
END, START, HELD_BEFORE, ADMITTED, PRODUCED = range(5)
"""Rows of `ServerState.columns`: of decoding requests the completion, the start, the tokens before
it and the number of the admission; of all requests the tokens before the last admission."""


class Settings(NamedTuple):
    """Limits of a server by window of time.

    Parameters
    ----------
    borders
        Begin of each window; the first is 0.
    budgets, caps, prompts
        In each window the most tokens of a round, requests at once, and prompts of a round.
    is_chunked
        Whether a prompt may be processed in pieces.
    """

    borders: Integers
    budgets: Integers
    caps: Integers
    prompts: Integers
    is_chunked: bool


class Served(NamedTuple):
    """Requests in line, and the blocks of the server.

    Parameters
    ----------
    timed
        Requests on the clock; they are visible from ``timed.arrivals`` on.
    since
        Times from which their latency counts.
    weights
        Weights of their latency.
    keys
        Key of each request: the least is admitted first, the largest preempted; all differ.
    block, blocks
        Tokens of a block, and blocks of the memory.
    """

    timed: Timed
    since: Integers
    weights: Integers
    keys: Integers
    block: int
    blocks: int


class ServerState(NamedTuple):
    """State of a run before a round.

    Parameters
    ----------
    counts
        Numbers with the entries `NOW` and others.
    waiting, active
        Heaps: waiting requests by their keys, and decoding ones by completion.
    columns
        Numbers of each request in the rows `END` and others.
    growing
        Decoding requests that need a block, by round modulo block.
    """

    counts: Integers
    waiting: Integers
    active: Integers
    columns: Integers
    growing: Integers


class Record(NamedTuple):
    """Events of a run, as far as the arrays have room for them.

    Parameters
    ----------
    spans
        Request, first and last round of consecutive tokens.
    pieces
        Request, round and tokens of a piece of a prompt, and whether it begins the prompt.
    resumed
        Rounds and times at which an idle server resumed work.
    """

    spans: Integers
    pieces: Integers
    resumed: Integers


def state_before(served: Served, most: int) -> ServerState:
    """Return the state before any request has arrived, for at most so many requests at once."""
    count = len(served.keys)
    counts = np.zeros(20, dtype=np.int64)
    counts[FREE], counts[PARTIAL] = served.blocks, -1
    return ServerState(
        counts,
        np.zeros(count + 1, dtype=np.int64),
        np.zeros(min(count, most) + 1, dtype=np.int64),
        np.zeros((5, count), dtype=np.int64),
        np.zeros(served.block, dtype=np.int64),
    )


def record_of(count: int, spans: int = 0, pieces: int = 0) -> Record:
    """Return room for events; without any nothing but resumptions is recorded."""
    return Record(
        np.zeros((spans, 3), dtype=np.int64),
        np.zeros((pieces, 4), dtype=np.int64),
        np.zeros((count + 1, 2), dtype=np.int64),
    )


@compiled
def copy_state(state: ServerState, copy: ServerState) -> None:
    """Copy a state."""
    copy_into(copy.counts, state.counts, len(state.counts))
    copy_into(copy.waiting, state.waiting, state.counts[WAITING])
    copy_into(copy.active, state.active, state.counts[ACTIVE])
    source, target = state.columns, copy.columns
    for place in range(state.counts[ACTIVE]):
        i = state.active[place]
        for row in range(PRODUCED):
            target[row, i] = source[row, i]
    copy_into(target[PRODUCED], source[PRODUCED], source.shape[1])
    copy_into(copy.growing, state.growing, len(state.growing))


@compiled
def serve_until(
    served: Served, settings: Settings, state: ServerState, until: int, record: Record
) -> None:
    """Let rounds pass that begin before a time, or until all requests are completed.

    Arrays are taken from the tuples once: tuples that loops pass on cost more than the rounds.
    """
    timed, keys, block = served.timed, served.keys, served.block
    counts, waiting, active, columns, growing = state
    ends, produced, outputs = columns[END], columns[PRODUCED], timed.outputs
    borders, budgets, caps, limits = (
        settings.borders,
        settings.budgets,
        settings.caps,
        settings.prompts,
    )
    arrivals, coming, lengths = timed.arrivals, timed.coming, timed.prompts
    since, weights, pace, kv_ns = served.since, served.weights, timed.pace, timed.pace.kv_ns
    spans, pieces, resumed = record
    total = len(keys)
    while counts[DONE] < total:
        if counts[ACTIVE] == 0 and counts[PARTIAL] < 0 and counts[WAITING] == 0:
            arrival = arrivals[coming[counts[COME]]]
            if max(arrival, counts[TIME]) >= until:
                return
            counts[TIME] = max(arrival, counts[TIME])
            resumed[counts[WAITS], 0] = counts[NOW]
            resumed[counts[WAITS], 1] = counts[TIME]
            counts[WAITS] += 1
        if counts[TIME] >= until:
            return
        while counts[COME] < total:
            i = coming[counts[COME]]
            if arrivals[i] > counts[TIME]:
                break
            counts[COME] += 1
            counts[MASS] += weights[i]
            counts[SINCE] += weights[i] * since[i]
            _push(keys, waiting, counts, WAITING, i)
        while counts[WINDOW] + 1 < len(borders) and borders[counts[WINDOW] + 1] <= counts[TIME]:
            counts[WINDOW] += 1
        window = counts[WINDOW]

        # Requests in the batch proceed; if blocks run out some are preempted, and none is admitted.
        now, prompts, number = counts[NOW], 0, 0
        budget = budgets[window] - counts[ACTIVE]
        needed, piece = growing[now % block], 0
        if counts[PARTIAL] >= 0:
            piece, more = _piece(counts, block, budget)
            needed += more
        is_calm, is_settled = needed <= counts[FREE], False
        if is_calm:
            counts[FREE] -= needed
        else:
            piece, is_calm = _make_room(served, state, budget, spans)
        if piece:
            prompts = _process(counts, active, columns, growing, outputs, block, piece, pieces)
            budget -= piece
            number = 1

        while is_calm:
            running = counts[ACTIVE] + (counts[PARTIAL] >= 0)
            if counts[WAITING] == 0 or running >= caps[window]:
                is_settled = True
                break
            if budget <= 0 or number >= limits[window]:
                break
            i = waiting[0]
            before = lengths[i] + produced[i]
            if -(-(before + 1) // block) > counts[FREE]:
                is_settled = True
                break
            if not settings.is_chunked and before + 1 > budget:
                break
            _pop(keys, waiting, counts, WAITING)
            tokens = min(before + 1, budget)
            budget -= tokens
            number += 1
            counts[FREE] -= -(-tokens // block)
            counts[PARTIAL], counts[PROCESSED], counts[BEFORE] = i, 0, before
            counts[NUMBER] += 1
            counts[PARTIAL_NUMBER] = counts[NUMBER]
            prompts += _process(counts, active, columns, growing, outputs, block, tokens, pieces)

        # The round passes, and those after it in which every request yields a token, no more.
        batch, held = counts[ACTIVE], counts[BASE] + counts[ACTIVE] * (now + 1)
        if counts[PARTIAL] >= 0:
            held += counts[PROCESSED]
        elif batch == 0:
            continue  # all were preempted
        time = counts[TIME] + round_length(pace, batch + prompts, prompts, held)
        now += 1
        if is_settled and counts[PARTIAL] < 0:
            last = until
            if counts[COME] < total:
                last = min(last, arrivals[coming[counts[COME]]])
            if window + 1 < len(borders):
                last = min(last, borders[window + 1])
            flat, free, end = round_length(pace, batch, 0, 0), counts[FREE], ends[active[0]]
            while now < end and time < last and growing[now % block] <= free:
                free -= growing[now % block]
                now += 1
                held += batch
                time += flat + kv_ns * held
            counts[FREE] = free
        counts[NOW], counts[TIME] = now, time
        while counts[ACTIVE] and ends[active[0]] == now:
            i = active[0]
            _stop(counts, columns, growing, block, i, spans)
            counts[LATENCY] += weights[i] * (time - since[i])
            counts[MASS] -= weights[i]
            counts[SINCE] -= weights[i] * since[i]
            counts[DONE] += 1
            _pop(ends, active, counts, ACTIVE)


@compiled
def _push(keys: Integers, heap: Integers, counts: Integers, size: int, i: int) -> None:
    """Push a request to a heap by keys; its size is an entry of the counts."""
    place = counts[size]
    while place > 0 and keys[heap[(place - 1) // 2]] > keys[i]:
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = i
    counts[size] += 1


@compiled
def _pop(keys: Integers, heap: Integers, counts: Integers, size: int) -> None:
    """Remove the request with the least key from a heap."""
    counts[size] -= 1
    count, place = counts[size], 0
    last = heap[count]
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and keys[heap[child + 1]] < keys[heap[child]]:
            child += 1
        if keys[heap[child]] >= keys[last]:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = last


@compiled
def _piece(counts: Integers, block: int, budget: int) -> tuple[int, int]:
    """Return the tokens of the unfinished prompt that a round processes, and blocks for them."""
    held = counts[PROCESSED]
    tokens = max(1, min(counts[BEFORE] + 1 - held, budget))
    return tokens, -(-(held + tokens) // block) + (-held // block)


@compiled
def _process(
    counts: Integers,
    active: Integers,
    columns: Integers,
    growing: Integers,
    outputs: Integers,
    block: int,
    tokens: int,
    pieces: Integers,
) -> int:
    """Process tokens of the unfinished prompt; return those that yield no token."""
    i, now, before, processed = counts[PARTIAL], counts[NOW], counts[BEFORE], counts[PROCESSED]
    counts[PROCESSED] += tokens
    if processed + tokens <= before:
        if counts[PIECES] < len(pieces):
            row = pieces[counts[PIECES]]
            row[0], row[1], row[2], row[3] = i, now, tokens, processed == 0
        counts[PIECES] += 1
        return tokens
    columns[END, i] = now + outputs[i] - columns[PRODUCED, i]
    columns[START, i], columns[HELD_BEFORE, i] = now, before
    columns[ADMITTED, i] = counts[PARTIAL_NUMBER]
    _push(columns[END], active, counts, ACTIVE, i)
    counts[PARTIAL] = -1
    counts[BASE] += before - now
    growing[(now - before) % block] += 1
    return tokens - 1


@compiled
def _stop(
    counts: Integers, columns: Integers, growing: Integers, block: int, i: int, spans: Integers
) -> None:
    """Record the tokens of a decoding request that completes or is preempted, and free its blocks.

    It remains in the heap.
    """
    now, start, before = counts[NOW], columns[START, i], columns[HELD_BEFORE, i]
    if counts[SPANS] < len(spans):
        span = spans[counts[SPANS]]
        span[0], span[1], span[2] = i, start + 1, now
    counts[SPANS] += 1
    counts[BASE] -= before - start
    growing[(start - before) % block] -= 1
    counts[FREE] -= -(before + now - start) // block
    columns[PRODUCED, i] += now - start


@compiled
def _make_room(
    served: Served, state: ServerState, budget: int, spans: Integers
) -> tuple[int, bool]:
    """Let requests proceed in the order of admission; those with the largest keys are preempted.

    Returns the tokens of the unfinished prompt to process, and whether no request was preempted.
    """
    counts, waiting, active, columns, growing = state
    keys, block, now, ends = served.keys, served.block, counts[NOW], columns[END]
    starts, before, number = columns[START], columns[HELD_BEFORE], counts[ACTIVE]
    batch = active[:number].copy()
    order = order_of(columns[ADMITTED][batch])
    budget += number  # each takes a token in its turn
    went_on, is_gone = np.zeros(number, dtype=np.int64), np.zeros(number, dtype=np.int64)
    is_calm, piece = True, 0
    for turn in range(number + 1):
        is_piece = turn == number
        if is_piece and counts[PARTIAL] < 0:
            break
        place = -1 if is_piece else order[turn]
        if not is_piece and is_gone[place]:
            continue
        if is_piece:
            piece, needed = _piece(counts, block, budget)
        else:
            held = before[batch[place]] + now - starts[batch[place]]
            needed = int(held % block == 0)
        is_here = True
        while needed > counts[FREE] and is_here:
            last, worst = -1, counts[PARTIAL]
            for other in range(number):
                i = batch[other]
                if not is_gone[other] and (worst < 0 or keys[i] > keys[worst]):
                    last, worst = other, i
            is_calm = False
            if last < 0:
                counts[FREE] += -(-counts[PROCESSED] // block)
                _push(keys, waiting, counts, WAITING, worst)
                counts[PARTIAL] = -1
                is_here = not is_piece
                continue
            budget += went_on[last]
            if went_on[last] and (before[worst] + now - starts[worst]) % block == 0:
                counts[FREE] += 1
            is_gone[last] = 1
            _stop(counts, columns, growing, block, worst, spans)
            _push(keys, waiting, counts, WAITING, worst)
            is_here = last != place
        if is_here:
            counts[FREE] -= needed
        if is_here and not is_piece:
            went_on[place] = 1
            budget -= 1
    counts[ACTIVE] = 0
    for place in range(number):
        if not is_gone[place]:
            _push(ends, active, counts, ACTIVE, batch[place])
    return (piece if counts[PARTIAL] >= 0 else 0), is_calm
