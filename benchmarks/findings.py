"""Print the findings of studies as Markdown, from their folders.

    python benchmarks/findings.py DIR ...

A table of policies and the verdicts for each study, judged again by the claims of this version.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from kvopt.experiments.studies import Record, Study, read_records, read_study
from kvopt.experiments.studies.claims import CLAIMS
from kvopt.experiments.studies.intervals import by_policy, ratio_of
from kvopt.kernels.pipes import ended_by_reader


def main() -> None:
    """Print every folder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    for folder in parser.parse_args().folders:
        show(read_study(folder / "study.toml"), read_records(folder))


def show(study: Study, records: Sequence[Record]) -> None:
    """Print one study."""
    instances = {record.instance.hash for record in records}
    limits = ", ".join(f"{limits.time_limit:g} s" for limits in study.limits)
    print(f"## {study.name}: {study.title}\n")
    print(f"{len(instances)} instances, limit {limits} each. {widths(records)}\n")
    print("| policy | runs | completed | optimum proved | mean x optimum | worst x optimum |")
    print("|---|---|---|---|---|---|")
    for row in by_policy(records):
        print(
            f"| `{row.policy}` | {len(row.records)} | {len(row.done)} | {row.proved} "
            f"| {row.mean} | {row.worst} |"
        )
    sizes(records)
    verdicts = [verdict for name in study.claims for verdict in CLAIMS[name](records)]
    if verdicts:
        print("\n| claim | published | found | verdict |\n|---|---|---|---|")
    for verdict in verdicts:
        claim = f"{verdict.claim} ({verdict.source})"
        print(f"| {claim} | {verdict.published} | {verdict.found} | **{verdict.verdict}** |")
    print()


def sizes(records: Sequence[Record]) -> None:
    """Print latency a request by size, where there is one instance of each of several sizes."""
    by_size: dict[int, dict[str, Record]] = {}
    for record in records:
        if "n" not in record.instance.parameters:
            return
        by_size.setdefault(record.instance.requests, {})[record.policy or ""] = record
    hashes = {record.instance.hash for record in records}
    if not 3 <= len(by_size) == len(hashes):
        return
    policies = list(dict.fromkeys(record.policy or "" for record in records))
    clock, scale = ("Seconds", 10**9) if records[0].in_seconds else ("Rounds", 1)
    print(f"\n{clock} a request:\n")
    print("| n | optimum | " + " | ".join(f"`{policy}`" for policy in policies) + " |")
    print("|" + "---|" * (2 + len(policies)))
    for n, runs in sorted(by_size.items()):
        (first, *_) = runs.values()
        cells = [
            a_request(runs[policy].value, n * scale) if policy in runs else "-"
            for policy in policies
        ]
        optimum = f"{a_request(first.lower, n * scale)} to {a_request(first.upper, n * scale)}"
        print(f"| {n:,} | {optimum} | {' | '.join(cells)} |")


def a_request(total: int | None, by: int) -> str:
    return "-" if total is None else f"{total / by:,.1f}"


def widths(records: Sequence[Record]) -> str:
    """Say how wide the intervals of the first policy are."""
    (first, *_) = (row.policy for row in by_policy(records))
    found = [ratio_of(r).width for r in records if r.policy == first and r.value is not None]
    known = [float(width) for width in found if width is not None]
    if not known:
        return ""
    mean = sum(known) / len(known)
    return f"Intervals of `{first}` are {mean:.2%} wide on average, {max(known):.2%} at most."


if __name__ == "__main__":
    with ended_by_reader():
        main()
