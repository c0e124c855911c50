"""Instances from public traces, and what a certificate costs: for the scripts of this folder.

The files are those of the README's data section; their folder is given with ``--data``.
"""

from __future__ import annotations

import math
import random
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from kvopt import Instance, Request, generate, import_trace

if TYPE_CHECKING:  # it loads the solvers, whose memory would weigh on what `pipeline.py` measures
    from kvopt import Certificate

MEMORY = 16_492
ROUND_MS = 50.0
"""Length of a round where real arrivals are used: a batch of Llama-2-70B on two A100."""
GRID = 16
"""Of the lengths of ``types``."""

FILES = {
    "conv": ("AzureLLMInferenceTrace_conv.csv", "azure"),
    "code": ("AzureLLMInferenceTrace_code.csv", "azure"),
    "mooncake": ("mooncake_conversation_trace.jsonl", "mooncake"),
    "arxiv": ("arxiv_summarization_lengths.csv", "lengths"),
}
"""File and format of each trace."""


@cache
def trace(data: Path, name: str) -> Instance:
    """Return what fits of a trace: ``conv`` and ``code`` of Azure, ``mooncake``, ``arxiv``."""
    return _imported(data, name, MEMORY)


@cache
def _imported(data: Path, name: str, memory: int) -> Instance:
    """Return what fits of a trace."""
    file, format_ = FILES[name]
    return import_trace(data / file, format_, memory, round_ms=ROUND_MS)


def superposed(
    data: Path, name: str, memory: int, copies: int, begin: int, seconds: int
) -> Instance:
    """Return the requests in a part of a trace that is the sum of shifted copies of itself.

    The copies begin evenly over its time, and go on at its begin after the end.
    """
    requests = _imported(data, name, memory)
    span = math.ceil(max(r.arrival_seconds or 0.0 for r in requests)) + 1
    moved = [
        (round(((r.arrival_seconds or 0.0) + copy * span / copies) % span - begin, 6), r)
        for copy in range(copies)
        for r in requests
    ]
    inside = sorted((pair for pair in moved if 0 <= pair[0] < seconds), key=lambda pair: pair[0])
    return Instance(memory, [replace(r, arrival=0, arrival_seconds=a, id=None) for a, r in inside])


def of_case(data: Path, case: str) -> Instance:
    """Return the instance of a case.

    ``NAME:N`` is a backlog, ``NAME:N:arrivals`` has the arrivals of the trace, and ``NAME:N:F`` has
    them in seconds, F times as far apart.
    """
    name, n, *how = case.split(":")
    found = instance(data, name, int(n), bool(how))
    if how in ([], ["arrivals"], ["1"]):
        return found
    factor = float(how[0])
    slower = [replace(r, arrival_seconds=(r.arrival_seconds or 0.0) * factor) for r in found]
    return Instance(found.memory, slower, name=found.name)


def instance(data: Path, name: str, n: int, arrivals: bool) -> Instance:
    """Return ``n`` requests: the first of a trace, repeated if it is shorter, or drawn."""
    if name in ("conv", "code", "mooncake"):
        return repeated(trace(data, name), n, arrivals)
    rng = random.Random(1)
    shapes = [r.shape for r in generate("conversation", n, MEMORY, seed=1)]
    if name == "mixed":  # wang-2025 section 7: one summary to four conversations
        long = [r.shape for r in rng.choices(trace(data, "arxiv").requests, k=n // 5)]
        shapes = shapes[: n - len(long)] + long
        rng.shuffle(shapes)
    if name == "types":  # many requests of few kinds
        shapes = [(-(-s // GRID) * GRID, -(-o // GRID) * GRID) for s, o in shapes]
    starts = sorted(rng.randrange(n) if arrivals else 0 for _ in range(n))
    requests = [Request(a, s, o) for a, (s, o) in zip(starts, shapes, strict=True)]
    return Instance(MEMORY, requests, name=name)


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
    round_ms = whole.round_ms if arrivals else None
    return Instance(whole.memory, requests, whole.name, round_ms=round_ms)


def verified(certificate: Certificate) -> tuple[float, int]:
    """Write a certificate, verify it, and return the seconds that took and its bytes."""
    from kvopt import verify, write_certificate

    with TemporaryDirectory() as folder:
        path = Path(folder) / "certificate.json"
        write_certificate(certificate, path)
        began = time.monotonic()
        verdict = verify(path)
        seconds, size = time.monotonic() - began, path.stat().st_size
    assert verdict.valid, verdict
    return seconds, size
