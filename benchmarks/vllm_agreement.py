"""Compare the simulated server with vLLM's own scheduler on random small cases.

    python benchmarks/vllm_agreement.py --source DIR --cases 4000 [--asynchronous]

For each case the rounds in which every request yields a token must be the same.  ``--source`` is as
for ``vllm_record.py``; leave it out where vLLM is installed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from random import Random

from vllm_record import drive, make_scheduler, use_source

from kvopt import Instance, Request, run
from kvopt.kernels.pipes import writing_output
from kvopt.timetable.policy_run import PolicyRun
from kvopt.timetable.server_records import read_record

LONGEST = 10**6
"""Tokens of a request that vLLM allows; it counts one more than kvopt."""


def drawn(source: Random, asynchronous: bool) -> tuple[argparse.Namespace, list[list[int]]]:
    """Draw a server and requests that it can serve."""
    block = source.choice([1, 1, 2, 3, 4, 8, 16])
    blocks = source.randint(2, max(3, source.choice([40, 64, 100]) // block))
    max_seqs = source.choice([1, 2, 3, 5, 1000])
    budget = max_seqs + (source.choice([0, 1, 5, 20]) if max_seqs < 1000 else 0)
    options = argparse.Namespace(
        block=block, blocks=blocks, max_seqs=max_seqs, budget=budget, asynchronous=asynchronous,
        chunked=source.random() < 0.7, watermark=source.choice([0.0, 0.0, 0.05, 0.2, 0.5]),
        policy=source.choice(["fcfs", "priority"]),
    )  # fmt: skip
    most = block * blocks if options.chunked else min(block * blocks, budget)
    rows, arrival = [], 0
    for _ in range(source.randint(1, source.choice([4, 8, 20]))):
        peak = source.randint(1, most)
        output = source.randint(1, peak)
        arrival += source.choice([0, 0, 0, 1, 3])
        priority = source.randint(-3, 3) if options.policy == "priority" else 0
        rows.append([arrival, peak - output + 1, output, priority])
    return options, rows


def simulated(options: argparse.Namespace, rows: list[list[int]]) -> PolicyRun:
    """Return what kvopt says that vLLM does."""
    by = ":by=priority," if options.policy == "priority" else ":"
    keys = f"block={options.block},max_seqs={options.max_seqs},budget={options.budget}"
    keys += f",chunked={int(options.chunked)},watermark={options.watermark}"
    keys += f",asynchronous={int(options.asynchronous)}"
    requests = [Request(a, s - 1, o, priority=priority) for a, s, o, priority in rows]
    instance = Instance(options.block * options.blocks, requests)
    return run(instance, f"vllm-{options.policy}{by}{keys}")


def busy_rounds(found: PolicyRun) -> list[list[int]]:
    """Return when each request yields tokens, in rounds that leave idle times out, as a record."""
    number = 0
    numbers: dict[int, int] = {}
    for stretch in found.stretches:
        for time in range(stretch.round + 1, stretch.round + stretch.rounds + 1):
            number += 1
            numbers[time] = number
    return [[numbers[time] for time in times] for times in found.active_times]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--source", type=Path, help="where vLLM's Python files are unpacked")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--asynchronous", action="store_true")
    options = parser.parse_args()
    if options.source is not None:
        use_source(options.source)
    different = pauses = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KVOPT_RECORD"] = record = str(Path(folder) / "record.jsonl")
        for seed in range(options.cases):
            case, rows = drawn(Random(seed), options.asynchronous)
            scheduler = make_scheduler(f"{'Async' * case.asynchronous}Recorder", case)
            scheduler.max_model_len = LONGEST
            drive(scheduler, rows, case.asynchronous)
            mine = simulated(case, rows)
            schedule = read_record(record).schedule
            pairs = zip(schedule.instance, schedule.active_times, strict=True)
            theirs = {request.id: times for request, times in pairs}
            if busy_rounds(mine) != [theirs[f"r{i}"] for i in range(len(rows))]:
                different += 1
                print(f"case {seed}: {case} {rows}")
            pauses += mine.pauses
    print(f"{options.cases:,} cases, {pauses:,} pauses: {different:,} decided otherwise")


if __name__ == "__main__":
    with writing_output():
        main()
