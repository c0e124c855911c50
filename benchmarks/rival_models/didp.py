"""Domain-independent dynamic programming, with didppy: time goes on by one round at a time.

A state has the set U of requests that have not started, the round t, and for each of the next
rounds the tokens that the requests already started will hold then.  Which of them are active is
not part of it: two states with the same three are one.  In a round the requests that start do so
in order of arrival; ``next`` is the first place in it that still may.  Two kinds of transitions:

* start i of U: it has arrived, is not before ``next``, and for d = 1 .. o_i the tokens held
  d rounds from now and its own s_i + d fit;
* a round passes: the profile moves by one, and each request of U that has arrived waits.

The cost of a round is how many wait, so total latency is the cost and the sum of all o_i.  After
the last arrival t stands still, and states of different rounds become one.  Fewer tokens held are
better at each round (resource variables), and so is a smaller ``next``.

The dual bound is the one of volumes.  In the order of their volumes v, the first m of U to complete
have used at least the m smallest volumes, which takes the sum of them divided by M.  The sum of
all these sums is that of min(v_i, v_j) over the pairs i <= j of U, which a table gives.  From the
completions that it bounds the o_i are taken off, and the rounds until a request arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import didppy

from kvopt.timetable.standard_form import start_order
from rival_models import Offers, Problem

PASS = "a round passes"


def cabs(problem: Problem, offers: Offers) -> None:
    """Complete anytime beam search."""
    _search(problem, offers, didppy.CABS, threads=problem.threads)


def caasdy(problem: Problem, offers: Offers) -> None:
    """Cost-algebraic A*; it has no schedule before the end and gets the known one as a bound."""
    _search(problem, offers, didppy.CAASDy)


def _search(problem: Problem, offers: Offers, solver: Any, **options: Any) -> None:
    instance = problem.instance
    base = instance.total_output
    search = solver(
        model_of(problem),
        primal_bound=problem.known.objective - base + 1,
        time_limit=problem.clock_seconds,
        quiet=True,
        **options,
    )
    ended = False
    while not ended and not problem.over():
        found, ended = search.search_next()
        if found.best_bound is not None:
            offers.bound(base + found.best_bound)
        if found.cost is not None:
            offers.starts(_starts(found.transitions, len(instance)))
        if found.is_optimal:
            offers.bound(base + found.cost)


def _starts(transitions: Any, count: int) -> list[int]:
    starts, clock = [0] * count, 0
    for transition in transitions:
        if transition.name == PASS:
            clock += 1
        else:
            starts[int(transition.name)] = clock
    return starts


def model_of(problem: Problem) -> Any:
    """Return the model; its cost is total latency less the sum of outputs."""
    return _Builder(problem).model


class _Builder:
    """State, transitions and dual bound, one method each."""

    def __init__(self, problem: Problem) -> None:
        self.instance = problem.instance
        self.model = didppy.Model()
        count, self.last = len(self.instance), self.instance.last_arrival
        self.longest = max(request.output for request in self.instance)
        requests = self.model.add_object_type(number=count)
        rounds = self.model.add_object_type(number=self.last + 1)
        self.waiting = self.model.add_set_var(object_type=requests, target=range(count))
        self.clock = self.model.add_element_var(object_type=rounds, target=0)
        self.next = self.model.add_int_resource_var(target=0, less_is_better=True)
        self.held = [
            self.model.add_int_resource_var(target=0, less_is_better=True)
            for _ in range(self.longest)
        ]
        self.model.add_base_case([self.waiting.is_empty()])
        self.starts()
        self.a_round_passes()
        self.dual_bound()

    def starts(self) -> None:
        """A request starts, after those of its shape that arrived before it."""
        requests = self.instance.requests
        earlier = {j: i for i, j in start_order(self.instance)}
        order = sorted(range(len(requests)), key=lambda i: (requests[i].arrival, i))
        for place, i in enumerate(order):
            growing = list(enumerate(self.held[: requests[i].output], requests[i].prompt + 1))
            conditions = [
                self.waiting.contains(i),
                self.next <= place,
                self.clock >= requests[i].arrival,
                *(tokens + own <= self.instance.memory for own, tokens in growing),
            ]
            if i in earlier:
                conditions.append(~self.waiting.contains(earlier[i]))
            effects = [
                (self.waiting, self.waiting.remove(i)),
                (self.next, place + 1),
                *((tokens, tokens + own) for own, tokens in growing),
            ]
            self._transition(str(i), didppy.IntExpr(0), conditions, effects)

    def a_round_passes(self) -> None:
        """A round passes, for which each request waits that has arrived and not started."""
        arrived = self._table(lambda arrival, clock: int(arrival <= clock))
        effects = [
            (self.clock, didppy.min(self.clock + 1, self.last)),
            (self.next, 0),
            *zip(self.held, [*self.held[1:], 0], strict=True),
        ]
        cost = arrived[self.clock, self.waiting]
        self._transition(PASS, cost, [~self.waiting.is_empty()], effects)

    def dual_bound(self) -> None:
        """Completions by volume, less outputs and the rounds until requests arrive."""
        memory, model, waiting = self.instance.memory, self.model, self.waiting
        volumes = [r.output * r.prompt + r.output * (r.output + 1) // 2 for r in self.instance]
        # Both orders of a pair are in this table, so what stands for i and i counts twice.
        pairs = model.add_int_table(
            [
                [min(v, w) * (1 + (i == j)) for j, w in enumerate(volumes)]
                for i, v in enumerate(volumes)
            ]
        )
        outputs = model.add_int_table([request.output for request in self.instance])
        until = self._table(lambda arrival, clock: max(0, arrival - clock))
        completions = (pairs[waiting, waiting] + 2 * memory - 1) // (2 * memory)
        least = completions - outputs[waiting] - until[self.clock, waiting]
        model.add_dual_bound(didppy.max(least, 0))

    def _table(self, value: Callable[[int, int], int]) -> Any:
        """Return a table of values of each round and each request."""
        rounds = range(self.last + 1)
        return self.model.add_int_table(
            [[value(request.arrival, clock) for request in self.instance] for clock in rounds]
        )

    def _transition(self, name: str, cost: Any, conditions: list[Any], effects: list[Any]) -> None:
        self.model.add_transition(
            didppy.Transition(
                name=name,
                cost=cost + didppy.IntExpr.state_cost(),
                preconditions=conditions,
                effects=effects,
            )
        )
