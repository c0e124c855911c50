"""Reductions: problems that are solved as others, without any loss.

A reduction leads to problems whose schedules, bounds and proofs are those of the problem at hand,
once they are lifted.  `kvopt.search.plan.Driver` applies the first one that fits, and again to the
problems that it leads to.  A relaxation loses schedules or bounds; see `kvopt.bounds.relaxations`.

Of an instance that idle gaps cut into parts both sides are sums over these (`kvopt.problem.parts`).
So every part is a search of its own, on a clock of its own, with a share of the time.  Results of
parts are reported to the whole at intervals and at the end: a limit or an interrupt may come at any
time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice

from kvopt.bounds.prices import bound_by
from kvopt.bounds.relaxations import chains
from kvopt.bounds.volume import volume_bound
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.proofs import (
    CheckedBound,
    PartProof,
    PriceProof,
    Proof,
    SharedRoundsProof,
    SharesProof,
    SplitProof,
    VolumeProof,
    prices_of,
)
from kvopt.incumbent.result import Progress
from kvopt.kernels.budget import Budget
from kvopt.kernels.clock import wall_time
from kvopt.problem.instance import Instance
from kvopt.problem.parts import Part, split

_PAUSE = 20.0
"""The whole is assembled again after this multiple of the seconds that it takes."""

_ROUND_SHARE = 0.1
"""Share of the time that must remain for another pass over parts without a proof."""

_PLAIN = VolumeProof()

Work = Callable[[Search, Budget], object]
"""Work on a search within a budget."""


def reduced(
    search: Search, prices: Proof | None = None, *, only_bounds: bool = False
) -> OtherInstance | Divided | None:
    """Return the search by way of other problems, None if no reduction applies.

    Parameters
    ----------
    search
        The search.
    prices
        Proof of a bound, from which the search of its parts begins.
    only_bounds
        Whether it bounds without a search for schedules.
    """
    problem, instance = search.problem, search.instance
    # Of more workers than requests some serve none, and proofs count as many as requests.
    if instance.workers > instance.used_workers:
        fewer = replace(instance, workers=instance.used_workers)
        return OtherInstance(search, fewer, "without idle workers")
    # A prefix of all is held once while anything is active, so memory and prompts are less.  This
    # is a reduction if searches know the problem without it.
    shorter = instance.without_common_prefix()
    if problem.is_restricted and not replace(problem, instance=shorter).is_restricted:
        return OtherInstance(search, shorter, "without the common prefix", ("shares",))
    # Some optimum completes a part before the next arrival, so optima of parts add up.  Schedules
    # of parts are starts of tokens; their bounds may cover pauses, too.
    if problem.in_seconds or problem.in_blocks or not len(instance):
        return None
    if not (chains(problem) == [()] if only_bounds else problem.is_starts):
        return None
    parts = split(instance)
    return Divided(search, parts, prices) if len(parts) > 1 or parts[0].begin > 0 else None


class OtherInstance:
    """A search of another instance, whose schedules, bounds and claims are those of this one.

    Parameters
    ----------
    search, instance
        The search, and the instance that is solved instead.
    name
        Name of the reduction in lists of stages.
    relaxations
        Relaxations that lead to the other instance, for proofs.
    """

    def __init__(
        self, search: Search, instance: Instance, name: str, relaxations: tuple[str, ...] = ()
    ) -> None:
        self._search, self.instance, self._relaxations = search, instance, relaxations
        self.name = name

    def work(self, work: Work, budget: Budget | None = None) -> None:
        """Let some work be done on the other instance."""
        self._search.work_inside(
            self.instance,
            lambda inner: work(inner, inner.budget),
            budget,
            takes=("schedules", "bounds", "claims"),
            known=True,
            relaxations=self._relaxations,
        )


class Divided:
    """A search, and the results of each part of its instance.

    Known prices are evaluated again, part by part.

    Parameters
    ----------
    search, parts
        The search of the whole, and the parts into which idle gaps cut it.
    prices
        Proof of a bound, by prices.
    """

    name = "parts between idle gaps"

    def __init__(self, search: Search, parts: Sequence[Part], prices: Proof | None = None) -> None:
        prices_of = _prices_of_parts(prices)
        self._search, self._due = search, 0.0
        self._sides = [Side(part, search, prices_of.get(part.begin)) for part in parts]

    def work(self, work: Work, budget: Budget | None = None) -> None:
        """Let some work be done on its open parts, one after the other.

        Small parts come first.  Parts that ran out of time are repeated while much time remains.
        """
        search, within = self._search, budget or self._search.budget
        for side in self._sides:
            side.follow(search)
        open_sides = self._open()
        try:
            while open_sides and not search.budget.over():
                limit, remaining = within.left, sum(len(s.part.members) for s in open_sides)
                for side in open_sides:
                    count = len(side.part.members)
                    self._work_on(side, work, within.part(count / remaining))
                    remaining -= count
                    if search.budget.over():
                        break
                open_sides = [side for side in self._open() if side.ran_out]
                if within.left < _ROUND_SHARE * limit:
                    break
        finally:
            self._tell()
        if open_sides and not search.proved and budget is None:
            search.granted.expire()

    def _open(self) -> list[Side]:
        """Return the parts without a proof, ordered so that later ones get the remaining time."""
        sides = [side for side in self._sides if not side.is_proved]
        return sorted(sides, key=lambda side: len(side.part.members))

    def _work_on(self, side: Side, work: Work, budget: Budget) -> None:
        whole = self._search
        search = whole.inside(
            side.part.instance,
            budget,
            observer=lambda progress: self._hear(side, search, progress),
        )
        try:
            side.tell(search)
            if not search.budget.over():
                with search.surviving():
                    work(search, search.budget)
        finally:
            side.learn(search)
            side.ran_out = not budget.left
            whole.take_notes(search)

    def _hear(self, side: Side, search: Search, progress: Progress) -> None:
        """Take the new result of a part; report to the whole at intervals."""
        self._search.engine = progress.engine
        side.learn(search)
        if wall_time() >= self._due:
            began = wall_time()
            self._tell()
            self._due = wall_time() + _PAUSE * (wall_time() - began)

    def _tell(self) -> None:
        """Offer the sums of both sides to the whole."""
        search, sides = self._search, self._sides
        # An abandoned search may still improve a bound between two reads.
        checked = [side.checked for side in sides]
        proofs = tuple(self._proofs(checked))
        search.offer_checked(
            sum(bound.value for bound in checked),
            _named(bound.bounded_by for bound in checked),
            _PLAIN if [one.proof for one in proofs] == [_PLAIN] else SplitProof(proofs),
        )
        search.offer_claimed(
            sum(side.claimed for side in sides), _named(side.claimed_by for side in sides)
        )
        starts, workers = [0] * len(search.instance), [0] * len(search.instance)
        for side in sides:
            if side.starts is None:
                return
            rows = zip(side.part.members, side.starts, side.workers, strict=True)
            for i, start, worker in rows:
                starts[i], workers[i] = side.part.begin + start, worker
        search.offer_starts(starts, _named(side.found_by for side in sides), workers)

    def _proofs(self, checked: Iterable[CheckedBound]) -> Iterator[PartProof]:
        """Yield the proofs of all parts; neighbours by plain volumes are joined."""
        begins = (side.part.begin for side in self._sides)
        rows = zip(begins, (bound.proof for bound in checked), strict=True)
        for plain, group in groupby(rows, lambda row: row[1] == _PLAIN):
            for begin, proof in islice(group, 1) if plain else group:
                whole = SplitProof | SharesProof | SharedRoundsProof
                assert not isinstance(proof, whole), "a part has rounds"
                yield PartProof(begin, proof)


class Side:
    """Results of a part: starts on its own clock, and bounds."""

    def __init__(self, part: Part, whole: Search, prices: PriceProof | None) -> None:
        self.part = part
        self.starts: Sequence[int] | None = (0,) if len(part.members) == 1 else None
        self.workers: Sequence[int] = (0,) * len(part.members)
        self.found_by = "start on arrival"
        self.checked = CheckedBound(volume_bound(part.instance), "volume", _PLAIN)
        if prices is not None:
            priced = bound_by(part.instance, prices, whole.limits.threads)
            self.checked = max(self.checked, priced, key=lambda bound: bound.value)
        self.claimed, self.claimed_by = self.checked.value, self.checked.bounded_by
        self._wants_volume = whole.checked is not None
        """Whether earlier results count, or only those of the engine."""
        self.ran_out = False
        """Whether its share of the time ended a search."""

    @property
    def value(self) -> float:
        """Total latency of the starts, infinite without any."""
        if self.starts is None:
            return math.inf
        return sum(self.starts) + sum(r.output - r.arrival for r in self.part.instance)

    @property
    def is_proved(self) -> bool:
        """Whether the starts meet the bound."""
        return self.value == self.claimed

    def follow(self, whole: Search) -> None:
        """Take the starts of the whole if they are better for this part.

        They may reach into later parts, which may not fit other starts of those.
        """
        if whole.schedule is None:
            return
        before, earlier = self.starts, self.value
        starts = self.part.starts_of(whole.schedule.starts)
        self.starts = self.part.without_late_idling(starts)
        if self.value < earlier:
            self.workers = tuple(whole.schedule.workers[i] for i in self.part.members)
            self.found_by = whole.found_by or self.found_by
        else:
            self.starts = before

    def tell(self, search: Search) -> None:
        """Offer the known results to a search of the part."""
        if self.starts is not None:
            search.offer_starts(self.starts, self.found_by, self.workers)
        if self._wants_volume:
            search.offer_bound(self.checked)

    def learn(self, search: Search) -> None:
        """Take better results of a search of the part.

        An abandoned search may still report while the next one runs.
        """
        if search.schedule is not None and search.schedule.objective < self.value:
            self.starts = self.part.without_late_idling(search.schedule.starts)
            self.workers = search.schedule.workers
            self.found_by = search.found_by or self.found_by
        bound = search.checked
        if bound is not None and not self._wants_volume:  # a single method was requested
            self.claimed, self.claimed_by = bound.value, bound.bounded_by
            self.checked, self._wants_volume = bound, True
        elif bound is not None and bound.value > self.checked.value:
            self.checked = bound
        claims = [(self.claimed, self.claimed_by), (search.lower_bound, search.bounded_by)]
        self.claimed, self.claimed_by = self.checked.value, self.checked.bounded_by
        for claimed, by in claims:
            # In the meantime a checked schedule refuted a claim.
            if claimed is not None and by is not None and self.claimed < claimed <= self.value:
                self.claimed, self.claimed_by = claimed, by


def _prices_of_parts(proof: Proof | None) -> dict[int, PriceProof]:
    """Return the prices in a proof by parts, for each first round of a part that has some."""
    if not isinstance(proof, SplitProof):
        return {}
    begun = ((part.begin, prices_of(part.proof)) for part in proof.parts)
    return {begin: prices for begin, prices in begun if prices is not None}


def _named(names: Iterable[str]) -> str:
    """Return names in one text, each once."""
    return " and ".join(dict.fromkeys(names))
