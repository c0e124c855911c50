"""All runs of a few requests on one worker, round by round: the least latency, or the most in time.

A round may start any requests that fit, also some that have not arrived: then it waits for them,
in rounds only if nothing is active.  These are all runs except those with useless waits.  In rounds
each round lasts 1 and has the number of its time.

With shared prefixes a run goes on from what its cache holds.  The best one is no optimum then: a
request that is evicted may leave blocks to others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, combinations
from math import prod
from typing import NamedTuple

from kvopt.bounds.slo_prices import Span
from kvopt.heuristics.attaining.in_rounds import AttainingSets
from kvopt.heuristics.seconds.worker_moves import joined_run
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.budget import Budget, wall_time
from kvopt.problem.batch_time import BatchTime, Line
from kvopt.problem.clocks import arrivals_ns
from kvopt.problem.instance import Instance
from kvopt.problem.scopes import Scope

_MAX_REQUESTS = 6
"""Limit of requests for latency."""
_MAX_ROUNDS = 500_000
"""Limit of all rounds, some seconds; beyond, the search ends without a proof."""
_LONGEST = 400
"""Limit of the tokens of an output for latency."""
_MAX_WORK = 2_000_000_000
"""Limit of the estimated work of all runs for service levels: about a second."""
_NAME = "exhaustive search"

Pairs = tuple[tuple[int, int], ...]
_PRIVATE = -1
"""In a cache, tokens that only one request can use."""


class Goal(NamedTuple):
    """The objective of the search: runs of least cost.

    Parameters
    ----------
    cost
        Cost of a request that completes at a time; infinite if that is too late.
    latest
        Latest begin of each request.
    left_out
        Cost of a request that never begins.
    rest
        Lower bound on the costs of active and of waiting requests at a time.
    due
        When a request has to complete whose first token is there at a time.
    """

    cost: Callable[[int, int], float]
    latest: Sequence[float]
    left_out: float
    rest: Callable[[int, Pairs, Sequence[int]], int] = lambda *_: 0
    due: Callable[[int, int], float] | None = None


class SearchNode(NamedTuple):
    """A partial run.

    Parameters
    ----------
    round_, now
        The next round and its time.
    active
        Active requests, and their produced tokens.
    starts
        Requests and the rounds of their starts.
    waits
        Rounds that began after the end of the one before, and their begins.
    cost
        Cost of the requests that are done.
    unused
        Nodes of prefixes that are in the cache and that no active request uses, and the tokens of
        each; the least recently used first.
    due
        Active requests, and when they have to complete, if that depends on their first tokens.
    """

    round_: int
    now: int
    active: Pairs = ()
    starts: Pairs = ()
    waits: Pairs = ()
    cost: float = 0
    unused: Pairs = ()
    due: tuple[tuple[int, float], ...] = ()


class RunSearch:
    """The runs of one worker; a model of None means rounds."""

    def __init__(self, instance: Instance, model: BatchTime | None) -> None:
        self.arrivals = arrivals_ns(instance) if model else [r.arrival for r in instance]
        self.is_even, self.model = model is None, model or BatchTime([Line(1, 0)])
        self._memory, self.count = instance.memory, len(instance)
        self.prompts = [request.prompt for request in instance]
        self.outputs = [request.output for request in instance]
        self._forest, self._block = instance.forest, instance.block_tokens or 1
        self._private = self._forest.private

    def best(
        self, goal: Goal, limit: float, is_over: Callable[[], bool], bound: float = 0
    ) -> tuple[SearchNode | None, float, bool]:
        """Return the best run below a limit, its cost, and whether the search was complete.

        No run costs less than ``bound``.
        """
        best_node: SearchNode | None = None
        seen: dict[object, float] = {}
        nodes = [SearchNode(0, min(self.arrivals, default=0))]
        while nodes and limit > bound:
            if is_over():
                return best_node, limit, False
            node = nodes.pop()
            _, now, active, starts, _, cost, unused, due = node
            # Requests that may begin in time; without the others the cost is as much higher.
            begun = frozenset(i for i, _ in starts)
            left = [
                i
                for i, (a, latest) in enumerate(zip(self.arrivals, goal.latest, strict=True))
                if i not in begun and max(now, a) <= latest
            ]
            never = self.count - len(begun) - len(left)
            if never:
                cost += never * goal.left_out
            # A state that was reached at no higher cost, or too high a bound, ends the branch.
            state = (now, begun, active, unused, due)
            if cost + goal.rest(now, active, left) >= limit or seen.get(state, math.inf) <= cost:
                continue
            seen[state] = cost
            value = cost + len(left) * goal.left_out if left else cost
            if not active and value < limit:
                best_node, limit = node, value
            # The next round begins with any of them that fit; without active ones it needs one.
            if active and self.is_even:
                left = [i for i in left if self.arrivals[i] <= now]
            sizes = range(not active, len(left) + 1)
            every = chain.from_iterable(combinations(left, size) for size in sizes)
            fitting = (
                chosen for chosen in every if self._fits((*active, *((i, 0) for i in chosen)))
            )
            nodes += [self.after(node, chosen, goal) for chosen in fitting]
        return best_node, limit, True

    def _fits(self, going: Pairs) -> bool:
        """Whether memory suffices at every completion if nothing else starts."""
        # It only fills in between.  In ``ahead`` rounds those still active hold as many more.
        rest = [
            (self.outputs[i] - produced, self._private[i] + produced, i) for i, produced in going
        ]
        return all(
            sum(held + ahead for more, held, _ in rest if more >= ahead)
            + self._shared(i for more, _, i in rest if more >= ahead)
            <= self._memory
            for ahead, *_ in rest
        )

    def _shared(self, active: Iterable[int]) -> int:
        """Return the tokens of the nodes that some requests use, each counted once."""
        return self._forest.tokens(active) if self._forest.weights else 0

    def after(self, node: SearchNode, chosen: Sequence[int], goal: Goal) -> SearchNode:
        """Return a run with one more round, in which some requests begin."""
        round_, now, active, starts, waits, cost, unused, due = node
        begin = max([now, *(self.arrivals[i] for i in chosen)])
        if begin > now or not starts:
            waits = (*waits, (round_, begin))
        if self.is_even:
            round_ = begin
        prompts, unused = self._prefilled(active, chosen, unused)
        active = tuple((i, produced + 1) for i, produced in (*active, *((i, 0) for i in chosen)))
        held = sum(self._private[i] + produced for i, produced in active)
        held += self._shared(i for i, _ in active)
        unused = self._kept(active, held, unused)
        end = begin + self.model.round_ns(len(active), prompts, held)
        cost += sum(goal.cost(i, end) for i, produced in active if produced == self.outputs[i])
        if goal.due is not None:
            due = (*due, *((i, goal.due(i, end)) for i in chosen))
            cost += sum(math.inf for _, latest in due if end > latest)
            going = {i for i, produced in active if produced < self.outputs[i]}
            due = tuple(sorted(pair for pair in due if pair[0] in going))
        active = tuple(pair for pair in active if pair[1] < self.outputs[pair[0]])
        starts = (*starts, *((i, round_) for i in chosen))
        return SearchNode(round_ + 1, end, active, starts, waits, cost, unused, due)

    def _prefilled(self, active: Pairs, chosen: Sequence[int], unused: Pairs) -> tuple[int, Pairs]:
        """Return the prompt tokens that are not in the cache, and the nodes that remain unused."""
        if not self._forest.weights:
            return sum(self.prompts[i] for i in chosen), ()
        weights, paths, cached = self._forest.weights, self._forest.paths, dict(unused)
        wanted = {v for i in chosen for v in paths[i]}
        missing = wanted.difference(*(paths[i] for i, _ in active))
        prompts = sum(self._private[i] for i in chosen)
        prompts += sum(weights[v] - cached.get(v, 0) for v in missing)
        return prompts, tuple(pair for pair in unused if pair[0] not in wanted)

    def _kept(self, active: Pairs, held: int, unused: Pairs) -> Pairs:
        """Return the unused nodes after a round, the least recently used first.

        Those go first until the rest fits, in whole blocks, private tokens one by one.  Then what
        completed requests leave is added, the end of a path first: it is of no use without its
        begin.  Until now it is in ``held``.
        """
        if not (weights := self._forest.weights):
            return ()
        excess, kept = held + sum(tokens for _, tokens in unused) - self._memory, []
        for node, tokens in unused:
            size = 1 if node == _PRIVATE else self._block
            gone = min(tokens, -(-excess // size) * size) if excess > 0 else 0
            excess -= gone
            if gone < tokens:
                kept.append((node, tokens - gone))
        going, paths = dict(active), self._forest.paths
        for i in sorted(i for i, produced in active if produced == self.outputs[i]):
            del going[i]
            used = {v for j in going for v in paths[j]}
            kept.append((_PRIVATE, self._private[i] + self.outputs[i]))
            kept += [(v, weights[v]) for v in reversed(paths[i]) if v not in used]
        return tuple(kept)

    def first_ns(self, i: int) -> int:
        """Return the time of the first round of a request alone."""
        return self.model.round_ns(1, self._private[i], self.prompts[i] + 1)

    def alone(self, i: int, produced: int) -> int:
        """Return the remaining time of a request alone after it has produced some tokens."""
        held = self.prompts[i] + produced + 1
        next_one = self.model.round_ns(1, 0, held) if produced else self.first_ns(i)
        return next_one + self.model.stretch_ns(1, held + 1, self.outputs[i] - produced - 1)


# ---- least latency in seconds, of fleets too --------------------------------------------------


def search_all(search: Search, _: Budget) -> None:
    """Search all better runs, if requests and rounds are few.

    A fleet is a partition of requests.  Its claim is about runs without pauses, without prompts in
    pieces, and without shared prefixes.
    """
    instance, count = search.instance, len(search.instance)
    if not 0 < count <= _MAX_REQUESTS or search.budget.over():
        return
    if (longest := max(request.output for request in instance)) > _LONGEST:
        search.note(f"{_NAME}: an output has {longest:,} tokens; the limit is {_LONGEST:,}")
        return
    began, rounds = wall_time(), 0

    def is_over() -> bool:
        nonlocal rounds
        rounds += 1
        return rounds > _MAX_ROUNDS or search.budget.over()

    upper = math.inf if search.objective is None else search.objective
    optima: dict[int, tuple[float, SearchNode]] = {}
    everything = (1 << count) - 1
    for bits in range(1 if instance.workers > 1 else everything, everything + 1):
        members = [i for i in range(count) if bits >> i & 1]
        runs = RunSearch(instance.of_one_worker(members), search.clock.batch_time)
        node, value, is_complete = runs.best(_latency_goal(runs), upper, is_over)
        if node is not None:
            optima[bits] = value, node
        if not is_complete:
            search.note(f"{_NAME}: ended before all better schedules were ruled out")
            break
    total, parts = _best_partition(instance, optima)
    if total < upper:
        starts, workers, resumed = [0] * count, [0] * count, list[dict[int, int]]()
        for worker, bits in enumerate(parts):
            members = [i for i in range(count) if bits >> i & 1]
            node = optima[bits][1] if bits else SearchNode(0, 0)
            for place, start in node.starts:
                starts[members[place]], workers[members[place]] = start, worker
            resumed.append(dict(node.waits))
        work = {"starts": starts, "workers": workers, "resumed": resumed}
        search.offer(joined_run(search, _NAME, began, **work), _NAME)
    # Restarts gain nothing: the last run of each request is a schedule without them.
    if is_complete and search.objective is not None and Scope.RESTARTS.covers(search.problem.scope):
        search.offer_claimed(search.objective, _NAME)


def _best_partition(
    instance: Instance, optima: Mapping[int, tuple[float, SearchNode]]
) -> tuple[float, tuple[int, ...]]:
    """Return the least total latency, and the requests of each worker as the bits of a set."""

    @cache
    def best(bits: int, workers: int) -> tuple[float, tuple[int, ...]]:
        """Return the least total of a set of requests on so many workers, and the set of each."""
        if not bits:
            return 0, (0,) * workers
        if workers == 1:
            return optima[bits][0] if bits in optima else math.inf, (bits,)
        total, parts = best(bits, workers - 1)
        parts, part = (0, *parts), bits
        # Workers are alike, so this one has the first request, or nothing.
        while part:
            if part & bits & -bits and part in optima:
                rest, others = best(bits ^ part, workers - 1)
                if optima[part][0] + rest < total:
                    total, parts = optima[part][0] + rest, (part, *others)
            part = (part - 1) & bits
        return total, parts

    return best((1 << len(instance)) - 1, instance.workers)


def _latency_goal(runs: RunSearch) -> Goal:
    """Return the goal of least latency; each request costs its latency."""
    arrivals, alone = runs.arrivals, cache(runs.alone)

    def rest(now: int, active: Pairs, left: Sequence[int]) -> int:
        going = sum(now + alone(i, produced) - arrivals[i] for i, produced in active)
        return going + sum(max(now, arrivals[i]) + alone(i, 0) - arrivals[i] for i in left)

    latest = [math.inf] * runs.count
    return Goal(lambda i, end: end - arrivals[i], latest, math.inf, rest)


# ---- the most that attain a service level -----------------------------------------------------


def best_in_time(
    instance: Instance,
    model: BatchTime | None,
    spans: Mapping[int, Span],
    attained: int,
    ceiling: int,
    should_stop: Callable[[], bool],
) -> AttainingSets | None:
    """Return a run in which more attain than known, None without one or beyond the limit.

    It is the best one, unless the search was stopped.

    Parameters
    ----------
    instance, model
        As of `kvopt.bounds.slo_ceiling.slo_ceiling`.
    spans
        When the tokens of the requests that can attain are due.
    attained, ceiling
        The number of requests that attain in the best known run, and its upper bound.
    should_stop
        Asked now and then.
    """
    runs = RunSearch(instance, model)

    def due(i: int, first: int) -> float:
        arrival, span = runs.arrivals[i], spans.get(i)
        if span is None or first > arrival + span.early:
            return -math.inf
        return min(arrival + span.end, first + span.rest)

    latest = [-math.inf] * runs.count
    for i, span in spans.items():  # a first round lasts at least as long as alone
        latest[i] = runs.arrivals[i] + span.early - runs.first_ns(i)
    if _work(runs, latest) > _MAX_WORK:
        return None
    goal = Goal(lambda *_: 0, latest, left_out=1, due=due)
    node, missed, _ = runs.best(goal, runs.count - attained, should_stop, runs.count - ceiling)
    if node is None:
        return None
    # The others follow, one by one: alone every request fits, and those in time are done.
    late = {*range(runs.count)}.difference(i for i, _ in node.starts)
    for i in sorted(late, key=runs.arrivals.__getitem__):
        node = runs.after(node, (i,), goal)
        while node.active:
            node = runs.after(node, (), goal)
    resumed = () if runs.is_even else tuple((number, begin, 0) for number, begin in node.waits)
    starts = tuple(start for _, start in sorted(node.starts))
    return AttainingSets(runs.count - int(missed), starts, resumed=resumed)


def _work(runs: RunSearch, latest: Sequence[float]) -> int:
    """Count the runs, in which a request begins in any round in time or never, and their steps.

    A step takes longer with more active requests, and few runs are evaluated to their end.
    """
    total, length = sum(runs.outputs), runs.model.least_ns
    slacks = (late - arrival for late, arrival in zip(latest, runs.arrivals, strict=True))
    longest = total * length
    steps = (int(min(slack, longest)) // length + 2 for slack in slacks if slack >= 0)
    return total**2 * prod(steps)
