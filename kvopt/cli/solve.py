"""``kvopt solve``: the best schedule and the best bound."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kvopt.cli import common
from kvopt.cli.common import option
from kvopt.cli.live import LiveProgress
from kvopt.cli.outputs import try_outputs, written
from kvopt.cli.solve_in_seconds import refuse_in_seconds, solve_files_in_seconds
from kvopt.errors import InvalidInput
from kvopt.incumbent.result import SolveResult
from kvopt.kernels.dependencies import DEFAULT_SOLVER
from kvopt.problem.clocks import Seconds
from kvopt.problem.instance import Instance, refuse_fleet
from kvopt.problem.instance_files import read_instance
from kvopt.problem.scopes import Scope
from kvopt.search.solving import engine_named, solve
from kvopt.timetable.schedule_files import write_schedule


def solve_command(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help=f"Instances: {common.INSTANCES}")
    ],
    engine: Annotated[
        str, option("--engine -e", "{engines}, or one of --module.", "NAME", names="engines")
    ] = "auto",
    pyomo_solver: Annotated[
        str, option("--pyomo-solver", "The solver behind pyomo.", "NAME")
    ] = DEFAULT_SOLVER,
    time_limit: common.TimeLimit = None,
    threads: common.Threads = None,
    ram: common.Ram = None,
    params: common.Params = None,
    seed: common.Seed = 0,
    scope: common.Allows = None,
    memory: common.Memory = None,
    workers: common.Workers = None,
    block_size: common.BlockSize = None,
    start: Annotated[
        Path | None, option("--start", "Begin from this schedule.", "SCHEDULE")
    ] = None,
    cold: Annotated[
        bool, option("--cold", "Begin without list schedules and volume bound.")
    ] = False,
    presolve: Annotated[
        bool, option("--presolve/--no-presolve", "Let the solver simplify first; on by default.")
    ] = True,
    in_seconds: common.Seconds = False,
    model: common.BatchTime = None,
    gap: Annotated[
        float | None, option("--gap", "Stop at this certified gap, 0.05 for 5%.", "G", min=0)
    ] = None,
    json: common.Json = False,
    output: Annotated[
        Path | None, option("--output -o", "Write the schedule; - is standard output.", "SCHEDULE")
    ] = None,
    _modules: common.Modules = None,
) -> None:
    """Find the schedule of least total latency, and prove that none is better.

    Several files are solved one after another and end in one table.  Ctrl-C and limits keep
    what was found.  Exit status: 0 when a schedule was found (for every file), 3 when none
    was, 130 after Ctrl-C, 143 after SIGTERM, 2 for input that is refused.
    """
    if len(files) > 1 and (start is not None or output is not None):
        raise InvalidInput("--start and -o go with a single FILE", field="options")
    timing = common.ClockOptions(in_seconds, model)
    clock, allowed = timing.clock(), Scope.parse(scope or Scope.RUNS)
    if isinstance(clock, Seconds):
        refuse_in_seconds({
            "--engine": engine != "auto", "--scope": allowed != Scope.RUNS,
            "--start": start, "--output": output, "--cold": cold, "--params": params, "--ram": ram,
            "--pyomo-solver": pyomo_solver != DEFAULT_SOLVER, "--no-presolve": not presolve,
        })  # fmt: skip
        solve_files_in_seconds(
            [(file, read_instance(file, memory, workers, block_size)) for file in files],
            clock, model, time_limit=time_limit, threads=threads, seed=seed,
            gap=gap, json=json,
        )  # fmt: skip
        return
    try_outputs(output=output, as_json=json)
    # What cannot run is refused before anything is read.
    engine_named(engine, pyomo_solver=pyomo_solver, scope=allowed)
    common.warn_oversubscription(threads)
    instances: list[Instance] = []
    read_for: list[float] = []
    for file in files:
        began = time.monotonic()
        instances.append(read_instance(file, memory, workers, block_size))
        read_for.append(time.monotonic() - began)
        if allowed.covers(Scope.PAUSES):
            with common.blamed_on(file):
                refuse_fleet(instances[-1], f"the scope {allowed}")
    solver = partial(
        solve, engine=engine, threads=threads, ram=ram, params=params, seed=seed, start=start,
        scope=allowed, quick_start=not cold, presolve=presolve, pyomo_solver=pyomo_solver,
        gap=gap,
    )  # fmt: skip
    with common.undisturbed() as signals:  # one between search and file must not lose the answer
        work = zip(files, instances, read_for, strict=True)
        results = _solved(work, solver, time_limit, signals, quiet=json)
        best = results[0].schedule
        write = None if best is None else partial(write_schedule, best)
        with written("--output", output, write):
            _report(files, instances, results, json)
    common.exit_by_signal(results[-1].signal_number)
    if any(result.schedule is None for result in results):
        raise typer.Exit(common.NOTHING_FOUND)


def _solved(
    work: Iterable[tuple[Path, Instance, float]], solver: Callable[..., SolveResult],
    limit: float | None, signals: Sequence[int], *, quiet: bool,
) -> list[SolveResult]:  # fmt: skip
    """Solve files one after another, each within what reading it left of the limit.

    After one that a signal ended there is no further one.
    """
    results: list[SolveResult] = []
    for file, instance, spent in work:
        left = None if limit is None else max(limit - spent, 0.0)
        with LiveProgress(common.label(file), quiet=quiet) as observer:
            result = solver(instance, time_limit=left, observer=observer)
        results.append(result)
        common.detail(_times(common.label(file), result))
        if result.signal_number is not None or signals:
            break
    return results


def _times(label: str, result: SolveResult) -> str:
    return (
        f"{label}: {result.seconds:.2f} s, {result.build_seconds:.2f} of them to build models and "
        f"{result.solve_seconds:.2f} inside solvers; beside them {result.compile_seconds:.2f} s "
        f"to compile; schedule by {result.found_by or '-'}, bound by {result.bounded_by or '-'}"
    )


def _report(
    files: list[Path], instances: list[Instance], results: list[SolveResult], json: bool
) -> None:
    done = [*zip(files, instances, results, strict=False)]
    if json:
        rows = [{"file": str(file), **result.to_json()} for file, _, result in done]
        common.print_json(results[0].to_json() if len(files) == 1 else {"results": rows})
        return
    rows = [
        {
            "instance": instance.name or common.label(file),
            "n": str(len(instance)),
            "M": str(instance.memory),
            "status": result.status,
            "latency": result.objective,
            "bound": result.lower_bound,
            "gap": common.percent(result.gap),
            "bound by": result.bounded_by and f"{result.bounded_by} ({result.bound_source})",
            "stopped": result.stop_reason,
            "seconds": f"{result.seconds:.2f}",
        }
        for file, instance, result in done
    ]
    common.print_rows(rows, ("bound by",), ("seconds", "M", "n", "stopped", "bound by", "gap"))
    if done and not Scope.RUNS.covers(done[0][2].scope):
        common.say(done[0][2].scope.sentence)
    for file, _, result in done:
        for line in (*result.faults, *result.notes):
            common.say(f"{common.label(file)}: {line}")
