"""A fresh interpreter: other tests fill the modules of this process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def python(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own; return its status and what it prints."""
    settings = {"cwd": ROOT, "capture_output": True, "text": True, "check": False, **options}
    done: subprocess.CompletedProcess[str]
    done = subprocess.run([sys.executable, *map(str, arguments)], **settings)
    return done


def printed(code: str) -> list[str]:
    """Return the words that a fresh interpreter prints."""
    return python("-c", code, check=True).stdout.split()
