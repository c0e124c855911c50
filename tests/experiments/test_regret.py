"""The steady family, the paced policy, and what the study of regret concludes from records."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import pytest
from brute_force import load
from hypothesis import given
from hypothesis import strategies as st
from strategies import instances, plain
from studied import verdicts_on

from kvopt import Instance, InvalidInput, generate, policy, run
from kvopt.experiments.studies.claims.mc_sf import grows_linearly, regret_of
from kvopt.experiments.studies.intervals import Interval
from kvopt.experiments.studies.records import Record, StudiedInstance, record_key
from kvopt.experiments.theory.jaillet import _certain_regret


def made(horizon: int, value: int, upper: int, lower: int, seed: int = 0) -> Record:
    instance = StudiedInstance(
        f"steady-{horizon}", "steady", {"rate": 0.8, "rounds": horizon}, seed, 100, 6, f"{seed}"
    )
    return Record(
        key=record_key(f"{horizon} {seed}", "mc-sf", {}, "0"),
        study="regret",
        instance=instance,
        policy="mc-sf",
        limits={},
        outcome="completed",
        value=value,
        upper=upper,
        lower=lower,
        certificate=f"certificates/{horizon}-{seed}.json",
    )


def several(*rows: tuple[int, int, int, int], draws: int = 3) -> list[Record]:
    return [made(*row, seed=seed) for row in rows for seed in range(draws)]


GROWING = ((100, 500, 400, 300), (400, 900, 500, 300), (1600, 2000, 400, 1))


def test_regret_is_an_interval_a_request() -> None:
    found = regret_of(made(10, 500, 400, 300))
    assert found == Interval(Fraction(1), Fraction(2))


def test_growth_with_the_horizon_refutes() -> None:
    (verdict,) = verdicts_on("regret", several(*GROWING))
    assert verdict.verdict == "refuted"
    assert "[1.00, 2.00] at T = 100" in verdict.found
    assert verdict.certificates[0] == "certificates/1600-0.json"


@pytest.mark.parametrize(
    ("rows", "draws"),
    [
        (((100, 500, 400, 300), (400, 520, 400, 300), (1600, 530, 400, 300)), 3),  # hardly grows
        (((100, 500, 500, 300), (400, 900, 900, 300), (1600, 2000, 2000, 1)), 3),  # not certain
        (((100, 500, 400, 300), (200, 900, 500, 300), (400, 2000, 400, 1)), 3),  # too short
        (GROWING, 1),  # a single draw
    ],
)
def test_anything_less_is_undecided(
    rows: tuple[tuple[int, int, int, int], ...], draws: int
) -> None:
    (verdict,) = verdicts_on("regret", several(*rows, draws=draws))
    assert verdict.verdict == "undecided"


def test_two_horizons_say_nothing() -> None:
    assert verdicts_on("regret", several(GROWING[0], GROWING[2])) == []


def test_an_unknown_end_is_no_growth() -> None:
    ends = [(1, Interval(None, None)), (2, Interval(Fraction(3), None))]
    assert not grows_linearly(ends)


def test_mc_sf_falls_behind_where_one_start_a_round_keeps_up() -> None:
    """The proof of the findings, as a run: from horizon to horizon the regret grows."""
    means = []
    for rounds in (500, 4000):
        instance = generate("steady", seed=1, parameters={"rounds": rounds})
        values = [run(instance, label).objective for label in ("mc-sf", "paced")]
        assert all(value is not None for value in values)
        means.append([Fraction(value or 0, len(instance)) for value in values])
    (mc_sf, paced), (later_mc_sf, later_paced) = means
    assert later_mc_sf > 4 * mc_sf > 8 * paced
    assert later_paced < 8


def test_mc_sf_falls_behind_within_the_hypotheses_of_theorem_5_3() -> None:
    """Arrivals of bounded support and prompts of a token: two requests a round, or none."""
    keys = {"rate": 0.8, "rounds": 3000, "prompt": 1, "batch": 2}
    instance = generate("steady", seed=1, parameters=keys)
    arrivals = Counter(request.arrival for request in instance)
    assert set(arrivals.values()) == {2}
    assert len(instance) == pytest.approx(0.8 * 3000, rel=0.1)
    assert (instance.memory, {request.shape for request in instance}) == (9, {(1, 3)})
    regret = [float(_certain_regret(0.8, rounds, draws=3)) / rounds for rounds in (250, 1000, 4000)]
    assert min(regret) > 0.06  # in proportion to the horizon


def test_the_default_cache_holds_one_request_of_each_age() -> None:
    instance = generate("steady", parameters={"rate": 3, "rounds": 50, "output": 7, "prompt": 2})
    assert instance.memory == sum(2 + age for age in range(1, 8))
    found = run(instance, "paced")
    assert found.peak_memory == instance.memory
    starts = sorted(start for start in found.starts if start is not None)
    assert starts == list(range(len(instance)))


@pytest.mark.slow
@given(instances(), st.integers(1, 4))
def test_paced_keeps_its_pace_its_memory_and_its_order(instance: Instance, gap: int) -> None:
    found = run(instance, f"paced:gap={gap}")
    assert found.schedule is not None
    order = sorted(range(len(instance)), key=lambda i: (instance.requests[i].arrival, i))
    starts = [found.schedule.starts[i] for i in order]
    assert all(after - before >= gap for before, after in pairwise(starts))
    memory, requests = plain(instance)
    for time in range(found.makespan + 1):
        assert load(requests, found.schedule.starts, time) <= memory
    for k, i in enumerate(order):  # each starts as early as the pause and the others let it
        request, earlier = instance.requests[i], order[:k]
        begin = max(request.arrival, starts[k - 1] + gap if k else 0)
        for start in range(begin, starts[k]):
            chosen = [requests[j] for j in (*earlier, i)]
            tried = [*(found.schedule.starts[j] for j in earlier), start]
            ends = [k + o for (_, _, o), k in zip(chosen, tried, strict=True)]
            assert max(load(chosen, tried, end) for end in ends) > memory


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"output": 9}, "memory: must be at least"),
        ({"least": 4}, "least: 4 is above"),
        ({"rate": 1e6, "rounds": 10**6}, "rate: "),
        ({"rate": 3, "batch": 2}, "batch: 2 is below rate = 3"),
    ],
)
def test_what_steady_refuses(keys: dict[str, int], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        generate("steady", memory=6, parameters=keys)


def test_outputs_are_drawn_between_their_ends() -> None:
    keys = {"rounds": 300, "output": 5, "least": 2}
    outputs = {r.output for r in generate("steady", seed=2, parameters=keys)}
    assert outputs == {2, 3, 4, 5}


def test_a_pause_of_no_round_is_refused() -> None:
    with pytest.raises(InvalidInput, match="gap"):
        policy("paced:gap=0")
