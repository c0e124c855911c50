"""What the tests of studies share: records made by hand, tiny studies, policies that misbehave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kvopt.studies.records import Record, StudiedInstance, record_key

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

BAD_POLICIES = """
import os
import time
from dataclasses import dataclass

from kvopt import Policy, register


class Bad(Policy):
    source = "a test"


@register
@dataclass
class Throws(Bad):
    name = "throws"

    def admit(self, view):
        raise RuntimeError("on purpose")


@register
@dataclass
class Hangs(Bad):
    name = "hangs"

    def admit(self, view):
        while True:
            pass


@register
@dataclass
class Dawdles(Bad):
    name = "dawdles"

    def admit(self, view):
        time.sleep(0.3)
        return ()

    def wake(self, view):
        return view.now + 1


@register
@dataclass
class Lies(Bad):
    name = "lies"

    def admit(self, view):
        return [10**6]


@register
@dataclass
class Overfills(Bad):
    name = "overfills"

    def admit(self, view):
        return range(len(view.prompts))


@register
@dataclass
class Mumbles(Bad):
    name = "mumbles"

    def admit(self, view):
        return "nonsense"


@register
@dataclass
class Exits(Bad):
    name = "exits"

    def admit(self, view):
        os._exit(7)
"""


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
