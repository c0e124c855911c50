"""A server with shared prefixes in compiled loops, which admits conversations by their mean work.

Waiting requests of a conversation share blocks, which are computed and read once if they run
together.  So they are put in an order, the least further work first, and beginnings of this order
are pooled: the key of a request is the mean work of the best beginning that it is in, where
requests count by their weights.  The lowest key is admitted first.  Memory is reserved for all
outputs, so no request is preempted.

Hindsight decides the rest: a request joins the line at its *release*, perhaps not before a later
turn of its conversation arrives, and blocks stay in the cache until their next *use*.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from kvopt.heuristics.attaining.serving import Timed, round_length, timed_of
from kvopt.kernels.compiled import compiled
from kvopt.kernels.copying import order_of
from kvopt.kernels.magnitudes import NEVER
from kvopt.problem.arrays import Floats, Integers, columns_of
from kvopt.problem.clocks import Seconds, arrivals_ns
from kvopt.problem.instance import Instance
from kvopt.timetable.work_intervals import Chunks

LARGEST_GROUP = 64
"""A conversation are the users of a block, if they are no more than that."""
_TO_COME, _WAITS, _RUNS, _ENDED = range(4)
"""States of a request."""


class Rows(NamedTuple):
    """Lists of numbers in one array: list ``i`` is ``values[first[i]:first[i + 1]]``."""

    first: Integers
    values: Integers

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> Rows:
        """Return lists in one array."""
        first = np.cumsum([0, *map(len, lists)], dtype=np.int64)
        return cls(first, np.array([x for row in lists for x in row], dtype=np.int64))


class PrefixTables(NamedTuple):
    """Requests that share prefixes, and nodes of their forest.

    Latencies count by ``weights``.  ``private`` are tokens of prompts on no node, ``nodes`` the
    tokens of nodes, in blocks of ``unit``.  ``group_of`` is the conversation of each request.  A
    computed token costs about ``token_ns``, and one that is held in a round ``held_ns``.
    """

    timed: Timed
    weights: Integers
    private: Integers
    nodes: Integers
    unit: int
    paths: Rows
    users: Rows
    group_of: Integers
    groups: Rows
    token_ns: float
    held_ns: float

    @classmethod
    def of(cls, instance: Instance, clock: Seconds) -> PrefixTables:
        """Return the tables of an instance on one machine, whose first request arrives at 0."""
        forest, model, times = instance.forest, clock.batch_time, arrivals_ns(instance)
        members: dict[int, list[int]] = {}
        for i, path in enumerate(forest.paths):
            few = (v for v in path if len(forest.users[v]) <= LARGEST_GROUP)
            members.setdefault(next(few, -1 - i), []).append(i)
        group_of = {i: group for group, row in enumerate(members.values()) for i in row}
        arrivals = np.array(times, dtype=np.int64) - min(times)
        return cls(
            timed_of(instance.memory, model, arrivals, *columns_of(instance)[1:]),
            np.array([request.weight for request in instance], dtype=np.int64),
            np.array(forest.private, dtype=np.int64),
            np.array(forest.weights, dtype=np.int64),
            instance.block_tokens or 1,
            Rows.of(forest.paths),
            Rows.of(forest.users),
            np.array([group_of[i] for i in range(len(times))], dtype=np.int64),
            Rows.of([*members.values()]),
            float(max(line.token_ns for line in model.lines) + model.prompt_ns),
            model.kv_ns + max(line.round_ns for line in model.lines) / instance.memory,
        )


class Choices(NamedTuple):
    """What hindsight chooses.

    These are the release of each request, a factor of its work in keys, and when its blocks are
    used next, at its start in an earlier run; and the limit of the tokens of a round.
    """

    releases: Integers
    factors: Floats
    uses: Integers
    budget: int


class PrefixRun(NamedTuple):
    """Events of a run, in arrays that `serve` writes to.

    Of each request these are its ``starts``, the rounds in which its prompt and its tokens begin,
    and its ``cached`` tokens.  ``pieces`` are requests and their tokens that yield no token, as far
    as there is room, ``resumed`` rounds and times at which an idle server resumes work, and
    ``counts`` the numbers of both.
    """

    starts: Integers
    rounds: Integers
    cached: Integers
    pieces: Integers
    resumed: Integers
    counts: Integers

    @classmethod
    def empty(cls, count: int, pieces: int = 0) -> PrefixRun:
        """Return room for a run of so many requests."""
        shapes = count, (2, count), count, (pieces, 2), (count + 1, 2), 2
        return cls(*(np.zeros(shape, dtype=np.int64) for shape in shapes))

    def work(self, outputs: Integers, origin: int) -> dict[str, Any]:
        """Return the work as arguments of a schedule, whose first request arrives at a time."""
        pieces: list[list[int]] = [[] for _ in outputs]
        for i, tokens in self.pieces[: self.counts[0]].tolist():
            pieces[i].append(tokens)
        begins, firsts = self.rounds.tolist()
        rows = zip(begins, pieces, self.cached.tolist(), strict=True)
        return {
            "segments": [
                [(first + 1, first + output)]
                for first, output in zip(firsts, outputs.tolist(), strict=True)
            ],
            "chunks": [
                Chunks(i, begin, tuple(tokens), cached)
                for i, (begin, tokens, cached) in enumerate(rows)
                if tokens or cached
            ],
            "resumed": [{now: t + origin for now, t in self.resumed[: self.counts[1]].tolist()}],
        }


@compiled
def serve(tables: PrefixTables, choices: Choices, run: PrefixRun) -> int:
    """Serve all requests; return their total latency."""
    timed, weights, private, nodes, unit, paths, users, group_of, groups, _, _ = tables
    arrivals, outputs, memory, releases = timed.arrivals, timed.outputs, timed.memory, choices[0]
    count, coming = len(releases), order_of(releases)
    state, in_use = np.zeros(count, dtype=np.int64), np.zeros(len(nodes), dtype=np.int64)
    cached, next_use = np.zeros_like(nodes), np.zeros_like(nodes)
    # Nodes that no request used when they came here; others are used again, or not cached.
    idle, number_idle, is_idle = np.zeros_like(nodes), 0, np.zeros(len(nodes), dtype=np.bool_)
    is_stale, keys = np.ones(len(groups.first) - 1, dtype=np.bool_), np.zeros(count)
    line, stays = np.zeros(count, dtype=np.int64), np.zeros(len(nodes))
    waiting, active = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    now = time = come = number_waiting = number_active = ended = total = 0
    held = reserved = kept = 0  # tokens of active requests, with all outputs, and of idle nodes
    partial, missing, is_blocked = -1, 0, False
    run.counts[:] = 0
    while ended < count:
        # Released requests join the line; an idle server waits for the next one.
        if number_active == 0 and partial < 0 and number_waiting == 0:
            time = max(time, releases[coming[come]])
            run.resumed[run.counts[1], 0], run.resumed[run.counts[1], 1] = now, time
            run.counts[1] += 1
        while come < count and releases[coming[come]] <= time:
            i = coming[come]
            state[i], waiting[number_waiting], is_stale[group_of[i]] = _WAITS, i, True
            come, number_waiting, is_blocked = come + 1, number_waiting + 1, False

        # The unfinished prompt is processed, then waiting ones while budget and memory suffice.
        left, prompts = choices.budget - number_active, 0
        while partial >= 0 or (left > 0 and number_waiting > 0 and not is_blocked):
            if partial < 0:
                best = 0
                for place in range(number_waiting):
                    group = group_of[waiting[place]]
                    if is_stale[group]:
                        _set_keys(tables, choices, group, state, in_use, cached, stays, line, keys)
                        is_stale[group] = False
                    if keys[waiting[place]] < keys[waiting[best]]:
                        best = place
                i = waiting[best]
                needed, hit, is_whole = private[i] + outputs[i], 0, True
                for v in paths.values[paths.first[i] : paths.first[i + 1]]:
                    needed += 0 if in_use[v] else nodes[v]
                    hit += cached[v] if is_whole else 0
                    is_whole = is_whole and cached[v] == nodes[v]
                is_blocked = reserved + needed > memory
                if is_blocked:
                    break

                # The first in line is admitted.
                number_waiting -= 1
                waiting[best] = waiting[number_waiting]
                state[i], is_stale[group_of[i]] = _RUNS, True
                run.starts[i], run.rounds[0, i], run.cached[i] = time, now, hit
                held, reserved = held + needed - outputs[i], reserved + needed
                for v in paths.values[paths.first[i] : paths.first[i + 1]]:
                    kept -= 0 if in_use[v] else cached[v]
                    in_use[v], cached[v] = in_use[v] + 1, nodes[v]
                partial, missing = i, timed.prompts[i] + 1 - hit

                # Blocks with the latest next use leave the cache, the last of a path first.
                while reserved + kept > memory:
                    last = -1
                    for place in range(number_idle - 1, -1, -1):
                        v = idle[place]
                        if in_use[v] or cached[v] == 0:
                            number_idle, is_idle[v] = number_idle - 1, False
                            idle[place] = idle[number_idle]
                        elif last < 0 or (next_use[v], v) > (next_use[last], last):
                            last = v
                    leaves = min(-(-(reserved + kept - memory) // unit) * unit, cached[last])
                    cached[last], kept = cached[last] - leaves, kept - leaves
                    is_stale[group_of[users.values[users.first[last]]]] = True
            tokens = max(1, min(missing, left))
            missing, left, prompts = missing - tokens, left - tokens, prompts + tokens
            if missing:
                if run.counts[0] < len(run.pieces):
                    row = run.counts[0]
                    run.pieces[row, 0], run.pieces[row, 1] = partial, tokens
                run.counts[0] += 1
                break
            run.rounds[1, partial], active[number_active], partial = now, partial, -1
            number_active, prompts = number_active + 1, prompts - 1

        # The round passes; active requests hold one token more, a piece less than its prompt.
        held += number_active
        processed = held - max(missing - 1, 0)
        time += round_length(timed.pace, number_active + prompts, prompts, processed)
        now += 1
        for place in range(number_active - 1, -1, -1):
            i = active[place]
            if run.rounds[1, i] + outputs[i] > now:
                continue
            number_active, ended, is_blocked = number_active - 1, ended + 1, False
            active[place], state[i], is_stale[group_of[i]] = active[number_active], _ENDED, True
            total += weights[i] * (time - arrivals[i])
            held, reserved = held - private[i] - outputs[i], reserved - private[i] - outputs[i]
            for v in paths.values[paths.first[i] : paths.first[i + 1]]:
                in_use[v] -= 1
                if in_use[v]:
                    continue
                held, reserved, kept = held - nodes[v], reserved - nodes[v], kept + nodes[v]
                next_use[v] = NEVER
                for j in users.values[users.first[v] : users.first[v + 1]]:
                    if state[j] < _RUNS:
                        next_use[v] = min(next_use[v], choices.uses[j])
                if not is_idle[v]:
                    idle[number_idle], is_idle[v] = v, True
                    number_idle += 1
    return total


@compiled
def _set_keys(
    tables: PrefixTables,
    choices: Choices,
    group: int,
    state: Integers,
    in_use: Integers,
    cached: Integers,
    stays: Floats,
    line: Integers,
    keys: Floats,
) -> None:
    """Set the keys of the waiting requests of a conversation: mean further work, in nanoseconds.

    ``stays`` are, of each node, the rounds in which requests before in the order read it; they are
    0 before and after.  The work of a request is that of ``fresh`` tokens to compute, and of
    ``read`` tokens in each of its rounds, half of its outputs among them.  Jobs on one machine
    have the least sum of completions in the order of their works; where some make others cheaper,
    by the least mean of a beginning of the order.
    """
    timed, nodes, paths, groups = tables.timed, tables.nodes, tables.paths, tables.groups
    weights = tables.weights
    number = 0
    for i in groups.values[groups.first[group] : groups.first[group + 1]]:
        if state[i] == _WAITS:
            line[number] = i
            number += 1
    works, masses, pools = np.zeros(number), np.zeros(number), 0
    ends = np.zeros(number, dtype=np.int64)
    for turn in range(number):
        # The least further work is next in the order.
        lowest, best = np.inf, turn
        for place in range(turn, number):
            i = line[place]
            output = timed.outputs[i]
            fresh, read = float(timed.prompts[i]), timed.prompts[i] + output / 2
            for v in paths.values[paths.first[i] : paths.first[i + 1]]:
                again = 1.0 if in_use[v] else min(1.0, stays[v] / output)
                fresh -= nodes[v] if again else cached[v]
                read -= nodes[v] * again
            work = (fresh + output) * tables.token_ns + output * read * tables.held_ns
            if work * choices.factors[i] / weights[i] < lowest:
                lowest, best = work * choices.factors[i] / weights[i], place
        line[turn], line[best] = line[best], line[turn]
        for v in paths.values[paths.first[line[turn]] : paths.first[line[turn] + 1]]:
            stays[v] = max(stays[v], float(timed.outputs[line[turn]]))
        # Beginnings of the order are pooled while that lowers their means.
        masses[pools] = weights[line[turn]]
        works[pools], ends[pools] = lowest * masses[pools], turn + 1
        while pools and works[pools - 1] * masses[pools] >= works[pools] * masses[pools - 1]:
            works[pools - 1] += works[pools]
            masses[pools - 1] += masses[pools]
            pools -= 1
            ends[pools] = turn + 1
        pools += 1
    turn = 0
    for pool in range(pools):
        while turn < ends[pool]:
            # A little more for each turn: in a pool the order counts.
            keys[line[turn]] = works[pool] / masses[pool] * (1 + 1e-9 * turn)
            for v in paths.values[paths.first[line[turn]] : paths.first[line[turn] + 1]]:
                stays[v] = 0.0
            turn += 1
