"""``kvopt fleet``: how many machines a target takes."""

from __future__ import annotations

import json as json_of
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvopt.cli import common
from kvopt.cli.common import blamed_on, option, refuse
from kvopt.cli.printing import command_line, detail, is_watched, say, show, table, try_folder
from kvopt.errors import InvalidInput, MissingPackage, shown
from kvopt.files.atomic import write_atomically
from kvopt.problem.instance import MAX_WORKERS

if TYPE_CHECKING:
    from kvopt.fleets.over_time import FleetOverTime
    from kvopt.fleets.sizes import FleetSizes

_COUNTS = re.compile(r"([0-9]{1,6})(?:\.\.([0-9]{1,6}))?")
_MAX_COUNTS = 1000
"""Limit of the numbers of machines: a mistyped range should not run for days."""


@dataclass(frozen=True, kw_only=True)
class FleetOptions:
    """The target, the numbers of machines to try for how long, and whether they may change."""

    match: str | None = option(
        "Do as well as this scheduler, behind the first --router on --workers machines.",
        common.NAMED,
        names="policies",
    )
    target: str | None = option("In its place: mean=100 in rounds, or mean=5s.", "mean=T")
    attain: str | None = option(
        "In its place: share of the requests that shall attain --slo.", "P%"
    )
    slo: common.ServiceLevel
    router: list[str] | None = option(
        "How requests come to workers, one of {routers}; may be given several times.", common.NAMED
    )
    policy: list[str] | None = common.policies(
        "A scheduler to try; may be given several times; default: svf, with --every slo."
    )
    counts: str | None = option(
        "Numbers of machines: 1..12, or 2,4,8; default: as needed.", "RANGE"
    )
    time_limit: float = option(
        "Seconds for bounds and schedules of each number of machines.", "S", "-t", 10.0, min=0
    )
    threads: common.Threads
    scope: common.CoveredScope
    gpus: int | None = option(
        "GPUs of a machine, for numbers of GPUs; default: as --batch-time says.", "N", min=1
    )
    every: str | None = option(
        "Numbers of machines change only every 10m, 1h, or so many rounds: both sides of each "
        "window, with --attain.",
        "TIME",
    )
    start_up: str | None = option(
        "With --every: what a machine takes until it serves, in schedules; bounds take 0.", "TIME"
    )


def fleet_command(
    *,
    problem: common.InstanceOptions,
    timing: common.ClockOptions,
    how: FleetOptions,
    out: Path | None = option("Write certificates, picture and JSON; existing ones count.", "DIR"),
    _json: common.Json,
    _modules: common.Modules,
) -> None:
    """Find out how many machines are needed, with a proof for each number that is too few.

    For each number of machines, each with a cache of M tokens, it bounds the mean latency, or how
    many requests miss a service level, from both sides: no covered schedule is below the lower
    end, and a known schedule reaches the upper one.  Ctrl-C keeps the results; the same
    command with the same --out continues.
    """
    from kvopt.fleets.evaluating import FleetMatch, fleet_sizes, routers_of
    from kvopt.fleets.scaling import fleet_over_time

    every, start_up, match = how.every, how.start_up, how.match
    refuse("--start-up", "goes with --every", every is None and start_up is not None)
    only = "--every needs --attain 99% with --slo, and has no --match, --target or --counts"
    others = any((match, how.target, how.counts))
    refuse("options", only, every is not None and (how.attain is None or others))
    exclusive = [match, how.target, how.attain]
    refuse("options", "give --match, --target or --attain, one of them", exclusive.count(None) != 2)
    no_match = "goes with --match; --counts names the machines to try"
    refuse("--workers", no_match, match is None and problem.workers is not None)
    counts = None if how.counts is None else _parsed(how.counts)
    clock = timing.clock()
    if out is not None:
        try_folder(out)
    instance = problem.read()
    timing.check(problem.file, instance, how.slo)
    ways, aim = how.router or [], None
    if match is not None:
        aim = FleetMatch(match, (ways or routers_of(match)[-1:])[0], instance.workers)
        ways = ways[1:] and ways
    names = "attain", "slo", "time_limit", "threads", "scope", "gpus"
    shared: dict[str, Any] = {
        **{name: getattr(how, name) for name in names},
        "policies": how.policy or (),
        "routers": ways,
        "clock": clock,
        "out": out,
        "observer": say if is_watched() else detail,
        "command": command_line(),
    }
    result: FleetSizes | FleetOverTime
    with common.undisturbed(), blamed_on(problem.file):
        if every is not None:
            result = day = fleet_over_time(instance, every, start_up=start_up, **shared)
            show(day.to_json(), _window_lines(day))
        else:
            result = sizes = fleet_sizes(instance, aim or how.target, counts=counts, **shared)
            show(sizes.to_json(), _size_lines(sizes))
        if out is not None:  # last: a full disk must not lose the answer
            _write(result, out, "fleet" if every is None else "every")
    common.finish(result.signal_number)


def _parsed(text: str) -> list[int]:
    """Return the numbers of ``1..12`` or ``2,4,8``."""
    counts: set[int] = set()
    for part in text.split(","):
        match = _COUNTS.fullmatch(part.strip())
        if match is None:
            raise InvalidInput(f"must be 1..12 or 2,4,8, got {shown(text)}", field="--counts")
        first = int(match[1])
        last = first if match[2] is None else int(match[2])
        reason = f"must rise from 1 at least to {MAX_WORKERS:,} at most, got {shown(text)}"
        refuse("--counts", reason, not 1 <= first <= last <= MAX_WORKERS)
        is_long = len(counts) + last - first >= _MAX_COUNTS
        refuse("--counts", f"has more than {_MAX_COUNTS:,} numbers", is_long)
        counts.update(range(first, last + 1))
    return sorted(counts)


def _write(result: FleetSizes | FleetOverTime, out: Path, name: str) -> None:
    """Write the answer and its picture next to the certificates."""
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / f"{name}.json", json_of.dumps(result.to_json(), indent=1) + "\n")
    try:
        from kvopt.show import plots
    except MissingPackage as error:
        say(f"kvopt: no picture: {error}")
    else:
        figure = result.plot()
        for suffix in ("svg", "png"):
            plots.save(figure, out / f"{name}.{suffix}")
    proofs = "a certificate of each number of machines"
    proofs = proofs if name == "fleet" else "certificates of proved numbers above 1"
    say(f"wrote {out}: {proofs}, picture, JSON")


def _window_lines(over_time: FleetOverTime) -> Iterator[str]:
    yield over_time.answer
    scale = over_time.problem.problem.clock.scale
    unit = "round" if over_time.problem.problem.clock.is_even else "s"
    rows = [
        {
            f"from {unit}": f"{window.begin / scale:,.12g}",
            "arrivals": window.arrivals,
            "formula": window.formula,
            "proved": window.proved,
            "sufficient": window.sufficient,
            "misses": window.misses,
            "allowed": window.allowed,
        }
        for window in over_time.windows
    ]
    yield from table(rows)
    sums = {
        f"{over_time.unit}": "sum",
        "formula": over_time.worded(over_time.formula, up=True),
        "proved": over_time.worded(over_time.proved, up=False),
        "whenever they change": over_time.worded(over_time.machine_time, up=False),
        "sufficient": over_time.worded(over_time.sufficient, up=True),
    }
    yield from table([sums])
    say(over_time.problem.problem.scope.sentence)
    if over_time.left:
        say(f"kvopt: not looked at: windows {', '.join(map(str, over_time.left))}")


def _size_lines(sizes: FleetSizes) -> Iterator[str]:
    measure = sizes.measure
    yield sizes.answer
    yield f"target: {measure.sentence(sizes.target)}"
    rows = [
        {
            "machines": band.workers,
            f"{measure.name} at least": measure.worded(band.lower, up=False),
            "at most": measure.worded(band.upper, up=True),
            "found by": band.found_by,
            "target": "impossible"
            if sizes.is_impossible(band)
            else "reached"
            if sizes.is_reached(band)
            else "open",
            **{label: measure.worded(band.runs.get(label), up=True) for label in sizes.labels},
        }
        for band in sizes.bands
    ]
    yield from table(rows)
    say(sizes.scope.sentence)
    if sizes.left:
        say(f"kvopt: not looked at: {', '.join(map(str, sizes.left))} machines")
