"""Sources of the instances of a study: a family, a file, a trace, or requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any, Literal

from kvopt import Instance, generate, read_instance
from kvopt.errors import InvalidInput, placed, shown
from kvopt.experiments.studies.records import StudiedInstance
from kvopt.problem.batch_time import NANOSECONDS
from kvopt.problem.clocks import arrivals_ns
from kvopt.problem.requests import LARGEST_INTEGER, Request, checked_integer, checked_number
from kvopt.problem.traces.importing import TraceOptions, import_trace

Kind = Literal["family", "file", "trace", "inline"]

FIXED: tuple[Kind, ...] = ("file", "trace", "inline")
"""Kinds of sources with fixed requests: nothing is drawn."""

_FILES = ("file", "trace")

TRACE_KEYS = ("format", *(key for key in TraceOptions.__annotations__ if key != "max_total"))
"""Parameters that a trace may have."""


@dataclass(frozen=True, slots=True)
class Source:
    """The source of one instance.

    Parameters
    ----------
    kind, name
        A family, the path of an instance or of a trace, or the name of an instance that is written
        in the description itself.
    seed
        Seed of the draw; None for a file.
    n, memory, parameters
        Its description; for an inline instance its ``requests``, for a trace the arguments of
        `kvopt.import_trace`.
    rate, max_total
        Changes to it; see `kvopt.experiments.studies.sources`.
    workers
        Machines with a cache each, None for those of the instance.
    """

    kind: Kind
    name: str
    seed: int | None = 0
    n: int | None = None
    memory: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    rate: float | None = None
    max_total: int | None = None
    workers: int | None = None

    @property
    def asked(self) -> dict[str, Any]:
        """The requested source, in the form of a record."""
        keys = ("n", "memory", "rate", "max_total", "workers")
        sizes = {key: size for key in keys if (size := getattr(self, key))}
        file = {"file": self.name} if self.kind in _FILES else {}
        return {**sizes, **file, **self.parameters}

    def to_json(self) -> dict[str, Any]:
        """Return the keys of a description that give this source."""
        said = {self.kind: self.name, **asdict(self)}
        keys = dict(said.pop("parameters"))
        del said["kind"], said["name"]
        return {**said, "requests": keys.pop("requests", None), "parameters": keys or None}

    def check(self, in_seconds: bool = False) -> None:
        """Refuse a source that cannot be drawn, or has no arrivals on the clock of the study."""
        for key, size in (("n", self.n), ("memory", self.memory), ("workers", self.workers)):
            if size is not None:
                checked_integer(size, key, 1)
        if self.kind in _FILES and self.n is not None:
            raise InvalidInput("a file has its own requests", field="n")
        if self.kind == "file" and self.parameters:
            raise InvalidInput("a file has its own requests", field="parameters")
        drawn = self.instance()
        if in_seconds:
            arrivals_ns(drawn)

    def instance(self) -> Instance:
        """Draw the instance."""
        if self.kind == "family":
            found = generate(self.name, self.n, self.memory, self.seed or 0, self.parameters)
        else:
            found = self._held()
        found = changed(found, self.memory, self.rate, self.max_total)
        return found if self.workers is None else replace(found, workers=self.workers)

    def _held(self) -> Instance:
        """Return the instance of a file, a trace or the description, before changes.

        Requests that do not fit are refused later, after requests that are too large are excluded.
        """
        is_csv = self.name.lower().endswith(".csv")
        if self.kind == "file" and (self.memory is None or not is_csv):
            return read_instance(self.name)  # the study may change its cache; CSV has none
        if self.memory is None:
            raise InvalidInput("is missing", field="memory")
        memory = LARGEST_INTEGER if self.max_total or self.kind == "trace" else self.memory
        if self.kind == "file":
            return read_instance(self.name, memory)
        if self.kind == "inline":
            return Instance(memory, _requests(self.parameters["requests"]), self.name)
        for key in self.parameters:
            if key not in TRACE_KEYS:
                reason = f"is not a key of a trace, which has {', '.join(TRACE_KEYS)}"
                raise InvalidInput(reason, field=key)
        if "format" not in self.parameters:
            raise InvalidInput("is missing: parameters = { format = ... }", field="format")
        return import_trace(self.name, memory=memory, **self.parameters)

    def described(self, instance: Instance) -> StudiedInstance:
        """Return the record fields of an instance from this source."""
        name: str = self.name
        family: str | None = self.name
        notes = instance.notes if isinstance(instance.notes, dict) else {}
        counts = {"left_out": notes["left_out"]} if self.max_total else {}
        if self.kind == "trace" and (dropped := notes.get("dropped")):
            counts["dropped"] = dropped
        if self.kind in _FILES:
            name = Path(name).name
            # The notes of a generated file name its family.
            family = notes["family"] if isinstance(notes.get("family"), str) else None
        elif instance.name:
            name = instance.name
        return StudiedInstance(
            name=name,
            family=family,
            parameters={**self.asked, **counts},
            seed=self.seed,
            requests=len(instance),
            memory=instance.memory,
            hash=instance.hash,
        )


def _requests(rows: object) -> list[Request]:
    """Return requests from the arrival, prompt and output of each."""
    if not isinstance(rows, (list, tuple)):
        raise InvalidInput(f"must be a list, got {shown(rows)}", field="requests")
    for row in rows:
        if not isinstance(row, (list, tuple)) or len(row) != 3:
            reason = f"must hold [arrival, prompt, output], got {shown(row)}"
            raise InvalidInput(reason, field="requests")
    return [Request(*row) for row in rows]


def changed(
    instance: Instance,
    memory: int | None = None,
    rate: float | None = None,
    max_total: int | None = None,
) -> Instance:
    """Return an instance with another cache, arrivals at another rate, without large requests.

    Parameters
    ----------
    instance
        The instance.
    memory
        Its new cache size; by default the old one.
    rate
        Factor on the number of requests that arrive in the same time; see `at_rate`.
    max_total
        Requests of more tokens are excluded, and counted in the notes.

    Raises
    ------
    InvalidInput
        For a request that does not fit, or if no request remains.

    Examples
    --------
    >>> found = changed(Instance(9, [Request(0, 1, 2), Request(5, 1, 8)]), 6, max_total=6)
    >>> found.memory, len(found), found.notes
    (6, 1, {'max_total': 6, 'left_out': 1})
    """
    requests = list(instance)
    said: dict[str, Any] = {}
    if max_total is not None:
        checked_integer(max_total, "max_total", 1)
        requests = [request for request in requests if request.peak <= max_total]
        said |= {"max_total": max_total, "left_out": len(instance) - len(requests)}
        if not requests:
            reason = f"leaves no request: the smallest has {min(r.peak for r in instance)} tokens"
            raise InvalidInput(reason if len(instance) else "is empty", field="max_total")
    if rate is not None and rate != 1:
        requests = at_rate(instance, requests, rate)
        said["rate"] = rate
    if memory in (None, instance.memory) and not said:
        return instance
    notes = instance.notes
    if said and notes is not None:
        said = {**(notes if isinstance(notes, dict) else {"notes": notes}), **said}
    size = instance.memory if memory is None else memory
    try:
        return replace(instance, memory=size, requests=tuple(requests), notes=said or notes)
    except InvalidInput as error:
        hint = f"; max_total = {size} leaves out what does not fit" if error.request else ""
        reason = error.reason + hint
        raise InvalidInput(reason, field=error.field, request=error.request) from None


def at_rate(instance: Instance, requests: list[Request], rate: float) -> list[Request]:
    """Return requests of an instance with every arrival divided by a rate.

    In integers: rounds are rounded up to whole ones, seconds to whole nanoseconds, so that no
    request arrives too early.  If rounds have a length, requests get arrivals in seconds, which
    would otherwise be rounded to whole rounds.
    """
    checked_number(rate, "rate", positive=True)
    if not any(request.arrival or request.arrival_seconds for request in instance):
        raise InvalidInput("all requests arrive at once: there is no rate to scale", field="rate")
    share = Fraction(str(rate))  # the number as written: 0.1, not its nearest float
    is_timed = instance.round_ms is not None or any(r.arrival_seconds is not None for r in instance)
    times = dict(zip(instance, arrivals_ns(instance), strict=True)) if is_timed else {}
    found = []
    for request in requests:
        with placed(request=repr(request.id)):
            arrival = ceil(request.arrival / share)
            seconds = _seconds(ceil(times[request] / share)) if is_timed else None
            found.append(replace(request, arrival=arrival, arrival_seconds=seconds))
    return found


def _seconds(time: int) -> float:
    """Return nanoseconds as the seconds of a request, which give the same nanoseconds again."""
    seconds = time / NANOSECONDS
    if round(Fraction(seconds) * NANOSECONDS) != time:
        reason = "is too far from 0 to be scaled to the nanosecond: let the trace begin at 0"
        raise InvalidInput(reason, field="arrival_seconds")
    return seconds
