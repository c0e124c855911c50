"""The inner loop of the search for runs in seconds in which many requests attain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.kernels.compiled import borrowing, compiled
from kvopt.kernels.magnitudes import NEVER
from kvopt.problem.arrays import Integers
from kvopt.problem.batch_time import BatchTime

LATE = -1
"""Mark, instead of 1, of a request that was kept and is late nevertheless."""


class ServiceDue(NamedTuple):
    """When tokens of requests are due.

    Parameters
    ----------
    early, end
        Times of the first and the last token.
    rest
        Limit of the time between the two.
    """

    early: Integers
    end: Integers
    rest: Integers


class ServicePace(NamedTuple):
    """How long rounds last; see `kvopt.problem.batch_time`."""

    by_round: Integers
    by_token: Integers
    prompt_ns: int
    kv_ns: int


class Timed(NamedTuple):
    """Requests on a clock of seconds, and how long rounds last.

    ``coming`` are the requests in the order of arrival.
    """

    memory: int
    arrivals: Integers
    coming: Integers
    prompts: Integers
    outputs: Integers
    due: ServiceDue
    pace: ServicePace


def timed_of(
    memory: int,
    model: BatchTime,
    arrivals: Integers,
    prompts: Integers,
    outputs: Integers,
    due: ServiceDue | None = None,
) -> Timed:
    """Return requests on the clock of a model; without ``due`` no token is ever late."""
    never = np.full(len(arrivals), NEVER)
    pace = ServicePace(
        np.array([line.round_ns for line in model.lines], dtype=np.int64),
        np.array([line.token_ns for line in model.lines], dtype=np.int64),
        model.prompt_ns,
        model.kv_ns,
    )
    return Timed(
        memory,
        arrivals,
        np.argsort(arrivals, kind="stable"),
        prompts,
        outputs,
        ServiceDue(never, never, never) if due is None else due,
        pace,
    )


class ServiceLine(NamedTuple):
    """Waiting and active requests: arrays that a run writes to.

    ``line`` has the requests by rank, ``waiting`` tells for each rank whether it waits; ``active``
    has a row of end, peak and request for each active request, by its end.
    """

    line: Integers
    ranks: Integers
    waiting: Integers
    active: Integers


@borrowing
def round_length(pace: ServicePace, tokens: int, prompts: int, held: int) -> int:
    """Return how long a round lasts."""
    longest = 0
    for line in range(len(pace.by_round)):
        longest = max(longest, pace.by_round[line] + pace.by_token[line] * tokens)
    return int(longest + pace.prompt_ns * prompts + pace.kv_ns * held)


@borrowing
def fits(active: Integers, count: int, end: int, peak: int, memory: int) -> bool:
    """Whether memory suffices at all completions if one joins; between them it only fills.

    A request holds ``peak - end + t`` tokens at t.  Those that end at t or later are summed up from
    the last one on: together they hold ``offset + number t``.
    """
    offset, number, joined = 0, 0, False
    for place in range(count - 1, -1, -1):
        if not joined and end >= active[place, 0]:
            offset, number, joined = offset + peak - end, number + 1, True
            if offset + number * end > memory:
                return False
        offset += active[place, 1] - active[place, 0]
        number += 1
        if offset + number * active[place, 0] > memory:
            return False
    return joined or offset + peak - end + (number + 1) * end <= memory


@borrowing
def join(active: Integers, count: int, end: int, peak: int, request: int) -> None:
    """Insert the row of a request, (end, peak, request), by its end."""
    place = count
    while place > 0 and active[place - 1, 0] > end:
        for entry in range(3):
            active[place, entry] = active[place - 1, entry]
        place -= 1
    active[place, 0], active[place, 1], active[place, 2] = end, peak, request


@borrowing
def _delays(
    pace: ServicePace,
    active: Integers,
    due: Integers,
    now: int,
    time: int,
    first: int,
    later: float,
    prompts: int,
    care: float,
) -> bool:
    """Whether an active request would be late only if one more joins.

    Then the next round lasts ``first``, and later ones are estimated to last ``later``; without
    the new request estimates are multiplied by the care.
    """
    number, tokens = len(active), 0
    for place in range(number):
        tokens += active[place, 1] - active[place, 0] + now + 1
    alone = round_length(pace, number + prompts, prompts, tokens)
    slower, slow = later, care * round_length(pace, number, 0, tokens)
    for place in range(number):
        left, end = active[place, 0] - now - 1, due[active[place, 2]]
        if time + alone + slow * left <= end < time + first + slower * left:
            return True
    return False


@compiled
def serve(
    timed: Timed,
    lines: ServiceLine,
    kept: Integers,
    window: int,
    patience: float,
    care: float,
    starts: Integers,
    resumed: Integers,
) -> tuple[int, int]:
    """Run kept requests by rank, then all others; return how many attain, and idle times.

    A request that would be late is not started, and no longer kept: its time is estimated from the
    current batch, times the patience for all rounds except the first.  A request that is late
    nevertheless is marked as `LATE`.  Requests that do not fit, whose tokens after the first would
    be too slow in the current batch, or that would make others late by rounds estimated times the
    care, are passed over, up to a number of them.
    """
    count, pace = len(starts), timed.pace
    hopeful, coming, waiting, attained, waits = kept.sum(), 0, 0, 0, 0
    now = time = number = base = 0  # a round that ends at t holds base + number t
    is_idle, in_time = True, True
    due = timed.due.end.copy()  # from its first token on a request also keeps its pace
    while True:
        # Requests that have arrived join the line; those not kept come after all others.
        while coming < count and timed.arrivals[timed.coming[coming]] <= time:
            i = timed.coming[coming]
            coming += 1
            if kept[i] or not in_time:
                lines.waiting[lines.ranks[i]] = 1
                waiting += 1
        # Of the first in line those start that are in time, fit, and make no others late.
        rank = seen = prompts = 0
        soonest = NEVER  # when the first tokens of those that start now are due
        left = waiting
        while left > 0 and seen < window:
            while not lines.waiting[rank]:
                rank += 1
            i = lines.line[rank]
            left -= 1
            s, o = timed.prompts[i], timed.outputs[i]
            held = base + (number + 1) * (now + 1) + s - now
            first = round_length(pace, number + 1 + prompts + s, prompts + s, held)
            later = round_length(pace, number + 1, 0, held + o - 1)
            rest = patience * later * (o - 1)
            is_late = time + first > timed.due.early[i] or time + first + rest > due[i]
            is_slow = rest > timed.due.rest[i]
            # Even alone it would be late, so it gives up its place.
            if in_time and (is_late or (is_slow and number == 0)):
                lines.waiting[rank] = 0
                waiting -= 1
                hopeful -= 1
                kept[i] = 0
            elif (
                held <= timed.memory
                and not (in_time and (is_slow or time + first > soonest))
                and fits(lines.active, number, now + o, s + o, timed.memory)
                and not (
                    in_time
                    and care
                    and _delays(
                        pace,
                        lines.active[:number],
                        due,
                        now,
                        time,
                        first,
                        care * round_length(pace, number + 1, 0, held),
                        prompts,
                        care,
                    )
                )
            ):
                lines.waiting[rank] = 0
                waiting -= 1
                join(lines.active, number, now + o, s + o, i)
                number, base, prompts, starts[i] = number + 1, base + s - now, prompts + s, now
                soonest = min(soonest, timed.due.early[i])
                if is_idle:
                    resumed[waits, 0], resumed[waits, 1] = now, time
                    waits, is_idle = waits + 1, False
            else:
                seen += 1
            rank += 1
        # An idle server lets the others in once no kept request is left, or waits for an arrival.
        if number == 0:
            if in_time and hopeful == 0:
                in_time = False
                for i in timed.coming[:coming]:
                    if starts[i] < 0:
                        lines.waiting[lines.ranks[i]] = 1
                        waiting += 1
            if waiting == 0 and coming == count:
                return attained, waits
            if waiting == 0:
                time, now, is_idle = max(time, timed.arrivals[timed.coming[coming]]), now + 1, True
            continue
        # Rounds pass up to an arrival or a completion; the first has the prompts.
        rounds, passed = lines.active[0, 0] - now, 1
        ended = time + round_length(pace, number + prompts, prompts, base + number * (now + 1))
        for place in range(number):
            i = lines.active[place, 2]
            if starts[i] == now:
                is_late = ended > timed.due.early[i]
                due[i] = -1 if is_late else min(due[i], ended + timed.due.rest[i])
        until = timed.arrivals[timed.coming[coming]] if coming < count else NEVER
        while passed < rounds and ended < until:
            passed += 1
            ended += round_length(pace, number, 0, base + number * (now + passed))
        time, now = ended, now + passed
        # Completed requests leave the batch.
        while number > 0 and lines.active[0, 0] == now:
            i = lines.active[0, 2]
            if in_time and kept[i]:
                hopeful -= 1
            if time <= due[i]:
                attained += 1
            elif kept[i]:
                kept[i] = LATE
            base -= lines.active[0, 1] - now
            number -= 1
            for place in range(number):
                for entry in range(3):
                    lines.active[place, entry] = lines.active[place + 1, entry]
