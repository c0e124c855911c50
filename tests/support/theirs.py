"""Schedulers of somebody else, in a file and as an installed package."""

from __future__ import annotations

import os
from pathlib import Path

_POLICY = '''from dataclasses import dataclass
from kvopt import PrefixPolicy, register

@register
@dataclass
class Theirs(PrefixPolicy):
    """Requests by a key."""

    name = "{name}"
    source = "a test"

    def key(self, view, i):
        {body}
'''


def policy_file(folder: Path, name: str, body: str) -> Path:
    """Write a module with a scheduler whose key has this body."""
    path = folder / "theirs.py"
    path.write_text(_POLICY.format(name=name, body=body))
    return path


def installed(folder: Path, name: str, body: str) -> dict[str, str]:
    """Return an environment in which a package brings the scheduler by an entry point."""
    policy_file(folder, name, body)
    meta = folder / "theirs-1.0.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (meta / "entry_points.txt").write_text(f"[kvopt.policies]\n{name} = theirs\n")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(Path.cwd())])}
