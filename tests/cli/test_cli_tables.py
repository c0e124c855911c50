"""Tables on narrow terminals: names and numbers are never cut, and what is missing is named."""

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
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import EC1, Run

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
def width_is(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let somebody look at standard output on a terminal of so many columns."""
    return lambda cells: monkeypatch.setattr(printing, "_terminal_width", lambda: cells)


@pytest.fixture
def width(width_is: Callable[[int], None]) -> int:
    """Do so where little fits."""
    width_is(40)
    return 40


def is_whole(out: str, width: int, *names: str) -> None:
    """Assert that names are there in one piece, and that other lines are narrow enough."""
    assert "…" not in out
    for name in names:
        assert name in out
    for line in out.splitlines():
        assert len(line) <= width or any(name in line for name in names), line


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_cuts_names(
    run: Run, named: Path, tmp_path: Path, width: int, command: str
) -> None:
    verb, *_ = command.split()
    written = ("-o", tmp_path / "some.cert.json") if verb == "certify" else ()
    code, out, err = run(verb, named, *COMMANDS[command], *written)
    assert code == 0, err
    names = {"solve": [NAME], "bound": ["configuration"]}.get(verb, ["mc-sf", LONG])
    first = out.splitlines()[0]
    sentence = [first] if verb == "certify" else []  # which stands above the table
    is_whole(out, width, *names, *sentence)


@pytest.fixture
def printed(width_is: Callable[[int], None]) -> Callable[[int], list[str]]:
    """Return what makes a table of a width, and returns its lines."""

    def lines(width: int) -> list[str]:
        width_is(width)
        made = table(
            [
                {
                    "policy": "mc-sf", "latency": 1_234_567, "mean": "23.45", "peak": 34,
                    "outcome": "completed",
                },
                {
                    "policy": LONG, "latency": None, "mean": None, "peak": 32,
                    "outcome": "livelock; 3 of 20 finished",
                },
            ],
            prose=("outcome",), optional=("seconds", "peak", "mean"),
        )  # fmt: skip
        return "\n".join(made).splitlines()

    return lines


Printed = Callable[[int], list[str]]


def test_what_fits_is_shown(printed: Printed) -> None:
    assert printed(120) == [
        f"{'policy':37}    latency   mean  peak  outcome",
        f"{'mc-sf':37}  1,234,567  23.45    34  completed",
        f"{LONG}          -      -    32  livelock; 3 of 20 finished",
    ]


def test_prose_is_wrapped_before_a_column_is_left_out(printed: Printed) -> None:
    assert printed(80)[-2:] == [
        f"{LONG}          -      -    32  livelock; 3 of 20",
        f"{'':37}{'':26}finished",
    ]


def test_what_matters_least_is_left_out_first_and_named(printed: Printed) -> None:
    lines = printed(75)
    assert lines[0].split() == ["policy", "latency", "mean", "outcome"]
    assert lines[-1] == "left out: peak (a wider terminal or --json has them)"


def test_where_too_little_fits_each_row_is_a_block_with_everything_in_it(printed: Printed) -> None:
    assert printed(40) == [
        "policy:  mc-sf",
        "latency: 1,234,567",
        "mean:    23.45",
        "peak:    34",
        "outcome: completed",
        "",
        f"policy:  {LONG}",
        "latency: -",
        "mean:    -",
        "peak:    32",
        "outcome: livelock; 3 of 20 finished",
    ]


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


def test_a_true_terminal(named: Path) -> None:
    out = on_a_terminal(40, "run", str(named), *map(str, COMMANDS["run --seconds"]))
    is_whole(out, 40, "mc-sf", LONG)
    assert "outcome" in out
    assert "completed" in out


def test_names_are_no_emoji_codes(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a:x:b.json"
    path.write_text(json.dumps({**EC1, "name": "day:x:1"}))
    code, out, _ = run("solve", path, "-o", tmp_path / "s:x:t.json")
    assert code == 0
    assert "day:x:1" in out
    assert "a:x:b.json" in run("certify", path, "-P", "svf", "-o", tmp_path / "a:x:b.json")[2]
