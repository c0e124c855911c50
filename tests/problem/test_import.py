"""Traces as instances: what is kept, what is left out and counted, times, samples."""

from __future__ import annotations

import gzip
import json
import random
import tracemalloc
from collections import Counter
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from commands import Run, written
from hypothesis import given
from hypothesis import strategies as st

from kvopt import Instance, InvalidInput, import_trace, read_instance
from kvopt.problem.traces.rows import nanoseconds

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


def azure(tmp_path: Path, *rows: str) -> Path:
    return written(tmp_path / "trace.csv", HEADER + "".join(f"{row}\n" for row in rows))


def at(second: int, rest: str = "5,7") -> str:
    return f"2023-11-16 18:15:{second:02d},{rest}"


def notes_of(instance: Instance) -> dict[str, Any]:
    assert isinstance(instance.notes, dict)
    return instance.notes


# ---- times -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1970-01-01 00:00:01", 10**9),
        ("1970-01-01T00:00:01Z", 10**9),
        ("1970-01-01 02:00:01.5+02:00", 15 * 10**8),
        ("1969-12-31 23:00:00-0100", 0),
        ("1970-01-01 00:00:00.1234567", 123_456_700),
        ("1970-01-01 00:00:00.1234567894", 123_456_789),
        ("1970-01-01 00:00:00,25", 250_000_000),
        ("0.1", 10**8),
        ("1e3", 10**12),
        (" 7 ", 7 * 10**9),
        ("-2", -2 * 10**9),
        ("2023-02-31 00:00:00", None),
        ("2023-02-03 25:00:00", None),
        ("2023-02-03", None),
        ("yesterday", None),
        ("1970-01-01 00:00:01 UTC", 10**9),
        ("1970-01-01T02:00:01.5 +02:00", 15 * 10**8),
        ("nan", None),
        ("inf", None),
        ("", None),
        ("1970-01-01 00:00:00+99:99", None),
    ],
)
def test_times_are_read_exactly(text: str, wanted: int | None) -> None:
    assert nanoseconds(text) == wanted


@given(st.integers(0, 4 * 10**18), st.integers(0, 9))
def test_every_number_of_decimals_is_read(moment: int, digits: int) -> None:
    cut = moment - moment % 10 ** (9 - digits)
    stamp = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=cut // 10**9)
    decimals = f"{cut % 10**9:09d}"[:digits]
    text = stamp.strftime("%Y-%m-%d %H:%M:%S") + (f".{decimals}" if decimals else "")
    assert nanoseconds(text) == cut


# ---- rows --------------------------------------------------------------------------


def test_what_is_left_out_is_counted_with_its_first_line(tmp_path: Path) -> None:
    rows = [
        at(0), "", at(1, "5,0"), at(2, "5,0"), at(3, "90,11"), at(4, "5"), at(5, "5,"),
        at(6, "5,six"), at(7, "5,-6"), at(8, "5,1.5"), at(9, "5,NaN"), "soon,5,7", ",5,7",
        at(10, "12.0,3"), at(11, "0,1"), at(12, "40,21"), at(13, "99999999999999999999,1"),
    ]  # fmt: skip
    instance = import_trace(azure(tmp_path, *rows), "azure", 100, max_total=60)
    assert [r.shape for r in instance] == [(5, 7), (12, 3), (0, 1)]
    notes = notes_of(instance)
    assert notes["dropped"] == {
        "blank line": {"rows": 1, "first_line": 3},
        "no output": {"rows": 2, "first_line": 4},
        "more than 60 tokens (--max-total)": {"rows": 2, "first_line": 6},
        "missing field": {"rows": 3, "first_line": 7},
        "tokens are not a whole number of at least 0": {"rows": 5, "first_line": 9},
        "unreadable time": {"rows": 1, "first_line": 13},
    }
    assert notes["rows_read"] == len(rows)
    assert notes["usable"] == notes["kept"] == 3


def test_what_does_not_fit_into_memory_is_left_out(tmp_path: Path) -> None:
    instance = import_trace(azure(tmp_path, at(0, "3,7"), at(1, "3,8")), "azure", 10)
    assert len(instance) == 1
    assert list(notes_of(instance)["dropped"]) == ["more tokens than memory (10)"]


def test_arrivals_are_sorted_and_rounded_up_to_rounds(tmp_path: Path) -> None:
    rows = [at(9, "1,1"), at(3, "2,1"), at(9, "3,1"), "2023-11-16T18:15:03.0500001Z,4,1"]
    instance = import_trace(azure(tmp_path, *rows), "azure", 100, round_ms=50)
    assert [r.prompt for r in instance] == [2, 4, 1, 3]
    assert [r.arrival for r in instance] == [0, 2, 120, 120]
    assert [r.arrival_seconds for r in instance] == [0, 0.0500001, 6, 6]
    assert instance.round_ms == 50
    assert notes_of(instance)["out_of_order"] == 2


@given(
    st.lists(st.integers(0, 10**12), min_size=1, max_size=9), st.floats(1e-3, 1e5, allow_nan=False)
)
def test_rounds_begin_at_the_arrival_or_later(times: list[int], length: float) -> None:
    from kvopt.problem.traces.importing import requests_of
    from kvopt.problem.traces.rows import Row

    rows = [Row(time, 1, 1) for time in sorted(times)]
    exact = Fraction(length) * 10**6
    for row, request in zip(rows, requests_of(rows, "seconds", exact), strict=True):
        since = row.time - rows[0].time
        assert (request.arrival - 1) * exact < since <= request.arrival * exact


def test_a_backlog_has_no_clock(tmp_path: Path) -> None:
    instance = import_trace(azure(tmp_path, at(9), at(3)), "azure", 100, all_at_once=True)
    assert [(r.arrival, r.arrival_seconds) for r in instance] == [(0, None)] * 2
    assert instance.round_ms is None


# ---- formats -----------------------------------------------------------------------


def test_mooncake_lines_are_read_or_counted(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    good = {"timestamp": 27_000, "input_length": 6, "output_length": 5, "hash_ids": [0]}
    lines = [
        json.dumps(good), "", "{", "[1]", json.dumps({**good, "output_length": None}),
        json.dumps({"timestamp": 1}), json.dumps({**good, "input_length": True}),
        json.dumps({**good, "timestamp": 27_500.5}), json.dumps({**good, "input_length": "6"}),
    ]  # fmt: skip
    path.write_text("\n".join(lines))
    instance = import_trace(path, "mooncake", 100, round_ms=100)
    assert [r.arrival_seconds for r in instance] == [0, 0, 0.5005]
    assert [r.arrival for r in instance] == [0, 0, 6]
    tenth = import_trace(path, "mooncake", 100, round_ms=0.1)  # no float is one tenth
    assert [r.arrival for r in tenth] == [0, 0, 5005]
    counts = {reason: entry["rows"] for reason, entry in notes_of(instance)["dropped"].items()}
    assert counts == {
        "blank line": 1, "not JSON": 1, "missing field": 3,
        "tokens are not a whole number of at least 0": 1,
    }  # fmt: skip


def test_lengths_take_any_two_columns(tmp_path: Path) -> None:
    path = written(tmp_path / "lengths.csv", "a,p,b,o\nx,1,y,2\nx,3,y,4\n")
    instance = import_trace(path, "lengths", 100, prompt_column="p", output_column="o")
    assert [r.shape for r in instance] == [(1, 2), (3, 4)]
    assert {r.arrival for r in instance} == {0}


def test_csv_is_read_in_seconds_in_rounds_and_without_times(tmp_path: Path) -> None:
    path = written(tmp_path / "own.csv", "arrival_seconds,prompt,output\n1.5,1,2\n2.25,3,4\n")
    seconds = import_trace(path, "csv", 100, round_ms=250)
    assert [(r.arrival, r.arrival_seconds) for r in seconds] == [(0, 0), (3, 0.75)]
    path.write_text("arrival,prompt,output\n9,1,2\n4,3,4\n-1,1,1\n")
    rounds = import_trace(path, "csv", 100)
    assert [(r.arrival, r.prompt, r.arrival_seconds) for r in rounds] == [
        (4, 3, None),
        (9, 1, None),
    ]
    assert rounds.round_ms is None
    assert import_trace(path, "csv", 100, round_ms=20).round_ms == 20
    path.write_text("when,prompt,output\n2024-01-01 00:00:03,1,2\n2024-01-01 00:00:01,3,4\n")
    named = import_trace(path, "csv", 100, time_column="when")
    assert [r.arrival_seconds for r in named] == [0, 2]
    assert [r.arrival for r in import_trace(path, "csv", 100)] == [0, 0]


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("", {"format": "azure"}, "column 'ContextTokens': is missing"),
        ("a,b\n1,2\n", {"format": "azure"}, "column 'ContextTokens': is missing"),
        (HEADER.replace("TIMESTAMP", "ContextTokens"), {"format": "azure"}, "is given twice"),
        (HEADER + "x,y,z\n", {"format": "azure"}, "no request that can be used"),
        ("x\n", {"format": "mooncake"}, "no request that can be used: 1 x not JSON"),
        (HEADER, {"format": "parquet"}, "format: must be one of"),
        (HEADER, {"format": "azure", "prompt_column": "p"}, "prompt-column: is for lengths"),
        (HEADER, {"format": "lengths", "time_column": "p"}, "time-column: is for csv"),
        (HEADER + at(1), {"format": "azure", "round_ms": 0}, "round-ms: must be"),
        (HEADER + at(1), {"format": "azure", "limit": -1}, "limit: must be at least 0"),
        (HEADER + at(1), {"format": "azure", "sample": True}, "sample: must be an integer"),
        (HEADER + at(1), {"format": "azure", "max_total": 0}, "max-total: must be at least 1"),
        (HEADER + '"' + "x" * 200_000, {"format": "azure"}, "is not a CSV file"),
    ],
)
def test_bad_files_and_options_are_refused_in_a_line(
    tmp_path: Path, text: str, options: dict[str, Any], said: str
) -> None:
    path = written(tmp_path / "trace.csv", text)
    with pytest.raises(InvalidInput) as caught:
        import_trace(path, memory=100, **options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_of_no_rows_is_an_empty_instance(tmp_path: Path) -> None:
    assert len(import_trace(azure(tmp_path), "azure", 100)) == 0
    assert len(import_trace(azure(tmp_path, at(1)), "azure", 100, limit=0)) == 0


def test_bytes_that_are_no_text_spoil_their_own_field(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_bytes(
        b"\xef\xbb\xbf" + HEADER.encode() + f"{at(1)}\r\n".encode() + b"\xff\xfe,5,7\n"
    )
    instance = import_trace(path, "azure", 100)
    assert len(instance) == 1
    assert notes_of(instance)["dropped"] == {"unreadable time": {"rows": 1, "first_line": 3}}


@pytest.mark.parametrize(
    ("header", "format_"),
    [
        ("TIMESTAMP,ContextTokens,GeneratedTokens", "azure"),
        ("num_prefill_tokens,num_decode_tokens", "lengths"),
        ("arrival,prompt,output", "csv"),
        ("prompt,output", "csv"),
    ],
)
def test_a_row_with_more_fields_than_the_header_is_left_out(
    tmp_path: Path, header: str, format_: str
) -> None:
    """A comma inside a number would else become two numbers: 1,024 and 557 are 1 and 24."""
    path = tmp_path / "trace.csv"
    before = "3," * (header.count(",") - 1)
    path.write_text(f"{header}\n{before}5,7\n{before}1,024,557\n{before}6,8\n")
    instance = import_trace(path, format_, 2_000)
    assert [r.shape for r in instance] == [(5, 7), (6, 8)]
    assert notes_of(instance)["dropped"] == {
        "more fields than the header": {"rows": 1, "first_line": 3}
    }


def test_the_last_line_of_a_file_may_end_in_the_middle(run: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "trace.jsonl", tmp_path / "a.json"
    line = json.dumps({"timestamp": 27_000, "input_length": 6, "output_length": 5})
    path.write_text(f"{line}\n{line}\n{line[:30]}")
    err = run.done("import", path, "-f", "mooncake", "-m", 100, "-o", out)[1]
    assert "left out 1: not JSON (first at line 3)" in err
    assert len(read_instance(out)) == 2


def test_what_gzip_packed_is_read_and_a_broken_one_refused(tmp_path: Path) -> None:
    plain, packed = azure(tmp_path, at(0), at(1, "6,8")), tmp_path / "trace.csv.gz"
    for format_ in ("azure", "csv"):
        packed.write_bytes(gzip.compress(plain.read_bytes()))
        found, wanted = (import_trace(path, format_, 100) for path in (packed, plain))
        assert found.requests == wanted.requests
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(InvalidInput, match=r"trace\.csv\.gz: cannot be read: .*end-of-stream"):
        import_trace(packed, "azure", 100)


# ---- records of usage ------------------------------------------------------------------


USAGE = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
CHAT = {"id": "x", "created": 1_700_000_000, "choices": [{"usage": 1}], "usage": USAGE}
RESPONSES = {"created_at": 1_700_000_000.5, "usage": {"input_tokens": 5, "output_tokens": 7}}


@pytest.mark.parametrize(
    "line",
    [
        CHAT,
        RESPONSES,
        {"created": 1_700_000_000, **USAGE},
        {"request": {"model": "m", "created": None}, "response": CHAT},
        {"custom_id": "1", "response": {"status_code": 200, "body": CHAT}, "error": None},
    ],
)
def test_records_of_usage_are_read(tmp_path: Path, line: dict[str, Any]) -> None:
    path = tmp_path / "usage.jsonl"
    later = {**CHAT, "created": 1_700_000_003}
    path.write_text(f"{json.dumps(later)}\n{json.dumps(line)}\n{json.dumps({'usage': None})}\n")
    instance = import_trace(path, "openai", 100)
    assert [r.shape for r in instance] == [(5, 7), (5, 7)]
    assert instance.requests[1].arrival_seconds in (2.5, 3)
    notes = notes_of(instance)
    assert notes["dropped"] == {"missing field": {"rows": 1, "first_line": 3}}
    assert "cached_tokens" not in notes


def test_cached_tokens_are_counted_and_told(run: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "usage.jsonl", tmp_path / "a.json"
    older = {**CHAT, "usage": {**USAGE, "prompt_tokens_details": {"cached_tokens": 3}}}
    newer = {"created_at": 1, "usage": {"input_tokens": 9, "output_tokens": 1,
             "input_tokens_details": {"cached_tokens": 8}}}  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in (older, CHAT, newer)))
    said = "11 tokens of these prompts were cached, and count as processed and held all the same"
    _, _, err = run("import", path, "-f", "openai", "-m", 100, "-o", out)
    assert f"{said}: the trace does not say which ones" in err
    assert notes_of(read_instance(out))["cached_tokens"] == 11
    path = written(
        tmp_path / "usage.csv",
        "created,usage.prompt_tokens,usage.completion_tokens,"
        "usage.prompt_tokens_details.cached_tokens\n1,5,7,3\n2,9,1,8\n3,9,1,\n",
    )
    _, _, err = run("import", path, "-f", "csv", "-m", 100, "-o", out)
    assert said in err
    assert len(read_instance(out)) == 3


# ---- limit and sample --------------------------------------------------------------


def test_a_limit_counts_what_can_be_used_and_stops_reading(tmp_path: Path) -> None:
    rows = [at(k % 60, "5,0" if k % 2 else "5,7") for k in range(40)]
    instance = import_trace(azure(tmp_path, *rows), "azure", 100, limit=5)
    notes = notes_of(instance)
    assert (len(instance), notes["rows_read"], notes["dropped"]["no output"]["rows"]) == (5, 9, 4)


@pytest.mark.slow
def test_samples_are_repeatable_and_every_request_is_as_likely(tmp_path: Path) -> None:
    path = azure(tmp_path, *[at(k, f"{k},1") for k in range(10)])
    drawn: Counter[int] = Counter()
    for seed in range(2000):
        instance = import_trace(path, "azure", 100, sample=3, seed=seed)
        assert len({r.prompt for r in instance}) == 3
        drawn.update(r.prompt for r in instance)
    assert all(520 < count < 680 for count in drawn.values())  # 600, four deviations of 20
    assert len(drawn) == 10
    one, two = (import_trace(path, "azure", 100, sample=3, seed=5) for _ in range(2))
    assert one.requests == two.requests
    assert len(import_trace(path, "azure", 100, sample=99)) == 10


@pytest.mark.slow
def test_only_what_is_kept_stays_in_memory(tmp_path: Path) -> None:
    rng = random.Random(1)
    path = azure(tmp_path, *[at(k % 60, f"{rng.randrange(90)},9") for k in range(6_000)])
    tracemalloc.start()
    try:
        import_trace(path, "azure", 100, sample=20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < path.stat().st_size / 2


# ---- the command -------------------------------------------------------------------


def test_the_command_writes_the_same_bytes_and_says_what_it_left_out(
    run: Run, tmp_path: Path
) -> None:
    trace, out = azure(tmp_path, at(5), "", at(3), at(4, "5,0")), tmp_path / "a.json"
    arguments = ("import", trace, "--format", "azure", "--memory", 100, "--round-ms", 20)
    code, said, err = run(*arguments, "-o", out)
    assert (code, said) == (0, "")
    assert "2 requests, memory 100, rounds of 20 ms" in err
    assert "left out 1: no output (first at line 5)" in err
    assert "sorted: 1 arrived before an earlier line" in err
    first = out.read_bytes()
    run(*arguments, "-o", out)
    assert out.read_bytes() == first
    assert read_instance(out) == import_trace(trace, "azure", 100, round_ms=20)


@pytest.mark.parametrize(
    ("name", "format_", "rows", "median_prompt"),
    [
        ("AzureLLMInferenceTrace_conv.csv", "azure", 19_366, 1_020),
        ("AzureLLMInferenceTrace_code.csv", "azure", 8_819, 1_469),
        ("mooncake_conversation_trace.jsonl", "mooncake", 12_031, None),
        ("arxiv_summarization_lengths.csv", "lengths", 28_257, 2_730),
    ],
)
def test_public_traces_have_their_rows(
    public_data: Path, name: str, format_: str, rows: int, median_prompt: int | None
) -> None:
    instance = import_trace(public_data / name, format_, 200_000)
    assert len(instance) == rows
    if median_prompt is not None:
        assert sorted(r.prompt for r in instance)[rows // 2] == median_prompt


# ---- rows and limits of a log ---------------------------------------------------------------

LOG = (
    "created_at,model,region,prompt_tokens,completion_tokens,slo_ms\n"
    "2024-05-01T10:00:00Z,small,eu,10,4,2000\n"
    "2024-05-01T10:00:01Z,large,eu,11,5,\n"
    "2024-05-01T10:00:02Z,small,us,12,6,90\n"
    "2024-05-01T10:00:03Z,small,eu,13,7,soon\n"
    "2024-05-01T10:00:04Z,tiny,eu,14,0,10\n"
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return written(tmp_path / "log.csv", LOG)


def test_where_keeps_the_rows_with_some_values(log: Path) -> None:
    found = import_trace(log, "csv", 100, where="model=small")
    assert [r.prompt for r in found] == [10, 12, 13]
    assert notes_of(found)["dropped"] == {
        "model is not small (--where)": {"rows": 2, "first_line": 3}
    }
    assert notes_of(found)["where"] == "model=small"
    both = import_trace(log, "csv", 100, where=["model=small", "region=eu", "model = large"])
    assert [r.prompt for r in both] == [10, 11, 13]


def test_where_reads_fields_of_json_lines(tmp_path: Path) -> None:
    rows = []
    for at, name in enumerate("aba", 1):
        usage = {"prompt_tokens": at, "completion_tokens": 1}
        rows.append({"model": name, "stream": name == "a", "created": at, "usage": usage})
    path = written(tmp_path / "log.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    for where in ("model=a", "stream=true"):
        assert [r.prompt for r in import_trace(path, "openai", 9, where=where)] == [1, 3]


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("model", "where: must be COLUMN=VALUE, got 'model'"),
        ("=small", "where: must be COLUMN=VALUE"),
        ("modell=small", "column 'modell': is missing, the header is"),
        ("model=huge", "holds no request that can be used: 5 x model is not huge (--where)"),
    ],
)
def test_conditions_that_select_nothing_are_refused(log: Path, where: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        import_trace(log, "csv", 100, where=where)
    assert reason in str(caught.value)


def test_limits_are_whole_rounds_of_their_unit(log: Path) -> None:
    found = import_trace(log, "csv", 100, e2e_column="slo_ms", where="region=eu")
    assert [r.e2e for r in found] == [40, None]  # of 50 ms
    assert "unreadable e2e" in notes_of(found)["dropped"]
    assert "e2e in slo_ms (ms)" in notes_of(found)["columns"]
    short = import_trace(log, "csv", 100, e2e_column="slo_ms", where="region=us")
    assert [r.e2e for r in short] == [1]
    backlog = import_trace(
        log, "csv", 100, e2e_column="slo_ms", all_at_once=True, round_ms=10, limit=1
    )
    assert [(r.arrival, r.e2e) for r in backlog] == [(0, 200)]
    assert backlog.round_ms == 10


def test_limits_of_rounds_stay_rounds(tmp_path: Path) -> None:
    path = written(tmp_path / "rounds.csv", "arrival,prompt,output,due,slo_ms\n3,5,2,8,1\n")
    found = import_trace(path, "csv", 100, e2e_column="due", round_ms=20)
    assert [(r.arrival, r.e2e) for r in found] == [(3, 8)]
    with pytest.raises(InvalidInput, match="column 'slo_ms': counts ms, arrivals count rounds"):
        import_trace(path, "csv", 100, e2e_column="slo_ms")
    with pytest.raises(InvalidInput, match="e2e-column: is for csv, not for azure"):
        import_trace(path, "azure", 100, e2e_column="due")


def test_the_command_takes_conditions_and_limits(run: Run, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "i.json"
    options = ("--where", "model=small", "--where", "region=eu", "--e2e-column", "slo_ms")
    err = run.done("import", log, "-f", "csv", "-m", 100, "-o", out, *options)[1]
    assert "left out 2: model is not small (--where) (first at line 3)" in err
    assert [r.e2e for r in read_instance(out)] == [40]
