"""Ctrl-C and SIGTERM as an ordinary end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class _Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a run as Ctrl-C does."""


@contextmanager
def interruptible(remember: Callable[[int], None]) -> Iterator[None]:
    """End the block at Ctrl-C or SIGTERM, and say which of them it was."""

    def terminate(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise _Terminated

    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, terminate) if in_main else None
    try:
        yield
    except _Terminated:
        remember(signal.SIGTERM)
    except KeyboardInterrupt:
        remember(signal.SIGINT)
    finally:
        if in_main:
            signal.signal(signal.SIGTERM, before or signal.SIG_DFL)
