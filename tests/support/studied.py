"""What the tests of studies share: records made by hand, tiny studies, policies that misbehave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import kvopt
from kvopt.files.reading import read_text
from kvopt.studies.record_lines import Record, StudiedInstance, read_records, record_key

TINY = """
name = "tiny"
policies = ["mc-sf", "fcfs"]

[limits]
time_limit = 60

[[instances]]
family = "geometric"
n = 5
draws = {draws}
memory = {memory}
parameters = {{ u = {u} }}
"""

_IMPORTS = """import os
import time
from dataclasses import dataclass
from kvopt import Policy, register
"""
_BAD = """
@register
@dataclass
class {title}(Policy):
    name = "{name}"
    source = "a test"

    def admit(self, view):
        {body}

    def wake(self, view):
        return view.now + 1
"""
_BODIES = {
    "throws": 'raise RuntimeError("on purpose")',
    "hangs": "while True: pass",
    "dawdles": "time.sleep(0.3); return ()",
    "lies": "return [10**6]",
    "overfills": "return range(len(view.prompts))",
    "mumbles": 'return "nonsense"',
    "exits": "os._exit(7)",
}
"""What each policy does when it may start requests."""
BAD_POLICIES = _IMPORTS + "".join(
    _BAD.format(title=name.title(), name=name, body=body) for name, body in _BODIES.items()
)


def tiny(path: Path, draws: int = 6, *, narrow: bool = False) -> Path:
    """Write the description of a study whose instances take hundredths of a second.

    In a narrow cache requests have to wait, and the work needs what takes a second to load.
    """
    memory, u = (12, 6) if narrow else (300, 40)
    path.write_text(TINY.format(draws=draws, memory=memory, u=u))
    return path


def record(
    number: int = 0, policy: str | None = "mc-sf", value: int | None = 28, **fields: Any
) -> Record:
    """Return a record of a made-up instance, whose hash says its number."""
    instance: dict[str, Any] = {
        "name": f"instance {number}",
        "family": "arrival-1",
        "parameters": {"n": 4},
        "seed": number,
        "requests": 4,
        "memory": 9,
        "hash": f"sha256:{number}",
    }
    instance |= {name: fields.pop(name) for name in set(fields) & set(instance)}
    limits = {"time_limit": 60.0, "threads": 1}
    content: dict[str, Any] = {
        "key": record_key(instance["hash"], policy, limits, "1"),
        "study": "test",
        "limits": limits,
        "outcome": "livelock" if value is None else "completed",
        "upper": 27,
        "lower": 27,
        "certificate": f"certificates/{number}.json",
    }
    made = StudiedInstance(**instance)
    return Record(instance=made, policy=policy, value=value, **(content | fields))


def certified(folder: Path) -> list[tuple[Record, Any]]:
    """Return the records of a study, which say what their valid certificates say, with these."""
    records = read_records(folder)
    assert len({record.key for record in records}) == len(records)
    contents = {}
    for name in {record.certificate for record in records}:
        assert name is not None
        assert kvopt.verify(folder / name).valid
        contents[name] = json.loads(read_text(folder / name))
    for record in records:
        content = contents[str(record.certificate)]
        (judged,) = (run for run in content["policies"] if run["policy"] == record.policy)
        sides = [content[side] and content[side]["value"] for side in ("upper", "lower")]
        assert [record.instance.hash, record.value] == [content["hash"], judged["value"]]
        assert [record.upper, record.lower] == sides
    return [(record, contents[str(record.certificate)]) for record in records]
