"""Divide the work of a check among processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from kvopt.verify.work import Work

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Item = TypeVar("Item")
Result = TypeVar("Result")

WORTH_A_PROCESS = 500
"""For fewer items starting a process takes longer than the work."""


def shared(
    work: Work, items: Sequence[Item], call: Callable[[Sequence[Item]], Result]
) -> list[Result]:
    """Return the results of a function for each part of the items, and count its steps.

    Other processes have copies of all data, so the function must return all its changes.
    """
    parts = max(1, min(work.jobs, len(items) // WORTH_A_PROCESS))
    if parts == 1:
        return [call(items)]
    import multiprocessing  # few checks need it

    if "fork" not in multiprocessing.get_all_start_methods():
        return [call(items)]
    context, running = multiprocessing.get_context("fork"), []
    before = work.used
    try:
        for part in range(1, parts):
            reader, writer = context.Pipe(duplex=False)
            arguments = (writer, work, items[part::parts], call)
            process = context.Process(target=_answer, args=arguments, daemon=True)
            process.start()
            writer.close()
            running.append((process, reader))
        results = [call(items[::parts])]
        for _, reader in running:
            try:
                result, used, error = reader.recv()
            except EOFError:
                raise MemoryError from None  # the system has ended it
            if error is not None:
                raise error
            work.spend(0, elsewhere=used - before)
            results.append(result)
        return results
    finally:
        for process, reader in running:
            process.terminate()
            process.join()
            reader.close()


def _answer(
    end: Connection, work: Work, items: Sequence[Any], call: Callable[[Sequence[Any]], Any]
) -> None:
    """Send the result of a function, the steps counted by then, and the exception that ended it."""
    work.progress, result, error = None, None, None
    try:
        result = call(items)
    except Exception as raised:  # raised again in the calling process
        error = raised
    with suppress(BrokenPipeError):
        end.send((result, work.used, error))
