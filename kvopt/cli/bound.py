"""``kvopt bound``: lower bounds, each proved in integers."""

from __future__ import annotations

from typing import Annotated

from rich.markup import escape

from kvopt.bounds.registry import bounds_for
from kvopt.cli import common
from kvopt.cli.common import option
from kvopt.cli.live import LiveProgress
from kvopt.incumbent.result import BoundResult
from kvopt.problem.instance_files import read_instance
from kvopt.problem.scopes import Scope
from kvopt.search.bounding import bound


def bound_command(
    file: common.InstanceFile,
    method: Annotated[
        str | None, option("--method", "{methods}, or one of --module.", "NAME", names="methods")
    ] = None,
    time_limit: common.TimeLimit = None,
    threads: common.Threads = None,
    ram: common.Ram = None,
    params: common.Params = None,
    seed: common.Seed = 0,
    scope: common.Allows = None,
    memory: common.Memory = None,
    workers: common.Workers = None,
    block_size: common.BlockSize = None,
    json: common.Json = False,
    _modules: common.Modules = None,
) -> None:
    """Prove that no schedule has a smaller total latency.

    With no --method a table of all methods is printed; with --json it is auto, the best of
    them.  The time limit is for each method.
    """
    covered = scope or Scope.RUNS
    instance = read_instance(file, memory, workers, block_size)
    if json or method is not None:
        methods = [method or "auto"]
    else:
        methods = [name for name in bounds_for(covered).names() if name != "auto"]
    results: list[BoundResult] = []
    with common.undisturbed() as signals:
        for name in methods:
            with LiveProgress(f"{common.label(file)}, {name}", quiet=json) as observer:
                result = bound(
                    instance, name, scope=covered, time_limit=time_limit, threads=threads,
                    ram=ram, params=params, seed=seed, observer=observer,
                )  # fmt: skip
            results.append(result)
            if result.signal_number is not None or signals:
                break
        if json:
            common.print_json(results[0].to_json())
        else:
            _print(results)
            if instance.block_size > 1:
                common.say(instance.in_blocks)
    common.exit_by_signal(results[-1].signal_number)


def _print(results: list[BoundResult]) -> None:
    best = max((r.value for r in results if r.value is not None), default=None)
    table = common.new_table(
        "method", "bound>", "of the best bound>", "seconds>", "note",
        prose=("note",), optional=("of the best bound", "seconds"),
    )  # fmt: skip
    for result in results:
        share = None if result.value is None or not best else result.value / best
        table.add_row(
            result.method,
            common.or_dash(result.value),
            "-" if share is None else f"{share:.1%}",
            f"{result.seconds:.2f}",
            escape(result.note or ""),
        )
    common.print_table(table)
    if any(result.value is not None for result in results):
        common.say(results[0].scope.sentence)
