"""``kvopt hunt``, ``theory`` and ``reduce``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from signal import SIGINT
from textwrap import indent
from typing import TYPE_CHECKING

from kvopt import Scope, write_certificate, write_instance
from kvopt.certificates.three_partition import Reduction, decide
from kvopt.cli import common
from kvopt.cli.common import argument, finish, option, refuse
from kvopt.cli.messages import is_json, is_watched, say
from kvopt.cli.outputs import CHECKED, write_output, written
from kvopt.cli.tables import or_dash, show, table
from kvopt.problem.three_partition import ThreePartition

if TYPE_CHECKING:
    from kvopt.experiments.hunting import Hunt


@dataclass(frozen=True, kw_only=True)
class SpaceOptions:
    """Which instances are tried, for how long; the names are of `hunt`."""

    n: int = option("Requests, at most.", "N", default=..., min=1)
    memory: int = option("Cache size, at most.", "M", "-m", ..., min=1)
    time_limit: float = option("Seconds.", "S", "-t", 60.0, min=0)
    seed: common.Seed
    equal_prompts: bool = option("One prompt for all requests of an instance.")
    last_arrival: int = option("Arrivals are 0 .. A.", "A", default=0, min=0)


def hunt_command(
    *,
    space: SpaceOptions,
    names: list[str] | None = common.policies(
        "Policy to hunt; of several the best on an instance counts."
    ),
    scope: common.CoveredScope,
    output: common.OptionalOutput,
    _json: common.Json,
    _modules: common.Modules,
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
        if is_watched():
            say(f"{ratio} = {float(ratio):.4f} after {tried:,} instances")

    found = hunt(names or [], scope=scope, watch=watch, **vars(space))
    with written(output, write_certificate, found.certificate, CHECKED):
        show(found.to_json(), _hunted(found, space.n, space.memory))
    signal_number = SIGINT if found.interrupted else None
    finish(signal_number, common.NOTHING_FOUND * (found.certificate is None))


def _hunted(found: Hunt, n: int, memory: int) -> Iterator[str]:
    tried = f"every instance of up to {found.exhausted} requests and {memory} tokens of memory"
    if found.exhausted < n:
        tried += f", and of up to {n} some of them"
    yield f"tried {found.tried:,} instances: {tried}"
    if found.livelocks:
        yield f"{found.livelocks:,} of them end in a livelock and have no ratio"
    certificate = found.certificate
    if certificate is None or found.ratio is None:
        judged = (
            "no policy was worse than the optimum" if found.policies else "pausing is worth nothing"
        )
        yield f"{judged} on any"
        return
    checked = "proved and verified" if found.proved and found.verified else "not proved"
    if found.verified and not found.proved:
        checked = "verified, and at least that"
    if found.runs is not None:
        yield "optimum of runs over the optimum with pauses:"
    yield (
        f"ratio {found.value} / {certificate.objective} = {float(found.ratio):.4f} ({checked}), "
        f"memory {certificate.instance.memory}"
    )
    fields = ("arrival", "prompt", "output")
    yield from table(
        [
            {"request": str(request.id), **{name: getattr(request, name) for name in fields}}
            for request in certificate.instance
        ]
    )
    if found.scope is not Scope.RUNS:
        say(found.scope.sentence)


def theory_command(
    *,
    topic: str | None = argument("TOPIC", "One of {topics}; all of them if left out.", None),
    draws: int = option("Seeds of random policies.", "N", default=2, min=1),
    scale: int = option("Simulate K times as large.", "K", default=1, min=1),
    output: Path | None = option("Draw a topic.", "OUT.{png,svg,pdf}", "-o"),
    _json: common.Json,
) -> None:
    """Compare theorems of the papers with formulas and simulations, and draw conclusions.

    The theorems are those of chen-2025, jaillet-2025 and wang-2025; `kvopt theory` without a
    topic takes a minute or two.
    """
    from kvopt.experiments.theory import TOPICS, examine

    if output is not None:
        from kvopt.show.plots import refuse_unknown_suffix

        refuse_unknown_suffix(output)
        refuse("-o", "goes with a topic", topic is None)
    found = []
    for name in [topic] if topic is not None else TOPICS:
        if is_watched():
            say(f"{name} ...")
        found.append(examine(name, draws=draws, scale=scale))
        if not is_json():
            print(f"{name}: {found[-1].title}")
            for verdict in found[-1].verdicts:
                print(indent(str(verdict), "  "))
    show({"topics": [each.to_json() for each in found]})
    if output is not None:
        from kvopt.show.plots import save, theory_curves

        refuse("-o", f"{topic} has no curves", not found[0].curves)
        figure = theory_curves(found[0]).get_figure(root=True)
        assert figure is not None, "axes of a new figure"
        write_output(output, save, figure)


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
    given = ThreePartition(target, tuple(numbers))
    if output is not None:
        write_output(output, write_instance, given.instance())
    found = decide(given, time_limit=time_limit, threads=threads)
    proof = found.certificate
    with written(certificate, write_certificate, proof, CHECKED, "--certificate"):
        show(found.to_json(), _reduced(found))
    finish(found.result.signal_number, common.NOTHING_FOUND * (found.answer == "open"))


def _reduced(found: Reduction) -> Iterator[str]:
    result = found.result
    yield (
        f"{found.answer}: total latency {or_dash(result.objective)}, proved to be at least "
        f"{or_dash(result.lower_bound)} ({result.bound_source}: {result.bounded_by}); "
        f"a partition needs {found.problem.threshold:,}"
    )
    for triple in found.partition or ():
        yield f"{' + '.join(map(str, triple))} = {found.problem.target}"
