"""Schedule files, in the second schema with pauses or of fleets, and solvers' solutions.

These are files of HiGHS, SCIP and Gurobi for the exported model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from math import nan
from pathlib import Path
from typing import NamedTuple

from kvopt.errors import FalseClaim, InvalidInput, shown
from kvopt.files.atomic import write_atomically
from kvopt.files.reading import blamed_on, check_fields, parse_json, read_text
from kvopt.problem.instance import Instance
from kvopt.timetable.schedule import Schedule

SCHEMA = "kvopt.schedule/1"
NEWER_SCHEMA = "kvopt.schedule/2"

_OPTIONAL = ("instance", "objective")

INTEGRALITY = 1e-3
"""Tolerance of a solver's 0 or 1; by default solvers keep to a hundredth of it."""

_SAFE = re.compile(r"[A-Za-z0-9_]{1,40}", re.ASCII)
_COLUMN = re.compile(r"x_(\w+)_(\d{1,18})", re.ASCII)
_FLEET_COLUMN = re.compile(r"x_(\w+)_(\d{1,18})_(\d{1,9})", re.ASCII)
_HIGHS = "model status"
_FIRST = re.compile(
    rf"{_HIGHS}$|solution status:|objective value:|no solution available|#|[xy]_\w+_\d+\s",
    re.I | re.M,
)
"""Begins of files: of HiGHS, of SCIP (three ways), of Gurobi; or a bare column."""
_OBJECTIVE = re.compile(r"\s*(?:# )?objective(?: value)?\s*[:=]?\s+(\S+)\s*$", re.I | re.M)


def read_schedule(path: str | Path, instance: Instance) -> Schedule:
    """Read a schedule for ``instance``: JSON, or a solution file of HiGHS, SCIP or Gurobi.

    A solution file is for the time-indexed model of `export`, and is recognised by its begin.  A
    file with the hash of another instance is refused.  One whose objective differs from that of its
    starts raises `FalseClaim`, as do starts that differ from the segments in the same file.
    ``Schedule.check`` tests feasibility: infeasible schedules can be read.
    """
    with blamed_on(path):
        text = read_text(path)
        if is_solution(text):
            return schedule_of_solution(text, instance)
        if text.lstrip()[:1] not in ("{", "["):
            solvers = "a solution of HiGHS (in its raw style), SCIP or Gurobi"
            raise InvalidInput(f"is neither JSON nor {solvers}")
        return _schedule(parse_json(text), instance)


def write_schedule(schedule: Schedule, path: str | Path) -> None:
    """Write a schedule in rounds with the hash of its instance and its objective.

    Schedules with pauses or for a fleet have the second schema.
    """
    content: dict[str, object] = {
        "schema": SCHEMA,
        "instance": schedule.instance.hash,
        "objective": schedule.objective,
    }
    if schedule.pauses:
        content |= {"schema": NEWER_SCHEMA, "segments": schedule.segments}
    else:
        content["starts"] = schedule.starts
    if schedule.instance.workers > 1:
        content |= {"schema": NEWER_SCHEMA, "workers": schedule.workers}
    write_atomically(path, json.dumps(content) + "\n")


def _schedule(value: object, instance: Instance) -> Schedule:
    """Return the schedule of a file, if it is for the instance and its claims are true."""
    raw = value if isinstance(value, dict) else {}
    is_newer = raw.get("schema") == NEWER_SCHEMA or "segments" in raw
    kept = "segments" if is_newer and ("segments" in raw or "workers" not in raw) else "starts"
    needed, more = ("schema", kept), ("starts", "workers") if is_newer else ()
    schema = NEWER_SCHEMA if is_newer else SCHEMA
    top = check_fields(value, "schedule", needed, (*_OPTIONAL, *more), schema)
    if "instance" in top and top["instance"] != instance.hash:
        reason = f"is {shown(top['instance'], 80)}, this instance is {instance.hash}"
        raise InvalidInput(reason, field="instance")
    for name in {kept, "workers"} & {*top}:
        if not isinstance(top[name], list):
            raise InvalidInput(f"must be a list, got {shown(top[name])}", field=name)
    schedule = Schedule(instance, workers=top.get("workers", ()), **{kept: top[kept]})
    claims = [("objective", schedule.objective)]
    if kept == "segments":
        claims.append(("starts", list(schedule.begins)))
    for name, actual in claims:
        claimed = top.get(name, actual)
        if type(claimed) is not type(actual) or claimed != actual:
            reason = f"says {shown(claimed)}, the {kept} give {shown(actual)}"
            raise FalseClaim(reason, field=name)
    return schedule


# ---- solutions ------------------------------------------------------------------------------


class _Column(NamedTuple):
    """A column with its value and its line."""

    line: int
    name: str
    value: str


def request_labels(instance: Instance) -> list[str]:
    """Return a name for each request that every file format can carry.

    The ids themselves if all of them are plain, else ``r0, r1, ...`` by position.
    """
    ids = [request.id or "" for request in instance]
    plain = all(map(_SAFE.fullmatch, ids))
    return ids if plain else [f"r{position}" for position in range(len(ids))]


def is_solution(text: str) -> bool:
    """Whether a text begins as the solution file of a solver does.

    Examples
    --------
    >>> is_solution("# Objective value = 12"), is_solution('{"schema": "kvopt.schedule/1"}')
    (True, False)
    """
    return _FIRST.match(text.lstrip()) is not None


def schedule_of_solution(text: str, instance: Instance) -> Schedule:
    r"""Return the schedule of a solution of the exported time-indexed model.

    A solution with a value between 0 and 1, with a column of another instance, or without
    exactly one start for each request is refused; one whose objective differs from that of the
    starts raises `FalseClaim`.

    Examples
    --------
    >>> from kvopt import Instance, Request
    >>> instance = Instance(memory=7, requests=[Request(0, 1, 2), Request(0, 3, 4)])
    >>> schedule_of_solution("# Objective value = 8\nx_r0_0 1\nx_r1_2 0.99999", instance).starts
    (0, 2)
    """
    positions = {label: position for position, label in enumerate(request_labels(instance))}
    chosen: dict[int, tuple[int, int, str]] = {}
    for column in _columns(text):
        position, start, worker = _meaning(column, positions, instance.workers)
        if not _is_one(column):
            continue
        if position in chosen:
            reason = f"starts twice: {chosen[position][2]} and {column.name} are 1"
            raise InvalidInput(reason, request=repr(instance.requests[position].id))
        chosen[position] = start, worker, column.name
    for position, request in enumerate(instance):
        if position not in chosen:
            raise InvalidInput("has no start: no column of it is 1", request=repr(request.id))
    rows = [chosen[position] for position in range(len(instance))]
    schedule = Schedule(instance, [start for start, *_ in rows], [worker for _, worker, _ in rows])
    _check_objective(text, schedule)
    return schedule


def _columns(text: str) -> Iterator[_Column]:
    """Yield the columns with their values, from any solver."""
    lines = [line.strip() for line in text.splitlines()]
    first = next(filter(None, lines), "").lower()
    places = _places_of_highs(lines) if first == _HIGHS else range(len(lines))
    for place in places:
        line, words = lines[place], lines[place].split()
        if line.lower().startswith("no solution"):
            raise InvalidInput("holds no schedule: the solver found none")
        if not line or line.startswith(("#", "solution status:", "objective value:")):
            continue
        if len(words) < 2:
            reason = f"must be a column and its value, got {shown(line)}"
            raise InvalidInput(reason, field=f"line {place + 1}")
        yield _Column(place + 1, words[0], words[1])


def _places_of_highs(lines: list[str]) -> range:
    """Return the lines with the columns of HiGHS; later lines have the names of rows."""
    heads: dict[str, int] = {}  # without their last words: the begin of the next section
    for place, line in enumerate(lines, 1):
        heads.setdefault(line.rpartition(" ")[0], place)
    primal = heads.get("# Primal solution", len(lines))
    state = [*lines, "None"][primal]
    if state != "Feasible":
        status = next(filter(None, lines[1:]), "nothing")
        raise InvalidInput(f"holds no schedule: HiGHS says {shown(status)}, solution {state}")
    if (first := heads.get("# Columns")) is not None:
        count = lines[first - 1].split()[2].lstrip("-")
        if count.isdecimal() and first + int(count) <= len(lines):
            return range(first, first + int(count))
    raise InvalidInput("breaks off before its last column")


def _meaning(column: _Column, positions: dict[str, int], workers: int) -> tuple[int, int, int]:
    """Return the position of the request, the round and the worker that a column names."""
    match = (_COLUMN if workers == 1 else _FLEET_COLUMN).fullmatch(column.name)
    position = positions.get(match[1]) if match else None
    worker = int(match[3]) if match and workers > 1 else 0
    if match is not None and position is not None and worker < workers:
        return position, int(match[2]), worker
    reason = "is no column of this instance, as kvopt export names them"
    raise InvalidInput(f"{shown(column.name)} {reason}", field=f"line {column.line}")


def _is_one(column: _Column) -> bool:
    """Whether a column is 1 within tolerance; refuse a value that is neither 0 nor 1."""
    value = _number(column.value)
    if min(abs(value), abs(value - 1.0)) <= INTEGRALITY:
        return value > 0.5
    reason = f"{column.name} is {shown(column.value)}, neither 0 nor 1"
    if 0 < value < 1:
        reason += ": a relaxed model gives no schedule"
    raise InvalidInput(reason, field=f"line {column.line}")


def _number(text: str) -> float:
    """Return the number of a text, NaN if it is not a number."""
    try:
        return float(text)
    except ValueError:
        return nan


def _check_objective(text: str, schedule: Schedule) -> None:
    """Refuse a file whose own objective differs from that of its starts."""
    match = _OBJECTIVE.search(text)
    if match is None:
        return
    if not abs(_number(match[1]) - schedule.objective) <= 0.5 + 1e-6 * schedule.objective:
        reason = f"says {shown(match[1])}, the starts give {schedule.objective} in this instance"
        raise FalseClaim(reason, field="objective")
