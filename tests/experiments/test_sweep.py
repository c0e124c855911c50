"""Sweeps of alpha and beta: grids, which runs are made, and what the command prints."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from commands import Run
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import instances

import kvopt
from kvopt import BatchTime, Instance, Line, Outcome, generate, write_instance
from kvopt.errors import InvalidInput
from kvopt.experiments.grids import (
    alpha_grid,
    grid,
    settings_of,
    smallest_safe,
    smallest_safe_alpha,
    sweep,
)
from kvopt.problem.clocks import ROUNDS, Seconds
from kvopt.simulate.running import run as simulate

MODEL = BatchTime([Line(100, 3)], kv_ns=1)


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    """Return an instance on which alpha-protect loops below 0.3."""
    path = tmp_path / "chat.json"
    write_instance(generate("conversation", n=300, memory=4_000, seed=1), path)
    return path


class TestGrids:
    """What the text of an option stands for."""

    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("0.1", ["0.1"]),
            ("0.3,0.1,0.10", ["0.1", "0.3"]),
            ("0:0.3:0.1", ["0", "0.1", "0.2", "0.3"]),
            ("0.1:0.35:0.1", ["0.1", "0.2", "0.3"]),
            ("0.2:0.2:0.1", ["0.2"]),
            ("0:0.3:0.01", [f"{k / 100:g}" for k in range(31)]),
        ],
    )
    def test_values(self, text: str, wanted: list[str]) -> None:
        assert [f"{value:f}" for value in grid(text, "--alpha")] == wanted

    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("", "must be values such as"),
            ("a", "must be values such as"),
            ("0.1,,0.2", "must be values such as"),
            ("0:1", "must be values such as"),
            ("0:1:0", "must be values such as"),
            ("0:1:-0.1", "must be values such as"),
            ("nan", "must be values such as"),
            ("-0.1", "must be values such as"),
            ("0:inf:1", "must be values such as"),
            ("0.5:0.1:0.1", "ends before it begins"),
            ("0:1:0.00000001", "has more than 10,000 values"),
        ],
    )
    def test_what_is_no_grid_is_refused(self, text: str, wanted: str) -> None:
        with pytest.raises(InvalidInput, match="--beta") as refused:
            grid(text, "--beta")
        assert wanted in str(refused.value)

    @given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 9))
    def test_ranges_are_exact(self, low: int, span: int, step: int) -> None:
        text = f"{low / 100:.2f}:{(low + span) / 100:.2f}:{step / 100:.2f}"
        found = [Fraction(value) for value in grid(text, "--alpha")]
        assert found == [Fraction(k, 100) for k in range(low, low + span + 1, step)]


def test_settings_are_every_combination() -> None:
    half, tenth = Decimal("0.5"), Decimal("0.1")
    found = settings_of("alpha-beta:seed=3", [tenth, half], [tenth])
    assert [setting.label for setting in found] == [
        "alpha-beta:seed=3,alpha=0.1,beta=0.1",
        "alpha-beta:seed=3,alpha=0.5,beta=0.1",
    ]
    with pytest.raises(InvalidInput, match=r"alpha: is not a key of fcfs.*such as alpha-protect"):
        settings_of("fcfs", [tenth])


@pytest.mark.slow
@examples(25)
@given(instances(last_arrival=0), st.booleans())
def test_runs_are_those_of_single_simulations(instance: Instance, in_seconds: bool) -> None:
    tried = settings_of("alpha-protect", grid("0:0.9:0.1", "--alpha"))
    runs = list(sweep(instance, tried, Seconds(MODEL) if in_seconds else ROUNDS))
    assert [run.setting for run in runs] == tried
    for run in runs:
        if in_seconds:
            alone = simulate(instance, run.setting.label, clock=Seconds(MODEL))
            assert run.to_json()["objective_seconds"] == alone.to_json()["objective_seconds"]
        else:
            other = kvopt.run(instance, run.setting.label)
            assert run.to_json()["objective"] == other.objective
        assert run.run.completed == len(instance) or run.run.outcome is Outcome.LIVELOCK


@examples(25)
@given(instances(last_arrival=0))
def test_going_down_finds_what_the_whole_grid_says(instance: Instance) -> None:
    tried = settings_of("alpha-protect", grid("0:0.9:0.1", "--alpha"))
    runs = list(sweep(instance, tried, Seconds(MODEL), to_the_first_loop=True))
    whole = alpha_grid(instance, Seconds(MODEL), [Fraction(k, 10) for k in range(10)])
    wanted = smallest_safe_alpha(whole)
    found = smallest_safe(runs)[None]
    assert (None if found is None else Fraction(found)) == wanted
    assert all(run.run.outcome is Outcome.COMPLETED for run in runs[:-1])
    loops = [a for a, run in whole if run.outcome is Outcome.LIVELOCK]
    assert len(runs) == (10 - 10 * max(loops) if loops else 10), "and runs no more than that takes"


def test_each_beta_has_an_alpha_of_its_own() -> None:
    instance = generate("conversation", n=60, memory=1000, seed=1)
    tried = settings_of(
        "alpha-beta:rounds=2000", grid("0,0.1,0.4", "--alpha"), grid("0.2,1", "--beta")
    )
    runs = list(sweep(instance, tried, to_the_first_loop=True))
    assert list(smallest_safe(runs)) == [Decimal(1), Decimal("0.2")]


class TestCommand:
    """``kvopt sweep``."""

    def test_rounds(self, chat: Path, run: Run) -> None:
        code, out, _ = run("sweep", chat, "--alpha", "0.2:0.4:0.1")
        assert code == 0
        head, *rows = [line.split() for line in out.splitlines()]
        assert head == ["alpha", "latency", "mean", "evictions", "outcome"]
        assert [row[0] for row in rows] == ["0.2", "0.3", "0.4"]
        assert rows[0][-5:] == ["livelock;", "31", "of", "300", "finished"]
        assert rows[1][1:] == ["146,307", "487.69", "0", "completed"]

    @pytest.mark.slow
    def test_seconds_and_the_smallest_safe(self, chat: Path, run: Run) -> None:
        args = ("sweep", chat, "--seconds", "--smallest-safe", "--alpha", "0:0.4:0.05")
        code, out, _ = run(*args)
        assert code == 0
        assert out.endswith("smallest alpha from which on nothing loops: 0.3\n")
        code, out, _ = run(*args, "--json")
        said = json.loads(out)
        assert (code, said["smallest_safe"]) == (0, [{"beta": None, "alpha": 0.3}])
        assert said["batch_time"]["name"] == "llama-2-70b-2xa100"
        assert [each["alpha"] for each in said["runs"]] == [0.25, 0.3, 0.35, 0.4]
        alone = simulate(
            generate("conversation", n=300, memory=4_000, seed=1),
            "alpha-protect:alpha=0.3",
            clock=Seconds(
                BatchTime([Line(42_323_667, 198_967), Line(24_702_020, 309_256)], kv_ns=80)
            ),
        )
        assert said["runs"][1]["latency"] == alone.to_json()["latency"]
        assert "starts_seconds" not in said["runs"][1]

    def test_the_grid_of_the_papers_is_the_default(self, ec1: Path, run: Run) -> None:
        code, out, _ = run("sweep", ec1, "--json")
        said = json.loads(out)
        assert (code, said["smallest_safe"], said["batch_time"]) == (0, None, None)
        assert [each["alpha"] for each in said["runs"]] == [k / 100 for k in range(31)]

    def test_beta_alone(self, ec1: Path, run: Run) -> None:
        code, out, _ = run("sweep", ec1, "-P", "alpha-beta:alpha=0.3", "--beta", "0.5,1")
        assert code == 0
        assert out.split()[0] == "beta"
        assert len(out.splitlines()) == 3

    def test_nothing_safe(self, ec1: Path, run: Run) -> None:
        code, out, _ = run("sweep", ec1, "--alpha", "0.9", "--smallest-safe")
        assert code == 3
        assert "no alpha of the grid is safe: its largest ends in a livelock" in out

    @pytest.mark.parametrize(
        ("args", "wanted"),
        [
            (("--alpha", "1"), "alpha: "),
            (("--alpha", "x"), "--alpha: must be values such as"),
            (("--policy", "fcfs"), "alpha: is not a key of fcfs"),
            (("--policy", "alpha-beta"), "needs beta"),
            (("--policy", "alpha-protect:alpha=0.1"), "has alpha twice"),
            (("--batch-time", "x.json"), "--batch-time: goes with --seconds"),
            (("--seconds", "--batch-time", "x"), "batch time: must be one of"),
        ],
    )
    def test_what_is_refused(self, ec1: Path, run: Run, args: Sequence[str], wanted: str) -> None:
        code, out, err = run("sweep", ec1, *args)
        assert (code, out) == (2, "")
        assert wanted in err

    def test_an_interrupt_keeps_what_was_found(self, tmp_path: Path) -> None:
        path, begun = tmp_path / "large.json", tmp_path / "begun"
        write_instance(generate("conversation", n=300, memory=16_492, seed=1), path)
        (tmp_path / "theirs.py").write_text(
            "from dataclasses import dataclass\n"
            "from pathlib import Path\n"
            "from kvopt import PrefixPolicy, register\n"
            "@register\n"
            "@dataclass\n"
            "class Noted(PrefixPolicy):\n"
            "    name = 'noted'\n"
            "    source = 'a test'\n"
            "    alpha: float = 0.0\n"
            "    def key(self, view, i):\n"
            "        if self.alpha > 0.3:\n"  # the first run is done
            f"            Path({str(begun)!r}).touch()\n"
            "        return (i,)\n"
        )
        command = [sys.executable, "-m", "kvopt", "sweep", str(path), "--json"]
        theirs = ["--module", str(tmp_path / "theirs.py"), "--policy", "noted"]
        child = subprocess.Popen(
            [*command, *theirs, "--alpha", "0.3:0.9:0.0001"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": "."},
        )
        while not begun.exists():
            assert child.poll() is None
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=120)
        said = json.loads(out)
        assert (child.returncode, said["interrupted"]) == (130, True)
        assert 0 < len(said["runs"]) < 6001
        assert said["runs"][0]["alpha"] == 0.3
