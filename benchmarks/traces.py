"""Instances from public traces, for the benchmarks of this folder.

The files are those of the README's data section; their folder is given with ``--data``.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from functools import cache
from pathlib import Path

from kvopt import Instance, Request, generate, import_trace

MEMORY = 16_492
ROUND_MS = 50.0
"""Length of a round where real arrivals are used: a batch of Llama-2-70B on two A100."""

FILES = {
    "conv": ("AzureLLMInferenceTrace_conv.csv", "azure"),
    "code": ("AzureLLMInferenceTrace_code.csv", "azure"),
    "mooncake": ("mooncake_conversation_trace.jsonl", "mooncake"),
    "arxiv": ("arxiv_summarization_lengths.csv", "lengths"),
}
"""File and format of each trace."""

Shape = tuple[int, int]


@cache
def trace(data: Path, name: str) -> Instance:
    """Return what fits of a trace: ``conv`` and ``code`` of Azure, ``mooncake``, ``arxiv``."""
    file, format_ = FILES[name]
    return import_trace(data / file, format_, MEMORY, round_ms=ROUND_MS)


def azure(data: Path, name: str) -> tuple[list[float], list[Shape]]:
    """Return seconds since the first request, and prompts and outputs, of an Azure trace."""
    found = trace(data, name)
    return [r.arrival_seconds or 0.0 for r in found], [r.shape for r in found]


def instance(data: Path, name: str, n: int, arrivals: bool) -> Instance:
    """Return ``n`` requests: the first of a trace, repeated if it is shorter, or drawn."""
    if name in ("conv", "code", "mooncake"):
        return repeated(trace(data, name), n, arrivals)
    rng = random.Random(1)
    chat = [(r.prompt, r.output) for r in generate("conversation", n, MEMORY, seed=1)]
    if name == "mixed":  # wang-2025 section 7: one summary to four conversations
        long = [r.shape for r in rng.choices(trace(data, "arxiv").requests, k=n // 5)]
        chat = chat[: n - len(long)] + long
        rng.shuffle(chat)
    starts = sorted(rng.randrange(n) if arrivals else 0 for _ in range(n))
    return Instance(
        MEMORY, [Request(a, s, o) for a, (s, o) in zip(starts, chat, strict=True)], name=name
    )


def repeated(whole: Instance, n: int, arrivals: bool) -> Instance:
    """Return the first requests of a trace, and the trace again a second after its end."""
    count = len(whole)
    span = math.ceil(max(r.arrival_seconds or 0.0 for r in whole)) + 1
    rounds = math.ceil(span * 1000 / ROUND_MS)
    requests = []
    for i in range(n):
        request, turn = whole.requests[i % count], i // count
        seconds = (request.arrival_seconds or 0.0) + span * turn if arrivals else None
        arrival = request.arrival + rounds * turn if arrivals else 0
        requests.append(replace(request, id=None, arrival=arrival, arrival_seconds=seconds))
    return Instance(
        whole.memory, requests, whole.name, round_ms=whole.round_ms if arrivals else None
    )
