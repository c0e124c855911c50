"""How much slower a machine may be: for each run the least factor that can be proved.

On a machine that is phi times slower no schedule is as good as a run of value V once the bound
there is above V.  What such a bound says of V, and why one phi rules out all slower machines, is
in `kvopt.model.slower`.  Values are worked on from the largest one down: what is proved of it holds
of the smaller ones, and there their search begins.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial

from kvopt.bounds.fluid import fluid_end, fluid_prices
from kvopt.bounds.prices import bound_by, denominator_for, rounded_prices
from kvopt.bounds.seconds import MIX, seconds_bound
from kvopt.bounds.seconds_evaluation import shares_bound
from kvopt.bounds.volume import volume_bound
from kvopt.certificates.sides import sides_of
from kvopt.engines.portfolio import has_configurations
from kvopt.kernels.compiling import working_time
from kvopt.model.arrivals import arrivals_ns
from kvopt.model.instance import LARGEST_INTEGER, Instance
from kvopt.model.scopes import Scope
from kvopt.model.slower import SlowRounds, is_backlog, slow_model
from kvopt.search.incumbent import Search
from kvopt.search.proofs import PARTS, Proof, SharesProof, SlowerBound, VolumeProof
from kvopt.search.result import Progress
from kvopt.simulation.clocks import ROUNDS, Clock, Seconds

_MOST_CLIMBS = 2
"""Searches for weights, each on a faster machine than the one before, for one value."""
_LEAST_IN_ROUNDS, _LEAST_IN_SECONDS = 2.0, 20.0
"""Seconds for all values together where there is no limit, at least."""
_MOST_GROWTHS = 200
"""Steps in which phi grows while nothing is proved yet: up to 10^19."""


def slower_bounds(
    search: Search,
    clock: Clock,
    scope: Scope,
    values: Iterable[int],
    known: Proof | None,
    seconds: float = math.inf,
) -> tuple[SlowerBound, ...]:
    """Return for some values the slower machines on which no schedule reaches them.

    Parameters
    ----------
    search
        The one that found the runs and bounds.
    clock, scope
        Of the values, and what the bounds have to cover.
    values
        Total latencies of runs.
    known
        Proof of the bound on the machine as it is.
    seconds
        For all of it; without a limit as many as the search took, or some if that was less.

    Returns
    -------
    tuple of SlowerBound
        With ascending phi and value; none for a backlog, where phi is value / bound.
    """
    if is_backlog(clock.arrivals(search.instance)):
        return ()
    machines: _Machines
    if isinstance(clock, Seconds):
        assert isinstance(known, SharesProof)
        machines = _InSeconds(search, clock, scope, known, seconds)
    else:
        machines = _InRounds(search, scope, seconds)
    found: list[SlowerBound] = []
    left = sorted({*values}, reverse=True)
    while left and not machines.is_over():
        value = left.pop(0)
        share = machines.remaining / (len(left) + 1)
        bound = machines.least(value, found[-1] if found else None, share)
        if bound is not None and not (found and bound.phi == found[-1].phi):
            found.append(bound)  # else what is proved of the larger value says as much
    return tuple(reversed(found))


class _Machines(ABC):
    """Slower machines, and the least of them that rules out a value."""

    def __init__(self, search: Search, seconds: float, least: float) -> None:
        self.search = search
        unlimited = max(search.seconds, least)
        self._end = working_time() + (unlimited if seconds == math.inf else seconds)

    @property
    def remaining(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._end - working_time())

    def is_over(self) -> bool:
        """Whether time has run out, or a signal has come."""
        return self.remaining <= 0 or self.search.signal_number is not None

    @abstractmethod
    def least(self, value: int, above: SlowerBound | None, seconds: float) -> SlowerBound | None:
        """Return the least phi found within some seconds, at most that of a larger value."""


def _grown(proves: Callable[[int], bool], most: int) -> tuple[int, int] | None:
    """Return parts that do not prove it, and more that do; None if there are none up to a limit."""
    low, step = PARTS, PARTS // 20
    for _ in range(_MOST_GROWTHS):
        if low + step > most:
            break
        if proves(low + step):
            return low, low + step
        low, step = low + step, max(step, low // 4)
    return None


def _halved(proves: Callable[[int], bool], low: int, high: int) -> int:
    """Return some parts above ``low`` that prove it, where ``high`` do and one less does not."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if proves(middle) else (middle, high)
    return high


class _InSeconds(_Machines):
    """Machines by shares: what given ones prove rises with phi, and others are found at any phi."""

    def __init__(
        self, search: Search, clock: Seconds, scope: Scope, known: SharesProof, seconds: float
    ) -> None:
        super().__init__(search, seconds, _LEAST_IN_SECONDS)
        self._model, self._scope, self._known = clock.batch_time, scope, known
        self._arrivals = [PARTS * arrival for arrival in arrivals_ns(search.instance)]
        lines = (number for line in self._model.lines for number in (line.round_ns, line.token_ns))
        largest = max(*lines, self._model.kv_ns, self._model.prompt_ns)
        self._most = LARGEST_INTEGER // (MIX * largest)

    def least(self, value: int, above: SlowerBound | None, seconds: float) -> SlowerBound | None:
        """Return the least phi that shares prove, those at hand and others found on the way."""
        end = working_time() + seconds
        if above is None:
            proof = self._known
            ends = _grown(lambda parts: self._rules_out(value, proof, parts), self._most)
        else:
            assert isinstance(above.proof, SharesProof)
            proof, ends = above.proof, (PARTS, above.parts)
        if ends is None:
            return None
        parts = self._least_of(value, proof, *ends)
        for _ in range(_MOST_CLIMBS):
            if self.is_over() or working_time() >= end or parts <= PARTS + 1:
                break
            found = self._climbed(parts - 1, end - working_time())
            less = self._least_of(value, found, PARTS, parts)
            if less == parts:
                break
            parts, proof = less, found
        return SlowerBound(Fraction(parts, PARTS), value, proof)

    def _least_of(self, value: int, proof: SharesProof, low: int, high: int) -> int:
        return _halved(lambda parts: self._rules_out(value, proof, parts), low, high)

    def _rules_out(self, value: int, proof: SharesProof, parts: int) -> bool:
        model = slow_model(self._model, parts)
        return shares_bound(self.search.instance, model, proof, self._arrivals) > PARTS * value

    def _climbed(self, parts: int, seconds: float) -> SharesProof:
        return seconds_bound(
            self.search.instance,
            slow_model(self._model, parts),
            arrivals=self._arrivals,
            scope=self._scope,
            time_limit=seconds,
            should_stop=self.is_over,
        ).proof


class _InRounds(_Machines):
    """Machines by whatever bounds an instance in rounds: quick ones first, then all there are."""

    def __init__(self, search: Search, scope: Scope, seconds: float) -> None:
        super().__init__(search, seconds, _LEAST_IN_ROUNDS)
        self._scope = scope
        self._best: SlowerBound | None = None

    def least(self, value: int, above: SlowerBound | None, seconds: float) -> SlowerBound | None:
        """Return the least phi that is proved when time is over."""
        self._best = above
        end = working_time() + seconds

        def quick(parts: int) -> bool:
            return self._is_proved(value, parts, self._quick)

        def thorough(parts: int) -> bool:
            probes = 1 + max(1, parts - PARTS).bit_length()
            limit = max(0.0, end - working_time()) / probes
            return self._is_proved(value, parts, partial(self._thorough, seconds=limit))

        ends = _grown(quick, LARGEST_INTEGER) if above is None else (PARTS, above.parts)
        if ends is not None:
            _halved(thorough, PARTS, _halved(quick, *ends))
        return self._best

    def _is_proved(
        self, value: int, parts: int, prove: Callable[[Instance, int], Proof | None]
    ) -> bool:
        """Whether a machine rules a value out; of those that do the last one is kept."""
        if self.is_over():
            return False
        slow = SlowRounds.of(self.search.instance, Fraction(parts, PARTS))
        proof = prove(slow.instance, slow.needed(value))
        if proof is not None:
            self._best = SlowerBound(slow.phi, value, proof)
        return proof is not None

    def _quick(self, instance: Instance, needed: int) -> Proof | None:
        """Return a proof by volumes, or by the prices of the fluid."""
        if volume_bound(instance) >= needed:
            return VolumeProof()
        whole = self.search
        longest = whole.params.lagrangian.longest
        if self._scope.covers(Scope.PAUSES) or fluid_end(instance) > longest:
            return None
        values = fluid_prices(instance)
        prices = rounded_prices(values, denominator_for(instance, values))
        return prices if bound_by(instance, prices, whole.threads).value >= needed else None

    def _thorough(self, instance: Instance, needed: int, seconds: float) -> Proof | None:
        """Return a proof by whatever is found before a schedule shows that there is none."""
        whole = self.search

        def is_decided(known: Progress) -> bool:
            bound, objective = known.lower_bound, known.objective
            proved = bound is not None and bound >= needed
            return proved or (objective is not None and objective < needed) or self.is_over()

        search = Search(
            instance,
            time_limit=seconds,
            seed=whole.seed,
            threads=whole.threads,
            stop=is_decided,
            checkable=True,
            ram=whole.ram,
            params=whole.params,
        )
        sides = sides_of(search, ROUNDS, self._scope)
        sides.first()
        pauses = self._scope.covers(Scope.PAUSES)
        if search.schedule is not None and not pauses and has_configurations(search):
            sides.rest()  # elsewhere it finds no better bound
        found = search.checked
        return found.proof if found is not None and found.value >= needed else None
