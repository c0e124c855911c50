"""Sources of the instances of a study: a family, a file, a trace, or written requests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import ceil
from pathlib import Path
from typing import Annotated, Any, Self

from msgspec import Meta, Struct, structs

from kvopt import Instance, generate, read_instance
from kvopt.errors import InvalidInput, placed, refuse
from kvopt.problem.batch_time import NANOSECONDS
from kvopt.problem.clocks import Clock, arrivals_ns
from kvopt.problem.requests import LARGEST_INTEGER, Request, checked_integer, checked_number
from kvopt.problem.traces.importing import TraceOptions, import_trace
from kvopt.studies.record_lines import StudiedInstance

Count = Annotated[int, Meta(ge=1, le=LARGEST_INTEGER)]
Seed = Annotated[int, Meta(ge=0, le=LARGEST_INTEGER)]
Positive = Annotated[float, Meta(gt=0, le=sys.float_info.max)]
Counts = Count | Annotated[list[Count], Meta(min_length=1)]
Positives = Positive | Annotated[list[Positive], Meta(min_length=1)]
Text = Annotated[str, Meta(pattern=r"\S")]
Texts = Text | Annotated[list[Text], Meta(min_length=1)]
Row = Annotated[list[Any], Meta(min_length=3, max_length=3)]

_KINDS = ("family", "file", "trace", "inline")
_FILES = ("file", "trace")
_SIZES = ("n", "memory", "rate", "max_total", "workers")

TRACE_KEYS = ("format", *(key for key in TraceOptions.__annotations__ if key != "max_total"))
"""Parameters that a trace may have."""


class Table(Struct, forbid_unknown_fields=True, frozen=True):
    """A table of a file: its fields are the keys that it may have."""


class Entry(Table, frozen=True):
    """A table ``[[instances]]``: draws from one source, and the policies that run on them.

    As it is written, lists stand for several entries; see `expanded`.

    Parameters
    ----------
    family, file, trace, inline
        The source, one of four: a family, the path of an instance or of a trace, or the name of an
        instance whose requests are written here.
    draws, seed
        Number of draws, and the seed of the first; later ones have the next seeds.  Nothing is
        drawn from files and written requests, whose seed is None.
    n, memory, parameters
        Arguments of a family; those of `kvopt.import_trace` for a trace.
    requests
        Arrival, prompt and output of each inline request.
    rate, max_total, workers
        Changes to the instance, see `changed`, and its number of machines.
    policies
        Policies with their prediction models.
    """

    family: Text | None = None
    file: Text | None = None
    trace: Text | None = None
    inline: Text | None = None
    draws: Count = 1
    seed: Seed | None = 0
    n: Counts | None = None
    memory: Counts | None = None
    rate: Positives | None = None
    workers: Counts | None = None
    max_total: Count | None = None
    parameters: dict[str, Any] = {}
    requests: list[Row] | None = None
    policies: tuple[Text, ...] | None = None

    @property
    def kind(self) -> str:
        """The kind of the source."""
        return next(kind for kind in _KINDS if getattr(self, kind))

    @property
    def name(self) -> str:
        """Name of the family or of the inline instance, or the path."""
        return str(getattr(self, self.kind))

    @property
    def requested(self) -> dict[str, Any]:
        """The requested source, in the form of a record."""
        sizes = {key: size for key in _SIZES if (size := getattr(self, key))}
        file = {"file": self.name} if self.kind in _FILES else {}
        written = {} if self.requests is None else {"requests": self.requests}
        return {**sizes, **file, **self.parameters, **written}

    def expanded(self, place: str, folder: Path, policies: tuple[str, ...]) -> Iterator[Self]:
        """Yield an entry for each combination of the lists, with absolute paths."""
        kinds = [kind for kind in _KINDS if getattr(self, kind) is not None]
        refuse(f"{place}.{_KINDS[0]}", f"needs one of {', '.join(_KINDS)}", len(kinds) != 1)
        is_wrong = (self.requests is not None) != (self.kind == "inline")
        refuse(f"{place}.requests", "are the requests of an inline instance", is_wrong)
        lists = {key: listed(value) for key, value in self.parameters.items()}
        is_empty = [] in lists.values()
        refuse(f"{place}.parameters", "must not hold an empty list", is_empty)
        fixed: dict[str, Any] = {"policies": policies}
        if self.kind != "family":
            fixed |= {"seed": None, "draws": 1}
        if self.kind in _FILES:
            fixed[self.kind] = str((folder / self.name).resolve())
        sizes = {key: listed(getattr(self, key)) for key in ("n", "memory", "rate", "workers")}
        # A whole rate is an integer in records, as it is in most descriptions.
        sizes["rate"] = [int(r) if r and r == int(r) else r for r in sizes["rate"]]
        for values in product(*sizes.values(), *lists.values()):
            sized = dict(zip(sizes, values, strict=False))
            parameters = dict(zip(lists, values[len(sizes) :], strict=True))
            yield structs.replace(self, **fixed, **sized, parameters=parameters)

    def check(self, place: str, clock: Clock) -> None:
        """Refuse an entry whose first instance cannot be drawn, or has no arrivals on a clock."""
        try:
            instance = self.instance()
            if not clock.is_even:
                arrivals_ns(instance)
        except InvalidInput as error:
            reason = str(error) if error.file == self.name else f"{self.name}: {error}"
            raise InvalidInput(reason, field=f"{place}.{self.kind}") from None

    def sources(self, limit: int | None = None) -> Iterator[Self]:
        """Yield each draw as an entry, of the first ``limit`` only if that is given."""
        first = self.seed or 0
        for draw in range(self.draws if limit is None else min(limit, self.draws)):
            seed = first + draw if self.family else None
            yield structs.replace(self, seed=seed, draws=1)

    def instance(self) -> Instance:
        """Draw the instance of a single draw, whose sizes are no lists any more."""
        size: Any = self
        if self.kind == "family":
            drawn = generate(self.name, size.n, size.memory, self.seed or 0, self.parameters)
        else:
            drawn = self._held(size.memory)
        drawn = changed(drawn, size.memory, size.rate, self.max_total)
        return drawn if size.workers is None else replace(drawn, workers=size.workers)

    def _held(self, size: int | None) -> Instance:
        """Return the instance of a file, a trace or the description, before changes.

        Requests that do not fit are refused later, after requests that are too large are excluded.
        """
        has_requests = "a file has its own requests"
        refuse("n", has_requests, self.kind in _FILES and self.n is not None)
        refuse("parameters", has_requests, self.kind == "file" and bool(self.parameters))
        is_csv = self.name.lower().endswith(".csv")
        if self.kind == "file" and (size is None or not is_csv):
            return read_instance(self.name)  # the study may change its cache; CSV has none
        if size is None:
            raise InvalidInput("is missing", field="memory")
        memory = LARGEST_INTEGER if self.max_total or self.kind == "trace" else size
        if self.kind == "file":
            return read_instance(self.name, memory)
        if self.kind == "inline":
            return Instance(memory, [Request(*row) for row in self.requests or ()], self.name)
        for key in self.parameters:
            reason = f"is not a key of a trace, which has {', '.join(TRACE_KEYS)}"
            refuse(key, reason, key not in TRACE_KEYS)
        missing = "is missing: parameters = { format = ... }"
        refuse("format", missing, "format" not in self.parameters)
        return import_trace(self.name, memory=memory, **self.parameters)

    def described(self, instance: Instance) -> StudiedInstance:
        """Return the record fields of an instance from this source."""
        family: str | None = self.name
        name = instance.name or self.name
        notes = instance.notes if isinstance(instance.notes, dict) else {}
        counts = {"left_out": notes["left_out"]} if self.max_total else {}
        if self.kind == "trace" and (dropped := notes.get("dropped")):
            counts["dropped"] = dropped
        if self.kind in _FILES:
            name = Path(self.name).name
            # The notes of a generated file name its family.
            family = notes["family"] if isinstance(notes.get("family"), str) else None
        return StudiedInstance(
            name=name,
            family=family,
            parameters={**self.requested, **counts},
            seed=self.seed,
            requests=len(instance),
            memory=instance.memory,
            hash=instance.hash,
            weight=instance.total_weight,
        )


def listed(value: Any) -> list[Any]:
    """Return a list, or one value as a list."""
    return value if isinstance(value, list) else [value]


def changed(
    instance: Instance,
    memory: int | None = None,
    rate: float | None = None,
    max_total: int | None = None,
) -> Instance:
    """Return an instance with another cache, arrivals at another rate, without large requests.

    Requests of more tokens than ``max_total`` are excluded, and counted in the notes.  ``rate`` is
    a factor on the number of requests that arrive in the same time; see `at_rate`.  A request that
    does not fit is refused, and if no request remains.

    Examples
    --------
    >>> smaller = changed(Instance(9, [Request(0, 1, 2), Request(5, 1, 8)]), 6, max_total=6)
    >>> smaller.memory, len(smaller), smaller.notes
    (6, 1, {'max_total': 6, 'left_out': 1})
    """
    requests = list(instance)
    changes: dict[str, Any] = {}
    if max_total is not None:
        checked_integer(max_total, "max_total", 1)
        requests = [request for request in requests if request.peak <= max_total]
        changes |= {"max_total": max_total, "left_out": len(instance) - len(requests)}
        if not requests:
            reason = f"leaves no request: the smallest has {min(r.peak for r in instance)} tokens"
            raise InvalidInput(reason if len(instance) else "is empty", field="max_total")
    if rate is not None and rate != 1:
        requests = at_rate(instance, requests, rate)
        changes["rate"] = rate
    if memory in (None, instance.memory) and not changes:
        return instance
    notes = instance.notes
    if changes and notes is not None:
        changes = {**(notes if isinstance(notes, dict) else {"notes": notes}), **changes}
    size = instance.memory if memory is None else memory
    try:
        return replace(instance, memory=size, requests=tuple(requests), notes=changes or notes)
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
    at_once = not any(request.arrival or request.arrival_seconds for request in instance)
    refuse("rate", "all requests arrive at once: there is no rate to scale", at_once)
    share = Fraction(str(rate))  # the number as written: 0.1, not its nearest float
    is_timed = instance.round_ms is not None or any(r.arrival_seconds is not None for r in instance)
    times = dict(zip(instance, arrivals_ns(instance), strict=True)) if is_timed else {}
    scaled = []
    for request in requests:
        with placed(request=repr(request.id)):
            arrival = ceil(request.arrival / share)
            seconds = None
            if is_timed:
                time = ceil(times[request] / share)
                seconds = time / NANOSECONDS
                far = "is too far from 0 to be scaled to the nanosecond: let the trace begin at 0"
                is_far = round(Fraction(seconds) * NANOSECONDS) != time
                refuse("arrival_seconds", far, is_far)
            scaled.append(replace(request, arrival=arrival, arrival_seconds=seconds))
    return scaled
