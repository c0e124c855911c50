"""Exact engine: the configuration bound, then a search over the remaining starts.

After every stage of the bound a beam search forward in time looks for good schedules.  Then a
search that keeps all labels follows, if it fits into memory and time.  Until it fits, further
stages raise the bound and remove more starts.
"""

from __future__ import annotations

import math
import threading
from contextlib import suppress

from kvopt.bounds.configurations.forward_search import MOST_REQUESTS
from kvopt.bounds.configurations.size import is_quick
from kvopt.errors import Stopped
from kvopt.heuristics import improve
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import run_in_thread
from kvopt.incumbent.shares import CLIMB_BEFORE_SEARCH, LOCAL_SEARCH_BESIDE
from kvopt.kernels.clock import wall_time
from kvopt.search.exact.forward import (
    FIRST_WIDTH,
    NAME,
    RISING_LABELS,
    WIDER_WIDTH,
    WIDEST_WIDTH,
    WIDTH,
    Forward,
    has_many,
    label_limit,
)
from kvopt.search.exact.token_search import search_by_tokens
from kvopt.search.stages import states_priced

_FACTOR = 3
"""Factor of beam width and label limit from one stage to the next."""
_AID_LEAST = 20.0
"""Least seconds of local search parallel to forward searches."""
_FIRST_LABELS = 1000
"""Labels in a round of the first search for a better bound."""
_HORIZON = 5
"""Rounds of the look-ahead of beam searches for many requests."""


def run(search: Search) -> None:
    """Bound, remove starts and search until a proof is found, then look for schedules.

    Presolve is the removal of starts.
    """
    if search.schedule is None:
        offer_list_schedules(search)
    search.engine = NAME
    # Compilation and compiled loops ignore signals: this thread watches for them.
    run_in_thread(search, lambda: _run(search))


def _run(search: Search) -> None:
    assert search.schedule is not None
    is_priced = is_quick(search.instance, search.schedule.makespan)
    budget = search.budget
    if is_priced and len(search.instance) <= MOST_REQUESTS:
        budget = budget.part(most=max(LOCAL_SEARCH_BESIDE * budget.left, _AID_LEAST))
    errors: list[Exception] = []

    def aid() -> None:
        try:
            with search.surviving("local search"):
                improve(search, budget)
        except Exception as error:  # raised in the watching thread
            errors.append(error)

    helper = threading.Thread(target=aid, name="kvopt-solver", daemon=True)
    if has_many(search):
        helper.start()
    with search.surviving(NAME), suppress(Stopped):
        if is_priced:
            _bound_and_search(search)
        else:
            search_by_tokens(search, search.budget)
    if helper.ident is not None:
        helper.join()
    if errors:
        raise errors[0]
    if helper.ident is None or budget.left < math.inf:
        improve(search, search.budget)


def _bound_and_search(search: Search) -> None:
    assert search.schedule is not None
    count, many = len(search.instance), has_many(search)
    width, labels, forward, optimum = FIRST_WIDTH, _FIRST_LABELS, None, None
    patience = CLIMB_BEFORE_SEARCH if count <= MOST_REQUESTS else 1.0
    began, searching = wall_time(), 0.0
    fixes = search.limits.presolve
    try:
        for ascent in states_priced(search, search.budget, fixes=fixes, patience=patience):
            if count > MOST_REQUESTS:
                continue
            forward = Forward(search, ascent, ascent.evaluation)
            forward.search_with_beam(width, _HORIZON if many else 0)
            width = min(_FACTOR * width, WIDTH)
            # Half of the time at most: a better bound makes the next search shorter.
            since = wall_time()
            if count <= search.limits.params.exact_searchable and 2.0 * searching <= since - began:
                part = search.budget.part(0.5, 2.0 * (since - began))
                if forward.raises(labels) or forward.excludes_all(label_limit(search), part):
                    optimum = search.schedule.objective
                searching += wall_time() - since
            labels = min(_FACTOR * labels, RISING_LABELS)
        if forward and not optimum:
            if forward.finishes(WIDTH):
                optimum = search.schedule.objective
            else:
                forward.widen_beam(WIDER_WIDTH, WIDEST_WIDTH)
    finally:
        if optimum is not None:
            search.offer_claimed(optimum, NAME)
    if optimum is None and not search.budget.over():
        search.note(f"{NAME}: ended before all better schedules were ruled out")
