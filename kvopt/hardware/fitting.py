"""Batch times from measured tables.

Times of a table vary by orders of magnitude, so what is made small is the error relative to
the measured time: weighted least squares.  Coefficients are rounded to whole nanoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvopt.errors import InvalidInput
from kvopt.model.batch_time import NANOSECONDS, BatchTime, Line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

_MILLISECOND = NANOSECONDS // 1000
_LEAST_POINTS = 3


@dataclass(frozen=True, slots=True)
class Measured:
    """One batch: tokens through the weights, prompt tokens among them, tokens held, and time."""

    tokens: int
    milliseconds: float
    prompts: int = 0
    held: int = 0


@dataclass(frozen=True, slots=True)
class Fit:
    """A model and how far it is from the table, relative to the measured times."""

    batch_time: BatchTime
    rows: int
    largest_error: float
    typical_error: float


def fit_roof(rows: Sequence[Measured], lines: int = 2) -> Fit:
    """Fit one or two lines to times by tokens.

    With two, every split of the table is tried: one line for the batches below, one for those
    above it.  The split whose largest relative error is smallest is taken, or one line if no
    split is better.
    """
    import numpy as np

    if lines not in (1, 2):
        raise InvalidInput(f"must be 1 or 2, got {lines}", field="lines")
    _check(rows)
    ordered = sorted(rows, key=lambda row: row.tokens)
    tokens = np.array([row.tokens for row in ordered], dtype=float)
    times = np.array([row.milliseconds for row in ordered]) * _MILLISECOND
    candidates = [[_line(tokens, times)]]
    if lines == 2:
        splits = [k for k in range(2, len(tokens) - 1) if tokens[k] > tokens[k - 1]]
        candidates += [[_line(tokens[:k], times[:k]), _line(tokens[k:], times[k:])] for k in splits]
    fits = (judged(BatchTime(candidate), ordered) for candidate in candidates)
    return min(fits, key=lambda fit: fit.largest_error)


def fit_linear(rows: Sequence[Measured]) -> Fit:
    """Fit one line and the costs of prompt tokens and of tokens held, none below 0."""
    import numpy as np

    _check(rows)
    times = np.array([row.milliseconds for row in rows]) * _MILLISECOND
    columns = np.array([[1, row.tokens, row.prompts, row.held] for row in rows], dtype=float)
    fixed, token, prompt, held = _not_negative(columns, times)
    return judged(BatchTime([Line(fixed, token)], kv_ns=held, prompt_ns=prompt), rows)


def judged(model: BatchTime, rows: Sequence[Measured]) -> Fit:
    """Return a model with its errors on a table."""
    errors = []
    for row in rows:
        # Of the formula only sums matter: tokens are A + S.
        time = model.round_ns(row.tokens - row.prompts, row.prompts, row.held)
        errors.append(abs(time / (row.milliseconds * _MILLISECOND) - 1))
    typical = (sum(error**2 for error in errors) / len(errors)) ** 0.5
    return Fit(model, len(rows), max(errors), typical)


def _line(tokens: Vector, times: Vector) -> Line:
    import numpy as np

    fixed, token = _not_negative(np.stack([np.ones_like(tokens), tokens], axis=1), times)
    return Line(fixed, token)


def _not_negative(columns: Vector, times: Vector) -> list[int]:
    """Return coefficients of least squared relative error, none below 0."""
    import numpy as np
    from scipy.optimize import nnls  # type: ignore[import-untyped]

    largest = np.maximum(columns.max(axis=0), 1.0)  # so that no column dwarfs another
    found, _ = nnls(columns / largest / times[:, None], np.ones_like(times))
    return [round(float(x)) for x in found / largest]


def _check(rows: Sequence[Measured]) -> None:
    if len({row.tokens for row in rows}) < _LEAST_POINTS:
        raise InvalidInput(f"needs at least {_LEAST_POINTS} different numbers of tokens")
