"""What the exact engine does with prices: searches forward in time, narrow and exhaustive."""

from __future__ import annotations

import math
from typing import NamedTuple

from kvopt.configurations.evaluation import Evaluation
from kvopt.configurations.expand import Stopped, TooWide
from kvopt.configurations.forward_search import Sweep, twins_of
from kvopt.configurations.lookahead import Ahead
from kvopt.configurations.stages import Rising
from kvopt.kernels.compiling import working_time
from kvopt.search.incumbent import Search

NAME = "exact"
"""Of the engine, for what it offers."""

CHECKABLE = 20_000_000
"""Partial schedules times requests of a search that `kvopt verify` can repeat, in some minutes.

That is up to twenty times its default budget; a certificate that needs more than one says so."""
_FAR = 20
"""Rounds that searches look ahead which need not be repeated: two to seven times fewer are kept."""

_FIRST_RISE = 1 / 64
"""Share of what is open that the first search for a better bound tries to exclude."""
_MORE_WORK = 4.0
"""Factor of the partial schedules from one such search to the next, about."""

_CAUTION = 3.0
"""How much longer than expected a search for all better schedules may well take."""
_ENDLESS = 100.0
"""Logarithm of more of that than anyone waits for."""

_WIDER = 3
"""Factor of the width from one search for good schedules to the next."""
_SIGHTS = (5, 3, 8)
"""Rounds that wider searches look ahead, in turn: each of them finds the best now and then."""


class _Effort(NamedTuple):
    """What it took to raise the bound by so much: the logarithm of what was kept, and seconds."""

    rise: float
    kept: float
    far: bool
    seconds: float


_NOTHING = _Effort(0.0, 0.0, far=False, seconds=0.0)


class Forward:
    """Searches forward in time with the prices of one evaluation.

    Parameters
    ----------
    search
        Has a schedule, and takes what is found.
    rising, evaluation
        Prices, and what they prove.
    """

    def __init__(self, search: Search, rising: Rising, evaluation: Evaluation) -> None:
        assert search.schedule is not None
        self._search, self._rising, self._evaluation = search, rising, evaluation
        self._twins = twins_of(search.instance)
        self._budget = (search.schedule.objective - 1) * evaluation.denominator - evaluation.total
        self._sights: dict[int, Ahead | None] = {}
        self._last = self._before = _NOTHING

    # ---- exhaustive -------------------------------------------------------------------

    def excludes_all(self, room: int, seconds: float) -> bool:
        """Search for all better schedules if that looks worth while; return whether it ended."""
        if self._foreseen() > seconds:
            return False
        deadline = working_time() + seconds
        try:
            self.exclude(self._objective(), room, far=not self._search.checkable, deadline=deadline)
        except (TooWide, Stopped):
            return False
        return True

    def _foreseen(self) -> float:
        """Return what `raises` leads to expect: the seconds of a search for all better schedules.

        Near the bound, what is kept grows with a power of the rise, farther away faster than that.
        To keep fewer of them by a look ahead takes about as long as to keep them.
        """
        last, before = self._last, self._before
        if before.rise <= 0.0:
            return math.inf
        power = (last.kept - before.kept) / math.log(last.rise / before.rise)
        farther = max(1.0, (self._objective() - self._evaluation.bound) / last.rise)
        more = math.exp(min(power * math.log(farther), _ENDLESS))
        return _CAUTION * last.seconds * more

    def raises(self, room: int, *, finely: bool = False) -> bool:
        """Exclude more and more of what is between bound and schedule; return whether that was all.

        Partial schedules grow by about the same factor with every round of latency more, so two
        searches tell how far the next one may go.  After one that was too wide it ends, or looks
        ahead and then tries smaller steps.
        """
        least = self._evaluation.bound
        known = (self._search.lower_bound or least) - least
        rise = max(1.0, _FIRST_RISE * (self._objective() - least), known / 2)
        growth, failed, far = 1.0, math.inf, False
        self._last = self._before = last = _NOTHING
        while not self._search.should_stop():
            target = min(least + int(rise), self._objective())
            if far and self._search.checkable:
                target = self._objective()
            began = working_time()
            try:
                kept = math.log(self.exclude(target, room, far=far) + 1)
            except TooWide:
                if not finely or (far and (rise - last.rise <= 1.0 or self._search.checkable)):
                    return False
                if not far:
                    far = True
                else:
                    failed, rise = rise, (last.rise + rise) / 2
                continue
            if target >= self._objective():
                return True
            if far == last.far:
                growth = max(kept - last.kept, 0.1) / (rise - last.rise)
            self._before, self._last = last, _Effort(rise, kept, far, working_time() - began)
            last = self._last
            rise += max(1.0, min(rise, math.log(_MORE_WORK) / growth, (failed - rise) / 2))
        return False

    def exclude(self, target: int, room: int, *, far: bool, deadline: float = math.inf) -> int:
        """Exclude schedules below a target, or find the best; return how many were kept on the way.

        A search that looks far ahead cannot be checked; where only what can be checked counts its
        bound is not claimed, as that might end everything.

        Raises
        ------
        TooWide
            If that needs more room.
        Stopped
            If it was asked to stop, or the deadline has come.
        """
        search = self._search

        def should_stop() -> bool:
            return search.should_stop() or working_time() >= deadline

        sweep = self._sweep(target, _FAR if far else 0)
        if far:
            found = sweep.all_of_them(room, should_stop)
        else:
            in_all = CHECKABLE // len(search.instance)
            found = sweep.all_of_them(room, should_stop, in_all=in_all)
        if found is not None:
            search.offer_starts(found, "forward search")
            target = self._objective()
        if not far:
            proof = self._rising.proof(target, searched=True, kept=sweep.kept)
            search.offer_checked(target, NAME, proof)
        elif not search.checkable:
            search.offer_claimed(target, NAME)
        return sweep.kept

    # ---- narrow -----------------------------------------------------------------------

    def look(self, width: int, rounds: int) -> None:
        """Look for better schedules among the most promising partial ones, until there is none."""
        while True:
            sweep = self._sweep(self._objective(), rounds)
            try:
                found = sweep.some_of_them(width, self._search.should_stop)
            except TooWide:  # more equally promising ones than there is room for
                return
            if found is None or not self._search.offer_starts(found, "forward search"):
                return

    def look_wider(self, width: int, widest: int) -> None:
        """Keep more and more partial schedules in the search for good ones."""
        while width < widest and not self._search.should_stop():
            width = min(_WIDER * width, widest)
            for rounds in _SIGHTS:
                self.look(width, rounds)

    # ---- both -------------------------------------------------------------------------

    def _objective(self) -> int:
        assert self._search.schedule is not None
        return self._search.schedule.objective

    def _sweep(self, target: int, rounds: int) -> Sweep:
        states = self._rising.states
        ahead, threads = self._ahead(rounds), self._search.threads
        return Sweep(states, self._twins, self._evaluation, target, ahead, threads)

    def _ahead(self, rounds: int) -> Ahead | None:
        if rounds not in self._sights:
            states, evaluation = self._rising.states, self._evaluation
            fits = rounds > 0 and Ahead.fits(states, evaluation, rounds)
            ahead = Ahead(states, evaluation, self._budget, rounds) if fits else None
            self._sights[rounds] = ahead
        return self._sights[rounds]
