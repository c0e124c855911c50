"""The same question in seconds has the same answer through every door.

Tiny instances, drawn with fixed seeds: `solve` and `certify`, Python and command line, one worker
and two, and what policies do.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from commands import Run
from effort import many
from known import known

from kvopt import (
    BatchTime,
    Instance,
    Line,
    Request,
    SolveResult,
    bound,
    certify,
    solve,
    write_instance,
)
from kvopt.problem.clocks import Seconds
from kvopt.problem.hardware.batch_time_files import PRESETS, write_batch_time
from kvopt.problem.problem import Problem
from kvopt.simulate.running import run as simulate

POLICIES = ("svf", "mc-sf", "fcfs")
LLAMA = Seconds(PRESETS["llama-2-70b-2xa100"])
WORSE = Instance(12, [Request(0, 0, 2), Request(0, 5, 3)])
"""Where `certify` had 862, and the optimum is 630."""
WORSE_CLOCK = Seconds(BatchTime([Line(9, 11), Line(19, 41)], kv_ns=1, prompt_ns=30))


def drawn(seed: int, workers: int) -> tuple[Instance, Seconds]:
    """Return at most six requests, which may arrive while others are active, and a clock."""
    rng = random.Random(seed)
    memory, requests = rng.randint(4, 14), []
    for _ in range(rng.randint(2, 6 - workers)):
        output = rng.randint(1, 4)
        prompt = rng.choice((0, rng.randint(0, memory - output)))
        arrival = rng.choice((0, rng.randint(0, 60)))
        requests.append(Request(0, prompt, output, arrival_seconds=arrival / 1e9))
    lines = [Line(rng.randint(1, 30), rng.randint(0, 15)) for _ in range(rng.randint(1, 2))]
    model = BatchTime(lines, kv_ns=rng.randint(0, 5), prompt_ns=rng.randint(0, 9))
    return Instance(memory, requests, workers=workers), Seconds(model)


def of_prompts(seed: int, workers: int) -> tuple[Instance, Seconds]:
    """Return requests whose prompts take longer than their outputs, on two A100."""
    rng = random.Random(seed)
    requests = [
        Request(0, rng.randint(100, 2_500), rng.randint(1, 6), arrival_seconds=rng.random() / 2)
        for _ in range(rng.randint(3, 6 - workers))
    ]
    return Instance(4_000, requests, workers=workers), LLAMA


def solved(instance: Instance, clock: Seconds) -> tuple[SolveResult, int]:
    """Return what `solve` says, which is proved, and the optimum."""
    found = solve(instance, clock=clock)
    assert str(found.status) == "optimal"
    return found, known(found.objective)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("some", [drawn, of_prompts])
def test_certify_attains_what_solve_proves(some: object, workers: int) -> None:
    assert callable(some)
    for seed in range(many(12)):
        instance, clock = some(seed, workers)
        _, best = solved(instance, clock)
        found = certify(instance, POLICIES, clock=clock)
        assert found.objective == best, seed
        assert (found.lower_bound or 0) <= best
        assert bound(Problem(instance, clock)).value == found.lower_bound
        for judged, name in zip(found.runs, POLICIES, strict=True):
            alone = simulate(instance, name, clock=clock).objective
            assert judged.objective == alone is not None
            assert best <= alone, (seed, name)
            least, _ = found.ratio(judged)
            assert least == (alone / best if best else None)


def test_the_optimum_of_runs_is_no_bound_for_pauses() -> None:
    for seed in range(many(2)):
        instance, clock = drawn(seed, 1)
        _, best = solved(instance, clock)
        for scope in ("pauses", "chunks", "pauses+chunks"):
            found = certify(instance, ["vllm-fcfs:block=1"], clock=clock, scope=scope)
            assert (found.lower_bound or 0) <= (found.objective or 0) <= best
            assert not [note for note in found.notes if "claims" in note]


def test_a_claim_of_the_exhaustive_search_is_no_bound_of_a_certificate() -> None:
    found = certify(WORSE, clock=WORSE_CLOCK)
    result, best = solved(WORSE, WORSE_CLOCK)
    assert str(result.bound_source) == "solver"
    assert found.objective == best > (found.lower_bound or 0)
    claim = f"exhaustive search claims that no schedule is below {best:,} ns;"
    assert found.notes[-1].startswith(claim)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_command_line_says_what_python_says(run: Run, tmp_path: Path, workers: int) -> None:
    file, model = tmp_path / "i.json", tmp_path / "m.json"
    for seed in range(2):
        instance, clock = drawn(seed, workers)
        result, best = solved(instance, clock)
        found = certify(instance, POLICIES, clock=clock)
        write_instance(instance, file)
        write_batch_time(clock.batch_time, model)
        common = (file, "--seconds", "--batch-time", model, "--json")
        code, out, _ = run("solve", *common)
        said = json.loads(out)
        assert (code, said["status"]) == (0, "optimal")
        assert said["objective_ns"] == said["lower_bound_ns"] == best == result.lower_bound
        names = [part for name in POLICIES for part in ("--policy", name)]
        code, out, _ = run("certify", *common, *names, "-o", tmp_path / "c.json")
        said = json.loads(out)
        assert code == 0
        assert (said["upper_ns"], said["lower_ns"]) == (best, found.lower_bound)
        assert [row["value_ns"] for row in said["policies"]] == [r.objective for r in found.runs]
        assert run("verify", tmp_path / "c.json")[0] == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_policies_come_before_the_exhaustive_search(workers: int) -> None:
    """A limit may end that before it has found anything."""
    for seed in range(many(8)):
        rng = random.Random(seed)
        requests = [Request(0, rng.randint(0, 300), rng.randint(1, 300)) for _ in range(6)]
        instance = Instance(600, requests, workers=workers)
        found = solve(instance, clock=LLAMA, stop=lambda known: known.engine == "exact")
        values = [simulate(instance, name, clock=LLAMA).objective for name in POLICIES]
        assert found.objective == min(value for value in values if value is not None)


@pytest.mark.parametrize("output", [20_000, 4 * 10**10])
@pytest.mark.parametrize("workers", [1, 2])
def test_long_outputs_are_not_laid_out_round_by_round(output: int, workers: int) -> None:
    """Twice as many rounds took four times as long; 4 * 10^10 of them do not fit anywhere."""
    requests = [Request(0, 5, output)] * 2
    instance = Instance(output + 5, requests, workers=workers)
    found = solve(instance, clock=LLAMA)
    assert found.schedule is not None
    assert (found.lower_bound or 0) <= (found.objective or 0)
    said = f"exhaustive search: an output has {output:,} tokens; the limit is 400"
    assert str(found.status) == "optimal" or said in found.notes


def test_clocks_that_count_from_1970(run: Run, tmp_path: Path) -> None:
    requests = [Request(0, 1, 3, arrival_seconds=1764000000.0 + i / 100) for i in range(3)]
    write_instance(Instance(8, requests), tmp_path / "i.json")
    common = (tmp_path / "i.json", "--seconds", "--json")
    _, out, _ = run("solve", *common)
    best = json.loads(out)["objective_ns"]
    code, out, _ = run("certify", *common, "-o", tmp_path / "c.json")
    said = json.loads(out)
    assert (code, said["upper_ns"]) == (0, best)
    assert run("verify", tmp_path / "c.json")[0] == 0
