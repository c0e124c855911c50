"""A fresh interpreter: other tests fill the modules of this process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def printed(code: str) -> list[str]:
    """Return the words that a fresh interpreter prints."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
