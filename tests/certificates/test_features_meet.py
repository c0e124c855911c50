"""Certificates where features meet: fleets, blocks, scopes, service levels, clocks."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from certificates import (
    EC1,
    LOST,
    assert_unreadable,
    certificate,
    changed,
    claiming,
    judged,
    places_in,
    prices_between,
    prices_proof,
    split,
    value_at,
    verified,
)
from claims import untrue
from configuration_proofs import proof_of
from effort import few_steps
from known import known
from strategies import instance_of

from kvopt import BatchTime, Instance, InvalidInput, Line, Request, certify, generate, run
from kvopt.certificates import Certificate, read_certificate, write_certificate
from kvopt.certificates.certificate_files import certificate_text
from kvopt.problem.clocks import ROUNDS, Clock, Seconds
from kvopt.timetable.policy_run import PolicyRun
from kvopt.timetable.schedule import Schedule
from kvopt.verify import verify, verify_text
from kvopt.verify.certified_problem import hash_of
from kvopt.verify.report import report_on

pytestmark = pytest.mark.usefixtures("processor_clock")

Rows = list[tuple[int, int, int]]
SECONDS = Seconds(BatchTime([Line(9, 0), Line(0, 3)], kv_ns=1, prompt_ns=1))
SOME: Rows = [(0, 3, 2), (1, 0, 4), (2, 2, 3)]
FEW: Rows = [(0, 1, 2), (2, 2, 2)]
"""For brute force in seconds."""
EVICTS = "alpha-beta:alpha=0,beta=0.5"
FULL = Instance(8, [Request(0, 3, 2, e2e=2), Request(1, 0, 4, e2e=5)])
PAUSED = PolicyRun.of(Schedule(FULL, segments=[[[1, 1], [4, 4]], [[2, 5]]]), "recorded")


def made(rows: Rows, **more: Any) -> Instance:
    requests = [Request(*row, e2e=row[2] + 1) for row in rows]
    return Instance(8, requests, round_ms=6e-6, **more)


class Case(NamedTuple):
    """What is certified, and how."""

    instance: Instance
    policies: list[Any]
    clock: Clock = ROUNDS
    scope: str | None = None
    slo: str | None = None


CASES = {
    "an empty fleet": Case(made([], workers=3), ["svf", EVICTS]),
    "an empty fleet in seconds": Case(made([], workers=3), ["svf"], SECONDS),
    "nothing in time": Case(made([]), ["svf"], SECONDS, None, "own"),
    "nothing in blocks": Case(made([], block_size=4), ["vllm-fcfs"], ROUNDS, "pauses"),
    "sure misses": Case(made(FEW), [EVICTS, "vllm-fcfs:block=1"], SECONDS, "runs", "e2e=1"),
    "blocks and evictions": Case(made(SOME, block_size=4), [EVICTS], ROUNDS, "restarts"),
    "a fleet with pauses": Case(made(SOME, workers=2), ["fcfs", EVICTS], ROUNDS, "pauses"),
    "pieces and service levels": Case(made(FEW), ["vllm-fcfs:block=1"], SECONDS, None, "own"),
    "what is not covered": Case(FULL, [PAUSED], ROUNDS, "runs", "own"),
    "a run with pauses": Case(FULL, [PAUSED], ROUNDS, None, "ttft=3"),
}
SMALL = generate("arrival-1", n=6, seed=3)
APART = Instance(34, [*SMALL.requests, *(Request(900 + i, 2, 4, f"b{i}") for i in range(3))])
EVICTING = f"{EVICTS},seed=1"
ROOF = Seconds(BatchTime([Line(40_000_000, 100_000), Line(10_000_000, 900_000)], kv_ns=80))
LARGER = {
    "proved": Case(SMALL, ["mc-sf", EVICTING]),
    "of parts": Case(APART, ["fcfs"]),
    "open": Case(generate("arrival-2", n=12, seed=1), ["svf"]),
    "no policies": Case(SMALL, []),
    "in seconds": Case(SMALL, ["svf", EVICTING], ROOF),
    "late": Case(made([(10**12, 3, 2), (10**12 + 1, 0, 4)]), ["svf"], ROUNDS, "pauses"),
    "far apart": Case(made([(0, 3, 2), *[(10**12, 2, 5)] * 3]), ["svf"], ROUNDS, "pauses"),
}
"""Cases of which brute force would take too long."""


def found(case: Case) -> Certificate:
    return certify(
        case.instance, case.policies, clock=case.clock, scope=case.scope,
        slo=case.slo, time_limit=0.1, threads=1,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CASES, *LARGER])
def test_what_is_written_is_valid_and_true_and_read_again(name: str, tmp_path: Path) -> None:
    path, again = tmp_path / "c.json", tmp_path / "again.json"
    made = found({**CASES, **LARGER}[name])
    write_certificate(made, path)
    verdict = verify(path)
    assert verdict.valid, verdict.lines
    if name in CASES:
        assert not [*untrue(json.loads(path.read_text()))]
    back = read_certificate(path)
    for field in ("instance", "lower_bound", "objective", "gap", "notes", "clock"):
        assert getattr(back, field) == getattr(made, field), field
    for read, own in zip(back.runs, made.runs, strict=True):
        assert (read.objective, read.starts, read.lost) == (own.objective, own.starts, own.lost)
        assert (read.workers, back.measures(read)) == (own.workers, made.measures(own))
    if made.in_time is None:
        assert back.to_json() == made.to_json()
    else:
        claim, wanted = known(back.in_time), made.in_time
        for field in ("slo", "ceiling", "attained", "proof", "best_attained"):
            assert getattr(claim, field) == getattr(wanted, field), field
        said = f"at most {claim.ceiling} of {len(made.instance)} requests"
        assert any(said in line for line in verdict.lines)
    write_certificate(back, again)
    assert verify(again).lines == verdict.lines
    assert again.read_text() == path.read_text()


def test_some_cases_evict() -> None:
    """So what is lost is written and read."""
    assert all(
        any(run(case.instance, name, clock=case.clock).lost for name in case.policies)
        for case in (CASES["blocks and evictions"], LARGER["proved"], LARGER["in seconds"])
    )


REFUSED: dict[str, tuple[Case, str]] = {
    "a server of a fleet": (Case(made(SOME, workers=2), ["svf", "vllm-fcfs"]), "name a router"),
    "retraction in a fleet": (Case(made(SOME, workers=2), ["sglang"]), "name a router"),
    "a plan of a fleet": (
        Case(made(SOME, workers=2), ["sorted-lp:hindsight=1"]),
        "plans for one worker",
    ),
    "a plan in seconds": (Case(made(SOME), ["sorted-lp:hindsight=1"], SECONDS), "for a backlog"),
    "other blocks": (Case(made(SOME, block_size=2), ["vllm-fcfs:block=4"]), "blocks of 2 tokens"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_together_is_refused_before_there_is_work(name: str) -> None:
    case, reason = REFUSED[name]
    seen: list[object] = []
    with pytest.raises(InvalidInput, match=reason):
        certify(
            case.instance, case.policies, clock=case.clock, slo=case.slo,
            observer=seen.append,
        )  # fmt: skip
    assert not seen


def test_memory_without_a_block_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not one block"):
        Instance(8, [], block_size=9)


# ---- claims that are changed ------------------------------------------------------------

Change = Callable[[dict[str, Any]], object]


def fleet_certificate() -> dict[str, Any]:
    """Return a valid one of two workers with 5 tokens each, of which all are held at time 1."""
    rows = [{"arrival": 0, "prompt": s, "output": 1} for s in (4, 2, 1)]
    instance = {"schema": "kvopt.instance/2", "memory": 5, "workers": 2, "requests": rows}
    return claiming(
        instance,
        upper={"value": 3, "starts": [0, 0, 0], "workers": [0, 1, 1]},
        lower={"value": 3, "proof": {"kind": "volume"}},
    )


def in_seconds() -> dict[str, Any]:
    """Return a valid one of a fleet in which one request can come after the other."""
    instance = {
        "schema": "kvopt.instance/2", "memory": 5, "workers": 2,
        "requests": [{"arrival": 0, "prompt": 1, "output": 1, "arrival_seconds": t * 1e-9}
                     for t in (0, 7)],
    }  # fmt: skip
    model = {"lines": [{"round_ns": 9, "token_ns": 1}], "kv_ns": 0, "prompt_ns": 0}
    shares = {"kind": "shares", "lines": [0], "weights": [], "company": []}
    run = {"value": 22, "starts": [0, 0], "workers": [0, 1], "waits": [[0, 7, 1]]}
    return claiming(
        instance,
        clock=model,
        upper=run,
        lower={"value": 16, "proof": shares},
        policies=[{"policy": "p", "outcome": "completed", **copy.deepcopy(run)}],
    )


def in_time() -> dict[str, Any]:
    """Return a valid one in rounds, of which a request attains its service level."""
    rows = [{"arrival": 0, "prompt": 3, "output": 2, "e2e": 2} for _ in range(2)]
    instance = {"schema": "kvopt.instance/2", "memory": 5, "requests": rows}
    prices = prices_proof(9, 1, [1, 1])
    stage = {"denominator": 1, "peaks": [[5, 2]], "times": [2], "numerators": [[1, 0]]}
    return claiming(
        instance,
        upper={"value": 6, "starts": [0, 2]},
        lower={"value": 5, "proof": proof_of([stage])},
        slo={
            "limits": {"e2e": "own"}, "ceiling": 1, "proof": prices, "attained": [],
            "best": {"value": 6, "starts": [0, 2], "attained": 1},
        },
    )  # fmt: skip


def paused() -> dict[str, Any]:
    """Return a valid one of a schedule with a pause, which has 12 where runs have 14."""
    return claiming(
        instance_of(10, [(0, 0, 10), (6, 5, 1)]),
        scope="pauses",
        upper={"value": 12, "segments": [[[1, 6], [8, 11]], [[7, 7]]]},
        lower={"value": 12, "proof": prices_proof(7, 7, [1])},
        policies=[
            {"policy": "run", "outcome": "completed", "value": 14, "starts": [3, 6]},
            {"policy": "pauses", "outcome": "completed", "value": 12,
             "segments": [[[1, 3], [4, 6], [8, 11]], [[7, 7]]]},
        ],
    )  # fmt: skip


def in_blocks() -> dict[str, Any]:
    """Return a valid one of three requests in four blocks of two tokens."""
    rows = [{"arrival": 0, "prompt": 0, "output": output} for output in (2, 2, 1)]
    instance = {"schema": "kvopt.instance/2", "memory": 8, "block_size": 2, "requests": rows}
    return claiming(
        instance,
        upper={"value": 5, "starts": [0, 0, 0]},
        lower={"value": 5, "relaxations": ["tokens"], "proof": {"kind": "volume"}},
    )


PRICED = {"value": 6, "proof": prices_proof(8, 1, [1])}
"""Three requests pay four tokens each for their first time, of eight: 5 + (12 - 8) / 8."""


def of_four(said: dict[str, Any], **more: object) -> dict[str, Any]:
    """Give out memory in two blocks of four tokens, of which the schedule needs three."""
    rehashed(said, block_size=4)
    said.update(more)
    return said


def priced_blocks() -> dict[str, Any]:
    """Return a valid one of two blocks, with prices that tokens would not pay."""
    return of_four(in_blocks(), upper=None, lower=PRICED)


def segments(rows: list[Any], value: int = 12) -> Change:
    """Give the schedule other segments."""
    return lambda c: c.update(upper={"value": value, "segments": rows})


def shares(said: dict[str, Any], **more: object) -> None:
    said["lower"]["proof"].update({"weights": [0, 0], "company": [64, 64], **more})


def rehashed(said: dict[str, Any], **more: object) -> str:
    said["instance"].update(more)
    said["hash"] = hash_of(said["instance"])
    return str(said["hash"])


SLOTS = {"name": "slots", "capacity": 1, "times": [0, 9], "numerators": [0, 0]}
AHEAD: tuple[dict[str, Any], ...] = (
    {"kind": "volume", "staircases": [[1]]},
    {"kind": "configurations", "target": None, "searched": False, "stages": []},
    {"kind": "prices", "denominator": 1, "resources": [SLOTS]},
    {"kind": "branches", "target": 1, "branches": [], "leaves": [[0, 1]]},
)
"""Proofs that look ahead along a run."""
FLEET: dict[str, tuple[Change, str]] = {
    "more than one holds": (lambda c: c["upper"].update(workers=[0, 0, 1]), "8 tokens are held"),
    "workers swapped": (lambda c: c["upper"]["workers"].reverse(), "8 tokens are held"),
    "a worker too many": (lambda c: c["upper"]["workers"].__setitem__(1, 2), "one of 2 workers"),
    "a worker below 0": (lambda c: c["upper"]["workers"].__setitem__(1, -1), "one of 2 workers"),
    "a worker too few": (lambda c: c["upper"]["workers"].pop(), "one of 2 workers"),
    "workers left out": (lambda c: c["upper"].pop("workers"), "one of 2 workers"),
    "other workers": (lambda c: c["instance"].update(workers=3), "hash"),
    "the first schema": (
        lambda c: c["instance"].update(schema="kvopt.instance/1"),
        "need the schema kvopt.instance/2",
    ),
    "no worker": (lambda c: rehashed(c, workers=0), "workers must be 2 or more"),
    "one worker": (lambda c: rehashed(c, workers=1), "workers must be 2 or more"),
    "blocks": (lambda c: rehashed(c, block_size=2), "needs more than the memory"),
    "service levels": (lambda c: c.update(slo=in_time()["slo"]), "no limit of its own"),
    "deadlines": (lambda c: c.update(deadlines={}), "deadlines are service levels now"),
    "pauses": (lambda c: c.update(upper={"value": 3, "segments": [[[1, 1]]] * 3}), "2 workers"),
    "a start too early": (lambda c: c["upper"].update(starts=[0, -1, 0]), "before it arrives"),
    "branches": (lambda c: c["lower"].update(proof=AHEAD[-1]), "one worker"),
}
TIMED: dict[str, tuple[Change, str]] = {
    "a better bound": (lambda c: c["lower"].update(value=17), "the proof gives 16"),
    "workers swapped": (lambda c: c["upper"].update(workers=[1, 0]), "too early"),
    "company": (lambda c: shares(c), "company is of one worker"),
    "an order": (
        lambda c: c["instance"]["requests"][1].update(after={"request": "r0"}),
        "has the field after: an order of requests",
    ),
    "slower machines": (lambda c: c.update(slower=[]), "has the field slower: slower machines"),
    "weights too large": (lambda c: shares(c, weights=[64, 65], company=[]), "in 0 .. 64"),
    **{
        f"a wait of {wait}": (
            lambda c, wait=wait: c["upper"]["waits"].append(wait),  # type: ignore[misc]
            "must be [round, time, worker]",
        )
        for wait in ([0, 9], [0, 9, 2], [0, 9, -1], [0, 9, 0, 0])
    },
    "lines unmixed": (
        lambda c: (
            c["clock"]["lines"].append({"round_ns": 0, "token_ns": 2}),
            c["lower"]["proof"].update(lines=[0, 1]),
            c.update(scope="chunks"),
        ),
        "do not cover prompts in pieces",
    ),
}
ATTAINED: dict[str, tuple[Change, str]] = {
    "a lower ceiling": (lambda c: c["slo"].update(ceiling=0), "the proof gives 1"),
    "a wider scope": (lambda c: c.update(scope="pauses"), "do not cover pauses"),
    "more attain": (lambda c: c["slo"]["best"].update(attained=2), "says 2 attain, 1 do"),
    "too much held": (
        lambda c: c["slo"].update(best={"value": 4, "starts": [0, 0], "attained": 2}),
        "10 tokens are held",
    ),
    "longer limits": (
        lambda c: c["instance"]["requests"][1].update(e2e=4),
        "hash: is not that of the instance",
    ),
    "longer limits, hashed": (
        lambda c: (c["instance"]["requests"][1].update(e2e=4), rehashed(c)),
        "the proof gives 2",
    ),
    "blocks": (lambda c: rehashed(c, block_size=5), "need the relaxation tokens"),
    "blocks of nothing": (
        lambda c: (
            rehashed(c, block_size=9, requests=[]),
            c.update(upper=None, lower=None),
            c.pop("slo"),
        ),
        "not one block",
    ),
    "a price below 0": (
        lambda c: c["slo"]["proof"]["resources"][0].update(numerators=[-1]),
        "negative",
    ),
    "no number": (lambda c: c["lower"].update(value=float("nan")), "not a finite number"),
}

PAUSES: dict[str, tuple[Change, str]] = {
    "a request too few": (segments([[[1, 6], [8, 11]]]), "has 1 segments for 2 requests"),
    "no token": (segments([[[1, 6], [8, 11]], []]), "request 1 makes 0 tokens"),
    "a token too many": (segments([[[1, 6], [8, 12]], [[7, 7]]]), "request 0 makes 11 tokens"),
    "before time 1": (segments([[[0, 6], [8, 10]], [[7, 7]]]), "work of request 0"),
    "a time twice": (segments([[[1, 6], [6, 9]], [[7, 7]]]), "work of request 0"),
    "backwards": (segments([[[1, 6], [9, 8], [9, 12]], [[7, 7]]]), "work of request 0"),
    "no pair": (segments([[[1, 6], [8, 9, 11]], [[7, 7]]]), "work of request 0"),
    "too early": (segments([[[1, 6], [8, 11]], [[6, 6]]]), "something begins too early"),
    "no pause": (segments([[[1, 10]], [[7, 7]]], 11), "13 tokens are held at one time"),
    "another value": (segments([[[1, 6], [9, 12]], [[7, 7]]]), "the segments give 13"),
    "a narrower scope": (
        lambda c: c.update(scope="restarts"),
        "upper: has pauses, which its scope does not cover",
    ),
    **{
        f"{proof['kind']} {'in parts' if in_parts else 'alone'}": (
            lambda c, proof=proof, in_parts=in_parts: c["lower"].update(  # type: ignore[misc]
                proof=split((0, proof)) if in_parts else proof
            ),
            "do not cover pauses",
        )
        for proof in AHEAD
        for in_parts in (False, True)
    },
}
RUN = {"policy": "p", "outcome": "completed", "value": 5, "starts": [0, 0, 0]}
BLOCKS: dict[str, tuple[Change, str]] = {
    "a better bound": (lambda c: c["lower"].update(value=6), "the proof gives 5"),
    "no blocks": (lambda c: c["instance"].pop("block_size"), "hash"),
    "other blocks": (lambda c: c["instance"].update(block_size=4), "hash"),
    "blocks of one": (lambda c: c["instance"].update(block_size=1), "at least 2 tokens"),
    "the first schema": (
        lambda c: c["instance"].update(schema="kvopt.instance/1"), "and the schema kvopt.instance/2"
    ),
    "two blocks": (of_four, "upper: 3 blocks are held at one time, there are 2"),
    "pauses in two blocks": (
        lambda c: of_four(
            c, scope="pauses", upper={"value": 5, "segments": [[[1, 2]], [[1, 2]], [[1, 1]]]}
        ),
        "3 blocks are held",
    ),
    "a run in two blocks": (lambda c: of_four(c, upper=None, policies=[RUN]), "'p': 3 blocks"),
    "lost in two blocks": (
        lambda c: of_four(
            c, upper=None,
            policies=[{**RUN, "value": 7, "starts": [0, 0, 2], "lost": [[2, 0, 1]]}],
        ),
        "cannot lose",
    ),
    "a request of two blocks": (
        lambda c: rehashed(c, block_size=5, requests=[{"arrival": 0, "prompt": 0, "output": 6}]),
        "instance: request 0 needs more than the memory, so none is feasible",
    ),
    "prices of too much": (
        lambda c: of_four(c, upper=None, lower={**PRICED, "value": 7}), "the proof gives 6"
    ),
    "prices of tokens": (
        lambda c: of_four(c, upper=None, lower={**PRICED, "relaxations": ["tokens"]}),
        "the proof gives 5",
    ),
    "a price below 0": (
        lambda c: of_four(c, upper=None, lower={"value": 5, "proof": prices_proof(8, 1, [-1])}),
        "is negative",
    ),
    "prices of a part": (
        lambda c: of_four(
            c, upper=None,
            lower={
                "value": 5,
                "proof": split((0, PRICED["proof"])),
            },
        ),
        "need the relaxation tokens",
    ),
    "no word of tokens": (
        lambda c: of_four(c, upper=None)["lower"].pop("relaxations"),
        "volume of this problem need the relaxation tokens",
    ),
    "no word of tokens in a fleet": (
        lambda c: (of_four(c, upper=None)["lower"].pop("relaxations"), rehashed(c, workers=2)),
        "volume of this problem need the relaxation tokens",
    ),
}  # fmt: skip


def with_everything() -> dict[str, Any]:
    """Return a valid one with evictions, labels, a budget, and two proofs with their parts."""
    content = certificate(EC1, random.Random(3), budget=2)
    content["policies"].append(LOST)
    priced = prices_proof(8, 1, [1])
    priced["resources"].append(SLOTS)
    stage = {
        "denominator": 4,
        "peaks": [[2, 1], [5, 2]],
        "times": [1, 6],
        "numerators": [[0] * 3] * 2,
    }
    searched = proof_of([stage], 9, True) | {"cuts": [9], "kept": [9] * 20}
    content["lower"] = {"value": 5, "proof": split((0, priced), (1, searched))}
    return content


BASES = (
    fleet_certificate, in_seconds, in_time, paused, in_blocks, priced_blocks, with_everything,
)  # fmt: skip


@pytest.mark.parametrize("base", BASES)
def test_what_is_changed_below_is_valid_true_and_written_as_it_was_read(
    base: Callable[[], dict[str, Any]], tmp_path: Path
) -> None:
    verdict, path = judged(tmp_path / "c.json", base()), tmp_path / "again.json"
    assert verdict.valid, verdict.lines
    assert not [*untrue(base())]
    write_certificate(read_certificate(tmp_path / "c.json"), path)
    assert verify(path).valid
    text = path.read_text()
    write_certificate(read_certificate(path), path)
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("base", "change", "reason"),
    [
        pytest.param(base, *each, id=f"{base.__name__}-{name}")
        for base, changes in (
            (fleet_certificate, FLEET),
            (in_seconds, TIMED),
            (in_time, ATTAINED),
            (paused, PAUSES),
            (in_blocks, BLOCKS),
        )
        for name, each in changes.items()
    ],
)
def test_what_is_changed_is_found(
    base: Callable[[], dict[str, Any]], change: Change, reason: str, tmp_path: Path
) -> None:
    said = copy.deepcopy(base())
    change(said)
    verdict = judged(tmp_path / "c.json", said)
    assert not verdict.valid
    assert reason in verdict.lines[-1]


TWO_TYPES = {
    "upper", "lower", "target", "best", "attained", "name", "notes", "round_ms", "limits", "kind",
    "arrival_seconds", "clock", "prefix", "e2e",
}  # fmt: skip
"""Fields in which a value of another type may be right."""
MAY_BE_LEFT_OUT = {
    "workers", "policies", "slo", "budget", "provenance", "waits", "arrival_seconds", "e2e",
    "block_size", "relaxations", "weights", "company", "lost", "cuts", "kept", "name", "id",
}  # fmt: skip


@pytest.mark.parametrize("base", BASES)
def test_another_type_an_unknown_field_and_a_missing_one_are_unreadable(
    base: Callable[[], dict[str, Any]],
) -> None:
    content = base()
    for place in places_in(content):
        if place[0] == "provenance":
            continue
        old = value_at(content, place)
        name = [key for key in place if isinstance(key, str)][-1]
        others = [7, True, 1.5, "1", None, [], {}] if name not in TWO_TYPES else []
        others = [other for other in others if type(other) is not type(old)]
        if isinstance(old, dict):
            needed = old.keys() - MAY_BE_LEFT_OUT
            others += [{key: old[key] for key in old if key != missing} for missing in needed]
            others.append({**old, "extra": 1})
        for other in others:
            said = changed(content, place, partial(lambda new, _: new, other))
            assert_unreadable(verify_text(json.dumps(said)))


@pytest.mark.parametrize("segments", [[[]], [[[]]], [], [[[1, 2], []]]])
def test_runs_with_pauses_that_are_none_are_invalid(
    segments: list[list[list[int]]], tmp_path: Path
) -> None:
    """Also where only service levels would look at them; a fleet without requests has none."""
    said = in_seconds()
    rows = [{"arrival": 0, "prompt": 1, "output": 2}]
    said.update(upper=None, lower=None, policies=[])
    said["instance"] = {"schema": "kvopt.instance/1", "memory": 5, "round_ms": 1, "requests": rows}
    proof = prices_between([0, 1], [0], 1, [0])
    run = {"value": 0, "segments": segments, "attained": 1}
    said["slo"] = {
        "limits": {"e2e": 1000}, "ceiling": 1, "proof": proof, "attained": [],
        "best": run,
    }  # fmt: skip
    rehashed(said)
    assert "slo: " in judged(tmp_path / "c.json", said).lines[-1]
    del said["slo"]
    said["upper"] = {"value": 0, "segments": []}
    said["instance"].update(schema="kvopt.instance/2", workers=2, requests=[])
    rehashed(said)
    assert judged(tmp_path / "c.json", said).valid
    said["upper"]["segments"] = [[]]
    assert "upper: has 1 segments for 0" in judged(tmp_path / "c.json", said).lines[-1]


@pytest.mark.parametrize("workers", [3, 10_001])
def test_more_workers_than_there_is_work_for_change_nothing(workers: int, tmp_path: Path) -> None:
    """The bound is that of as many as there are requests, and the schedule fits as it did."""
    said = fleet_certificate()
    rehashed(said, workers=workers)
    assert judged(tmp_path / "c.json", said).valid


def test_a_report_says_what_its_claims_cover() -> None:
    """Also those of service levels, where nothing else is claimed."""
    content = json.loads(certificate_text(found(CASES["what is not covered"])))
    name = "  'recorded' does for 1 with pauses, which the ceiling does not cover"
    assert name in report_on(content)
    bare = {**content, "lower": None, "policies": []}
    del bare["slo"]
    levels = {**content["slo"], "attained": []}
    assert not covered(bare)
    assert covered({**bare, "slo": levels})


def covered(content: dict[str, Any]) -> bool:
    """Whether a report has the line of what is covered."""
    return any(line.startswith("covered: ") for line in report_on(content))


@pytest.mark.parametrize("scope", ["runs", "pauses"])
def test_a_report_says_that_it_counts_blocks(scope: str) -> None:
    rows = [Request(0, 3, 9), Request(1, 2, 7), Request(2, 5, 4)]
    with few_steps(300):
        made = certify(
            Instance(20, rows, block_size=4), ["vllm-fcfs", "svf"], scope=scope, time_limit=4
        )
    text = verified(made)
    assert "memory in 5 whole blocks of 4 tokens" in text
    assert known(made.lower_bound) <= known(made.objective)
    assert scope == "runs" or "prices of whole blocks" in text


def test_a_search_that_is_too_long_leaves_what_is_known() -> None:
    lengthy = found(LARGER["far apart"])
    assert lengthy.objective is not None
    assert lengthy.lower is not None
    assert any(
        note.startswith("orders with pauses: ") and "are more than the limit" in note
        for note in lengthy.notes
    )


@pytest.mark.parametrize("before", [0, 1, 4])
def test_prices_of_late_requests_are_valid_and_written_again(tmp_path: Path, before: int) -> None:
    """No price is laid out for the rounds before."""
    late = Instance(3, [Request(10**12, 2, 1, f"r{i}") for i in range(2)])
    proof = prices_proof(1000, 10**12 + 1 - before, [1] * before + [357])
    content = certificate(late, random.Random(1), lower={"value": 3, "proof": proof})
    assert judged(tmp_path / "c.json", content).valid
    write_certificate(read_certificate(tmp_path / "c.json"), tmp_path / "d.json")
    assert json.loads((tmp_path / "d.json").read_text())["lower"]["proof"] == proof
    assert verify(tmp_path / "d.json").valid


def test_a_part_without_requests_is_valid_and_written_again(tmp_path: Path) -> None:
    parts = [
        {"from": 0, "proof": prices_proof(9, 1, [1])},
        {"from": 1, "proof": {"kind": "volume"}},
    ]
    content = fleet_certificate()
    for row in content["instance"]["requests"]:
        row["arrival"] = 3
    rehashed(content)
    content.update(upper=None, lower={"value": 3, "proof": {"kind": "split", "parts": parts}})
    verdict = judged(tmp_path / "c.json", content)
    assert verdict.valid
    write_certificate(read_certificate(tmp_path / "c.json"), tmp_path / "d.json")
    assert verify(tmp_path / "d.json").lines == verdict.lines
