"""Servers, with prefix caching and without: vLLM's blocks, queue and hashes written literally."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from literal_rules import broken_rule
from routed import Sent
from served import CLOCK, Case, cases, in_stretches

from kvopt import Instance, InvalidInput, Request, Schedule, run
from kvopt.problem.clocks import ROUNDS, Clock
from kvopt.timetable.policy_run import PolicyRun
from kvopt.timetable.work_intervals import Chunks


def hits(found: PolicyRun) -> list[list[int]]:
    """Return the cached tokens of each admission that found some, by request."""
    rows: dict[int, list[int]] = defaultdict(list)
    for piece in sorted(found.chunks):
        rows[piece.request] += [piece.cached] * (piece.cached > 0)
    return [rows[i] for i in range(len(found.instance))]


@examples(800)
@given(cases() | cases(prefixes=False), st.sampled_from([ROUNDS, CLOCK]))
def test_rounds_seconds_and_hits_are_those_of_literal_blocks(case: Case, clock: Clock) -> None:
    found, (server, ones) = run(case.instance, case.policy, clock=clock), case.literal(clock)
    assert found.completions == tuple(one.completed for one in ones)
    blocks = replace(found, instance=replace(case.instance, block_size=case.limits["block"]))
    assert not blocks.violations(), (blocks.segments, blocks.chunks)
    assert broken_rule(blocks) is None
    if clock is CLOCK:
        assert hits(found) == [one.hits for one in ones]
        return
    assert found.segments == tuple(in_stretches(one.times) for one in ones)
    assert server.most_used * case.limits["block"] <= case.instance.memory
    if "prefix" not in case.instance.extras:  # the server counts kept blocks too
        assert found.peak_memory <= server.most_used * case.limits["block"]


CHAT = Instance(12, [Request(t, 8, 2, prefix=("a", "b")) for t in (0, 0, 4)], block_tokens=4)
"""The third finds what the first two have left."""


def changed(found: PolicyRun, place: int, **changes: Any) -> list[str]:
    chunks = [*found.chunks]
    chunks[place] = chunks[place]._replace(**changes)
    return replace(found, chunks=chunks).violations()


def test_what_is_found_was_computed_and_stayed() -> None:
    chat = replace(CHAT, round_ms=0.001)
    found = run(chat, "vllm-fcfs:block=4,max_seqs=2", clock=CLOCK)
    assert [(piece.request, piece.cached) for piece in found.chunks] == [(1, 8), (2, 8)]
    assert found.violations() == []
    assert "cannot process" in changed(found, 0, cached=9)[0]
    only = replace(chat, requests=chat.requests[:1])
    first = Schedule(only, segments=[[(1, 2)]], clock=CLOCK, chunks=[Chunks(0, 0, (), cached=4)])
    assert "finds 4 tokens at 0 that were not computed" in first.violations()[0]


def test_two_do_not_find_what_only_the_other_one_would_have() -> None:
    pair = replace(CHAT, requests=CHAT.requests[:2], round_ms=0.001)
    rows, both = [[(1, 2)], [(1, 2)]], [Chunks(0, 0, (), cached=8), Chunks(1, 0, (), cached=8)]
    made = Schedule(pair, segments=rows, clock=CLOCK, chunks=both)
    assert "were not computed" in made.violations()[0]
    half = [both[0]._replace(cached=4), both[1]]
    assert "finds 4 tokens" in replace(made, chunks=half).violations()[0]
    assert replace(made, chunks=both[1:]).violations() == []


def test_kept_tokens_take_memory() -> None:
    """The block of the first stays while the second holds all memory but one token."""
    rows = [Request(0, 4, 1, prefix=("a",)), Request(0, 1, 3), Request(0, 4, 1, prefix=("a",))]
    times = [[(1, 1)], [(2, 4)], [(5, 5)]]
    for memory, said in ((8, []), (7, ["time 4: 8 tokens held, memory is 7"])):
        chat = Instance(memory, rows, block_tokens=4)
        made = Schedule(chat, segments=times, clock=CLOCK, chunks=[Chunks(2, 4, (), cached=4)])
        assert made.violations() == said
        blocks = replace(made, instance=replace(chat, block_size=2))
        assert bool(blocks.violations()) == bool(said)
        assert replace(made, chunks=()).violations() == []


def test_blocks_of_a_server_must_divide_those_of_prefixes() -> None:
    with pytest.raises(InvalidInput, match="block: is 16, which does not divide block_tokens, 4"):
        run(replace(CHAT, memory=64), "vllm-fcfs")


@examples(60)
@given(
    cases() | cases(prefixes=False),
    st.lists(st.integers(0, 1), min_size=12, max_size=12),
    st.booleans(),
)
def test_servers_of_a_fleet_are_literal_servers_of_what_is_sent_to_them(
    case: Case, to: list[int], in_seconds: bool
) -> None:
    clock = CLOCK if in_seconds else ROUNDS
    fleet = replace(case.instance, workers=2)
    found = run(fleet, case.policy, router=Sent(to=to), clock=clock)
    assert found.violations() == []
    for worker, members in enumerate(found.members):
        assert all(to[i] == worker for i in members)
        own = replace(case, instance=case.instance.of_one_worker(members))
        _, ones = own.literal(clock, caching="prefix" in fleet.extras)
        assert [found.completions[i] for i in members] == [one.completed for one in ones], worker
        if clock.is_even:
            stretches = [in_stretches(one.times) for one in ones]
            assert [found.segments[i] for i in members] == stretches


def test_sglang_sorts_by_matches() -> None:
    """Those of a pass the one of b; two that are admitted together find nothing of each other."""
    rows = [(0, "a"), (0, "b"), (0, "a"), (0, "a")]
    requests = [Request(t, 5, 3, prefix=(name,)) for t, name in rows]
    chat = Instance(20, requests, block_tokens=4)
    by_match = run(chat, "sglang:max_running=1,order=lpm", clock=CLOCK)
    assert hits(by_match) == [[], [], [4], [4]]
    assert by_match.starts == (0, 9, 3, 6)
    assert run(chat, "sglang:max_running=1", clock=CLOCK).starts == (0, 3, 6, 9)
    together = run(replace(chat, memory=99), "sglang", clock=CLOCK)
    assert together.starts == (0, 0, 0, 0)
    assert not together.finds_tokens


def test_sglang_keeps_tokens_of_those_that_wait_for_a_prefill() -> None:
    """The second one is admitted while the first yields nothing; nothing is processed twice."""
    pair = Instance(20, [Request(0, 2, 4), Request(2, 3, 2)], round_ms=0.0001)
    found = run(pair, "sglang", clock=CLOCK)
    assert found.segments == (((1, 2), (4, 5)), ((3, 4),))
    assert found.chunks == (Chunks(0, 3, (), cached=4),)
    assert sum(stretch.prompts for stretch in found.stretches) == 5
    tight = replace(found, instance=replace(pair, memory=7))
    assert "time 3: 8 tokens held, memory is 7" in tight.violations()
