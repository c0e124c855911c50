"""Every policy against a slow, literal transcription of its paper, and the rules of all."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import pytest
from effort import many
from hypothesis import given
from hypothesis import strategies as st
from literal import chen, jaillet
from literal.common import Job, Run
from strategies import jobs_of

from kvopt import Instance, InvalidInput, Prediction, Request, run
from kvopt.simulate.policies.in_line import SortedLine
from kvopt.simulate.policies.interface import shuffled_ranks

Literal = Callable[[list[Job], int, list[int], list[int]], Run]


def coin(seed: int) -> Callable[[], bool]:
    return jaillet.coins(0.3, seed)


LITERAL: dict[str, Literal] = {
    "fcfs": lambda jobs, m, _, __: jaillet.fcfs(jobs, m),
    "mc-sf": lambda jobs, m, _, __: jaillet.mc_sf(jobs, m),
    "mc-sf:alpha=0.1": lambda jobs, m, _, __: jaillet.mc_sf(jobs, m, alpha="0.1"),
    "mc-sf:pred=lower": lambda jobs, m, low, _: jaillet.mc_sf(jobs, m, low),
    "mc-sf:pred=lower,alpha=0.2": lambda jobs, m, low, _: jaillet.mc_sf(jobs, m, low, alpha="0.2"),
    "fcfs:pred=lower": lambda jobs, m, low, _: jaillet.fcfs(jobs, m, low),
    "mc-sf-total": lambda jobs, m, _, __: jaillet.mc_sf_total(jobs, m),
    "svf:pred=lower": lambda jobs, m, low, _: jaillet.svf(jobs, m, low),
    "svf": lambda jobs, m, _, __: jaillet.svf(jobs, m),
    "svf-1bit:threshold=3,short=2.5,long=7": lambda jobs, m, _, __: jaillet.svf_one_bit(
        jobs, m, threshold=3, short="2.5", long=7
    ),
    "svf-1bit:threshold=2,short=4/3,long=3.2,pred=lower": lambda jobs, m, low, _: (
        jaillet.svf_one_bit(jobs, m, low, threshold=2, short=Fraction(4, 3), long="3.2")
    ),
    "h-sf": lambda jobs, m, _, __: chen.h_sf(jobs, m),
    "h-sf:pred=lower": lambda jobs, m, low, _: chen.h_sf(jobs, m, low),
    "alpha-protect:alpha=0.1": lambda jobs, m, _, __: jaillet.alpha_protect(jobs, m, alpha="0.1"),
    "alpha-protect:alpha=0.3": lambda jobs, m, _, __: jaillet.alpha_protect(jobs, m, alpha="0.3"),
    "alpha-beta:alpha=0.1,beta=0.3,seed=5": lambda jobs, m, _, __: jaillet.alpha_beta(
        jobs, m, alpha="0.1", coin=coin(5), round_limit=10**6
    ),
    "a-max:seed=3": lambda jobs, m, _, rank: chen.a_max(jobs, m, rank=rank),
    "a-min:seed=3": lambda jobs, m, _, rank: chen.a_min(jobs, m, rank=rank),
    "a-random:seed=3": lambda jobs, m, _, rank: chen.a_random(jobs, m, rank=rank),
    "a-random:seed=3,memory=7": lambda jobs, m, _, rank: chen.a_random(
        jobs, m, rank=rank, override=min(m, 7)
    ),
    "a-l": lambda jobs, m, _, __: chen.a_l(jobs, m),
    "a-switch:seed=3": lambda jobs, m, _, rank: chen.a_switch(jobs, m, rank=rank),
}


def drawn(rng: random.Random) -> Instance:
    """Draw a small instance whose intervals are often wrong."""
    memory = rng.randint(2, 14)
    latest = rng.choice([0, 0, 3, 12])
    requests = []
    for _ in range(rng.randint(0, 7)):
        prompt = rng.randint(0, min(memory - 1, rng.choice([0, 2, memory])))
        output = rng.randint(1, memory - prompt)
        low = rng.randint(1, memory - prompt)
        interval = Prediction(low, rng.randint(low, memory - prompt))
        if rng.random() < 0.3:
            interval = Prediction(min(low, output), max(interval.upper, output))
        requests.append(Request(rng.randint(0, latest), prompt, output, predicted=interval))
    return Instance(memory, requests)


@pytest.mark.slow
@pytest.mark.parametrize("text", LITERAL)
def test_policy_does_what_the_paper_says(text: str) -> None:
    rng = random.Random(text)
    slow = text.startswith("alpha-beta")  # the literal version walks through its endless rounds
    for _ in range(many(2 if slow else 250)):
        instance = drawn(rng)
        jobs = jobs_of(instance)
        lows = [job.interval().lower for job in jobs]
        expected = LITERAL[text](jobs, instance.memory, lows, shuffled_ranks(len(jobs), 3))
        found = run(instance, text)
        assert found.outcome == expected.outcome, instance
        assert found.starts == tuple(expected.starts), instance
        assert found.objective == expected.objective
        if expected.outcome == "completed":
            assert found.evictions == expected.evictions


REFUSED = {
    "nonsense": "must be one of",
    "mc-sf:alpha": "key=value",
    "mc-sf:beta=1": "is not a key of mc-sf",
    "mc-sf:alpha=x": "a number",
    "mc-sf:alpha=1/0": "a number",
    "mc-sf:alpha=1": "below 1",
    "mc-sf:alpha=0.1,alpha=0.1": "twice",
    "mc-sf:pred=maybe": "must be one of exact",
    "mc-sf:pred=noise,eps=2": "eps",
    "mc-sf:seed=1.5": "an integer",
    "mc-sf:intervals=rough,width=0": "width",
    "alpha-protect": "needs alpha",
    "alpha-beta:alpha=0.1": "needs beta",
    "alpha-beta:alpha=0.1,beta=0": "above 0",
    "a-random:memory=0": "at least 1",
    "svf-1bit:threshold=0,short=1,long=2": "threshold: must be at least 1",
    "svf-1bit:threshold=3,short=3.5,long=4": "short: must be at least 1 and at most threshold, 3",
    "svf-1bit:threshold=3,short=1/2,long=4": "short: must be at least 1 and at most threshold, 3",
    "svf-1bit:threshold=3,short=2,long=3": "long: must be above threshold, 3, got 3",
    "paced:gap=0": "gap",
    "slo:care=0.5": "care: must be at least 1",
    "sorted-f:phase1=best": "phase1",
    "sorted-lp:means=guess": "means",
    "lp-swap:hindsight=1": "hindsight",
    "svf:preset=serve-h100": "preset: is not a key of svf",
    "vllm-fcfs:preset=serve-h10": "serve-h100",
    "vllm-fcfs:block=0": "block: must be at least 1, got 0",
    "vllm-fcfs:budget=10": "budget: must be at least max_seqs, 1024, got 10",
    "vllm-fcfs:watermark=1": "watermark: must be at least 0 and below 1, got 1",
    "vllm-fcfs": "request 'r0': block: needs 1 blocks of 16 tokens, memory has 0",
    "vllm-fcfs:block=1,max_seqs=1,budget=2,chunked=0":
        "request 'r0': budget: is below the 9 tokens that a round may have to process",
    "vllm-priority:block=1,by=priority": "by: no request has a priority",
    "sglang:page=0": "page: must be at least 1",
    "sglang:conservative=0": "conservative: must be above 0",
    "sglang:page=8": "request 'r0': page: needs 2 blocks of 8 tokens, memory has 1",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_impossible_parameters_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        run(Instance(9, [Request(0, 7, 2)]), text)
    assert REFUSED[text] in str(caught.value)
    assert "\n" not in str(caught.value)


# ---- a line that stays sorted while items join and leave


STEPS = st.lists(st.tuples(st.integers(0, 60), st.lists(st.integers(0, 9), max_size=50)))
"""How many leave, then which join."""


@given(STEPS)
def test_a_sorted_line_is_what_sorting_anew_gives(steps: list[tuple[int, list[int]]]) -> None:
    line: SortedLine[int] = SortedLine()
    expected: list[int] = []
    for leaving, joining in steps:
        for item in expected[::3][:leaving]:
            line.remove(item)
            expected.remove(item)
        for item in joining:
            line.add(item)
        expected += joining
        assert len(line) == len(expected)
        assert line.items() == sorted(expected, reverse=True)
