"""The policies of wang-2025: worked cases, literal transcriptions, and what holds for all."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from effort import examples, many
from hypothesis import given
from interpreters import printed
from known import known
from literal import wang as literal
from literal import wang_phase1
from literal.common import Run
from strategies import instances, jobs_of

from kvopt import (
    Instance,
    Prediction,
    Request,
    certify,
    check_online,
    generate,
    run,
    write_instance,
)
from kvopt.bounds.mean_starts import lagrangian_mean_starts, lp_mean_starts
from kvopt.errors import TooLarge
from kvopt.simulate.policies import Need, policy
from kvopt.simulate.policies.interface import shuffled_ranks
from kvopt.studies import read_records, read_study, run_study
from kvopt.timetable.policy_run import Outcome, PolicyRun

Means = Callable[[Instance], list[float]]

EXAMPLE_3_1 = Instance(64, [Request(0, 63, 1)] + [Request(0, 1, 2)] * 21)
SEED = 3
MEANS: dict[str, Means] = {"lp": lp_mean_starts, "lagrangian": lagrangian_mean_starts}
LP, AVERAGES = "a vertex of the LP", "Lagrangian averages, not the LP"
SOLVERS = ["exact", "dp", "swap", "quantile", "auto"]
ONLINE = [
    *(f"sorted-f:phase1={name}" for name in SOLVERS),
    *(f"sorted-f-a-min:phase1={name}" for name in SOLVERS),
    *(f"{name}:means={means}" for name in ("sorted-lp", "lp-swap") for means in MEANS),
]
HINDSIGHT = [f"sorted-lp:hindsight=1,means={means}" for means in MEANS]


def sampled(count: int, size: int) -> Sequence[int]:
    return random.Random(SEED).sample(range(count), size)


PHASE_1: dict[str, wang_phase1.Phase1] = {
    "exact": wang_phase1.phase1_exact_brute,
    "dp": wang_phase1.phase1_dp,
    "swap": wang_phase1.phase1_swap,
    "quantile": wang_phase1.quantile_with(sampled),
    "auto": wang_phase1.phase1_exact_brute,
}


def drawn(count: int, seed: int, most: int = 7) -> Iterator[Instance]:
    """Draw small instances with arrivals; every interval holds the output."""
    rng = random.Random(seed)
    for _ in range(count):
        memory, last = rng.randint(1, rng.choice([8, 16, 30])), rng.choice([0, 3, 8, 20])
        requests = []
        for _ in range(rng.randint(0, most)):
            prompt = rng.choice([0, rng.randint(0, memory - 1), min(memory - 1, rng.randint(0, 3))])
            output = rng.randint(1, min(memory - prompt, rng.choice([2, 5, 30])))
            interval = Prediction(rng.randint(1, output), output + rng.randint(0, 3))
            requests.append(Request(rng.randint(0, last), prompt, output, predicted=interval))
        yield Instance(memory, requests)


def same(found: PolicyRun, expected: Run) -> bool:
    return (found.starts, found.evictions, found.objective) == (
        tuple(expected.starts),
        expected.evictions,
        expected.objective,
    )


# ---- worked cases ---------------------------------------------------------------------


@pytest.mark.parametrize("text", ONLINE + HINDSIGHT)
def test_policies_have_the_total_of_example_3_1(text: str) -> None:
    assert run(EXAMPLE_3_1, text).objective == 45


def test_the_true_optimum_of_phase_1_packs_what_the_program_cannot() -> None:
    # The short one leaves before the long one has grown, so the two may start together.
    instance = Instance(6, [Request(0, 3, 1), Request(0, 1, 3), Request(0, 4, 2)])
    assert run(instance, "sorted-f:phase1=exact").starts == (0, 0, 3)
    assert run(instance, "sorted-f:phase1=dp").starts == (0, 3, 1)


# ---- the pseudo-code ------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", PHASE_1)
def test_sorted_f_is_its_pseudo_code(name: str) -> None:
    for instance in drawn(many(200), 1):
        expected = literal.sorted_f(jobs_of(instance), instance.memory, PHASE_1[name])
        assert same(run(instance, f"sorted-f:phase1={name},seed={SEED}"), expected), instance


@pytest.mark.slow
@pytest.mark.parametrize("name", PHASE_1)
def test_sorted_f_a_min_is_its_pseudo_code(name: str) -> None:
    evictions = 0
    for instance in drawn(many(200), 2):
        expected = literal.sorted_f_a_min(
            jobs_of(instance), instance.memory, PHASE_1[name], shuffled_ranks(len(instance), SEED)
        )
        found = run(instance, f"sorted-f-a-min:phase1={name},seed={SEED}")
        assert same(found, expected), instance
        evictions += found.evictions
    assert evictions > many(20)


def means_of(instance: Instance, means: Means, positions: list[int]) -> dict[int, float]:
    """Return the mean starts of requests that may all start at once, without a solver's noise."""
    waiting = [replace(instance.requests[i], arrival=0) for i in positions]
    found = means(Instance(instance.memory, waiting))
    return {i: round(mean, 6) for i, mean in zip(positions, found, strict=True)}


@pytest.mark.slow
@pytest.mark.parametrize("means", MEANS)
def test_sorted_lp_and_lp_swap_are_their_pseudo_code(means: str) -> None:
    for instance in drawn(many(25), 3, most=8):

        def mean_starts(_: int, positions: list[int], at: Instance = instance) -> dict[int, float]:
            return means_of(at, MEANS[means], positions)

        for name, slow in (("sorted-lp", literal.sorted_lp), ("lp-swap", literal.lp_swap)):
            expected = slow(jobs_of(instance), instance.memory, mean_starts)  # type: ignore[arg-type]
            assert same(run(instance, f"{name}:means={means}"), expected), instance


@pytest.mark.slow
@pytest.mark.parametrize("means", MEANS)
def test_sorted_lp_in_hindsight_plans_once(means: str) -> None:
    for instance in drawn(many(25), 4, most=8):
        rounded = [round(mean, 6) for mean in MEANS[means](instance)]
        expected = literal.sorted_lp(jobs_of(instance), instance.memory, rounded)  # type: ignore[arg-type]
        assert same(run(instance, f"sorted-lp:hindsight=1,means={means}"), expected), instance


# ---- what holds for all ---------------------------------------------------------------


@pytest.mark.slow
@examples(12)
@given(instances())
def test_true_outputs_are_served_without_eviction(instance: Instance) -> None:
    for text in ONLINE + HINDSIGHT:
        found = run(instance, text)  # memory is checked in integers
        assert found.outcome is Outcome.COMPLETED
        assert found.evictions == 0


@pytest.mark.slow
@pytest.mark.parametrize("text", ONLINE)
def test_what_arrives_later_changes_nothing_before(text: str) -> None:
    check_online(text, tries=many(50))


@pytest.mark.parametrize("name", ["exact", "dp", "swap"])
def test_beliefs_that_were_too_low_clear_everything(name: str) -> None:
    outcomes = set()
    for instance in drawn(200, 6):
        lows = [r.predicted.lower for r in instance if r.predicted is not None]
        expected = literal.sorted_f(jobs_of(instance), instance.memory, PHASE_1[name], lows)
        found = run(instance, f"sorted-f:phase1={name},pred=lower")
        assert found.outcome == expected.outcome, instance
        assert expected.outcome == "livelock" or found.starts == tuple(expected.starts), instance
        outcomes.add((found.outcome, found.evictions > 0))
    assert len(outcomes) == 3  # also evictions and yet an end


@pytest.mark.slow
@pytest.mark.parametrize("text", ONLINE + HINDSIGHT)
@pytest.mark.parametrize("wrong", ["pred=upper", "pred=noise,eps=0.8", "intervals=rough,width=9"])
def test_wrong_beliefs_keep_the_rules(text: str, wrong: str) -> None:
    for instance in drawn(12, 7):
        found = run(instance, f"{text},{wrong}")
        assert found.outcome is Outcome.COMPLETED or found.evictions


@pytest.mark.slow
def test_learning_from_wrong_intervals_ends() -> None:
    for instance in drawn(120, 8):
        for wrong in ("pred=lower", "intervals=rough,width=30", "intervals=buckets,width=4"):
            assert run(instance, f"sorted-f-a-min:{wrong}").objective is not None


# ---- plans ----------------------------------------------------------------------------


def test_plans_go_only_as_far_as_they_are_needed() -> None:
    # One is served at a time; each of the three arrivals at 1, 2, 3 overtakes a plan.
    requests = [Request(at, 8, 2) for at in (0, 0, 0, 0, 1, 2, 3)]
    found = run(Instance(10, requests), "sorted-f")
    assert found.makespan == 14
    assert found.note == "batches: 7 exact"


def test_notes_name_the_source_of_a_plan() -> None:
    crowded = Instance(20, [Request(0, 10, 3 + at % 3) for at in range(8)])
    assert run(crowded, "sorted-lp").note == f"plans by mean starts: 1 by {LP}"
    assert run(crowded, "lp-swap:nonzeros=100").note == f"plans by mean starts: 1 by {AVERAGES}"
    assert run(crowded, "sorted-f:phase1=swap").note is None
    assert run(Instance(9, []), "sorted-lp:hindsight=1").objective == 0


@pytest.mark.slow
@pytest.mark.parametrize("label", ["sorted-lp:means=lp", "lp-swap:means=lagrangian"])
def test_certificates_and_records_say_whether_it_was_the_lp(label: str, tmp_path: Path) -> None:
    crowded = Instance(20, [Request(0, 10, 3 + at % 3) for at in range(8)])
    said = f"plans by mean starts: 1 by {LP if 'means=lp' in label else AVERAGES}"
    assert f"{label}: {said}" in certify(crowded, [label], time_limit=60).notes
    write_instance(crowded, tmp_path / "crowded.json")
    (tmp_path / "study.toml").write_text(
        f'name = "one"\npolicies = ["{label}"]\n'
        '[limits]\ntime_limit = 1\npolicy_time_limit = 120\n[[instances]]\nfile = "crowded.json"\n'
    )
    run_study(read_study(tmp_path / "study.toml"), tmp_path / "out", jobs=1)
    assert [record.note for record in read_records(tmp_path / "out")] == [said]


def test_the_budget_goes_to_plans_that_fit_into_it() -> None:
    requests = [Request(0, 10, 3)] * 8 + [Request(40, 10, 3)] * 3
    found = run(Instance(20, requests), "sorted-lp:nonzeros=50")
    assert found.note == f"plans by mean starts: 1 by {AVERAGES}; 1 by {LP}"


def test_what_no_lp_solver_takes_needs_none() -> None:
    wide = Instance(2**52, [Request(0, 2**51, 1)] * 3)
    assert run(wide, "sorted-lp").note == f"plans by mean starts: 1 by {AVERAGES}"
    with pytest.raises(TooLarge):
        run(wide, "sorted-lp:means=lp")


def test_hindsight_needs_arrivals() -> None:
    assert Need.ARRIVALS in policy("sorted-lp:hindsight=1").needs
    assert Need.ARRIVALS not in policy("sorted-lp").needs


def test_looking_policies_up_loads_no_solver_and_no_compiler() -> None:
    code = (
        "import sys; from kvopt.simulate.policies import policies; policies(); print(*sys.modules)"
    )
    loaded = printed(code)
    assert "kvopt.simulate.policies.lp_order" in loaded
    assert {"highspy", "numba", "scipy", "ortools", "pyomo"}.isdisjoint(loaded)


@pytest.mark.parametrize(
    ("family", "policy", "values"),
    [("thm-2.1", "mc-sf", (2, 3, 4)), ("thm-8.2", "mc-sf-total", (3, 5, 8))],
)
def test_ratios_grow_on_the_families_of_wang(
    family: str, policy: str, values: tuple[int, ...]
) -> None:
    """Theorems 2.1 and 8.2: the order by output, and by peak, loses more and more."""
    ratios = []
    for k in values:
        instance = generate(family, parameters={"k": k})
        value, best = run(instance, policy).objective, run(instance, "svf").objective
        ratios.append(known(value) / known(best))
    assert ratios == sorted(set(ratios))
    assert ratios[-1] > 1.4
