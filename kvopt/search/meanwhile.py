"""Let a solver work while the machine code of other engines is being compiled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from kvopt.errors import UnsupportedDependency
from kvopt.formulations.cpsat import has_few_pairs
from kvopt.incumbent.incumbent import Search
from kvopt.kernels import compiler
from kvopt.kernels.budget import wall_time
from kvopt.kernels.solver_versions import load_cp_model
from kvopt.search.engines import engine_of

_FEW_REQUESTS = 10
"""Up to so many requests a solver usually ends before the other engines."""

_PAUSE = 0.02
"""Seconds between two checks whether something is being compiled."""


@contextmanager
def solver_while_compiling(search: Search, ready_after: float = 1.0) -> Iterator[None]:
    """Let a solver work in parallel once the block has to wait for the compiler.

    Both offer to one incumbent.  Of few requests it may prove the optimum; of more it ends once the
    engines of the block can work, after ``ready_after`` seconds without a wait for the compiler.
    Its claims do not count if the bound has to be checkable: they would end the search without such
    a bound.  They are about starts in rounds, without pauses, and count tokens.
    """
    if not search.problem.is_starts:
        yield
        return
    is_over = threading.Event()

    def work() -> None:
        while not is_over.wait(_PAUSE):
            if compiler.is_running():
                try:
                    _prove(search, is_over, ready_after)
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


def _prove(search: Search, is_over: threading.Event, ready_after: float) -> None:
    """Solve on an inner search, whose end by its limit is none of the outer one."""
    is_few, waited = len(search.instance) <= _FEW_REQUESTS, wall_time()

    def has_to_end() -> bool:
        nonlocal waited
        if compiler.is_running():
            waited = wall_time()
        is_ready = wall_time() - waited > ready_after
        return is_over.is_set() or (is_ready and not is_few)

    def work(inner: Search) -> None:
        inner.engine = prover(inner)
        engine_of(inner.engine)(inner)

    search.work_inside(
        search.instance,
        work,
        search.budget.part(until=has_to_end),
        takes=["schedules"] if search.checkable else ["schedules", "claims"],
        warm_start=True,
    )


def prover(search: Search) -> str:
    """Return the solver for a proof: HiGHS if CP-SAT has too many pairs or may not be loaded."""
    if has_few_pairs(search.instance):
        with search.surviving("cpsat"):
            load_cp_model()
            return "cpsat"
    return "highs"
