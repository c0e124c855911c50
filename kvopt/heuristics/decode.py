"""From an order to a schedule: each request starts at the earliest round that still fits.

Requests are placed one by one in the order of a list.  Each starts at the first round, from
its release on, at which it fits beside everything placed before it, at all times.  A later
request may thus fill a gap before an earlier one, which a list scheduler that never starts
anything before its predecessor cannot.

**Which schedules are reached.**  With the releases equal to the arrivals not every optimum,
neither from its own order of starts nor from any other.  Take memory 6 and, all at round 0,
(prompt, output) = (0, 4), (1, 2), (1, 2), (1, 5).  The optimum is 19, with the starts
1, 0, 1, 4: the first request waits a round so that it is smaller when the third completes.
Each of the 24 orders gives 20 or more.  Decoders that never start before the predecessor
miss optima too, and more of them: of 80,000 random instances without arrivals 296 against
284, of 113,000 with arrivals 737 against 211.  So a request carries a release of its own, a
round before which it is not tried.  With the releases equal to the starts, in their order,
every feasible schedule decodes to itself, since a part of what fits together fits too: order
and releases together reach every optimum.

**Speed.**  Loads are kept densely, one integer a time.  Nothing is tried more than ``depth``
rounds before the latest start so far, so only a band of the profile matters at any position.
These bands are kept every few positions, and a change at position p decodes again from p.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kvopt.errors import TooLarge
from kvopt.kernels.compiled import compiled
from kvopt.problem.arrays import Integers, columns_of
from kvopt.problem.instance import Instance

LARGEST_HORIZON = 2**23
"""Limit of the rounds that a dense profile spans; 64 MB."""

_LARGEST_BANDS = 2**23
"""Limit of the integers in the bands of all prefixes together; 64 MB."""

_LEAST_DEPTH, _DEPTH_IN_OUTPUTS = 64, 4
"""Depth of a problem: rounds at least, and longest outputs."""
_POSITIONS_PER_BAND = 4
"""Positions of the order from one band to the next, at least."""


class Problem(NamedTuple):
    """An instance as arrays; rounds count from the first arrival.

    Nothing is tried more than ``depth`` rounds before the latest start so far, and no release
    is after ``last``.  ``held`` are tokens at each time that belong to none of the requests: all
    of it spans whatever releases up to the last can lead to.
    """

    memory: int
    arrivals: Integers
    prompts: Integers
    outputs: Integers
    depth: int
    last: int
    held: Integers


class Line(NamedTuple):
    """An order of requests, its schedule, and the profiles of its prefixes.

    Parameters
    ----------
    order
        Requests in the order of placing.
    releases, starts
        By request: the round before which it is not tried, and where it was placed.
    bands
        Row b: tokens held by the first ``b * stride`` requests of the order at the times
        from ``depth`` rounds before their latest start on.
    latest, ends
        Latest start, and last time with tokens, of each of these prefixes.
    stride
        Positions from one row to the next.
    """

    order: Integers
    releases: Integers
    starts: Integers
    bands: Integers
    latest: Integers
    ends: Integers
    stride: int


def problem_of(instance: Instance, depth: int | None = None) -> Problem:
    """Return an instance as arrays, or raise `TooLarge` when its rounds are too many."""
    first = first_arrival(instance)
    span = instance.last_arrival - first + instance.total_output
    if span > LARGEST_HORIZON:
        raise TooLarge(f"schedules span {span:,} rounds; the limit is {LARGEST_HORIZON:,}")
    arrivals, prompts, outputs = columns_of(instance)
    arrivals -= first
    if depth is None:
        depth = max(_LEAST_DEPTH, _DEPTH_IN_OUTPUTS * int(outputs.max(initial=0)))
    # Each start is at most its release, or the last completion so far.
    held = np.zeros(span + int(outputs.sum()) + 2, dtype=np.int64)
    return Problem(instance.memory, arrivals, prompts, outputs, min(depth, span), span, held)


def first_arrival(instance: Instance) -> int:
    """Return the round that the arrays call 0."""
    return min((request.arrival for request in instance), default=0)


def line_of(problem: Problem, order: Sequence[int], releases: Sequence[int] | None = None) -> Line:
    """Decode an order; without releases every request is tried from its arrival on."""
    count = len(problem.arrivals)
    if releases is None:
        releases = problem.arrivals.tolist()
    width = problem.depth + int(problem.outputs.max(initial=0)) + 2
    most = max(1, _LARGEST_BANDS // width)
    stride = max(_POSITIONS_PER_BAND, -(-count // most))
    rows = count // stride + 1
    line = Line(
        order=np.array(order, dtype=np.int64),
        releases=np.minimum(np.array(releases, dtype=np.int64), problem.last),
        starts=np.zeros(count, dtype=np.int64),
        bands=np.zeros((rows, width), dtype=np.int64),
        latest=np.zeros(rows, dtype=np.int64),
        ends=np.zeros(rows, dtype=np.int64),
        stride=stride,
    )
    decode(problem, line, problem.held.copy())
    return line


@compiled
def earliest(profile: Integers, room: int, output: int, start: int) -> int:
    """Return the first round from ``start`` on at which a request fits.

    ``room`` is memory less the prompt.  A time t at which the request would hold ``excess``
    tokens too many stays too full until it starts ``excess`` rounds later, or at t itself.
    """
    known, end = start, start  # the times known + 1 .. end were seen to fit
    while True:
        time = start + output
        while time > end and profile[time] + time - start <= room:
            time -= 1
        if time <= end:
            time = known
            while time > start and profile[time] + time - start <= room:
                time -= 1
            if time <= start:
                return start
        known, end = time, start + output
        start += min(profile[time] + time - start - room, time - start)


@compiled
def hold(problem: Problem, profile: Integers, request: int, start: int) -> None:
    """Add a request to a profile."""
    tokens = problem.prompts[request]
    for time in range(start + 1, start + problem.outputs[request] + 1):
        tokens += 1
        profile[time] += tokens


@compiled
def place(problem: Problem, profile: Integers, request: int, release: int, latest: int) -> int:
    """Add a request where it first fits, and return its start."""
    room = problem.memory - problem.prompts[request]
    begin = max(release, latest - problem.depth)
    start = earliest(profile, room, problem.outputs[request], begin)
    hold(problem, profile, request, start)
    return start


@compiled
def recall(
    problem: Problem, line: Line, position: int, profile: Integers, dirty: int
) -> tuple[int, int]:
    """Write the profile of the first ``position`` requests where it matters.

    ``dirty`` is the last time with tokens in what ``profile`` held before.  Returned are the
    latest start and the last time with tokens now.
    """
    row = position // line.stride
    latest, end = line.latest[row], line.ends[row]
    base = max(0, latest - problem.depth)
    for time in range(base, end + 1):
        profile[time] = line.bands[row, time - base]
    for time in range(max(base, end + 1), dirty + 1):
        profile[time] = problem.held[time]
    for earlier in range(row * line.stride, position):
        i = line.order[earlier]
        hold(problem, profile, i, line.starts[i])
        latest = max(latest, line.starts[i])
        end = max(end, line.starts[i] + problem.outputs[i])
    return latest, end


@compiled
def keep(problem: Problem, line: Line, row: int, profile: Integers, latest: int, end: int) -> None:
    """Remember a prefix."""
    base = max(0, latest - problem.depth)
    for time in range(base, end + 1):
        line.bands[row, time - base] = profile[time]
    line.latest[row], line.ends[row] = latest, end


@compiled
def decode(problem: Problem, line: Line, profile: Integers) -> None:
    """Place everything on an empty profile, and keep starts and prefixes."""
    latest, end = 0, 0
    for position in range(len(line.order)):
        if position % line.stride == 0:
            keep(problem, line, position // line.stride, profile, latest, end)
        i = line.order[position]
        start = place(problem, profile, i, line.releases[i], latest)
        line.starts[i] = start
        latest, end = max(latest, start), max(end, start + problem.outputs[i])
