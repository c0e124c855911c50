"""Check a file in a process of its own, whose memory the operating system limits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kvopt.verify import Verdict, verify
from kvopt.verify.step_budget import BYTES, MOST_STATED, Work

_FILE = 4_000_000_000
"""Bytes of the largest file and its content in memory, with the interpreter."""
CODE = """
import sys
sys.path.insert(0, sys.argv[1])
import json
from kvopt.verify import apart
apart.answer(*json.loads(sys.argv[2]))
"""
"""What the process runs, with the folder of kvopt and the arguments of `answer`."""


def verify_apart(
    path: str | os.PathLike[str],
    budget: float | None = None,
    progress: Callable[[str], None] | None = None,
    *,
    jobs: int = 1,
    code: str = CODE,
) -> Verdict:
    """Check a file as `kvopt.verify.verify` does: too much memory ends it with a sentence.

    Raises
    ------
    ValueError
        If the budget is not a positive number.
    """
    Work(budget)  # checks the budget
    root = Path(__file__).parents[2]  # a folder, or a file of zip
    arguments = json.dumps([os.fspath(path), budget, jobs])
    # -I -S: no site packages, no working directory, no environment.
    command = [sys.executable, "-I", "-S", "-c", code, str(root), arguments]
    verdict = None
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as child:
        assert child.stdout is not None
        try:
            for line in child.stdout:
                message = json.loads(line)
                if isinstance(message, list):
                    valid, readable, lines = message
                    verdict = Verdict(valid, readable, tuple(lines))
                elif progress is not None:
                    progress(message)
        except BaseException:
            child.kill()
            raise
    if verdict is not None:
        return verdict
    reason = f"the check ended without a verdict, with status {child.returncode}, most likely for "
    return Verdict(False, False, (f"UNREADABLE: {reason}want of memory",))


def answer(path: str, budget: float | None, jobs: int, memory: int | None = None) -> None:
    """Check a file with limited memory, and write the findings, a line of JSON each."""
    _limit_memory(memory or _FILE + int(BYTES * (budget or MOST_STATED)))

    def say(message: Any) -> None:
        print(json.dumps(message), flush=True)

    try:
        verdict = verify(path, budget, say, jobs=jobs)
    except KeyboardInterrupt:  # the calling process receives the signal too
        sys.exit(130)
    say([verdict.valid, verdict.readable, verdict.lines])


def _limit_memory(size: int) -> None:
    """Limit the memory of this process to so many bytes, or to most memory of the machine."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limits = [size, there * 9 // 10, *([] if hard == resource.RLIM_INFINITY else [hard])]
    resource.setrlimit(resource.RLIMIT_AS, (min(limits), hard))
