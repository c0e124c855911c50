"""The rules of vLLM's scheduler in compiled loops, with limits that may change over time.

`kvopt.simulate.vllm_server` has the same rules for every clock, prefixes and fleets, and is the
reference: with one setting both take the same decisions.  Here a run of 20,000 requests takes 5 ms
instead of seconds, its state can be copied, and limits and the line of requests are arrays, so that
a search can vary them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from kvopt.bounds.seconds_evaluation import request_times
from kvopt.heuristics.attaining.serving import Timed, round_length, timed_of
from kvopt.kernels.compiled import borrowing, compiled
from kvopt.kernels.copying import order_of
from kvopt.kernels.magnitudes import NEVER, fits
from kvopt.problem.arrays import Integers, columns_of
from kvopt.problem.clocks import Seconds, arrivals_ns
from kvopt.problem.instance import Instance
from kvopt.simulate.policies.by_name import policy
from kvopt.simulate.policies.server_policies import ServerPolicy
from kvopt.timetable.work_intervals import Chunks

LARGEST_CAP = 1024
"""Limit of active requests."""
_MOST_ROUNDS, _MOST_TOKENS = 20_000_000, 2_000_000_000
"""Limits of all outputs, and of all tokens, which are simulated round by round."""

(
    NOW, TIME, COME, WAITING, ACTIVE, FREE, BASE, WINDOW, LATENCY, DONE, SPANS, PIECES, WAITS,
    NUMBER, PARTIAL, PROCESSED, BEFORE, MASS, SINCE,
) = range(19)  # fmt: skip
"""Entries of `ServerState.counts`: the round and its time, numbers of arrived, waiting and decoding
requests, free blocks, the sum of tokens before less starts over decoding requests, the window,
total latency, numbers of completed requests, of recorded spans, pieces and resumptions, and of
admissions; the request with an unfinished prompt or -1, which is the last admitted one, its
processed tokens, and its tokens before it was admitted; the weights of arrived unfinished requests,
and these times their arrivals."""
END, START, HELD_BEFORE, ADMITTED, PRODUCED = range(5)
"""Rows of `ServerState.columns`: of decoding requests the completion, the start, the tokens before
it and the number of the admission; of all requests the tokens before the last admission."""


class WindowLimits(NamedTuple):
    """Limits of a server by window of time.

    Parameters
    ----------
    borders
        Begin of each window; the first is 0.
    limits
        Of each window, in three rows, the limits of tokens in a round, of requests at once, and of
        prompts in a round.
    is_chunked
        Whether a prompt may be processed in pieces.
    """

    borders: Integers
    limits: Integers
    is_chunked: bool


class Served(NamedTuple):
    """Requests in line, and the blocks of the server.

    Parameters
    ----------
    timed
        Requests on the clock; they are visible from ``timed.arrivals`` on.
    weights
        Weights of their latency.
    keys
        Key of each request: the lowest is admitted first, the largest preempted; all differ.
    block
        Tokens of a block.
    """

    timed: Timed
    weights: Integers
    keys: Integers
    block: int


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


class DecisionRecord(NamedTuple):
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


def copy_state(state: ServerState, copy: ServerState) -> None:
    """Copy a state."""
    copy.counts[:], copy.growing[:] = state.counts, state.growing
    waiting, active = state.counts[WAITING], state.active[: state.counts[ACTIVE]]
    copy.waiting[:waiting], copy.active[: len(active)] = state.waiting[:waiting], active
    copy.columns[PRODUCED] = state.columns[PRODUCED]
    copy.columns[:PRODUCED, active] = state.columns[:PRODUCED, active]


@compiled
def serve_until(
    served: Served, settings: WindowLimits, state: ServerState, until: int, record: DecisionRecord
) -> None:
    """Let rounds pass that begin before a time, or until all requests are completed.

    Arrays are taken from the tuples once, so that rounds pass no tuples on.
    """
    timed, keys, block = served.timed, served.keys, served.block
    counts, waiting, active, columns, growing = state
    ends, produced, resumed = columns[END], columns[PRODUCED], record.resumed
    borders, limits = settings.borders, settings.limits
    arrivals, coming, lengths = timed.arrivals, timed.coming, timed.prompts
    weights, pace, kv_ns = served.weights, timed.pace, timed.pace.kv_ns
    total = len(keys)
    while counts[DONE] < total:
        # An idle server waits for the next arrival.
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

        # Requests that arrived join the line, and the limits of the window apply.
        while counts[COME] < total:
            i = coming[counts[COME]]
            if arrivals[i] > counts[TIME]:
                break
            counts[COME] += 1
            counts[MASS] += weights[i]
            counts[SINCE] += weights[i] * arrivals[i]
            _update(keys, waiting, counts, WAITING, i)
        while counts[WINDOW] + 1 < len(borders) and borders[counts[WINDOW] + 1] <= counts[TIME]:
            counts[WINDOW] += 1
        window = counts[WINDOW]

        # Requests in the batch proceed; if blocks run out some are preempted, and none is admitted.
        # ``-(-tokens // block)`` is the number of blocks of tokens, rounded up.
        now, prompts, number = counts[NOW], 0, 0
        budget = limits[0, window] - counts[ACTIVE]
        needed, piece = growing[now % block], 0
        if counts[PARTIAL] >= 0:
            held = counts[PROCESSED]
            piece = max(1, min(counts[BEFORE] + 1 - held, budget))
            needed += -(-(held + piece) // block) + (-held // block)
        is_calm, is_settled = needed <= counts[FREE], False
        if is_calm:
            counts[FREE] -= needed
        else:
            piece, is_calm = _make_room(served, state, budget, record)
        if piece:
            prompts = _process(served, state, piece, record)
            budget -= piece
            number = 1

        # Waiting requests are admitted, up to the first that does not fit.
        while is_calm:
            running = counts[ACTIVE] + (counts[PARTIAL] >= 0)
            if counts[WAITING] == 0 or running >= limits[1, window]:
                is_settled = True
                break
            if budget <= 0 or number >= limits[2, window]:
                break
            i = waiting[0]
            before = lengths[i] + produced[i]
            if -(-(before + 1) // block) > counts[FREE]:
                is_settled = True
                break
            if not settings.is_chunked and before + 1 > budget:
                break
            _update(keys, waiting, counts, WAITING, -1)
            tokens = min(before + 1, budget)
            budget -= tokens
            number += 1
            counts[FREE] -= -(-tokens // block)
            counts[PARTIAL], counts[PROCESSED], counts[BEFORE] = i, 0, before
            counts[NUMBER] += 1
            prompts += _process(served, state, tokens, record)

        # The round passes, and those after it in which every request yields a token, no more: free
        # blocks only become fewer up to a completion, so that the first in line keeps waiting.
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

        # Requests that yielded their last token leave.
        while counts[ACTIVE] and ends[active[0]] == now:
            i = active[0]
            _stop(served, state, i, record)
            counts[LATENCY] += weights[i] * (time - arrivals[i])
            counts[MASS] -= weights[i]
            counts[SINCE] -= weights[i] * arrivals[i]
            counts[DONE] += 1
            _update(ends, active, counts, ACTIVE, -1)


@borrowing
def _update(keys: Integers, heap: Integers, counts: Integers, size: int, i: int) -> None:
    """Push a request to a heap by keys, or remove the lowest if it is -1; a count is its size."""
    place = counts[size]
    counts[size] += 1 if i >= 0 else -1
    count = counts[size]
    if i < 0:  # the last one is moved into the hole
        place, i = 0, heap[count]
    while place > 0 and keys[heap[(place - 1) // 2]] > keys[i]:
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and keys[heap[child + 1]] < keys[heap[child]]:
            child += 1
        if keys[heap[child]] >= keys[i]:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = i


@borrowing
def _process(served: Served, state: ServerState, tokens: int, record: DecisionRecord) -> int:
    """Process tokens of the unfinished prompt; return those that yield no token."""
    counts, columns, pieces = state.counts, state.columns, record.pieces
    i, now, before, processed = counts[PARTIAL], counts[NOW], counts[BEFORE], counts[PROCESSED]
    counts[PROCESSED] += tokens
    if processed + tokens <= before:
        if counts[PIECES] < len(pieces):
            row = pieces[counts[PIECES]]
            row[0], row[1], row[2], row[3] = i, now, tokens, processed == 0
        counts[PIECES] += 1
        return tokens
    # The prompt ends, and yields a token.  At t the request holds before + t - now tokens, and
    # needs a block for the next one where this is a multiple of ``block``.
    columns[END, i] = now + served.timed.outputs[i] - columns[PRODUCED, i]
    columns[START, i], columns[HELD_BEFORE, i] = now, before
    columns[ADMITTED, i] = counts[NUMBER]
    _update(columns[END], state.active, counts, ACTIVE, i)
    counts[PARTIAL] = -1
    counts[BASE] += before - now
    state.growing[(now - before) % served.block] += 1
    return tokens - 1


@borrowing
def _stop(served: Served, state: ServerState, i: int, record: DecisionRecord) -> None:
    """Record the tokens of a decoding request that completes or is preempted, and free its blocks.

    It remains in the heap.
    """
    counts, columns, spans, block = state.counts, state.columns, record.spans, served.block
    now, start, before = counts[NOW], columns[START, i], columns[HELD_BEFORE, i]
    if counts[SPANS] < len(spans):
        span = spans[counts[SPANS]]
        span[0], span[1], span[2] = i, start + 1, now
    counts[SPANS] += 1
    counts[BASE] -= before - start
    state.growing[(start - before) % block] -= 1
    counts[FREE] -= -(before + now - start) // block
    columns[PRODUCED, i] += now - start


@compiled
def _make_room(
    served: Served, state: ServerState, budget: int, record: DecisionRecord
) -> tuple[int, bool]:
    """Let requests proceed in the order of admission; those with the largest keys are preempted.

    Returns the tokens of the unfinished prompt to process, and whether no request was preempted.
    """
    counts, waiting, active, columns, _ = state
    keys, block, now, ends = served.keys, served.block, counts[NOW], columns[END]
    starts, before, number = columns[START], columns[HELD_BEFORE], counts[ACTIVE]
    batch = active[:number].copy()
    order = order_of(columns[ADMITTED][batch])
    budget += number  # each takes a token in its turn
    went_on, is_gone = np.zeros(number, dtype=np.int64), np.zeros(number, dtype=np.int64)
    is_calm, piece = True, 0
    for turn in range(number + 1):
        # The unfinished prompt was admitted last, so its turn is the last one.
        is_piece = turn == number
        if is_piece and counts[PARTIAL] < 0:
            break
        place = -1 if is_piece else order[turn]
        if not is_piece and is_gone[place]:
            continue
        if is_piece:
            held = counts[PROCESSED]
            piece = max(1, min(counts[BEFORE] + 1 - held, budget))
            needed = -(-(held + piece) // block) + (-held // block)
        else:
            held = before[batch[place]] + now - starts[batch[place]]
            needed = int(held % block == 0)
        is_here = True

        # The largest key is preempted until there is room, the request itself if it is the last.
        while needed > counts[FREE] and is_here:
            last, worst = -1, counts[PARTIAL]
            for other in range(number):
                i = batch[other]
                if not is_gone[other] and (worst < 0 or keys[i] > keys[worst]):
                    last, worst = other, i
            is_calm = False
            if last < 0:  # it is the unfinished prompt
                counts[FREE] += -(-counts[PROCESSED] // block)
                _update(keys, waiting, counts, WAITING, worst)
                counts[PARTIAL] = -1
                is_here = not is_piece
                continue
            # What it took in this round is given back.
            budget += went_on[last]
            if went_on[last] and (before[worst] + now - starts[worst]) % block == 0:
                counts[FREE] += 1
            is_gone[last] = 1
            _stop(served, state, worst, record)
            _update(keys, waiting, counts, WAITING, worst)
            is_here = last != place
        if is_here:
            counts[FREE] -= needed
        if is_here and not is_piece:
            went_on[place] = 1
            budget -= 1
    counts[ACTIVE] = 0
    for place in range(number):
        if not is_gone[place]:
            _update(ends, active, counts, ACTIVE, batch[place])
    return (piece if counts[PARTIAL] >= 0 else 0), is_calm


class OneServer:
    """Requests on one machine, in arrays, and runs of servers in compiled loops.

    Parameters
    ----------
    instance, clock
        The requests, on one worker and without prefixes, and how long rounds last.

    Attributes
    ----------
    max_active
        Limit of active requests, by servers and by the instance.
    """

    def __init__(self, instance: Instance, clock: Seconds) -> None:
        self.instance = instance
        self.max_active = min(instance.max_active or LARGEST_CAP, LARGEST_CAP)
        times = arrivals_ns(instance)
        self._origin = min(times, default=0)  # on a clock of its own, where sums are small
        arrivals = np.array([time - self._origin for time in times], dtype=np.int64)
        _, prompts, outputs = columns_of(instance)
        timed = timed_of(instance.memory, clock.batch_time, arrivals, prompts, outputs)
        weights = np.array([request.weight for request in instance], dtype=np.int64)
        keys = _places(0 * arrivals, arrivals)
        self._lines = {"arrival": Served(timed, weights, keys, instance.block_size)}

    @classmethod
    def of(cls, instance: Instance, clock: Seconds) -> OneServer | None:
        """Return a server for requests, None if they are too many or too long for the loops."""
        arrivals, model = arrivals_ns(instance), clock.batch_time
        tokens = sum(request.peak for request in instance)
        if not (0 < instance.total_output <= _MOST_ROUNDS and tokens <= _MOST_TOKENS):
            return None
        alone = sum(request_times(instance, model, model.lines, object).alone)
        if not fits((max(arrivals) - min(arrivals) + alone) * instance.total_weight):
            return None
        return cls(instance, clock)

    def line(self, by: str) -> Served:
        """Return the requests in line by an order."""
        if by not in self._lines:
            server = policy(f"vllm-priority:by={by}")
            assert isinstance(server, ServerPolicy)
            first = np.array(server.priorities(self.instance), dtype=np.int64)
            served = self._lines["arrival"]
            self._lines[by] = served._replace(keys=_places(first, served.timed.arrivals))
        return self._lines[by]

    def state(self) -> ServerState:
        """Return the state before any request has arrived."""
        count, counts = len(self.instance), np.zeros(19, dtype=np.int64)
        counts[FREE], counts[PARTIAL] = self.instance.blocks, -1
        return ServerState(
            counts,
            np.zeros(count + 1, dtype=np.int64),
            np.zeros(min(count, LARGEST_CAP) + 1, dtype=np.int64),
            np.zeros((5, count), dtype=np.int64),
            np.zeros(self.instance.block_size, dtype=np.int64),
        )

    def record(self, spans: int = 0, pieces: int = 0) -> DecisionRecord:
        """Return room for events; without any nothing but resumptions is recorded."""
        rows = (spans, 3), (pieces, 4), (len(self.instance) + 1, 2)
        return DecisionRecord(*(np.zeros(shape, dtype=np.int64) for shape in rows))

    def latency(self, by: str, limits: WindowLimits) -> tuple[int, bool]:
        """Return the total latency of a run, and whether it pauses requests."""
        state = self._run(by, limits, self.record())
        return int(state.counts[LATENCY]), bool(state.counts[SPANS] > len(self.instance))

    def events(self, by: str, limits: WindowLimits) -> dict[str, Any]:
        """Return the work of a run as arguments of a schedule."""
        count, record = len(self.instance), self.record()
        counts = self._run(by, limits, record).counts
        # The first run counted the events; the second one is equal, and has room for them.
        record = self.record(int(counts[SPANS]), int(counts[PIECES]))
        self._run(by, limits, record)
        segments: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        for i, first, last in record.spans.tolist():
            segments[i].append((first, last))
        resumed = record.resumed[: counts[WAITS]].tolist()
        return {
            "segments": segments,
            "chunks": list(_chunks(record.pieces.tolist())),
            "resumed": [{now: time + self._origin for now, time in resumed}],
        }

    def _run(self, by: str, limits: WindowLimits, record: DecisionRecord) -> ServerState:
        """Serve all requests within the limit of active ones; return the state at the end."""
        state = self.state()
        serve_until(self.line(by), self.capped(limits), state, NEVER, record)
        return state

    def capped(self, windows: WindowLimits) -> WindowLimits:
        """Return limits within that of active requests."""
        limits = windows.limits.copy()
        limits[1] = np.minimum(limits[1], self.max_active)
        return windows._replace(limits=limits)


def _places(first: Integers, second: Integers) -> Integers:
    """Return keys that order requests by a pair of numbers, then by position."""
    keys = np.empty(len(first), dtype=np.int64)
    keys[np.lexsort((second, first))] = np.arange(len(first), dtype=np.int64)
    return keys


def _chunks(rows: list[list[int]]) -> Iterator[Chunks]:
    """Yield the pieces of prompts in a row."""
    unfinished: dict[int, Chunks] = {}
    for i, start, tokens, is_first in rows:
        if is_first and i in unfinished:
            yield unfinished.pop(i)  # it was preempted
        before = unfinished.get(i, Chunks(i, start, ()))
        unfinished[i] = before._replace(tokens=(*before.tokens, tokens))
    yield from unfinished.values()
