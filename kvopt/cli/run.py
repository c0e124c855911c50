"""``kvopt run``: simulate schedulers on an instance, in rounds or in seconds."""

from __future__ import annotations

from csv import writer
from io import StringIO
from pathlib import Path

from kvopt.cli import common
from kvopt.cli.common import option
from kvopt.cli.live import LiveProgress
from kvopt.cli.outputs import written
from kvopt.errors import InvalidInput, KvoptError
from kvopt.files.atomic import write_atomically
from kvopt.problem.clocks import Clock
from kvopt.simulate.comparison import Comparison
from kvopt.simulate.policies.registry import policy as policy_from
from kvopt.simulate.routers.registry import router as router_from
from kvopt.simulate.running import run as simulate
from kvopt.timetable.runs import PolicyRun
from kvopt.timetable.schedule_files import write_schedule

_OPTIONAL = (
    "seconds", "peak", "makespan", "makespan s", "tokens/s", "median s", "first token", "mean",
    "evictions", "per token s", "first token s", "p99", "p99 s", "times the best", "latency",
)  # fmt: skip
"""Columns that a narrow terminal goes without, the first of them first."""


def run_command(
    *,
    problem: common.InstanceOptions,
    names: list[str] = common.policies("A scheduler; may be given several times.", default=...),
    timing: common.ClockOptions,
    router: str = common.ROUTER,
    json: bool = common.JSON,
    output: Path | None = common.OPTIONAL_OUTPUT,
    timeline: Path | None = option("--timeline", "With --seconds: write memory over time.", "CSV"),
    _modules: list[str] | None = common.MODULES,
) -> None:
    """Simulate schedulers on one clock and compare their total latency.

    Every run is checked in integers.  A run that would continue for ever is reported as a
    livelock.  Ctrl-C keeps the runs that are done.
    """
    if output is not None and len(names) > 1:
        raise InvalidInput("goes with a single --policy", field="-o")
    chosen = [policy_from(name) for name in names]  # refuse a wrong name before reading
    way = router_from(router)
    if timing.seconds and output is not None:
        raise InvalidInput("goes with rounds, which --seconds are not", field="-o")
    clock = timing.clock()
    if timeline is not None and not timing.seconds:
        raise InvalidInput("goes with --seconds", field="--timeline")
    instance, label = problem.read(), common.label(problem.file)
    if router != "central" and instance.workers == 1:
        raise InvalidInput("goes with several --workers", field="--router")
    timing.say_assumed()
    if instance.workers > 1 and not json:
        when = "arrives" if way.is_irrevocable else "starts"
        said = f"a request is given to one of {instance.workers} workers when it {when}"
        common.say(f"{label}: router {router}: {said}")
    runs: list[PolicyRun] = []
    interrupted, refused = False, None
    try:
        for name, policy in zip(names, chosen, strict=True):
            if common.is_watched() and not json:
                common.say(f"{label}: {name} ...")
            # The line reports compilation.
            with LiveProgress(name, quiet=json), common.blamed_on(problem.file):
                runs.append(simulate(instance, policy, router=router, clock=clock, label=name))
    except KeyboardInterrupt:
        interrupted = True
    except KvoptError as error:
        if not runs:
            raise
        refused = error  # finished runs are still reported
    target = output if runs else None
    with common.undisturbed():
        with (
            written("--output", target, lambda path: _write_schedule(runs[0], path)) as is_written,
            written("--timeline", timeline, lambda path: write_atomically(path, _timeline(runs))),
        ):
            _report(runs, clock, json)
        if is_written and runs[0].evictions:
            common.say(
                f"kvopt: {target} holds the last starts; work that {runs[0].evictions} evictions "
                "threw away is not in it"
            )
    if refused is not None:
        raise refused
    common.finish(status=common.INTERRUPTED * interrupted)


def _write_schedule(run: PolicyRun, output: Path) -> None:
    if run.schedule is None:
        raise InvalidInput("left requests unfinished: there is no schedule", field="-o")
    write_schedule(run.schedule, output)


def _timeline(runs: list[PolicyRun]) -> str:
    """Return memory over time as CSV; between two rows of a policy it is a straight line."""
    text = StringIO()
    table = writer(text, lineterminator="\n")
    table.writerow(("policy", "seconds", "tokens"))
    for run in runs:
        for number, part in enumerate(run.parts):
            name = f"{run.policy}, worker {number}" if len(run.parts) > 1 else run.policy
            points = zip(*part.memory_over_time(), strict=True)
            table.writerows((name, *point) for point in points)
    return text.getvalue()


def _report(runs: list[PolicyRun], clock: Clock, json: bool) -> None:
    if json:
        made = {"batch_time": clock.model.to_json()} if clock.model else {}
        common.print_json({**made, "policies": [run.to_json() for run in runs]})
    elif runs:
        common.print_rows(Comparison(runs).rows(), ("outcome",), _OPTIONAL)
