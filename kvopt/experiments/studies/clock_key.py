"""The key `clock` of a description: rounds, or seconds by a batch-time model."""

from __future__ import annotations

from pathlib import Path

from kvopt.errors import InvalidInput, shown, unknown_name
from kvopt.experiments.studies.tables import Table
from kvopt.problem.batch_time import BatchTime
from kvopt.problem.hardware.batch_time_files import (
    DEFAULT_MODEL,
    SCHEMA,
    batch_time,
    batch_time_from_json,
)

CLOCKS = ("rounds", "seconds")


def clock_of(top: Table, folder: Path) -> BatchTime | None:
    """Return the model of a study in seconds, None for rounds."""
    clock = top.string("clock", CLOCKS[0])
    if clock not in CLOCKS:
        raise top.fault("clock", unknown_name(clock, CLOCKS).reason)
    if clock == CLOCKS[0]:
        if "batch_time" in top:
            raise top.fault("batch_time", 'goes with clock = "seconds"')
        return None
    given = top.take("batch_time", DEFAULT_MODEL)
    try:
        return without_notes(_model(given, folder))
    except InvalidInput as error:
        raise top.fault("batch_time", str(error)) from None


def _model(given: object, folder: Path) -> BatchTime:
    if isinstance(given, dict):
        return batch_time_from_json({"schema": SCHEMA, **given})
    if not isinstance(given, str):
        raise InvalidInput(f"must be a preset, a file or a table, got {shown(given)}")
    return batch_time(folder / given if given.lower().endswith(".json") else given)


def without_notes(model: BatchTime) -> BatchTime:
    """Return the model as every record carries it."""
    return BatchTime(model.lines, model.kv_ns, model.prompt_ns, model.name)
