"""Shared prefixes by brute force, from the definition alone: nothing of kvopt is used to judge.

A request is ``(arrival, prompt, output, path)``; the first ``len(path) * block`` tokens of its
prompt are the blocks of its path, and the active requests hold each block once.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain, combinations, product
from math import inf

from timed_oracle import Server

from kvopt import Instance, Request

Row = tuple[int, int, int, tuple[object, ...]]


def rows_of(instance: Instance) -> list[Row]:
    """Return the requests of an instance as plain rows."""
    return [(r.arrival, r.prompt, r.output, tuple(r.prefix)) for r in instance]


def load(rows: Sequence[Row], block: int, starts: Sequence[int], time: int) -> int:
    """Return the tokens held at a time."""
    held, blocks = 0, set()
    for (_, prompt, output, path), start in zip(rows, starts, strict=True):
        if start < time <= start + output:
            held += prompt - block * len(path) + time - start
            blocks |= set(path)
    return held + block * len(blocks)


def feasible(memory: int, rows: Sequence[Row], block: int, starts: Sequence[int]) -> bool:
    """Whether nothing starts early and no time holds more than the memory."""
    if any(start < row[0] for row, start in zip(rows, starts, strict=True)):
        return False
    last = max((start + row[2] for row, start in zip(rows, starts, strict=True)), default=0)
    return all(load(rows, block, starts, time) <= memory for time in range(1, last + 1))


def optimum(memory: int, rows: Sequence[Row], block: int) -> int:
    """Return the least total latency over all schedules, round by round."""
    last = max((row[0] for row in rows), default=0) + sum(row[2] for row in rows)
    everything = tuple(row[2] for row in rows)

    @cache
    def best(time: int, left: tuple[int, ...], active: tuple[bool, ...]) -> float:
        """Return the least latency from a time on, with so many tokens of each to come."""
        if not any(left):
            return 0
        if time >= last:
            return inf
        waiting = [i for i, row in enumerate(rows) if left[i] and not active[i] and row[0] <= time]
        cost = sum(1 for i, row in enumerate(rows) if left[i] and row[0] <= time)
        found = inf
        for count in range(len(waiting) + 1):
            for chosen in combinations(waiting, count):
                works = [i for i in range(len(rows)) if (active[i] and left[i]) or i in chosen]
                held = sum(
                    rows[i][1] - block * len(rows[i][3]) + rows[i][2] - left[i] + 1 for i in works
                )
                if held + block * len({b for i in works for b in rows[i][3]}) > memory:
                    continue
                after = tuple(n - (i in works) for i, n in enumerate(left))
                found = min(
                    found, best(time + 1, after, tuple(i in works for i in range(len(rows))))
                )
        return cost + found

    value = best(0, everything, (False,) * len(rows))
    return int(value)


def drawn(seed: int, most: int = 5, *, is_common: bool = False) -> Instance:
    """Return a small instance with prefixes in a forest of up to six blocks.

    With ``is_common`` all paths begin with the same root.
    """
    rng = random.Random(seed)
    block, count = rng.randint(1, 3), rng.randint(1, 6)
    parents = [rng.choice([None, *range(v)]) if v else None for v in range(count)]
    if is_common:
        parents = [None if v == 0 else (p or 0) for v, p in enumerate(parents)]
    label = (lambda v: f"b{v}") if seed % 2 else (lambda v: v)
    requests, memory = [], rng.randint(4, 12) + block * is_common
    for _ in range(rng.randint(1, most)):
        path: list[int | str] = []
        node = rng.choice([*range(count), *([] if is_common else [None])])
        while node is not None:
            path.insert(0, label(node))
            node = parents[node]
        path = path[: (memory - 1) // block]
        prompt = rng.randint(len(path) * block, min(memory - 1, len(path) * block + 3))
        output = rng.randint(1, min(3, memory - prompt))
        requests.append(Request(rng.randint(0, 3), prompt, output, prefix=path))
    return Instance(memory, requests, block_tokens=block)


def optimum_of(instance: Instance) -> int:
    """Return the least total latency of an instance, of one worker or more."""
    rows, block = rows_of(instance), instance.block_tokens or 1

    def split(left: list[Row], workers: int) -> int:
        if workers == 1 or not left:
            return optimum(instance.memory, left, block)
        return min(
            optimum(
                instance.memory,
                [row for row, is_in in zip(left, mine, strict=True) if is_in],
                block,
            )
            + split([row for row, is_in in zip(left, mine, strict=True) if not is_in], workers - 1)
            for mine in product([False, True], repeat=len(left))
        )

    return split(rows, instance.workers)


# ---- in seconds ---------------------------------------------------------------------------------


def timed(
    memory: int, rows: Sequence[Row], block: int, server: Server, starts: Sequence[int],
    waits: Mapping[int, int],
) -> list[int]:  # fmt: skip
    """Return when requests complete, round by round, with a queue of unused blocks and tokens.

    Those that start in a round find what is active or in the queue.  Its head leaves while what is
    active and the queue do not fit; who completes adds its own tokens, then blocks from the last.
    """
    queue, time, ends = list[object](), 0, [0] * len(rows)
    last = max((k + row[2] for k, row in zip(starts, rows, strict=True)), default=0)

    def size() -> int:
        return sum(1 if entry is None else block for entry in queue)

    for number in range(last + 1):
        active = {i for i, k in enumerate(starts) if k < number <= k + rows[i][2]}
        held = load(rows, block, starts, number)
        while queue and held + size() > memory:
            del queue[0]
        for i in sorted(active):
            if starts[i] + rows[i][2] == number:
                active.remove(i)
                ends[i] = time
                _, prompt, output, path = rows[i]
                queue += [None] * (prompt - block * len(path) + output)
                used = {b for j in active for b in rows[j][3]}
                queue += [b for b in reversed(path) if b not in used]
        time = waits.get(number, time)
        fresh = [i for i, k in enumerate(starts) if k == number]
        there = {b for j in active for b in rows[j][3]} | {b for b in queue if b is not None}
        wanted = {b for i in fresh for b in rows[i][3]}
        prompts = sum(rows[i][1] - block * len(rows[i][3]) for i in fresh)
        prompts += block * len(wanted - there)
        queue = [b for b in queue if b not in wanted]
        if count := len(active) + len(fresh):
            tokens = load(rows, block, starts, number + 1)
            time += server.round_ns(count + prompts, prompts, tokens)
    return ends


def timed_optimum(
    memory: int, rows: Sequence[Row], block: int, server: Server, *, stays: bool = True
) -> int:
    """Return the least total latency in nanoseconds if what was computed once stays for ever.

    So whatever a server drops, it is no better than that.  Else it drops as that of `timed` does.
    """
    own = [row[1] - block * len(row[3]) for row in rows]

    @cache
    def best(
        now: int, left: tuple[int, ...], on: tuple[bool, ...], queue: tuple[object, ...]
    ) -> float:
        """Return the least latency of what is not done, from a time on."""
        if not any(left):
            return 0
        later = min((row[0] for row in rows if row[0] > now), default=None)
        found = inf if later is None else best(later, left, on, queue)
        some = [i for i, row in enumerate(rows) if left[i] and not on[i] and row[0] <= now]
        going = [i for i in range(len(rows)) if on[i] and left[i]]
        for chosen in chain.from_iterable(combinations(some, n) for n in range(len(some) + 1)):
            works = [*going, *chosen]
            held = sum(own[i] + rows[i][2] - left[i] + 1 for i in works)
            held += block * len({b for i in works for b in rows[i][3]})
            if held > memory or not works:
                continue
            wanted = {b for i in chosen for b in rows[i][3]}
            fresh = wanted.difference(queue, *(rows[i][3] for i in going))
            prompts = sum(own[i] for i in chosen) + block * len(fresh)
            end = now + server.round_ns(len(works) + prompts, prompts, held)
            after = tuple(n - (i in works) for i, n in enumerate(left))
            done = [i for i in sorted(works) if not after[i]]
            kept = [b for b in queue if b is None or b not in wanted]
            while (
                not stays and kept and held + sum(1 if b is None else block for b in kept) > memory
            ):
                del kept[0]
            for place, i in enumerate(done):
                still = {*works} - {*done[: place + 1]}
                used = {b for j in still for b in rows[j][3]}
                kept += [] if stays else [None] * (own[i] + rows[i][2])
                kept += [b for b in reversed(rows[i][3]) if b not in used]
            active = tuple(i in works for i in range(len(rows)))
            latency = sum(end - rows[i][0] for i in done)
            found = min(found, latency + best(end, after, active, tuple(kept)))
        return found

    outputs = tuple(row[2] for row in rows)
    return int(best(0, outputs, (False,) * len(rows), ()))
