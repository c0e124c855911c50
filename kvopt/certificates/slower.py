"""How much slower a machine may be: for each run the least factor that can be proved.

On a machine that is phi times slower no schedule is as good as a run of value V once the bound
there is above V.  `kvopt.problem.slower` explains this bound, and why one phi rules out all
slower machines.  Values are processed in descending order: a factor for one holds for smaller
values too, whose search begins there.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise

from kvopt.bounds.fluid import fluid_end, fluid_prices
from kvopt.bounds.prices import bound_by, denominator_for, rounded_prices
from kvopt.bounds.seconds import MIX, seconds_bound
from kvopt.bounds.seconds_evaluation import shares_bound
from kvopt.bounds.volume import volume_bound
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.proofs import PARTS, Proof, SharesProof, SlowerBound, VolumeProof
from kvopt.incumbent.result import Progress
from kvopt.kernels.clock import wall_time
from kvopt.problem.clocks import arrivals_ns
from kvopt.problem.requests import LARGEST_INTEGER
from kvopt.problem.scopes import Scope
from kvopt.problem.slower import SlowRounds, is_backlog, slow_model
from kvopt.search import plan
from kvopt.search.stages import has_configurations

_MOST_CLIMBS = 2
"""Searches for weights for one value, each on a faster machine than the last."""
_LEAST_IN_ROUNDS, _LEAST_IN_SECONDS = 2.0, 20.0
"""Least seconds for all values together without a limit."""
_MOST_GROWTHS = 200
"""Steps in which phi grows while nothing is proved yet: up to 10^19."""


def slower_bounds(
    search: Search,
    values: Iterable[int],
    known: Proof | None,
    seconds: float = math.inf,
) -> tuple[SlowerBound, ...]:
    """Return for some values the slower machines on which no schedule reaches them.

    Parameters
    ----------
    search
        The search that found the runs and bounds.
    values
        Total latencies of runs.
    known
        Proof of the bound on the machine as it is.
    seconds
        Limit for all of it; without a limit the time of the search, or a least time if longer.

    Returns
    -------
    tuple of SlowerBound
        With ascending phi and value; none for a backlog, since phi is value / bound there.
    """
    if is_backlog(search.clock.arrivals(search.instance)):
        return ()
    machines: _Machines
    if search.problem.in_seconds:
        assert isinstance(known, SharesProof)
        machines = _InSeconds(search, known, seconds)
    else:
        machines = _InRounds(search, seconds, _LEAST_IN_ROUNDS)
    bounds = [*_first(machines, sorted({*values}, reverse=True))]
    for place, bound in enumerate(bounds):
        if place and bounds[place - 1].phi < bound.phi:
            bound = replace(bounds[place - 1], value=bound.value)
        share = machines.remaining / (len(bounds) - place)
        bounds[place] = bound if machines.is_over() else machines.better(bound, share)
    # With the phi of a larger value this proves the same.
    kept = [bounds[0], *(b for a, b in pairwise(bounds) if b.phi < a.phi)] if bounds else []
    return tuple(reversed(kept))


def _first(machines: _Machines, values: list[int]) -> Iterator[SlowerBound]:
    """Yield quick results for each value, the largest first."""
    above = None
    for value in values:
        if not machines.is_over() and (bound := machines.first(value, above)):
            yield bound
            above = bound


class _Machines(ABC):
    """Slower machines, up to ``most`` parts, and the least of them that rules out a value."""

    most: int

    def __init__(self, search: Search, seconds: float, least: float) -> None:
        self.search = search
        unlimited = max(search.seconds, least)
        self._end = wall_time() + (unlimited if seconds == math.inf else seconds)

    @property
    def remaining(self) -> float:
        """Seconds that remain."""
        return max(0.0, self._end - wall_time())

    def is_over(self) -> bool:
        """Whether time has run out, or a signal has come."""
        return self.remaining <= 0 or self.search.signal_number is not None

    def first(self, value: int, above: SlowerBound | None) -> SlowerBound | None:
        """Return a phi that rules a value out, found quickly, from the phi of a larger value on."""
        if above is not None:
            return least_of(self.quick, replace(above, value=value))
        low, step = PARTS, PARTS // 20
        for _ in range(_MOST_GROWTHS):
            if low + step > self.most:
                break
            if (proof := self.quick(value, low + step)) is not None:
                found = SlowerBound(Fraction(low + step, PARTS), value, proof)
                return least_of(self.quick, found, low)
            low, step = low + step, max(step, low // 4)
        return None

    @abstractmethod
    def quick(self, value: int, parts: int) -> Proof | None:
        """Return a quick proof that this phi, in parts, rules a value out, or None."""

    @abstractmethod
    def better(self, bound: SlowerBound, seconds: float) -> SlowerBound:
        """Return the least phi found within so many seconds for the value of a bound."""


def least_of(
    prove: Callable[[int, int], Proof | None], bound: SlowerBound, low: int = PARTS
) -> SlowerBound:
    """Return the least phi above ``low`` parts with a proof, found by bisection."""
    while bound.parts - low > 1:
        middle = (low + bound.parts) // 2
        proof = prove(bound.value, middle)
        if proof is None:
            low = middle
        else:
            bound = SlowerBound(Fraction(middle, PARTS), bound.value, proof)
    return bound


class _InSeconds(_Machines):
    """Slower machines by shares: the bound of given shares rises with phi."""

    def __init__(self, search: Search, known: SharesProof, seconds: float) -> None:
        super().__init__(search, seconds, _LEAST_IN_SECONDS)
        self._model, self._known = search.clock.batch_time, known
        self._arrivals = [PARTS * arrival for arrival in arrivals_ns(search.instance)]
        lines = (number for line in self._model.lines for number in (line.round_ns, line.token_ns))
        largest = max(*lines, self._model.kv_ns, self._model.prompt_ns)
        self.most = LARGEST_INTEGER // (MIX * largest)

    def quick(self, value: int, parts: int) -> Proof | None:
        """Return the known shares if they rule a value out on this machine."""
        return self._by(self._known, value, parts)

    def better(self, bound: SlowerBound, seconds: float) -> SlowerBound:
        """Return the least phi that is proved by shares found on slower machines."""
        end = wall_time() + seconds
        for _ in range(_MOST_CLIMBS):
            if self.is_over() or wall_time() >= end or bound.parts <= PARTS + 1:
                break
            climbed = self._climbed(bound.parts - 1, end - wall_time())
            found = least_of(partial(self._by, climbed), bound)
            if found is bound:
                break
            bound = found
        return bound

    def _by(self, proof: SharesProof, value: int, parts: int) -> SharesProof | None:
        """Return shares if they rule a value out."""
        model = slow_model(self._model, parts)
        chunks = self.search.problem.scope.covers(Scope.CHUNKS)
        found = shares_bound(self.search.instance, model, proof, self._arrivals, chunks=chunks)
        return proof if found > PARTS * value else None

    def _climbed(self, parts: int, seconds: float) -> SharesProof:
        return seconds_bound(
            self.search.instance,
            slow_model(self._model, parts),
            arrivals=self._arrivals,
            scope=self.search.problem.scope,
            time_limit=seconds,
            should_stop=self.is_over,
        ).proof


class _InRounds(_Machines):
    """Slower machines by bounds in rounds: quick ones first, then all."""

    most = LARGEST_INTEGER

    def quick(self, value: int, parts: int) -> Proof | None:
        """Return a proof by volumes, or by the prices of the fluid."""
        if self.is_over():
            return None
        slow = SlowRounds.of(self.search.instance, Fraction(parts, PARTS))
        instance, needed = slow.instance, slow.needed(value)
        if volume_bound(instance) >= needed:
            return VolumeProof()
        whole = self.search
        longest = whole.params.lagrangian_longest
        if self.search.problem.has_pauses or fluid_end(instance) > longest:
            return None
        values = fluid_prices(instance)
        prices = rounded_prices(values, denominator_for(instance, values))
        return prices if bound_by(instance, prices, whole.threads).value >= needed else None

    def better(self, bound: SlowerBound, seconds: float) -> SlowerBound:
        """Return the least phi that any bound proves within some seconds."""
        end = wall_time() + seconds

        def thorough(value: int, parts: int) -> Proof | None:
            probes = 1 + max(1, parts - PARTS).bit_length()
            return self._thorough(value, parts, max(0.0, end - wall_time()) / probes)

        return least_of(thorough, bound)

    def _thorough(self, value: int, parts: int, seconds: float) -> Proof | None:
        """Return a proof by any bound, None if a schedule refutes it or time is over."""
        if self.is_over():
            return None
        slow = SlowRounds.of(self.search.instance, Fraction(parts, PARTS))
        needed = slow.needed(value)
        whole = self.search

        def is_decided(known: Progress) -> bool:
            bound, objective = known.lower_bound, known.objective
            proved = bound is not None and bound >= needed
            return proved or (objective is not None and objective < needed) or self.is_over()

        search = whole.inside(slow.instance, seconds, stop=is_decided, checkable=True)
        plan.run(plan.FIRST, search)
        divided = plan.divided(search)
        divided.work(partial(plan.run, plan.BOUNDS), search.remaining)
        pauses = search.problem.has_pauses
        if search.schedule is not None and not pauses and has_configurations(search):
            divided.work(partial(plan.run, plan.SEARCHES))  # elsewhere it finds no better bound
        found = search.checked
        return found.proof if found is not None and found.value >= needed else None
