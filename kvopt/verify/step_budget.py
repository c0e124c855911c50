"""Count the steps of a check, refuse files that need too many, and share small helpers."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate, tee, zip_longest
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

T = TypeVar("T")
Result = TypeVar("Result")

STEPS = 600_000_000
"""Default budget of a check in steps: half a minute, each about 50 ns."""
BYTES = 850_000_000
"""About the most bytes of tables within so many steps."""
MOST_STATED = 20
"""Largest multiple of the steps that a file may state: about ten minutes."""
UNLISTED = 2
"""Multiple for a search if the file does not state the sizes of its rounds."""
MOST_TIMES = 1_000_000
"""Limit of the multiple of the default budget that a refusal names."""
MARK = STEPS // 2
"""Steps from one message of progress to the next."""
WORTH_A_PROCESS = 500
"""For fewer items starting a process takes longer than the work."""
Prepared = tuple[int, Callable[[], tuple[int, str]]]
"""About the steps of a proof, and its evaluation: a lower bound and its description."""


class Unreadable(Exception):
    """The file does not have the shape of a certificate."""


class Invalid(Exception):
    """A claim of the file is false."""


class Work:
    """Counter of the steps of a check, so that no file keeps the checker busy for hours.

    Work that is linear in the size of a file is bounded with that size.  For each kind of proof an
    estimate is charged before its work begins.  Loops whose length depends on the numbers of a
    proof, not on their count, are charged as they run: starts that prices do not exclude, remaining
    copies of states, labels of a search.  Tables are charged so that STEPS allow at most BYTES.
    Integers of many digits are slow, and large: then a step counts ``weight`` times.

    ``part`` names the current work, and ``done`` tells how much of it is over, in words; the budget
    is ``is_fixed`` if the reader set it.
    """

    def __init__(
        self,
        times: float | None = None,
        progress: Callable[[str], None] | None = None,
        *,
        jobs: int = 1,
    ) -> None:
        if times is not None and not 0 < times < math.inf:  # NaN fails this test
            raise ValueError("budget: must be a positive number")
        self.is_fixed, self.progress = times is not None, progress
        self.times, self.jobs = times or 1.0, jobs
        self.used, self.weight, self.mark, self.part, self.done = 0, 1, MARK, "", ""

    def grant(self, stated: int | None) -> None:
        """Grant the budget that a file asks for, unless the reader set one."""
        if stated is None:
            return
        refuse(stated < 2, "budget: must be at least 2")
        if not self.is_fixed:
            if stated > MOST_STATED:
                raise Unreadable(f"the file says that it needs {_needed(stated)}")
            self.times = stated

    def spend(self, steps: int, elsewhere: int = 0) -> None:
        """Take steps, each about the time of an entry of a table, or those of another process."""
        steps *= self.weight
        self.used += steps + elsewhere
        if self.used > self.times * STEPS:
            needed = -(-self.used // STEPS)
            if steps > STEPS:  # known before it begins, so most of all steps
                raise Unreadable(f"{self.part}needs about {_needed(needed)}")
            raise Unreadable(
                f"{self.part}the budget of {int(self.times * STEPS):,} steps is used up: "
                f"{_option(max(2 * math.ceil(self.times), needed))}"
            )
        if self.progress is not None and self.used >= self.mark:
            self.mark = self.used + MARK
            share = int(100 * self.used / (self.times * STEPS))
            limit = _minutes(self.times)
            self.progress(f"checking, {share}% of at most about {limit}{self.done}")

    def expect(self, steps: int) -> None:
        """Refuse work of about so many steps, estimated before it begins."""
        needed = self.used + steps * self.weight
        if needed > self.times * STEPS:
            raise Unreadable(f"{self.part}needs about {_needed(-(-needed // STEPS))}")

    def hold(self, size: int) -> None:
        """Refuse a table of about so many bytes, if it is more than the budget allows."""
        if size > self.times * BYTES:
            needed = max(2 * math.ceil(self.times), -(-size // BYTES))
            raise Unreadable(f"{self.part}needs more memory: {_option(needed)}")

    def shared(self, items: Sequence[T], call: Callable[[Sequence[T]], Result]) -> list[Result]:
        """Return the results of a function for each part of the items, and count its steps.

        Parts run in processes with copies of all data, so the function must return all its changes.
        """
        parts = max(1, min(self.jobs, len(items) // WORTH_A_PROCESS))
        if parts == 1:
            return [call(items)]
        import multiprocessing  # few checks need it

        if "fork" not in multiprocessing.get_all_start_methods():
            return [call(items)]
        context, running = multiprocessing.get_context("fork"), []
        before = self.used
        try:
            # Parts take turns with the items, so that each has dear and cheap ones.
            for part in range(1, parts):
                reader, writer = context.Pipe(duplex=False)
                arguments = (writer, items[part::parts], call)
                process = context.Process(target=self._answer, args=arguments, daemon=True)
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
                self.spend(0, elsewhere=used - before)
                results.append(result)
            return results
        finally:
            for process, reader in running:
                process.terminate()
                process.join()
                reader.close()

    def _answer(
        self, end: Connection, items: Sequence[Any], call: Callable[[Sequence[Any]], Any]
    ) -> None:
        """Send the result of a function, the steps so far, and the exception that ended it."""
        self.progress, result, error = None, None, None
        try:
            result = call(items)
        except Exception as raised:  # raised again in the calling process
            error = raised
        with suppress(BrokenPipeError):
            end.send((result, self.used, error))


def _needed(times: int) -> str:
    if times > MOST_TIMES:
        return f"more than {MOST_TIMES:,} times the default budget of steps"
    return f"{times:,} times the default budget of steps: {_option(times)}"


def _option(times: int) -> str:
    """Name the option that allows so many times the budget, with its time and memory."""
    size = f"{times * BYTES / 10**9:,.1f} GB"
    return f"verify --budget {times} allows it about {_minutes(times)} and {size}"


def _minutes(times: float) -> str:
    return "half a minute" if times <= 1 else f"{math.ceil(times / 2):,} min"


def refuse(is_false: object, reason: str) -> None:
    """Refuse a claim that is false."""
    if is_false:
        raise Invalid(reason)


def resources_of(proof: dict[str, Any]) -> list[str]:
    """Return the names of the resources in a proof, none if it is not one by prices of these."""
    return [resource["name"] for resource in proof.get("resources", ())]


def ascend(values: Iterable[int]) -> bool:
    """Whether each value is larger than the one before."""
    return all(a < b for a, b in pairwise(values))


def compared(*rows: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the values at each place of the rows, which must be equally long."""
    none = object()
    for values in zip_longest(*rows, fillvalue=none):
        if any(value is none for value in values):
            raise ValueError("the rows are not equally long")
        yield values


paired = partial(zip, strict=True) if sys.version_info >= (3, 10) else compared


def pairwise(values: Iterable[T]) -> Iterator[tuple[T, T]]:
    """Yield each value with the next one."""
    former, later = tee(values)
    next(later, None)
    return zip(former, later)


def quoted(text: str) -> str:
    """Return foreign text as 'text': short, on one line, and nothing in it ends the quotes."""
    pieces = [c.encode("unicode_escape").decode().replace("'", "\\'") for c in text[:81]]
    if len(text) <= 80 and sum(map(len, pieces)) <= 160:
        return f"'{''.join(pieces)}'"
    ends = accumulate(map(len, pieces[:77]))
    return f"'{''.join(piece for piece, end in zip(pieces, ends) if end <= 157)}'..."


def as_decimal(thousandths: int) -> str:
    """Print thousandths as a number with three digits behind the point."""
    return f"{thousandths // 1000:,}.{thousandths % 1000:03}"
