"""One lower bound of one problem, by one method: the functions of `kvopt.bounds`.

Each takes a problem in rounds, an instance, or the file of one.  Its budget is in seconds, None for
as long as it takes; if that does not suffice, the bound is that of the volumes.
"""

from __future__ import annotations

from dataclasses import dataclass

from kvopt.errors import InvalidInput
from kvopt.incumbent.proofs import PriceProof, Proof, prices_of
from kvopt.problem.problem import Source, as_problem
from kvopt.search.bounding import bound


@dataclass(frozen=True)
class Bound:
    """A lower bound on the total latency of every schedule of a problem.

    Parameters
    ----------
    value
        No schedule has a smaller total latency: in rounds, or in nanoseconds.
    proof
        What proves it; evaluated again in integers.
    prices
        Prices of tokens over time in the proof, None if it has none.
    """

    value: int
    proof: Proof
    prices: PriceProof | None


def _bounded(source: Source, method: str, budget: float | None) -> Bound:
    """Return the bound of a method, or that of the volumes if the budget ends before it."""
    problem = as_problem(source)
    limit = {} if budget is None else {"time_limit": budget}
    checked = bound(problem, method, **limit).checked  # type: ignore[arg-type]
    if checked is None and method != "volume":
        checked = bound(problem, "volume").checked
    assert checked is not None, "volumes bound every problem in rounds at once"
    return Bound(checked.value, checked.proof, prices_of(checked.proof))


def volume_bound(problem: Source) -> Bound:
    """Bound by volumes of tokens over time, and by staircases of one after another; takes no time.

    Examples
    --------
    >>> from kvopt import Instance, Request
    >>> from kvopt.bounds import volume_bound
    >>> volume_bound(Instance(memory=7, requests=[Request(0, 1, o) for o in (1, 2, 3, 4)])).value
    11
    """
    return _bounded(problem, "volume", None)


def lp_bound(problem: Source, budget: float | None = None) -> Bound:
    """Bound by the linear program over starts; its duals are the prices.

    Parameters
    ----------
    problem
        The problem in rounds, an instance, or a file of one.
    budget
        Seconds, None for as long as it takes.  If they do not suffice, the bound is that of the
        volumes.  So for the other functions here.

    Examples
    --------
    >>> from kvopt import Instance, Request
    >>> from kvopt.bounds import lp_bound
    >>> lp_bound(Instance(memory=7, requests=[Request(0, 1, o) for o in (1, 2, 3, 4)])).value
    12
    """
    return _bounded(problem, "lp", budget)


def lagrangian_bound(problem: Source, budget: float | None = None) -> Bound:
    """Bound by prices of tokens over time, which an ascent improves towards the LP bound.

    Pauses and blocks are covered.

    Examples
    --------
    >>> from kvopt import generate
    >>> from kvopt.bounds import lagrangian_bound
    >>> found = lagrangian_bound(generate("arrival-1", n=6, seed=3))
    >>> found.value, found.prices.denominator > 0
    (129, True)
    """
    return _bounded(problem, "lagrangian", budget)


def slot_bound(problem: Source, budget: float | None = None) -> Bound:
    """Bound by prices of tokens and of slots: places for large requests in the cache.

    Examples
    --------
    >>> from kvopt import generate
    >>> from kvopt.bounds import lagrangian_bound, slot_bound
    >>> instance = generate("arrival-1", n=6, seed=3)
    >>> slot_bound(instance).value >= lagrangian_bound(instance).value
    True
    """
    return _bounded(problem, "slots", budget)


def configuration_bound(problem: Source, budget: float | None = None) -> Bound:
    """Bound by prices of the states of the cache: the strongest one, for few requests at a time.

    Examples
    --------
    >>> from kvopt import generate
    >>> from kvopt.bounds import configuration_bound, lagrangian_bound
    >>> instance = generate("arrival-1", n=6, seed=3)
    >>> configuration_bound(instance).value > lagrangian_bound(instance).value
    True
    """
    return _bounded(problem, "configuration", budget)


def seconds_bound(problem: Source, budget: float | None = None) -> Bound:
    """Bound in seconds: by shares of the machine that requests take from each other.

    Parameters
    ----------
    problem
        The problem in seconds, whose totals are nanoseconds.
    budget
        Seconds of work; a first bound is computed under any budget.

    Examples
    --------
    >>> from kvopt import Problem, Seconds, batch_time, generate
    >>> from kvopt.bounds import seconds_bound
    >>> clock = Seconds(batch_time("llama-3-8b@h100"))
    >>> chat = generate("conversation", n=4, memory=1_000, seed=1)
    >>> seconds_bound(Problem(chat, clock)).value > 0
    True
    """
    settled = as_problem(problem)
    if not settled.in_seconds:
        raise InvalidInput("must be one of seconds: Problem(instance, clock)", field="clock")
    return _bounded(settled, "auto", budget)
