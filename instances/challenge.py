"""Make the files of the challenge set again: forty instances of 40 to 200 requests that are open.

    python instances/challenge.py [--trace AzureLLMInferenceTrace_conv.csv]

Those of the Azure trace are written where the trace is given; it is in
github.com/Azure/AzurePublicDataset.  ``extend.py --standard`` is the standard run.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from library import CHALLENGE

from kvopt import Instance, generate, import_trace
from kvopt import write_instance as write

DEFAULT_MODEL = "llama-2-70b-2xa100"
HERE = Path(__file__).parent
FOLDER = HERE / CHALLENGE

PAPERS: dict[str, tuple[tuple[int, ...], int | None]] = {
    "arrival-1": ((40, 50, 60, 100, 200), None),
    "arrival-2": ((40, 50, 60, 100, 200), None),
    "uniform": ((40, 100), 100),
    "normal": ((60, 100), 100),
    "binomial": ((40, 100), 100),
    "exponential": ((60, 100), 100),
    "mixed": ((50, 200), 100),
}
"""Sizes and memory of draws of the papers' own families; the seed is the size."""

AZURE = {
    "azure-n40": (0, 40, 8_192),
    "azure-n60": (2_000, 60, 16_384),
    "azure-n80": (5_000, 80, 16_384),
    "azure-n120": (9_000, 120, 16_384),
    "azure-n200": (14_000, 200, 32_768),
}
"""First row, number of requests and memory of a part of the trace of conversations."""

BURSTS = {
    "burst-uniform-n40": ("uniform", 40, 100, 4, 60),
    "burst-exponential-n60": ("exponential", 60, 100, 6, 8),
    "burst-arrival-1-n80": ("arrival-1", 80, 40, 4, 120),
    "burst-conversation-n120": ("conversation", 120, 3_000, 3, 200),
}
"""Family, requests, memory, number of bursts, and rounds from one to the next."""

AZURE_NOTES = {
    "attribution": (
        "Azure LLM Inference Dataset 2023, conversations, Microsoft, "
        "github.com/Azure/AzurePublicDataset"
    ),
    "licence": "CC-BY-4.0",
    "changes": "a part of its rows, with arrivals in rounds of 50 ms from the first of them",
}


def drawn() -> Iterator[Instance]:
    """Yield the instances that need no file."""
    for family, (sizes, memory) in PAPERS.items():
        for n in sizes:
            yield replace(generate(family, n, memory, seed=n), name=f"{family}-n{n}")
    for name, (family, n, memory, count, gap) in BURSTS.items():
        yield replace(bursts(generate(family, n, memory, seed=2), count, gap), name=name)
    for workers, family, n, memory in (
        (2, "conversation", 60, 1_400),
        (2, "uniform", 100, 100),
        (4, "exponential", 80, 60),
        (4, "arrival-2", 120, 40),
    ):
        fleet = replace(generate(family, n, memory, seed=3), workers=workers)
        yield replace(fleet, name=f"fleet{workers}-{family}-n{n}")
    for family, n, memory in (
        ("conversation", 40, 1_400),
        ("uniform", 60, 100),
        ("conversation-summarisation", 100, 16_492),
    ):
        yield timed(generate(family, n, memory, seed=4), f"seconds-{family}-n{n}")


def of_the_trace(path: Path) -> Iterator[Instance]:
    """Yield the instances that are parts of the Azure trace of conversations."""
    parts = {name: part(path, name, *row) for name, row in AZURE.items()}
    yield from parts.values()
    yield replace(part(path, "fleet2-azure-n80", 11_000, 80, 8_192), workers=2)
    yield replace(part(path, "fleet4-azure-n160", 16_000, 160, 8_192), workers=4)
    yield timed(part(path, "", 3_000, 50, 16_384), "seconds-azure-n50")
    yield timed(part(path, "", 7_000, 150, 32_768), "seconds-azure-n150")


def bursts(instance: Instance, count: int, gap: int) -> Instance:
    """Return an instance whose requests arrive in equal bursts."""
    n = len(instance)
    requests = [replace(r, arrival=i * count // n * gap) for i, r in enumerate(instance)]
    return replace(instance, requests=requests, notes=noted(instance, bursts=count, gap=gap))


def timed(instance: Instance, name: str) -> Instance:
    """Return an instance whose total latency is one of seconds."""
    return replace(instance, name=name, notes=noted(instance, batch_time=DEFAULT_MODEL))


def part(path: Path, name: str, first: int, n: int, memory: int) -> Instance:
    """Return some requests of a trace in a row, the first of which arrives at 0."""
    trace = import_trace(path, "azure", memory, limit=first + n)
    kept = trace[first:]
    zero = kept[0]
    assert zero.arrival_seconds is not None
    requests = [
        replace(
            r, id=None, arrival=r.arrival - zero.arrival,
            arrival_seconds=round((r.arrival_seconds or 0) - zero.arrival_seconds, 7),
        )
        for r in kept
    ]  # fmt: skip
    notes = {**AZURE_NOTES, "first_row": first}
    return replace(kept, requests=requests, name=name, notes=notes)


def noted(instance: Instance, **more: object) -> dict[str, Any]:
    """Return the notes of an instance, and more."""
    notes = instance.notes
    assert isinstance(notes, dict)
    return {**notes, **more}


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trace", type=Path, metavar="CSV")
    trace = parser.parse_args().trace
    FOLDER.mkdir(exist_ok=True)
    for instance in [*drawn(), *([] if trace is None else of_the_trace(trace))]:
        write(instance, FOLDER / f"{instance.name}.json")


if __name__ == "__main__":
    main()
