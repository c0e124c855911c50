"""``kvopt reduce``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kvopt import write_certificate, write_instance
from kvopt.certificates.deciding_three_partition import Reduction, decide
from kvopt.cli import common
from kvopt.cli.common import argument, finish, option, refuse
from kvopt.cli.printing import CHECKED, or_dash, show, write_output, written
from kvopt.problem.three_partition import ThreePartition


def reduce_command(
    *,
    problem: str = argument("three-partition", "The problem."),
    numbers: list[int] = argument("X1 X2 ...", "The 3m integers."),
    target: int = option("The sum of every triple.", "B", default=...),
    time_limit: float = option(common.LIMIT, "S", "-t", 60.0, min=0),
    threads: common.Threads,
    _json: common.Json,
    output: common.OptionalOutput,
    certificate: Path | None = option("Write a certificate of the optimum.", "CERT"),
) -> None:
    """Decide a 3-Partition problem by scheduling: 3m integers in (B/4, B/2) that sum to mB.

    Triples that sum to B exist if and only if the instance has total latency 3m(m+1)/2.  Exit
    status: 0 for yes and for no, 3 if the limit ended the search, 130 after Ctrl-C, 2 for numbers
    that are not such a problem.
    """
    refuse("problem", f"must be three-partition, got {problem!r}", problem != "three-partition")
    partition = ThreePartition(target, tuple(numbers))
    if output is not None:
        write_output(output, write_instance, partition.instance())
    reduction = decide(partition, time_limit=time_limit, threads=threads)
    proof = reduction.certificate
    with written(certificate, write_certificate, proof, CHECKED, "--certificate"):
        show(reduction.to_json(), _reduced(reduction))
    finish(reduction.result.signal_number, common.NOTHING_FOUND * (reduction.answer == "open"))


def _reduced(reduction: Reduction) -> Iterator[str]:
    result = reduction.result
    yield (
        f"{reduction.answer}: total latency {or_dash(result.objective)}, proved to be at least "
        f"{or_dash(result.lower_bound)} ({result.bound_source}: {result.bounded_by}); "
        f"a partition needs {reduction.problem.threshold:,}"
    )
    for triple in reduction.partition or ():
        yield f"{' + '.join(map(str, triple))} = {reduction.problem.target}"
