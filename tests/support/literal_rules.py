"""The rules of a schedule, looked up round by round: slow, and without kvopt's own check."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from kvopt.timetable.policy_run import PolicyRun


def holdings(run: PolicyRun) -> Iterator[tuple[int, int, int, int]]:
    """Yield ``(worker, time, request, tokens)``: what a request holds in the round that ends then.

    Lost work and pieces of prompts hold tokens as well.
    """
    requests = run.instance.requests
    for i, start, end in run.lost:
        worker = run.workers[i]
        assert worker is not None
        yield from (
            (worker, t, i, requests[i].prompt + t - start) for t in range(start + 1, end + 1)
        )
    for i, times in enumerate(run.active_times):
        for count, time in enumerate(times, 1):
            worker = run.workers[i]
            assert worker is not None
            yield worker, time, i, requests[i].prompt + count
    for piece in run.chunks:
        held, worker = piece.cached, run.workers[piece.request]
        assert worker is not None
        for time, tokens in enumerate(piece.tokens, piece.start + 1):
            held += tokens
            yield worker, time, piece.request, held


def broken_rule(run: PolicyRun) -> str | None:
    """Return a broken rule: of memory in whole blocks, of the cap, of arrivals, or the value."""
    instance = run.instance
    size, unit = instance.block_size, instance.block_tokens or 1
    active: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    for worker, time, i, tokens in holdings(run):
        if i in active[worker, time]:
            return f"request {i} runs twice at {time}"
        active[worker, time][i] = tokens
    for (worker, time), held in active.items():
        if instance.max_active is not None and len(held) > instance.max_active:
            return f"{len(held)} active at {time} on {worker}"
        shared, blocks = set[object](), 0
        for i, tokens in held.items():
            path = instance.requests[i].prefix[: tokens // unit]
            shared |= {*path}
            blocks += -(-(tokens - unit * len(path)) // size)
        if blocks + len(shared) * unit // size > instance.memory // size:
            return f"{blocks} private and {len(shared)} shared blocks at {time} on {worker}"
    value = 0
    for request, start, end, arrival in zip(
        instance, run.start_times, run.completions, run.arrivals, strict=True
    ):
        if start is not None and (start < arrival or end <= start):
            return f"request {request.id} starts at {start}, arrives at {arrival}"
        value += 0 if end is None else request.weight * (end - arrival)
    if run.is_complete and value != run.objective:
        return f"says {run.objective}, is {value}"
    return None


def ends_of(run: PolicyRun) -> list[int]:
    """Return when each request completes in seconds, by what each round processes and holds.

    For runs whose records say what was found in the cache.
    """
    instance, model, ends = run.instance, run.clock.batch_time, [0] * len(run.instance)
    unit, requests = instance.block_tokens or 1, instance.requests
    done = {(c.request, c.end): c.cached + sum(c.tokens) for c in sorted(run.chunks)}
    held: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    for worker, time, i, tokens in holdings(run):
        held[worker, time][i] = tokens
    pieces: dict[tuple[int | None, int], int] = defaultdict(int)
    prompts: dict[tuple[int | None, int], int] = defaultdict(int)
    for c in run.chunks:
        for time, tokens in enumerate(c.tokens, c.start + 1):
            pieces[run.workers[c.request], time] += 1
            prompts[run.workers[c.request], time] += tokens
    for i, rows in enumerate(run.segments):
        before = requests[i].prompt
        for first, last in rows:
            prompts[run.workers[i], first] += before - done.get((i, first - 1), 0)
            before += last - first + 1
    for worker in range(instance.workers):
        now = 0
        for time in sorted(t for w, t in held if w == worker):
            now = run.resumed[worker].get(time - 1, now)
            here, paths = held[worker, time], set[object]()
            tokens = sum(here.values())
            for i, count in here.items():
                path = requests[i].prefix[: count // unit]
                tokens -= len(paths & {*path}) * unit
                paths |= {*path}
            yielding = len(here) - pieces[worker, time]
            now += model.round_ns(yielding, prompts[worker, time], tokens)
            for i in here:
                if run.segments[i][-1][1] == time:
                    ends[i] = now
    return ends
