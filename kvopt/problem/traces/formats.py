"""Formats of traces by name, for ``kvopt import --format``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import tee
from pathlib import Path
from typing import Literal, NamedTuple

from kvopt.kernels.registry import Registry
from kvopt.problem.batch_time import MILLISECOND, NANOSECONDS
from kvopt.problem.requests import checked_integer
from kvopt.problem.traces.recognition import recognised
from kvopt.problem.traces.rows import (
    Columns,
    Line,
    conditions,
    csv_rows,
    from_rows,
    read_json_lines,
)

Clock = Literal["seconds", "rounds", "none"]


class Trace(NamedTuple):
    """Content of a trace in some format.

    Parameters
    ----------
    lines
        Number and content of each line, read lazily.
    clock
        Unit of times: nanoseconds of a clock, rounds, or nothing.
    columns
        Meaning of the columns, in words, if it was derived from the file.
    block_tokens
        Tokens of the blocks that rows name, None if they name none.
    """

    lines: Iterable[Line]
    clock: Clock = "seconds"
    columns: str | None = None
    block_tokens: int | None = None


Format = Callable[..., Trace]
"""A function of the path, and of its parameters among the options of `TraceOptions` about columns:
those that end in ``_column``, ``block_tokens`` and ``where``."""

Where = str | Sequence[str]
"""Rows to read, ``NAME=VALUE`` of each condition."""

FORMATS: Registry[Format] = Registry(
    "format",
    "kvopt.formats",
    dict.fromkeys(("azure", "mooncake", "bailian", "lengths", "csv", "openai"), __name__),
)

register = FORMATS.register
"""Register a format under a name; a decorator."""


@register("azure")
def azure(path: Path, where: Where = ()) -> Trace:
    """Read a CSV file with dates and times."""
    columns = Columns("ContextTokens", "GeneratedTokens", "TIMESTAMP", where=conditions(where))
    return Trace(from_rows(csv_rows(path), columns))


@register("mooncake")
def mooncake(path: Path, where: Where = ()) -> Trace:
    """Read a JSON object on each line, with milliseconds and blocks of 512 tokens."""
    return _hashed(path, MILLISECOND, 512, where)


@register("bailian")
def bailian(path: Path, where: Where = ()) -> Trace:
    """Read a JSON object on each line, with seconds and blocks of 16 tokens."""
    return _hashed(path, NANOSECONDS, 16, where)


def _hashed(path: Path, unit: int, block: int, where: Where) -> Trace:
    columns = Columns(
        "input_length",
        "output_length",
        "timestamp",
        unit,
        blocks="hash_ids",
        block_tokens=block,
        where=conditions(where),
    )
    return Trace(read_json_lines(path, columns), block_tokens=block)


@register("lengths")
def lengths(
    path: Path,
    prompt_column: str = "num_prefill_tokens",
    output_column: str = "num_decode_tokens",
    where: Where = (),
) -> Trace:
    """Read two columns of a CSV file."""
    columns = Columns(prompt_column, output_column, where=conditions(where))
    return Trace(from_rows(csv_rows(path), columns), "none")


@register("csv")
def csv(
    path: Path,
    prompt_column: str | None = None,
    output_column: str | None = None,
    time_column: str | None = None,
    e2e_column: str | None = None,
    block_tokens: int = 16,
    where: Where = (),
) -> Trace:
    """Read a CSV file in seconds, in rounds or without times, by its header."""
    rows, ahead = tee(csv_rows(path))  # standard input can be read once only
    columns, words = recognised(ahead, prompt_column, output_column, time_column, e2e_column)
    clock: Clock = "none" if columns.time is None else "seconds" if columns.unit else "rounds"
    shares = columns.session is not None or columns.system is not None
    block_tokens = checked_integer(block_tokens, "block-tokens", 1)
    columns = replace(columns, block_tokens=block_tokens, where=conditions(where))
    return Trace(from_rows(rows, columns), clock, words, block_tokens if shares else None)


@register("openai")
def openai(path: Path, where: Where = ()) -> Trace:
    """Read an answer of OpenAI's interface on each line, or an object that contains one."""
    columns = Columns(
        "prompt_tokens",
        "completion_tokens",
        "created",
        cached="cached_tokens",
        where=conditions(where),
    )
    return Trace(read_json_lines(path, columns))
