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

from itertools import pairwise
from typing import Any

import didppy

from kvopt.model.schedule import identical_groups
from rival_models import Offers, Problem


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
        if transition.name == "pass":
            clock += 1
        else:
            starts[int(transition.name)] = clock
    return starts


def model_of(problem: Problem) -> Any:
    """Return the model; its cost is total latency less the sum of outputs."""
    instance = problem.instance
    requests, count, memory = instance.requests, len(instance), instance.memory
    longest = max(request.output for request in instance)
    last = max(request.arrival for request in instance)
    model = didppy.Model()
    request_type = model.add_object_type(number=count)
    round_type = model.add_object_type(number=last + 1)
    waiting = model.add_set_var(object_type=request_type, target=range(count))
    clock = model.add_element_var(object_type=round_type, target=0)
    following = model.add_int_resource_var(target=0, less_is_better=True)
    held = [model.add_int_resource_var(target=0, less_is_better=True) for _ in range(longest)]
    rounds = range(last + 1)
    arrived = model.add_int_table([[int(r.arrival <= t) for r in requests] for t in rounds])
    until = model.add_int_table([[max(0, r.arrival - t) for r in requests] for t in rounds])

    earlier = {j: i for group in identical_groups(instance) for i, j in pairwise(group)}
    order = sorted(range(count), key=lambda i: (requests[i].arrival, i))
    for place, i in enumerate(order):
        request = requests[i]
        growing = list(enumerate(held[: request.output], request.prompt + 1))
        model.add_transition(
            didppy.Transition(
                name=str(i),
                cost=didppy.IntExpr.state_cost(),
                preconditions=[
                    waiting.contains(i),
                    following <= place,
                    *([clock >= request.arrival] if request.arrival else []),
                    *([~waiting.contains(earlier[i])] if i in earlier else []),
                    *(tokens + own <= memory for own, tokens in growing),
                ],
                effects=[
                    (waiting, waiting.remove(i)),
                    (following, place + 1),
                    *((tokens, tokens + own) for own, tokens in growing),
                ],
            )
        )
    model.add_transition(
        didppy.Transition(
            name="pass",
            cost=arrived[clock, waiting] + didppy.IntExpr.state_cost(),
            preconditions=[~waiting.is_empty()],
            effects=[
                (clock, didppy.min(clock + 1, last)),
                (following, 0),
                *zip(held, [*held[1:], 0], strict=True),
            ],
        )
    )
    model.add_base_case([waiting.is_empty()])
    volumes = [r.output * r.prompt + r.output * (r.output + 1) // 2 for r in requests]
    # Pairs are in this table twice, so what stands for one of i and i is too.
    pairs = model.add_int_table(
        [[min(v, w) * (1 + (i == j)) for j, w in enumerate(volumes)] for i, v in enumerate(volumes)]
    )
    outputs = model.add_int_table([request.output for request in requests])
    completions = (pairs[waiting, waiting] + 2 * memory - 1) // (2 * memory)
    model.add_dual_bound(didppy.max(completions - outputs[waiting] - until[clock, waiting], 0))
    return model
