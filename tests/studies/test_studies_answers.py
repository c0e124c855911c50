"""The sentences with which a study ends: what intervals prove, and nothing more."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from studied import record

from kvopt.studies.answers import answer, left_out
from kvopt.studies.record_lines import Record


def runs(policy: str, *found: tuple[int | None, int, int | None]) -> list[Record]:
    """Return records of a policy from total latency, best schedule and bound of each instance."""
    return [
        record(number, policy, value, upper=upper, lower=lower)
        for number, (value, upper, lower) in enumerate(found)
    ]


def test_a_single_instance_is_answered_in_a_sentence() -> None:
    found = answer(
        [*runs("fcfs", (30, 20, 15)), *runs("svf", (21, 20, 15)), *runs("mc-sf", (20, 20, 15))]
    )
    assert found == [
        "On the one instance, mc-sf certainly takes at most 1.34 times the least total latency "
        "possible; svf 1.05 to 1.40 times; fcfs 1.50 to 2.00 times.",
        "There the bound and the best schedule are 25% apart: this does not decide whether much "
        "better schedules exist, as the bound may be too low, or the search too short.",
    ]


def test_several_instances_are_answered_on_average_and_at_worst() -> None:
    found = answer(
        [*runs("fcfs", (30, 20, 15), (20, 20, 20)), *runs("svf", (15, 15, 15), (4, 4, 4))]
    )
    assert found == [
        "On average over all 2 instances, svf certainly takes exactly the least total latency "
        "possible; fcfs 1.25 to 1.50 times."
    ]


@pytest.mark.parametrize(("lower", "is_said"), [(79, True), (80, False), (100, False)])
def test_gaps_above_a_fifth_have_a_remark(lower: int, is_said: bool) -> None:
    found = answer(runs("svf", (110, 100, lower), (110, 100, lower)))
    apart = [each for each in found if "does not decide" in each]
    assert [each.partition(":")[0] for each in apart] == [
        "There the bound and the best schedule are 21% apart"
    ] * is_said


def test_of_many_schedulers_the_best_and_the_worst_are_named() -> None:
    records = [each for k in range(6) for each in runs(f"p{k}", (20 + k, 20, 20))]
    first, second = answer(records)
    assert "p0 certainly takes exactly" in first
    assert "p5 1.25 times" in first
    assert "p3" not in first
    assert second == "Of 6 schedulers these have the least upper end and the largest lower end."


def test_incomplete_runs_are_counted_and_not_averaged() -> None:
    found = answer([*runs("svf", (20, 20, 20)), *runs("alpha", (None, 20, 20), (90, 20, 20))])
    assert found[0].startswith("On the one instance, svf certainly takes exactly")
    assert found[1] == "alpha completed 1 of 2 runs."


def test_schedulers_that_met_other_instances_are_not_called_comparable() -> None:
    found = answer([*runs("svf", (20, 20, 20)), *runs("mc-sf", (20, 20, 20), (30, 20, 20))])
    assert found[0].startswith("On average over the instances that each scheduler met (1 to 2), ")


def test_without_a_bound_there_is_no_upper_end() -> None:
    (said,) = answer([*runs("svf", (20, 20, None)), *runs("fcfs", (30, 20, None))])
    assert "svf certainly takes at least 1.00 times" in said
    assert "fcfs at least 1.50 times" in said
    assert (
        "fcfs at least 1.50 times"
        in answer([*runs("svf", (20, 20, 20)), *runs("fcfs", (30, 20, None))])[0]
    )


@given(st.lists(st.tuples(*[st.integers(1, 60)] * 3).map(sorted), min_size=1, max_size=6))
def test_ends_are_rounded_outward(found: list[list[int]]) -> None:
    records = runs("svf", *((value, upper, lower) for lower, upper, value in found))
    said = answer(records)[0].partition("takes ")[2].partition(" times")[0]
    least = sum(Fraction(value, upper) for _, upper, value in found) / len(found)
    most = sum(Fraction(value, lower) for lower, _, value in found) / len(found)
    if said.startswith("exactly"):
        assert least == most == 1
    elif said.startswith("at most"):
        assert Fraction(said.split()[2]) >= most
    elif " to " in said:
        low, high = map(Fraction, said.split(" to "))
        assert low <= least <= most <= high < most + Fraction(1, 100)
    else:
        assert least == most == pytest.approx(float(said), abs=0.005)


def test_nothing_is_answered_from_nothing() -> None:
    assert answer([]) == []
    assert answer([record(0, None, None, outcome="error")]) == []


def test_left_out_requests_are_noted_once_for_each_trace() -> None:
    dropped = {
        "missing field": {"rows": 2, "first_line": 41},
        "blank line": {"rows": 1, "first_line": 1200},
    }
    keys = {"left_out": 3, "max_total": 1200, "dropped": dropped}
    records = [record(k, "svf", 9, name="a.csv", parameters=keys) for k in range(2)]
    assert left_out(records) == [
        "a.csv: 3 of 7 requests left out: they have more than 1,200 tokens (max_total)",
        "a.csv: 2 lines left out: missing field (first at line 41)",
        "a.csv: 1 line left out: blank line (first at line 1,200)",
    ]
    assert left_out(runs("svf", (20, 20, 20))) == []
