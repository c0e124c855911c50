"""The engines of kvopt, asked as the others are."""

from __future__ import annotations

from functools import partial

from kvopt import Progress, generate, solve
from rival_models import Offers, Problem


def _work(engine: str, problem: Problem, offers: Offers) -> None:
    def note(progress: Progress) -> None:
        if progress.lower_bound is not None:
            offers.bound(progress.lower_bound)

    found = solve(
        problem.instance,
        engine,
        # It plans by the time that is left; the others need not know.
        time_limit=problem.clock_seconds if engine == "exact" else None,
        threads=problem.threads,
        start=problem.known,
        observer=note,
        stop=lambda _: problem.over(),
    )
    if found.starts is not None:
        offers.starts(found.starts)
    if found.lower_bound is not None:
        offers.bound(found.lower_bound)


exact, cpsat, highs = (partial(_work, engine) for engine in ("exact", "cpsat", "highs"))


def warm_up() -> None:
    """Load and compile what is compiled on first use, which is no part of a measurement."""
    solve(generate("arrival-1", 5, seed=1), "exact", time_limit=20)
