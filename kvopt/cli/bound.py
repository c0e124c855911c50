"""``kvopt bound``: lower bounds, each proved in integers."""

from __future__ import annotations

from typing import Annotated

from kvopt.bounds.registry import bounds_for
from kvopt.cli import common
from kvopt.cli.common import option
from kvopt.cli.live import LiveProgress
from kvopt.incumbent.result import BoundResult
from kvopt.problem.scopes import Scope
from kvopt.search.bounding import bound


def bound_command(
    problem: common.InstanceOptions,
    limits: common.LimitOptions,
    method: Annotated[
        str | None, option("--method", "{methods}, or one of --module.", "NAME", names="methods")
    ] = None,
    scope: common.Allows = None,
    json: common.Json = False,
    _modules: common.Modules = None,
) -> None:
    """Prove that no schedule has a smaller total latency.

    With no --method a table of all methods is printed; with --json it is auto, the best of
    them.  The time limit is for each method.
    """
    covered = scope or Scope.RUNS
    instance, label = problem.read(), common.label(problem.file)
    if json or method is not None:
        methods = [method or "auto"]
    else:
        methods = [name for name in bounds_for(covered).names() if name != "auto"]
    results: list[BoundResult] = []
    with common.undisturbed() as signals:
        for name in methods:
            with LiveProgress(f"{label}, {name}", quiet=json) as observer:
                result = bound(instance, name, scope=covered, observer=observer, **vars(limits))
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
