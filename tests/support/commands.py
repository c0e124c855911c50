"""The command line in this process, as the fixture ``run`` of `conftest` calls it."""

from __future__ import annotations

from collections.abc import Callable

Run = Callable[..., tuple[int, str, str]]
"""Takes the arguments; returns exit code, output and messages."""

EC1 = {
    "schema": "kvopt.instance/1",
    "name": "example EC.1",
    "memory": 7,
    "requests": [{"arrival": 0, "prompt": 1, "output": o} for o in (1, 2, 3, 4)],
}
