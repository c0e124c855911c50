"""``solve_many``: several instances at a time, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from itertools import islice
from typing import Any

from kvopt.errors import InvalidInput, shown
from kvopt.incumbent.limits import available_threads
from kvopt.incumbent.result import SolveResult
from kvopt.problem.problem import Source
from kvopt.search.solving import solve


def solve_many(
    instances: Iterable[Source],
    engine: str = "auto",
    *,
    jobs: int | None = None,
    display: bool = False,
    **options: Any,
) -> list[SolveResult | None]:
    """Solve several instances, each in a process of its own.

    Parameters
    ----------
    instances
        Arguments of `solve`.
    engine
        As of `solve`.
    jobs
        Instances at a time; by default one for each core.
    display
        Whether to print a line on standard error for each that is done.
    options
        As of `solve`; ``threads`` is 1 by default, and functions cannot be sent to a process.

    Returns
    -------
    list
        A result for each instance, in their order.  After Ctrl-C results of running searches have
        both sides, and those of waiting ones are None.

    Examples
    --------
    >>> from kvopt import generate, solve_many
    >>> found = solve_many([generate("arrival-1", n=4, seed=s) for s in (1, 2)], jobs=1)
    >>> [str(result.status) for result in found]
    ['optimal', 'optimal']
    """
    problems = list(instances)
    jobs = available_threads() if jobs is None else jobs
    if jobs < 1:
        raise InvalidInput(f"must be at least 1, got {shown(jobs)}", field="jobs")
    for name in ("observer", "stop"):
        if options.get(name) is not None:
            raise InvalidInput("is a function, which no process can be handed", field=name)
    options = {"engine": engine, "threads": 1, **options}
    work: Callable[[Source], SolveResult] = partial(solve, **options)
    results: list[SolveResult | None] = [None] * len(problems)
    if jobs == 1 or len(problems) < 2:
        for place, source in enumerate(problems):
            results[place] = result = work(source)
            _tell(result, place, len(problems), display)
            if result.signal_number is not None:
                break
        return results
    context = multiprocessing.get_context("spawn")
    left, running, done = iter(enumerate(problems)), dict[Future[SolveResult], int](), 0
    with ProcessPoolExecutor(min(jobs, len(problems)), context) as pool:
        try:
            while True:
                # As many as processes: tasks that have not begun can be dropped.
                for place, source in islice(left, jobs - len(running)):
                    running[pool.submit(work, source)] = place
                if not running:
                    return results
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    results[running.pop(future)] = result = future.result()
                    _tell(result, done, len(problems), display)
                    done += 1
        except KeyboardInterrupt:
            # Running ones received the signal too, and end with both sides.
            for future, place in running.items():
                results[place] = _result_of(future)
    return results


def _result_of(future: Future[SolveResult]) -> SolveResult | None:
    try:
        return future.result()
    except KeyboardInterrupt:  # it ended before its search
        return None


def _tell(result: SolveResult, done: int, count: int, display: bool) -> None:
    """Print a line on a result if requested."""
    if display:
        name = "-" if result.schedule is None else result.schedule.instance.name
        gap = "-" if result.gap is None else f"{result.gap:.2%}"
        line = f"{done + 1} of {count}: {name}: {result.status}, gap {gap}"
        print(line, file=sys.stderr, flush=True)
