"""Measured batch times in CSV files.

Two kinds are read.  A table of one's own has the columns ``tokens`` and ``milliseconds``, and
``prompts`` and ``held`` if they were measured: a row is a batch.  A profile by operators, as
the Vidur simulator publishes them, has ``num_tokens``, ``num_tensor_parallel_workers`` and a
column ``time_stats.OPERATOR.median`` for each operator of a layer, in milliseconds: a round
takes the embedding once and every other operator once for each layer.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path

from kvopt.errors import InvalidInput, shown
from kvopt.hardware.fitting import Measured

_TOKENS = "num_tokens"
_WORKERS = "num_tensor_parallel_workers"
_PREFIX, _SUFFIX = "time_stats.", ".median"
_ONCE = "time_stats.emb.median"
"""The one operator that a round takes once, not in every layer."""

_OWN = ("tokens", "milliseconds")
_OPTIONAL = ("prompts", "held")

Row = dict[str, str]


def read_table(path: Path, layers: int, workers: int) -> tuple[list[Measured], bool]:
    """Return the batches of a table, and whether it is a profile by operators.

    Parameters
    ----------
    path
        The file.
    layers, workers
        Of a profile: layers of the model, and GPUs among which each is divided.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _rows(csv.DictReader(file, strict=True), layers, workers)
    except InvalidInput as error:
        raise error.located(file=str(path)) from None
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", file=str(path)) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"is not a CSV file: {error}", file=str(path)) from None


def _rows(table: csv.DictReader[str], layers: int, workers: int) -> tuple[list[Measured], bool]:
    columns = list(table.fieldnames or ())
    if _TOKENS in columns:
        return list(_profile(table, columns, layers, workers)), True
    unknown = set(columns) - {*_OWN, *_OPTIONAL}
    if unknown or not {*_OWN} <= {*columns}:
        reason = f"must be {','.join(_OWN)} and perhaps {','.join(_OPTIONAL)}, or a profile with"
        raise InvalidInput(f"{reason} {_TOKENS}, got {shown(','.join(columns))}", field="header")
    return [_own(row, line) for line, row in enumerate(table, 2)], False


def _own(row: Row, line: int) -> Measured:
    tokens, prompts, held = (
        _count(row, name, line) if name in row else 0 for name in ("tokens", "prompts", "held")
    )
    if prompts > tokens:
        raise InvalidInput(f"is above tokens, {tokens}", field=f"line {line}: prompts")
    return Measured(tokens, _time(row, "milliseconds", line), prompts, held)


def _profile(
    table: csv.DictReader[str], columns: list[str], layers: int, workers: int
) -> Iterator[Measured]:
    times = [name for name in columns if name.startswith(_PREFIX) and name.endswith(_SUFFIX)]
    if not times or _WORKERS not in columns:
        raise InvalidInput(f"has no {_WORKERS} or no {_PREFIX}*{_SUFFIX}", field="header")
    for line, row in enumerate(table, 2):
        if _count(row, _WORKERS, line) == workers:
            total = sum(_time(row, name, line) * (1 if name == _ONCE else layers) for name in times)
            yield Measured(_count(row, _TOKENS, line), total)


def _count(row: Row, name: str, line: int) -> int:
    number = _number(row, name)
    if number is None or number < 0 or number != int(number):
        reason = f"must be an integer that is not negative, got {shown(row.get(name))}"
        raise InvalidInput(reason, field=f"line {line}: {name}")
    return int(number)


def _time(row: Row, name: str, line: int) -> float:
    number = _number(row, name)
    if number is None or number <= 0:
        reason = f"must be a positive number, got {shown(row.get(name))}"
        raise InvalidInput(reason, field=f"line {line}: {name}")
    return number


def _number(row: Row, name: str) -> float | None:
    try:
        number = float(row.get(name) or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None
