"""Schedule files: ``kvopt.schedule/1``."""

from __future__ import annotations

import json
from pathlib import Path

from kvopt.errors import FalseClaim, InvalidInput, shown
from kvopt.files.atomic import write_atomically
from kvopt.files.reading import check_fields, name_of, parse_json, read_text
from kvopt.model.instance import Instance
from kvopt.model.schedule import Schedule

SCHEMA = "kvopt.schedule/1"

_NEEDED = dict.fromkeys(("schema", "starts")).keys()
_OPTIONAL = {"instance", "objective"}


def read_schedule(path: str | Path, instance: Instance) -> Schedule:
    """Read a schedule for ``instance``.

    A file that names another instance by its hash is refused, and one whose objective
    is not what its starts give raises `FalseClaim`.  Feasibility is left to ``Schedule.check``:
    an infeasible schedule is a thing one may want to look at.
    """
    try:
        value = parse_json(read_text(path))
        top = check_fields(value, "schedule", _NEEDED, _OPTIONAL, SCHEMA)
        if "instance" in top and top["instance"] != instance.hash:
            reason = f"is {shown(top['instance'], 80)}, this instance is {instance.hash}"
            raise InvalidInput(reason, field="instance")
        if not isinstance(top["starts"], list):
            raise InvalidInput(f"must be a list, got {shown(top['starts'])}", field="starts")
        schedule = Schedule(instance, top["starts"])
        claimed = top.get("objective", schedule.objective)
        if type(claimed) is not int or claimed != schedule.objective:
            reason = f"says {shown(claimed)}, the starts give {schedule.objective}"
            raise FalseClaim(reason, field="objective")
        return schedule
    except InvalidInput as error:
        raise error.located(file=name_of(path)) from None


def write_schedule(schedule: Schedule, path: str | Path) -> None:
    """Write a schedule with the hash of its instance and its objective."""
    content = {
        "schema": SCHEMA,
        "instance": schedule.instance.hash,
        "objective": schedule.objective,
        "starts": list(schedule.starts),
    }
    write_atomically(path, json.dumps(content) + "\n")
