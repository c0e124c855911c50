"""``kvopt verify`` and ``kvopt check``: check certificates and schedules in integers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import typer

from kvopt.cli import common
from kvopt.cli.common import argument, option
from kvopt.cli.messages import say
from kvopt.errors import FalseClaim, InvalidInput
from kvopt.files.reading import is_standard_input
from kvopt.timetable.schedule_files import read_schedule
from kvopt.verify import Verdict
from kvopt.verify.apart import verify_apart


def verify_command(
    *,
    file: Path = argument("CERT", "Certificate file; - is standard input."),
    json: bool = common.JSON,
    budget: float | None = option("--budget", "Allow K times half a minute and 850 MB.", "K"),
    jobs: int = option("--jobs", "Processes that share a search.", "N", default=1),
    naive: bool = option("--naive", "Evaluate proofs by their definitions; for small instances."),
    proved: bool = option("--proved", "Check it a second time, by the program proved in Coq."),
) -> None:
    """Check every claim of a certificate in exact integers, and print the proved ones.

    The check uses no solver and no code that made the certificate.  ``python -m kvopt.verify``
    does the same with the standard library alone.  A file is granted the time that it
    asks for, up to about ten minutes.  The system limits the memory of the check.

    Exit status: 0 valid, 1 invalid, 130 after Ctrl-C, 2 unreadable, more to check than it asks for
    or the budget allows, or not covered by --proved.
    """
    if budget is not None and not 0 < budget < math.inf:
        raise InvalidInput("must be a positive number", field="--budget")
    if proved:
        from kvopt.certificates import coq_checker as again  # most checks do not need this import

        if is_standard_input(file):
            raise InvalidInput("needs a file, not standard input", field="--proved")
        again.proved_checker()
    path = Path("/dev/stdin") if is_standard_input(file) else file
    try:
        verdict = verify_apart(
            path, budget, lambda line: say(f"kvopt: {line}"), jobs=jobs, naive=naive
        )
    except KeyboardInterrupt:
        say("kvopt: interrupted, nothing is known of the file")
        raise typer.Exit(common.INTERRUPTED) from None
    if proved and verdict.valid:
        verdict = _twice(verdict, again.verify_proved(file))
    if json:
        common.print_json(
            {"valid": verdict.valid, "readable": verdict.readable, "report": verdict.lines}
        )
    else:
        print(*verdict.lines, sep="\n")
    common.finish(status=verdict.exit_status)


def _twice(first: Verdict, second: Verdict) -> Verdict:
    """Return the verdict of both checkers together."""
    said = "checked again by the program that is proved in Coq:"
    *found, last = second.lines
    lines = (*first.lines[:-1], said, *(f"  {line}" for line in found), last)
    return Verdict(second.valid, second.readable, lines)


_SAID = ("feasible", "objective", "peak_memory", "peak_time", "makespan", "violations")


def check_command(
    *,
    problem: common.InstanceOptions,
    schedule: Path | None = argument(
        "[SCHEDULE]", "Schedule file; - is standard input.  Not for a certificate.", default=None
    ),
    json: bool = common.JSON,
) -> None:
    """Print the total latency and peak memory of a schedule, or its violations.

    Without a schedule FILE is a certificate, which is checked as ``kvopt verify`` does.

    Exit status: 0 feasible, 1 not feasible or another objective than it claims, 2 unreadable
    or not for this instance.
    """
    if schedule is None:
        verify_command(file=problem.file, json=json, budget=None, jobs=1, naive=False, proved=False)
        return
    instance = problem.read()
    summary = None
    try:
        made = read_schedule(schedule, instance)
        check = made.check()
        found: dict[str, Any] = {name: getattr(check, name) for name in _SAID}
        pauses = made.pauses
        paused = f", {common.counted(pauses, 'pause')} with tokens kept" if pauses else ""
        summary = (
            f"{'feasible' if check.feasible else 'not feasible'}: total latency "
            f"{check.objective:,}, peak memory {check.peak_memory:,} of {instance.memory:,} at "
            f"time {check.peak_time:,}, makespan {check.makespan:,}{paused}"
        )
    except FalseClaim as error:
        found = {"feasible": False, "violations": [str(error)]}
    if json:
        common.print_json(found)
    else:
        print(*found["violations"], *filter(None, [summary]), sep="\n")
    common.finish(status=common.FAILED * (not found["feasible"]))
