"""``import_trace``: read the requests of a trace file as an instance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from inspect import signature
from math import ceil, inf
from pathlib import Path
from random import Random
from typing import Any, TypedDict, Unpack

from kvopt.errors import InvalidInput, shown
from kvopt.files.reading import blamed_on, is_standard_input, name_of, without_nulls
from kvopt.kernels.guarding import blamed
from kvopt.problem.batch_time import MILLISECOND, NANOSECONDS
from kvopt.problem.instance import Instance
from kvopt.problem.requests import Request, checked_integer, checked_number
from kvopt.problem.traces.formats import FORMATS, Clock, Trace
from kvopt.problem.traces.rows import Line, Row, Unread

DEFAULT_ROUND_MS = 50.0
"""About the time of a small batch of Llama-2-70B on two A100."""


class TraceOptions(TypedDict, total=False):
    """Options of `import_trace`.

    Parameters
    ----------
    limit
        Stop after so many usable requests, in the order of the file.
    sample, seed
        Keep so many of them, drawn without replacement.
    round_ms
        Length of a round; a request arrives at the first round that begins at its arrival
        or later.
    all_at_once
        Ignore arrivals: a backlog.
    max_total
        Skip requests of more tokens, prompt and output together.
    prompt_column, output_column, time_column
        Names of columns, for ``lengths`` and ``csv``, which otherwise looks for known names.
    prefixes
        Keep the blocks that prompts begin with, so that requests share them: the whole ones of
        ``hash_ids``, or of ``session`` and ``system_prompt`` in a CSV file.
    block_tokens
        Tokens of a block in a CSV file, 16 by default.
    e2e_column
        Column of ``csv`` with limits of the time to the last token, in the unit at the end of its
        name or in seconds.  Limits are rounded down to whole rounds, at least one.
    where
        ``COLUMN=VALUE``, one or several: rows with these texts are read.  Of several values of one
        column any counts.
    """

    limit: int | None
    sample: int | None
    seed: int
    round_ms: float | None
    all_at_once: bool
    max_total: int | None
    prompt_column: str | None
    output_column: str | None
    time_column: str | None
    prefixes: bool
    block_tokens: int | None
    e2e_column: str | None
    where: str | Sequence[str] | None


def import_trace(
    path: str | Path,
    format: str,  # noqa: A002 - as the option is called
    memory: int,
    **options: Unpack[TraceOptions],
) -> Instance:
    """Read a trace; the notes of the instance count skipped lines by reason.

    The file is read once, line by line; only usable requests stay in memory.

    Parameters
    ----------
    path
        The file, perhaps of gzip; ``-`` is standard input.
    format
        ``azure``, ``mooncake``, ``bailian``, ``lengths`` (two columns, no arrivals), ``csv``,
        ``openai``, or a registered one.
    memory
        Cache size; requests that do not fit into it are skipped.
    options
        See `TraceOptions`.

    Returns
    -------
    Instance
        Requests in order of arrival, with ``arrival_seconds`` from the first of them.
    """
    path, remaining = Path(path), dict[str, Any](options)
    round_ms, all_at_once = remaining.pop("round_ms", None), remaining.pop("all_at_once", False)
    checked_integer(memory, "memory", 1)
    prefixes = remaining.pop("prefixes", False)
    with blamed_on(path):
        of_columns = [
            key for key in remaining if key.endswith("_column") or key in ("block_tokens", "where")
        ]
        columns = {key: remaining.pop(key) for key in of_columns}
        trace = _opened(path, format, **columns)
        if prefixes and trace.block_tokens is None:
            reason = (
                "needs hash_ids (mooncake, bailian), or in csv a column session, or system_prompt "
                "with system_prompt_tokens"
            )
            raise InvalidInput(reason, field="prefixes")
        clock: Clock = "none" if all_at_once else trace.clock
        with blamed(f"format {format}", FORMATS.find(format)):
            kept, notes = selected(trace.lines, memory, **remaining)
        # In order of arrival; equal and missing times in the order of the file.
        kept.sort(key=lambda pair: (pair[0].time, pair[1]))
        rows = [row if prefixes else row._replace(prefix=()) for row, _ in kept]
        if round_ms is not None:
            checked_number(round_ms, "round-ms", positive=True)
        if clock == "none" and not any(row.e2e for row in rows):
            round_ms = None
        elif trace.clock != "rounds" and round_ms is None:
            round_ms = DEFAULT_ROUND_MS
        length = Fraction(1)
        if trace.clock != "rounds" and round_ms is not None:
            length = Fraction(str(round_ms)) * MILLISECOND  # as written: 0.1 is one tenth
        details = {
            "where": columns.get("where"),
            "columns": trace.columns,
            "all_at_once": all_at_once,
            "cached_tokens": sum(row.cached for row in rows),
        }
        return Instance(
            memory,
            requests_of(rows, clock, length),
            name=None if is_standard_input(path) else path.stem,
            notes={
                "imported_from": name_of(path.name),
                "format": format,
                **{name: value for name, value in details.items() if value},
                **notes,
            },
            round_ms=round_ms,
            block_tokens=trace.block_tokens,
        )


def requests_of(rows: list[Row], clock: Clock, length: Fraction) -> list[Request]:
    """Return requests with rounds of a length; a clock of seconds begins at the first arrival."""
    is_timed = clock == "seconds"
    first = rows[0].time if rows and is_timed else 0

    def arrival(time: int) -> int:
        if clock == "rounds":
            return time
        return ceil((time - first) / length) if is_timed else 0

    return [
        Request(
            arrival(row.time),
            row.prompt,
            row.output,
            arrival_seconds=(row.time - first) / NANOSECONDS if is_timed else None,
            e2e=row.e2e and max(1, int(row.e2e / length)),
            prefix=row.prefix,
        )
        for row in rows
    ]


def _opened(path: Path, format: str, **columns: Any) -> Trace:  # noqa: A002
    """Return the rows of a file in a format; column options go to formats with columns."""
    read = FORMATS.find(format)
    used = {option: name for option, name in columns.items() if name not in (None, ())}
    for option in used:
        if option not in signature(read).parameters:
            others = FORMATS.all().items()
            takers = [name for name, other in others if option in signature(other).parameters]
            reason = f"is for {' and '.join(takers)}, not for {format}"
            raise InvalidInput(reason, field=option.replace("_", "-"))
    with blamed(f"format {format}", read):
        trace = read(path, **used)
        if not isinstance(trace, Trace):
            raise TypeError(f"it returned {shown(trace)}, and must return a Trace")
    return trace


def selected(
    lines: Iterable[Line],
    memory: int,
    *,
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    max_total: int | None = None,
) -> tuple[list[tuple[Row, int]], dict[str, Any]]:
    """Return usable requests with the numbers of their lines, and notes for readers.

    Parameters
    ----------
    lines
        Lines of the file, which are read until they end or the limit is reached.
    memory, max_total
        Largest peaks of a request; the second is the limit of the user.
    limit
        Limit of usable requests.
    sample, seed
        Number of those to keep, drawn without replacement; all by default.

    Raises
    ------
    InvalidInput
        If there are lines but no request: the file has another format.
    """
    options = without_nulls({"limit": limit, "sample": sample, "max_total": max_total})
    for name, count in options.items():
        checked_integer(count, name.replace("_", "-"), 1 if name == "max_total" else 0)
    kept, dropped = list[tuple[Row, int]](), dict[str, dict[str, int]]()
    random, latest, read, usable, out_of_order = Random(seed), -inf, 0, 0, 0
    for number, row in () if limit == 0 else lines:
        read += 1
        if reason := row.reason if isinstance(row, Unread) else _refusal(row, memory, max_total):
            dropped.setdefault(reason, {"rows": 0, "first_line": number})["rows"] += 1
            continue
        assert isinstance(row, Row)
        usable += 1
        out_of_order += row.time < latest
        latest = max(latest, row.time)
        # All usable requests are equally likely in a sample.
        if sample is None or len(kept) < sample:
            kept.append((row, number))
        elif (place := random.randrange(usable)) < sample:
            kept[place] = row, number
        if usable == limit:
            break
    if read and not usable:
        ranked = sorted(dropped.items(), key=lambda entry: -entry[1]["rows"])
        summary = "; ".join(
            f"{entry['rows']} x {reason} (first at line {entry['first_line']})"
            for reason, entry in ranked
        )
        raise InvalidInput(f"holds no request that can be used: {summary}")
    if sample is not None:
        options["seed"] = seed
    counts = {"rows_read": read, "usable": usable, "kept": len(kept), "out_of_order": out_of_order}
    return kept, {**options, **counts, "dropped": dropped}


def _refusal(row: Row, memory: int, max_total: int | None) -> str | None:
    """Return the reason why a request is skipped."""
    if row.output < 1:
        return "no output"
    if max_total is not None and row.prompt + row.output > max_total:
        return f"more than {max_total} tokens (--max-total)"
    if row.prompt + row.output > memory:
        return f"more tokens than memory ({memory})"
    return None
