"""The command line in this process, as the fixture ``run`` of `conftest` calls it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EC1 = {
    "schema": "kvopt.instance/1",
    "name": "example EC.1",
    "memory": 7,
    "requests": [{"arrival": 0, "prompt": 1, "output": o} for o in (1, 2, 3, 4)],
}


@dataclass(frozen=True)
class Run:
    """A call of the command line: ``run("solve", file)`` gives exit code, output and messages."""

    call: Callable[..., tuple[int, str, str]]

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        """Return exit code, output and messages."""
        return self.call(*arguments)

    def done(self, *arguments: object) -> tuple[str, str]:
        """Return output and messages of a command that succeeds."""
        code, out, err = self.call(*arguments)
        assert code == 0, err
        return out, err

    def json(self, *arguments: object) -> Any:
        """Return the object that a command prints with ``--json``, and succeeds."""
        return json.loads(self.done(*arguments, "--json")[0])

    def refused(self, *arguments: object) -> str:
        """Return the messages of a command that is refused, and prints nothing else."""
        code, out, err = self.call(*arguments)
        assert (code, out) == (2, ""), err
        return err


def written(path: Path, text: str) -> Path:
    """Return a file with a text."""
    path.write_text(text, encoding="utf-8")
    return path
