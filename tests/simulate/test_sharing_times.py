"""Shared prefixes in seconds: times of runs and schedules, against a queue of blocks and tokens."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest
from brute_force import Row, Server, completions, feasible
from effort import many
from strategies import batch_time, drawn_with_prefixes, rows_of

from kvopt import BatchTime, Instance, Line, Request, Schedule, Scope, run
from kvopt.certificates.certificate_files import certificate_text
from kvopt.incumbent.certificate import Certificate
from kvopt.problem.clocks import Seconds
from kvopt.verify.certified_problem import problem_of
from kvopt.verify.check_runs import checked_run
from kvopt.verify.step_budget import Work

SERVER = Server([(20, 1), (12, 2)], 5, 1)
CLOCK = Seconds(batch_time(SERVER))


def in_nanoseconds(instance: Instance, late: int) -> tuple[Instance, list[Row]]:
    """Return an instance whose rounds last so many nanoseconds, and its rows."""
    requests = [replace(r, arrival_seconds=r.arrival * late / 10**9) for r in instance]
    rows = [(row[0] * late, *row[1:]) for row in rows_of(instance)]
    return replace(instance, requests=requests), rows


def assert_times(made: Schedule, rows: list[Row]) -> None:
    """Compare completions, and memory, of each worker."""
    instance, block = made.instance, made.instance.block_tokens or 1
    for worker, members in enumerate(made.members):
        own, starts = [rows[i] for i in members], [made.starts[i] for i in members]
        in_rounds = [(0, *row[1:]) for row in own]
        assert feasible(instance.memory, in_rounds, starts, unit=block)
        ends = completions(instance.memory, own, block, SERVER, starts, made.resumed[worker])
        assert [made.completions[i] for i in members] == ends


@pytest.mark.parametrize("name", ["fcfs", "svf", "lpm", "k-lpm:k=2", "svf-private", "h-sf"])
@pytest.mark.parametrize("workers", [1, 2])
def test_runs_take_the_times_of_a_literal_server(name: str, workers: int) -> None:
    for seed in range(many(60)):
        instance, rows = in_nanoseconds(drawn_with_prefixes(seed, 9), 17 * (seed % 3))
        made = run(replace(instance, workers=workers), name, router="round-robin", clock=CLOCK)
        assert made.is_complete
        assert_times(made, rows)
        assert made.scope is (Scope.SHARING if "prefix" in instance.extras else Scope.RUNS)


def test_schedules_take_the_times_of_a_literal_server() -> None:
    hits = 0
    for seed in range(many(250)):
        rng = Random(seed)
        instance = drawn_with_prefixes(seed, 9)
        rows = [(0, *row[1:]) for row in rows_of(instance)]
        instance = replace(instance, requests=[replace(r, arrival=0) for r in instance])
        block, starts = instance.block_tokens or 1, dict[int, int]()
        for i in rng.sample(range(len(rows)), len(rows)):  # as soon as it fits beside those before
            starts[i] = rng.randint(0, 3)
            placed = [rows[j] for j in starts]
            while not feasible(instance.memory, placed, list(starts.values()), unit=block):
                starts[i] += 1
        begins, last = [starts[i] for i in range(len(rows))], max(starts.values())
        waits = {last: 10**6}
        made = Schedule(instance, begins, clock=CLOCK, resumed=[waits])
        ends = completions(instance.memory, rows, block, SERVER, begins, waits)
        assert list(made.completions) == ends, seed
        apart = Schedule(instance.without_prefixes(), begins, clock=CLOCK, resumed=[waits])
        hits += apart.completions != made.completions
    assert hits > many(250) // 3


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", ["lpm", "a-min:intervals=relative,eps=0.9", "a-max"])
def test_the_checker_replays_runs_with_evictions(name: str, workers: int) -> None:
    lost = 0
    for seed in range(many(60)):
        instance, _ = in_nanoseconds(drawn_with_prefixes(seed, 25), 17 * (seed % 3))
        if "prefix" not in instance.extras:
            continue
        instance = replace(instance, workers=workers)
        made = run(instance, name, clock=CLOCK, router="round-robin")
        assert made.is_complete
        found = Certificate(instance, made, None, scope=Scope.SHARING, clock=CLOCK)
        value = json.loads(certificate_text(found))
        peak, times = checked_run(problem_of(value), value["upper"], "upper", Work())
        assert (peak, [last for _, last in times]) == (made.peak_memory, [*made.completions]), seed
        lost += len(made.lost)
    assert lost > 0 or "a-min" not in name


def test_finished_blocks_stay_until_room_is_needed() -> None:
    """The second of a finds its block unless one that needs all memory came between."""
    a, clock = Request(0, 6, 1, prefix=("a",)), Seconds(BatchTime([Line(10, 0)], prompt_ns=100))
    for prompt, output, processed in ((8, 2, 2), (8, 3, 6), (10, 1, 6), (0, 9, 2)):
        instance = Instance(14, [a, Request(0, prompt, output), a], block_tokens=4)
        made = Schedule(instance, (0, 1, 1 + output), clock=clock)
        assert made.completions[0] == 10 + 600
        assert made.completions[2] - made.completions[1] == 10 + 100 * processed
