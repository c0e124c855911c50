"""Repeat an exhaustive search under prices, with bounds on the cost of the rest."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from itertools import accumulate, chain, repeat
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kvopt.verify.work import UNLISTED, Invalid, Unreadable, Work, paired

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from kvopt.verify.configurations import Stage

Item = TypeVar("Item")
Result = TypeVar("Result")

WORTH_A_PROCESS = 500
"""For fewer items starting a process takes longer than the work."""


def shared(
    work: Work, items: Sequence[Item], call: Callable[[Sequence[Item]], Result]
) -> list[Result]:
    """Return the results of a function for each part of the items, and count its steps.

    Other processes have copies of all data, so the function must return all its changes.
    """
    parts = max(1, min(work.jobs, len(items) // WORTH_A_PROCESS))
    if parts == 1:
        return [call(items)]
    import multiprocessing  # few checks need it

    if "fork" not in multiprocessing.get_all_start_methods():
        return [call(items)]
    context, running = multiprocessing.get_context("fork"), []
    before = work.used
    try:
        for part in range(1, parts):
            reader, writer = context.Pipe(duplex=False)
            asked = (writer, work, items[part::parts], call)
            process = context.Process(target=_answer, args=asked, daemon=True)
            process.start()
            writer.close()
            running.append((process, reader))
        results = [call(items[::parts])]
        for _, reader in running:
            try:
                result, used, error = reader.recv()
            except EOFError:
                raise MemoryError from None  # the system has ended it
            if error is not None:
                raise error
            work.spend(0, elsewhere=used - before)
            results.append(result)
        return results
    finally:
        for process, reader in running:
            process.terminate()
            process.join()
            reader.close()


def _answer(
    end: Connection, work: Work, items: Sequence[Any], call: Callable[[Sequence[Any]], Any]
) -> None:
    """Send the result of a function, the steps counted by then, and the exception that ended it."""
    work.progress, result, error = None, None, None
    try:
        result = call(items)
    except Exception as raised:  # raised again in the calling process
        error = raised
    with suppress(BrokenPipeError):
        end.send((result, work.used, error))


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


class Completions:
    """Least costs of the rest after each time, for schedules within the budget.

    They are reduced costs of starts from time t on and R - F of the times after t.  The cost of a
    set is its entry in ``known[t]``, or at least ``cuts[t]``: any numbers, for each time from 0 on;
    0 for other times.  From the last price on the rest of every set costs 0 at least.  ``last`` has
    for each member the last time at which it has a price, 0 if it never has one.

    A *member* is an active request of which only completion and peak are known, coded as one
    number.  It counts as long as it has a price.  A *set* has the members that are carried from a
    time to the next one, in order.  The bounds are those of Claim 13 of docs/configurations.md.
    """

    def __init__(
        self, stage: Stage, reduced_costs: Sequence[dict[int, int]], cuts: Sequence[int],
        budget: int, work: Work,
    ) -> None:  # fmt: skip
        self.stage, self.memory, self.work = stage, stage.memory, work
        self.width, end = self.memory + 1, stage.last
        requests = list(paired(stage.requests, reduced_costs))
        work.spend(100 * sum(len(own) * min(r.output, end + 1) for r, own in requests))
        self.begins: dict[int, list[int]] = defaultdict(list)  # sorted starts that lead to a member
        self.starting: dict[int, dict[int, int]] = defaultdict(dict)  # by round, the least costs
        self.alike: dict[int, int] = defaultdict(int)  # number of requests of each peak
        for (_, prompt, output), own in requests:
            self.alike[prompt + output] += 1
            for start, cost in own.items():
                member = (start + output) * self.width + prompt + output
                self.begins[member].append(start)
                costs = self.starting[start]
                costs[member] = min(cost, costs.get(member, cost))
        self.last: dict[int, int] = {}
        self.shown: dict[int, list[int]] = defaultdict(list)  # members that may be active and count
        for member, own in self.begins.items():
            own.sort()
            self.last[member] = self._last(member, own[0])
            for time in range(own[0] + 1, self.last[member] + 1):
                self.shown[time].append(member)
        self.profiles = Profiles(self.memory, max((r.output for r in stage.requests), default=1))
        self.ramps: dict[tuple[int, int], int] = {}
        self.cuts = [min(cut, budget + 1) for cut in cuts[:end]]
        self.cuts += [0] * (end + 1 - len(self.cuts))
        self.known: list[dict[Members, int]] = [{} for _ in self.cuts]
        self.size = 0
        for time in range(end, 0, -1):
            self._go_back(time)
            self.size += len(self.known[time - 1])

    def after(self, time: int) -> tuple[dict[Members, int], int]:
        """Return the costs of sets carried past a time, and the least cost of all others."""
        return (self.known[time], self.cuts[time]) if time < len(self.cuts) else ({}, 0)

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
        self.found, self.below = self.known[time - 1], self.cuts[time - 1]
        states = [self._state(member, time) for member in self.shown[time]]
        price = {state.member: state.price for state in states}.__getitem__
        largest = self.stage.most[time]
        if self.below > self.cuts[time]:
            self._show(states, largest + self.cuts[time])
        ending = [state for state in states if self.last[state.member] == time]
        ending.sort(key=lambda state: -state.price)
        least = min((state.held for state in ending), default=1)
        gain = ending[0].price * (self.memory // least) if ending else 0
        self.work.spend(30 * len(self.known[time]))

        def carried(part: Sequence[tuple[Members, int]]) -> dict[Members, int]:
            for members, cost in part:
                cost += largest - sum(map(price, members))
                if cost < self.below:
                    self._carry(members, cost)
                if cost - gain < self.below and ending:
                    self._end(members, cost, time, ending, least)
            return self.found

        for found in shared(self.work, list(self.known[time].items()), carried)[1:]:
            for members, cost in found.items():
                self.found[members] = min(cost, self.found.get(members, cost))

    def _state(self, member: int, time: int) -> _State:
        end, peak = divmod(member, self.width)
        copies = min(sum(start < time for start in self.begins[member]), self.memory // peak)
        left = end - time
        return _State(left, peak - left, self.stage.price(time, peak, left), copies, member)

    def _ramp(self, member: int, time: int) -> int:
        """Return the holdings of a member from a time on."""
        end, peak = divmod(member, self.width)
        left = end - time
        if (peak, left) not in self.ramps:
            self.ramps[peak, left] = self.profiles.of(range(peak, peak - left - 1, -1))
        return self.ramps[peak, left]

    def _end(
        self, members: Members, cost: int, time: int, ending: list[_State], least: int
    ) -> None:
        """Add to a set members that count for the last time, the dearest first."""
        profiles, here = self.profiles, (1 << self.profiles.bits) - 1
        begun = members, cost, sum(self._ramp(member, time) for member in members), 0
        stack: list[tuple[Members, int, int, int]] = [begun]
        while stack:
            members, cost, held, at = stack.pop()
            self.work.spend(20)
            room = (self.memory - (held & here)) // least
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

    def _show(self, states: list[_State], most: int) -> None:
        """Add all sets that cost less than the cut if their rest costs the later cut.

        Depth first by rounds to go, descending: a member fits if memory suffices when it completes.
        """
        states.sort(key=lambda state: -state.left)
        worth, least = self._worth(states), most - self.below + 1
        stack: list[tuple[Members, int, int, int, int]] = [((), 0, 0, 0, 0)]
        while stack:
            members, at, many, held, value = stack.pop()
            if value >= least:
                self._carry(tuple(sorted(members)), most - value)
            for place in range(at, len(states)):
                if value + worth[place][many][held] < least:
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
                more = (rows if copies > 1 else after)[c + 1][held : held + fit]
                pairs = zip(after[c], more)
                rows[c] = [old if old > new + price else new + price for old, new in pairs]
                rows[c] += after[c][fit:]
            worth.append(rows)
        return worth[::-1]

    def _carry(self, members: Members, cost: int) -> None:
        """Add the sets that may lead to some members: all members except some that just started."""
        started, found = self.started, self.found
        self.work.spend(20)
        if started.keys().isdisjoint(members):
            if cost < found.get(members, self.below):
                found[members] = cost
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
                if paid < found.get(rest, self.below):
                    found[rest] = paid
        self.work.hold((_SET + 8 * len(members)) * (self.size + len(found)))


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


class Search:
    """Exhaustive search for a schedule below the target, round by round.

    A partial schedule has decided all starts before a round.  It is stored with all others that
    have started the same requests, a set of bits, and is a tuple of

    - the sum of its starts;
    - the profile of its tokens from then on;
    - its spent cost: the reduced costs of its starts and R - F of all times so far.  With the least
      later reduced cost of each waiting request, or with the completion bound of its members, this
      is a bound; above the budget no schedule below the target extends it;
    - its members, see `Completions`.

    Exchanging two requests of one shape changes no total.  So they start in the order of arrival.

    Of two that have started the same requests one is dropped if the other has no larger sum of
    starts and never holds more (Claim 11 of docs/configurations.md).  So is one if the other has
    started one more request, which could not add less to that sum from now on (Claim 12).  For any
    schedule that extends the one, the same later starts extend the other, to a total that is no
    larger.  If that is below the target, no bound drops it and none of its starts was removed,
    since these rules hold for all schedules.
    """

    def __init__(
        self, stage: Stage, reduced_costs: list[dict[int, int]], target: int, budget: int,
        work: Work, cuts: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self.stage, self.target, self.budget, self.work = stage, target, budget, work
        order = sorted(range(len(reduced_costs)), key=lambda i: stage.requests[i].arrival)
        self.requests = [stage.requests[i] for i in order]
        self.reduced_costs = [reduced_costs[i] for i in order]
        latest = max((request.arrival for request in self.requests), default=0)
        rounds = max(stage.last, latest) + budget // stage.scale
        longest = max((request.output for request in self.requests), default=1)
        work.spend(150 * (rounds + longest) * len(reduced_costs))
        self.completions = Completions(stage, reduced_costs, cuts, budget, work) if cuts else None
        self.last = self.completions.last if self.completions else {}
        self.profiles = Profiles(stage.memory, longest)
        self.ramps = [self.profiles.of(range(s + o, s, -1)) for _, s, o in self.requests]
        # About the most bytes of a partial schedule, and its steps.
        least = min((request.prompt + 1 for request in self.requests), default=1)
        together = min(len(self.requests), stage.memory // least)
        self.width = 450 + 8 * together + self.profiles.bits * longest // 7
        self.steps = 40 + self.profiles.bits * longest // 300
        self.before, alike = [], dict[tuple[int, int], int]()
        for i, (_, prompt, output) in enumerate(self.requests):
            self.before.append(alike.get((prompt, output), 0))
            alike[prompt, output] = 1 << i
        self.all = (1 << len(self.requests)) - 1
        self.more = sum(output - arrival for arrival, _, output in self.requests)
        self.least: list[list[int]] = []
        for request, own in paired(self.requests, self.reduced_costs):
            if (late := max(own)) >= stage.last:  # represents all later ones, too
                delays = range(1, (budget - own[late]) // stage.scale + 1)
                own.update({late + d: own[late] + d * stage.scale for d in delays})
            backwards = (own.get(k, budget + 1) for k in range(max(own), request.arrival - 1, -1))
            self.least.append([*accumulate(backwards, min, initial=budget + 1)][::-1])

    def run(self, kept: Sequence[int]) -> int:
        """Return the number of partial schedules; none is below the target.

        If the file states how many it ``kept`` in each round, there must not be many more.  With
        completion bounds there may be: then it tells whether the budget can suffice.
        """
        known = 0
        said: Iterable[float] = repeat(math.inf)
        if self.completions:
            self.work.expect(_EACH * self.steps * sum(kept))
        elif kept and not self.work.is_told:
            said = chain([1], (2 * size + 100 for size in kept), repeat(100))
        elif not self.work.is_told:
            self.work.times = min(self.work.times, UNLISTED)
        layer: _Layer = {0: [(0, 0, 0, ())]}
        for now, most in enumerate(said):
            size = sum(map(len, layer.values()))
            if size > most:
                raise Unreadable(
                    f"lower: the search has {size:,} partial schedules at round {now:,}, "
                    "the file says fewer: verify --budget K allows it K times half a minute"
                )
            if not layer:
                break
            known += size
            layer = self._next(now, layer, size)
        return known

    def _next(self, now: int, layer: _Layer, size: int) -> _Layer:
        """Decide all starts of a round."""

        def decided(part: Sequence[tuple[int, list[_Partial]]]) -> _Layer:
            return self._decide(now, part, size)

        first, *others = shared(self.work, list(layer.items()), decided)
        for more in others:
            for begun, partials in more.items():
                known = first.get(begun)
                first[begun] = self._undominated(known + partials) if known else partials

        def left(part: Sequence[int]) -> _Layer:
            unbeaten = ((begun, self._unbeaten(now, begun, first)) for begun in part)
            return {begun: partials for begun, partials in unbeaten if partials}

        return dict(
            chain.from_iterable(kept.items() for kept in shared(self.work, list(first), left))
        )

    def _decide(self, now: int, groups: Sequence[tuple[int, list[_Partial]]], size: int) -> _Layer:
        """Decide the starts of a round after some partial schedules."""
        found: dict[int, dict[int, _Partial]] = defaultdict(dict)
        prices = _Prices(self.stage, now + 1, self.last)
        for begun, partials in groups:
            coming, starts = self._starts(now, begun, prices)
            size += self._extend(now, begun, partials, coming, starts, prices, found)
            self.work.hold(self.width * size)
        return {begun: self._undominated(others.values()) for begun, others in found.items()}

    def _starts(self, now: int, begun: int, prices: _Prices) -> tuple[int, list[_Start]]:
        """Return the later costs of waiting requests without starts now, and possible starts."""
        coming, rest, starts = 0, 0, []
        self.work.spend(5 * len(self.requests))
        for i in reversed(range(len(self.requests))):
            if begun >> i & 1:
                continue
            least, (arrival, prompt, output) = self.least[i], self.requests[i]
            later = least[min(max(0, now + 1 - arrival), len(least) - 1)]
            coming += later
            cost = self.reduced_costs[i].get(now)
            if cost is not None:
                member = (now + output) * (self.stage.memory + 1) + prompt + output
                gain = cost - later - prices[member]
                starts.append(
                    _Start(1 << i, self.before[i], self.ramps[i], member, gain, later, rest)
                )
                rest += min(0, gain)
        return coming, starts[::-1]

    def _extend(
        self, now: int, begun: int, partials: list[_Partial], coming: int, starts: list[_Start],
        prices: _Prices, found: dict[int, dict[int, _Partial]],
    ) -> int:  # fmt: skip
        """Start every set of requests at a round and let the next time pass; return how many."""
        bits, guards, spare = self.profiles.bits, self.profiles.guards, self.profiles.spare
        budget, price, ending = self.budget, prices.__getitem__, prices.ending
        known, cut = self.completions.after(now + 1) if self.completions else ({}, 0)
        largest = self.stage.most[now + 1] if now < self.stage.last else 0
        gained, size = sum(min(0, start.gain) for start in starts), 0
        for begins, held, spent, members in partials:
            cost = spent + coming + largest - sum(map(price, members))
            if cost + gained > budget:
                continue
            sets: list[tuple[int, int, int, int, int, Members]]
            sets = [(begun, begins, held, cost, 0, ())]
            for bit, before, ramp, member, gain, later, rest in starts:
                most = budget - gain - rest
                sets += [
                    (one | bit, total + now, more, cost + gain, ahead + later, (*new, member))
                    for one, total, held, cost, ahead, new in sets
                    if cost <= most
                    and one & before == before
                    and not ((more := held + ramp) + spare) & guards
                ]
                self.work.hold(self.width * len(sets))
            self.work.spend(self.steps * (2 + len(starts) // 8 + 3 * len(sets)))
            for one, total, held, cost, ahead, new in sets:
                if cost > budget:
                    continue
                if one == self.all:
                    if total + self.more < self.target:
                        latency = f"a schedule has a total latency of {total + self.more:,}"
                        raise Invalid(f"lower: {latency}")
                    continue
                carried = members
                if not ending.isdisjoint(carried):
                    carried = tuple([member for member in members if member not in ending])
                if new:
                    lasting = [member for member in new if member not in ending]
                    carried = tuple(sorted((*carried, *lasting)))
                cost += ahead - coming
                if cost + known.get(carried, cut) > budget:
                    continue
                held >>= bits
                others = found[one]
                if held not in others or total < others[held][0]:
                    size += held not in others
                    others[held] = (total, held, cost, carried)
        return size

    def _undominated(self, others: Collection[_Partial]) -> list[_Partial]:
        """Drop those that another one with the same started requests dominates."""
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
