"""``kvopt certify``: schedule, bound and proof in one file, and policies compared with them."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from kvopt.certificates import Certificate, certify
from kvopt.cli import common
from kvopt.cli.common import argument, option
from kvopt.cli.live import LiveProgress
from kvopt.cli.messages import command_line
from kvopt.cli.outputs import certificate_written
from kvopt.errors import InvalidInput
from kvopt.problem.clocks import Clock
from kvopt.problem.deadlines import Deadline
from kvopt.problem.instance import Instance, refuse_prefixes
from kvopt.problem.scopes import Scope
from kvopt.simulate.policies.registry import policy as policy_from
from kvopt.simulate.routers.registry import router as router_from
from kvopt.timetable.measures import waiting_cells
from kvopt.timetable.run_files import read_run
from kvopt.timetable.runs import PolicyRun

_WRITING, _WRITING_A_RUN = 0.6, 0.05
"""Time to write a certificate, and the starts of a policy in it, over the time to read the
instance, which was measured on the same machine under the same load."""

_OPTIONAL = (
    "evictions", "per token s", "first token s", "first token", "p99 s", "p99", "outcome",
    "latency", "mean s", "x slower",
)  # fmt: skip
"""Columns that a narrow terminal goes without, the first of them first."""


@dataclass(frozen=True, kw_only=True)
class ProblemOptions(common.MemoryOptions):
    """An instance, or its run or schedule by another program."""

    file: Path | None = argument("FILE", f"Instance: {common.INSTANCES}", default=None)
    run: Path | None = option(
        "--run", "A run that import-run wrote, to evaluate instead of FILE.", "RUN"
    )

    def read(self, clock: Clock) -> tuple[Instance, list[PolicyRun]]:
        """Return the instance, that of a recorded run if given, and this run on a clock."""
        if (self.file is None) == (self.run is None):
            raise InvalidInput("give FILE or --run, one of them", field="options")
        if self.file is not None:
            return self.read_from(self.file), []
        assert self.run is not None
        for name in ("memory", "workers"):
            if getattr(self, name):
                reason = "goes without a recorded run, which has its own"
                raise InvalidInput(reason, field=f"--{name}")
        found = read_run(self.run)
        instance, schedule = found.instance, found.schedule
        if self.block_size is not None:
            instance = replace(instance, block_size=self.block_size)
            schedule = replace(schedule, instance=instance)
        made = PolicyRun.of(schedule, found.policy)
        if not clock.is_even:
            with common.blamed_on(self.run):
                if found.chunks is None:
                    reason = (
                        "is missing: seconds need to know in which rounds prompts were processed, "
                        "and know no cached ones"
                    )
                    raise InvalidInput(reason, field="chunks")
                refuse_prefixes(instance, "a recorded run in seconds")  # its cache hits are unknown
                made = made.timed(clock, found.chunks)
                if broken := made.violations():
                    raise InvalidInput(broken[0])
        return instance, [made]


@dataclass(frozen=True)
class JudgedOptions:
    """Policies to evaluate, and criteria besides latency."""

    policy: list[str] | None = common.policies("A scheduler to judge; may be given several times.")
    schedule: Path | None = option("--schedule", "Judge this schedule as well.", "SCHEDULE")
    router: str = common.ROUTER
    deadline: str | None = common.DEADLINE
    slower: bool = option(
        "--slower",
        "Also look for slower machines on which no schedule is as good: a fifth of the limit.",
    )


def certify_command(
    *,
    problem: ProblemOptions,
    timing: common.ClockOptions,
    limits: common.LimitOptions,
    judged: JudgedOptions,
    output: Path = common.OUTPUT,
    json: bool = common.JSON,
    scope: Scope | None = common.COVERS,
    _modules: list[str] | None = common.MODULES,
) -> None:
    """Write a certificate: the best schedule, the best bound with its proof, and policies.

    Each policy's total latency is a multiple of the optimum; the interval that is printed holds
    it for certain.  Ctrl-C writes the results so far.  Exit status: 0 when a schedule was found, 3
    when none was, 130 after Ctrl-C, 2 for input that is refused.  With --seconds both sides
    are on the clock of a batch-time model.
    """
    names = judged.policy or []
    for name in names:
        policy_from(name)  # refuse a wrong name before reading
    router_from(judged.router)
    aimed = None if judged.deadline is None else Deadline.parse(judged.deadline)
    if timing.seconds and judged.schedule is not None:
        raise InvalidInput("goes without --seconds: it is in rounds", field="--schedule")
    clock = timing.clock()
    common.warn_oversubscription(limits.threads)
    began = time.monotonic()
    instance, made = problem.read(clock)
    if judged.router != "central" and instance.workers == 1:
        raise InvalidInput("goes with several --workers", field="--router")
    source = problem.file or problem.run or Path()
    reading = time.monotonic() - began
    with common.blamed_on(source):
        clock.arrivals(instance)
        if aimed is not None:
            aimed.allowed(instance, rounds=clock.is_even)
    timing.say_assumed()
    with common.undisturbed():  # a signal between search and file must not lose the answer
        total = common.in_seconds if timing.seconds else common.or_dash
        live = LiveProgress(common.label(source), quiet=json, total=total)
        with live as observer, common.blamed_on(source):
            found = certify(
                instance, [*made, *names], judged.schedule, clock=clock, router=judged.router,
                scope=scope, deadline=judged.deadline, slower=judged.slower,
                reserve=reading * (1 + _WRITING + _WRITING_A_RUN * len(names)),
                command=command_line(), observer=observer, **vars(limits),
            )  # fmt: skip
        with certificate_written("--output", output, found):
            if json:
                common.print_json(found.to_json())
            else:
                _print(found)
    common.finish(found.signal_number, common.NOTHING_FOUND * (found.upper is None))


def _print(found: Certificate) -> None:
    in_rounds = found.clock.is_even
    what, unit = ("total latency", "") if in_rounds else ("mean latency", " s")
    print(
        f"{what} {found.worded_total(found.objective, up=True)}{unit}, proved to be at least "
        f"{found.worded_total(found.lower_bound, up=False)}{unit}: gap {common.percent(found.gap)}"
    )
    if found.undecided is not None:
        print(found.undecided)
    for optimum in found.narrower:
        upper, lower = optimum.ends
        compared = [run.policy for run in found.runs if found.optimum_of(run) == optimum]
        print(
            f"schedules of the scope {optimum.scope}: {what} {found.worded_total(upper, up=True)}"
            f"{unit}, at least {found.worded_total(lower, up=False)}{unit}; "
            f"compared with these: {', '.join(compared)}"
        )
    rows = [_row(found, run, count) for run, count in zip(found.runs, found.attained, strict=True)]
    if rows:
        common.print_rows(rows, ("outcome",), _OPTIONAL)
    if found.in_time is not None:
        print(found.in_time.sentence)
    if found.lower_bound is not None or found.in_time is not None:
        for scope in (*(optimum.scope for optimum in found.narrower), found.scope):
            common.say(f"scope {scope}: {scope.sentence}" if found.narrower else scope.sentence)
    if found.instance.block_size > 1:
        common.say(found.instance.in_blocks)
    for line in found.notes:
        common.say(f"kvopt: {line}")


def _row(found: Certificate, run: PolicyRun, in_time: int | None) -> dict[str, object]:
    in_rounds, (least, most) = found.clock.is_even, found.worded_ratio(run)
    outside = "" if found.scope.covers(run.scope) else f" with {run.scope}: not covered"
    return {
        "policy": run.policy,
        **({} if found.in_time is None else {"in time": in_time}),
        "latency" if in_rounds else "mean s": found.worded_total(run.objective, up=True),
        "x optimum, at least": least,
        "at most": most,
        **({"x slower": found.worded_slower_than(run)} if found.slower else {}),
        **waiting_cells(found.measures(run), found.clock),
        **({} if in_rounds else {"evictions": run.evictions}),
        "outcome": run.outcome + outside,
    }
