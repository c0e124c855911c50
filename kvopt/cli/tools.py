"""``kvopt policies``, ``info``, ``warmup`` and ``reduce``."""

from __future__ import annotations

import os
import platform
import signal
from dataclasses import MISSING, fields
from pathlib import Path
from time import monotonic
from typing import Any

from kvopt import KvoptError, Policy, write_certificate, write_instance
from kvopt.certificates.deciding_three_partition import decide
from kvopt.cli import common
from kvopt.cli.common import Json, Modules, argument, finish, option, refuse
from kvopt.cli.printing import CHECKED, or_dash, say, show, table, warn, write_output, written
from kvopt.incumbent.limits import available_threads
from kvopt.incumbent.params import DEFAULT
from kvopt.kernels.solver_versions import available_solvers, missing_extras, versions
from kvopt.problem.three_partition import ThreePartition
from kvopt.show.optional import EXTRAS, remedy
from kvopt.show.summary import counted, first_line
from kvopt.simulate.policies.by_name import policies
from kvopt.simulate.routers import ROUTERS


def policies_command(
    *,
    _modules: Modules,
    routers: bool = option("List the routers of fleets instead, see kvopt run --router."),
    _json: Json,
) -> None:
    """List the schedulers with their source, required knowledge and parameters.

    Every scheduler also takes pred=exact|lower|upper|mid|noise,
    intervals=file|rough|buckets|relative, eps, width and seed: its beliefs about outputs.
    """
    if routers:
        rows = [
            {
                "router": kind.name,
                "summary": first_line(kind),
                "source": kind.source,
                "given": "when it arrives" if kind.is_irrevocable else "when it starts",
            }
            for kind in ROUTERS.all().values()
        ]
    else:
        rows = [_described(kind) for kind in policies().values()]
    show({"routers" if routers else "policies": rows}, table(rows))


def _described(kind: type[Policy]) -> dict[str, Any]:
    shared = {parameter.name for parameter in fields(Policy)}
    parameters = {
        parameter.name: None if parameter.default in (MISSING, None) else str(parameter.default)
        for parameter in fields(kind)
        if parameter.init and parameter.name not in shared
    }
    presets = {"preset": "|".join(kind.presets)} if kind.presets else {}
    return {
        "policy": kind.name,
        "summary": first_line(kind),
        "source": kind.source,
        "needs": [str(need) for need in kind.needs],
        "parameters": presets | parameters,
    }


def info_command(
    *, _json: Json, params: bool = option("Print the parameters of --params FILE, as TOML.")
) -> None:
    """Print versions, machine and available solvers, for a bug report, and the missing parts."""
    if params:
        show(DEFAULT.tables(), DEFAULT.to_toml().splitlines())
        return
    missing = missing_extras()
    solvers, problem = [], None
    try:
        solvers = available_solvers()
    except KvoptError as error:
        problem = str(error)
    facts: dict[str, object] = {
        "versions": versions(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "usable_threads": available_threads(),
        "pyomo_solvers": solvers,
        "problem": problem,
        "missing_extras": missing,
    }
    remedies = {EXTRAS[name].package: f"not installed: {remedy(name)}" for name in missing}
    rows = {**versions(), **remedies, **facts, "versions": None, "missing_extras": None}
    lines = (
        f"{name:15} {', '.join(value) if isinstance(value, list) else value}"
        for name, value in rows.items()
        if value not in (None, [])
    )
    show(facts, lines)


def warmup_command(_json: Json) -> None:
    """Compile everything once, so that no later command has to wait for it.

    Machine code is stored on disk, next to the code or in NUMBA_CACHE_DIR; a second
    call finds it there.  It is for the processor of this machine.
    """
    from kvopt.warmup import Warmed, warm_up

    parts, signals, began = list[Warmed](), list[int](), monotonic()
    say("compiling, up to a minute or two in all ...")

    def in_words(count: int, seconds: float) -> str:
        return f"{counted(count, 'function')} compiled in {seconds:.1f} s"

    def end(number: int, _: object) -> None:
        signals.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)  # else the processes would continue
    try:
        for part in warm_up():
            parts.append(part)
            say(f"{part.name}: {in_words(part.compiled, part.seconds)}")
    except KeyboardInterrupt:
        say("kvopt: interrupted; compiled parts are kept")
        finish(signals[0] if signals else signal.SIGINT)
    finally:
        signal.signal(signal.SIGTERM, before)
    count, seconds = sum(part.compiled for part in parts), monotonic() - began
    nothing = "nothing to compile, all of it was kept from before"
    facts = {"parts": [part._asdict() for part in parts], "compiled": count, "seconds": seconds}
    show(facts, [f"done: {in_words(count, seconds) if count else nothing}"])
    if not all(part.is_kept for part in parts):
        warn("not kept on disk: set NUMBA_CACHE_DIR to a folder that can be written, now and later")


def reduce_command(
    *,
    problem: str = argument("three-partition", "The problem."),
    numbers: list[int] = argument("X1 X2 ...", "The 3m integers."),
    target: int = option("The sum of every triple.", "B", default=...),
    time_limit: float = option(common.LIMIT, "S", "-t", 60.0, min=0),
    threads: common.Threads,
    _json: Json,
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
    proof, result = reduction.certificate, reduction.result
    lines = [
        f"{reduction.answer}: total latency {or_dash(result.objective)}, proved to be at least "
        f"{or_dash(result.lower_bound)} ({result.bound_source}: {result.bounded_by}); "
        f"a partition needs {partition.threshold:,}"
    ]
    lines += [f"{' + '.join(map(str, row))} = {target}" for row in reduction.partition or ()]
    with written(certificate, write_certificate, proof, CHECKED, "--certificate"):
        show(reduction.to_json(), lines)
    finish(result.signal_number, common.NOTHING_FOUND * (reduction.answer == "open"))
