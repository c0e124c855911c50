"""Schedules guided by prices of states: beams from round 0, and from a round of the best schedule.

The result of a beam depends on its parameters by chance, since labels of a beam soon differ little.
So beams with other parameters follow, most of them from a round of the best schedule on, whose
earlier starts remain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat

import numpy as np

from kvopt.heuristics.resumable import Passes, Turn
from kvopt.heuristics.state_beams.guides import Guide, guide_by
from kvopt.heuristics.state_beams.rooms import Plan, beam_from, starts_of, with_room
from kvopt.heuristics.state_beams.rounds import CROWDED, ENDED, go_on
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.proofs import ConfigurationProof
from kvopt.kernels.clock import wall_time
from kvopt.problem.arrays import Integers

_FIRST = Plan(
    width=4, children=6, horizon=4, listed=100, dearest=0.1, urgency=1.2, noise=0.0, depth=1
)
"""A fast first beam."""
_WIDTHS = {2: 60, 4: 30, 30: 10}
"""Horizons to draw, in rounds, and for each a width of about equal effort."""
_ANEW = 0.15
"""Share of the beams that begin without starts."""
_IDLE, _BROADEST = 12, 32
"""Beams without improvement after which the width doubles, and its largest factor."""
_BROADEST_AT_LEISURE = 1
"""The same without a time limit, where a search has to end by itself."""
_FIRST_ROUNDS, _SLICE = 8, 0.05
"""First rounds between two checks of the stop flag, and seconds up to which they double."""


def are_states_priced(search: Search) -> bool:
    """Tell whether prices of states prove the bound, as in a small cache."""
    return search.checked is not None and isinstance(search.checked.proof, ConfigurationProof)


def beams_of_states(turn: Turn, seed: int) -> Passes:
    """Offer schedules, in each pass one of each thread; beams get wider without improvement.

    The prices are those that prove the current bound.  Fleets get no offers.
    """
    search, instance = turn.search, turn.search.instance
    if len(instance) < 2 or instance.workers > 1:
        return
    broadest = _BROADEST if search.remaining < math.inf else _BROADEST_AT_LEISURE
    rng, idle, breadth, known, guide = np.random.default_rng(seed), 0, 1, None, None
    with ThreadPoolExecutor(search.threads) as pool:
        while breadth <= broadest:
            proof = search.proof
            going: list[Going] = []
            if isinstance(proof, ConfigurationProof) and proof is not known:
                known, guide = proof, guide_by(instance, proof.stages[-1])
                nothing = np.full(len(instance), -1, dtype=np.int64)
                going = [Going(guide, _FIRST, nothing, 0, seed)]
            elif guide is None or search.schedule is None:
                return
            else:
                starts = np.array(search.schedule.starts, dtype=np.int64)
                going = [_drawn(guide, rng, breadth, starts) for _ in range(search.threads)]
            improved = False
            while going:  # with the next turn, if one ends
                for found in pool.map(Going.finish, going, repeat(turn.is_late)):
                    improved |= found is not None and _offer(search, found)
                going = [one for one in going if not one.is_over]
                if going:
                    yield
            idle = 0 if improved else idle + search.threads
            if idle >= _IDLE:
                idle, breadth = 0, 2 * breadth
            yield


def _offer(search: Search, starts: Integers) -> bool:
    return search.offer_starts(starts.tolist(), "state beams")


def _cut(starts: Integers, rng: np.random.Generator) -> int:
    """Return a round from which to continue: the first one, or the start of a random request."""
    return 0 if rng.random() < _ANEW else int(rng.choice(starts))


def _drawn(guide: Guide, rng: np.random.Generator, breadth: int, starts: Integers) -> Going:
    """Return a beam with parameters near successful ones, from a round of a schedule on."""
    horizon, now = int(rng.choice((2, 4, 4, 30))), _cut(starts, rng)
    plan = Plan(
        width=breadth * _WIDTHS[horizon],
        children=6,
        horizon=horizon,
        listed=int(rng.integers(80, 150)),
        dearest=0.05 * 4 ** float(rng.random()),
        urgency=1.1 + 0.4 * float(rng.random()),
        noise=0.002,
        depth=int(rng.choice((1, 3))),
    )
    kept = np.where(starts < now, starts, -1)
    return Going(guide, plan, kept, now, int(rng.integers(2**31)))


class Going:
    """A beam that can be suspended and resumed; it keeps the starts before a round.

    Parameters
    ----------
    guide, plan
        Search data, and parameters.
    starts
        Start of each request, -1 if it is not given.
    now
        The round from which to continue.
    seed
        Seed of its noise.
    """

    def __init__(self, guide: Guide, plan: Plan, starts: Integers, now: int, seed: int) -> None:
        self._guide, self._plan, self._starts = guide, plan, starts
        self._beam, self._rounds = beam_from(guide, plan, starts, now, seed), _FIRST_ROUNDS
        self.is_over = False

    def finish(self, is_late: Callable[[], bool]) -> Integers | None:
        """Return all starts, None if time runs out before."""
        while not is_late():
            began = wall_time()
            outcome = go_on(self._guide, self._plan, self._beam, self._rounds)
            if outcome == ENDED:
                self.is_over = True
                return starts_of(self._beam, self._starts)
            if outcome == CROWDED:
                self._beam = with_room(self._beam)
            elif wall_time() - began < _SLICE:
                self._rounds *= 2
        return None
