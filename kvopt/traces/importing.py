"""``import_trace``: the requests of a trace file as an instance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from inspect import signature
from pathlib import Path

from kvopt.errors import InvalidInput
from kvopt.model.instance import Instance, Request, checked_integer, checked_number
from kvopt.traces.formats import FORMATS, Clock, Trace
from kvopt.traces.rows import Row
from kvopt.traces.selection import Selection
from kvopt.traces.times import NANOSECONDS

DEFAULT_ROUND_MS = 50.0
"""About what a batch of Llama-2-70B on two A100 takes while it is small."""

_MILLISECOND = NANOSECONDS // 1000


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
        ``azure``, ``mooncake``, ``lengths`` (two columns, no arrivals), ``csv``, or one that was
        registered.
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
    trace = _opened(
        path,
        format,
        prompt_column=prompt_column,
        output_column=output_column,
        time_column=time_column,
    )
    clock: Clock = "none" if all_at_once else trace.clock
    selection = Selection(memory, limit, sample, seed, max_total)
    try:
        selection.take(trace.lines)
        # In order of arrival; at the same time, and without times, in the order of the file.
        kept = sorted(selection.kept, key=lambda found: (found[0].time, found[1]))
        rows = [row for row, _ in kept]
        length = _round_ms(clock, round_ms)
        return Instance(
            memory,
            _requests(rows, clock, length),
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


def _round_ms(clock: Clock, given: float | None) -> float | None:
    if given is not None:
        checked_number(given, "round-ms", positive=True)
    if clock == "none":
        return None
    return given if given is not None or clock == "rounds" else DEFAULT_ROUND_MS


def _requests(rows: list[Row], clock: Clock, round_ms: float | None) -> Iterable[Request]:
    if clock == "none":
        return (Request(0, row.prompt, row.output) for row in rows)
    if clock == "rounds":
        return (Request(*row) for row in rows)
    assert round_ms is not None
    return _timed(rows, round_ms)


def _opened(path: Path, format: str, **columns: str | None) -> Trace:  # noqa: A002
    """Return what a format makes of a file; names of columns go to those that take them."""
    read = FORMATS.find(format)
    given = {option: name for option, name in columns.items() if name is not None}
    for option in given:
        if option not in signature(read).parameters:
            others = FORMATS.all().items()
            takers = [name for name, other in others if option in signature(other).parameters]
            reason = f"is for {' and '.join(takers)}, not for {format}"
            raise InvalidInput(reason, field=option.replace("_", "-"))
    return read(path, **given)


def _timed(rows: list[Row], round_ms: float) -> Iterator[Request]:
    """Yield requests whose clock begins at the first arrival."""
    length = Fraction(round_ms) * _MILLISECOND
    first = rows[0].time if rows else 0
    for row in rows:
        since = row.time - first
        arrival = -(-since * length.denominator // length.numerator)  # rounded up, exactly
        yield Request(arrival, row.prompt, row.output, arrival_seconds=since / NANOSECONDS)
