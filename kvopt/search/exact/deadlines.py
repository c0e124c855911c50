"""The most of a few requests that attain a deadline on one worker, found among all runs.

A round may start any requests, also some that have yet to arrive: then it waits for them, in rounds
only where nothing is active.  Late requests run after those that are in time.  In
rounds each round lasts 1 and has the number of its time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, combinations
from math import prod

from kvopt.bounds.deadlines import least_times
from kvopt.heuristics.attaining.rounds import Attaining
from kvopt.problem.arrivals import arrivals_ns
from kvopt.problem.batch_time import BatchTime, Line
from kvopt.problem.deadlines import Aim
from kvopt.problem.instance import Instance

_MOST_WORK = 2_000_000_000
"""Limit of the work of all runs, as it is counted before: a second or so."""

Pairs = tuple[tuple[int, int], ...]
Node = tuple[int, int, Pairs, Pairs, tuple[tuple[int, int, int], ...]]
"""A run so far: the next round and its time, the tokens of what was active last, the rounds of all
starts, and as of `Attaining` when it went on after a wait.
"""


class AllRuns:
    """The runs of one worker in which all that begins attains its deadline.

    Parameters
    ----------
    instance, model, allowed, aim
        As of `kvopt.bounds.deadlines.deadline_ceiling`.
    """

    def __init__(
        self, instance: Instance, model: BatchTime | None, allowed: Sequence[int], aim: Aim
    ) -> None:
        self._instance, self._is_even = instance, model is None
        self._model = model or BatchTime([Line(1, 0)])
        self._arrivals = arrivals_ns(instance) if model else [r.arrival for r in instance]
        self._prompts = [request.prompt for request in instance]
        self._outputs = [request.output for request in instance]
        self._goals = self._outputs if aim is Aim.COMPLETION else [1] * len(instance)
        self._due = [a + most for a, most in zip(self._arrivals, allowed, strict=True)]
        alone = least_times(instance, aim, model)
        self._latest = [due - least for due, least in zip(self._due, alone, strict=True)]

    def best(self, known: int, most: int, should_stop: Callable[[], bool]) -> Attaining | None:
        """Return a run in which more attain than is known, None without one or beyond the limit.

        It is the best one, unless it was asked to stop; none is above ``most``.
        """
        if self._work() > _MOST_WORK:
            return None
        found, seen = None, set[object]()
        nodes: list[Node] = [(0, min(self._arrivals), (), (), ())]
        while nodes and known < most and not should_stop():
            node = nodes.pop()
            _, now, active, starts, _ = node
            begun, going = frozenset(i for i, _ in starts), self._going(active)
            left = [
                i for i, (a, latest) in enumerate(zip(self._arrivals, self._latest, strict=True))
                if i not in begun and max(now, a) <= latest
            ]  # fmt: skip
            if (
                (state := (now, begun, frozenset(active))) in seen
                or len(begun) + len(left) <= known
                or sum(self._prompts[i] + made for i, made in active) > self._instance.memory
                or any(made == self._goals[i] and now > self._due[i] for i, made in active)
            ):
                continue
            seen.add(state)
            if not going and len(begun) > known:
                found, known = node, len(begun)
            if going and self._is_even:
                left = [i for i in left if self._arrivals[i] <= now]
            sizes = range(not going, len(left) + 1)
            chosen = chain.from_iterable(combinations(left, size) for size in sizes)
            nodes += [self._after(node, some) for some in chosen]
        return None if found is None else self._completed(found, known)

    def _work(self) -> int:
        """Count the runs, in which a request begins in any round in time or never, and their steps.

        A step takes longer the more is active, and hardly any run is looked at to its end.
        """
        total, length = sum(self._outputs), self._model.least_ns
        slacks = (late - a for late, a in zip(self._latest, self._arrivals, strict=True))
        return total**2 * prod(min(slack // length, total) + 2 for slack in slacks if slack >= 0)

    def _going(self, active: Pairs) -> Pairs:
        return tuple(pair for pair in active if pair[1] < self._outputs[pair[0]])

    def _after(self, node: Node, chosen: Sequence[int] = ()) -> Node:
        """Return a run with one round more, in which some requests begin."""
        round_, now, active, starts, resumed = node
        begin = max([now, *(self._arrivals[i] for i in chosen)])
        if begin > now or not starts:
            resumed = (*resumed, (round_, begin, 0))
        if self._is_even:
            round_ = begin
        active = tuple(
            (i, made + 1) for i, made in (*self._going(active), *((i, 0) for i in chosen))
        )
        held = sum(self._prompts[i] + made for i, made in active)
        lasts = self._model.round_ns(len(active), sum(self._prompts[i] for i in chosen), held)
        starts = (*starts, *((i, round_) for i in chosen))
        return round_ + 1, begin + lasts, active, starts, resumed

    def _completed(self, node: Node, count: int) -> Attaining:
        """Return a run with all others after it, one by one."""
        late = {*range(len(self._instance))}.difference(i for i, _ in node[3])
        for i in sorted(late, key=self._arrivals.__getitem__):
            node = self._after(node, (i,))
            while self._going(node[2]):
                node = self._after(node)
        starts = tuple(start for _, start in sorted(node[3]))
        return Attaining(count, starts, resumed=() if self._is_even else node[4])
