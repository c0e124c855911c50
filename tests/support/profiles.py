"""The public profile of the Vidur simulator: median times of the operators of one layer."""

from __future__ import annotations

import csv
from pathlib import Path

from kvopt.problem.hardware.fitting import Measured


def rows_of_profile(folder: Path, layers: int, workers: int) -> list[Measured]:
    """Return the rounds of a profile: the embedding once, every other operator in each layer."""
    with (folder / "profile_a100_llama2_70b_mlp.csv").open(newline="") as file:
        table = [*csv.DictReader(file)]
    medians = [name for name in table[0] if name.endswith(".median")]
    times = {name: 1 if ".emb." in name else layers for name in medians}
    return [
        Measured(
            int(float(row["num_tokens"])), sum(float(row[name]) * times[name] for name in times)
        )
        for row in table
        if int(float(row["num_tensor_parallel_workers"])) == workers
    ]
