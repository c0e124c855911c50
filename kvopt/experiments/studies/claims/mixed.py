"""wang-2025 section 7: short and long prompts together."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from kvopt.experiments.studies.claims.curves import CLOSE, by_instance, compared
from kvopt.experiments.studies.claims.verdict import Verdict
from kvopt.experiments.studies.records import Record

_SOURCE = "wang-2025 section 7, figures 8 and 10"
_SWAP, _QUANTILE = "sorted-f:phase1=swap", "sorted-f:phase1=quantile"


def mixed(records: Sequence[Record]) -> list[Verdict]:
    """Judge what is said of the curves."""
    groups = by_instance(records)
    found: list[Verdict] = []
    for policy, other, claim in (
        ("mc-sf", _SWAP, "mc-sf is inferior to sorted-f"),
        ("mc-sf", "sorted-lp", "mc-sf is inferior to sorted-lp"),
        (_QUANTILE, _SWAP, "The swap of sorted-f gives less latency than its quantiles"),
        ("sorted-lp", "lp-swap", "lp-swap reduces the latency of sorted-lp"),
    ):
        found += compared(
            groups,
            policy,
            other,
            least=Fraction(1),
            claim=claim,
            source=_SOURCE,
            published="curves",
        )
    return found + compared(
        groups,
        "lp-swap",
        _SWAP,
        least=1 / CLOSE,
        most=CLOSE,
        claim="lp-swap and sorted-f with swaps have nearly the same latency",
        source=_SOURCE,
        published="curves that almost overlap",
    )
