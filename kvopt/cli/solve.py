"""``kvopt solve`` and ``kvopt bound``: the best schedule, and the best bound."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from kvopt.bounds.registry import bounds_for
from kvopt.cli import common
from kvopt.cli.common import argument, option
from kvopt.cli.live import LiveProgress
from kvopt.cli.outputs import written
from kvopt.errors import InvalidInput
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import limits_of
from kvopt.incumbent.result import BoundResult, SolveResult
from kvopt.kernels.dependencies import DEFAULT_SOLVER
from kvopt.problem.clocks import Clock
from kvopt.problem.deadlines import Deadline
from kvopt.problem.instance import Instance, refuse_blocks, refuse_fleet
from kvopt.problem.problem import as_problem
from kvopt.problem.scopes import Scope
from kvopt.search.bounding import bound
from kvopt.search.plan import explained
from kvopt.search.solving import engine_named, solve
from kvopt.timetable.schedule_files import write_schedule

_OPTIONAL = ("seconds", "M", "n", "stopped", "bound by", "found by", "gap")
"""Columns that a narrow terminal goes without, the first of them first."""


@dataclass(frozen=True, kw_only=True)
class FilesOptions(common.MemoryOptions):
    """Instances."""

    files: list[Path] = argument("FILE", f"Instances: {common.INSTANCES}")


@dataclass(frozen=True)
class EngineOptions:
    """How to search for a schedule."""

    engine: str = option(
        "--engine -e", "{engines}, or one of --module.", "NAME", names="engines", default="auto"
    )
    pyomo_solver: str = option(
        "--pyomo-solver", "The solver behind pyomo.", "NAME", default=DEFAULT_SOLVER
    )
    start: Path | None = option("--start", "Begin from this schedule.", "SCHEDULE")
    cold: bool = option("--cold", "Begin without list schedules and volume bound.")
    presolve: bool = option(
        "--presolve/--no-presolve", "Let the solver simplify first; on by default.", default=True
    )
    gap: float | None = option("--gap", "Stop at this certified gap, 0.05 for 5%.", "G", min=0)
    scope: Scope | None = common.ALLOWS
    deadline: str | None = common.DEADLINE
    explain: bool = option("--explain", "Print the stages that apply, with their times, and end.")


def solve_command(
    *,
    given: FilesOptions,
    timing: common.ClockOptions,
    limits: common.LimitOptions,
    how: EngineOptions,
    json: bool = common.JSON,
    output: Path | None = common.OPTIONAL_OUTPUT,
    _modules: list[str] | None = common.MODULES,
) -> None:
    """Find the schedule of least total latency, and prove that none is better.

    Several files are solved one after another and end in one table.  Ctrl-C and limits keep
    the results so far.  Exit status: 0 when a schedule was found (for every file), 3 when none
    was, 130 after Ctrl-C, 143 after SIGTERM, 2 for input that is refused.
    """
    if len(given.files) > 1 and (how.start is not None or output is not None):
        raise InvalidInput("--start and -o go with a single FILE", field="options")
    clock, scope = timing.clock(), how.scope
    aimed = None if how.deadline is None else Deadline.parse(how.deadline)
    for name, path in {"--start": how.start, "--output": output}.items():
        if timing.seconds and path is not None:
            raise InvalidInput("is in rounds, and goes without --seconds", field=name)
    # Options that cannot work are refused before anything is read.
    engine_named(how.engine, pyomo_solver=how.pyomo_solver, scope=scope or Scope.RUNS)
    common.warn_oversubscription(limits.threads)
    work = _read(given, clock, scope)
    timing.say_assumed()
    if how.explain:
        for file, instance, _ in work:
            asked = limits_of({"time_limit": limits.time_limit, "params": limits.params})
            with common.blamed_on(file):
                problem = as_problem(instance, clock=clock, scope=scope, deadline=aimed)
            _explain(common.label(file), Search(problem, asked))
        return
    options: dict[str, Any] = vars(limits) | {"gap": how.gap}
    solver = partial(
        solve, clock=clock, engine=how.engine, scope=scope, deadline=aimed, start=how.start,
        quick_start=not how.cold, presolve=how.presolve, pyomo_solver=how.pyomo_solver,
    )  # fmt: skip
    results: list[SolveResult] = []
    with common.undisturbed() as signals:  # a late signal must not lose the answer
        for file, instance, spent in work:
            if limits.time_limit is not None:
                options["time_limit"] = max(limits.time_limit - spent, 0.0)
            total = common.in_seconds if timing.seconds else common.or_dash
            live = LiveProgress(common.label(file), quiet=json, total=total)
            with live as observer, common.blamed_on(file):
                results.append(solver(instance, observer=observer, **options))
            common.detail(_times(common.label(file), results[-1]))
            if results[-1].signal_number is not None or signals:
                break
        best = results[0].schedule
        write = None if best is None else partial(write_schedule, best)
        with written("--output", output, write):
            _report(work, results, json)
    is_missing = any(result.objective is None for result in results)
    common.finish(results[-1].signal_number, common.NOTHING_FOUND * is_missing)


def _explain(label: str, search: Search) -> None:
    """Print the stages of the plan that apply to a problem, and how long each may take."""
    rows = [
        {"instance": label, "stage": name, "seconds": "-" if limit == inf else f"{limit:.1f}"}
        for name, limit in explained(search)
    ]
    common.print_rows(rows, ("stage",), ())


def _read(
    given: FilesOptions, clock: Clock, scope: Scope | None
) -> list[tuple[Path, Instance, float]]:
    """Return each file with its instance and the seconds that reading took."""
    found = []
    for file in given.files:
        began = time.monotonic()
        instance = given.read_from(file)
        with common.blamed_on(file):
            if not clock.is_even:
                refuse_blocks(instance, "a clock of seconds")
            elif scope is not None and scope.covers(Scope.PAUSES):
                refuse_fleet(instance, f"the scope {scope}")
            clock.arrivals(instance)
        found.append((file, instance, time.monotonic() - began))
    return found


def _times(label: str, result: SolveResult) -> str:
    return (
        f"{label}: {result.seconds:.2f} s, {result.build_seconds:.2f} of them to build models and "
        f"{result.solve_seconds:.2f} inside solvers; beside them {result.compile_seconds:.2f} s "
        f"to compile; schedule by {result.found_by or '-'}, bound by {result.bounded_by or '-'}"
    )


def _report(
    work: Sequence[tuple[Path, Instance, float]], results: Sequence[SolveResult], json: bool
) -> None:
    done = [(file, each, found) for (file, each, _), found in zip(work, results, strict=False)]
    if json:
        rows = [{"file": str(file), **found.to_json()} for file, _, found in done]
        common.print_json(results[0].to_json() if len(work) == 1 else {"results": rows})
        return
    common.print_rows([_row(*each) for each in done], ("bound by", "found by"), _OPTIONAL)
    first = results[0]
    if not (first.clock.is_even and Scope.RUNS.covers(first.scope)):
        common.say(first.scope.sentence)
    for file, _, found in done:
        if found.in_time is not None:
            print(f"{common.label(file)}: {found.in_time.sentence}")
        for line in (*found.faults, *found.notes):
            common.say(f"{common.label(file)}: {line}")


def _row(file: Path, instance: Instance, found: SolveResult) -> dict[str, object]:
    in_rounds, count = found.clock.is_even, max(len(instance), 1) * found.clock.scale

    def total(value: int | None) -> object:
        return value if in_rounds or value is None else f"{value / count:,.4f}"

    bounded = found.bounded_by and f"{found.bounded_by} ({found.bound_source})"
    return {
        "instance": instance.name or common.label(file),
        "n": str(len(instance)),
        "M": str(instance.memory),
        **({} if in_rounds else {"workers": str(instance.workers)}),
        "status": found.status,
        "latency" if in_rounds else "mean s": total(found.objective),
        "bound" if in_rounds else "at least": total(found.lower_bound),
        "gap": common.percent(found.gap),
        **({"bound by": bounded} if in_rounds else {"found by": found.found_by}),
        "stopped": found.stop_reason,
        **({"seconds": f"{found.seconds:.2f}"} if in_rounds else {}),
    }


def bound_command(
    *,
    problem: common.InstanceOptions,
    limits: common.LimitOptions,
    method: str | None = option(
        "--method", "{methods}, or one of --module.", "NAME", names="methods"
    ),
    scope: Scope | None = common.ALLOWS,
    json: bool = common.JSON,
    _modules: list[str] | None = common.MODULES,
) -> None:
    """Prove that no schedule has a smaller total latency.

    With no --method a table of all methods is printed; with --json it is auto, the best of
    them.  The time limit is for each method.
    """
    instance, label = problem.read(), common.label(problem.file)
    if json or method is not None:
        methods = [method or "auto"]
    else:
        methods = [name for name in bounds_for(scope or Scope.RUNS).names() if name != "auto"]
    results: list[BoundResult] = []
    with common.undisturbed() as signals:
        for name in methods:
            live = LiveProgress(f"{label}, {name}", quiet=json)
            with live as observer, common.blamed_on(problem.file):
                result = bound(instance, name, scope=scope, observer=observer, **vars(limits))
            results.append(result)
            if result.signal_number is not None or signals:
                break
        if json:
            common.print_json(results[0].to_json())
        else:
            _print(results)
            if instance.block_size > 1:
                common.say(instance.in_blocks)
    common.finish(results[-1].signal_number)


def _print(results: list[BoundResult]) -> None:
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
    common.print_rows(rows, prose=("note",), optional=("of the best bound", "seconds"))
    if any(result.value is not None for result in results):
        common.say(results[0].scope.sentence)
