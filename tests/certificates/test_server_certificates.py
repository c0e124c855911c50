"""Runs of vLLM and SGLang in seconds: what they find in a cache is written, read and checked."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from certificates import claiming
from effort import many
from known import known

from kvopt import (
    BatchTime,
    Instance,
    Line,
    Request,
    bound,
    certify,
    run,
    solve,
    verify,
    write_certificate,
)
from kvopt.certificates.certificate_files import read_certificate, run_from_json, run_to_json
from kvopt.errors import InvalidInput
from kvopt.problem.clocks import Seconds
from kvopt.problem.problem import Problem
from kvopt.timetable.policy_run import PolicyRun
from kvopt.timetable.work_intervals import Chunks
from kvopt.verify.certificate_shape import certificate_of
from kvopt.verify.report import report_on
from kvopt.verify.step_budget import Invalid, Unreadable, Work

pytestmark = pytest.mark.usefixtures("processor_clock")


class Served(NamedTuple):
    """A run of a server, and how it was asked for."""

    policy: str
    made: PolicyRun
    source: random.Random

    @property
    def claim(self) -> dict[str, Any]:
        said = {"policy": self.policy, "outcome": "completed", **run_to_json(self.made)}
        copied: dict[str, Any] = json.loads(json.dumps(said))
        return copied


def served(seed: int) -> Served:
    """Draw requests with prefixes, blocks, caps and weights, and let one or two servers run."""
    source = random.Random(seed)
    block = source.choice((1, 1, 2, 3))
    unit = block * source.randint(1, 3)
    parents = [source.randint(-1, v - 1) for v in range(source.randint(1, 5))]
    shares, time, rows = source.random() < 0.85, 0, []
    for _ in range(source.randint(1, 14)):
        node, path = source.randint(-1, len(parents) - 1) if shares else -1, list[str]()
        while node >= 0:
            path.insert(0, f"b{node}")
            node = parents[node]
        time += source.choice((0, 0, 0, 60, 700))
        rows.append(
            Request(
                0, len(path) * unit + source.randint(0, 9), source.randint(1, 12),
                arrival_seconds=time * 1e-9, weight=source.choice((1, 1, 3)), prefix=path,
            )
        )  # fmt: skip
    largest = max(-(-(row.peak + 1) // block) * block for row in rows)
    instance = Instance(
        largest + block * source.choice((0, 1, 3, 8, 20)),
        rows,
        workers=source.choice((1, 1, 2)),
        block_size=block,
        block_tokens=unit if any(row.prefix for row in rows) else None,
        max_active=source.choice((None, None, 2, 3)),
    )
    lines = [Line(source.randint(1, 90), source.randint(0, 5)), Line(0, source.randint(1, 20))]
    model = BatchTime(lines[: source.randint(1, 2)], source.choice((0, 3)), source.choice((0, 2)))
    most = source.choice((1, 2, 3, 100))
    limits = f"block={block},max_seqs={most},budget={most + source.choice((0, 1, 5, 40))}"
    policy = source.choice(
        (
            f"vllm-fcfs:{limits},asynchronous={source.randint(0, 1)}",
            f"vllm-priority:by=volume,{limits}",
            f"sglang:page={block},max_running={most},conservative={source.choice(('1', '0.1'))}",
            f"sglang:page={block},order=lpm,conservative=0.1",
            f"sglang:page={block},mixed=1,conservative=0.1",
        )
    )
    made = run(instance, policy, clock=Seconds(model), router=_router(instance))
    return Served(policy, made, source)


def _router(instance: Instance) -> str:
    return "least-requests" if instance.workers > 1 else "central"


def refusal(instance: Instance, made: PolicyRun, claim: dict[str, Any]) -> str:
    """Return why the checker refuses a certificate with this run alone, empty if it does not."""
    scope = "sharing+" * ("prefix" in instance.extras) + "pauses+chunks"
    clock, work = known(made.clock.model).to_json(), Work()
    certificate = claiming(instance, clock=clock, scope=scope, policies=[claim])
    try:
        report_on(certificate_of(json.dumps(certificate), work), work)
    except (Invalid, Unreadable) as error:
        return str(error)
    return ""


@pytest.mark.slow
def test_checker_and_package_agree_on_drawn_runs() -> None:
    kinds = set[str]()
    for seed in range(many(300)):
        policy, made, _ = drawn = served(seed)
        instance = made.instance
        assert not refusal(instance, made, drawn.claim), (seed, policy)
        back = run_from_json(drawn.claim, instance, made.clock)
        assert (back.objective, sorted(back.chunks)) == (made.objective, sorted(made.chunks))
        assert not back.violations()
        if made.finds_tokens:
            kinds |= {policy.partition(":")[0], f"workers {instance.workers}", *instance.extras}
            kinds.add(f"blocks {instance.block_size > 1}")
            kinds |= {"pauses"} if made.pauses else set()
            kinds |= {"pieces"} if any(chunks.tokens for chunks in made.chunks) else set()
    assert kinds >= {
        "vllm-fcfs", "vllm-priority", "sglang", "workers 1", "workers 2", "prefix", "weight",
        "max_active", "blocks True", "pauses", "pieces",
    }  # fmt: skip


def _spoiled(drawn: Served, claim: dict[str, Any]) -> Instance:
    """Change a record, and perhaps the memory; return the instance."""
    instance, source = drawn.made.instance, drawn.source
    kind = source.randrange(6) if claim.get("chunks") else 5
    if kind == 5:
        rows = claim["segments"][source.randrange(len(instance))]
        begin, end = rows[-1]
        rows[-1] = source.choice(([begin + 1, end + 1], [begin - 1, end]))
    else:
        row = source.choice(claim["chunks"])
        match kind:
            case 0:
                row["cached"] = row.get("cached", 0) + source.choice((-3, -1, 1, 2, 4))
            case 1:
                row["start"] += source.choice((-1, 1))
            case 2:
                claim["chunks"].remove(row)
            case 3:
                row["request"] = source.randrange(-1, len(instance) + 1)
            case 4:
                row["tokens"] = source.choice(([], [0], [1], [40], [1] * 9, row["tokens"][:-1]))
    if source.random() < 0.7:
        return instance
    most = max(request.peak for request in instance) + instance.block_size
    less = source.choice((1, 2, instance.block_size, 9))
    return replace(instance, memory=max(most, instance.memory - less))


@pytest.mark.slow
def test_checker_and_package_agree_on_spoiled_records() -> None:
    """What is still a run has the value that the package gives it; all else is refused."""
    verdicts = [0, 0]
    for seed in range(many(200)):
        drawn = served(seed)
        known = range(len(drawn.made.instance))
        for _ in range(6 if "segments" in drawn.claim else 0):
            claim = drawn.claim
            instance = _spoiled(drawn, claim)
            try:
                made = run_from_json(claim, instance, drawn.made.clock)
                is_run = all(row["request"] in known for row in claim.get("chunks", ()))
                is_run = is_run and not made.violations()
                claim["value"] = made.objective if is_run else claim["value"]
            except InvalidInput:
                is_run = False
            said = refusal(instance, drawn.made, claim)
            assert is_run == (not said), (seed, drawn.policy, said)
            verdicts[is_run] += 1
    assert min(verdicts) > 100


def test_a_run_with_wrong_cached_tokens_is_refused() -> None:
    chat = Instance(
        12, [Request(t, 8, 2, prefix=("a", "b")) for t in (0, 0, 4)], block_tokens=4,
        round_ms=0.001,
    )  # fmt: skip
    made = run(chat, "vllm-fcfs:block=4,max_seqs=2", clock=Seconds(BatchTime([Line(90, 1)], 3, 2)))
    drawn = Served("vllm-fcfs", made, random.Random(0))
    assert [row.get("cached") for row in drawn.claim["chunks"]] == [8, 8]
    for place, cached, reason in ((0, 9, "no prompt to process"), (1, 4, "says"), (0, -1, "order")):
        claim = drawn.claim
        claim["chunks"][place]["cached"] = cached
        assert reason in refusal(chat, made, claim)
    claim = drawn.claim
    claim["chunks"].append({"request": 0, "start": 0, "tokens": [], "cached": 8})
    assert "that were not computed" in refusal(chat, made, claim)


def test_half_a_prompt_waits_in_memory() -> None:
    """Three of four tokens are processed, the request waits for a round and finds them."""
    clock = Seconds(BatchTime([Line(10, 0)], 0, 1))
    both = Instance(8, [Request(0, 4, 1), Request(0, 1, 2)])
    rows, half = [[(4, 4)], [(1, 2)]], [Chunks(0, 0, (3,)), Chunks(0, 3, (), 3)]
    made = PolicyRun(
        both, (), (), rows, clock=clock, chunks=half, resumed=[{}], policy="waits",
    )  # fmt: skip
    assert made.violations() == []
    drawn = Served("waits", made, random.Random(0))
    assert not refusal(both, made, drawn.claim)
    assert replace(made, chunks=half[:1]).objective == made.objective + 3
    tight = replace(both, memory=5)
    assert replace(made, instance=tight).violations() == ["time 2: 6 tokens held, memory is 5"]
    assert "6 tokens are held" in refusal(tight, made, drawn.claim)


@pytest.mark.slow
def test_servers_are_certified(tmp_path: Path) -> None:
    """They have ratios, count as schedules, and begin searches."""
    best, path = 0, tmp_path / "c.json"
    for seed in range(5000, 5000 + many(24)):
        made = served(seed).made
        instance, block = made.instance, made.instance.block_size
        names = [f"vllm-fcfs:block={block}", f"vllm-priority:by=volume,block={block}"]
        names += [f"sglang:page={block},conservative=0.1", f"sglang:page={block},order=lpm"]
        scope = "sharing+" * ("prefix" in instance.extras) + "pauses+chunks"
        found = certify(
            instance, names, clock=made.clock, router=_router(instance), scope=scope,
            time_limit=0.15, threads=1,
        )  # fmt: skip
        write_certificate(found, path)
        assert verify(path).lines[-1] == "VALID", (seed, verify(path).lines)
        assert read_certificate(path).objective == found.objective
        for one in found.runs:
            at_least, at_most = found.ratio(one)
            assert 1 <= known(at_least) <= known(at_most)
            best += found.objective == one.objective and one.finds_tokens
        given = found.runs[seed % 4]
        begun = solve(
            instance, clock=made.clock, scope=scope, start=given, time_limit=0.05, threads=1
        )
        assert not begun.faults
        assert known(begun.objective) <= given.objective
    assert best


@pytest.mark.slow
def test_no_server_is_below_the_bound_of_its_scope() -> None:
    """Tokens that a cache saves, or that a pause keeps, are not charged again."""
    tight = 0
    for seed in range(7000, 7000 + many(100)):
        made = served(seed).made
        value = bound(
            Problem(made.instance, made.clock, made.scope), time_limit=0.05, threads=1
        ).value
        assert known(value) <= made.objective, seed
        tight += value == made.objective
    assert tight
