"""Let a solver prove the optimum of few requests while loops of other engines are compiled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from kvopt.errors import UnsupportedDependency
from kvopt.formulations.cpsat import LARGEST_PAIRS
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.compile_clock import compiling
from kvopt.kernels.dependencies import load_cp_model
from kvopt.search.registry import ENGINES

MOST_REQUESTS = 10
"""Up to so many requests a solver is usually faster than the compiler."""

_GLANCE = 0.02
"""Seconds between two checks for compilation."""


@contextmanager
def solver_while_compiling(search: Search, presolve: bool) -> Iterator[None]:
    """Let a solver work in parallel once the block has to compile a function.

    Both offer to one incumbent, so a proof of one ends the other.  There is no solver if the bound
    has to be checkable: its claim would end the search without such a bound.  Its claim is about
    starts in rounds, without pauses, and counts tokens.
    """
    if search.checkable or not search.problem.is_plain or len(search.instance) > MOST_REQUESTS:
        yield
        return
    is_over = threading.Event()

    def work() -> None:
        while not is_over.wait(_GLANCE):
            if compiling().is_running:
                try:
                    _prove(search, is_over, presolve)
                except UnsupportedDependency as error:  # the requested engine continues
                    search.note(f"solver: {error}")
                return

    with ThreadPoolExecutor(1, "kvopt-solver") as pool:
        beside = pool.submit(work)
        try:
            yield
        finally:
            is_over.set()
    beside.result()


def _prove(search: Search, is_over: threading.Event, presolve: bool) -> None:
    """Solve on an inner search: a solver's clock continues; its limit must not end the outer."""

    def work(inner: Search) -> None:
        inner.engine = prover(inner)
        ENGINES.find(inner.engine)(inner, presolve=presolve)

    search.work_inside(
        search.instance,
        work,
        takes=["schedules", "claims"],
        known=True,
        stop=lambda _: is_over.is_set() or search.should_stop(),
    )


def prover(search: Search) -> str:
    """Return the solver for a proof: HiGHS if CP-SAT has too many pairs or may not be loaded."""
    count = len(search.instance)
    if count * (count - 1) <= LARGEST_PAIRS:
        with search.surviving("cpsat"):
            load_cp_model()
            return "cpsat"
    return "highs"
