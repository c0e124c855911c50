"""``kvopt hunt``, ``theory``, ``reduce`` and ``report``."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from signal import SIGINT
from textwrap import indent
from typing import TYPE_CHECKING

from kvopt.cli import common
from kvopt.cli.common import argument, option
from kvopt.cli.outputs import certificate_written, name_of, try_outputs, write_output
from kvopt.errors import InvalidInput
from kvopt.experiments.three_partition import Reduction, ThreePartition, decide
from kvopt.problem.instance_files import write_instance
from kvopt.problem.scopes import Scope

if TYPE_CHECKING:
    from kvopt.experiments.hunting import Hunt


@dataclass(frozen=True)
class SpaceOptions:
    """Which instances are tried, for how long; the names are of `hunt`."""

    n: int = option("--n", "Requests, at most.", "N", min=1, default=...)
    memory: int = option("--memory -m", "Cache size, at most.", "M", min=1, default=...)
    time_limit: float = option("--time-limit -t", "Seconds.", "S", min=0, default=60.0)
    seed: int = common.SEED
    equal_prompts: bool = option("--equal-prompts", "One prompt for all requests of an instance.")
    last_arrival: int = option("--last-arrival", "Arrivals are 0 .. A.", "A", min=0, default=0)


def hunt_command(
    *,
    space: SpaceOptions,
    names: list[str] | None = common.policies(
        "Policy to hunt; of several the best on an instance counts."
    ),
    scope: Scope | None = common.COVERS,
    output: Path | None = common.OPTIONAL_OUTPUT,
    json: bool = common.JSON,
    _modules: list[str] | None = common.MODULES,
) -> None:
    """Hunt for the small instance on which schedulers are furthest from the optimum.

    With --scope pauses and no policy: for the one on which pausing is worth most.

    Tries every instance while these are few, then searches locally.  Shrinks the worst instance,
    certifies it and verifies the certificate.  Exit status: 0 when a
    policy was worse than the optimum, 3 when none ever was, 130 after Ctrl-C.
    """
    # It loads numba, for which no other command should wait.
    from kvopt.experiments.hunting import hunt

    def watch(ratio: Fraction, tried: int) -> None:
        if not json and common.is_watched():
            common.say(f"{ratio} = {float(ratio):.4f} after {tried:,} instances")

    found = hunt(names or [], scope=scope, watch=watch, **vars(space))
    with certificate_written("--output", output, found.certificate):
        if json:
            common.print_json(found.to_json())
        else:
            _print_hunt(found, space.n, space.memory)
    signal_number = SIGINT if found.interrupted else None
    common.finish(signal_number, common.NOTHING_FOUND * (found.certificate is None))


def _print_hunt(found: Hunt, n: int, memory: int) -> None:
    tried = f"every instance of up to {found.exhausted} requests and {memory} tokens of memory"
    if found.exhausted < n:
        tried += f", and of up to {n} some of them"
    print(f"tried {found.tried:,} instances: {tried}")
    if found.livelocks:
        print(f"{found.livelocks:,} of them end in a livelock and have no ratio")
    certificate = found.certificate
    if certificate is None or found.ratio is None:
        judged = (
            "no policy was worse than the optimum" if found.policies else "pausing is worth nothing"
        )
        print(f"{judged} on any")
        return
    checked = "proved and verified" if found.proved and found.verified else "not proved"
    if found.verified and not found.proved:
        checked = "verified, and at least that"
    if found.runs is not None:
        print("optimum of runs over the optimum with pauses:")
    print(
        f"ratio {found.value} / {certificate.objective} = {float(found.ratio):.4f} ({checked}), "
        f"memory {certificate.instance.memory}"
    )
    common.print_rows(
        [
            {
                "request": str(request.id),
                "arrival": request.arrival,
                "prompt": request.prompt,
                "output": request.output,
            }
            for request in certificate.instance
        ]
    )
    if found.scope is not Scope.RUNS:
        common.say(found.scope.sentence)


def theory_command(
    *,
    topic: str | None = argument(
        "TOPIC", "One of {topics}; all of them if left out.", "topics", default=None
    ),
    draws: int = option("--draws", "Seeds of random policies.", "N", min=1, default=2),
    scale: int = option("--scale", "Simulate K times as large.", "K", min=1, default=1),
    output: Path | None = option("--output -o", "Draw a topic.", "OUT.{png,svg,pdf}"),
    json: bool = common.JSON,
) -> None:
    """Compare theorems of the papers with formulas and simulations, and draw conclusions.

    The theorems are those of chen-2025, jaillet-2025 and wang-2025; `kvopt theory` without a
    topic takes a minute or two.
    """
    from kvopt.experiments.theory import TOPICS, examine

    if output is not None:
        from kvopt.show.plots import refuse_unknown_suffix

        refuse_unknown_suffix(output)
        if topic is None:
            raise InvalidInput("goes with a topic", field="-o")
    found = []
    for name in [topic] if topic is not None else TOPICS:
        if common.is_watched() and not json:
            common.say(f"{name} ...")
        found.append(examine(name, draws=draws, scale=scale))
        if not json:
            print(f"{name}: {found[-1].title}")
            for verdict in found[-1].verdicts:
                print(indent(str(verdict), "  "))
    if json:
        common.print_json({"topics": [examination.to_json() for examination in found]})
    if output is not None:
        from kvopt.show.plots import save, theory_curves

        if not found[0].curves:
            raise InvalidInput(f"{topic} has no curves", field="-o")
        figure = theory_curves(found[0]).get_figure(root=True)
        assert figure is not None, "axes of a new figure"
        write_output(output, partial(save, figure))


def reduce_command(
    *,
    problem: str = argument("three-partition", "The problem."),
    numbers: list[int] = argument("X1 X2 ...", "The 3m integers."),
    target: int = option("--target", "The sum of every triple.", "T", default=...),
    time_limit: float = option("--time-limit -t", common.LIMIT, "S", min=0, default=60.0),
    threads: int | None = common.THREADS,
    json: bool = common.JSON,
    output: Path | None = common.OPTIONAL_OUTPUT,
    certificate: Path | None = option(
        "--certificate", "Write a certificate of the optimum.", "CERT"
    ),
) -> None:
    """Decide a 3-Partition problem by scheduling: 3m integers in (T/4, T/2) that sum to mT.

    Triples that sum to T exist if and only if the instance has total latency 3m(m+1)/2.  Exit
    status: 0 for yes and for no, 3 if the limit ended the search, 130 after Ctrl-C, 2 for numbers
    that are not such a problem.
    """
    if problem != "three-partition":
        raise InvalidInput(f"must be three-partition, got {problem!r}", field="problem")
    common.warn_oversubscription(threads)
    given = ThreePartition(target, tuple(numbers))
    if output is not None:
        write_output(output, partial(write_instance, given.instance()))
    found = decide(given, time_limit=time_limit, threads=threads)
    with certificate_written("--certificate", certificate, found.certificate):
        if json:
            common.print_json(found.to_json())
        else:
            _print_reduction(found)
    common.finish(found.result.signal_number, common.NOTHING_FOUND * (found.answer == "open"))


def _print_reduction(found: Reduction) -> None:
    result = found.result
    print(
        f"{found.answer}: total latency {common.or_dash(result.objective)}, proved to be at least "
        f"{common.or_dash(result.lower_bound)} ({result.bound_source}: {result.bounded_by}); "
        f"a partition needs {found.problem.threshold:,}"
    )
    for triple in found.partition or ():
        print(" + ".join(map(str, triple)), "=", found.problem.target)


_EVERY = 100
"""Certificates between two messages about progress."""


def report_command(
    *,
    folder: Path = argument("DIR", "The folder of a study."),
    output: Path | None = option("--output -o", "Default: DIR/report.html.", "FILE.html"),
    table: Path | None = option("--csv", "Default: the name of the page with .csv.", "FILE"),
    verify: bool = option("--verify", "Verify every certificate before it is linked."),
    _modules: list[str] | None = common.MODULES,
) -> None:
    """Write a study as a page that needs no network, and its records as CSV.

    The page shows verdicts, ratios, gaps and the worst instances, with links to certificates.
    Exit status: 0, 1 if a certificate is false, 2 for input that is refused.
    """
    from kvopt.experiments.report import write_report
    from kvopt.experiments.report.writing import PAGE

    if output is None and folder.is_dir():
        output = folder / PAGE
    try_outputs(output=output, csv=table)
    written = write_report(folder, output, table, verify=verify, progress=_show)
    for line in (*written.warnings, *written.faults):
        common.say(f"kvopt: warning: {line}")
    names = [name_of(path) for path in (written.page, written.table) if path is not None]
    common.say(f"wrote {' and '.join(names)}: {common.counted(written.records, 'record')}")
    common.finish(status=common.FAILED * bool(written.faults))


def _show(done: int, count: int) -> None:
    if done % _EVERY == 0 or done == count:
        common.say(f"verified {done:,} of {count:,} certificates")
