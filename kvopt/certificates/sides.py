"""Both sides of the optimum on each clock, as `certify` asks for them.

`kvopt.verify` checks what comes out and shares no code with what is here.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from signal import SIGINT

from kvopt.bounds.registry import BOUNDS, PAUSED_BOUNDS
from kvopt.bounds.staircases import FEW_REQUESTS, offer_staircase_bound
from kvopt.errors import TooLarge
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.params import share_of
from kvopt.incumbent.proofs import CheckedBound
from kvopt.kernels.compile_clock import Abandoned, left_when
from kvopt.problem.clocks import Clock
from kvopt.problem.instance import Instance
from kvopt.search import fleets, pausing
from kvopt.search.blocks import both_sides_in_blocks, schedules_in_blocks
from kvopt.search.exact import fleets as fleet_search
from kvopt.search.parts import Divided
from kvopt.search.portfolio import both_sides, bound_by_prices, offer_volume
from kvopt.search.portfolio import run as portfolio
from kvopt.search.registry import engines_for
from kvopt.search.seconds import begin
from kvopt.search.seconds import improve as improve_in_seconds
from kvopt.simulate.policies.base import Need, Policy
from kvopt.simulate.routers.base import Router
from kvopt.simulate.running import run
from kvopt.simulate.simulator import Stopped
from kvopt.timetable.runs import PolicyRun
from kvopt.timetable.schedule import Schedule

Known = tuple[Schedule | None, CheckedBound | None, str | None]
"""The best schedule or run, the best bound with a proof, and what found the first."""


class SidesInRounds:
    """A schedule and a bound in rounds: those of the incumbent.

    Attributes
    ----------
    served
        What `svf` does, where that is known from the beginning.
    """

    def __init__(self, search: Search) -> None:
        self._search = search
        self._stages: Divided | None = None
        self.served: Schedule | None = None

    def known(self) -> Known:
        """Return the best schedule, the best bound with a proof, and what found the schedule."""
        return self._search.best, self._search.checked, self._search.found_by

    def first(self) -> None:
        """Look for both sides, before policies run."""
        search = self._search
        with _left_at_a_signal(search):
            self.served = both_sides(search)
            self._stages = Divided(search)
            share = share_of(search.remaining, search.params.portfolio.bound_share)
            if not search.should_stop() and share >= search.seconds:  # prices take as long at least
                search.engine = "bound"
                self._stages.work(bound_by_prices, share)

    def offer(self, made: PolicyRun) -> None:
        """Take what a policy did for an upper side, but for what evictions threw away."""
        if made.schedule is not None:
            found = replace(made.schedule, instance=self._search.instance)
            self._search.offer(found, f"policy {made.policy}")

    def rest(self) -> None:
        """Bring the sides together in the time that policies left."""
        search = self._search
        with _left_at_a_signal(search):
            if self._stages is not None and not search.should_stop():
                search.engine = "solve"
                self._stages.work(lambda part, _: portfolio(part))


class SidesOfFleet(SidesInRounds):
    """The same of several workers, in rounds: of a bound that may have to cover pauses."""

    def __init__(self, search: Search) -> None:
        super().__init__(search)
        self._pauses = search.problem.has_pauses

    def first(self) -> None:
        """Look for both sides, before policies run; with pauses for all of the bound."""
        search = self._search
        with _left_at_a_signal(search):
            offer_list_schedules(search)
            offer_volume(search)
            if len(search.instance) <= FEW_REQUESTS and not self._pauses:
                offer_staircase_bound(search)
            self._stages = Divided(search)
            if not search.should_stop():
                search.engine = "bound"
                share = share_of(search.remaining, search.params.portfolio.bound_share)
                self._stages.work(_paused_bounds if self._pauses else bound_by_prices, share)

    def rest(self) -> None:
        """Look for better schedules, and a better bound, in the time that policies left."""
        search = self._search
        with _left_at_a_signal(search):
            if self._stages is not None and not search.should_stop():
                self._stages.work(lambda part, _: self._closed(part))

    def _closed(self, part: Search) -> None:
        part.engine = "solve"
        seconds = share_of(part.remaining, part.params.portfolio.improved_share)
        if len(part.instance) <= fleet_search.MOST_REQUESTS:
            fleet_search.run(part, seconds)
        else:
            fleets.improve(part, seconds)
        if not self._pauses and not part.should_stop():
            BOUNDS.find("auto")(part)


def _paused_bounds(part: Search, _: float) -> None:
    PAUSED_BOUNDS.find("auto")(part)


class SidesWithPauses(SidesInRounds):
    """A schedule in which requests may pause, and a bound in rounds that covers it."""

    def first(self) -> None:
        """Look for a schedule without pauses, and for a bound, before policies run."""
        search = self._search
        with _left_at_a_signal(search):
            offer_volume(search)
            offer_list_schedules(search)
            search.engine = "bound"
            share = share_of(search.remaining, search.params.portfolio.bound_share)
            pausing.bound_with_pauses(search, share)

    def rest(self) -> None:
        """Bring the sides together in the time that policies left."""
        search = self._search
        search.engine = "solve"
        with _left_at_a_signal(search):
            if not search.should_stop():
                pausing.run(search)


class SidesInBlocks(SidesInRounds):
    """A schedule and a bound in rounds where memory is given out in whole blocks."""

    def first(self) -> None:
        """Look for a schedule and a bound, before policies run."""
        search = self._search
        search.engine = "bound"
        with _left_at_a_signal(search):
            both_sides_in_blocks(search, search.problem.scope)

    def rest(self) -> None:
        """Look for better schedules in the time that policies left."""
        search = self._search
        search.engine = "solve"
        with _left_at_a_signal(search):
            if not search.should_stop():
                schedules_in_blocks(search, engines_for(search.problem.scope).find("auto"))
            if search.problem.has_pauses:
                pausing.search_few(search)


class SidesInSeconds:
    """A run and a bound on the clock of a batch-time model: those of the incumbent."""

    served = None

    def __init__(self, search: Search) -> None:
        self._search, self._offered = search, set[str]()

    def known(self) -> Known:
        """Return the best run, the bound, and what found the run."""
        return self._search.best, self._search.checked, self._search.found_by

    def first(self) -> None:
        """Look for a run and a bound, before policies run."""
        begin(self._search)

    def offer(self, made: PolicyRun) -> None:
        """Take what a policy did for an upper side, unless it did more than the scope covers."""
        self._offered.add(made.policy)
        self._search.offer(made, made.policy)

    def rest(self) -> None:
        """Look for better runs in the time that policies left."""
        with _left_at_a_signal(self._search):
            improve_in_seconds(self._search, self._offered)


Sides = SidesInRounds | SidesInSeconds


def sides_of(search: Search) -> Sides:
    """Return what looks for both sides of the problem of a search."""
    problem = search.problem
    if problem.in_seconds:
        return SidesInSeconds(search)
    if problem.is_fleet:
        return SidesOfFleet(search)
    if problem.in_blocks:
        return SidesInBlocks(search)
    return SidesWithPauses(search) if problem.has_pauses else SidesInRounds(search)


def refuse_misfit(
    instance: Instance, policy: Policy, label: str, clock: Clock, router: str | Router
) -> None:
    """Refuse, before there is work that it would cost, a policy that does not go with the rest.

    Its run is stopped in the first round.  A plan made before that takes long, and is of one
    worker in rounds: nothing there refuses it.
    """
    if Need.ARRIVALS in policy.needs and clock.is_even and instance.workers == 1:
        return
    with suppress(Stopped):
        run(instance, policy, router=router, clock=clock, label=label, should_stop=lambda: True)


def attempt(
    search: Search, policy: Policy, label: str, clock: Clock, router: str | Router
) -> PolicyRun | str:
    """Run a policy within the limit of a search; return what it did, or why it did not end."""

    def is_over() -> bool:
        return search.remaining <= 0 or search.signal_number is not None

    try:
        if is_over():
            raise Stopped
        with _left_at_a_signal(search):
            return run(
                search.instance, policy, router=router, clock=clock, label=label,
                should_stop=is_over,
            )  # fmt: skip
    except KeyboardInterrupt as interrupt:
        if search.signal_number is not None and not isinstance(interrupt, Abandoned):
            raise  # the second one ends the work at once
        search.interrupt(SIGINT)
    except Stopped:
        pass
    except MemoryError:
        return "ended, as the machine ran out of memory"
    except TooLarge as error:
        return str(error)
    return "did not finish within the limit"


def _left_at_a_signal(search: Search) -> AbstractContextManager[None]:
    """Leave a block that waits for machine code when a signal has come."""
    return left_when(lambda: search.signal_number is not None)
