"""``kvopt fleet``: how many machines a target takes."""

from __future__ import annotations

import json as json_of
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kvopt.cli import common
from kvopt.cli.common import option
from kvopt.cli.messages import command_line
from kvopt.cli.outputs import try_folder
from kvopt.errors import InvalidInput, MissingPackage, shown
from kvopt.files.atomic import write_atomically
from kvopt.problem.deadlines import Deadline
from kvopt.problem.instance import MOST_WORKERS
from kvopt.problem.scopes import Scope

if TYPE_CHECKING:
    from kvopt.experiments.fleets.sizes import Band, FleetSizes

_COUNTS = re.compile(r"([0-9]{1,6})(?:\.\.([0-9]{1,6}))?")
_MOST_COUNTS = 1000
"""Limit of the numbers of machines: a mistyped range should not run for days."""


@dataclass(frozen=True)
class TargetOptions:
    """The target to reach."""

    match: str | None = option(
        "--match",
        "Do as well as this scheduler, behind the first --router on --workers machines.",
        "NAME[:KEY=VALUE,...]",
        names="policies",
    )
    target: str | None = option(
        "--target",
        "In its place: mean=100 in rounds, mean=5s, or misses=1% of a --deadline.",
        "mean=T|misses=P%",
    )
    deadline: str | None = common.DEADLINE


@dataclass(frozen=True)
class TriedOptions:
    """Numbers of machines to try, and for how long."""

    router: list[str] | None = option(
        "--router",
        "How requests come to workers, one of {routers}; may be given several times.",
        "NAME[:KEY=VALUE,...]",
        names="routers",
    )
    policy: list[str] | None = common.policies(
        "A scheduler to try; may be given several times; default: svf."
    )
    counts: str | None = option(
        "--counts", "Numbers of machines: 1..12, or 2,4,8; default: as needed.", "RANGE"
    )
    time_limit: float = option(
        "--time-limit -t",
        "Seconds for bounds and schedules of each number of machines.",
        "S",
        min=0,
        default=10.0,
    )
    threads: int | None = common.THREADS
    scope: Scope | None = common.COVERS


def fleet_command(
    *,
    problem: common.InstanceOptions,
    timing: common.ClockOptions,
    aims: TargetOptions,
    tried: TriedOptions,
    out: Path | None = option(
        "--out", "Write certificates, picture and JSON; existing ones count.", "DIR"
    ),
    json: bool = common.JSON,
    _modules: list[str] | None = common.MODULES,
) -> None:
    """Find out how many machines are needed, with a proof for each number that is too few.

    For each number of machines, each with a cache of M tokens, it bounds the mean latency, or how
    many requests miss a deadline, from both sides: no covered schedule is below the lower
    end, and a known schedule reaches the upper one.  Ctrl-C keeps the results; the same
    command with the same --out continues.
    """
    from kvopt.experiments.fleets.running import FleetMatch, fleet_sizes, routers_of

    if (aims.match is None) == (aims.target is None):
        raise InvalidInput("give --match or --target, one of them", field="options")
    if aims.match is None and problem.workers is not None:
        raise InvalidInput(
            "goes with --match; --counts names the machines to try", field="--workers"
        )
    counts = None if tried.counts is None else _parsed(tried.counts)
    clock = timing.clock()
    deadline = None if aims.deadline is None else Deadline.parse(aims.deadline)
    if out is not None:
        try_folder(out)
    common.warn_oversubscription(tried.threads)
    instance = problem.read()
    if deadline is not None:
        with common.blamed_on(problem.file):
            deadline.allowed(instance, rounds=clock.is_even)
    timing.say_assumed()
    ways = tried.router or []
    aim: str | FleetMatch = aims.target or ""
    if aims.match is not None:
        aim = FleetMatch(aims.match, (ways or routers_of(aims.match)[-1:])[0], instance.workers)
        ways = ways[1:] and ways
    quiet = json or not common.is_watched()
    with common.undisturbed(), common.blamed_on(problem.file):
        found = fleet_sizes(
            instance, aim, policies=tried.policy or (), routers=ways, deadline=deadline,
            counts=counts, clock=clock, time_limit=tried.time_limit, threads=tried.threads, out=out,
            scope=tried.scope,
            observer=common.detail if quiet else common.say, command=command_line(),
        )  # fmt: skip
        if json:
            common.print_json(found.to_json())
        else:
            _print(found)
        if out is not None:  # last: a full disk must not lose the answer
            _write(found, out)
    common.finish(found.signal_number)


def _parsed(text: str) -> list[int]:
    """Return the numbers of ``1..12`` or ``2,4,8``."""
    found: set[int] = set()
    for part in text.split(","):
        match = _COUNTS.fullmatch(part.strip())
        if match is None:
            raise InvalidInput(f"must be 1..12 or 2,4,8, got {shown(text)}", field="--counts")
        first = int(match[1])
        last = first if match[2] is None else int(match[2])
        if not 1 <= first <= last <= MOST_WORKERS:
            reason = f"must rise from 1 at least to {MOST_WORKERS:,} at most, got {shown(text)}"
            raise InvalidInput(reason, field="--counts")
        if len(found) + last - first >= _MOST_COUNTS:
            raise InvalidInput(f"has more than {_MOST_COUNTS:,} numbers", field="--counts")
        found.update(range(first, last + 1))
    return sorted(found)


def _write(found: FleetSizes, out: Path) -> None:
    """Write the answer and its picture next to the certificates."""
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / "fleet.json", json_of.dumps(found.to_json(), indent=1) + "\n")
    try:
        from kvopt.show import plots
    except MissingPackage as error:
        common.say(f"kvopt: no picture: {error}")
    else:
        figure = found.plot()
        for suffix in ("svg", "png"):
            plots.save(figure, out / f"fleet.{suffix}")
    common.say(f"kvopt: wrote {out}: a certificate of each number of machines, picture, JSON")


def _print(found: FleetSizes) -> None:
    print(found.answer)
    measure = found.measure
    print(f"target: {measure.said(found.target)}")
    rows = [
        {
            "machines": band.workers,
            f"{measure.name} at least": measure.worded(band.lower, up=False),
            "at most": measure.worded(band.upper, up=True),
            "found by": band.found_by,
            "target": _verdict(found, band),
            **{label: measure.worded(band.runs.get(label), up=True) for label in found.labels},
        }
        for band in found.bands
    ]
    if rows:
        common.print_rows(rows, ("found by",), (*reversed(found.labels), "found by"))
    common.say(found.scope.sentence)
    if found.left:
        common.say(f"kvopt: not looked at: {', '.join(map(str, found.left))} machines")


def _verdict(found: FleetSizes, band: Band) -> str:
    if found.is_impossible(band):
        return "impossible"
    return "reached" if found.is_reached(band) else "open"
