"""``kvopt run`` and ``kvopt plot``: simulate schedulers, and draw schedules."""

from __future__ import annotations

from csv import writer
from functools import partial
from io import StringIO
from pathlib import Path

from kvopt import InvalidInput, KvoptError, PolicyRun, read_schedule
from kvopt.cli import common
from kvopt.cli.certify import ProblemOptions
from kvopt.cli.common import blamed_on, label, option, refuse
from kvopt.cli.printing import is_json, is_watched, say, show, table, write_output, written
from kvopt.files.atomic import write_atomically
from kvopt.incumbent.in_time import attained_in
from kvopt.problem.slo import allowed_misses
from kvopt.simulate.comparison import Comparison
from kvopt.simulate.routers import router as router_from
from kvopt.simulate.run_policy import run as simulate
from kvopt.timetable.run_files import is_run
from kvopt.timetable.schedule_files import write_schedule


def run_command(
    *,
    problem: common.InstanceOptions,
    names: list[str] = common.policies("A scheduler; may be given several times.", default=...),
    timing: common.ClockOptions,
    router: common.Router,
    level: common.LevelOptions,
    _json: common.Json,
    output: common.OptionalOutput,
    timeline: Path | None = option("With --seconds: write memory over time.", "CSV"),
    _modules: common.Modules,
) -> None:
    """Simulate schedulers on one clock and compare their total latency.

    Every run is checked in integers.  A run that would continue for ever is reported as a
    livelock.  Ctrl-C keeps the runs that are done.
    """
    refuse("-o", "goes with a single --policy", output is not None and len(names) > 1)
    no_seconds = "goes with rounds, which --seconds are not"
    refuse("-o", no_seconds, timing.seconds and output is not None)
    clock = timing.clock()
    refuse("--timeline", "goes with --seconds", timeline is not None and not timing.seconds)
    instance, file, slo = problem.read(), problem.file, level.slo
    timing.check(file, instance, slo)
    if instance.workers > 1 and not is_json():
        when = "arrives" if router_from(router).is_irrevocable else "starts"
        when = f"a request is given to one of {instance.workers} workers when it {when}"
        say(f"{label(file)}: router {router}: {when}")
    common.say_idle_router(router, instance, file)
    runs: list[PolicyRun] = []
    interrupted, refused = False, None
    try:
        for name in names:
            if is_watched():
                say(f"{label(file)}: {name} ...")
            with common.searching(file, name):  # it reports compilation
                runs.append(simulate(instance, name, router=router, clock=clock, slo=slo))
    except KeyboardInterrupt:
        interrupted = True
    except KvoptError as error:
        if not runs:
            raise
        refused = error  # finished runs are still reported
    assumed = {"batch_time": clock.model.to_json()} if clock.model else {}
    with common.undisturbed():
        with (
            written(output, _write, runs[0] if runs else None) as is_there,
            written(timeline, _write_timeline, runs, option="--timeline"),
        ):
            rows = Comparison(runs).rows() if runs else []
            members = [run.to_json() for run in runs]
            if slo is not None:
                for k, run in enumerate(runs):
                    attained = members[k]["attained"] = attained_in(run, slo)
                    (name, policy), *others = rows[k].items()
                    cells: dict[str, object] = {name: policy, "in time": attained}
                    if (share := level.attain) is not None:
                        missed = len(instance) - (attained or 0)
                        is_enough = missed <= allowed_misses(share, len(instance))
                        cells[share] = "yes" if is_enough else "no"
                    rows[k] = {**cells, **dict(others)}
            show({**assumed, "policies": members}, table(rows))
        if is_there and runs[0].evictions:
            say(
                f"kvopt: {output} holds the last starts; work that {runs[0].evictions} evictions "
                "threw away is not in it"
            )
    if refused is not None:
        raise refused
    common.finish(status=common.INTERRUPTED * interrupted)


def _write(run: PolicyRun, output: Path) -> None:
    if run.schedule is None:
        raise InvalidInput("left requests unfinished: there is no schedule", field="-o")
    write_schedule(run.schedule, output)


def _write_timeline(runs: list[PolicyRun], path: Path) -> None:
    """Write memory over time as CSV; between two rows of a policy it is a straight line."""
    text = StringIO()
    table = writer(text, lineterminator="\n")
    table.writerow(("policy", "seconds", "tokens"))
    for run in runs:
        for number, part in enumerate(run.parts):
            name = f"{run.policy}, worker {number}" if len(run.parts) > 1 else run.policy
            points = zip(*part.memory_over_time(), strict=True)
            table.writerows((name, *point) for point in points)
    write_atomically(path, text.getvalue())


def plot_command(
    *,
    problem: common.InstanceOptions,
    timing: common.ClockOptions,
    output: Path = option("The picture.", "OUT.{png,svg,pdf}", "-o", ...),
    schedule: Path | None = option("The schedule to draw.", "SCHEDULE"),
    names: list[str] | None = common.policies(
        "Draw the run of this scheduler; several side by side."
    ),
    _modules: common.Modules,
) -> None:
    """Draw a schedule by request and over memory, runs of schedulers, or the requests alone.

    FILE may also be a run that import-run wrote; schedulers are then drawn next to it.
    """
    from kvopt.show.plots import plot_instance, plot_runs, plot_schedule, refuse_unknown_suffix

    refuse_unknown_suffix(output)
    names, file, seconds = names or [], problem.file, timing.seconds
    both = schedule is not None and len(names) > 0
    refuse("options", "give --schedule or --policy, not both", both)
    refuse("--seconds", "goes with --policy", seconds and not names)
    clock = timing.clock()
    recorded = file if is_run(file) else None
    no_schedule = "goes without a recorded run, which is one"
    refuse("--schedule", no_schedule, recorded is not None and schedule is not None)
    options = ProblemOptions(**{**vars(problem), "file": None if recorded else file}, run=recorded)
    instance, run, _ = options.read(clock)
    runs = [] if run is None else [run]
    with blamed_on(file):
        if wrong := [text for run in runs for text in run.violations()]:
            raise InvalidInput(f"on this clock: {wrong[0]}")
        runs += [simulate(instance, name, clock=clock) for name in names]
    drawn = None if schedule is None else read_schedule(schedule, instance)
    drawn_policy = None
    if len(runs) == 1 and clock.is_even and not (runs[0].evictions or runs[0].pauses):
        drawn, drawn_policy = runs[0].schedule, runs[0].policy
    if drawn is not None:
        write_output(output, partial(plot_schedule, subtitle=drawn_policy), drawn)
    elif runs:
        timing.say_assumed()
        write_output(output, plot_runs, runs)
    else:
        write_output(output, plot_instance, instance)
