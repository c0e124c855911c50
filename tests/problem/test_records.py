"""Records of servers: replayed in integers, and refused with request and round."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import Run, written
from refusals import MISSING, edited, refusal

from kvopt import BatchTime, FalseClaim, Line, read_certificate, run
from kvopt.problem.batch_time import MILLISECOND
from kvopt.problem.clocks import Seconds
from kvopt.problem.hardware.fitting import Measured
from kvopt.timetable.records import read_batches, read_record
from kvopt.timetable.replay import Replay
from kvopt.timetable.run_files import RecordedRun, read_run, write_run
from kvopt.timetable.runs import PolicyRun
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.timing import timed

RECORDS = Path(__file__).parent / "records"
FILES = {path.stem: path for path in RECORDS.glob("*.jsonl")}
FILES["fcfs"] = Path(__file__).parents[2] / "samples" / "vllm.jsonl"
"""Made by ``benchmarks/vllm_record.py``; lengths drawn by `kvopt.generate`."""

POLICIES = {
    "fcfs": "vllm-fcfs",
    "priority": "vllm-priority:by=priority,max_seqs=12,budget=48",
    "asynchronous": "vllm-fcfs:asynchronous=1",
}

COMPACT: dict[str, Any] = {
    "engine": "vllm 0.33.0, v1 scheduler",
    "block_size": 2,
    "blocks": 4,
    "prefix_caching": False,
    "policy": "fcfs",
    "total_latency_rounds": 10,
    "requests": [[0, 3, 4], [1, 1, 3]],
    "token_rounds": [[[1, 3], [6, 6]], [[2, 2], [4, 5]]],
}

LINES: list[dict[str, Any]] = [
    {"schema": "kvopt.record/1", "engine": "vllm", "policy": "fcfs", "block": 2, "blocks": 3,
     "prefix_caching": False, "speculation": False, "sliding_window": False},
    {"arrived": "a", "round": 0, "prompt": 2},
    {"round": 1, "processed": {"a": 2}, "preempted": []},
    {"arrived": "b", "round": 1, "prompt": 2},
    {"tokens": {"a": 1}, "round": 1, "finished": []},
    {"round": 2, "processed": {"a": 1, "b": 2}, "preempted": []},
    {"tokens": {"a": 1, "b": 1}, "round": 2, "finished": ["a"]},
    {"round": 3, "processed": {"b": 1}, "preempted": []},
    {"tokens": {"b": 1}, "round": 3, "finished": ["b"]},
]  # fmt: skip


def lines(*changes: tuple[int, dict[str, Any]]) -> str:
    """Return the record with some lines changed."""
    made = [dict(line) for line in LINES]
    for number, change in changes:
        made[number] |= change
    return text_of(made)


def text_of(rows: list[dict[str, Any]]) -> str:
    """Return the text of a record."""
    return "".join(f"{json.dumps(row)}\n" for row in rows)


@pytest.mark.parametrize("name", POLICIES)
def test_what_vllm_decided_is_what_the_simulator_decides(name: str) -> None:
    record = read_record(FILES[name])
    found = run(record.instance, POLICIES[name])
    assert isinstance(found, PolicyRun)
    assert found.segments == record.schedule.segments
    chunks = [[chunks.request, chunks.start, *chunks.tokens] for chunks in found.chunks]
    assert sorted(map(list, record.chunks or ())) == sorted(chunks)
    assert (len(chunks) > 0) == (name == "priority")
    assert record.schedule.pauses > 0
    assert record.policy == f"vllm 0.33.0, {'priority' if name == 'priority' else 'fcfs'}"


def test_asynchronous_scheduling_can_be_read() -> None:
    record = read_record(RECORDS / "asynchronous.jsonl")
    assert record.notes["asynchronous"]
    assert record.notes["preemptions"] >= record.schedule.pauses > 0
    assert record.schedule.objective > read_record(FILES["fcfs"]).schedule.objective


def test_prompts_are_counted_as_kvopt_counts_them(tmp_path: Path) -> None:
    path = tmp_path / "record"
    path.write_text(lines())
    record = read_record(path)
    assert [(r.id, *r.kind) for r in record.instance] == [("a", 0, 1, 2), ("b", 1, 1, 2)]
    assert record.schedule.segments == (((1, 2),), ((2, 3),))
    assert (record.instance.memory, record.block, record.schedule.objective) == (6, 2, 4)


def test_who_admits_is_named_in_run_and_certificate(run: Run, tmp_path: Path) -> None:
    admission = {"admission": "patient:window=1", "slack": 0}
    (tmp_path / "r.jsonl").write_text(lines((0, {**admission, "engine": "vllm 0.33.0"})))
    said = "vllm 0.33.0, fcfs, admission patient:window=1, slack 0"
    found = read_record(tmp_path / "r.jsonl")
    assert found.policy == said
    assert {**found.notes, **admission} == found.notes
    code, _, err = run("import-run", tmp_path / "r.jsonl", "-o", tmp_path / "run.json")
    assert (code, f"run.json: {said}, 2 requests" in err) == (0, True), err
    output = tmp_path / "run.cert.json"
    assert said in run.done("certify", "--run", tmp_path / "run.json", "-t", "1", "-o", output)[0]
    assert [each.policy for each in read_certificate(output).runs] == [said]


def test_what_did_not_finish_is_left_out(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "record"
    path.write_text(lines((8, {"finished": []})))
    code, out, err = run("import-run", path, "-o", tmp_path / "run.json")
    assert (code, out) == (0, "")
    assert "left out 1 request that did not finish" in err
    found = read_run(tmp_path / "run.json").instance
    assert ([r.id for r in found], found.name) == (["a"], "record")


def test_a_gap_needs_a_preemption(tmp_path: Path) -> None:
    rounds = [{"round": 4, "processed": {"b": 1}, "preempted": []},
              {"tokens": {"b": 1}, "round": 4, "finished": ["b"]}]  # fmt: skip
    found = refusal(read_record, tmp_path / "record", lines((7, rounds[0]), (8, rounds[1])))
    assert found.startswith("request 'b': yields no token from round 3 to 3, and was not preempted")
    by_priority = lines((0, {"policy": "priority"}), (7, rounds[0]), (8, rounds[1]))
    (tmp_path / "record").write_text(by_priority)
    assert read_record(tmp_path / "record").schedule.pauses == 1


def test_a_false_total_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(edited(("total_latency_rounds",), 9, COMPACT))
    with pytest.raises(FalseClaim, match="says 9, the rounds give 10"):
        read_record(tmp_path / "r.json")


def test_import_run_writes_what_can_be_read_again(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps(COMPACT))
    code, out, err = run("import-run", path, "-o", tmp_path / "run.json")
    assert (code, out) == (0, "")
    assert "2 requests, total latency 10 rounds, 2 pauses" in err
    found = read_run(tmp_path / "run.json")
    assert found == read_record(path)
    write_run(found, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "run.json").read_bytes()
    judged = PolicyRun.of(found.schedule, found.policy)
    assert (judged.objective, judged.violations()) == (10, [])


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (("value",), 9, "value: says 9, the segments give 10"),
        (("segments", 0, 1), [3, 3], "request 'r0': segments: must ascend, got [3, 3]"),
        (("instance", "requests", 1, "prompt"), 5, "time 2: 10 tokens held, memory is 8"),
        (("block",), 0, "block: must be at least 1"),
        (("policy",), 1, "policy: must be text, got 1"),
        (("schema",), "kvopt.run/2", "schema: must be 'kvopt.run/1'"),
    ],
)
def test_a_run_that_breaks_the_rules_is_refused(
    place: tuple[str | int, ...], value: object, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "r.json").write_text(json.dumps(COMPACT))
    write_run(read_record(tmp_path / "r.json"), tmp_path / "run.json")
    original = json.loads((tmp_path / "run.json").read_text())
    assert refusal(read_run, tmp_path / "bad.json", edited(place, value, original)).startswith(
        reason
    )


# ---- prefix caching --------------------------------------------------------------------

SHARED: list[dict[str, Any]] = [
    {**LINES[0], "blocks": 5, "prefix_caching": True},
    {"arrived": "a", "round": 0, "prompt": 6, "prefix": ["x", "y", "a"]},
    {"arrived": "b", "round": 0, "prompt": 5, "prefix": ["x", "y"]},
    {"round": 1, "processed": {"a": 6, "b": 1}, "preempted": [], "hits": {"b": 4},
     "took": {"a": [1, 2, 3], "b": [1, 2, 4]}},
    {"tokens": {"a": 1, "b": 1}, "round": 1, "finished": ["b"]},
    {"arrived": "c", "round": 1, "prompt": 3, "prefix": ["x"]},
    {"round": 2, "processed": {"a": 1, "c": 1}, "preempted": [], "hits": {"c": 2},
     "took": {"a": [5], "c": [1, 4]}},
    {"tokens": {"a": 1, "c": 1}, "round": 2, "finished": ["a", "c"]},
]  # fmt: skip
"""Two requests at once and a third hold 5 blocks of 2 tokens; without sharing they need 6."""


def shared(*changes: tuple[int, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the record with prefix caching, with some lines changed."""
    made = [dict(line) for line in SHARED]
    for number, change in changes:
        made[number] |= change
    return made


def test_what_was_hit_in_the_cache_is_held_once(run: Run, tmp_path: Path) -> None:
    record = of_lines(SHARED, tmp_path / "record")
    assert [(r.prompt, r.prefix) for r in record.instance] == [(5, (0, 1)), (4, (0, 1)), (2, (0,))]
    assert record.instance.block_tokens == record.block == 2
    assert record.schedule.segments == (((1, 2),), ((1, 1),), ((2, 2),))
    assert (record.schedule.scope, record.schedule.peak_memory) == ("sharing", 8)
    assert (record.notes["cached_tokens"], record.chunks) == (6, None)
    alone = replace(record.instance, block_size=2).without_prefixes()
    found = replace(record.schedule, instance=alone).violations()
    assert found[:2] == [
        "time 1: 11 tokens held, memory is 10",
        "time 1: 6 blocks of 2 tokens held, there are 5",
    ]
    write_run(record, tmp_path / "run.json")
    assert read_run(tmp_path / "run.json") == record
    cert = tmp_path / "c.json"
    code, _, err = run("certify", "--run", tmp_path / "run.json", "--seconds", "-o", cert)
    assert (code, cert.exists()) == (2, False)
    assert "chunks: is missing: seconds need to know in which rounds prompts were" in err
    write_run(replace(record, chunks=[]), tmp_path / "run.json")  # as if nothing had been hit
    code, _, err = run("certify", "--run", tmp_path / "run.json", "--seconds", "-o", cert)
    assert (code, cert.exists()) == (2, False)
    assert "prefix: is not known by a recorded run in seconds" in err


def test_blocks_that_one_prompt_has_are_private(tmp_path: Path) -> None:
    rows = [
        SHARED[0],
        *({**line, "prefix": ["x", "y"][: n + 1]} for n, line in enumerate(LINES[1:4:2])),
        {**LINES[2], "hits": {}, "took": {"a": [1]}},
        {**LINES[4], "finished": ["a"]},
    ]
    rows[2] |= {"round": 0}
    found = of_lines(rows, tmp_path / "record")
    assert (found.instance.extras, found.instance.block_tokens) == ((), None)
    assert (found.schedule.scope, found.chunks) == ("runs", [])


BROKEN: list[tuple[tuple[int, dict[str, Any]], str]] = [
    ((6, {"tokens": {"a": 2, "b": 1}}), "request 'a': yields 2 tokens in round 2 (line 7)"),
    ((5, {"processed": {"a": 1, "b": 4}}), "request 'b': takes a block in round 2, where 4"),
    ((3, {"round": 2}), "request 'b': is processed in round 2, arrives at 2"),
    ((5, {"processed": {"a": 1}}), "request 'b': yields a token in round 2, which did not"),
    ((5, {"processed": {"a": 1, "b": 1}}), "request 'b': yields a token in round 2 with 1 "),
    ((5, {"preempted": ["c"]}), "request 'c': is in round 2 and never arrived"),
    ((5, {"round": 1}), "round: must ascend, got 1 after 1"),
    ((6, {"round": 4}), "round: has tokens twice, or was not processed: 4"),
    ((3, {"arrived": "a"}), "request 'a': arrives twice"),
    ((3, {"arrived": 1}), "arrived: must be a name, got 1"),
    ((3, {"priority": "x"}), "priority: must be an integer, got 'x'"),
    ((0, {"watermark": math.nan}), "notes: holds what no JSON file can carry"),
    ((6, {"finished": [[]]}), "finished: must hold names, got [[]]"),
    ((2, {"processed": {"a": 0}}), "processed: must be at least 1, got 0"),
    ((2, {"processed": [1]}), "processed: must be an object, got [1]"),
    ((4, {"odd": 1}), "odd: is not a known field"),
    ((0, {"schema": "kvopt.record/2"}), "schema: must be 'kvopt.record/1'"),
    ((0, {"prefix_caching": True}), "hits: must be there with prefix caching, and only there"),
    ((2, {"took": {}}), "took: must be there with prefix caching, and only there"),
    ((0, {"speculation": True}), "speculation: a round may yield several tokens"),
    ((0, {"sliding_window": True}), "sliding_window: memory does not grow with every"),
]
COMPACTLY_BROKEN: list[tuple[tuple[str | int, ...], object, str]] = [
    (("token_rounds", 0, 1), [3, 3], "request 'r0': segments: must ascend, got [3, 3]"),
    (("token_rounds", 1, 0), [1, 1], "request 'r1': starts at 0, arrives at 1"),
    (("blocks",), 2, "request 'r0': output: needs 6 tokens (prompt + output), memory is"),
    (("requests", 1, 1), 6, "time 2: 10 tokens held, memory is 8"),
    (("requests", 0, 2), 5, "request 'r0': segments: hold 4 times for 5 tokens"),
    (("requests", 0), [0, 3], "request 'r0': requests: must be [arrival, prompt, output]"),
    (("requests", 1, 1), 0, "request 'r1': prompt: must be at least 1, got 0"),
    (("token_rounds",), [[[1, 4]]], "token_rounds: must be as many as requests"),
    (("prefix_caching",), True, "prefix_caching: a record of all rounds in one object"),
    (("blocks",), MISSING, "blocks: is missing"),
]
OTHERWISE_SHARED: list[tuple[tuple[int, dict[str, Any]], str]] = [
    ((3, {"took": {"a": [1, 2, 3], "b": [1, 2, 3]}}), "request 'b': takes block 3 in round 1,"),
    ((3, {"took": {"a": [1, 2, 3], "b": [2, 1, 4]}}), "request 'b': hits block 2 in round 1, "
     "which holds other tokens"),
    ((3, {"took": {"a": [1, 2, 3], "b": [1, 4, 5]}}), "request 'b': hits block 4 in round 1, "
     "which is not full"),
    ((2, {"prefix": ["x", "z"]}), "request 'b': hits block 2 in round 1, which holds other"),
    ((3, {"hits": {"b": 3}}), "request 'b': hits 3 tokens in round 1: not whole blocks"),
    ((3, {"hits": {"a": 6}}), "request 'a': hits 6 tokens in round 1: not whole blocks"),
    ((6, {"hits": {"a": 2}}), "request 'a': hits 2 tokens in round 2: not whole blocks"),
    ((3, {"hits": {"b": 2}}), "request 'b': takes block 2 in round 1, which is held"),
    ((3, {"took": {"a": [1, 2, 3], "b": [1, 2]}}), "request 'b': stores 5 tokens in 2 blocks"),
    ((3, {"hits": {"c": 2}}), "request 'c': is in hits of round 1, which did not process it"),
    ((3, {"took": {"a": 1}}), "took: must hold lists of blocks, got 1"),
    ((3, {"hits": {"b": -2}}), "hits: must be at least 0, got -2"),
    ((0, {"blocks": 3}), "request 'b': takes a block in round 1, where 4 are needed"),
    ((1, {"prefix": [1.5]}), "request 'a': prefix: must hold integers or strings, got 1.5"),
    ((5, {"prefix": ["y"]}), "request 'c': hits block 1 in round 2, which holds other tokens"),
]  # fmt: skip
REFUSED = [
    *((lines(change), reason) for change, reason in BROKEN),
    *((edited(place, value, COMPACT), reason) for place, value, reason in COMPACTLY_BROKEN),
    *((text_of(shared(change)), reason) for change, reason in OTHERWISE_SHARED),
    ('{"schema": "kvopt.instance/1", "memory": 7, "requests": []}',
     "schema: must be 'kvopt.record/1', got 'kvopt.instance/1'"),
    (lines().partition("\n")[2],
     "is not JSON: Extra data (line 2); the first line of a record has the schema kvopt.rec"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_a_record_that_breaks_its_rules_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    assert refusal(read_record, tmp_path / "record", text).startswith(reason)


def test_blocks_of_finished_requests_are_free_and_lose_what_they_held(tmp_path: Path) -> None:
    taken = {"hits": {}, "took": {"a": [5], "c": [4, 6]}}  # 4 was of b: now it is another's
    again = {"arrived": "d", "round": 2, "prompt": 3, "prefix": ["x"]}
    rows = shared((0, {"blocks": 6}), (6, {**taken, "processed": {"a": 1, "c": 3}}))
    rows.append(again)
    hit = {"round": 3, "processed": {"d": 1}, "preempted": [], "hits": {"d": 2}}
    end = {"tokens": {"d": 1}, "round": 3, "finished": ["d"]}
    assert of_lines([*rows, {**hit, "took": {"d": [4, 1]}}, end], tmp_path / "r").instance
    text = text_of([*rows, {**hit, "took": {"d": [6, 1]}}, end])
    found = refusal(read_record, tmp_path / "r", text)
    assert found.startswith("request 'd': hits block 6 in round 3, which is not full")


def test_output_that_is_shared_while_it_is_held_counts_twice_here(tmp_path: Path) -> None:
    """The third block of a has its sixth token, which is the last of its prompt, and is private."""
    rows = shared(
        (2, {"prompt": 7, "prefix": ["x", "y", "a"]}),
        (3, {"hits": {"b": 6}, "took": {"a": [1, 2, 3], "b": [1, 2, 3, 4]}}),
    )
    assert of_lines(rows, tmp_path / "record").notes["cached_tokens"] == 8
    rows[0]["blocks"] = 4
    rows[4]["finished"] = ["a", "b"]
    rows[5:] = []
    assert refusal(read_record, tmp_path / "record", text_of(rows)).startswith(
        "prefix_caching: request 'b' in round 1 shares a block that is not of both prompts: time 1"
    )


# ---- in seconds ------------------------------------------------------------------------

CLOCK = Seconds(BatchTime([Line(10 * MILLISECOND, MILLISECOND)]))

PIECES: list[dict[str, Any]] = [
    LINES[0],
    {"arrived": "a", "round": 0, "prompt": 3, "ns": 5 * MILLISECOND},
    {"round": 1, "processed": {"a": 2}, "preempted": []},
    {"arrived": "b", "round": 1, "prompt": 2, "ns": 50 * MILLISECOND},
    {"tokens": {}, "round": 1, "finished": []},
    {"round": 2, "processed": {"a": 1}, "preempted": []},
    {"tokens": {"a": 1}, "round": 2, "finished": []},
    {"round": 3, "processed": {"a": 1, "b": 2}, "preempted": []},
    {"tokens": {"a": 1, "b": 1}, "round": 3, "finished": ["a"]},
    {"round": 4, "processed": {"b": 1}, "preempted": []},
    {"tokens": {"b": 1}, "round": 4, "finished": ["b"]},
]


def in_seconds(record: RecordedRun, clock: Seconds = CLOCK) -> PolicyRun:
    """Return what was decided, timed by a model."""
    found = timed(PolicyRun.of(record.with_chunks, record.policy), clock)
    assert found.violations() == []
    return found


def of_lines(rows: list[dict[str, Any]], path: Path) -> RecordedRun:
    """Return the run of a record with these lines."""
    return read_record(written(path, text_of(rows)))


def test_recorded_rounds_last_as_the_model_says(tmp_path: Path) -> None:
    record = of_lines(PIECES, tmp_path / "record")
    assert record.chunks == [[0, 0, 2]]
    found = in_seconds(record)
    # From 5: 12 for two tokens, 11 for the last and the first token, 11; from 50: 12 for two, 11.
    assert found.resumed == ({0: 5 * MILLISECOND, 3: 50 * MILLISECOND},)
    assert found.first_tokens == (28 * MILLISECOND, 62 * MILLISECOND)
    assert found.completions == (39 * MILLISECOND, 73 * MILLISECOND)
    assert found.objective == (34 + 23) * MILLISECOND
    assert found.scope == "chunks"


def measured(path: Path, *ends: int) -> Path:
    """Write the run of a record whose four rounds end at these milliseconds."""
    rows = [{**row, "ns": row.get("ns", 0)} for row in PIECES]
    for place, end in zip((4, 6, 8, 10), ends, strict=True):
        rows[place]["ns"] = end * MILLISECOND
    write_run(of_lines(rows, path / "record"), path / "run.json")
    model = {"schema": "kvopt.batch-time/1", "kv_ns": 0, "prompt_ns": 0,
             "lines": [{"round_ns": 10 * MILLISECOND, "token_ns": MILLISECOND}]}  # fmt: skip
    (path / "model.json").write_text(json.dumps(model))
    return path / "run.json"


@pytest.mark.parametrize(
    ("ends", "total", "is_slower"),
    [
        # By the model rounds last 12, 11, 13 and 11.
        ((60, 80, 100, 120), 95 + 70, True),
        ((17, 28, 63, 74), 58 + 24, True),  # the third begins when its second request came
        ((17, 28, 62, 74), 57 + 24, False),
    ],
)
def test_measured_times_stand_beside_the_model(
    run: Run, ends: tuple[int, ...], total: int, is_slower: bool, tmp_path: Path
) -> None:
    """They have a ratio if no round was shorter than by the model: only then bounds hold."""
    source, cert = measured(tmp_path, *ends), tmp_path / "c.json"
    given = "--run", source, "--seconds", "--batch-time", tmp_path / "model.json"
    judge = ("certify", *given, "-t", "1", "-o", cert)
    found = run.json(*judge)
    assert found["policies"][0]["value_ns"] == 57 * MILLISECOND
    row = found["provenance"]["measured"]
    assert (row["rounds"], row["model_seconds"]) == (4, pytest.approx(0.047))
    assert row["mean_seconds"] == pytest.approx(total / 2000)
    ends_ns = [found["upper_ns"], found["lower_ns"]]
    ratio = [total * MILLISECOND / end for end in ends_ns] if is_slower else [None, None]
    assert row["ratio"] == ratio
    assert read_certificate(cert).provenance["measured"] == row
    _, out, _ = run(*judge)
    assert f"measured and not checked: mean {total / 2000:.6f} s; 4 rounds took" in out
    assert ("has no ratio: rounds were shorter than by the model" in out) != is_slower


def test_a_run_that_memory_does_not_hold_on_a_clock_is_not_compared(
    run: Run, tmp_path: Path
) -> None:
    """The second one came with round 3, here with the last of the third, which needs all memory."""
    rows: list[dict[str, Any]] = [
        {**LINES[0], "ns": 0},
        {"arrived": "a", "round": 0, "prompt": 1, "ns": 0},
        {"arrived": "b", "round": 0, "prompt": 1, "ns": 80 * MILLISECOND},
        {"arrived": "c", "round": 0, "prompt": 1, "ns": 0},
    ]
    for number, names in enumerate(("a", "a", "ab", *"cccccc"), 1):
        done = dict.fromkeys(names, 1)
        rows.append({"round": number, "processed": done, "preempted": [], "ns": 0})
        last, ns = {3: ["a", "b"], 9: ["c"]}.get(number, []), 50 * number * MILLISECOND
        rows.append({"tokens": done, "round": number, "finished": last, "ns": ns})
    source, cert = measured(tmp_path, 60, 80, 100, 120), tmp_path / "c.json"
    write_run(of_lines(rows, tmp_path / "record"), source)
    given = "--run", source, "--seconds", "--batch-time", tmp_path / "model.json"
    err = run.done("certify", *given, "-t", "1", "-o", cert, "--policy", "svf")[1]
    found = read_certificate(cert)
    assert [each.policy for each in found.runs] == ["svf"]
    reason = "vllm, fcfs: not compared: on this clock requests begin in other rounds than recorded"
    assert any(note.startswith(reason) and "memory is 6" in note for note in found.notes)
    assert reason in err
    assert found.provenance["measured"]["policy"] == "vllm, fcfs"


def test_work_that_a_preemption_lost_takes_its_time(tmp_path: Path) -> None:
    rows = [
        *PIECES[:2],
        {"round": 1, "processed": {"a": 2}, "preempted": []},
        {"tokens": {}, "round": 1, "finished": []},
        {"arrived": "b", "round": 1, "prompt": 2, "ns": 6 * MILLISECOND},
        {"round": 2, "processed": {"b": 2}, "preempted": ["a"]},
        {"tokens": {"b": 1}, "round": 2, "finished": ["b"]},
        {"round": 3, "processed": {"a": 3}, "preempted": []},
        {"tokens": {"a": 1}, "round": 3, "finished": ["a"]},
    ]
    found = in_seconds(of_lines(rows, tmp_path / "record"))
    assert found.completions == ((5 + 12 + 12 + 13) * MILLISECOND, (5 + 12 + 12) * MILLISECOND)


@pytest.mark.parametrize("name", ["fcfs", "asynchronous"])
def test_the_simulator_on_the_clock_is_what_vllm_decided_timed(name: str) -> None:
    """All arrive at once, so that no round depends on how long the one before it took."""
    record = read_record(FILES[name])
    backlog = [replace(request, arrival_seconds=0) for request in record.instance]
    instance = replace(record.instance, requests=tuple(backlog))
    schedule = Schedule(instance, segments=record.schedule.segments)
    clock = Seconds(BatchTime([Line(5_000_000, 100_000), Line(0, 300_000)], 80, 7))
    found, timed_again = (
        run(instance, POLICIES[name], clock=clock),
        in_seconds(replace(record, schedule=schedule), clock),
    )
    assert found.completions == timed_again.completions
    assert found.first_tokens == timed_again.first_tokens
    assert found.peak_memory == timed_again.peak_memory


def test_a_round_planned_before_the_last_token_was_known_is_no_piece(tmp_path: Path) -> None:
    last = {"round": 3, "processed": {"a": 1, "b": 2}, "preempted": []}
    rows = [*LINES[:6], last, *LINES[6:7], {"tokens": {"b": 1}, "round": 3, "finished": ["b"]}]
    rows[5] = {"round": 2, "processed": {"a": 1}, "preempted": []}
    rows[7] = {"tokens": {"a": 1}, "round": 2, "finished": ["a"]}
    record = of_lines(rows, tmp_path / "record")
    assert record.chunks == []
    assert record.schedule.segments == (((1, 2),), ((3, 3),))


@pytest.mark.parametrize("preempted", [[], ["a"]])
def test_prompts_that_waited_half_processed_are_not_timed(
    preempted: list[str], tmp_path: Path
) -> None:
    rows = [dict(row) for row in PIECES]
    if preempted:  # and processed anew in the next round that is one
        rows[5] |= {"processed": {"a": 3}, "preempted": preempted}
    else:
        rows[5:5] = [{"round": 2, "processed": {"b": 2}, "preempted": []},
                     {"tokens": {"b": 1}, "round": 2, "finished": ["b"]}]  # fmt: skip
        for row in rows[7:]:
            row["round"] += 1
        rows[9], rows[10:] = (
            {**rows[9], "processed": {"a": 1}},
            [{"tokens": {"a": 1}, "round": 4, "finished": ["a"]}],
        )
    assert of_lines(rows, tmp_path / "record").chunks is None


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (("chunks",), MISSING, "chunks: is missing: seconds need to know in which rounds prompts"),
        (("chunks", 0), [0, 0], "chunks: must hold [request, round, tokens, ...], got [0, 0]"),
        (("chunks", 0, 2), 1.5, "chunks: must be an integer, got 1.5"),
        (("chunks", 0, 0), 2, "chunks: are of request 2, of which there is none"),
        (("chunks", 0, 2), 4, "request 'a' cannot process 4 tokens from 0 on"),
        (("chunks",), None, "chunks: must be a list, got None"),
        (("instance", "requests", 1, "arrival_seconds"), MISSING, "request 'b': arrival_seconds"),
    ],
)
def test_what_cannot_be_timed_is_refused(
    run: Run, place: tuple[str | int, ...], value: object, reason: str, tmp_path: Path
) -> None:
    write_run(of_lines(PIECES, tmp_path / "record"), tmp_path / "run.json")
    original = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "bad.json").write_text(edited(place, value, original))
    cert = tmp_path / "c.json"
    code, out, err = run("certify", "--run", tmp_path / "bad.json", "--seconds", "-o", cert)
    assert (code, out, err.count("\n"), cert.exists()) == (2, "", 1, False)
    assert err.startswith(f"kvopt: {tmp_path / 'bad.json'}: {reason}")


def test_arrivals_in_rounds_alone_are_no_seconds(run: Run, tmp_path: Path) -> None:
    write_run(of_lines(LINES, tmp_path / "record"), tmp_path / "run.json")
    judge = ("certify", "--run", tmp_path / "run.json", "--seconds", "-o", tmp_path / "c.json")
    code, _, err = run(*judge)
    assert (code, err.count("\n")) == (2, 1)
    assert "round_ms: is missing, so that arrivals have no time in seconds" in err
    known = json.loads((tmp_path / "run.json").read_text())
    known["instance"]["round_ms"] = 20
    (tmp_path / "run.json").write_text(json.dumps(known))
    assert run(*judge, "-t", "1")[0] == 0


# ---- times -----------------------------------------------------------------------------


def with_times(*times: int) -> str:
    """Return the record with milliseconds in its lines."""
    return lines(*((number, {"ns": ms * MILLISECOND}) for number, ms in enumerate(times)))


def test_a_line_that_ends_in_the_middle_costs_that_line_only(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "record"
    path.write_text(lines()[:-12])
    err = run.done("import-run", path, "-o", tmp_path / "run.json")[1]
    assert f"{path}: left out the last line, which ends in the middle\n" in err
    assert "left out 1 request that did not finish" in err
    assert [r.id for r in read_run(tmp_path / "run.json").instance] == ["a"]
    path.write_text(lines().rstrip("\n"))
    code, _, err = run("import-run", path, "-o", tmp_path / "run.json")
    assert (code, "left out" in err) == (0, False)
    path.write_text(lines()[:-12] + "\n")  # it was written to its end
    code, _, err = run("import-run", path, "-o", tmp_path / "run.json")
    assert (code, "is not JSON" in err, "(line 9)" in err) == (2, True, True)


def test_rounds_last_from_the_end_of_the_one_before_or_from_an_arrival(tmp_path: Path) -> None:
    path = tmp_path / "record"
    path.write_text(with_times(0, 5, 6, 7, 15, 17, 35, 36, 40))
    assert read_batches(path) == [
        Measured(2, 10, 1, 2),
        Measured(3, 20, 1, 5),
        Measured(1, 5, 0, 3),
    ]
    idle = [*LINES[:3], {"tokens": {"a": 1}, "round": 1, "finished": ["a"]}, LINES[3]]
    idle += [{"round": 2, "processed": {"b": 2}, "preempted": []},
             {"tokens": {"b": 1}, "round": 2, "finished": []}]  # fmt: skip
    path.write_text(
        "".join(
            json.dumps({**line, "ns": ms * MILLISECOND}) + "\n"
            for line, ms in zip(idle, (0, 1, 2, 9, 1000, 1001, 1003), strict=True)
        )
    )
    assert [row.milliseconds for row in read_batches(path)] == [8, 3]


def test_a_record_without_times_is_no_table(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    path.write_text(lines())
    code, _, err = run("hardware", "fit", path)
    assert (code, err) == (2, f"kvopt: {path}: ns: is missing: without it no round has a time\n")


def test_batch_times_of_a_record_are_those_of_its_server(run: Run, tmp_path: Path) -> None:
    """A server that keeps to a model is found again, from the times of its rounds alone."""
    model, path = BatchTime([Line(9_000_000, 50_000)], kv_ns=700, prompt_ns=20_000), tmp_path / "r"
    source = FILES["fcfs"].read_text().splitlines()
    replay, clock, written = Replay(json.loads(source[0])), 0, [source[0]]
    tokens = held = 0
    for text in source[1:]:
        event = {key: each for key, each in json.loads(text).items() if key != "ns"}
        replay.take(event)
        if "processed" in event:
            tokens = sum(event["processed"].values())
            held = sum(seen.stored for seen in replay.seen.values())
        elif "tokens" in event:
            active = len(event["tokens"])
            clock += model.round_ns(active, tokens - active, held)
        written.append(json.dumps({**event, "ns": clock}))
    path.write_text("\n".join(written) + "\n")
    code, out, err = run("hardware", "fit", path, "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert found["lines"] == [
        {
            "round_ns": pytest.approx(9_000_000, rel=1e-3),
            "token_ns": pytest.approx(50_000, rel=0.01),
        }
    ]
    assert found["kv_ns"] == pytest.approx(700, abs=2)
    assert found["prompt_ns"] == pytest.approx(20_000, rel=0.01)
    assert found["seconds"] == pytest.approx(found["model_seconds"], rel=1e-4)
