"""The rules of a schedule, looked up round by round: slow, and without kvopt's own check."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from kvopt.timetable.runs import PolicyRun


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
