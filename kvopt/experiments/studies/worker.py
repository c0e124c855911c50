"""The process that works on one task after another.

Whatever a policy or a solver does, hang or crash, happens here and not in the study.  A task is
a line on standard input; what begins, and what came of it, are lines on standard output.  The
process ends with its input, so it never outlives the study.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from queue import SimpleQueue
from typing import Any, TextIO


def main() -> None:
    """Do tasks until the input ends."""
    replies = _own_output()
    lines: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    while True:
        _say(replies, _answer(json.loads(lines.get()), replies))


def _own_output() -> TextIO:
    """Keep standard output for replies: what solvers print goes to standard error."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return replies


def _listen(lines: SimpleQueue[str]) -> None:
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)  # the study is gone: what is under way no longer counts


def _answer(request: Mapping[str, Any], replies: TextIO) -> dict[str, Any]:
    from kvopt.experiments.studies.clocks import Interrupted
    from kvopt.experiments.studies.task_runner import run_task
    from kvopt.experiments.studies.tasks import Task

    def announce(step: str, seconds: float) -> None:
        _say(replies, {"step": step, "seconds": seconds})

    try:
        done = run_task(Task.from_json(request["task"]), request["skip"], announce)
    except Interrupted as error:
        return {"interrupted": str(error)}
    except Exception as error:  # recorded as the failure of this instance
        return {"error": f"{type(error).__name__}: {error}"}
    return done.to_json()


def _say(replies: TextIO, message: Mapping[str, Any]) -> None:
    replies.write(json.dumps(message, allow_nan=False) + "\n")
    replies.flush()
