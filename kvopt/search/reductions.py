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

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, islice

from kvopt.bounds.prices import bound_by
from kvopt.bounds.relaxations import chain
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
from kvopt.kernels.budget import Budget, wall_time
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
    if chain(problem) if only_bounds else not problem.is_starts:
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
            warm_start=True,
            relaxations=self._relaxations,
        )


class Divided:
    """A search, and one that collects the results of each part of its instance.

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
        self._search, self._parts, self._due = search, parts, 0.0
        volumes = (volume_bound(part.instance) for part in parts)
        self._volumes = [CheckedBound(value, "volume", _PLAIN) for value in volumes]
        self._working = search
        self._searches: dict[int, Search] = {}
        """Without parts of one request: the volume bound is the latency of a start on arrival."""
        prices_of = _prices_of_parts(prices)
        for place, part in enumerate(parts):
            if len(part.members) > 1:
                self._searches[place] = inner = search.inside(
                    part.instance, observer=partial(self._on_progress, place)
                )
                # A single method that was requested is not told of other bounds: then the whole
                # has none yet, else at least that by volume.
                if search.checked is not None:
                    inner.offer_bound(self._volumes[place])
                if part.begin in prices_of:
                    prices_here, threads = prices_of[part.begin], search.limits.threads
                    inner.offer_bound(bound_by(part.instance, prices_here, threads))

    def work(self, work: Work, budget: Budget | None = None) -> None:
        """Let some work be done on its open parts, one after the other.

        Small parts come first.  Parts that ran out of time are repeated while much time remains.
        """
        search, within = self._search, budget or self._search.budget
        self._follow()
        open_parts = self._open()
        try:
            while open_parts and not search.budget.over():
                limit, ran_out = within.left, set[int]()
                remaining = sum(len(self._parts[place].members) for place in open_parts)
                for place in open_parts:
                    count = len(self._parts[place].members)
                    part = within.part(count / remaining)
                    self._work_on(place, work, part)
                    if not part.left:
                        ran_out.add(place)
                    remaining -= count
                    if search.budget.over():
                        break
                open_parts = [place for place in self._open() if place in ran_out]
                if within.left < _ROUND_SHARE * limit:
                    break
        finally:
            self._report()
        if open_parts and not search.proved and budget is None:
            search.granted.expire()

    def _open(self) -> list[int]:
        """Return the parts without a proof, ordered so that later ones get the remaining time."""
        places = (
            place
            for place, inner in self._searches.items()
            if inner.objective is None or inner.objective > self._claimed(place)[0]
        )
        return sorted(places, key=lambda place: len(self._parts[place].members))

    def _follow(self) -> None:
        """Offer the starts of the whole to each part.

        They may reach into later parts, which may not fit other starts of those.
        """
        if (schedule := self._search.schedule) is not None:
            for place, inner in self._searches.items():
                part = self._parts[place]
                starts = part.without_late_idling(part.starts_of(schedule.starts))
                workers = tuple(schedule.workers[i] for i in part.members)
                inner.offer_starts(starts, self._search.found_by or "", workers)

    def _work_on(self, place: int, work: Work, budget: Budget) -> None:
        """Let some work be done on a part; it counts as the part that progress comes from."""
        inner = self._searches[place]
        inner.engine = self._search.engine

        def work_now(part: Search) -> None:
            self._working = part
            if not part.budget.over():
                work(part, part.budget)

        try:
            inner.work_inside(
                inner.instance,
                work_now,
                budget,
                takes=("schedules", "bounds", "claims"),
                warm_start=True,
            )
        finally:
            self._search.take_notes(inner)

    def _on_progress(self, place: int, _: Progress) -> None:
        """Drop late idling of a new schedule; report to the whole at intervals."""
        inner, self._search.engine = self._searches[place], self._working.engine
        if (schedule := inner.schedule) is not None:
            starts = self._parts[place].without_late_idling(schedule.starts)
            if starts != tuple(schedule.starts):
                inner.offer_starts(starts, inner.found_by or "", schedule.workers)
        if wall_time() >= self._due:
            began = wall_time()
            self._report()
            self._due = wall_time() + _PAUSE * (wall_time() - began)

    def _checked(self, place: int) -> CheckedBound:
        inner = self._searches.get(place)
        return (inner and inner.checked) or self._volumes[place]

    def _claimed(self, place: int) -> tuple[int, str]:
        """Return the best bound of a part, perhaps a claim, and what it is by."""
        inner, volume = self._searches.get(place), self._volumes[place]
        if inner is None or inner.lower_bound is None:
            return volume.value, volume.bounded_by
        return inner.lower_bound, inner.bounded_by or inner.engine

    def _report(self) -> None:
        """Offer the sums of both sides to the whole."""
        search, places = self._search, range(len(self._parts))
        checked, claimed = [*map(self._checked, places)], [*map(self._claimed, places)]
        proofs = tuple(self._proofs(checked))
        search.offer_checked(
            sum(bound.value for bound in checked),
            _named(bound.bounded_by for bound in checked),
            _PLAIN if [part.proof for part in proofs] == [_PLAIN] else SplitProof(proofs),
        )
        search.offer_claimed(sum(value for value, _ in claimed), _named(by for _, by in claimed))
        starts, workers = [0] * len(search.instance), [0] * len(search.instance)
        names = list[str]()
        for place, part in enumerate(self._parts):
            inner = self._searches.get(place)
            if inner is not None and inner.schedule is None:
                return
            schedule = inner and inner.schedule
            names.append((inner and inner.found_by) or "start on arrival")
            for k, i in enumerate(part.members):
                starts[i] = part.begin + (schedule.starts[k] if schedule else 0)
                workers[i] = schedule.workers[k] if schedule else 0
        search.offer_starts(starts, _named(names), workers)

    def _proofs(self, checked: Iterable[CheckedBound]) -> Iterator[PartProof]:
        """Yield the proofs of all parts; neighbours by plain volumes are joined."""
        begins = (part.begin for part in self._parts)
        rows = zip(begins, (bound.proof for bound in checked), strict=True)
        for plain, group in groupby(rows, lambda row: row[1] == _PLAIN):
            for begin, proof in islice(group, 1) if plain else group:
                whole = SplitProof | SharesProof | SharedRoundsProof
                assert not isinstance(proof, whole), "a part has rounds"
                yield PartProof(begin, proof)


def _prices_of_parts(proof: Proof | None) -> dict[int, PriceProof]:
    """Return the prices in a proof by parts, for each first round of a part that has some."""
    if not isinstance(proof, SplitProof):
        return {}
    begun = ((part.begin, prices_of(part.proof)) for part in proof.parts)
    return {begin: prices for begin, prices in begun if prices is not None}


def _named(names: Iterable[str]) -> str:
    """Return names in one text, each once."""
    return " and ".join(dict.fromkeys(names))
