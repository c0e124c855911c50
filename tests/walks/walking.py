"""What a walk is made of: steps that a newcomer types, each with its time."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]


class Step(NamedTuple):
    """What was done, and how many seconds it took."""

    title: str
    seconds: float
    said: str


class Walk:
    """Commands and scripts in a folder that is not the project, with one Python.

    Parameters
    ----------
    python
        The interpreter of an environment in which kvopt is installed.
    folder
        Where the walk begins; all that it writes is there.
    """

    def __init__(self, python: Path, folder: Path) -> None:
        self.python = python
        self.folder = folder
        self.steps: list[Step] = []
        self._environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def kvopt(self, title: str, command: str) -> str:
        """Type a command of kvopt, which has to succeed; return what it prints."""
        return self._step(title, "-m", "kvopt", *command.split())

    def asked(self, title: str, command: str) -> dict[str, Any]:
        """Type a command with ``--json``; return the object that it prints."""
        found: dict[str, Any] = json.loads(self.kvopt(title, f"{command} --json"))
        return found

    def script(self, title: str, code: str) -> str:
        """Run a few lines of Python, which have to succeed; return what they print."""
        return self._step(title, "-c", code)

    def write(self, name: str, text: str) -> None:
        """Write a file as a newcomer would with an editor."""
        (self.folder / name).write_text(text, encoding="utf-8")

    def _step(self, title: str, *arguments: str) -> str:
        began = time.monotonic()
        done = subprocess.run(
            [self.python, *arguments],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{title}: {done.returncode}\n{done.stdout}{done.stderr}"
        self.steps.append(Step(title, time.monotonic() - began, done.stdout))
        return done.stdout

    def table(self) -> str:
        """Return the steps with their seconds, and the sum."""
        rows = [f"{step.seconds:8.2f}  {step.title}" for step in self.steps]
        return "\n".join([*rows, f"{sum(step.seconds for step in self.steps):8.2f}  in all"])
