"""Records of a study: one JSON object a line, appended and never changed.

A line has a digest of itself: a line that was half written or damaged later is reported and
ignored.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import numpy as np
from msgspec import ValidationError, convert

from kvopt import PolicyRun, Scope
from kvopt.errors import InvalidInput, refuse
from kvopt.files.reading import check_fields, parse_json
from kvopt.problem.batch_time import NANOSECONDS
from kvopt.problem.slo import allowed_misses
from kvopt.show.summary import ratio
from kvopt.timetable.waiting_times import summary

SCHEMA = "kvopt.study-record/1"
FILE = "records.jsonl"
COUNTS = ("left_out", "dropped", "unread")
"""Keys of an instance that a trace counted, not parameters; the last is of earlier records."""

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")

_WHERE_KNOWN = ("times", "note", "attained", "ceiling", "best_attained")
"""Fields that a line has only if they are known."""


class DamagedRecord(UserWarning):
    """A line of a record file is damaged, and ignored."""


@dataclass(frozen=True)
class StudiedInstance:
    """An instance and its source.

    Parameters
    ----------
    name, family, parameters, seed
        Source of the instance; ``seed`` is None if it was not drawn, ``family`` if a file does not
        name one.
    requests, memory
        Its size.
    hash
        Content hash of the instance.
    weight
        Sum of the weights of its requests; None in records of earlier releases, which have none.
    """

    name: str
    family: str | None
    parameters: Mapping[str, Any]
    seed: int | None
    requests: int
    memory: int
    hash: str
    weight: int | None = None

    def mean(self, total: int) -> Fraction:
        """Return a total latency as a mean, which counts a request as often as its weight."""
        return Fraction(total, max(self.weight or self.requests, 1))


@dataclass(frozen=True, kw_only=True)
class Record:
    """The run of one policy on one instance, with both sides of the optimum.

    Parameters
    ----------
    key
        Key of instance, policy, limits and version of kvopt; see `record_key`.
    study
        Name of the study.
    instance
        The instance.
    policy
        The policy as it was given; None for an instance that failed as a whole.
    limits
        Limits of the search for the optimum: ``time_limit``, ``threads``, ``seed``; in a study in
        seconds also its ``batch_time``, and a ``scope`` other than ``runs``.
    outcome
        ``completed``, ``livelock``, ``unfinished`` or ``error``.
    value, evictions, makespan, peak_memory
        Results of the policy's run; total latency is None unless completed.  Times are rounds, or
        nanoseconds in a study in seconds.
    upper, lower
        The optimum lies between them; None while a side is unknown.
    bounded_by, found_by
        Sources of both sides.
    seconds
        Time of the whole instance, shared by its records.
    certificate
        Path of the certificate in the folder of the study.
    error
        The reason of a failure.
    versions
        Versions of kvopt and the solvers.
    times
        Waiting of users, in a study in seconds.
    attained, ceiling, best_attained
        How many requests attain the service level of the limits: in this run, at most in any run,
        and in the best known run; None without one.
    note
        Remarks for a reader of the run, such as whether an LP was solved for a plan.
    """

    key: str
    study: str
    instance: StudiedInstance
    policy: str | None
    limits: Mapping[str, Any] = field(default_factory=dict)
    outcome: Literal["completed", "livelock", "unfinished", "error"]
    value: int | None = None
    evictions: int = 0
    makespan: int | None = None
    peak_memory: int | None = None
    upper: int | None = None
    lower: int | None = None
    bounded_by: str | None = None
    found_by: str | None = None
    seconds: float = 0.0
    certificate: str | None = None
    error: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    times: Times | None = None
    attained: int | None = None
    ceiling: int | None = None
    best_attained: int | None = None
    note: str | None = None

    @property
    def in_seconds(self) -> bool:
        """Whether the run was on the clock of a batch-time model."""
        return self.limits.get("batch_time") is not None

    @property
    def scope(self) -> Scope:
        """Scope of the bound."""
        return Scope.parse(self.limits.get("scope", "runs"))

    @property
    def ratio(self) -> tuple[float | None, float | None]:
        """The interval ``[value / upper, value / lower]`` that holds value / optimum."""
        return ratio(self.value, self.upper), ratio(self.value, self.lower)

    @property
    def proved(self) -> bool:
        """Whether the optimum is known."""
        return self.upper is not None and self.upper == self.lower

    @property
    def wanted(self) -> int | None:
        """How many requests shall attain the service level, None without a share."""
        share, size = self.limits.get("attain"), self.instance.requests
        return None if share is None else size - allowed_misses(share, size)

    @property
    def verdict(self) -> str | None:
        """Whether the run lets the share attain; if not, whether the ceiling does."""
        wanted = self.wanted
        if wanted is None or self.ceiling is None:
            return None
        if (self.attained or 0) >= wanted:
            return "reached"
        if self.ceiling < wanted:
            return "impossible"
        return "missed" if (self.best_attained or 0) >= wanted else "missed, open"

    def to_json(self) -> dict[str, Any]:
        """Return the object that is written as one line."""
        content = {"schema": SCHEMA, **asdict(self)}
        for name in [name for name in _WHERE_KNOWN if content[name] is None]:
            del content[name]
        content |= {"ratio": list(self.ratio), "proved": self.proved}
        return content | {"digest": digest(content)}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Build a record from a parsed line; refuse one with other than its original content."""
        content = dict(check_fields(value, "record", ("digest",), value, SCHEMA))
        is_other = content.pop("digest") != digest(content)
        refuse("digest", "does not fit the rest of the line", is_other)
        try:
            record = convert(content, cls)  # fields that follow from others are passed over
        except ValidationError as error:
            raise InvalidInput(str(error)) from None
        Scope.parse(record.limits.get("scope", Scope.RUNS))
        return record


def record_key(
    instance_hash: str, policy: str | None, limits: Mapping[str, Any], version: str
) -> str:
    """Return the key of a record: the same work by the same version has the same key."""
    return digest([instance_hash, policy, dict(limits), version])


def read_records(
    directory: str | Path, report: Callable[[str], None] | None = None
) -> list[Record]:
    """Return the records of a study, in the order of their first lines.

    Parameters
    ----------
    directory
        Folder of the study.
    report
        Called with a message for each damaged line; by default it becomes a warning.

    Returns
    -------
    list of Record
        One for each instance, policy and limits: the latest valid line counts.  The failure
        of a whole instance is dropped once the instance is done.
    """
    latest: dict[tuple[str, str, str | None], Record] = {}
    for record in lines_of(directory, report):
        work = (record.instance.hash, digest(dict(record.limits)))
        if record.policy is not None:
            latest.pop((*work, None), None)
        latest[*work, record.policy] = record
    return list(latest.values())


def lines_of(
    directory: str | Path, report: Callable[[str], None] | None = None
) -> Iterator[Record]:
    """Yield every valid line, also lines that later ones replace; see `read_records`."""
    path = Path(directory) / FILE
    warn = report or partial(warnings.warn, category=DamagedRecord, stacklevel=3)
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", file=str(path)) from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = Record.from_json(parse_json(line.decode()))
        except (ValueError, TypeError, KeyError) as error:
            warn(f"{path}: line {number} is damaged and does not count: {error}")
        else:
            yield record


def grouped(records: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return records by the value of a function, in the order of first appearance."""
    groups: dict[Key, list[Item]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


def natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts names as people do: a2 before a10."""
    parts = enumerate(re.split(r"([0-9]{1,18})", name))
    return [(int(part), "") if place % 2 else (0, part) for place, part in parts]


def digest(content: object) -> str:
    """Return the digest of a line, or of the parts of a key."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Times:
    """Waiting of users of a run in seconds, and the use of the cache.

    ``latency`` and ``first_token`` have ``mean``, ``median`` and ``p99`` over completed requests.
    Output tokens of these are counted over the time to the last completion; tokens held, on
    average up to the end of the last round.
    """

    latency: Mapping[str, float | None]
    first_token: Mapping[str, float | None]
    completed: int
    tokens_per_second: float | None
    ended: float
    mean_memory: float | None

    def __post_init__(self) -> None:
        is_missing = not {"mean", "median", "p99"} <= self.latency.keys() & self.first_token.keys()
        refuse("latency, first_token", "must have mean, median and p99", is_missing)

    @classmethod
    def of(cls, run: PolicyRun) -> Self:
        """Sum up a run."""
        ended = run.stretches[-1].ended if run.stretches else 0
        seconds, held = map(np.array, run.memory_over_time())
        area = np.sum(np.diff(seconds) * (held[1:] + held[:-1])) / 2  # below straight lines
        return cls(
            latency=summary(run.latencies),
            first_token=summary(run.times_to_first_token),
            completed=run.completed,
            tokens_per_second=run.throughput,
            ended=ended / NANOSECONDS,
            mean_memory=float(area) / (ended / NANOSECONDS) if ended else None,
        )
