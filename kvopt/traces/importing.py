"""``import_trace``: the requests of a trace file as an instance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path

from kvopt.errors import InvalidInput, shown
from kvopt.model.instance import Instance, Request, checked_integer, checked_number
from kvopt.traces.rows import (
    AZURE,
    LENGTHS,
    MOONCAKE,
    Columns,
    Row,
    header_of,
    read_csv,
    read_json_lines,
)
from kvopt.traces.selection import Selection
from kvopt.traces.times import NANOSECONDS

FORMATS = ("azure", "mooncake", "lengths", "csv")

DEFAULT_ROUND_MS = 50.0
"""About what a batch of Llama-2-70B on two A100 takes while it is small."""

_MILLISECOND = NANOSECONDS // 1000
_SECONDS, _ROUNDS = "arrival_seconds", "arrival"


def import_trace(
    path: str | Path,
    format: str,  # noqa: A002 - as the option is called
    memory: int,
    *,
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    round_ms: float | None = None,
    all_at_once: bool = False,
    max_total: int | None = None,
    prompt_column: str | None = None,
    output_column: str | None = None,
    time_column: str | None = None,
) -> Instance:
    """Read a trace; what was left out, and why, is counted in the notes of the instance.

    The file is read once, line by line; only requests that are kept stay in memory.

    Parameters
    ----------
    path
        The file.
    format
        ``azure``, ``mooncake``, ``lengths`` (two columns, no arrivals) or ``csv``.
    memory
        Cache size; requests that do not fit into it are left out.
    limit
        Stop after so many requests that are kept, in the order of the file.
    sample, seed
        Keep so many of them, drawn without replacement.
    round_ms
        Length of a round; a request arrives at the first round that begins at its arrival
        or later.
    all_at_once
        Forget arrivals: a backlog.
    max_total
        Leave out requests of more tokens than that, prompt and output together.
    prompt_column, output_column, time_column
        Names of columns, for ``lengths`` and ``csv``.

    Returns
    -------
    Instance
        Requests in order of arrival, with ``arrival_seconds`` from the first of them.
    """
    path = Path(path)
    checked_integer(memory, "memory", 1)
    columns = _columns(path, format, prompt_column, output_column, time_column)
    selection = Selection(memory, limit, sample, seed, max_total)
    try:
        read = read_json_lines if format == "mooncake" else read_csv
        selection.take(read(path, columns))
        # In order of arrival; at the same time, and without times, in the order of the file.
        kept = sorted(selection.kept, key=lambda found: (found[0].time, found[1]))
        rows = [row for row, _ in kept]
        length = _round_ms(columns, round_ms, all_at_once)
        return Instance(
            memory,
            _requests(rows, columns, length, all_at_once),
            name=path.stem,
            notes={
                "imported_from": path.name,
                "format": format,
                **({"all_at_once": True} if all_at_once else {}),
                **selection.notes(),
            },
            round_ms=length,
        )
    except InvalidInput as error:
        raise error.located(file=str(path)) from None


def _round_ms(columns: Columns, given: float | None, all_at_once: bool) -> float | None:
    if given is not None:
        checked_number(given, "round-ms", positive=True)
    if columns.time is None or all_at_once:
        return None
    return given if given is not None or not columns.unit else DEFAULT_ROUND_MS


def _requests(
    rows: list[Row], columns: Columns, round_ms: float | None, all_at_once: bool
) -> Iterable[Request]:
    if columns.time is None or all_at_once:
        return (Request(0, row.prompt, row.output) for row in rows)
    if not columns.unit:
        return (Request(*row) for row in rows)
    assert round_ms is not None
    return _timed(rows, round_ms)


def _columns(
    path: Path,
    format: str,  # noqa: A002
    prompt: str | None,
    output: str | None,
    time: str | None,
) -> Columns:
    named = {"prompt-column": prompt, "output-column": output, "time-column": time}
    if format in ("azure", "mooncake"):
        if field := next((name for name, value in named.items() if value is not None), None):
            raise InvalidInput(f"is for lengths and csv, not for {format}", field=field)
        return AZURE if format == "azure" else MOONCAKE
    if format == "lengths":
        if time is not None:
            raise InvalidInput("is for csv: lengths have no times", field="time-column")
        return Columns(prompt or LENGTHS.prompt, output or LENGTHS.output)
    if format != "csv":
        raise InvalidInput(
            f"must be one of {', '.join(FORMATS)}, got {shown(format)}", field="format"
        )
    if time is None:
        header = header_of(path)
        time = next((name for name in (_SECONDS, _ROUNDS) if name in header), None)
    unit = 0 if time == _ROUNDS else NANOSECONDS
    return Columns(prompt or "prompt", output or "output", time, unit)


def _timed(rows: list[Row], round_ms: float) -> Iterator[Request]:
    """Yield requests whose clock begins at the first arrival."""
    length = Fraction(round_ms) * _MILLISECOND
    first = rows[0].time if rows else 0
    for row in rows:
        since = row.time - first
        arrival = -(-since * length.denominator // length.numerator)  # rounded up, exactly
        yield Request(arrival, row.prompt, row.output, arrival_seconds=since / NANOSECONDS)
