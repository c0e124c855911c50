"""Schedule files, in the second schema with pauses or of fleets, and solvers' solutions."""

from __future__ import annotations

import json
from pathlib import Path

from kvopt.errors import FalseClaim, InvalidInput, shown
from kvopt.files.atomic import write_atomically
from kvopt.files.reading import blamed_on, check_fields, parse_json, read_text
from kvopt.problem.instance import Instance
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.solution_files import is_solution, schedule_of_solution

SCHEMA = "kvopt.schedule/1"
NEWER_SCHEMA = "kvopt.schedule/2"

_OPTIONAL = ("instance", "objective")


def read_schedule(path: str | Path, instance: Instance) -> Schedule:
    """Read a schedule for ``instance``: JSON, or what HiGHS, SCIP or Gurobi wrote.

    Of a solver it is the solution of the time-indexed model that `export` writes, known by how the
    file begins.  A file that names another instance by its hash is refused, and one whose objective
    is not what its starts give raises `FalseClaim`, as do starts that are not those of the segments
    beside them.  Feasibility is left to ``Schedule.check``: an infeasible schedule is a thing one
    may want to look at.
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

    Only one that pauses, or that is for a fleet, has the second schema.
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
    said = value if isinstance(value, dict) else {}
    is_newer = said.get("schema") == NEWER_SCHEMA or "segments" in said
    kept = "segments" if is_newer and ("segments" in said or "workers" not in said) else "starts"
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
    for name, found in claims:
        claimed = top.get(name, found)
        if type(claimed) is not type(found) or claimed != found:
            reason = f"says {shown(claimed)}, the {kept} give {shown(found)}"
            raise FalseClaim(reason, field=name)
    return schedule
