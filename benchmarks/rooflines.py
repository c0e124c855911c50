"""Compare rooflines with measured rounds: profiles by operators that the Vidur simulator publishes.

    python benchmarks/rooflines.py --data DIR

DIR is ``data/profiling`` of microsoft/vidur, with ``compute/GPU/MODEL/mlp.csv`` and
``network/GPU_dgx/all_reduce.csv``.  A measured round is every operator of the profile once a
layer, and two exchanges a layer among GPUs.  Attention and the output layer are not in the
profiles, so they are left out of the rooflines too.  Ratios are roofline over measured time.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from pathlib import Path
from statistics import median

import numpy as np

from kvopt.kernels.pipes import ended_by_reader
from kvopt.problem.batch_time import MILLISECOND
from kvopt.problem.hardware.presets import GPUS, SHORT_NAMES, ModelShape
from kvopt.problem.hardware.roofline import CHECKED, COUNTS, MOSTLY, roofline
from kvopt.timetable.records import read_batches

Network = dict[int, tuple[list[int], list[float]]]
"""Bytes and milliseconds of exchanges by number of GPUs."""

LAYERS = {
    "Llama-2-7b-hf": 32, "Llama-2-70b-hf": 80, "Meta-Llama-3-8B": 32, "Meta-Llama-3-70B": 80,
    "Qwen-72B": 80, "internlm-20b": 60, "CodeLlama-34b-Instruct-hf": 48,
}  # fmt: skip
"""Of the models with heads of 128 numbers, from their ``config.json``."""


def shape_of(profile: Path, layers: int) -> ModelShape:
    """Return the layers of a model as its profile describes them."""
    with profile.open(newline="") as file:
        row = next(csv.DictReader(file))
    heads, kv_heads, hidden, inner = (
        int(row[name]) for name in ("n_head", "n_kv_head", "n_embd", "n_expanded_embd")
    )
    attention = 2 * hidden * hidden + 2 * hidden * kv_heads * (hidden // heads)
    layer = attention + 3 * hidden * inner
    return ModelShape(
        profile.parent.name, layers * layer, layers, kv_heads, hidden // heads, hidden=hidden
    )


def exchanges(table: Path) -> Network:
    """Return those inside one machine."""
    times: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    with table.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["num_workers"] == row["devices_per_node"]:
                found = times[int(row["num_workers"])][int(row["size"])]
                found.append(float(row["time_stats.all_reduce.median"]))
    return {
        gpus: (sorted(by_size), [median(by_size[size]) for size in sorted(by_size)])
        for gpus, by_size in times.items()
    }


def ratios(
    profile: Path, gpu: str, network: dict[int, tuple[list[int], list[float]]]
) -> list[float]:
    """Return roofline over measured time for every row of a profile."""
    shape, found = shape_of(profile, LAYERS[profile.parent.name]), []
    for gpus in COUNTS:
        model = roofline(shape, GPUS[gpu], gpus)
        for row in read_batches(profile, shape.layers, gpus)[0]:
            exchanged = row.tokens * shape.hidden * shape.bytes
            exchange = float(np.interp(exchanged, *network[gpus])) if gpus > 1 else 0.0
            measured = row.milliseconds + 2 * shape.layers * exchange
            found.append(model.round_ns(row.tokens, 0, 0) / (measured * MILLISECOND))
    return found


def line(name: str, found: list[float]) -> str:
    """Return a line of the table."""
    least, low, middle, high, most = np.quantile(found, [0, 0.05, 0.5, 0.95, 1])
    inside = np.mean([MOSTLY[0] <= ratio <= MOSTLY[1] for ratio in found])
    return (
        f"{name:34} {len(found):6,} rounds  {least:.2f} {low:.2f} {middle:.2f} {high:.2f} "
        f"{most:.2f}  within {MOSTLY[0]:g} to {MOSTLY[1]:g}: {inside:.1%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    folder = parser.parse_args().data
    print("least, 5%, median, 95% and most of roofline over measured time")
    every: list[float] = []
    for short, gpu in SHORT_NAMES.items():
        if gpu not in CHECKED:
            continue
        network = exchanges(folder / f"network/{short}_dgx/all_reduce.csv")
        for profile in sorted(folder.glob(f"compute/{short}/*/*/mlp.csv")):
            if profile.parent.name in LAYERS:
                found = ratios(profile, gpu, network)
                print(line(f"{profile.parent.name} {short}", found))
                every += found
    print(line("all", every))


if __name__ == "__main__":
    with ended_by_reader():
        main()
