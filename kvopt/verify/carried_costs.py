"""Cost-to-go bounds: least costs of the rest of a schedule, by the requests carried past a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kvopt.verify.step_budget import Work, paired

if TYPE_CHECKING:
    from kvopt.verify.check_configurations import Stage


class Profiles:
    """Tokens held at later times: a field of an integer for each, the nearest one lowest.

    Each of two profiles has at most M tokens in a field.  So their sum has at most 2 M there, which
    is below the guard, the highest bit of a field, even with ``spare`` on top if it is at most M.
    """

    def __init__(self, memory: int, times: int) -> None:
        self.digits = -(-(memory.bit_length() + 2) // 4)
        self.bits = 4 * self.digits
        ones = ((1 << self.bits * times) - 1) // ((1 << self.bits) - 1)
        self.guards = ones << (self.bits - 1)
        self.spare = ones * ((1 << (self.bits - 1)) - 1 - memory)

    def of(self, held: Iterable[int]) -> int:
        """Return the profile of holdings at the next times, the last one first."""
        return int("0" + "".join(f"{tokens:0{self.digits}x}" for tokens in held), 16)

    def fits(self, held: int) -> bool:
        """Whether the sum of two profiles has at most M tokens at each time."""
        return not (held + self.spare) & self.guards


Members = tuple[int, ...]

_SET, _CELL = 300, 40
"""About the most bytes of a set without its members, and of a cell of a table."""


class _State(NamedTuple):
    """A state at a time: rounds to go, tokens, price, limit of copies, and the member."""

    left: int
    held: int
    price: int
    copies: int
    member: int


class CarriedCosts:
    """Least costs of the rest after each time, for schedules within the budget.

    They are R - F of the times after t, and what starts from time t on cost more than the cheapest
    start of the same request then or later, which waiting requests pay.  The cost of a set is its
    entry in ``costs[t]``, or at least ``cuts[t]``: any numbers, for each time from 0 on; 0 for
    other times.  From the last price on the rest of every set costs 0 at least.  ``last`` has for
    each member the last time at which it has a price, 0 if it never has one.

    A *member* is an active request of which only completion and peak are known, coded as one
    number.  It counts as long as it has a price.  A *set* has the members that are carried from a
    time to the next one, in order.  The bounds are those of Claim 3.13 of docs/theory.
    """

    def __init__(
        self,
        stage: Stage,
        reduced_costs: Sequence[dict[int, int]],
        cuts: Sequence[int],
        budget: int,
        work: Work,
    ) -> None:
        self.stage, self.memory, self.work = stage, stage.memory, work
        self.width, end = self.memory + 1, stage.last
        requests = list(paired(stage.requests, reduced_costs))
        work.spend(100 * sum(len(costs) * min(r.output, end + 1) for r, costs in requests))
        self.begins: dict[int, list[int]] = defaultdict(list)  # sorted starts that lead to a member
        self.starting: dict[int, dict[int, int]] = defaultdict(dict)  # by round, the least costs
        self.alike: dict[int, int] = defaultdict(int)  # number of requests of each peak
        for (_, prompt, output), costs_by_start in requests:
            self.alike[prompt + output] += 1
            later = budget + 1
            for start in sorted(costs_by_start, reverse=True):
                later = min(later, costs_by_start[start])
                cost = costs_by_start[start] - later
                member = (start + output) * self.width + prompt + output
                self.begins[member].append(start)
                costs = self.starting[start]
                costs[member] = min(cost, costs.get(member, cost))
        self.last: dict[int, int] = {}
        self.shown: dict[int, list[int]] = defaultdict(list)  # members that may be active and count
        for member, starts in self.begins.items():
            starts.sort()
            self.last[member] = self._last(member, starts[0])
            for time in range(starts[0] + 1, self.last[member] + 1):
                self.shown[time].append(member)
        self.profiles = Profiles(self.memory, max((r.output for r in stage.requests), default=1))
        self.ramps: dict[tuple[int, int], int] = {}
        self.cuts = [min(cut, budget + 1) for cut in cuts[:end]]
        self.cuts += [0] * (end + 1 - len(self.cuts))
        self.costs: list[dict[Members, int]] = [{} for _ in self.cuts]
        self.size = 0
        # Backwards, since a set at a time is extended from those at the next one.
        for time in range(end, 0, -1):
            self._go_back(time)
            self.size += len(self.costs[time - 1])

    def after(self, time: int) -> tuple[dict[Members, int], int]:
        """Return the costs of sets carried past a time, and the least cost of all others."""
        return (self.costs[time], self.cuts[time]) if time < len(self.cuts) else ({}, 0)

    def _last(self, member: int, first: int) -> int:
        """Return the last time at which a member has a price, after its first start."""
        end, peak = divmod(member, self.width)
        for time in range(min(end, self.stage.last), first, -1):
            if self.stage.price(time, peak, end - time):
                return time
        return 0

    def _go_back(self, time: int) -> None:
        """Compute the sets carried to a time at a cost below the cut.

        After that time such a set continues as a known one, with members that count for the last
        time; or as another one, which costs its cut, and then R - F is small at the time.
        """
        self.start, self.started = time - 1, self.starting[time - 1]
        self.earlier, self.below = self.costs[time - 1], self.cuts[time - 1]
        states = []
        for member in self.shown[time]:
            end, peak = divmod(member, self.width)
            copies = min(sum(start < time for start in self.begins[member]), self.memory // peak)
            price = self.stage.price(time, peak, end - time)
            states.append(_State(end - time, peak - end + time, price, copies, member))
        price_of = {state.member: state.price for state in states}.__getitem__
        largest = self.stage.largest[time]
        if self.below > self.cuts[time]:
            self._show(states, largest + self.cuts[time])
        ending = [state for state in states if self.last[state.member] == time]
        ending.sort(key=lambda state: -state.price)
        # The most that members which count for the last time can add to a set.
        smallest = min((state.held for state in ending), default=1)
        gain = ending[0].price * (self.memory // smallest) if ending else 0
        self.work.spend(30 * len(self.costs[time]))

        def carried(part: Sequence[tuple[Members, int]]) -> dict[Members, int]:
            for members, cost in part:
                cost += largest - sum(map(price_of, members))
                if cost < self.below:
                    self._carry(members, cost)
                if cost - gain < self.below and ending:
                    self._end(members, cost, time, ending, smallest)
            return self.earlier

        for carried_there in self.work.shared(list(self.costs[time].items()), carried)[1:]:
            for members, cost in carried_there.items():
                self.earlier[members] = min(cost, self.earlier.get(members, cost))

    def _ramp(self, member: int, time: int) -> int:
        """Return the holdings of a member from a time on."""
        end, peak = divmod(member, self.width)
        left = end - time
        if (peak, left) not in self.ramps:
            self.ramps[peak, left] = self.profiles.of(range(peak, peak - left - 1, -1))
        return self.ramps[peak, left]

    def _end(
        self, members: Members, cost: int, time: int, ending: list[_State], smallest: int
    ) -> None:
        """Add to a set members that count for the last time, the dearest first."""
        profiles, here = self.profiles, (1 << self.profiles.bits) - 1
        begun = members, cost, sum(self._ramp(member, time) for member in members), 0
        stack: list[tuple[Members, int, int, int]] = [begun]
        while stack:
            members, cost, held, at = stack.pop()
            self.work.spend(20)
            # At most so many more fit, none dearer than the next: then they gain too little.
            room = (self.memory - (held & here)) // smallest
            for place in range(at, len(ending)):
                state = ending[place]
                if cost - room * state.price >= self.below:
                    break
                self.work.spend(10)
                more = held + self._ramp(state.member, time)
                if profiles.fits(more) and self._may_join(members, state):
                    grown, paid = (*members, state.member), cost - state.price
                    stack.append((grown, paid, more, place))
                    if paid < self.below:
                        self._carry(tuple(sorted(grown)), paid)

    def _may_join(self, members: Members, state: _State) -> bool:
        """Whether there are enough requests for one more in this state, and of its peak."""
        if members.count(state.member) >= state.copies:
            return False
        peak, width = state.member % self.width, self.width
        return sum(member % width == peak for member in members) < self.alike[peak]

    def _show(self, states: list[_State], limit: int) -> None:
        """Add all sets that cost less than the cut if their rest costs the later cut.

        Depth first by rounds to go, descending: a member fits if memory suffices when it completes.
        """
        states.sort(key=lambda state: -state.left)
        # A set costs the limit less its value: below the cut from the lowest value on.
        worth, lowest = self._worth(states), limit - self.below + 1
        stack: list[tuple[Members, int, int, int, int]] = [((), 0, 0, 0, 0)]
        while stack:
            members, at, many, held, value = stack.pop()
            if value >= lowest:
                self._carry(tuple(sorted(members)), limit - value)
            for place in range(at, len(states)):
                # A later place has fewer states to add, so it is worth no more.
                if value + worth[place][many][held] < lowest:
                    break
                self.work.spend(10)
                left, more, price, _, member = state = states[place]
                fits = held + more + (many + 1) * left <= self.memory
                if fits and self._may_join(members, state):
                    grown = (*members, member)
                    stack.append((grown, place, many + 1, held + more, value + price))

    def _worth(self, states: list[_State]) -> list[list[list[int]]]:
        """Return the most that states from a place on add, by members and tokens before it."""
        memory = self.memory
        many = memory // min((state.held for state in states), default=memory + 1)
        self.work.hold(_CELL * (len(states) + 1) * (many + 2) * (memory + 1))
        self.work.spend((len(states) + 1) * (many + 2) * (2 * memory + 10))
        rows = [[0] * (memory + 1) for _ in range(many + 2)]
        worth = [rows]
        for left, held, price, copies, _ in reversed(states):
            after, rows = rows, rows[:]
            for c in range(many if price else -1, -1, -1):
                fit = max(0, memory - held - (c + 1) * left + 1)
                # Copies beyond one are not limited: then the result is at most too large.
                more = (rows if copies > 1 else after)[c + 1][held : held + fit]
                pairs = zip(after[c], more)
                rows[c] = [old if old > new + price else new + price for old, new in pairs]
                rows[c] += after[c][fit:]
            worth.append(rows)
        return worth[::-1]

    def _carry(self, members: Members, cost: int) -> None:
        """Add the sets that may lead to some members: all members except some that just started."""
        started, carried = self.started, self.earlier
        self.work.spend(20)
        if started.keys().isdisjoint(members):
            if cost < carried.get(members, self.below):
                carried[members] = cost
        else:
            choices: list[tuple[Members, int]] = [((), cost)]
            for member in members:
                earlier = self.begins[member][0] < self.start
                paid = started.get(member)
                begun = [] if paid is None else [(rest, c + paid) for rest, c in choices]
                rests = [((*rest, member), c) for rest, c in choices] if earlier else []
                choices = begun + rests
            self.work.spend(10 * len(choices))
            for rest, paid in choices:
                if paid < carried.get(rest, self.below):
                    carried[rest] = paid
        self.work.hold((_SET + 8 * len(members)) * (self.size + len(carried)))
