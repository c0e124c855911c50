"""The model as a file, for any other solver."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Unpack

from kvopt.errors import InvalidInput, unknown_name
from kvopt.files.atomic import atomic_path
from kvopt.formulations.time_indexed import LayoutOptions, time_indexed_arrays, to_highs
from kvopt.formulations.windows import Windows
from kvopt.kernels.solver_versions import load_highspy
from kvopt.problem.instance import Instance, refuse_blocks

FORMULATIONS = ("time-indexed", "relaxed")
FORMATS = ("mps", "lp")
SUFFIXES = tuple(f".{name}{gz}" for name in FORMATS for gz in ("", ".gz"))
"""Endings of file names, each with its format."""


def export(
    instance: Instance,
    path: str | Path,
    formulation: str = "time-indexed",
    format: str | None = None,  # noqa: A002 - the name in the contract
    *,
    windows: Windows | None = None,
    **options: Unpack[LayoutOptions],
) -> None:
    """Write the time-indexed program or its relaxation as MPS or LP.

    Columns are called ``x_<request>_<start>``, rows ``start_<request>``, ``memory_<time>``
    and ``order_<request>_<request>``, with ids if all of them are plain, else ``r0, r1,
    ...`` by position.  In a fleet the worker follows the start and the time.

    Parameters
    ----------
    instance
        The problem.
    path
        The file; it appears whole or not at all.  A name that ends in ``.gz`` is compressed.
    formulation
        ``time-indexed`` or ``relaxed``.
    format
        ``mps`` or ``lp``; by default the ending of the name, see `format_of`.
    windows
        Start rounds to consider; by default those that are proved to hold an optimum.
    options
        See `LayoutOptions`.
    """
    refuse_blocks(instance, "export")
    format = format_of(path) if format is None else format  # noqa: A001
    for name, names, field in (
        (formulation, FORMULATIONS, "formulation"),
        (format, FORMATS, "format"),
    ):
        if name not in names:
            raise unknown_name(name, names, field)
    model = time_indexed_arrays(instance, windows, **options)
    highs = to_highs(model, relax=formulation == "relaxed", names=True)
    with atomic_path(path) as temporary:
        # HiGHS takes the format from the suffix.
        written = temporary.with_name(f"{temporary.name}.{format}")
        try:
            if highs.writeModel(str(written)) == load_highspy().HighsStatus.kError:
                raise InvalidInput("HiGHS could not write the model", file=str(path))
            if _is_compressed(path):
                _compress(written, temporary)
            else:
                written.replace(temporary)
        finally:
            written.unlink(missing_ok=True)


def format_of(path: str | Path) -> str:
    """Return the format of a file name; without a suffix it is ``lp``.

    Raises
    ------
    InvalidInput
        If the name ends in something else than `SUFFIXES`.

    Examples
    --------
    >>> format_of("small.MPS.gz"), format_of("/dev/stdout")
    ('mps', 'lp')
    """
    name = Path(path).name.lower().removesuffix(".gz")
    suffix = Path(name).suffix.removeprefix(".")
    if suffix in FORMATS:
        return suffix
    if suffix or _is_compressed(path):
        reason = f"must end in one of {', '.join(SUFFIXES)}, or be given a format"
        raise InvalidInput(reason, file=str(path))
    return "lp"


def _is_compressed(path: str | Path) -> bool:
    return Path(path).suffix.lower() == ".gz"


def _compress(source: Path, target: Path) -> None:
    """Compress a file; no name and no date go into it, so the same model gives the same bytes."""
    with (
        source.open("rb") as plain,
        target.open("wb") as stream,
        gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed,
    ):
        shutil.copyfileobj(plain, packed)
