"""The model as a file, for any other solver."""

from __future__ import annotations

from pathlib import Path

from kvopt.dependencies import load_highspy
from kvopt.errors import InvalidInput
from kvopt.files.atomic import atomic_path
from kvopt.formulations.arrays import time_indexed_arrays, to_highs
from kvopt.formulations.layout import LARGEST_COLUMNS
from kvopt.horizon import Windows
from kvopt.instance import Instance

FORMULATIONS = ("time-indexed", "relaxed")
FORMATS = ("mps", "lp")


def export(
    instance: Instance,
    path: str | Path,
    formulation: str = "time-indexed",
    format: str = "lp",  # noqa: A002 - the name in the contract
    *,
    windows: Windows | None = None,
    largest_columns: int = LARGEST_COLUMNS,
) -> None:
    """Write the time-indexed program, or its relaxation, as MPS or LP.

    Columns are called ``x_<request>_<start>``, rows ``start_<request>``, ``memory_<time>``
    and ``order_<request>_<request>``, with ids where all of them are plain, else ``r0, r1,
    ...`` by position.

    Parameters
    ----------
    instance
        The problem.
    path
        The file; it appears whole or not at all.
    formulation
        ``time-indexed`` or ``relaxed``.
    format
        ``mps`` or ``lp``.
    windows
        Start rounds to consider; by default those that are proved to hold an optimum.
    largest_columns
        Raise `TooLarge` beyond this number of columns.
    """
    _one_of(formulation, FORMULATIONS, "formulation")
    _one_of(format, FORMATS, "format")
    model = time_indexed_arrays(instance, windows, largest_columns=largest_columns)
    highs = to_highs(model, relax=formulation == "relaxed", names=True)
    with atomic_path(path) as temporary:
        # HiGHS takes the format from the suffix.
        written = temporary.with_name(f"{temporary.name}.{format}")
        try:
            if highs.writeModel(str(written)) == load_highspy().HighsStatus.kError:
                raise InvalidInput("HiGHS could not write the model", file=str(path))
            written.replace(temporary)
        finally:
            written.unlink(missing_ok=True)


def _one_of(value: str, allowed: tuple[str, ...], field: str) -> None:
    if value not in allowed:
        raise InvalidInput(f"must be one of {', '.join(allowed)}, got {value!r}", field=field)
