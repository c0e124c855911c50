"""Read a record of a server's decisions, and replay it in integers.

A prompt of s tokens of a server has s - 1 tokens in kvopt: the j-th token is computed while
s + j - 1 tokens are stored, and the last one is never stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf, isfinite
from pathlib import Path
from typing import Any

from kvopt.errors import FalseClaim, InvalidInput, placed, shown
from kvopt.files.reading import (
    blamed_on,
    check_fields,
    check_schema,
    is_standard_input,
    name_of,
    parse_json,
    read_text,
)
from kvopt.problem.batch_time import NANOSECONDS
from kvopt.problem.hardware.fitting import Measured, read_table
from kvopt.problem.instance import Instance
from kvopt.problem.prefixes import check_forest, numbered
from kvopt.problem.requests import Request, checked_integer
from kvopt.timetable.replay import SCHEMA, Replay, Seen, replayed
from kvopt.timetable.run_files import Measurements, RecordedRun
from kvopt.timetable.schedule import Schedule

_COMPACT = ("engine", "block_size", "blocks", "requests", "token_rounds")
_COMPACT_MORE = (
    "columns", "max_num_batched_tokens", "max_num_seqs", "chunked_prefill", "prefix_caching",
    "policy", "preemptions", "total_latency_rounds", "steps", "speculation", "sliding_window",
)  # fmt: skip

_REFUSED = {
    "prefix_caching": "a record of all rounds in one object does not say which blocks are shared: "
    "use the recorder, or --no-enable-prefix-caching",
    "speculation": "a round may yield several tokens of a request, which kvopt does not count: "
    "record without a draft model",
    "sliding_window": "memory does not grow with every token where attention is limited to a "
    "window or layers differ: record a model with full attention",
}
"""Reasons to refuse a record, by the feature of the server."""


def read_record(path: str | Path) -> RecordedRun:
    """Read the decisions of a server: ``kvopt.record/1``, or one JSON object with all rounds.

    The instance gets the name of the file.

    Raises
    ------
    InvalidInput
        If the record breaks its own rules, with request and round; or if the server used a
        feature that kvopt does not model, with the reason.
    """
    name = None if is_standard_input(path) else Path(path).stem
    with blamed_on(path):
        text = read_text(path)
        if _is_record(text):
            return _of_replay(replayed(text, name_of(path)), name)
        return _of_compact(text, name)


def read_batches(path: str | Path) -> list[Measured]:
    """Return the measured batches of a record or a table."""
    with blamed_on(path):
        text = read_text(path)
        if not _is_record(text):
            return read_table(text)
        if not (batches := replayed(text, name_of(path)).batches):
            raise InvalidInput("is missing: without it no round has a time", field="ns")
        return batches


def _is_record(text: str) -> bool:
    return '"kvopt.record/' in text.partition("\n")[0]


def refuse_features(record: Mapping[str, Any]) -> None:
    """Refuse a record of a server that breaks the problem, with the reason."""
    for name, reason in _REFUSED.items():
        if record.get(name):
            raise InvalidInput(reason, field=name)


def _of_replay(replay: Replay, name: str | None) -> RecordedRun:
    settings = replay.settings
    refuse_features({**settings, "prefix_caching": False})
    done = [seen for seen in replay.seen.values() if seen.is_finished]
    if not done:
        raise InvalidInput("no request finished")
    has_priorities = settings["policy"] == "priority"
    check_forest([seen.prefix for seen in done], [seen.name for seen in done])
    uses = Counter(block for seen in done for block in seen.prefix)
    shared = [[block for block in seen.prefix if uses[block] > 1] for seen in done]
    requests = [
        Request(
            seen.arrival,
            seen.prompt - 1,
            len(seen.tokens),
            seen.name,
            arrival_seconds=seen.since / NANOSECONDS if isfinite(seen.since) else None,
            priority=seen.priority if has_priorities else None,
            prefix=path,
        )
        for seen, path in zip(done, numbered(shared), strict=True)
    ]
    instance = Instance(
        settings["block"] * settings["blocks"],
        requests,
        name,
        block_tokens=settings["block"] if any(shared) else None,
    )
    schedule = Schedule.at_times(instance, (seen.tokens for seen in done))
    left = {"schema", "ns", *_REFUSED}
    notes = {key: value for key, value in settings.items() if key not in left}
    notes |= {"rounds": replay.round, "preemptions": replay.preemptions}
    notes["left_out"] = len(replay.seen) - len(done)
    if settings["prefix_caching"]:
        notes["cached_tokens"] = replay.cached
    label = f"{settings['engine']}, {settings['policy']}"
    if "admission" in settings:
        label += f", admission {settings['admission']}, slack {settings.get('slack')}"
    chunks = [[i, *row] for i, seen in enumerate(done) for row in _chunks(seen)]
    is_known = not (replay.has_gaps or any(shared))
    try:
        return RecordedRun(
            label,
            schedule,
            settings["block"],
            notes,
            chunks if is_known else None,
            _measurements(replay, done),
        )
    except InvalidInput as error:
        if not replay.outside:
            raise
        reason = f"{replay.outside} shares a block that is not of both prompts: {error}"
        raise InvalidInput(reason, field="prefix_caching") from None


def _measurements(replay: Replay, done: Iterable[Seen]) -> Measurements | None:
    """Return the measured times, None unless all are in the record."""
    latency = sum(seen.ended - seen.since if seen.since < inf else inf for seen in done)
    if not (replay.batches and isfinite(latency)):
        return None
    return Measurements(int(latency), replay.round, replay.batches)


def _chunks(seen: Seen) -> list[list[int]]:
    """Return the rounds in a row that yielded no token, and the tokens that each processed."""
    chunks: list[list[int]] = []
    for number, tokens in seen.pieces.items():
        if number > seen.tokens[-1]:  # planned before the last token was known
            break
        if number - 1 not in seen.pieces:
            chunks.append([number - 1])
        chunks[-1].append(tokens)
    return chunks


def _of_compact(text: str, name: str | None) -> RecordedRun:
    """Return the run of one JSON object: no record of lines begins in its first line."""
    try:
        value = parse_json(text)
    except InvalidInput as error:
        reason = f"{error.reason}; the first line of a record has the schema {SCHEMA}"
        raise InvalidInput(reason) from None
    if isinstance(value, dict) and "schema" in value:
        check_schema(value, SCHEMA)
    top = check_fields(value, "record", _COMPACT, _COMPACT_MORE)
    refuse_features(top)
    block = checked_integer(top["block_size"], "block_size", 1)
    memory = block * checked_integer(top["blocks"], "blocks", 1)
    rows, rounds = top["requests"], top["token_rounds"]
    if not isinstance(rows, list) or not isinstance(rounds, list) or len(rows) != len(rounds):
        raise InvalidInput("must be as many as requests", field="token_rounds")
    requests = [_request(row, i) for i, row in enumerate(rows)]
    schedule = Schedule(Instance(memory, requests, name), segments=rounds)
    notes = {key: top[key] for key in _COMPACT_MORE[1:8] if key in top}
    engine = str(top["engine"]).partition(",")[0]
    run = RecordedRun(f"{engine}, {top.get('policy', 'unknown')}", schedule, block, notes)
    claimed = top.get("total_latency_rounds", schedule.objective)
    if claimed != schedule.objective:
        reason = f"says {shown(claimed)}, the rounds give {schedule.objective}"
        raise FalseClaim(reason, field="total_latency_rounds")
    return run


def _request(row: object, position: int) -> Request:
    name = f"r{position}"
    with placed(request=repr(name)):
        if not isinstance(row, list) or len(row) != 3:
            reason = f"must be [arrival, prompt, output], got {shown(row)}"
            raise InvalidInput(reason, field="requests")
        return Request(row[0], checked_integer(row[1], "prompt", 1) - 1, row[2], name)
