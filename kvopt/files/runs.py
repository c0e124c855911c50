"""Runs of real servers: ``kvopt.run/1``, which holds the instance that it is a run of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kvopt.errors import FalseClaim, InvalidInput, shown
from kvopt.files.atomic import write_atomically
from kvopt.files.instances import instance_from_json, instance_to_json
from kvopt.files.reading import (
    blamed_on,
    check_fields,
    is_standard_input,
    open_text,
    parse_json,
    read_text,
)
from kvopt.model.blocks import block_overflow
from kvopt.model.instance import Instance
from kvopt.model.pausing import PausedSchedule
from kvopt.model.requests import checked_integer

SCHEMA = "kvopt.run/1"

_NEEDED = dict.fromkeys(("schema", "policy", "value", "block", "segments", "instance")).keys()


@dataclass(frozen=True)
class RecordedRun:
    """What a server did with requests, in rounds; checked in integers when it is made.

    Parameters
    ----------
    policy
        The engine and its policy.
    schedule
        When each request yielded its tokens.
    block
        Tokens of a block; the memory of the instance is given out in whole blocks.
    notes
        What else is known: the limits of the server, how much was left out.
    """

    policy: str
    schedule: PausedSchedule
    block: int = 1
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checked_integer(self.block, "block", 1)
        try:
            json.dumps(dict(self.notes), allow_nan=False)
        except (TypeError, ValueError):
            raise InvalidInput("holds what no JSON file can carry", field="notes") from None
        check, requests = self.schedule.check(), self.instance.requests
        for request, segments in zip(requests, self.schedule.segments, strict=True):
            if segments[0][0] <= request.arrival:
                reason = f"yields a token in round {segments[0][0]}, arrives at {request.arrival}"
                raise InvalidInput(reason, request=repr(request.id))
        found = block_overflow(self.schedule, self.block)
        if found is not None:
            time, needed, i = found
            reason = f"takes a block in round {time}, where {needed} are needed"
            reason += f"; memory has {self.instance.memory // self.block}"
            raise InvalidInput(reason, request=repr(requests[i].id))
        if not check.feasible:
            raise InvalidInput(check.violations[0])

    @property
    def instance(self) -> Instance:
        """The requests."""
        return self.schedule.instance


def write_run(run: RecordedRun, path: str | Path) -> None:
    """Write a run with its instance, a request a line."""
    top = {
        "schema": SCHEMA,
        "policy": run.policy,
        "value": run.schedule.objective,
        "block": run.block,
        "notes": dict(run.notes),
    }
    segments = ",\n".join(map(json.dumps, run.schedule.segments))
    instance = instance_to_json(run.instance)
    rows = ",\n".join(map(json.dumps, instance.pop("requests")))
    text = f'{json.dumps(top)[:-1]}, "segments": [\n{segments}\n],\n"instance": '
    write_atomically(path, f'{text}{json.dumps(instance)[:-1]}, "requests": [\n{rows}\n]}}}}\n')


def is_run(path: str | Path) -> bool:
    """Whether a file is a run, by how it begins; what is piped is not looked at."""
    if is_standard_input(path):
        return False
    with open_text(path, "replace") as file:
        return '"kvopt.run/' in file.read(99)


def read_run(path: str | Path) -> RecordedRun:
    """Read a run and check it: arrivals, one token a round, memory in tokens and in blocks.

    Raises
    ------
    InvalidInput
        With the request at fault.
    FalseClaim
        Where the value is not what the segments give.
    """
    with blamed_on(path):
        top = check_fields(parse_json(read_text(path)), "run", _NEEDED, ("notes",), SCHEMA)
        for name, kind in (("policy", str), ("segments", list), ("notes", dict)):
            if not isinstance(top.get(name, kind()), kind):
                reason = f"must be {'text' if kind is str else f'a {kind.__name__}'}"
                raise InvalidInput(f"{reason}, got {shown(top[name])}", field=name)
        schedule = PausedSchedule(instance_from_json(top["instance"]), top["segments"])
        found = RecordedRun(top["policy"], schedule, top["block"], top.get("notes", {}))
        if type(top["value"]) is not int or top["value"] != schedule.objective:
            reason = f"says {shown(top['value'])}, the segments give {schedule.objective}"
            raise FalseClaim(reason, field="value")
        return found
