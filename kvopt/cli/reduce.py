"""``kvopt reduce``: another problem as an instance, and its answer from the optimum."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from kvopt.certificates.files import write_certificate
from kvopt.cli import common
from kvopt.cli.common import argument, option
from kvopt.cli.outputs import certificate_written, write_output
from kvopt.errors import InvalidInput
from kvopt.experiments.reductions import Reduction, ThreePartition, decide
from kvopt.problem.instance_files import write_instance


def reduce_command(
    problem: Annotated[str, argument("three-partition", "The problem.")],
    numbers: Annotated[list[int], argument("X1 X2 ...", "The 3m integers.")],
    target: Annotated[int, option("--target", "The sum of every triple.", "T")],
    time_limit: common.TimeLimit = 60.0,
    threads: common.Threads = None,
    json: common.Json = False,
    output: common.OptionalOutput = None,
    certificate: Annotated[
        Path | None, option("--certificate", "Write a certificate of the optimum.", "CERT")
    ] = None,
) -> None:
    """Decide a 3-Partition problem by scheduling: 3m integers in (T/4, T/2) that sum to mT.

    Triples that sum to T exist if and only if the instance has total latency 3m(m+1)/2.  Exit
    status: 0 for yes and for no, 3 when the limit left it open, 130 after Ctrl-C, 2 for numbers
    that are no such problem.
    """
    if problem != "three-partition":
        raise InvalidInput(f"must be three-partition, got {problem!r}", field="problem")
    common.warn_oversubscription(threads)
    given = ThreePartition(target, tuple(numbers))
    if output is not None:
        write_output(output, partial(write_instance, given.instance()))
    found = decide(given, time_limit=time_limit, threads=threads)
    with certificate_written("--certificate", certificate, found.certificate, write_certificate):
        if json:
            common.print_json(found.to_json())
        else:
            _print(found)
    common.finish(found.result.signal_number, common.NOTHING_FOUND * (found.answer == "open"))


def _print(found: Reduction) -> None:
    result = found.result
    print(
        f"{found.answer}: total latency {common.or_dash(result.objective)}, proved to be at least "
        f"{common.or_dash(result.lower_bound)} ({result.bound_source}: {result.bounded_by}); "
        f"a partition needs {found.problem.threshold:,}"
    )
    for triple in found.partition or ():
        print(" + ".join(map(str, triple)), "=", found.problem.target)
