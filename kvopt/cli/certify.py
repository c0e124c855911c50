"""``kvopt certify``: schedule, bound and proof in one file, and policies judged by them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from kvopt.certificates import Certificate, certify
from kvopt.certificates.deadlines import deadline_of
from kvopt.certificates.judged import JudgedRun
from kvopt.certificates.writing import write_certificate
from kvopt.cli import common
from kvopt.cli.assumed import clock_of, say_assumed_clock
from kvopt.cli.common import option
from kvopt.cli.live import LiveProgress
from kvopt.cli.messages import command_line
from kvopt.cli.outputs import certificate_written, try_outputs
from kvopt.cli.solve_in_seconds import in_seconds
from kvopt.errors import InvalidInput
from kvopt.problem.clocks import Clock
from kvopt.problem.instance import Instance
from kvopt.problem.instance_files import read_instance
from kvopt.simulate.policies.registry import policy as policy_from
from kvopt.simulate.routers.registry import router as router_from
from kvopt.timetable.measures import waiting_cells
from kvopt.timetable.paused_runs import PausedRun
from kvopt.timetable.pausing import PausedSchedule
from kvopt.timetable.run_files import read_run

Deadline = Annotated[
    str | None,
    option(
        "--deadline",
        "Also how many can be done in time: 40 rounds, 30s, own; first-token:2s for first tokens.",
        "TIME",
    ),
]

_WRITING, _WRITING_A_RUN = 0.6, 0.05
"""Time that writing a certificate takes, and the starts of a policy in it, next to reading the
instance: an estimate from the same machine under the same load."""

_IN_ROUNDS = (
    (
        "policy", "latency>", "x optimum, at least>", "at most>", "x slower>", "p99>",
        "first token>", "outcome",
    ),
    ("first token", "p99", "outcome", "latency", "x slower"),
)  # fmt: skip
_IN_SECONDS = (
    (
        "policy", "mean s>", "x optimum, at least>", "at most>", "x slower>", "p99 s>",
        "first token s>", "per token s>", "evictions>", "outcome",
    ),
    ("evictions", "per token s", "first token s", "p99 s", "outcome", "mean s", "x slower"),
)  # fmt: skip
"""Columns of the table, and those that a narrow terminal goes without, the first of them first."""

_IN_TIME = "in time>"
"""Column of how many requests attain their deadline, where one was asked for."""


def certify_command(
    output: Annotated[
        Path, option("--output -o", "The certificate; - is standard output.", "CERT")
    ],
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help=f"Instance: {common.INSTANCES}")
    ] = None,
    names: Annotated[
        list[str] | None,
        common.policies("A scheduler to judge; may be given several times."),
    ] = None,
    schedule: Annotated[
        Path | None,
        option("--schedule", "Judge this schedule as well.", "SCHEDULE"),
    ] = None,
    recorded: Annotated[
        Path | None,
        option("--run", "In place of FILE: judge a run that import-run wrote.", "RUN"),
    ] = None,
    time_limit: common.TimeLimit = None,
    threads: common.Threads = None,
    ram: common.Ram = None,
    params: common.Params = None,
    seed: common.Seed = 0,
    slower: Annotated[
        bool,
        option(
            "--slower",
            "Also look for slower machines on which no schedule is as good: a fifth of the limit.",
        ),
    ] = False,
    memory: common.Memory = None,
    workers: common.Workers = None,
    router: common.Router = "central",
    block_size: common.BlockSize = None,
    json: common.Json = False,
    scope: common.Covers = None,
    deadline: Deadline = None,
    seconds: common.Seconds = False,
    model: common.BatchTime = None,
    _modules: common.Modules = None,
) -> None:
    """Write a certificate: the best schedule, the best bound with its proof, and policies.

    Each policy's total latency is a multiple of the optimum; the interval that is printed holds
    it for certain.  Ctrl-C writes what was found.  Exit status: 0 when a schedule was found, 3
    when none was, 130 after Ctrl-C, 2 for input that is refused.  With --seconds both sides
    are on the clock of a batch-time model.
    """
    for name in names or ():
        policy_from(name)  # refuse what is wrong before reading
    router_from(router)
    aimed = deadline_of(deadline)
    try_outputs(output=output, as_json=json)
    if seconds and schedule is not None:
        raise InvalidInput("goes without --seconds: it is in rounds", field="--schedule")
    if seconds and params is not None:
        raise InvalidInput("goes without --seconds: it is of searches in rounds", field="--params")
    clock = clock_of(seconds, model)
    common.warn_oversubscription(threads)
    began = time.monotonic()
    instance, made = read_problem(file, memory, workers, block_size, recorded, clock)
    if router != "central" and instance.workers == 1:
        raise InvalidInput("goes with several --workers", field="--router")
    source = file or recorded or Path()
    reading = time.monotonic() - began
    with common.blamed_on(source):
        clock.arrivals(instance)
        if aimed is not None:
            aimed.allowed(instance, rounds=clock.is_even)
    say_assumed_clock(clock, model)
    with common.undisturbed():  # a signal between search and file must not take the answer with it
        total = in_seconds if seconds else common.or_dash
        with LiveProgress(common.label(source), quiet=json, total=total) as observer:
            found = certify(
                instance,
                [*made, *(names or ())],
                schedule,
                clock=clock,
                router=router,
                scope=scope,
                deadline=deadline,
                time_limit=time_limit,
                reserve=reading * (1 + _WRITING + _WRITING_A_RUN * len(names or ())),
                threads=threads,
                ram=ram,
                params=params,
                seed=seed,
                slower=slower,
                observer=observer,
                command=command_line(),
            )
        with certificate_written("--output", output, found, write_certificate):
            if json:
                common.print_json(found.to_json())
            else:
                _print(found)
    common.exit_by_signal(found.signal_number)
    if found.upper is None:
        raise typer.Exit(common.NOTHING_FOUND)


def read_problem(
    file: Path | None,
    memory: int | None,
    workers: int | None,
    block_size: int | None,
    recorded: Path | None,
    clock: Clock,
) -> tuple[Instance, list[PausedRun]]:
    """Return the instance, of a recorded run its own, and that run on a clock."""
    if (file is None) == (recorded is None):
        raise InvalidInput("give FILE or --run, one of them", field="options")
    if recorded is None:
        assert file is not None
        return read_instance(file, memory, workers, block_size), []
    for name, given in {"--memory": memory, "--workers": workers}.items():
        if given:
            raise InvalidInput("goes without a recorded run, which has its own", field=name)
    found = read_run(recorded)
    instance, schedule = found.instance, found.schedule
    if block_size is not None:
        instance = replace(instance, block_size=block_size)
        schedule = PausedSchedule(instance, schedule.segments)
    made = PausedRun.of(schedule, found.policy)
    if not clock.is_even:
        with common.blamed_on(recorded):
            if found.chunks is None:
                reason = "is missing: seconds need to know in which rounds prompts were processed"
                raise InvalidInput(reason, field="chunks")
            made = made.timed(clock, found.chunks)
            if broken := made.violations():
                raise InvalidInput(broken[0])
    return instance, [made]


def _print(found: Certificate) -> None:
    in_rounds = found.clock.is_even
    what, unit = ("total latency", "") if in_rounds else ("mean latency", " s")
    print(
        f"{what} {found.worded_total(found.objective, up=True)}{unit}, proved to be at least "
        f"{found.worded_total(found.lower_bound, up=False)}{unit}: gap {common.percent(found.gap)}"
    )
    if found.undecided is not None:
        print(found.undecided)
    if found.runs:
        heads, optional = (
            [name for name in names if found.slower or "slower" not in name]
            for names in (_IN_ROUNDS if in_rounds else _IN_SECONDS)
        )
        attained: Sequence[int | None] = [None] * len(found.runs)
        if found.in_time is not None:
            heads, attained = [heads[0], _IN_TIME, *heads[1:]], found.in_time.attained
        table = common.new_table(*heads, prose=("outcome",), optional=optional)
        for run, count in zip(found.runs, attained, strict=True):
            cells = {**_cells(found, run), _IN_TIME.rstrip(">"): common.or_dash(count)}
            table.add_row(*(cells[head.rstrip(">")] for head in heads))
        common.print_table(table)
    if found.in_time is not None:
        print(found.in_time.sentence(len(found.instance)))
    if found.lower_bound is not None or found.in_time is not None:
        common.say(found.scope.sentence)
    if found.instance.block_size > 1:
        common.say(found.instance.in_blocks)
    for line in found.notes:
        common.say(f"kvopt: {line}")


def _cells(found: Certificate, run: JudgedRun) -> dict[str, str]:
    """Return the cells of a row by column."""
    total, (least, most) = found.worded_total(run.value, up=True), found.worded_ratio(run)
    outside = "" if found.scope.covers(run.scope) else f" with {run.scope}: not covered"
    return {
        "policy": escape(run.policy),
        "latency": total,
        "mean s": total,
        "x optimum, at least": least,
        "at most": most,
        "x slower": found.worded_slower_than(run),
        "evictions": common.or_dash(run.evictions),
        "outcome": escape(run.outcome) + outside,
        **waiting_cells(found.measures(run), found.clock),
    }
