"""Problems with weights, an order of requests or a limit of active ones.

They are bounded by the problem of the papers: a limit and an order only restrict, and every latency
is at least the output, so each weight above 1 adds so many outputs.  Latency that counts from a
release may be less than from the arrival, so with an order the sum of outputs is the bound.
"""

from __future__ import annotations

from collections.abc import Callable

from kvopt.errors import PolicyFault
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.proofs import Prices
from kvopt.search.meanwhile import prover
from kvopt.search.registry import ENGINES
from kvopt.simulate.running import run
from kvopt.simulate.simulator import Stopped

ENGINES_THAT_KNOW = ("auto", "cpsat", "highs", "pyomo")
"""Engines that know weights and limits; an order is known by the first two."""
_POLICIES = ("svf", "mc-sf", "fcfs")


def bound_by_relaxation(search: Search, seconds: float, work: Callable[[Search], None]) -> None:
    """Offer the bound that some work proves for the problem of the papers."""
    instance = search.instance
    sure = sum(request.weight * request.output for request in instance)
    if "after" in instance.extras:
        search.offer_checked(sure, "outputs", Prices((), 1))
        return
    inner = search.inside(instance.without_extras(), seconds)
    work(inner)
    search.take_notes(inner)
    if (found := inner.checked) is not None:
        more = sure - instance.total_output
        search.offer_checked(found.value + more, found.bounded_by, found.proof)


def offer_policies(search: Search, _: float = 0.0) -> None:
    """Offer what some schedulers do."""
    for name in _POLICIES:
        try:
            found = run(search.instance, name, should_stop=search.should_stop)
        except PolicyFault as fault:
            search.note(f"{name}: {fault}")
            continue
        except Stopped:
            return
        if found.schedule is not None:
            search.offer(found.schedule, f"policy {name}")


def prove(search: Search, _: float = 0.0) -> None:
    """Look for the best schedule with a solver."""
    name = "cpsat" if "after" in search.instance.extras else prover(search)
    ENGINES.find(name)(search)
