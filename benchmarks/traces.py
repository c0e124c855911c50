"""Instances from public traces, for the benchmarks of this folder.

The files are those of the README's data section; their folder is given with ``--data``.
"""

from __future__ import annotations

import csv
import random
from datetime import datetime
from pathlib import Path

from kvopt import Instance, Request, generate

MEMORY = 16_492
ROUND_SECONDS = 0.05
"""Length of a round where real arrivals are used: a batch of Llama-2-70B on two A100."""

Shape = tuple[int, int]


def azure(data: Path, name: str) -> tuple[list[float], list[Shape]]:
    """Return seconds since the first request, and prompts and outputs, of an Azure trace."""
    with (data / f"AzureLLMInferenceTrace_{name}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    times = [datetime.fromisoformat(row["TIMESTAMP"][:26]).timestamp() for row in rows]
    shapes = [(int(row["ContextTokens"]), int(row["GeneratedTokens"])) for row in rows]
    return [time - times[0] for time in times], shapes


def arxiv(data: Path) -> list[Shape]:
    """Return prompts and outputs of arXiv summarisation."""
    with (data / "arxiv_summarization_lengths.csv").open(newline="") as file:
        rows = csv.DictReader(file)
        return [(int(row["num_prefill_tokens"]), int(row["num_decode_tokens"])) for row in rows]


def fitting(shapes: list[Shape]) -> list[Shape]:
    """Leave out what does not fit into memory or produces nothing."""
    return [(s, o) for s, o in shapes if o >= 1 and s + o <= MEMORY]


def instance(data: Path, name: str, n: int, arrivals: bool) -> Instance:
    """Return ``n`` requests: the first of a trace, repeated if it is shorter, or drawn."""
    if name in ("conv", "code"):
        times, shapes = azure(data, name)
        span = times[-1] + 1.0
        rounds = [
            int((times[i % len(times)] + span * (i // len(times))) / ROUND_SECONDS)
            for i in range(n)
        ]
        picked = [shapes[i % len(shapes)] for i in range(n)]
        kept = [
            (a if arrivals else 0, s, o)
            for a, (s, o) in zip(rounds, picked, strict=True)
            if o >= 1 and s + o <= MEMORY
        ]
        return Instance(MEMORY, [Request(*row) for row in kept], name=f"azure-{name}")
    rng = random.Random(1)
    chat = [(r.prompt, r.output) for r in generate("conversation", n, MEMORY, seed=1)]
    if name == "mixed":  # wang-2025 section 7: one summary to four conversations
        long = rng.choices(fitting(arxiv(data)), k=n // 5)
        chat = chat[: n - len(long)] + long
        rng.shuffle(chat)
    starts = sorted(rng.randrange(n) if arrivals else 0 for _ in range(n))
    return Instance(
        MEMORY, [Request(a, s, o) for a, (s, o) in zip(starts, chat, strict=True)], name=name
    )
