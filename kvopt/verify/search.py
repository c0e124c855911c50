"""Repeat an exhaustive search under prices."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate, chain, repeat
from operator import add, le, sub
from typing import Any

from kvopt.verify.pairs import paired
from kvopt.verify.stages import Stage, TokenStage
from kvopt.verify.work import BYTES, UNLISTED, Invalid, Unreadable, Work, budget_option

_Partial = tuple[tuple[int, ...], tuple[tuple[int, int], ...], int, int, tuple[int, ...]]


class Search:
    """Looks for a schedule below the target, round by round, and misses none.

    A partial schedule has decided all starts before round k.  It is a tuple of

    - how many have started of each shape (prompt, output).  If two of one shape have arrived by
      the earlier of their starts, they may swap starts: latencies sum to the same, memory stays.
      So in some schedule below the target, if there is one, those of a shape start in the order
      of arrival, and we look for that one;
    - (completion, peak) of each that is active;
    - a bound, reduced costs + (R_t - F_t) so far and the least reduced cost that each waiting
      request has ahead.  It only grows; above the budget no schedule below the target goes on
      from here;
    - the latency of all that have started;
    - the tokens held at the times k + 1, k + 2, ....

    Of two that have started the same requests one is left out if the other has no more latency
    and never holds more.  Whatever schedule goes on from the one, the same later starts go on
    from the other, in the same order and to a total that is no larger.  If that is below the
    target, no bound stops it and no start of it was ruled out, for these hold for all schedules.
    """

    def __init__(
        self,
        stage: Stage | TokenStage,
        reduced_costs: list[dict[int, int]],
        target: int,
        budget: int,
        work: Work,
    ) -> None:
        self.stage, self.target, self.budget, self.work = stage, target, budget, work
        self.requests = stage.requests
        latest = max((request.arrival for request in self.requests), default=0)
        rounds = max(stage.last, latest) + budget // stage.scale
        longest = max((request.output for request in self.requests), default=0)
        cells = (rounds + longest) * len(reduced_costs)
        work.spend(150 * cells)
        shapes = defaultdict(list)
        for i in sorted(range(len(reduced_costs)), key=lambda i: self.requests[i].arrival):
            shapes[self.requests[i][1:]].append(i)
        self.shapes = list(shapes.values())
        # Bytes of a partial schedule, about and at most.
        least = min((request.prompt + 1 for request in self.requests), default=1)
        together = min(len(reduced_costs), stage.memory // least)
        width = 400 + 8 * len(shapes) + 72 * together + 40 * longest
        self.most, self.steps = work.times * BYTES // width, 20 + longest // 4 + together
        self.ramps = [tuple(range(s + 1, s + o + 1)) for s, o in shapes]
        self.reduced_costs, self.least = reduced_costs, []
        for request, own in paired(self.requests, reduced_costs):
            if (late := max(own)) >= stage.last:  # stands for all that are later, too
                delays = range(1, (budget - own[late]) // stage.scale + 1)
                own.update({late + d: own[late] + d * stage.scale for d in delays})
            backwards = (own.get(k, budget + 1) for k in range(max(own), request.arrival - 1, -1))
            self.least.append([*accumulate(backwards, min, initial=budget + 1)][::-1])

    def run(self, kept: Sequence[int]) -> int:
        """Return how many partial schedules there were, none of them below the target.

        Where the file says how many it ``kept`` of each round, there must not be many more.
        """
        known = 0
        said: Iterable[float] = repeat(math.inf)
        if kept and not self.work.is_told:
            said = chain([1], (2 * size + 100 for size in kept), repeat(100))
        elif not self.work.is_told:
            self.work.times = min(self.work.times, UNLISTED)
        # Before the first arrival nothing can be active, so all of those R are lost.
        lost = self.stage.before + self.stage.most[0]
        nothing: _Partial = ((0,) * len(self.shapes), (), lost, 0, ())
        layer = [nothing] if lost <= self.budget else []
        for k, most in enumerate(said, 1):
            if len(layer) > most:
                raise Unreadable(
                    f"lower: the search has {len(layer):,} partial schedules at round {k - 1:,}, "
                    "the file says fewer: verify --budget K allows it K times half a minute"
                )
            if not layer:
                break
            known += len(layer)
            plans = [self._plan(members, k - 1) for members in self.shapes]
            found: dict[Any, _Partial] = {}
            prices: dict[tuple[int, int], int] = {}
            for begin in range(0, len(layer), 100):
                part = layer[begin : begin + 100]
                for shape, plan in enumerate(plans):
                    if any(plan):
                        part = self._begun(part, shape, k - 1, len(layer) + len(found), *plan)
                self._pass(part, k, prices, found)
            layer = self._undominated(found.values())
        return known

    def _ahead(self, i: int, k: int) -> int:
        """Return the least reduced cost of a request over its starts from k on."""
        least = self.least[i]
        return least[min(max(0, k - self.requests[i].arrival), len(least) - 1)]

    def _plan(self, members: list[int], k: int) -> tuple[list[int], dict[int, int]]:
        """Return what the bound gains if all members from the j-th on wait; if the j-th starts."""
        now, then = ([self._ahead(i, time) for i in members] for time in (k, k + 1))
        waits = [*accumulate(map(sub, reversed(then), reversed(now)), initial=0)][::-1]
        own = ((j, self.reduced_costs[i].get(k)) for j, i in enumerate(members))
        gains = {j: cost - now[j] for j, cost in own if cost is not None}
        return waits if any(waits) or gains else [], gains

    def _begun(
        self,
        layer: list[_Partial],
        shape: int,
        k: int,
        others: int,
        waits: list[int],
        gains: dict[int, int],
    ) -> list[_Partial]:
        """Start none, one, two, ... of a shape at round k, each if it is allowed and fits.

        There are so many ``others`` that take room meanwhile.
        """
        ramp, size, most = self.ramps[shape], len(self.ramps[shape]), self.stage.memory
        grown: list[_Partial] = []
        for partial in layer:
            started, active, bound, latency, held = partial
            if waits[started[shape]] == 0 and started[shape] not in gains:
                grown.append(partial)
                continue
            if others + len(layer) + len(grown) > self.most:
                raise Unreadable(
                    "lower: the search has too many partial schedules: more memory is needed, "
                    f"{budget_option(2 * math.ceil(self.work.times))}"
                )
            for j in range(started[shape], len(waits)):
                if bound + waits[j] <= self.budget:
                    now = (*started[:shape], j, *started[shape + 1 :])
                    grown.append((now, active, bound + waits[j], latency, held))
                if j not in gains or (bound := bound + gains[j]) > self.budget:
                    break
                self.work.spend(self.steps + size)
                if size <= len(held) and held[size - 1] + ramp[-1] > most:
                    break
                padded = held + (0,) * (size - len(held))
                held = (*map(add, padded, ramp), *held[size:])
                if max(held) > most:
                    break
                active = (*active, (k + size, ramp[-1]))
                latency += k + size - self.requests[self.shapes[shape][j]].arrival
        return grown

    def _pass(
        self,
        layer: list[_Partial],
        time: int,
        prices: dict[tuple[int, int], int],
        found: dict[Any, _Partial],
    ) -> None:
        """Let a time pass, with its R - F; of equal partial schedules the best one stays."""
        full = tuple(map(len, self.shapes))
        self.work.spend((5 * len(full) + 2 * self.steps) * len(layer))
        for started, active, bound, latency, held in layer:
            if started == full:
                if latency < self.target:
                    raise Invalid(f"lower: a schedule has a total latency of {latency:,}")
                continue
            if time <= self.stage.last:
                for end, peak in active:
                    if (end, peak) not in prices:
                        prices[end, peak] = self.stage.price(time, peak, end - time)
                bound += self.stage.most[time] - sum(map(prices.__getitem__, active))
            if bound <= self.budget:
                active = tuple(sorted(pair for pair in active if pair[0] > time))
                known = found.get((started, active))
                if known is None or bound < known[2]:
                    found[started, active] = (started, active, bound, latency, held[1:])

    def _undominated(self, layer: Collection[_Partial]) -> list[_Partial]:
        """Leave out what another is at least as good as, see above; of equals the first stays."""
        kept: dict[tuple[int, ...], list[_Partial]] = defaultdict(list)
        compared = len(layer).bit_length()  # times, about, that sorting looks at each of them
        for partial in sorted(layer, key=lambda partial: partial[3:]):
            held, rivals = partial[4], kept[partial[0]]
            steps = 20 + compared * (1 + len(held) // 5) + (4 + len(held) // 2) * len(rivals)
            self.work.spend(steps)
            if not any(len(r[4]) <= len(held) and all(map(le, r[4], held)) for r in rivals):
                rivals.append(partial)
        return [partial for rivals in kept.values() for partial in rivals]
