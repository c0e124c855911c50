"""Instance files: ``kvopt.instance/1`` as JSON, or CSV with ``arrival,prompt,output``.

CSV may have columns ``ttft``, ``tpot`` and ``e2e`` too; ``deadline`` is an old name of ``e2e``.
The second schema is for fleets, memory in whole blocks, and requests with priorities, service
levels, weights or prefixes.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from kvopt.errors import InvalidInput, placed, shown
from kvopt.files.atomic import write_atomically
from kvopt.files.reading import (
    blamed_on,
    check_fields,
    is_standard_input,
    name_of,
    parse_json,
    read_text,
    semicolons,
    without_nulls,
)
from kvopt.problem.instance import Instance
from kvopt.problem.requests import COLUMNS, Prediction, Request, checked_integer

_LOGGER = logging.getLogger("kvopt")
SCHEMA = "kvopt.instance/1"
NEWER_SCHEMA = "kvopt.instance/2"

_TOP_NEEDED = ("schema", "memory", "requests")
_TOP_OPTIONAL: tuple[str, ...] = ("name", "notes", "round_ms")
_TOP_NEWER = ("workers", "block_size", "max_active", "block_tokens")
_REQUEST_OPTIONAL: tuple[str, ...] = ("id", "predicted", "arrival_seconds")
_LEVELS = ("ttft", "tpot", "e2e")
_OLD_NAME = "deadline"
"""Name of ``e2e`` in earlier files."""
_REQUEST_NEWER = ("priority", *_LEVELS, _OLD_NAME, "weight", "prefix")
_ENDS = ("lower", "upper")
_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)

_MAX_DIGITS = 4000
"""Limit of the digits of a number in a cell; Python reads 4300."""


def as_instance(source: Instance | str | Path) -> Instance:
    """Return an instance unchanged, or read the file of this name."""
    if isinstance(source, str | Path):
        return read_instance(source)
    if isinstance(source, Instance):
        return source
    reason = f"must be an Instance or the name of a file, got {shown(source)}"
    raise InvalidInput(reason, field="instance")


def read_instance(
    path: str | Path,
    memory: int | None = None,
    workers: int | None = None,
    block_size: int | None = None,
) -> Instance:
    """Read an instance from a JSON file, or from CSV when the name ends in ``.csv``.

    Parameters
    ----------
    path
        The file; ``-`` is standard input, whose first line tells JSON from CSV.
    memory
        Cache size: needed for CSV, which does not have it; replaces that of a JSON
        file.
    workers
        Number of machines with such a cache; replaces that of a JSON file.
    block_size
        Tokens of a block; replaces that of a JSON file.

    Raises
    ------
    InvalidInput
        With the file, the request and the field at fault in one line.
    """
    with blamed_on(path):
        if memory is not None:
            checked_integer(memory, "memory", 1)  # True == 1 and 5.0 == 5 must not pass
        text = read_text(path)
        if _is_csv(path, text):
            instance = _instance_from_csv(text, memory)
            sizes = without_nulls({"workers": workers, "block_size": block_size})
            return replace(instance, **sizes)
        value = parse_json(text)
        instance = instance_from_json(value, memory, workers, block_size)
        for field in ("memory", "workers", "block_size"):
            taken = getattr(instance, field)
            if value.get(field, taken) != taken:
                message = "%s: %s %s instead of the file's %s"
                _LOGGER.info(message, name_of(path), field, taken, value[field])
        return instance


def _is_csv(path: str | Path, text: str) -> bool:
    """Whether a file is CSV by its name, standard input by a first line that JSON cannot have."""
    if not is_standard_input(path):
        return str(path).lower().endswith(".csv")
    first = text.lstrip().partition("\n")[0]
    return "," in first and first[0] not in '{["'


def instance_from_json(
    value: object,
    memory: int | None = None,
    workers: int | None = None,
    block_size: int | None = None,
) -> Instance:
    """Build an instance from parsed JSON, with other caches if given."""
    schema = value.get("schema") if isinstance(value, dict) else None
    if str(schema).startswith("kvopt.run/"):
        raise InvalidInput("is that of a run: kvopt certify --run judges it", field="schema")
    more, optional = _TOP_OPTIONAL + _TOP_NEWER, _REQUEST_OPTIONAL + _REQUEST_NEWER
    if schema != NEWER_SCHEMA:
        schema, more, optional = SCHEMA, _TOP_OPTIONAL, _REQUEST_OPTIONAL
        _refuse_newer(value, _TOP_NEWER)
    top = check_fields(value, "instance", _TOP_NEEDED, more, schema)
    _refuse_nulls(top, more)
    sizes = {"memory": memory, "workers": workers, "block_size": block_size}
    for name, override in sizes.items():
        in_file = checked_integer(top.get(name, 1), name, 1)
        sizes[name] = in_file if override is None else override
    rows = top["requests"]
    if not isinstance(rows, list):
        raise InvalidInput(f"must be a list, got {shown(rows)}", field="requests")
    requests = [_request_from_json(row, i, optional) for i, row in enumerate(rows)]
    fields = {name: top.get(name) for name in (*_TOP_OPTIONAL, *_TOP_NEWER)}
    return Instance(requests=requests, **{**fields, **sizes})  # type: ignore[arg-type]


def _request_from_json(value: object, position: int, optional: Collection[str]) -> Request:
    name = f"r{position}"
    label = value.get("id") if isinstance(value, dict) else None
    with placed(request=repr(label if label and isinstance(label, str) else name)):
        if optional is _REQUEST_OPTIONAL:
            _refuse_newer(value, _REQUEST_NEWER)
        row = check_fields(value, "request", COLUMNS, optional)
        if len(row) == len(COLUMNS):
            return Request(row["arrival"], row["prompt"], row["output"], name)
        _refuse_nulls(row, optional)
        predicted = None
        if "predicted" in row:
            ends = check_fields(row["predicted"], "predicted", _ENDS, inside="predicted.")
            predicted = Prediction(**ends)
        return Request(**{"id": name, **_renamed(row), "predicted": predicted})


def _renamed(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the present name of a field."""
    if _OLD_NAME not in row:
        return row
    if "e2e" in row:
        raise InvalidInput("is the old name of e2e, which is there too", field=_OLD_NAME)
    return {"e2e" if name == _OLD_NAME else name: value for name, value in row.items()}


def _refuse_newer(value: object, newer: Collection[str]) -> None:
    """Refuse a field that a file of the first schema cannot have, and name the schema that can."""
    for field in newer:
        if isinstance(value, dict) and field in value:
            raise InvalidInput(f"needs the schema {NEWER_SCHEMA}", field=field)


def _refuse_nulls(row: dict[str, Any], optional: Collection[str]) -> None:
    for field in optional:
        if field in row and row[field] is None:
            raise InvalidInput("must not be null; leave it out instead", field=field)


def _instance_from_csv(text: str, memory: int | None) -> Instance:
    if memory is None:
        raise InvalidInput("CSV has no memory: give it with --memory", field="memory")
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    requests: list[Request] = []
    try:
        header = next(lines, [])
        columns = [name.strip() for name in header]
        more = {*columns}.difference(COLUMNS)
        is_valid = more <= {*_LEVELS, _OLD_NAME} and len(columns) == len(COLUMNS) + len(more)
        if not is_valid:
            reason = f"must be {','.join(COLUMNS)}, got {shown(','.join(header))}"
            raise InvalidInput(reason + semicolons(header), field="header")
        for cells in lines:
            if cells:  # the csv module returns an empty row for a blank line
                requests.append(_request_from_cells(cells, columns, len(requests), lines.line_num))
    except csv.Error as error:
        raise InvalidInput(f"is not CSV: {error} (line {lines.line_num})") from None
    return Instance(memory=memory, requests=requests)


def _request_from_cells(cells: list[str], columns: list[str], position: int, line: int) -> Request:
    with placed(request=f"r{position} (line {line})"):
        count, fields = len(cells), len(columns)
        if count < fields:
            reason = f"is missing: the header has {fields} fields, the row ends after {count}"
            raise InvalidInput(reason, field=columns[count])
        if count > fields:
            extra = f"{shown(cells[fields])} has no field"
            raise InvalidInput(f"has {count} cells, the header has {fields}: {extra}")
        row = dict(zip(columns, cells, strict=True))
        filled = {name: cell for name, cell in row.items() if name in COLUMNS or cell.strip()}
        numbers = {name: _integer_from_cell(cell, name) for name, cell in _renamed(filled).items()}
        return Request(**numbers, id=f"r{position}")  # type: ignore[arg-type]


def _integer_from_cell(cell: str, field: str) -> int:
    text = cell.strip()
    if not text:
        raise InvalidInput("is missing", field=field)
    if not _INTEGER.fullmatch(text):
        raise InvalidInput(f"must be an integer, got {shown(text)}", field=field)
    if len(text) > _MAX_DIGITS:
        limit = "at least 0" if text[0] == "-" else "at most 2^53 - 1"
        raise InvalidInput(f"must be {limit}, got {len(text.lstrip('-'))} digits", field=field)
    return int(text)


def instance_to_json(instance: Instance) -> dict[str, Any]:
    """Return the JSON object of an instance without absent fields."""
    top = {
        "schema": instance.schema,
        "name": instance.name,
        "notes": instance.notes,
        "memory": instance.memory,
        **instance.more_sizes,
        "max_active": instance.max_active,
        "block_tokens": instance.block_tokens,
        "round_ms": instance.round_ms,
        "requests": [request_to_json(request) for request in instance],
    }
    return without_nulls(top)


def request_to_json(request: Request) -> dict[str, Any]:
    """Return the JSON object of a request without absent fields."""
    arrival, prompt, output = request.kind
    row = {"id": request.id, "arrival": arrival, "prompt": prompt, "output": output}
    ends = request.predicted
    predicted = None if ends is None else {"lower": ends.lower, "upper": ends.upper}
    more = {name: getattr(request, name) for name in ("arrival_seconds", "priority", *_LEVELS)}
    more["weight"] = request.weight if request.weight > 1 else None
    more["prefix"] = list(request.prefix) or None
    return {**row, **without_nulls({"predicted": predicted, **more})}


def write_instance(instance: Instance, path: str | Path) -> None:
    """Write an instance as JSON, one request a line, or as CSV for a ``.csv`` name.

    CSV keeps arrivals, prompts, outputs and service levels.  Name and notes are dropped; an
    instance with other data is refused.
    """
    as_csv = str(path).lower().endswith(".csv")
    write_atomically(path, _csv_text(instance, str(path)) if as_csv else instance_text(instance))


def instance_text(instance: Instance) -> str:
    """Return the JSON text of an instance, with a line for each request."""
    top = instance_to_json(instance)
    rows = top.pop("requests")
    head = json.dumps(top, indent=1, ensure_ascii=False, allow_nan=False)[:-2]
    body = ",\n".join("  " + json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
    return head + (f',\n "requests": [\n{body}\n ]\n}}\n' if rows else ',\n "requests": []\n}\n')


def _csv_text(instance: Instance, path: str) -> str:
    fields = [*instance.more_sizes, *(["round_ms"] if instance.round_ms else []), *instance.extras]
    for field in fields:
        raise InvalidInput("CSV has no place for it: write JSON", field=field, file=path)
    for position, request in enumerate(instance):
        labels = (request.predicted, request.arrival_seconds, request.priority)
        if labels != (None, None, None) or request.id != f"r{position}":
            raise InvalidInput(
                "CSV has no place for ids, predictions, seconds or priorities: write JSON instead",
                request=repr(request.id),
                file=path,
            )
    columns = list(COLUMNS)
    columns += (n for n in _LEVELS if any(getattr(r, n) is not None for r in instance))
    rows = [[getattr(request, name) for name in columns] for request in instance]
    cells = [["" if value is None else str(value) for value in row] for row in rows]
    return "".join(",".join(row) + "\n" for row in (columns, *cells))
