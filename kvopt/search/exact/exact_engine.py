"""Exact engine: the configuration bound, then a search over the remaining starts.

After every stage of the bound a beam search forward in time looks for good schedules.  Then a
search that keeps all labels follows, if it fits into memory and time.  Until it fits, further
stages raise the bound and remove more starts.

In a cache of thousands of tokens, tables of all sets of requests are too large, and so are prices
of states.  There cases of what is active together are searched, see
`kvopt.search.exact.branch_search`.
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
from kvopt.kernels.budget import wall_time
from kvopt.search.exact.branch_search import search_branches
from kvopt.search.exact.forward import (
    FIRST_WIDTH,
    MAX_SETS,
    NAME,
    RISING_LABELS,
    WIDTH,
    Forward,
    label_limit,
)
from kvopt.search.stages import states_priced

_CLIMB_BEFORE_SEARCH = 0.6
"""Share of the time for prices of states; searches with their starts have the rest."""
_LOCAL_SEARCH_BESIDE = 0.2
"""Share of the time: local search in a thread parallel to forward searches."""
_GROWTH = 3
"""Factor of beam width and label limit from one stage to the next."""
_MIN_LOCAL_SEARCH, _LOCAL_SEARCH_FIRST = 6.0, 5.0
"""Shortest local search parallel to forward searches, in seconds; all of it beside exhaustive ones,
whose beams soon find more."""
_FIRST_LABELS = 1000
"""Labels in a round of the first search for a better bound."""
_FIRST_SEARCH, _TRIAL, _SHORT_TRIAL = 2, 1.5, 0.3
"""The stage with the first search for all better schedules, and the time of such a search as a
factor of all time before: if it is expected to end, and if it can only raise the bound."""
_HOPELESS = 10_000.0
"""Seconds of a search that is not expected to end."""
_TABLES, _SHORTEST_TABLES = 0.15, 2.0
"""Time of cost-to-go bounds between stages where no search follows, as a factor of all before; in
less than so many seconds they would hardly end."""
_HORIZON = 5
"""Rounds of the look-ahead of beam searches for many requests."""


def run(search: Search, few_requests: int = 20, max_sets: int = MAX_SETS) -> None:
    """Bound, remove starts and search until a proof is found, then look for schedules.

    Presolve is the removal of starts.

    Parameters
    ----------
    search
        The search.
    few_requests
        Requests up to which local search and repeated beams cost more than they save.
    max_sets
        As of `Forward`.
    """
    many = len(search.instance) > few_requests
    if search.schedule is None:
        offer_list_schedules(search)
    search.engine = NAME
    # Compilation and compiled loops ignore signals: this thread watches for them.
    run_in_thread(search, lambda: _run(search, many, max_sets))


def _run(search: Search, many: bool, max_sets: int) -> None:
    """Search at prices of states, or by cases if tables are too large, beside local search."""
    assert search.schedule is not None
    is_priced = is_quick(search.instance, search.schedule.makespan)
    # Where forward searches may prove the optimum, local search beside them ends soon.
    budget = search.budget
    if is_priced and len(search.instance) <= MOST_REQUESTS:
        most = max(_LOCAL_SEARCH_BESIDE * budget.left, _MIN_LOCAL_SEARCH)
        is_searched = len(search.instance) <= search.limits.params.exact_searchable
        budget = budget.part(most=_LOCAL_SEARCH_FIRST if is_searched else most)
    errors: list[Exception] = []

    def improve_beside() -> None:
        try:
            with search.surviving("local search"):
                improve(search, budget)
        except Exception as error:  # raised in the watching thread
            errors.append(error)

    # A daemon: a search that is left behind must not keep the process from its end.
    beside = threading.Thread(target=improve_beside, name="kvopt-solver", daemon=True)
    if many:
        beside.start()
    with search.surviving(NAME), suppress(Stopped):
        if is_priced:
            _bound_and_search(search, many, max_sets)
        else:
            search_branches(search, search.budget)
    if beside.ident is not None:
        beside.join()
    if errors:
        raise errors[0]
    if beside.ident is None or budget.left < math.inf:
        improve(search, search.budget)


def _bound_and_search(search: Search, many: bool, max_sets: int) -> None:
    """Ascend with prices of states, and search at the prices of each stage; claim an optimum."""
    assert search.schedule is not None
    count = len(search.instance)
    width, labels, forward, optimum = FIRST_WIDTH, _FIRST_LABELS, None, None
    patience = _CLIMB_BEFORE_SEARCH if count <= MOST_REQUESTS else 1.0
    is_searched = count <= search.limits.params.exact_searchable
    began, searching = wall_time(), 0.0
    fixes = search.limits.presolve
    try:
        priced = states_priced(search, search.budget, fixes=fixes, patience=patience)
        for stage, ascent in enumerate(priced):
            if count > MOST_REQUESTS:
                continue
            forward = Forward(search, ascent, None, max_sets, forward, many=many)
            # Cost-to-go bounds guide beams; beams find schedules that make searches shorter.
            most = _TABLES * (wall_time() - began)
            if not is_searched and most > _SHORTEST_TABLES:
                forward.complete(search.budget.part(0.5, most))
            if many or stage % 2 == 0:  # beams of few requests rarely gain at the next prices
                forward.search_with_beam(width, _HORIZON, repeats=many)
            width = min(_GROWTH * width, WIDTH)
            # Half of the time at most: a better bound makes the next search shorter.
            since = wall_time()
            if is_searched and stage >= _FIRST_SEARCH and _TRIAL * searching <= since - began:
                trial = _TRIAL if forward.expected < _HOPELESS else _SHORT_TRIAL
                part = search.budget.part(0.5, trial * (since - began))
                if forward.raises(labels) or forward.excludes_all(label_limit(search), part):
                    optimum = search.schedule.objective
                searching += wall_time() - since
                labels = min(_GROWTH * labels, RISING_LABELS)
        # Prices rise no more: all remaining time is for the gap.
        if forward and not optimum:
            if forward.finishes():
                optimum = search.schedule.objective
            else:
                forward.widen_beam()
    finally:
        if optimum is not None:
            search.offer_claimed(optimum, NAME)
    if optimum is None and not search.budget.over():
        search.note(f"{NAME}: ended before all better schedules were ruled out")
