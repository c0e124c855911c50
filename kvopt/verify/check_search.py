"""Repeat an exhaustive search under prices, with bounds on the cost of the rest."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate, chain, repeat
from typing import TYPE_CHECKING, NamedTuple

from kvopt.verify.carried_costs import CarriedCosts, Members, Profiles
from kvopt.verify.step_budget import UNLISTED, Invalid, Unreadable, Work, paired

if TYPE_CHECKING:
    from kvopt.verify.check_configurations import Stage

_COMPARED = 20
"""Limit of the partial schedules of one set of started requests with which another is compared."""

_EACH = 6
"""Least factor on the steps of a partial schedule, with its extensions."""

_Partial = tuple[int, int, int, Members]
_Layer = dict[int, list[_Partial]]


class _Start(NamedTuple):
    """A possible start: its request, and its cost above the bound."""

    bit: int  # of the request
    before: int  # bit of the request that has to start first, 0 if none has
    ramp: int  # its profile
    member: int
    gain: int  # at most 0 if the start is cheap
    later: int  # expected cost of a later start
    rest: int  # the most that later starts in the list gain together


class _Prices(dict[int, int]):
    """Prices of members at a time; ``ending`` are those that have no price later."""

    def __init__(self, stage: Stage, time: int, last: dict[int, int]) -> None:
        self.stage, self.time, self.last = stage, time, last
        self.ending: set[int] = set()

    def __missing__(self, member: int) -> int:
        (end, peak), time = divmod(member, self.stage.memory + 1), self.time
        if time >= self.stage.last or self.last.get(member, end) <= time:
            self.ending.add(member)
        price = self.stage.price(time, peak, end - time) if time <= self.stage.last else 0
        self[member] = price
        return price


class RepeatedSearch:
    """Exhaustive search for a schedule below the target, round by round.

    A partial schedule has decided all starts before a round.  It is stored with all others that
    have started the same requests, a set of bits, and is a tuple of

    - the sum of its starts;
    - the profile of its tokens from then on;
    - its spent cost: the reduced costs of its starts and R - F of all times so far.  With the least
      later reduced cost of each waiting request, and with the cost-to-go bound of its members, this
      is a bound; above the budget no schedule below the target extends it;
    - its members, see `CarriedCosts`.

    Exchanging two requests of one shape changes no total.  So they start in the order of arrival.

    Of two that have started the same requests one is dropped if the other has no larger sum of
    starts and never holds more (Claim 3.11 of docs/theory).  So is one if the other has
    started one more request, which could not add less to that sum from now on (Claim 3.12).  For
    any schedule that extends the one, the same later starts extend the other, to a total that is no
    larger.  If that is below the target, no bound drops it and none of its starts was removed,
    since these rules hold for all schedules.
    """

    def __init__(
        self,
        stage: Stage,
        reduced_costs: list[dict[int, int]],
        target: int,
        budget: int,
        work: Work,
        cuts: Sequence[int] = (),
    ) -> None:
        self.stage, self.target, self.budget, self.work = stage, target, budget, work
        order = sorted(range(len(reduced_costs)), key=lambda i: stage.requests[i].arrival)
        self.requests = [stage.requests[i] for i in order]
        self.reduced_costs = [reduced_costs[i] for i in order]
        latest = max((request.arrival for request in self.requests), default=0)
        # From the last price and arrival on each round of waiting costs D of the budget.
        rounds = max(stage.last, latest) + budget // stage.scale
        longest = max((request.output for request in self.requests), default=1)
        work.spend(150 * (rounds + longest) * len(reduced_costs))
        self.completions = CarriedCosts(stage, reduced_costs, cuts, budget, work) if cuts else None
        self.last = self.completions.last if self.completions else {}
        self.profiles = Profiles(stage.memory, longest)
        self.ramps = [self.profiles.of(range(s + o, s, -1)) for _, s, o in self.requests]
        # About the most bytes of a partial schedule, and its steps.
        smallest = min((request.prompt + 1 for request in self.requests), default=1)
        together = min(len(self.requests), stage.memory // smallest)
        self.width = 450 + 8 * together + self.profiles.bits * longest // 7
        self.steps = 40 + self.profiles.bits * longest // 300
        # Of requests that are alike but for arrivals an earlier one starts no later: its bit.
        self.before, alike = [], dict[tuple[int, int], int]()
        for i, (_, prompt, output) in enumerate(self.requests):
            self.before.append(alike.get((prompt, output), 0))
            alike[prompt, output] = 1 << i
        # Total latency is the sum of starts and this.
        self.all = (1 << len(self.requests)) - 1
        self.more = sum(output - arrival for arrival, _, output in self.requests)
        self.later_costs: list[list[int]] = []
        for request, costs in paired(self.requests, self.reduced_costs):
            if (late := max(costs)) >= stage.last:  # represents all later ones, too
                delays = range(1, (budget - costs[late]) // stage.scale + 1)
                costs.update({late + d: costs[late] + d * stage.scale for d in delays})
            # By rounds since the arrival, the least cost of a start then or later.
            backwards = (
                costs.get(k, budget + 1) for k in range(max(costs), request.arrival - 1, -1)
            )
            self.later_costs.append([*accumulate(backwards, min, initial=budget + 1)][::-1])

    def run(self, kept: Sequence[int]) -> int:
        """Return the number of partial schedules; none is below the target.

        If the file states how many it ``kept`` in each round, there must not be many more.  With
        cost-to-go bounds there may be: then it tells whether the budget can suffice.
        """
        count, stated = 0, sum(kept)
        limits: Iterable[float] = repeat(math.inf)
        if self.completions:
            self.work.expect(_EACH * self.steps * stated)
        elif kept and not self.work.is_fixed:
            limits = chain([1], (2 * size + 100 for size in kept), repeat(100))
        elif not self.work.is_fixed:
            self.work.times = min(self.work.times, UNLISTED)
        layer: _Layer = {0: [(0, 0, 0, ())]}
        for now, limit in enumerate(limits):
            size = sum(map(len, layer.values()))
            if size > limit:
                raise Unreadable(
                    f"lower: the search has {size:,} partial schedules at round {now:,}, "
                    "the file says fewer: verify --budget K allows it K times half a minute"
                )
            if not layer:
                break
            if stated:
                self.work.done = f", {100 * min(count, stated) // stated}% of the search"
            count += size
            layer = self._next(now, layer, size)
        self.work.done = ""
        return count

    def _next(self, now: int, layer: _Layer, size: int) -> _Layer:
        """Decide all starts of a round."""

        def decided(part: Sequence[tuple[int, list[_Partial]]]) -> _Layer:
            return self._decide(now, part, size)

        first, *others = self.work.shared(list(layer.items()), decided)
        for more in others:
            for begun, partials in more.items():
                # Parts may have started the same requests, so these are compared again.
                before = first.get(begun)
                first[begun] = self._undominated(before + partials) if before else partials

        def left(part: Sequence[int]) -> _Layer:
            unbeaten = ((begun, self._unbeaten(now, begun, first)) for begun in part)
            return {begun: partials for begun, partials in unbeaten if partials}

        parts = self.work.shared(list(first), left)
        return dict(chain.from_iterable(kept.items() for kept in parts))

    def _decide(self, now: int, groups: Sequence[tuple[int, list[_Partial]]], size: int) -> _Layer:
        """Decide the starts of a round after some partial schedules."""
        reached: dict[int, dict[int, _Partial]] = defaultdict(dict)
        prices = _Prices(self.stage, now + 1, self.last)
        for begun, partials in groups:
            coming, starts = self._starts(now, begun, prices)
            size += self._extend(now, begun, partials, coming, starts, prices, reached)
            self.work.hold(self.width * size)
        return {begun: self._undominated(others.values()) for begun, others in reached.items()}

    def _starts(self, now: int, begun: int, prices: _Prices) -> tuple[int, list[_Start]]:
        """Return the later costs of waiting requests without starts now, and possible starts."""
        coming, rest, starts = 0, 0, []
        self.work.spend(5 * len(self.requests))
        for i in reversed(range(len(self.requests))):
            if begun >> i & 1:
                continue
            later_costs, (arrival, prompt, output) = self.later_costs[i], self.requests[i]
            later = later_costs[min(max(0, now + 1 - arrival), len(later_costs) - 1)]
            coming += later
            cost = self.reduced_costs[i].get(now)
            if cost is not None:
                member = (now + output) * (self.stage.memory + 1) + prompt + output
                # A start now costs this much more than a later one, and its price fills slack.
                gain = cost - later - prices[member]
                starts.append(
                    _Start(1 << i, self.before[i], self.ramps[i], member, gain, later, rest)
                )
                rest += min(0, gain)
        return coming, starts[::-1]

    def _extend(
        self,
        now: int,
        begun: int,
        partials: list[_Partial],
        coming: int,
        starts: list[_Start],
        prices: _Prices,
        reached: dict[int, dict[int, _Partial]],
    ) -> int:
        """Start every set of requests at a round and let the next time pass; return how many."""
        bits, guards, spare = self.profiles.bits, self.profiles.guards, self.profiles.spare
        budget, price, ending = self.budget, prices.__getitem__, prices.ending
        rest_costs, cut = self.completions.after(now + 1) if self.completions else ({}, 0)
        largest = self.stage.largest[now + 1] if now < self.stage.last else 0
        gained, size = sum(min(0, start.gain) for start in starts), 0
        for begins, held, spent, members in partials:
            cost = spent + coming + largest - sum(map(price, members))
            if cost + gained > budget:
                continue
            # Each set of possible starts that fits, within what later ones may still gain.
            sets: list[tuple[int, int, int, int, int, Members]]
            sets = [(begun, begins, held, cost, 0, ())]
            for bit, before, ramp, member, gain, later, rest in starts:
                limit = budget - gain - rest
                sets += [
                    (one | bit, total + now, more, cost + gain, ahead + later, (*new, member))
                    for one, total, held, cost, ahead, new in sets
                    if cost <= limit
                    and one & before == before
                    and not ((more := held + ramp) + spare) & guards
                ]
                self.work.hold(self.width * len(sets))
            self.work.spend(self.steps * (2 + len(starts) // 8 + 3 * len(sets)))
            for one, total, held, cost, ahead, new in sets:
                if cost > budget:
                    continue
                # With all requests started the total is known.
                if one == self.all:
                    if total + self.more < self.target:
                        latency = f"a schedule has a total latency of {total + self.more:,}"
                        raise Invalid(f"lower: {latency}")
                    continue
                # Members without a later price do not tell what the rest costs.
                carried = members
                if not ending.isdisjoint(carried):
                    carried = tuple([member for member in members if member not in ending])
                if new:
                    lasting = [member for member in new if member not in ending]
                    carried = tuple(sorted((*carried, *lasting)))
                if cost + rest_costs.get(carried, cut) > budget:
                    continue
                # What is spent leaves out later costs of requests that still wait.
                cost += ahead - coming
                held >>= bits
                others = reached[one]
                if held not in others or total < others[held][0]:
                    size += held not in others
                    others[held] = (total, held, cost, carried)
        return size

    def _undominated(self, others: Collection[_Partial]) -> list[_Partial]:
        """Drop those that another one with the same started requests dominates.

        By sum of starts, ascending, only one before it can.  That one holds no more at any time if
        no field of the difference borrows from its guard.
        """
        guards, kept = self.profiles.guards, list[_Partial]()
        rivals: list[int] = []
        for partial in sorted(others):
            guarded = partial[1] | guards
            if not any((guarded - rival) & guards == guards for rival in rivals):
                kept.append(partial)
                if len(rivals) < _COMPARED:
                    rivals.append(partial[1])
        self.work.spend(self.steps * (2 + len(rivals) // 4) * len(others))
        return kept

    def _unbeaten(self, now: int, begun: int, best: _Layer) -> list[_Partial]:
        """Drop those that another one with one more started request dominates."""
        guards, waiting, kept = self.profiles.guards, self.all & ~begun, best[begun]
        rivals: list[tuple[int, int]] = []  # least sum of starts, and profile
        for i, request in enumerate(self.requests):
            if waiting >> i & 1 and (more := best.get(begun | 1 << i)):
                due = max(now + 1, request.arrival)
                rivals += [(total - due, held) for total, held, _, _ in more[:_COMPARED]]
        rivals.sort()
        sums, profiles = [total for total, _ in rivals], [held for _, held in rivals]
        self.work.spend(5 * len(self.requests) + self.steps * len(kept) * len(rivals) // 8)
        left = []
        for partial in kept:
            total, held = partial[:2]
            guarded, lower = held | guards, profiles[: bisect_right(sums, total)]
            if not any(rival <= held and (guarded - rival) & guards == guards for rival in lower):
                left.append(partial)
        return left
