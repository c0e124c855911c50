"""Runs of real servers, with their measurements: ``kvopt.run/1``, which includes the instance."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kvopt.errors import FalseClaim, InvalidInput, shown
from kvopt.files.atomic import write_atomically
from kvopt.files.reading import (
    blamed_on,
    check_fields,
    is_standard_input,
    open_text,
    parse_json,
    read_text,
)
from kvopt.problem.batch_time import MILLISECOND, NANOSECONDS, BatchTime
from kvopt.problem.hardware.fitting import Measured, judged
from kvopt.problem.instance import Instance
from kvopt.problem.instance_files import instance_from_json, instance_to_json
from kvopt.problem.requests import can_be_written, checked_integer
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.work_intervals import Chunks

SCHEMA = "kvopt.run/1"

_NEEDED = ("schema", "policy", "value", "block", "segments", "instance")
_OPTIONAL = ("notes", "chunks", "measured")
_MEASURED = ("latency_ns", "rounds", "batches")


@dataclass(frozen=True)
class Measurements:
    """Times that a server measured.

    Parameters
    ----------
    latency_ns
        Total latency of the finished requests.
    rounds
        Number of rounds.
    batches
        Those of them with a length.
    """

    latency_ns: int
    rounds: int
    batches: Sequence[Measured]

    def is_slower_than(self, model: BatchTime) -> bool:
        """Whether every round lasted at least as long as by a model.

        The measured run is a schedule on the clock of the model then, only slower, so bounds hold
        for it.
        """
        return len(self.batches) == self.rounds and all(
            round(batch.milliseconds * MILLISECOND) >= batch.round_ns(model)
            for batch in self.batches
        )

    def beside(self, model: BatchTime, requests: int) -> dict[str, Any]:
        """Return the measured mean and the error of a model, by name."""
        fit = judged(model, self.batches)
        return {
            "mean_seconds": self.latency_ns / requests / NANOSECONDS,
            "rounds": fit.rows,
            "rounds_seconds": fit.seconds,
            "model_seconds": fit.model_seconds,
            "typical_error": fit.typical_error,
        }

    def to_json(self) -> dict[str, Any]:
        """Return the member of a run file."""
        rows = [
            [batch.tokens, batch.prompts, batch.held, round(batch.milliseconds * MILLISECOND)]
            for batch in self.batches
        ]
        return dict(zip(_MEASURED, (self.latency_ns, self.rounds, rows), strict=True))


@dataclass(frozen=True)
class RecordedRun:
    """The run of a server, in rounds; checked in integers at construction.

    Parameters
    ----------
    policy
        The engine and its policy.
    schedule
        Times of the tokens of each request.
    block
        Tokens of a block; the memory of the instance is given out in whole blocks.
    notes
        Further data: the limits of the server, the number of skipped requests.
    chunks
        Prompts in pieces: the position of a request, the begin of the first round without a token,
        and the tokens that this round and the next ones process.  None if unknown.
    measured
        Times by the clock of the server; None if unknown.
    """

    policy: str
    schedule: Schedule
    block: int = 1
    notes: Mapping[str, Any] = field(default_factory=dict)
    chunks: Sequence[Sequence[int]] | None = None
    measured: Measurements | None = None

    def __post_init__(self) -> None:
        checked_integer(self.block, "block", 1)
        if not can_be_written(dict(self.notes)):
            raise InvalidInput("holds what no JSON file can carry", field="notes")
        for row in self.chunks or ():
            _check_chunks(row, len(self.instance))
        in_blocks = replace(self.instance, block_size=self.block)
        if broken := replace(self.with_chunks, instance=in_blocks).violations():
            raise InvalidInput(broken[0])

    @property
    def instance(self) -> Instance:
        """The requests."""
        return self.schedule.instance

    @property
    def most_active(self) -> int | None:
        """Most requests that the server lets run at once, None if unknown."""
        limit = self.notes.get("max_seqs", self.notes.get("max_num_seqs"))
        return limit if isinstance(limit, int) else None

    @property
    def with_chunks(self) -> Schedule:
        """The schedule with the work on pieces of prompts."""
        pieces = [Chunks(i, start, tuple(tokens)) for i, start, *tokens in self.chunks or ()]
        return replace(self.schedule, chunks=pieces)


def _check_chunks(row: Sequence[int], requests: int) -> None:
    if not isinstance(row, list) or len(row) < 3:
        reason = f"must hold [request, round, tokens, ...], got {shown(row)}"
        raise InvalidInput(reason, field="chunks")
    for number in row:
        checked_integer(number, "chunks", 0)
    if row[0] >= requests:
        raise InvalidInput(f"are of request {row[0]}, of which there is none", field="chunks")


def write_run(run: RecordedRun, path: str | Path) -> None:
    """Write a run with its instance, a request a line."""
    top = {
        "schema": SCHEMA,
        "policy": run.policy,
        "value": run.schedule.objective,
        "block": run.block,
        "notes": dict(run.notes),
    }
    if run.chunks is not None:
        top["chunks"] = run.chunks
    if run.measured is not None:
        top["measured"] = run.measured.to_json()
    segments = ",\n".join(map(json.dumps, run.schedule.segments))
    instance = instance_to_json(run.instance)
    rows = ",\n".join(map(json.dumps, instance.pop("requests")))
    text = f'{json.dumps(top)[:-1]}, "segments": [\n{segments}\n],\n"instance": '
    write_atomically(path, f'{text}{json.dumps(instance)[:-1]}, "requests": [\n{rows}\n]}}}}\n')


def is_run(path: str | Path) -> bool:
    """Whether a file is a run, by its first characters; pipes are not read."""
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
        If the value differs from that of the segments.
    """
    with blamed_on(path):
        top = check_fields(parse_json(read_text(path)), "run", _NEEDED, _OPTIONAL, SCHEMA)
        for name, kind in (("policy", str), ("segments", list), ("notes", dict), ("chunks", list)):
            if not isinstance(top.get(name, kind()), kind):
                reason = f"must be {'text' if kind is str else f'a {kind.__name__}'}"
                raise InvalidInput(f"{reason}, got {shown(top[name])}", field=name)
        schedule = Schedule(instance_from_json(top["instance"]), segments=top["segments"])
        measured = measurements_from_json(top["measured"]) if "measured" in top else None
        more = top.get("notes", {}), top.get("chunks"), measured
        recorded = RecordedRun(top["policy"], schedule, top["block"], *more)
        if type(top["value"]) is not int or top["value"] != schedule.objective:
            reason = f"says {shown(top['value'])}, the segments give {schedule.objective}"
            raise FalseClaim(reason, field="value")
        return recorded


def measurements_from_json(value: object) -> Measurements:
    """Return the measurements of a run file, checked."""
    fields = check_fields(value, "measured", _MEASURED)
    latency, rounds = (checked_integer(fields[name], name, 0) for name in _MEASURED[:2])
    if not isinstance(fields["batches"], list) or not fields["batches"]:
        raise InvalidInput(f"must be a list, got {shown(fields['batches'])}", field="batches")
    return Measurements(latency, rounds, list(map(_batch, fields["batches"])))


def _batch(row: object) -> Measured:
    if not isinstance(row, list) or len(row) != 4:
        reason = f"must hold [tokens, prompts, held, ns], got {shown(row)}"
        raise InvalidInput(reason, field="batches")
    tokens, prompts, held, ns = (checked_integer(number, "batches", 0) for number in row)
    if not (prompts <= tokens and ns):
        raise InvalidInput(f"must have a length, and no more prompts, got {row}", field="batches")
    return Measured(tokens, ns / MILLISECOND, prompts, held)
