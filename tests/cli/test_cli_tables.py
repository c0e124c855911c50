"""Tables on narrow terminals: words are folded, numbers never."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from commands import EC1, Run
from rich.console import Console

from kvopt.cli import printing
from kvopt.cli.printing import table

LONG = "alpha-beta:alpha=0.25,beta=0.1,seed=3"
NAME = "conversation-and-summarisation-of-a-whole-day-n4-m7-seed12345"

COMMANDS = {
    "solve": (),
    "bound": ("-t", 0.2),
    "run": ("-P", "mc-sf", "-P", LONG),
    "run --seconds": ("-P", "mc-sf", "-P", LONG, "--seconds"),
    "certify": ("-P", "mc-sf", "-P", LONG),
    "certify --seconds": ("-P", "mc-sf", "-P", LONG, "--seconds", "-t", 0.2),
}
"""Commands that read an instance, with what they need."""


@pytest.fixture
def named(tmp_path: Path) -> Path:
    """Return the file of an instance with a name that is longer than some terminals are wide."""
    path = tmp_path / "named.json"
    path.write_text(json.dumps({**EC1, "name": NAME}))
    return path


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let somebody look at standard output on a terminal of 40 columns."""
    monkeypatch.setattr(printing, "Console", lambda **more: Console(**{**more, "width": 40}))


@pytest.mark.slow
@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_cuts_names_or_numbers(
    run: Run, named: Path, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    verb, *_ = command.split()
    written = ("-o", tmp_path / "some.cert.json") if verb == "certify" else ()
    out, _ = run.done(verb, named, *COMMANDS[command], *written)
    monkeypatch.undo()
    whole = run(verb, named, *COMMANDS[command], *written)[1]
    assert "…" not in out
    assert len(out.splitlines()) > len(whole.splitlines())
    numbers = re.compile(r"(?<!\S)\d[\d,.]*(?!\S)")
    if verb == "run":
        assert {*numbers.findall(whole)} <= {*numbers.findall(out)}


def printed(width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the lines of a table on a terminal of a width."""
    monkeypatch.setattr(printing, "Console", lambda **more: Console(**{**more, "width": width}))
    return table(
        [
            {"policy": "mc-sf", "latency": 1_234_567, "mean s": "23.45", "outcome": "completed"},
            {"policy": LONG, "latency": None, "mean s": None, "outcome": "livelock; 3 of 20 done"},
        ]
    )


def test_what_fits_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed(120, monkeypatch) == [
        f"{'policy':37}    latency  mean s  outcome",
        f"{'mc-sf':37}  1,234,567   23.45  completed",
        f"{LONG}          -       -  livelock; 3 of 20 done",
    ]


@pytest.mark.parametrize("width", [70, 40, 20])
def test_words_are_folded_and_numbers_are_not(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(width, monkeypatch)
    assert len(lines) > 3
    assert any("1,234,567" in line and "23.45" in line for line in lines)
    assert "".join(line[:16].strip() for line in lines).endswith(LONG) or width == 70
    assert max(map(len, lines)) <= max(width, 16 + 2 + 9 + 2 + 5 + 2 + 16)


@pytest.mark.usefixtures("narrow")
def test_sentences_fit_and_keep_their_words() -> None:
    sentence = "settings alone: 0.358 s: vllm serve --max-num-batched-tokens 16 --max-num-seqs 16"
    lines = printing.fitting(sentence).splitlines()
    assert max(map(len, lines)) <= 40
    assert " ".join(lines) == sentence


def test_a_pipe_is_as_wide_as_it_has_to_be(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "endless.json"
    name = "n" * 300
    path.write_text(json.dumps({**EC1, "name": name}))
    _, out, _ = run("solve", path)
    assert len(out.splitlines()) == 2
    assert name in out
    assert "seconds" in out


def test_foreign_names_neither_break_a_line_nor_are_markup(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text(json.dumps({**EC1, "name": "two\nlines[bold]\x1b[31m"}))
    _, out, _ = run("solve", path, "-t", 0)
    assert "two\\nlines[bold]\\x1b[31m  " in out
    assert len(out.splitlines()) == 2


def test_messages_are_not_broken_and_paths_are_not_markup(
    run: Run, ec1: Path, tmp_path: Path
) -> None:
    folder = tmp_path / ("long" * 30) / "[red]"
    folder.mkdir(parents=True)
    _, _, err = run("export", ec1, "-o", folder / "model.lp")
    assert err == f"wrote {folder / 'model.lp'}\n"


def on_a_terminal(columns: int, *command: str) -> str:
    """Return what a terminal of so many columns shows, without colours."""
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    clean = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [sys.executable, "-m", "kvopt", *command],
        stdin=there, stdout=there, stderr=subprocess.DEVNULL, env={**clean, "TERM": "xterm"},
    ):  # fmt: skip
        os.close(there)
        shown = b""
        while piece := _next(here):
            shown += piece
    os.close(here)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()).replace("\r\n", "\n")


def _next(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # the other end is closed
        return b""


def test_no_column_is_lost_on_a_true_terminal(named: Path) -> None:
    out = on_a_terminal(40, "run", str(named), *map(str, COMMANDS["run --seconds"]))
    assert "mc-sf" in out
    assert "outcome" in out
    assert "completed" in out


def test_names_are_no_emoji_codes(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a:x:b.json"
    path.write_text(json.dumps({**EC1, "name": "day:x:1"}))
    assert "day:x:1" in run.done("solve", path, "-o", tmp_path / "s:x:t.json")[0]
    assert "a:x:b.json" in run("certify", path, "-P", "svf", "-o", tmp_path / "a:x:b.json")[2]
