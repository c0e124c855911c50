"""Memory in whole blocks, against a count at every time."""

from __future__ import annotations

import random

from effort import many

from kvopt import Instance, Request
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.sweep import blocks_held


def test_whether_blocks_suffice() -> None:
    found = set()
    for seed in range(many(300)):
        source = random.Random(seed)
        block, count = source.randint(1, 4), source.randint(1, 4)
        requests = [Request(0, source.randint(0, 5), source.randint(1, 6)) for _ in range(count)]
        times = [sorted(source.sample(range(1, 14), r.output)) for r in requests]
        memory = source.randint(11, 30)
        schedule = Schedule.at_times(Instance(memory, requests), times)
        literal = None
        for time in range(1, 14):
            held = [
                r.prompt + active.index(time) + 1
                for r, active in zip(requests, times, strict=True)
                if time in active
            ]
            needed = sum(tokens // block + (tokens % block > 0) for tokens in held)
            if needed > memory // block:
                literal = (time, needed)
                break
        overflow = any(n > memory // block for _, n in blocks_held(schedule.sweep, block))
        assert overflow == (literal is not None)
        found.add(overflow)
    assert found == {True, False}
