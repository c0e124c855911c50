"""Prices: any are valid, the fast evaluation is exact, and the best reach the LP bound."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from effort import few_steps
from hypothesis import assume, given
from hypothesis import strategies as st
from known import known
from strategies import instances

from kvopt import Instance, Request, bound, generate
from kvopt.bounds import lagrangian, scan
from kvopt.bounds.fluid import fluid_prices
from kvopt.bounds.kinds import Kinds
from kvopt.bounds.prices import denominator_for, price_bound, price_value, rounded_prices
from kvopt.bounds.scan import Scanner
from kvopt.bounds.volume import fluid_completions, volume_bound
from kvopt.errors import Stopped
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.proofs import PriceProof, VolumeProof
from kvopt.incumbent.result import Progress
from kvopt.kernels.budget import Budget
from kvopt.search.stages import ascend

# ---- the fluid start ---------------------------------------------------------------


@pytest.mark.slow
@given(instance=instances())
def test_fluid_prices_are_not_negative_and_end_with_the_fluid(instance: Instance) -> None:
    prices = fluid_prices(instance)
    ends = fluid_completions([(r.arrival, r.volume) for r in instance], instance.memory)
    assert len(prices) == max(ends, default=0)
    assert all(prices >= 0)


def test_fluid_prices_of_a_backlog_fall_by_one_over_the_volume() -> None:
    """Three of volume 3 on M = 3: one a round, and each completion moves the price by 1 / M."""
    instance = Instance(3, [Request(0, 2, 1), Request(0, 0, 2), Request(0, 0, 2)])
    assert [r.volume for r in instance] == [3, 3, 3]
    assert fluid_prices(instance) * 3 == pytest.approx([2.5, 1.5, 0.5])


def test_fluid_prices_are_zero_while_the_fluid_idles() -> None:
    instance = Instance(3, [Request(0, 2, 1), Request(5, 2, 1)])
    assert fluid_prices(instance) * 3 == pytest.approx([0.5, 0, 0, 0, 0, 0.5])


def test_fluid_prices_return_to_the_line_of_the_interrupted() -> None:
    """Volume 6 is interrupted at 1 by volume 3: its line falls by 1 / 6 a round throughout."""
    instance = Instance(3, [Request(0, 0, 3), Request(1, 2, 1)])
    assert [r.volume for r in instance] == [6, 3]
    assert fluid_prices(instance) == pytest.approx([2.5 / 6, 1 / 6 + 0.5 / 3, 0.5 / 6])


@pytest.mark.slow
@given(instance=instances(), share=st.sampled_from((0.5, 0.9)))
def test_a_fluid_may_fill_a_share_of_the_memory(instance: Instance, share: float) -> None:
    memory = max(1, int(share * instance.memory))
    assume(all(r.prompt + r.output <= memory for r in instance))
    smaller = Instance(memory, instance.requests)
    assert fluid_prices(instance, share).tolist() == fluid_prices(smaller).tolist()


# ---- the ascent --------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "n", "memory"),
    [("arrival-2", 20, None), ("uniform", 14, 100), ("conversation", 10, 800),
     ("two-point", 20, 100)],
)  # fmt: skip
def test_it_reaches_the_lp_bound(family: str, n: int, memory: int | None) -> None:
    instance = generate(family, n, memory, seed=3)
    with few_steps(1500):
        lp, found = (bound(instance, method).value for method in ("lp", "lagrangian"))
    assert lp is not None
    assert found is not None
    assert found >= 0.999 * (lp - 1)  # the LP value was rounded up
    assert found <= lp + 1


def test_rounding_loses_less_than_a_millionth() -> None:
    instance = generate("conversation", 300, 4000, seed=2)
    values = fluid_prices(instance)
    coarse = rounded_prices(values, denominator_for(Kinds.of(instance), values))
    fine = rounded_prices(values, 2**60)
    loss = Fraction(price_value(instance, fine), 2**60) - Fraction(
        price_value(instance, coarse), coarse.denominator
    )
    assert abs(loss) <= Fraction(price_value(instance, fine), 2**60) / 10**6


@pytest.mark.slow
@pytest.mark.usefixtures("few_steps")
def test_same_seed_same_bound_and_threads_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    # By default one thread would do all the work.
    monkeypatch.setattr(scan, "Scanner", partial(Scanner, few_steps=0))
    instance = generate("arrival-2", 40, seed=4)
    values = {bound(instance, "lagrangian", threads=threads).value for threads in (1, 2, 2)}
    assert len(values) == 1


@pytest.mark.usefixtures("processor_clock")
def test_it_reports_progress_and_keeps_what_it_has_at_a_limit() -> None:
    instance = generate("conversation-summarisation", 2000, 16492, seed=1)
    seen: list[Progress] = []
    result = bound(instance, "lagrangian", time_limit=1.0, observer=seen.append)
    values = [progress.lower_bound or 0 for progress in seen]
    assert result.value == values[-1]
    assert values == sorted(values)
    assert result.seconds < 3.0
    proof = known(result.checked).proof
    assert isinstance(proof, PriceProof)
    assert price_bound(instance, proof) == result.value


@pytest.mark.usefixtures("processor_clock")
def test_a_short_limit_gives_the_fluid_bound_without_compiling() -> None:
    instance = generate("conversation", 500, 16492, seed=1)
    result = bound(instance, "lagrangian", time_limit=0.4)
    assert result.seconds < 2.0
    prices = fluid_prices(instance)
    fluid = rounded_prices(prices, denominator_for(Kinds.of(instance), prices))
    assert known(result.value) == price_bound(instance, fluid)


def test_no_time_gives_the_volume_bound_and_says_so() -> None:
    instance = generate("arrival-1", 20, seed=1)
    found = bound(instance, "lagrangian", time_limit=0)
    assert found.value == volume_bound(instance)
    assert found.note == "lagrangian: nothing within the limit; this is the volume bound"
    assert known(found.checked).proof == VolumeProof()


@pytest.mark.slow
def test_a_climb_with_a_share_of_the_time_ends_once_it_gains_too_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    soon = partial(lagrangian.rising_prices, first_look=0.0)
    monkeypatch.setattr(lagrangian, "rising_prices", soon)
    instance, values = generate("arrival-1", 30, seed=1), []
    for seconds in (math.inf, 600.0):
        search = Search(instance)
        ascend(search, search.budget.part(most=seconds), 1.0)
        values.append(known(search.checked).value)
    assert volume_bound(instance) <= values[1] < values[0]


def test_a_scan_stops_when_asked() -> None:
    instance = generate("arrival-1", 20, seed=1)
    scanner = Scanner(Kinds.of(instance), budget=Budget(0.0))
    with pytest.raises(Stopped):
        scanner.least_costs(np.ones(10), 1)


def test_too_many_rounds_are_refused_in_words() -> None:
    result = bound(Instance(10**9, [Request(0, 0, 10**9)] * 2), "lagrangian")
    assert result.value is None
    assert "rounds" in (result.note or "")


@pytest.mark.slow
def test_long_outputs_and_empty_instances_have_a_bound() -> None:
    search = Search(Instance(10, []))
    ascend(search, search.budget)
    assert search.lower_bound == 0
    assert bound(Instance(10**9, [Request(0, 10**8, 900)] * 20), "lagrangian").value is not None
