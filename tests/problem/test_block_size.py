"""Instances whose memory is given out in whole blocks: files, checks, relations, refusals."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from effort import many
from strategies import drawn_in_blocks

from kvopt import Instance, InvalidInput, Request, Schedule, export, run

FIVE = Instance(22, [Request(0, 3, 9), Request(1, 2, 7), Request(2, 5, 4)], block_size=4)


def test_a_request_that_needs_more_blocks_than_there_are() -> None:
    with pytest.raises(InvalidInput, match=r"'r0': output: needs 3 blocks of 4 tokens, .* has 2"):
        Instance(11, [Request(0, 3, 6)], block_size=4)


def test_a_schedule_that_fits_in_tokens_and_not_in_blocks() -> None:
    pair = Instance(8, [Request(0, 0, 2), Request(0, 0, 2), Request(0, 0, 1)])
    assert Schedule(pair, (0, 0, 0)).check().feasible
    blocks = Instance(8, pair.requests, block_size=4)
    said = Schedule(blocks, (0, 0, 0)).check().violations
    assert said == ("time 1: 3 blocks of 4 tokens held, there are 2",)
    assert Schedule(blocks, (0, 0, 2)).check().feasible


def test_what_fits_inflated_fits_into_blocks_and_what_fits_these_into_their_tokens() -> None:
    inflated = tokens = 0
    for seed in range(many(200)):
        source = random.Random(seed)
        instance = drawn_in_blocks(source)
        times = [sorted(source.sample(range(r.arrival + 1, 14), r.output)) for r in instance]
        ways = (instance.inflated(), instance, instance.in_tokens())
        fits = [Schedule.at_times(way, times).check().feasible for way in ways]
        assert fits == sorted(fits)
        inflated, tokens = inflated + fits[0], tokens + (fits[2] and not fits[1])
        assert all(r.peak <= ways[0].memory for r in ways[0])
    assert inflated > 0
    assert tokens > 0


def test_what_counts_tokens_only_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"block_size: is 4: .* counts tokens"):
        export(FIVE, tmp_path / "model.lp")
    assert not list(tmp_path.iterdir())


def test_servers_take_the_blocks_of_the_instance() -> None:
    made = run(FIVE, "vllm-fcfs")
    assert made.objective == run(Instance(22, FIVE.requests), "vllm-fcfs:block=4").objective
    assert run(FIVE, "vllm-fcfs:block=4").starts == made.starts
    assert run(FIVE, "sglang").objective == run(FIVE, "sglang:page=4").objective
    for name in ("vllm-fcfs:block=8", "sglang:page=2"):
        with pytest.raises(InvalidInput, match="the instance has blocks of 4 tokens"):
            run(FIVE, name)


@pytest.mark.parametrize("policy", ["fcfs", "svf", "mc-sf", "alpha-protect:alpha=0.1", "a-min"])
def test_other_policies_count_what_a_block_may_waste(policy: str) -> None:
    made = run(FIVE, policy)
    assert made.instance is FIVE
    assert made.starts == run(FIVE.inflated(), policy).starts
    assert "3 tokens more" in str(made.note)
    assert not made.violations()
