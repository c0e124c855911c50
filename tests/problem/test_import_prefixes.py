"""Traces whose requests share prefixes: whole blocks are kept, where they are asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import Run

from kvopt import InvalidInput, import_trace, read_instance

HASHED: list[dict[str, Any]] = [
    {"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [7, 8, 9]},
    {"timestamp": 100, "input_length": 1024, "output_length": 5, "hash_ids": [7, 8]},
    {"timestamp": 200, "input_length": 600, "output_length": 5},
]


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Return a file with an object on each line."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(("name", "block", "kept"), [("mooncake", 512, 2), ("bailian", 16, 3)])
def test_whole_blocks_of_hashes_are_prefixes(
    tmp_path: Path, name: str, block: int, kept: int
) -> None:
    trace = written(tmp_path / "a.jsonl", HASHED)
    found = import_trace(trace, name, 2000, prefixes=True)
    assert [request.prefix for request in found] == [(7, 8, 9)[:kept], (7, 8), ()]
    assert found.block_tokens == block
    second = 0.1 if name == "mooncake" else 100
    assert [request.arrival_seconds for request in found] == [0, second, 2 * second]
    plain = import_trace(trace, name, 2000)
    assert plain == found.without_prefixes()
    assert plain.schema == "kvopt.instance/1"


def test_sessions_and_system_prompts_are_prefixes(tmp_path: Path) -> None:
    table = tmp_path / "a.csv"
    table.write_text(
        "arrival,prompt_tokens,output_tokens,session,system_prompt,system_prompt_tokens\n"
        "0,20,3,s1,helper,9\n1,27,3,s1,helper,9\n2,13,3,s2,helper,9\n3,9,1,,,\n4,9,1,s3,,\n"
    )
    found = import_trace(table, "csv", 100, prefixes=True, block_tokens=4)
    helper = ("system helper, 0", "system helper, 1")
    own = [tuple(f"session s1 of helper, {place}" for place in range(2, most)) for most in (5, 6)]
    assert [request.prefix for request in found] == [
        helper + own[0], helper + own[1], (*helper, "session s2 of helper, 2"), (),
        ("session s3, 0", "session s3, 1"),
    ]  # fmt: skip
    assert found.forest.weights == (8, 12)
    assert import_trace(table, "csv", 100, prefixes=True).block_tokens == 16


def test_what_says_nothing_of_prefixes_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "a.csv"
    table.write_text("arrival,prompt_tokens,output_tokens\n0,20,3\n")
    with pytest.raises(InvalidInput, match=r"a\.csv: prefixes: needs hash_ids .*, or in csv"):
        import_trace(table, "csv", 100, prefixes=True)
    table.write_text("arrival,prompt_tokens,output_tokens,system_prompt\n0,20,3,x\n")
    assert import_trace(table, "csv", 100).schema == "kvopt.instance/1"
    with pytest.raises(InvalidInput, match=r"system_prompt with system_prompt_tokens"):
        import_trace(table, "csv", 100, prefixes=True)
    with pytest.raises(InvalidInput, match=r"block-tokens: is for csv, not for mooncake"):
        import_trace(written(tmp_path / "a.jsonl", HASHED), "mooncake", 2000, block_tokens=4)


def test_the_command_keeps_prefixes(run: Run, tmp_path: Path) -> None:
    trace, target = written(tmp_path / "a.jsonl", HASHED), tmp_path / "a.json"
    code, *_ = run(
        "import", trace, "--format", "mooncake", "--memory", "2000", "--prefixes", "-o", target
    )
    assert code == 0
    assert read_instance(target).block_tokens == 512
