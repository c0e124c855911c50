"""jaillet-2025-v1 theorem 4.2: mc-sf is optimal when all prompts are equal."""

from __future__ import annotations

from collections.abc import Sequence

from kvopt.experiments.studies.claims.verdict import Verdict, certificates_of
from kvopt.experiments.studies.intervals import largest_of, ratio_of
from kvopt.experiments.studies.records import Record


def equal_prompts(records: Sequence[Record]) -> list[Verdict]:
    """Judge the theorem: one instance with a better schedule refutes it."""
    runs = [r for r in records if r.policy == "mc-sf" and r.value is not None and r.upper]
    if not runs:
        return []
    beaten = [r for r in runs if r.value is not None and r.upper is not None and r.value > r.upper]
    beaten.sort(key=lambda record: (-(ratio_of(record).least or 0), record.instance.requests))
    said = f"beaten on {len(beaten)} of {len(runs)} instances"
    if beaten:
        smallest = min(beaten, key=lambda record: record.instance.requests)
        said += (
            f", with {smallest.instance.requests} requests {smallest.value} against "
            f"{smallest.upper}; worst ratio in {largest_of(map(ratio_of, runs))}"
        )
        beaten = [smallest, *beaten]
    return [
        Verdict(
            claim="mc-sf is optimal when everything is there at once and all prompts are equal",
            source="jaillet-2025-v1 theorem 4.2, withdrawn in version 2",
            published="optimal in terms of average end-to-end latency",
            found=said,
            verdict="refuted" if beaten else "undecided",
            certificates=certificates_of(beaten),
        )
    ]
