"""Compile everything once: small problems that go through every compiled loop.

Callers determine the types for which a loop is compiled.  So this module calls them and has no list
of types.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import NamedTuple

from kvopt import (
    BatchTime,
    Line,
    Problem,
    Scope,
    SolveParams,
    bound,
    certify,
    generate,
    run,
    solve,
    tiny_optimum,
)
from kvopt.bounds.seconds import seconds_bound
from kvopt.bounds.shared_rounds_ascent import shared_rounds_bound
from kvopt.heuristics.fleets.fluid_orders import fluid_of, placed
from kvopt.heuristics.fleets.placing import Tries
from kvopt.heuristics.list_schedules import offer_list_schedules, one_after_another
from kvopt.heuristics.reinsertion import search_reinsertions, search_with_pauses
from kvopt.heuristics.seconds.server_search import search_servers
from kvopt.heuristics.seconds.timed_beams import beams_in_seconds
from kvopt.heuristics.seconds.waiting_turns import search_conversations
from kvopt.heuristics.trace_beams import search_traces
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits, available_threads
from kvopt.kernels.budget import Budget
from kvopt.kernels.compiled import compile_here, functions_compiled, is_kept
from kvopt.problem.clocks import Seconds
from kvopt.search import plan
from kvopt.search.exact.forward import Forward
from kvopt.search.stages import bound_by_shared_prices, states_priced

_PROCESSES = 2
"""Parts that are compiled at a time: numba compiles one function at a time in a process."""


class Warmed(NamedTuple):
    """A part that is ready.

    Parameters
    ----------
    name
        The purpose of its loops.
    compiled
        Functions that had to be compiled.
    seconds
        Wall time.
    is_kept
        Whether its code can be stored.
    """

    name: str
    compiled: int
    seconds: float
    is_kept: bool


def warm_up() -> Iterator[Warmed]:
    """Compile every part that is not cached, and report each when it is ready."""
    context = multiprocessing.get_context("spawn")
    ignore = signal.signal, (signal.SIGINT, signal.SIG_IGN)
    with ProcessPoolExecutor(min(_PROCESSES, available_threads()), context, *ignore) as pool:
        try:
            for part in as_completed([pool.submit(_warmed, name) for name in _PARTS]):
                yield part.result()
        except BaseException:  # Ctrl-C or an error: half compiled loops are useless
            for child in multiprocessing.active_children():
                child.kill()
            raise


def _warmed(name: str) -> Warmed:
    """Compile one part, in a process that Ctrl-C ends from outside."""
    compile_here()
    began, count = monotonic(), functions_compiled()
    for call in _PARTS[name]:
        call()
    return Warmed(name, functions_compiled() - count, monotonic() - began, is_kept())


_NARROW = Limits(params=SolveParams(improve_widest_beam=2))
"""Limits under which beams over a whole trace end soon."""
_CHAT = generate("conversation", n=20, memory=1_000, seed=1)
_FEW = generate("arrival-1", n=8, seed=3)
_BACKLOG = generate("conversation", n=40, memory=500, seed=1)
"""Requests of which some have to wait."""
_SHARED = generate("sessions", n=16, memory=2_000, seed=1)
_CLOCK = Seconds(BatchTime([Line(10_000_000, 10_000)]))


def _local() -> None:
    """Improve a schedule without a bound that meets it, so that no stage is skipped."""
    search = Search(_CHAT, _NARROW)
    offer_list_schedules(search)
    search_traces(search, Budget())
    search_reinsertions(search, Budget(), most_passes=1)


def _configurations() -> None:
    """Bound as for many requests, without tables of all starts."""
    search = Search(generate("uniform", n=8, seed=1))
    offer_list_schedules(search)
    next(states_priced(search, Budget(), few_knots=True))


def _completions() -> None:
    """Search with cost-to-go bounds of the first prices, whose gap is wide."""
    search = Search(_FEW)
    offer_list_schedules(search)
    ascent = next(states_priced(search, Budget()))
    forward = Forward(search, ascent)
    forward.complete(Budget())
    forward.search_with_beam(width=4, horizon=5)
    forward.raises(1000, look_ahead=True)


def _sharing() -> None:
    """Bound by prices of shared blocks, and improve a schedule that shares them."""
    search = Search(_SHARED, _NARROW)
    search.offer(one_after_another(search.instance), "one after another")
    bound_by_shared_prices(search, Budget(1.0))
    search_traces(search, Budget())
    search_reinsertions(search, Budget(), most_passes=1)


def _fleets() -> None:
    """Improve a schedule of a fleet without a bound that meets it."""
    search = Search(replace(_CHAT, workers=2))
    search.offer(one_after_another(search.instance), "one after another")
    search_traces(search, Budget())
    placed(search.instance, fluid_of(search.instance, 0.9), Tries(2, seed=1), Budget())
    search_reinsertions(search, Budget(), most_passes=1)


def _pauses() -> None:
    """Improve a schedule with pauses; few requests are searched in groups."""
    search_with_pauses(Search(Problem(_CHAT, scope=Scope.PAUSES)), Budget(1.0))
    few = Problem(generate("arrival-1", n=4, seed=1), scope=Scope.PAUSES)
    plan.run(plan.LAYERS, Search(few))


def _seconds() -> None:
    chat = generate("conversation", n=4, memory=1_000, seed=1)
    seconds_bound(chat, _CLOCK.batch_time)
    shared_rounds_bound(chat, _CLOCK.batch_time)
    beams_in_seconds(chat, _CLOCK, [0])
    search_servers(Search(Problem(chat, clock=_CLOCK)), Budget(1.0))
    shared = Problem(replace(_SHARED, round_ms=1), clock=_CLOCK, scope=Scope.SHARING)
    search_conversations(Search(shared), Budget(1.0))


def _policies() -> None:
    """Run the compiled loops for long lines of waiting requests."""
    backlog = generate("uniform", n=250, seed=1)
    for name in ("sorted-f:phase1=exact", "h-sf"):
        run(backlog, name)


def _tiny() -> None:
    instance = generate("arrival-1", n=4, seed=1)
    tiny_optimum(instance)
    tiny_optimum(Problem(instance, scope=Scope.PAUSES))


_PARTS: dict[str, tuple[Callable[[], object], ...]] = {
    "configurations of many requests": (_configurations,),
    "exact search": (partial(solve, _FEW, "exact"),),
    "beam search": (_completions,),
    "local search": (_local,),
    "schedules of fleets": (_fleets,),
    "bounds by prices": (
        partial(bound, _CHAT, "lagrangian"),
        partial(bound, generate("arrival-1", n=8, seed=1), "slots"),
    ),
    "pauses": (
        _pauses,  # with arrivals prices rise, so pauses may pay
        partial(bound, generate("arrival-2", n=8, seed=1), "lagrangian", scope="pauses"),
    ),
    "shared prefixes": (_sharing,),
    "memory in whole blocks": tuple(
        partial(bound, replace(_CHAT, block_size=16), "lagrangian", scope=scope)
        for scope in ("runs", "pauses")
    ),
    "both sides in seconds": (_seconds,),
    "service levels": (
        partial(certify, _BACKLOG, slo="e2e=60", time_limit=1.0),
        partial(certify, _BACKLOG, clock=_CLOCK, slo="ttft=1s,tpot=1s", time_limit=1.0),
    ),
    "schedulers": (_policies,),
    "tiny instances": (_tiny,),
}
"""Parts, the longest first; parts that share loops with others come after these."""
