"""What is taken for granted is said, and runs that never end do not look good."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from commands import Run, written

CLOCK = (
    "assumed: --batch-time llama-2-70b-2xa100 (Llama-2-70B on two A100); "
    "give --batch-time for another machine\n"
)

LIGHT = (
    'certify = false\npolicies = ["mc-sf"]\n'
    '[[instances]]\nfamily = "arrival-1"\nn = 3\nmemory = 30\nseed = 1\n'
)


@pytest.fixture
def stuck(tmp_path: Path) -> Path:
    """Return the file of an instance where alpha-protect finishes one request and never more."""
    path = tmp_path / "stuck.json"
    requests: list[dict[str, Any]] = [{"arrival": 0, "prompt": 0, "output": 1}]
    requests += [{"arrival": 1, "prompt": 0, "output": 5}] * 2
    path.write_text(
        json.dumps({"schema": "kvopt.instance/1", "memory": 6, "round_ms": 1, "requests": requests})
    )
    return path


class TestClock:
    """Seconds are of some machine."""

    @pytest.mark.parametrize("command", [("run", "-P", "mc-sf"), ("certify", "-P", "mc-sf")])
    @pytest.mark.parametrize("json_", [False, True])
    def test_the_model_that_is_assumed_is_named(
        self, run: Run, ec1: Path, tmp_path: Path, command: tuple[str, ...], json_: bool
    ) -> None:
        verb, *rest = command
        target = ("-o", tmp_path / "cert.json") if verb == "certify" else ()
        options = (*rest, *target, *(["--json"] if json_ else []))
        out, err = run.done(verb, ec1, "--seconds", *options)
        assert err.startswith(CLOCK)
        if json_:
            json.loads(out)
        _, _, err = run(verb, ec1, "--seconds", "--batch-time", "llama-2-70b-2xa100", *options)
        assert "assumed: " not in err
        if verb != "certify" or not json_:
            assert "assumed: " not in run(verb, ec1, *options)[2]

    @pytest.mark.parametrize(
        ("text", "is_assumed"),
        [
            (f'clock = "seconds"\n{LIGHT}', True),
            (f'clock = "seconds"\nbatch_time = "llama-2-70b-2xa100"\n{LIGHT}', False),
            (LIGHT, False),
        ],
    )
    def test_a_study_names_assumed_hardware(
        self, run: Run, tmp_path: Path, text: str, is_assumed: bool
    ) -> None:
        study = written(tmp_path / "one.toml", text)
        err = run.done("study", study, "--out", tmp_path / "folder", "--jobs", 1)[1]
        line = (
            'assumed: batch_time = "llama-2-70b-2xa100" (Llama-2-70B on two A100); '
            "give batch_time in the description for another machine\n"
        )
        assert (line in err, "assumed: " in err) == (is_assumed, is_assumed)


class TestLivelocks:
    """The few requests that finish before a livelock say nothing of it."""

    def test_livelocks_in_seconds_have_no_latency(self, run: Run, stuck: Path) -> None:
        policies = ("-P", "alpha-protect:alpha=0", "-P", "mc-sf")
        _, out, _ = run("run", stuck, "--seconds", *policies)
        head, endless, ended = out.splitlines()
        assert head.split("  ")[0] == "policy"
        assert endless.split()[1:8] == ["-"] * 7
        assert "livelock; 1 of 3 finished; repeats itself for ever" in endless
        assert ended.split()[6] == "1.0000", "the best of those that end"

    def test_livelocks_in_rounds_have_no_totals(self, run: Run, stuck: Path) -> None:
        policies = ("-P", "alpha-protect:alpha=0", "-P", "mc-sf")
        _, out, _ = run("run", stuck, *policies)
        heads, endless, ended = (re.split(r"\s{2,}", line) for line in out.splitlines())
        place = heads.index("times the best")
        assert endless[1 : place + 1] == ["-"] * place
        assert ended[place] == "1.0000"

    def test_json_counts_what_finished(self, run: Run, stuck: Path) -> None:
        (row,) = run.json("run", stuck, "--seconds", "-P", "alpha-protect:alpha=0")["policies"]
        assert row["objective_seconds"] is None
        assert row["completed"] == 1
        assert row["latency"]["mean"] > 0


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('[[instances]]\nfile = "gone.json"\n', "gone.json"),
        ('[[instances]]\nfile = "bad.json"\n', "bad.json"),
        ('modules = ["gone.py"]\n[[instances]]\nfamily = "arrival-1"\n', "gone.py"),
    ],
)
def test_a_path_in_a_study_is_named_once(run: Run, tmp_path: Path, text: str, path: str) -> None:
    (tmp_path / "bad.json").write_text('{"schema": "kvopt.instance/1"}')
    study = written(tmp_path / "one.toml", f'policies = ["mc-sf"]\n{text}')
    err = run.refused("study", study, "--out", tmp_path / "folder")
    assert err.count(str(tmp_path / path)) == 1
