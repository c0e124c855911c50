"""Batch-time models by name and in files: ``kvopt.batch-time/1``."""

from __future__ import annotations

import json
from pathlib import Path

from kvopt.errors import InvalidInput, shown, unknown_name
from kvopt.files.atomic import write_atomically
from kvopt.files.reading import blamed_on, check_fields, parse_json, read_text
from kvopt.problem.batch_time import BatchTime, Line
from kvopt.problem.hardware.presets import TABLES
from kvopt.problem.hardware.roofline import is_roofline, pairs, parts, roofline

SCHEMA = "kvopt.batch-time/1"
DEFAULT_MODEL = "llama-2-70b-2xa100"
"""Default preset."""

_NEEDED = ("schema", "lines", "kv_ns", "prompt_ns")
_OPTIONAL = {"name", "notes"}
_LINE = ("round_ns", "token_ns")


def batch_time(text: str | Path) -> BatchTime:
    """Return the preset of this name, or read the model from a JSON file.

    A preset is a measured one or, as ``MODEL@GPU`` or ``MODEL@NxGPU``, a roofline.

    Examples
    --------
    >>> batch_time("llama-3-8b@h100").least_ns
    7200739
    """
    name = str(text)
    if name in PRESETS:
        return PRESETS[name]
    if is_roofline(name):
        return roofline(*parts(name))
    if not name.lower().endswith(".json"):
        besides = ", MODEL@GPU or a .json file"
        raise unknown_name(name, [*PRESETS], "batch time", besides, near=[*PRESETS, *pairs()])
    with blamed_on(text):
        return batch_time_from_json(parse_json(read_text(text)))


def batch_time_from_json(value: object) -> BatchTime:
    """Build a model from parsed JSON."""
    top = check_fields(value, "batch time", _NEEDED, _OPTIONAL, SCHEMA)
    if not isinstance(top["lines"], list):
        raise InvalidInput(f"must be a list, got {shown(top['lines'])}", field="lines")
    rows = [check_fields(row, "line", _LINE) for row in top["lines"]]
    lines = [Line(row["round_ns"], row["token_ns"]) for row in rows]
    return BatchTime(lines, top["kv_ns"], top["prompt_ns"], top.get("name"), top.get("notes"))


def write_batch_time(model: BatchTime, path: str | Path) -> None:
    """Write a model as a JSON file."""
    text = json.dumps({"schema": SCHEMA, **model.to_json()}, indent=1, ensure_ascii=False)
    write_atomically(path, text + "\n")


PRESETS: dict[str, BatchTime] = {
    name: batch_time_from_json({"schema": SCHEMA, "name": name, **row})
    for name, row in TABLES["batch_times"].items()
}
"""Measured models; docs/seconds.md has their errors."""
