"""``kvopt solve`` and ``kvopt bound``: the best schedule, and the best bound."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path

from kvopt import BoundResult, Instance, Scope, SolveResult, bound, solve
from kvopt.cli import common
from kvopt.cli.common import argument, blamed_on, finish, label, option, refuse, searching
from kvopt.cli.printing import is_json, say, settings_table, show, table, written
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import limits_of
from kvopt.kernels.budget import spent_loading
from kvopt.kernels.solver_versions import DEFAULT_SOLVER
from kvopt.problem.clocks import Clock
from kvopt.problem.problem import as_problem
from kvopt.search.engines import engine_of, methods_for
from kvopt.search.plan import explained
from kvopt.show.summary import percent
from kvopt.timetable.schedule_files import write_schedule

Work = tuple[Path, Instance, float]
"""A file with its instance, and the seconds that reading took."""


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """How to search for a schedule."""

    engine: str = option("One of {engines}.", "NAME", "-e", "auto")
    pyomo_solver: str = option("The solver behind pyomo.", "NAME", default=DEFAULT_SOLVER)
    start: Path | None = option("Begin from this schedule.", "SCHEDULE")
    cold: bool = option("Begin without list schedules and volume bound.")
    presolve: bool = option(
        "Let the solver simplify first; on by default.",
        flags="--presolve/--no-presolve",
        default=True,
    )
    gap: float | None = option("Stop at this certified gap, 0.05 for 5%.", "G", min=0)
    scope: common.AllowedScope
    level: common.LevelOptions
    explain: bool = option("Print the stages that apply, with their times, and end.")


def solve_command(
    *,
    files: list[Path] = argument("FILE", f"Instances: {common.INSTANCES}"),
    problem: common.MemoryOptions,
    timing: common.ClockOptions,
    limits: common.LimitOptions,
    how: EngineOptions,
    _json: common.Json,
    output: common.OptionalOutput,
) -> None:
    """Find the schedule of least total latency, and prove that none is better.

    Several files are solved one after another and end in one table.  Ctrl-C and limits keep
    the results so far.  Exit status: 0 when a schedule was found (for every file), 3 when none
    was, 130 after Ctrl-C, 143 after SIGTERM, 2 for input that is refused.
    """
    single = "--start and -o go with a single FILE"
    refuse("options", single, len(files) > 1 and (how.start is not None or output is not None))
    clock, scope = timing.clock(), how.scope
    for name, path in {"--start": how.start, "--output": output}.items():
        no_seconds = "is in rounds, and goes without --seconds"
        refuse(name, no_seconds, timing.seconds and path is not None)
    # Options that cannot work are refused before anything is read.
    engine_of(how.engine, scope or Scope.RUNS, pyomo_solver=how.pyomo_solver)
    loading = spent_loading(limits.time_limit or 0.0)
    work = [_read(file, problem, clock) for file in files]
    timing.say_assumed()
    if how.explain:
        _explain(work, limits, clock, how)
        return
    results: list[SolveResult] = []
    with common.undisturbed() as signals:  # a late signal must not lose the answer
        for file, instance, spent in work:
            left = limits.time_limit and max(limits.time_limit - spent - loading, 0.0)
            loading = 0.0
            with searching(file, clock=clock) as observer:
                solved = solve(
                    instance,
                    clock=clock,
                    engine=how.engine,
                    scope=scope,
                    slo=how.level.slo,
                    start=how.start,
                    quick_start=not how.cold,
                    presolve=how.presolve,
                    pyomo_solver=how.pyomo_solver,
                    gap=how.gap,
                    observer=observer,
                    **{**vars(limits), "time_limit": left},
                )
            results.append(solved)
            if solved.signal_number is not None or signals:
                break
        with written(output, write_schedule, results[0].schedule):
            done = [(*read[:2], result) for read, result in zip(work, results, strict=False)]
            rows = [{"file": str(file), **result.to_json()} for file, _, result in done]
            answer = results[0].to_json() if len(work) == 1 else {"results": rows}
            show(answer, _result_lines(done, how.level))
    is_missing = any(result.objective is None for result in results)
    finish(results[-1].signal_number, common.NOTHING_FOUND * is_missing)


def _explain(
    work: list[Work], limits: common.LimitOptions, clock: Clock, how: EngineOptions
) -> None:
    """Print the stages that apply to each instance, with their times."""
    search_limits = limits_of({"time_limit": limits.time_limit, "params": limits.params})
    for file, instance, _ in work:
        with blamed_on(file):
            problem = as_problem(instance, clock=clock, scope=how.scope, slo=how.level.slo)
        stages = explained(Search(problem, search_limits))
        rows = [
            {"instance": label(file), "stage": stage, "seconds": "-" if s == inf else f"{s:.1f}"}
            for stage, s in stages
        ]
        print(*table(rows), sep="\n")


def _read(file: Path, problem: common.MemoryOptions, clock: Clock) -> Work:
    began = time.monotonic()
    instance = problem.read_from(file)
    with blamed_on(file):
        clock.arrivals(instance)
    return file, instance, time.monotonic() - began


def _result_lines(
    done: list[tuple[Path, Instance, SolveResult]], level: common.LevelOptions
) -> Iterator[str]:
    yield from table([_result_row(*row) for row in done])
    first = done[0][2]
    if not (first.clock.is_even and Scope.RUNS.covers(first.scope)):
        say(first.scope.sentence)
    for file, _, result in done:
        yield from settings_table(result.settings)
        yield from level.lines(result.in_time, f"{label(file)}: ")
        if result.eager_sentence is not None:
            yield f"{label(file)}: {result.eager_sentence}"
        for line in (*result.faults, *result.notes):
            say(f"{label(file)}: {line}")


def _result_row(file: Path, instance: Instance, result: SolveResult) -> dict[str, object]:
    in_rounds, count = result.clock.is_even, max(instance.total_weight, 1) * result.clock.scale

    def total(value: int | None) -> object:
        return value if in_rounds or value is None else f"{value / count:,.4f}"

    bounded = result.bounded_by and f"{result.bounded_by} ({result.bound_source})"
    return {
        "instance": instance.name or label(file),
        "n": str(len(instance)),
        "M": str(instance.memory),
        **({} if in_rounds else {"workers": str(instance.workers)}),
        "status": result.status,
        "latency" if in_rounds else "mean s": total(result.objective),
        "bound" if in_rounds else "at least": total(result.lower_bound),
        "gap": percent(result.gap),
        **({"bound by": bounded} if in_rounds else {"found by": result.found_by}),
        "stopped": result.stop_reason,
        **({"seconds": f"{result.seconds:.2f}"} if in_rounds else {}),
    }


def bound_command(
    *,
    problem: common.InstanceOptions,
    limits: common.LimitOptions,
    method: str | None = option("One of {methods}.", "NAME"),
    scope: common.AllowedScope,
    level: common.LevelOptions,
    _json: common.Json,
) -> None:
    """Prove that no schedule has a smaller total latency.

    With no --method a table of all methods is printed; with --json it is auto, the best of
    them.  The time limit is for each method.
    """
    instance, file = problem.read(), problem.file
    methods = [method or "auto"]
    if method is None and not is_json():
        methods = [name for name in methods_for(scope or Scope.RUNS) if name != "auto"]
    results: list[BoundResult] = []
    with common.undisturbed() as signals:
        for name in methods:
            with searching(file, f"{label(file)}, {name}") as observer:
                slo = None if results else level.slo  # once is enough
                result = bound(
                    instance, name, scope=scope, slo=slo, observer=observer, **vars(limits)
                )
            results.append(result)
            if result.signal_number is not None or signals:
                break
        show(results[0].to_json(), _bounds(results, instance, level))
    finish(results[-1].signal_number)


def _bounds(
    results: list[BoundResult], instance: Instance, level: common.LevelOptions
) -> Iterator[str]:
    best = max((r.value for r in results if r.value is not None), default=None)
    rows = [
        {
            "method": result.method,
            "bound": result.value,
            "of the best bound": f"{result.value / best:.1%}" if result.value and best else None,
            "seconds": f"{result.seconds:.2f}",
            "note": result.note or "",
        }
        for result in results
    ]
    yield from table(rows)
    yield from level.lines(results[0].in_time)
    if any(result.value is not None for result in results):
        say(results[0].scope.sentence)
    if instance.block_size > 1:
        say(instance.in_blocks)
