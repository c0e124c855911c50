"""Servers that pause requests: worked cases, presets, routers and refusals."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from commands import Run
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from routed import assert_routed
from served import CLOCK, Case, cases

from kvopt import Instance, InvalidInput, Prediction, Request, certify, write_instance
from kvopt import run as simulate
from kvopt.errors import Stopped
from kvopt.problem.clocks import ROUNDS
from kvopt.problem.scopes import Scope
from kvopt.simulate.policies.by_name import policy
from kvopt.timetable.policy_run import PolicyRun
from kvopt.timetable.work_intervals import Chunks

pytestmark = pytest.mark.usefixtures("processor_clock")


def test_tokens_are_kept_and_nothing_is_admitted_in_the_round_of_a_pause() -> None:
    requests = [Request(0, s, o) for s, o in ((2, 7), (2, 2), (4, 9), (0, 5))]
    found = simulate(Instance(16, requests), "vllm-fcfs:block=1")
    assert found.segments == (((1, 7),), ((1, 2),), ((1, 5), (8, 11)), ((1, 3), (8, 9)))
    assert (found.objective, found.pauses) == (29, 2)
    assert found.to_json()["segments"] == found.segments
    assert found.first_tokens == (1, 1, 1, 1)


def test_whole_blocks_leave_less_room() -> None:
    instance = Instance(16, [Request(0, 0, 5), Request(0, 0, 5), Request(0, 0, 5)])
    together = simulate(instance, "vllm-fcfs:block=1")
    apart = simulate(instance, "vllm-fcfs:block=8")
    assert (together.objective, apart.objective) == (15, 20)


def test_prompts_in_pieces_yield_no_token_until_the_last() -> None:
    instance = Instance(50, [Request(0, 0, 8), Request(0, 9, 2)])
    found = simulate(instance, "vllm-fcfs:block=1,max_seqs=4,budget=4")
    assert found.chunks == (Chunks(1, 0, (3, 3, 3)),)
    assert found.segments == (((1, 8),), ((4, 5),))
    assert found.peak_memory == 5 + 9 + 2


@pytest.mark.parametrize(
    ("by", "first"), [("output", 1), ("volume", 0), ("prediction", 2), ("priority", 3)]
)
def test_the_smallest_value_of_by_starts_first(by: str, first: int) -> None:
    requests = [
        Request(0, 0, 4, predicted=Prediction(8, 8)),
        Request(0, 9, 3, predicted=Prediction(9, 9)),
        Request(0, 4, 5, predicted=Prediction(1, 2)),
        Request(0, 5, 6, predicted=Prediction(9, 9), priority=-1),
    ]
    found = simulate(Instance(14, requests), f"vllm-priority:by={by},block=1,max_seqs=1")
    assert found.starts[first] == 0


def test_runs_are_checked() -> None:
    instance = Instance(9, [Request(2, 3, 2)])
    found = simulate(instance, "vllm-fcfs:block=1")
    assert found.violations() == []

    known: dict[str, Any] = {each.name: getattr(found, each.name) for each in fields(found)}

    def violation(**changes: object) -> str:
        return PolicyRun(**{**known, **changes}).violations()[0]

    with pytest.raises(InvalidInput, match="hold 1 times for 2 tokens"):
        violation(segments=(((3, 3),),))
    with pytest.raises(InvalidInput, match="not those of the last"):
        violation(starts=(3,))
    assert "starts at 1, arrives at 2" in violation(segments=(((2, 3),),), starts=(1,))
    assert "cannot process" in violation(chunks=(Chunks(0, 1, (9,)),))
    assert "runs twice" in violation(chunks=(Chunks(0, 2, (1,)),))
    later = {"segments": (((5, 6),),), "starts": (4,)}
    apart, same = Chunks(0, 2, (1,)), Chunks(0, 3, (2,))
    assert PolicyRun(**{**known, **later, "chunks": (same, apart)}).violations() == []
    assert "runs twice" in violation(**later, chunks=(same, same))
    assert "runs twice" in violation(**later, chunks=(Chunks(0, 2, (1, 1)), same))
    assert "cannot process" in violation(**later, chunks=(Chunks(0, 6, (1,)),))
    assert "of which there is none" in violation(**later, chunks=(Chunks(1, 2, (1,)),))


def test_the_command_says_how_often_requests_paused(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "i.json"
    requests = [Request(0, s, o) for s, o in ((2, 7), (2, 2), (4, 9), (0, 5))]
    write_instance(Instance(16, requests), path)
    out = run.done("run", path, "-P", "vllm-fcfs:block=1")[0]
    assert "2 pauses" in out
    out = run.done("run", path, "-P", "vllm-fcfs:block=1", "-o", tmp_path / "s.json", "--json")[0]
    found = json.loads((tmp_path / "s.json").read_text())
    assert found["schema"] == "kvopt.schedule/2"
    assert found["segments"] == json.loads(out)["policies"][0]["segments"]
    run.done("plot", path, "-P", "vllm-fcfs:block=1", "-o", tmp_path / "p.svg")
    assert "2 pauses" in (tmp_path / "p.svg").read_text()


def test_the_youngest_is_retracted_and_goes_on_at_the_end_of_the_line() -> None:
    requests = [Request(0, 2, 8), Request(0, 3, 8), Request(0, 1, 8)]
    found = simulate(
        Instance(16, requests), "sglang:conservative=0.01,mixed=1,pred=lower,intervals=rough"
    )
    assert found.segments == (((1, 6), (14, 15)), ((1, 3), (9, 13)), ((1, 8),))
    assert found.note == "2 pauses, 2 of them retractions"


def test_prompts_alone_hold_up_those_that_run() -> None:
    instance = Instance(20, [Request(0, 2, 4), Request(2, 3, 2)])
    apart, mixed = simulate(instance, "sglang"), simulate(instance, "sglang:mixed=1")
    assert apart.segments == (((1, 2), (4, 5)), ((3, 4),))
    assert (apart.objective, mixed.objective) == (7, 6)


def test_a_prompt_that_is_preempted_half_way_is_processed_from_its_start() -> None:
    instance = Instance(11, [Request(0, 0, 6), Request(0, 0, 5), Request(1, 6, 1)])
    found = simulate(instance, "vllm-fcfs:block=1,max_seqs=3,budget=4")
    assert found.chunks == (Chunks(2, 1, (2, 2)), Chunks(2, 6, (4,)))
    assert [stretch.prompts for stretch in found.stretches] == [0, 2, 2, 0, 0, 4, 2]


def test_the_scope_of_a_retraction_is_that_of_pauses() -> None:
    found = certify(Instance(4, [Request(0, 0, 3)] * 2), ["sglang"], time_limit=1)
    assert found.scope is Scope.PAUSES


# ---- fleets ---------------------------------------------------------------------------------


@examples(40)
@given(cases(prefixes=False), st.booleans())
def test_routers_see_what_is_at_servers(case: Case, in_seconds: bool) -> None:
    case = replace(case, limits={**case.limits, "block": 1, "asynchronous": 0})
    fleet = replace(case.instance, workers=2, block_size=1)
    assert_routed(fleet, case.policy, CLOCK if in_seconds else ROUNDS)


def test_notes_of_a_fleet_count_all_pauses() -> None:
    requests = [Request(0, s, o) for s, o in ((2, 7), (2, 2), (4, 9), (0, 5))]
    fleet = Instance(16, [r for r in requests for _ in range(2)], workers=2)
    found = simulate(fleet, "vllm-fcfs:block=1", router="round-robin")
    assert (found.objective, found.note) == (
        58,
        "budget 2,048, 1,024 requests; 4 pauses with tokens kept",
    )
    assert found.schedule is not None
    assert (found.schedule.pauses, found.schedule.objective) == (4, 58)
    said = found.to_json()
    assert (said["pauses"], said["workers"]) == (4, [0, 1] * 4)
    assert said["segments"][6] == ((1, 3), (8, 9))
    assert found.facts()["pauses"] == 4
    with pytest.raises(Stopped):
        simulate(fleet, "vllm-fcfs", router="random", should_stop=lambda: True)


# ---- presets ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("vllm-fcfs", (2048, 1024, False)),
        ("vllm-fcfs:preset=serve-h100", (8192, 1024, True)),
        ("vllm-priority:preset=serve-a100,by=volume", (2048, 256, True)),
        ("vllm-fcfs:preset=serve-h100-0.13", (8192, 1024, False)),
        ("vllm-fcfs:max_seqs=64,preset=serve-b200,asynchronous=0", (16384, 64, False)),
    ],
)
def test_presets_are_the_defaults_of_versions_and_machines(
    text: str, limits: tuple[int, int, bool]
) -> None:
    """Other keys beside a preset replace its values."""
    found: Any = policy(text)
    assert (found.budget, found.max_seqs, found.asynchronous) == limits
    budget, requests, is_asynchronous = limits
    made = simulate(Instance(160, [Request(0, 3, 2)]), text)
    more = ", asynchronous" * is_asynchronous
    assert made.note == f"budget {budget:,}, {requests:,} requests{more}"


def test_a_preset_of_sglang_has_the_prompts_of_a_round() -> None:
    found: Any = policy("sglang:preset=serve-a10")
    assert (found.prefill, found.max_running) == (4096, 2048)


def test_presets_are_listed_with_the_policies_that_have_them(run: Run) -> None:
    rows = {row["policy"]: row["parameters"] for row in run.json("policies")["policies"]}
    assert rows["vllm-fcfs"]["preset"].startswith("serve-h100|")
    assert "preset" not in rows["svf"]
