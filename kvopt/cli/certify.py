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

from kvopt import Certificate, Instance, PolicyRun, certify, read_schedule
from kvopt.certificates import write_certificate
from kvopt.certificates.building import limit_note
from kvopt.cli import common
from kvopt.cli.common import argument, blamed_on, finish, option, refuse
from kvopt.cli.printing import CHECKED, command_line, say, settings_table, show, table, written
from kvopt.errors import FalseClaim
from kvopt.files.reading import is_standard_input
from kvopt.incumbent.certificate import Optimum
from kvopt.kernels.budget import spent_loading
from kvopt.problem.clocks import Clock
from kvopt.problem.problem import as_problem
from kvopt.problem.scopes import least_scope
from kvopt.show.summary import counted, percent, ratio, rounded
from kvopt.timetable.run_files import RecordedRun, read_run
from kvopt.timetable.timing import timed
from kvopt.timetable.waiting_times import waiting_cells
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

    def read(self, clock: Clock) -> tuple[Instance, PolicyRun | None, RecordedRun | None]:
        """Return the instance, and a recorded run if there is one: on a clock, and as it is.

        In seconds the run may hold more tokens than memory has.
        """
        if self.run is None:
            return self.read_from(self.source), None, None
        common.refuse_own_sizes(self)
        recorded = read_run(self.source)
        schedule = recorded.schedule if clock.is_even else recorded.with_chunks
        if self.block_size is not None:
            in_blocks = replace(recorded.instance, block_size=self.block_size)
            schedule = replace(schedule, instance=in_blocks)
        replayed = PolicyRun.of(schedule, recorded.policy)
        if clock.is_even:
            return replayed.instance, replayed, recorded
        with blamed_on(self.run):
            missing = "is missing: seconds need to know in which rounds prompts were processed, "
            refuse("chunks", f"{missing}and know no cached ones", recorded.chunks is None)
            return replayed.instance, timed(replayed, clock), recorded


@dataclass(frozen=True, kw_only=True)
class JudgedOptions:
    """Policies to evaluate, and criteria besides latency."""

    policy: list[str] | None = common.policies("A scheduler to judge; may be given several times.")
    schedule: Path | None = option("Judge this schedule as well.", "SCHEDULE")
    router: common.Router
    level: common.LevelOptions


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
    names, slo = judged.policy or [], judged.level.slo
    no_seconds = "goes without --seconds: it is in rounds"
    refuse("--schedule", no_seconds, timing.seconds and judged.schedule is not None)
    clock, source, began = timing.clock(), problem.source, time.monotonic()
    loading = spent_loading(limits.time_limit or 0.0)
    instance, run, recorded = problem.read(clock)
    reading = time.monotonic() - began
    timing.check(source, instance, slo)
    common.say_idle_router(judged.router, instance, source)
    fits = run is None or clock.is_even or not run.violations()
    # The scope of a run that does not fit into memory suits what was measured.
    needed = None if fits or run is None else least_scope([run.scope])
    with common.undisturbed():  # a signal between search and file must not lose the answer
        with common.searching(source, clock=clock) as observer:
            certified = certify(
                as_problem(instance, clock=clock, scope=needed),
                [*([] if run is None or not fits else [run]), *names],
                judged.schedule,
                router=judged.router,
                scope=scope,
                slo=slo,
                reserve=loading + reading * (1 + _WRITING + _WRITING_A_RUN * len(names)),
                command=command_line(),
                observer=observer,
                **vars(limits),
            )
        if run is not None and recorded is not None:
            certified = _with_record(certified, run, recorded, fits=fits)
        with written(output, write_certificate, certified, CHECKED):
            show(certified.to_json(), _certificate_lines(certified, judged.level))
    finish(certified.signal_number, common.NOTHING_FOUND * (certified.upper is None))


def _with_record(
    certificate: Certificate, run: PolicyRun, recorded: RecordedRun, *, fits: bool
) -> Certificate:
    """Return a certificate with what a server measured, and notes on its run.

    ``fits`` is whether memory holds the run on this clock.
    """
    notes = [*certificate.notes]
    if not fits:
        notes.append(
            f"{run.policy}: not compared: on this clock requests begin in other rounds than "
            f"recorded, and then {run.violations()[0]}"
        )
    if (limit := recorded.most_active) is not None and (limited := limit_note(run, limit)):
        notes.append(limited)
    provenance, measured = certificate.provenance, recorded.measured
    if measured is not None and (model := certificate.clock.model) is not None:
        sides = certificate.optimum_of(run)
        ends = sides.ends if sides and measured.is_slower_than(model) else (None, None)
        row = {
            "policy": run.policy,
            **measured.beside(model, len(certificate.instance)),
            "ratio": [ratio(measured.latency_ns, end) for end in ends],
        }
        provenance = {**provenance, "measured": row}
    return replace(certificate, notes=tuple(notes), provenance=provenance)


def _certificate_lines(certificate: Certificate, level: common.LevelOptions) -> Iterator[str]:
    in_rounds = certificate.clock.is_even
    name, unit = ("total latency", "") if in_rounds else ("mean latency", " s")

    def sides(optimum: Optimum, proved: str) -> str:
        upper, lower = optimum.ends
        best = certificate.worded_total(upper, up=True)
        bound = certificate.worded_total(lower, up=False)
        return f"{name} {best}{unit}, {proved}at least {bound}{unit}"

    yield f"{sides(certificate.whole, 'proved to be ')}: gap {percent(certificate.gap)}"
    if not in_rounds and certificate.upper is not None:
        yield f"best schedule: {certificate.provenance['found_by']}"
    if certificate.undecided is not None:
        yield certificate.undecided
    for optimum in certificate.narrower:
        compared = [
            run.policy for run in certificate.runs if certificate.optimum_of(run) == optimum
        ]
        yield (
            f"schedules of the scope {optimum.scope}: {sides(optimum, '')}; "
            f"compared with these: {', '.join(compared)}"
        )
    pairs = zip(certificate.runs, certificate.attained, strict=True)
    yield from table([_run_row(certificate, *pair) for pair in pairs])
    yield from settings_table(certificate.provenance.get("settings", {}))
    if (row := certificate.provenance.get("measured")) is not None:
        yield (
            f"{row['policy']}, measured and not checked: mean {row['mean_seconds']:.6f} s; "
            f"{row['rounds']:,} rounds took {row['rounds_seconds']:.4g} s, by the model "
            f"{row['model_seconds']:.4g} s, a round is typically off by "
            f"{percent(row['typical_error'])}"
        )
        low, high = (None if end is None else Fraction(end) for end in row["ratio"])
        yield (
            "the measured mean has no ratio: rounds were shorter than by the model"
            if high is None
            else "no round was shorter than by the model: the measured mean is at least "
            f"{rounded(low, up=False)} and at most {rounded(high, up=True)} times the optimum"
        )
    yield from level.lines(certificate.in_time)
    if certificate.eager_sentence is not None:
        yield certificate.eager_sentence
    if certificate.lower_bound is not None or certificate.in_time is not None:
        for scope in (*(optimum.scope for optimum in certificate.narrower), certificate.scope):
            say(f"scope {scope}: {scope.sentence}" if certificate.narrower else scope.sentence)
    if certificate.instance.block_size > 1:
        say(certificate.instance.in_blocks)
    for line in certificate.notes:
        say(f"kvopt: {line}")


def _run_row(certificate: Certificate, run: PolicyRun, in_time: int | None) -> dict[str, object]:
    in_rounds, (low, high) = certificate.clock.is_even, certificate.worded_ratio(run)
    outside = "" if certificate.scope.covers(run.scope) else f" with {run.scope}: not covered"
    sides = certificate.optimum_of(run)
    return {
        "policy": run.policy,
        **({"scope": sides and sides.scope} if certificate.narrower else {}),
        **({} if certificate.in_time is None else {"in time": in_time}),
        "latency" if in_rounds else "mean s": certificate.worded_total(run.objective, up=True),
        "x optimum, at least": low,
        "at most": high,
        **waiting_cells(certificate.measures(run), certificate.clock),
        **({} if in_rounds else {"evictions": run.evictions}),
        "outcome": run.outcome + outside,
    }


def verify_command(
    *,
    file: Path = argument(
        "CERT", "Certificate file, - for standard input; or a folder of --every."
    ),
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
    answer = {"valid": verdict.valid, "readable": verdict.readable, "report": verdict.lines}
    show(answer, verdict.lines)
    finish(status=verdict.exit_status)


_FACTS = ("feasible", "objective", "peak_memory", "peak_time", "makespan", "violations")


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
        timetable = read_schedule(schedule, instance)
        check = timetable.check()
        facts: dict[str, Any] = {name: getattr(check, name) for name in _FACTS}
        paused = (
            f", {counted(timetable.pauses, 'pause')} with tokens kept" if timetable.pauses else ""
        )
        summary = [
            f"{'' if check.feasible else 'not '}feasible: total latency "
            f"{check.objective:,}, peak memory {check.peak_memory:,} of {instance.memory:,} at "
            f"time {check.peak_time:,}, makespan {check.makespan:,}{paused}"
        ]
    except FalseClaim as error:
        facts = {"feasible": False, "violations": [str(error)]}
    show(facts, [*facts["violations"], *summary])
    finish(status=common.FAILED * (not facts["feasible"]))
