"""``kvopt plot``: a Gantt chart and the memory profile."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from kvopt.cli import common
from kvopt.cli.certify import ProblemOptions
from kvopt.cli.common import option
from kvopt.cli.outputs import write_output
from kvopt.errors import InvalidInput
from kvopt.incumbent.proofs import Prices, prices_of
from kvopt.problem.instance import Instance
from kvopt.search.bounding import bound
from kvopt.simulate.policies.registry import policy as policy_from
from kvopt.simulate.running import run
from kvopt.timetable.run_files import is_run
from kvopt.timetable.runs import PolicyRun
from kvopt.timetable.schedule_files import read_schedule

_PRICE_SECONDS = 5.0
"""Seconds for the prices of --prices; with more time they come nearer to the best ones."""


def plot_command(
    *,
    problem: common.InstanceOptions,
    timing: common.ClockOptions,
    output: Path = option("--output -o", "The picture.", "OUT.{png,svg,pdf}", default=...),
    schedule: Path | None = option("--schedule", "The schedule to draw.", "SCHEDULE"),
    names: list[str] | None = common.policies(
        "Draw the run of this scheduler; several side by side."
    ),
    prices: bool = option("--prices", "Show the prices of the lagrangian bound below the memory."),
    _modules: list[str] | None = common.MODULES,
) -> None:
    """Draw a schedule by request and over memory, runs of schedulers, or the requests alone.

    FILE may also be a run that import-run wrote; schedulers are then drawn next to it.
    """
    from kvopt.show.plots import plot_instance, plot_runs, plot_schedule, refuse_unknown_suffix

    refuse_unknown_suffix(output)
    if schedule is not None and names:
        raise InvalidInput("give --schedule or --policy, not both", field="options")
    if timing.seconds and not names:
        raise InvalidInput("goes with --policy", field="--seconds")
    if prices and schedule is None and (timing.seconds or len(names or ()) != 1):
        raise InvalidInput("goes with --schedule or one --policy, in rounds", field="--prices")
    clock = timing.clock()
    chosen = [policy_from(name) for name in names or ()]  # refuse a wrong name before reading
    recorded = problem.file if is_run(problem.file) else None
    if recorded and schedule:
        raise InvalidInput("goes without a recorded run, which is one", field="--schedule")
    instance, served = ProblemOptions(
        **{**vars(problem), "file": None if recorded else problem.file}, run=recorded
    ).read(clock)
    runs: list[PolicyRun] = [*served]
    for name, policy in zip(names or (), chosen, strict=True):
        with common.blamed_on(problem.file):
            runs.append(run(instance, policy, clock=clock, label=name))
    made = None if schedule is None else read_schedule(schedule, instance)
    known = None
    if len(runs) == 1 and clock.is_even and (prices or not (runs[0].evictions or runs[0].pauses)):
        made, known = runs[0].schedule, _known(runs[0])
    if prices and any(each.pauses for each in (made, *runs) if each is not None):
        raise InvalidInput("are of schedules without pauses, this one pauses", field="--prices")
    if made is not None:
        curve, proved = _priced(instance) if prices else (None, None)
        subtitle = ", ".join(text for text in (known, proved) if text)
        draw = partial(plot_schedule, made, subtitle=subtitle or None, prices=curve)
        write_output(output, draw)
    elif prices:
        raise InvalidInput(f"{runs[0].policy} did not finish, so there is no schedule", field="-P")
    elif runs:
        timing.say_assumed()
        write_output(output, partial(plot_runs, runs))
    else:
        write_output(output, partial(plot_instance, instance))


def _known(found: PolicyRun) -> str:
    """Return the subtitle of a picture of a run."""
    lost = f"; work lost in {found.evictions:,} evictions is not drawn" if found.evictions else ""
    return f"{found.policy}{lost}"


def _priced(instance: Instance) -> tuple[Prices | None, str]:
    """Return the best prices found in a few seconds and their value."""
    result = bound(instance, "lagrangian", time_limit=_PRICE_SECONDS)
    found = None if result.checked is None else prices_of(result.checked.proof)
    if found is None:
        common.say("kvopt: no prices are drawn, as none were found that prove more than volumes")
    proved = "nothing proved" if result.value is None else f"at least {result.value:,} proved"
    return found, proved
