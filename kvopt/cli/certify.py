"""``kvopt certify``, ``verify`` and ``check``: write proofs, and check them in integers."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import typer

from kvopt import Certificate, Instance, PolicyRun, certify, policy, read_schedule
from kvopt.certificates import write_certificate
from kvopt.certificates.judging import limit_note
from kvopt.cli import common
from kvopt.cli.common import argument, blamed_on, finish, option, refuse
from kvopt.cli.printing import CHECKED, command_line, say, settings_table, show, table, written
from kvopt.errors import FalseClaim, InvalidInput
from kvopt.files.reading import is_standard_input
from kvopt.kernels.clock import spent_loading
from kvopt.problem.clocks import Clock
from kvopt.problem.problem import as_problem
from kvopt.problem.scopes import least_scope
from kvopt.show.summary import counted, percent, ratio, rounded
from kvopt.simulate.routers.registry import router as router_from
from kvopt.timetable.measures import waiting_cells
from kvopt.timetable.run_files import RecordedRun, read_run
from kvopt.timetable.timing import timed
from kvopt.verify.apart import verify_apart

_WRITING, _WRITING_A_RUN = 0.6, 0.05
"""Time to write a certificate, and the starts of a policy in it, over the time to read the
instance, which was measured on the same machine under the same load."""


@dataclass(frozen=True, kw_only=True)
class ProblemOptions(common.MemoryOptions):
    """An instance, or its run or schedule by another program."""

    file: Path | None = argument("FILE", f"Instance: {common.INSTANCES}", None)
    run: Path | None = option("A run that import-run wrote, to evaluate instead of FILE.", "RUN")

    @property
    def source(self) -> Path:
        """The file that is read."""
        refuse(
            "options", "give FILE or --run, one of them", (self.file is None) == (self.run is None)
        )
        return self.file or self.run or Path()

    def read(self, clock: Clock) -> tuple[Instance, list[PolicyRun], RecordedRun | None]:
        """Return the instance, and a recorded run if given: on a clock, and as it is.

        In seconds the run may hold more tokens than memory has.
        """
        if self.run is None:
            return self.read_from(self.source), [], None
        for name in ("memory", "workers"):
            no_run = "goes without a recorded run, which has its own"
            refuse(f"--{name}", no_run, getattr(self, name) is not None)
        found = read_run(self.source)
        schedule = found.schedule if clock.is_even else found.with_chunks
        if self.block_size is not None:
            in_blocks = replace(found.instance, block_size=self.block_size)
            schedule = replace(schedule, instance=in_blocks)
        made = PolicyRun.of(schedule, found.policy)
        if clock.is_even:
            return made.instance, [made], found
        with blamed_on(self.run):
            if found.chunks is None:
                reason = (
                    "is missing: seconds need to know in which rounds prompts were processed, and "
                    "know no cached ones"
                )
                raise InvalidInput(reason, field="chunks")
            return made.instance, [timed(made, clock)], found


@dataclass(frozen=True, kw_only=True)
class JudgedOptions:
    """Policies to evaluate, and criteria besides latency."""

    policy: list[str] | None = common.policies("A scheduler to judge; may be given several times.")
    schedule: Path | None = option("Judge this schedule as well.", "SCHEDULE")
    router: common.Router
    slo: common.ServiceLevel
    attain: common.Attain


def certify_command(
    *,
    problem: ProblemOptions,
    timing: common.ClockOptions,
    limits: common.LimitOptions,
    judged: JudgedOptions,
    output: common.Output,
    _json: common.Json,
    scope: common.CoveredScope,
    _modules: common.Modules,
) -> None:
    """Write a certificate: the best schedule, the best bound with its proof, and policies.

    Each policy's total latency is a multiple of the optimum; the interval that is printed holds
    it for certain.  Ctrl-C writes the results so far.  Exit status: 0 when a schedule was found, 3
    when none was, 130 after Ctrl-C, 2 for input that is refused.  With --seconds both sides
    are on the clock of a batch-time model.
    """
    common.refuse_attain(judged.attain, judged.slo)
    names = judged.policy or []
    for name in names:
        policy(name)  # refuse a wrong name before reading
    router_from(judged.router)
    no_seconds = "goes without --seconds: it is in rounds"
    refuse("--schedule", no_seconds, timing.seconds and judged.schedule is not None)
    clock, source, began = timing.clock(), problem.source, time.monotonic()
    loading = spent_loading(limits.time_limit or 0.0)
    instance, made, recorded = problem.read(clock)
    reading = time.monotonic() - began
    timing.check(source, instance, judged.slo)
    common.say_idle_router(judged.router, instance, source)
    beyond = [run for run in made if not clock.is_even and run.violations()]
    # The scope of a run that does not fit into memory suits what was measured.
    needed = least_scope(run.scope for run in beyond) if beyond else None
    with common.undisturbed():  # a signal between search and file must not lose the answer
        with common.searching(source, clock=clock) as observer:
            found = certify(
                as_problem(instance, clock=clock, scope=needed),
                [*(run for run in made if run not in beyond), *names],
                judged.schedule,
                router=judged.router,
                scope=scope,
                slo=judged.slo,
                reserve=loading + reading * (1 + _WRITING + _WRITING_A_RUN * len(names)),
                command=command_line(),
                observer=observer,
                **vars(limits),
            )
        if recorded is not None:
            found = _with_record(found, made[0], recorded, fits=not beyond)
        with written(output, write_certificate, found, CHECKED):
            show(found.to_json(), _lines(found, judged.attain))
    finish(found.signal_number, common.NOTHING_FOUND * (found.upper is None))


def _with_record(
    found: Certificate, run: PolicyRun, recorded: RecordedRun, *, fits: bool
) -> Certificate:
    """Return a certificate with what a server measured, and notes on its run.

    Parameters
    ----------
    found
        The certificate.
    run, recorded
        The run of the server on its clock, and as recorded.
    fits
        Whether memory holds it on this clock.
    """
    notes = [*found.notes]
    if not fits:
        notes.append(
            f"{run.policy}: not compared: on this clock requests begin in other rounds than "
            f"recorded, and then {run.violations()[0]}"
        )
    if (most := recorded.most_active) is not None and (limited := limit_note(run, most)):
        notes.append(limited)
    provenance, measured = found.provenance, recorded.measured
    if measured is not None and (model := found.clock.model) is not None:
        sides = found.optimum_of(run)
        ends = sides.ends if sides and measured.is_slower_than(model) else (None, None)
        row = {
            "policy": run.policy,
            **measured.beside(model, len(found.instance)),
            "ratio": [ratio(measured.latency_ns, end) for end in ends],
        }
        provenance = {**provenance, "measured": row}
    return replace(found, notes=tuple(notes), provenance=provenance)


def _measured(row: dict[str, Any]) -> Iterator[str]:
    """Yield lines about the times that a server measured."""
    yield (
        f"{row['policy']}, measured and not checked: mean {row['mean_seconds']:.6f} s; "
        f"{row['rounds']:,} rounds took {row['rounds_seconds']:.4g} s, by the model "
        f"{row['model_seconds']:.4g} s, a round is typically off by {percent(row['typical_error'])}"
    )
    low, high = (None if end is None else Fraction(end) for end in row["ratio"])
    if high is None:
        yield "the measured mean has no ratio: rounds were shorter than by the model"
    else:
        yield (
            "no round was shorter than by the model: the measured mean is at least "
            f"{rounded(low, up=False)} and at most {rounded(high, up=True)} times the optimum"
        )


def _lines(found: Certificate, attain: str | None) -> Iterator[str]:
    in_rounds = found.clock.is_even
    what, unit = ("total latency", "") if in_rounds else ("mean latency", " s")
    yield (
        f"{what} {found.worded_total(found.objective, up=True)}{unit}, proved to be at least "
        f"{found.worded_total(found.lower_bound, up=False)}{unit}: gap {percent(found.gap)}"
    )
    if not in_rounds and found.upper is not None:
        yield f"best schedule: {found.provenance['found_by']}"
    if found.undecided is not None:
        yield found.undecided
    for optimum in found.narrower:
        upper, lower = optimum.ends
        compared = [run.policy for run in found.runs if found.optimum_of(run) == optimum]
        yield (
            f"schedules of the scope {optimum.scope}: {what} {found.worded_total(upper, up=True)}"
            f"{unit}, at least {found.worded_total(lower, up=False)}{unit}; "
            f"compared with these: {', '.join(compared)}"
        )
    rows = [_row(found, run, count) for run, count in zip(found.runs, found.attained, strict=True)]
    yield from table(rows)
    yield from settings_table(found.provenance.get("settings", {}))
    if "measured" in found.provenance:
        yield from _measured(found.provenance["measured"])
    if found.in_time is not None:
        yield found.in_time.sentence
        if attain is not None:
            yield found.in_time.verdict(attain)
    if found.eager_sentence is not None:
        yield found.eager_sentence
    if found.lower_bound is not None or found.in_time is not None:
        for scope in (*(optimum.scope for optimum in found.narrower), found.scope):
            say(f"scope {scope}: {scope.sentence}" if found.narrower else scope.sentence)
    if found.instance.block_size > 1:
        say(found.instance.in_blocks)
    for line in found.notes:
        say(f"kvopt: {line}")


def _row(found: Certificate, run: PolicyRun, in_time: int | None) -> dict[str, object]:
    in_rounds, (least, most) = found.clock.is_even, found.worded_ratio(run)
    outside = "" if found.scope.covers(run.scope) else f" with {run.scope}: not covered"
    sides = found.optimum_of(run)
    return {
        "policy": run.policy,
        **({"scope": sides and sides.scope} if found.narrower else {}),
        **({} if found.in_time is None else {"in time": in_time}),
        "latency" if in_rounds else "mean s": found.worded_total(run.objective, up=True),
        "x optimum, at least": least,
        "at most": most,
        **waiting_cells(found.measures(run), found.clock),
        **({} if in_rounds else {"evictions": run.evictions}),
        "outcome": run.outcome + outside,
    }


def verify_command(
    *,
    file: Path = argument("CERT", "Certificate file; - is standard input."),
    _json: common.Json,
    budget: float | None = option("Allow K times half a minute and 850 MB.", "K"),
    jobs: int = option("Processes that share a search.", "N", default=1),
) -> None:
    """Check every claim of a certificate in exact integers, and print the proved ones.

    The check uses no solver and no code that made the certificate.  ``python -m kvopt.verify``
    does the same with the standard library alone.  A file is granted the time that it
    asks for, up to about ten minutes.  The system limits the memory of the check.

    Exit status: 0 valid, 1 invalid, 130 after Ctrl-C, 2 unreadable, or more to check than it asks
    for or the budget allows.
    """
    wrong = budget is not None and not 0 < budget < math.inf
    refuse("--budget", "must be a positive number", wrong)
    path = Path("/dev/stdin") if is_standard_input(file) else file
    try:
        verdict = verify_apart(path, budget, lambda line: say(f"kvopt: {line}"), jobs=jobs)
    except KeyboardInterrupt:
        say("kvopt: interrupted, nothing is known of the file")
        raise typer.Exit(common.INTERRUPTED) from None
    said = {"valid": verdict.valid, "readable": verdict.readable, "report": verdict.lines}
    show(said, verdict.lines)
    finish(status=verdict.exit_status)


_SAID = ("feasible", "objective", "peak_memory", "peak_time", "makespan", "violations")


def check_command(
    *,
    problem: common.InstanceOptions,
    schedule: Path = argument("SCHEDULE", "Schedule file; - is standard input."),
    _json: common.Json,
) -> None:
    """Print the total latency and peak memory of a schedule, or its violations.

    Exit status: 0 feasible, 1 not feasible or another objective than it claims, 2 unreadable
    or not for this instance.
    """
    instance = problem.read()
    summary = []
    try:
        made = read_schedule(schedule, instance)
        check = made.check()
        found: dict[str, Any] = {name: getattr(check, name) for name in _SAID}
        paused = f", {counted(made.pauses, 'pause')} with tokens kept" if made.pauses else ""
        summary = [
            f"{'feasible' if check.feasible else 'not feasible'}: total latency "
            f"{check.objective:,}, peak memory {check.peak_memory:,} of {instance.memory:,} at "
            f"time {check.peak_time:,}, makespan {check.makespan:,}{paused}"
        ]
    except FalseClaim as error:
        found = {"feasible": False, "violations": [str(error)]}
    show(found, [*found["violations"], *summary])
    finish(status=common.FAILED * (not found["feasible"]))
