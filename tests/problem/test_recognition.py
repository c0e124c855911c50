"""CSV files whose columns are found by name, told, and refused where it might be another one."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Run, written

from kvopt import InvalidInput, import_trace

LOGS = {
    "kvopt": ("arrival_seconds,prompt,output", "0.5", "2", "seconds"),
    "azure": (
        "TIMESTAMP,ContextTokens,GeneratedTokens",
        "2023-11-16 18:17:03.9", "2023-11-16 18:17:05.4", "dates",
    ),
    "vllm": (
        "arrival_time,num_prompt_tokens,num_generation_tokens",
        "1700000000.5", "1700000002", "seconds",
    ),
    "vllm bench": ("timestamp,input_len,output_len", "0.5", "2", "seconds"),
    "openai": (
        "created,usage.prompt_tokens,usage.completion_tokens",
        "1700000000", "1700000001.5", "seconds",
    ),
    "responses": (
        "created_at,usage.input_tokens,usage.output_tokens",
        "1700000000", "1700000001.5", "seconds",
    ),
    "burstgpt": ("Timestamp,Request tokens,Response tokens", "5", "6.5", "seconds"),
    "proxy": (
        "startTime,promptTokens,completionTokens",
        "2024-05-01T10:00:00.5Z", "2024-05-01T10:00:02Z", "dates",
    ),
    "vidur": ("Arrived At,num_prefill_tokens,num_decode_tokens", "0.5", "2", "seconds"),
    "milliseconds": ("arrival_ms,Input Tokens,Output Tokens", "500", "2000", "ms"),
    "since 1970": (
        "time,n_prompt_tokens,n_generated_tokens",
        "1700000000500", "1700000002000", "ms since 1970",
    ),
    "nanoseconds": (
        "ts,prompt_length,output_length",
        "1700000000500000000", "1700000002000000000", "ns since 1970",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_logs_are_read_without_flags(tmp_path: Path, name: str) -> None:
    header, first, second, unit = LOGS[name]
    time, prompt, output = header.split(",")
    text = f"id,{output},{prompt},{time},model\nx,7,5,{first},m\ny,9,8,{second},m\n"
    instance = import_trace(written(tmp_path / "log.csv", text), "csv", 100)
    assert [r.shape for r in instance] == [(5, 7), (8, 9)]
    assert [r.arrival_seconds for r in instance] == [0, 1.5]
    assert isinstance(instance.notes, dict)
    said = f"prompt tokens in {prompt}, output tokens in {output}, arrivals in {time} ({unit}"
    assert instance.notes["columns"].startswith(said)


def test_rounds_are_those_of_kvopts_own_files(tmp_path: Path) -> None:
    path = written(tmp_path / "own.csv", "arrival,prompt,output\n3,1,2\n5,1,2\n")
    assert [r.arrival for r in import_trace(path, "csv", 9)] == [3, 5]
    written(path, "arrival,arrival_seconds,prompt,output\n3,0.5,1,2\n5,2,1,2\n")
    assert [r.arrival_seconds for r in import_trace(path, "csv", 9)] == [0, 1.5]


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (
            "when,question,answer",
            "no column is known to hold prompt tokens and output tokens: name it with "
            "--prompt-column and --output-column; the columns are 'when', 'question', 'answer'",
        ),
        ("prompt_tokens,reply", "to hold output tokens: name it with --output-column; the columns"),
        (
            "prompt,prompt_tokens,completion_tokens",
            "prompt tokens may be in 'prompt' or 'prompt_tokens': name one with --prompt-column",
        ),
        (
            "prompt_tokens,output_tokens,completion_tokens",
            "output tokens may be in 'output_tokens' or 'completion_tokens'",
        ),
        (
            "timestamp,created_at,prompt,output",
            "arrivals may be in 'timestamp' or 'created_at': name one with --time-column",
        ),
        ("Prompt_Tokens,prompt tokens,output", "may be in 'Prompt_Tokens' or 'prompt tokens'"),
        ("prompt,prompt,output", "column 'prompt': is given twice"),
        (
            "start_time,num_model_requests,input_tokens,output_tokens",
            "column 'num_model_requests': looks like a count",
        ),
        ("", "the columns are none"),
    ],
)
def test_what_might_be_another_column_is_refused(
    run: Run, tmp_path: Path, header: str, said: str
) -> None:
    path, out = written(tmp_path / "log.csv", f"{header}\n1,2,3,4\n"), tmp_path / "a.json"
    err = run.refused("import", path, "-f", "csv", "-m", 100, "-o", out)
    assert said in err
    assert err.startswith(f"kvopt: {path}: ")
    assert err.count("\n") == 1
    assert not out.exists()


def test_flags_decide_where_names_do_not(run: Run, tmp_path: Path) -> None:
    path = written(
        tmp_path / "log.csv",
        "prompt,prompt_tokens,answer,timestamp,created_at,requests\nhello,5,7,3,4000,1\n",
    )
    out = tmp_path / "a.json"
    flags = ("--prompt-column", "prompt_tokens", "--output-column", "answer")
    code, _, err = run("import", path, "-f", "csv", "-m", 100, "-o", out, *flags)
    assert (code, err.count("--time-column")) == (2, 1)
    timed = (*flags, "--time-column", "created_at")
    err = run.done("import", path, "-f", "csv", "-m", 100, "-o", out, *timed)[1]
    assert (
        "columns: prompt tokens in prompt_tokens, output tokens in answer, arrivals in created_at "
        "(seconds)\n" in err
    )
    assert "column 'when': is missing" in run.refused(
        "import", path, "-f", "csv", "-m", 100, "-o", out, *timed[:-1], "when"
    )


def test_a_file_without_known_times_says_so(run: Run, tmp_path: Path) -> None:
    path, out = written(tmp_path / "log.csv", "when,prompt,output\n9,1,2\n"), tmp_path / "a.json"
    _, _, err = run("import", path, "-f", "csv", "-m", 100, "-o", out)
    assert "no arrivals (all at once); --time-column names a column of arrivals" in err


def test_a_first_time_that_cannot_be_read_does_not_hide_the_unit(tmp_path: Path) -> None:
    text = "time,prompt,output\n,1,1\n\nsoon,1,1\n1700000000000,1,2\n1700000001500,1,2\n"
    instance = import_trace(written(tmp_path / "log.csv", text), "csv", 100)
    assert [r.arrival_seconds for r in instance] == [0, 1.5]


def test_a_unit_in_a_name_that_is_given_counts(tmp_path: Path) -> None:
    path = written(tmp_path / "log.csv", "seen_us,prompt,output\n0,1,1\n1500000,1,2\n")
    assert import_trace(path, "csv", 9, time_column="seen_us").requests[1].arrival_seconds == 1.5
    with pytest.raises(InvalidInput, match="prompt tokens"):
        import_trace(written(path, "seen_us,output\n0,1\n"), "csv", 9, time_column="seen_us")
