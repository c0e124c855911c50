"""Runs with shared prefixes in which requests wait for later turns of their conversation."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import drawn_with_prefixes

from kvopt import BatchTime, Instance, Line, Request, generate
from kvopt.heuristics.seconds.server_search import offer_work
from kvopt.heuristics.seconds.waiting_turns import _Conversations, search_conversations
from kvopt.heuristics.seconds.worker_moves import offer_one_by_one
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.budget import Budget
from kvopt.problem.clocks import Seconds
from kvopt.problem.problem import Problem
from kvopt.problem.scopes import Scope

pytestmark = [pytest.mark.usefixtures("processor_clock"), pytest.mark.slow]

CLOCK = Seconds(BatchTime([Line(90, 1), Line(0, 10)], kv_ns=3, prompt_ns=2))


def timed(instance: Instance, nanoseconds: int) -> Instance:
    """Return an instance in which a round of arrivals lasts so long."""
    rows = [replace(r, arrival_seconds=r.arrival * nanoseconds / 10**9) for r in instance]
    return replace(instance, requests=rows)


def steps(count: int) -> Budget:
    """Return a budget that is over when it was asked so many times."""
    left = iter(range(count))
    return Budget(until=lambda: next(left, None) is None)


@examples(60)
@given(
    seed=st.integers(0, 10**6),
    late=st.sampled_from((0, 5, 60)),
    tokens=st.sampled_from((1, 2, 5, 2**31)),
    heaviest=st.sampled_from((1, 4)),
)
def test_runs_are_valid_and_as_long_as_the_loops_say(
    seed: int, late: int, tokens: int, heaviest: int
) -> None:
    instance = timed(drawn_with_prefixes(seed, 6), late)
    random = Random(seed)
    rows = [replace(r, weight=random.randint(1, heaviest)) for r in instance]
    instance = replace(instance, requests=rows)
    scope = Scope.parse("sharing" if tokens == 2**31 else "sharing+chunks")
    search = Search(Problem(instance, clock=CLOCK, scope=scope))
    server = _Conversations(instance, CLOCK, (tokens,))
    point = server.improved(server.first(Budget()), steps(40), random)
    offer_work(search, "conversations", [server.events(point)])
    assert search.best is not None
    assert search.best.objective == point.latency
    assert search.best.violations() == []


def test_the_least_work_of_a_weight_is_first() -> None:
    """Of two conversations the larger one counts more, for its work as well."""
    light, heavy = Request(0, 9, 5, prefix=(0,)), Request(0, 12, 5, prefix=(1,), weight=3)
    rows = Instance(18, [light, heavy], block_tokens=4)
    server = _Conversations(rows, CLOCK, (64,))
    starts = server.first(Budget()).starts
    assert starts[1] < starts[0]


def test_a_turn_waits_for_the_next_one_where_many_wait() -> None:
    """Both compute their 900 tokens once, and ten small requests wait less."""
    turn = Request(0, 900, 60, prefix=tuple(range(9)))
    others = [Request(1, 40, 5) for _ in range(10)]
    later = replace(turn, arrival=3_000)
    chat = timed(Instance(1_000, [turn, *others, later], block_tokens=100), 1)
    server = _Conversations(chat, CLOCK, (64,))
    point = server.first(Budget())
    assert point.waits_for == [11, *[-1] * 11]
    alone = server._settled(server._alone, point.choices._replace(releases=server._arrivals))
    assert point.latency < alone.latency


@pytest.mark.parametrize("workers", [1, 2])
def test_a_search_improves_what_it_begins_with(workers: int) -> None:
    chats = generate("sessions", n=40, memory=20_000, seed=1)
    rows = [replace(r, arrival=0, arrival_seconds=i / 10**6) for i, r in enumerate(chats)]
    chats = Instance(20_000, rows, block_tokens=16, workers=workers)
    search = Search(Problem(chats, clock=CLOCK, scope=Scope.parse("sharing+chunks")))
    # The first run deals requests out in turn.
    offer_one_by_one(search)
    assert search.best is not None
    before, members = search.best.objective, search.best.members
    search_conversations(search, Budget(1.0))
    assert search.best.objective < before
    assert search.best.members == members
    assert search.found_by == "conversations"
