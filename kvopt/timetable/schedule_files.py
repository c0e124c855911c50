"""Schedule files, in the second schema with pauses or of fleets, and solvers' solutions."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from kvopt.errors import FalseClaim, InvalidInput, shown
from kvopt.files.atomic import write_atomically
from kvopt.files.reading import blamed_on, check_fields, parse_json, read_text
from kvopt.problem.instance import Instance
from kvopt.timetable.pausing import PausedSchedule
from kvopt.timetable.schedule import Schedule, Timetable
from kvopt.timetable.solution_files import is_solution, schedule_of_solution

SCHEMA = "kvopt.schedule/1"
NEWER_SCHEMA = "kvopt.schedule/2"

_STARTS = dict.fromkeys(("schema", "starts")).keys()
_SEGMENTS = dict.fromkeys(("schema", "segments")).keys()
_OPTIONAL = ("instance", "objective")

Made = TypeVar("Made", bound=Timetable)


def read_schedule(path: str | Path, instance: Instance) -> Schedule:
    """Read a schedule for ``instance``: JSON, or what HiGHS, SCIP or Gurobi wrote.

    Of a solver it is the solution of the time-indexed model that `export` writes, known by how the
    file begins.  A file that names another instance by its hash is refused, and one whose objective
    is not what its starts give raises `FalseClaim`.  Feasibility is left to ``Schedule.check``:
    an infeasible schedule is a thing one may want to look at.
    """
    with blamed_on(path):
        return _of_text(read_text(path), instance)


def read_paused_schedule(path: str | Path, instance: Instance) -> PausedSchedule:
    """Read a schedule of either schema; as `read_schedule`, with segments for starts.

    Where starts stand beside them, they must be those of the segments.
    """
    with blamed_on(path):
        value = parse_json(read_text(path))
        if isinstance(value, dict) and value.get("schema") == SCHEMA:
            return PausedSchedule.of(_without_pauses(value, instance))
        return _with_pauses(value, instance)


def read_either_schedule(path: str | Path, instance: Instance) -> Schedule | PausedSchedule:
    """Read a schedule by what the file is: with pauses only in the second schema."""
    with blamed_on(path):
        text = read_text(path)
        if text.lstrip()[:1] == "{":
            value = parse_json(text)
            if isinstance(value, dict) and "segments" in value:
                return _with_pauses(value, instance)
        return _of_text(text, instance)


def write_schedule(schedule: Schedule | PausedSchedule, path: str | Path) -> None:
    """Write a schedule with the hash of its instance and its objective.

    Only one that pauses, or that is for a fleet, has the second schema.
    """
    content: dict[str, object] = {
        "schema": SCHEMA,
        "instance": schedule.instance.hash,
        "objective": schedule.objective,
    }
    if isinstance(schedule, PausedSchedule) and schedule.pauses:
        content |= {"schema": NEWER_SCHEMA, "segments": schedule.segments}
    else:
        content["starts"] = schedule.begins
    if isinstance(schedule, Schedule) and schedule.instance.workers > 1:
        content |= {"schema": NEWER_SCHEMA, "workers": schedule.workers}
    write_atomically(path, json.dumps(content) + "\n")


def _of_text(text: str, instance: Instance) -> Schedule:
    if is_solution(text):
        return schedule_of_solution(text, instance)
    if text.lstrip()[:1] not in ("{", "["):
        solvers = "a solution of HiGHS (in its raw style), SCIP or Gurobi"
        raise InvalidInput(f"is neither JSON nor {solvers}")
    return _without_pauses(parse_json(text), instance)


def _with_pauses(value: object, instance: Instance) -> PausedSchedule:
    optional = (*_OPTIONAL, "starts")
    top = check_fields(value, "schedule", _SEGMENTS, optional, NEWER_SCHEMA)
    schedule = _judged(top, "segments", instance, PausedSchedule)
    if "starts" in top and top["starts"] != (begins := list(schedule.begins)):
        reason = f"says {shown(top['starts'])}, the segments give {shown(begins)}"
        raise FalseClaim(reason, field="starts")
    return schedule


def _without_pauses(value: object, instance: Instance) -> Schedule:
    if isinstance(value, dict) and value.get("schema") == NEWER_SCHEMA and "workers" in value:
        top = check_fields(value, "schedule", _STARTS, (*_OPTIONAL, "workers"), NEWER_SCHEMA)
        if not isinstance(top["workers"], list):
            raise InvalidInput(f"must be a list, got {shown(top['workers'])}", field="workers")
    else:
        top = check_fields(value, "schedule", _STARTS, _OPTIONAL, SCHEMA)
    return _judged(top, "starts", instance, partial(Schedule, workers=top.get("workers")))


def _judged(
    top: dict[str, Any], field: str, instance: Instance, make: Callable[[Instance, Any], Made]
) -> Made:
    """Return the schedule of a file, if it is for the instance and its objective is true."""
    if "instance" in top and top["instance"] != instance.hash:
        reason = f"is {shown(top['instance'], 80)}, this instance is {instance.hash}"
        raise InvalidInput(reason, field="instance")
    if not isinstance(top[field], list):
        raise InvalidInput(f"must be a list, got {shown(top[field])}", field=field)
    schedule = make(instance, top[field])
    claimed = top.get("objective", schedule.objective)
    if type(claimed) is not int or claimed != schedule.objective:
        reason = f"says {shown(claimed)}, the {field} give {schedule.objective}"
        raise FalseClaim(reason, field="objective")
    return schedule
