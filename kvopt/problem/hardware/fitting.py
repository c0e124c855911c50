"""Batch times from measured batches.

A CSV table has the columns ``tokens`` and ``milliseconds``, and ``prompts`` and ``held`` if they
were measured: a row is a batch.

Measured batches are rounds of a server, whose time is their sum.  Plain least squares keep this
sum if there is a fixed cost; with relative errors long rounds would count little, and the sum would
be too low.  No coefficient is negative, and all are rounded to whole nanoseconds.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvopt.errors import InvalidInput, shown
from kvopt.problem.batch_time import MILLISECOND, BatchTime, Line

Vector = NDArray[np.float64]
Row = dict[str | None, str]

_MIN_POINTS = 3
"""Different numbers of tokens that a fit of lines needs."""

_NEEDED = ("tokens", "milliseconds")
_OPTIONAL = ("prompts", "held")


@dataclass(frozen=True, slots=True)
class Measured:
    """One batch: tokens through the weights, prompt tokens among them, tokens held, and time."""

    tokens: int
    milliseconds: float
    prompts: int = 0
    held: int = 0

    def round_ns(self, model: BatchTime) -> int:
        """Return the nanoseconds by a model, in whose formula tokens are A + S."""
        return model.round_ns(self.tokens - self.prompts, self.prompts, self.held)


@dataclass(frozen=True, slots=True)
class Fit:
    """A model and its errors on a table, relative to the measured times.

    Parameters
    ----------
    batch_time
        The model.
    rows, seconds
        Number of measured batches, and their total time.
    model_seconds
        Their times by the model.
    squared_error
        The mean of squared errors, in milliseconds.
    """

    batch_time: BatchTime
    rows: int
    seconds: float
    model_seconds: float
    squared_error: float
    largest_error: float
    typical_error: float


# ---- tables -----------------------------------------------------------------------------------


def read_table(text: str) -> list[Measured]:
    """Return the batches of a CSV table."""
    try:
        table = csv.DictReader(io.StringIO(text), strict=True)
        columns = [*(table.fieldnames or ())]
        if {*columns} - {*_NEEDED, *_OPTIONAL} or not {*_NEEDED} <= {*columns}:
            reason = f"must be {','.join(_NEEDED)} and perhaps {','.join(_OPTIONAL)}"
            raise InvalidInput(f"{reason}, got {shown(','.join(columns))}", field="header")
        return [_batch(row, line) for line, row in enumerate(table, 2)]
    except csv.Error as error:
        raise InvalidInput(f"is not a CSV file: {error}") from None


def _batch(row: Row, line: int) -> Measured:
    tokens, prompts, held = (
        int(_number(row, name, line, whole=True)) if name in row else 0
        for name in ("tokens", *_OPTIONAL)
    )
    if prompts > tokens:
        raise InvalidInput(f"is above tokens, {tokens}", field=f"line {line}: prompts")
    return Measured(tokens, _number(row, "milliseconds", line), prompts, held)


def _number(row: Row, name: str, line: int, *, whole: bool = False) -> float:
    """Return a number of a row: an integer that is not negative, or a positive number."""
    if None in row:  # for instance a comma inside a number
        raise InvalidInput("has more fields than the header", field=f"line {line}")
    try:
        number = float(row.get(name) or "")
    except ValueError:
        number = math.nan
    is_right = number >= 0 and number.is_integer() if whole else 0 < number < math.inf
    if not is_right:
        wanted = "an integer that is not negative" if whole else "a positive number"
        reason = f"must be {wanted}, got {shown(row.get(name))}"
        raise InvalidInput(reason, field=f"line {line}: {name}")
    return number


# ---- fits -------------------------------------------------------------------------------------


def fit_roof(rows: Sequence[Measured], lines: int = 2) -> Fit:
    """Fit one or two lines to times by tokens.

    With two, every split of the table is tried: one line for the batches below, one for those
    above it.  The split of least squared errors counts, or one line if no split is better.
    """
    if lines not in (1, 2):
        raise InvalidInput(f"must be 1 or 2, got {lines}", field="lines")
    ordered = sorted(rows, key=lambda row: row.tokens)
    tokens, times = np.array([row.tokens for row in ordered], dtype=float), _times(ordered)
    columns = np.stack([np.ones_like(tokens), tokens], axis=1)
    splits = [k for k in range(2, len(tokens) - 1) if tokens[k] > tokens[k - 1]]
    candidates: list[tuple[slice, ...]] = [(slice(None),)]
    if lines == 2:
        candidates += [(slice(k), slice(k, None)) for k in splits]
    fits = (
        judged(
            BatchTime([Line(*_not_negative(columns[s], times[s])) for s in sides]),
            ordered,
        )
        for sides in candidates
    )
    return min(fits, key=lambda fit: fit.squared_error)


def fit_linear(rows: Sequence[Measured]) -> Fit:
    """Fit one line and the costs of prompt tokens and of tokens held, none below 0."""
    times = _times(rows)
    columns = np.array([[1, row.tokens, row.prompts, row.held] for row in rows], dtype=float)
    fixed, token, prompt, held = _not_negative(columns, times)
    return judged(BatchTime([Line(fixed, token)], kv_ns=held, prompt_ns=prompt), rows)


def judged(model: BatchTime, rows: Sequence[Measured]) -> Fit:
    """Return a model with its errors on a table."""
    took = np.array([row.milliseconds for row in rows])
    predicted = np.array([row.round_ns(model) for row in rows]) / MILLISECOND
    errors = predicted / took - 1
    return Fit(
        model,
        len(rows),
        took.sum() / 1000,
        predicted.sum() / 1000,
        float(np.mean((predicted - took) ** 2)),
        np.abs(errors).max(),
        float(np.mean(errors**2)) ** 0.5,
    )


def _not_negative(columns: Vector, times: Vector) -> list[int]:
    """Return coefficients of least squared error, none below 0."""
    from scipy.optimize import nnls

    largest = np.maximum(columns.max(axis=0), 1.0)  # so that columns have similar sizes
    coefficients, _ = nnls(columns / largest / times.mean(), times / times.mean())
    return [round(float(x)) for x in coefficients / largest]


def _times(rows: Sequence[Measured]) -> Vector:
    """Return the times in nanoseconds of a table that is large enough."""
    if len({row.tokens for row in rows}) < _MIN_POINTS:
        raise InvalidInput(f"needs at least {_MIN_POINTS} different numbers of tokens")
    return np.array([row.milliseconds for row in rows]) * MILLISECOND
