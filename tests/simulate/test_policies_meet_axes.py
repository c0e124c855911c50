"""Every policy on both clocks, on one machine and two, with blocks, cap, weights and prefixes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from literal_rules import broken_rule, ends_of

from kvopt import BatchTime, Instance, Line, Outcome, Request, list_policies, run
from kvopt.problem.clocks import ROUNDS, Clock, Seconds
from kvopt.simulate.routers import Load, SoonestToken

CLOCK = Seconds(BatchTime([Line(20, 1), Line(12, 2)], kv_ns=1, prompt_ns=5))
KEYS = {
    "svf-1bit": ":threshold=2,short=1,long=3", "k-lpm": ":k=2",
    "alpha-protect": ":alpha=1/5", "alpha-beta": ":alpha=0,beta=1/2",
    "a-min": ":intervals=relative,eps=0.9", "sorted-f-a-min": ":intervals=relative,eps=0.5",
}  # fmt: skip
SERVERS = ("vllm-fcfs", "vllm-priority", "sglang")
LIMITS = ("", "max_seqs=2,budget=3,asynchronous=1", "max_seqs=3,budget=4,watermark=0.2")
RULES = ("", "order=lpm", "conservative=0.1,pred=noise,eps=0.9,order=lpm", "mixed=1,prefill=5")
PAPERS = [name for name in list_policies() if name not in SERVERS]


@dataclass
class Combination:
    instance: Instance
    clock: Clock
    router: str


@st.composite
def combinations(draw: st.DrawFn) -> Combination:
    block = draw(st.sampled_from([1, 1, 2, 3]))
    unit = block * draw(st.integers(1, 2))
    blocks = draw(st.integers(2, 12))
    memory = blocks * block + draw(st.integers(0, block - 1))
    has_prefixes, has_weights = draw(st.booleans()), draw(st.booleans())
    paths: list[tuple[str, ...]] = [(), ("a",), ("a", "b"), ("a", "c"), ("d",)]
    requests, arrival = [], 0
    for _ in range(draw(st.integers(1, 8))):
        peak = draw(st.integers(1, blocks * block))
        output = draw(st.integers(1, peak))
        path = draw(st.sampled_from(paths))[: (peak - output) // unit * has_prefixes]
        arrival += draw(st.sampled_from([0, 0, 0, 1, 4]))
        weight = draw(st.integers(1, 3)) if has_weights else 1
        seconds = arrival * 37 / 10**9
        requests.append(
            Request(
                arrival, peak - output, output, arrival_seconds=seconds, weight=weight, prefix=path
            )
        )
    instance = Instance(
        memory, requests, workers=draw(st.integers(1, 2)), block_size=block,
        max_active=draw(st.sampled_from([None, None, 1, 2, 3])), block_tokens=unit,
    )  # fmt: skip
    routers = [
        "central", "least-requests", "longest-prefix", "round-robin", "least-tokens",
        "soonest-token:tokens=4",
    ]  # fmt: skip
    return Combination(
        instance, draw(st.sampled_from([ROUNDS, CLOCK])), draw(st.sampled_from(routers))
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
@examples(60)
@given(drawn=combinations())
def test_every_policy_obeys_everything(name: str, drawn: Combination) -> None:
    found = run(drawn.instance, name + KEYS.get(name, ""), clock=drawn.clock, router=drawn.router)
    assert found.violations() == []
    assert broken_rule(found) is None
    if drawn.instance.workers == 1:
        times, held = found.memory_over_time()
        assert times == sorted(times)
        assert max(held) == found.peak_memory <= drawn.instance.memory
    assert found.is_complete or (found.outcome is Outcome.LIVELOCK and found.note)


@pytest.mark.slow
@pytest.mark.parametrize("name", SERVERS)
@examples(200)
@given(drawn=combinations(), place=st.integers(0, 3))
def test_every_server_obeys_everything(name: str, drawn: Combination, place: int) -> None:
    is_sglang = name == "sglang"
    block, limits = "page" if is_sglang else "block", (RULES if is_sglang else LIMITS)
    keys = ",".join(
        filter(None, (f"{block}={drawn.instance.block_size}", limits[place % len(limits)]))
    )
    router = "least-requests" if drawn.router == "central" else drawn.router
    found = run(drawn.instance, f"{name}:{keys}", clock=drawn.clock, router=router)
    assert found.is_complete
    assert found.violations() == []
    assert broken_rule(found) is None
    if not drawn.clock.is_even:
        assert list(found.completions) == ends_of(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SERVERS, "fcfs", "h-sf"])
@examples(100)
@given(drawn=combinations())
def test_nothing_is_unprocessed_after_the_last_completion(name: str, drawn: Combination) -> None:
    """What routers see of waiting tokens goes down to 0, whatever was cached, paused or lost."""
    block = {"sglang": "page", "fcfs": "", "h-sf": ""}.get(name, "block")
    keys = block and f"{block}={drawn.instance.block_size}"
    servers = list[Load]()

    class Seen(SoonestToken):
        def choose(self, loads: Sequence[Load], prompt: int, output: int) -> int:
            servers[:] = loads
            assert min(load.unprocessed for load in loads) >= 0
            return super().choose(loads, prompt, output)

    found = run(drawn.instance, f"{name}:{keys}", clock=drawn.clock, router=Seen(tokens=4))
    if drawn.instance.workers > 1 and found.is_complete:
        assert {load.unprocessed for load in servers} == {0}
