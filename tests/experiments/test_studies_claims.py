"""Verdicts on published claims: what certified numbers allow to say, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, get_args

import pytest
from studied import record, verdicts_on

from kvopt.experiments.studies.claims import CLAIMS, Verdict
from kvopt.experiments.studies.claims.mc_sf import mean_is_above
from kvopt.experiments.studies.claims.verdict import Judgement
from kvopt.experiments.studies.records import Record


def judgements(verdicts: Sequence[Verdict]) -> list[str]:
    return [verdict.verdict for verdict in verdicts]


def judged(claim: str, records: Sequence[Record]) -> list[str]:
    """Return what follows for each part of a published claim."""
    return judgements(verdicts_on(claim, records))


def proved(values: Sequence[int], optimum: int = 1000, **fields: Any) -> list[Record]:
    """Return runs of mc-sf on instances whose optimum is known."""
    return [
        record(number, value=value, upper=optimum, lower=optimum, **fields)
        for number, value in enumerate(values)
    ]


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_nothing_is_said_of_nothing(name: str) -> None:
    assert verdicts_on(name, []) == []
    assert verdicts_on(name, [record(policy=None, value=None, outcome="error", upper=None)]) == []


def test_a_mean_is_above_by_four_standard_errors() -> None:
    high = [Fraction(107, 100), Fraction(108, 100)] * 10
    assert mean_is_above(high, 1.005, 1.074, 200)
    assert not mean_is_above(high[:1], 1.005, 1.074, 200), "one draw says nothing"
    assert not mean_is_above([Fraction(1), Fraction(3)] * 3, 1.005, 1.074, 200), "it scatters"
    assert not mean_is_above([Fraction(1)] * 20, 1.005, 1.074, 200)


class TestArrivals:
    """jaillet-2025-v2 section 5.1."""

    def test_the_printed_numbers_are_recognised(self) -> None:
        ratios = [1000] * 114 + [1012] * 85 + [1074]
        assert sum(ratios) / 200 == pytest.approx(1005, abs=0.5)
        assert judged("arrival-1", proved(ratios)) == ["reproduced"] * 3

    def test_high_ratios_are_not_what_is_printed(self) -> None:
        verdicts = verdicts_on("arrival-1", proved([1080, 1090, 1100, 1110] * 5))
        assert judgements(verdicts) == ["not reproduced as printed"] * 3
        assert "20 of 20 draws are certainly above" in verdicts[1].found
        assert "optimal in 0 of 20 draws, certainly not in 20" in verdicts[2].found
        worst = "certificates/3.json"
        assert [verdict.certificates[0] for verdict in verdicts] == [worst] * 3

    def test_wide_intervals_leave_it_open(self) -> None:
        wide = [record(n, value=1100, upper=1098, lower=500) for n in range(20)]
        assert judged("arrival-1", wide)[:2] == ["undecided"] * 2
        unknown = [record(n, value=1100, upper=1100, lower=None) for n in range(200)]
        assert judged("arrival-1", unknown) == ["undecided"] * 3

    def test_few_draws_leave_it_open(self) -> None:
        assert judged("arrival-1", proved([1000, 1010])) == ["undecided"] * 3
        assert judged("arrival-2", proved([1050, 1200])) == ["undecided"] * 2

    def test_only_mc_sf_counts(self) -> None:
        assert verdicts_on("arrival-1", [record(policy="fcfs")]) == []


class TestTable4:
    """wang-2025 table 4."""

    def rows(self, family: str, *values: tuple[int, int, int], lower: int) -> list[Record]:
        policies = ("sorted-lp", "sorted-f:phase1=swap", "lp-swap")
        return [
            record(number, policy, value, family=family, upper=min(three), lower=lower)
            for number, three in enumerate(values)
            for policy, value in zip(policies, three, strict=True)
        ]

    def test_impossible_from_below_and_from_above(self) -> None:
        for family, values, lower, said in (
            ("uniform", (41_000, 40_000, 42_000), 30_000, "no schedule of any draw comes near"),
            ("exponential", (1_300, 1_200, 1_250), 1_000, "the worst run of any draw is far below"),
        ):
            found = verdicts_on("wang-table-4", self.rows(family, values, lower=lower))
            assert judgements(found) == ["not reproduced as printed", "undecided"]
            assert said in found[0].found

    def test_a_bound_below_or_near_the_table_leaves_it_open(self) -> None:
        for lower in (9_000, 15_000):
            rows = self.rows("uniform", (41_000, 40_000, 42_000), lower=lower)
            assert judged("wang-table-4", rows) == ["undecided"] * 2

    def test_an_order_has_to_stand_out(self) -> None:
        printed = [(10_000 + i, 9_000 + i, 11_000 + i) for i in range(5)]  # uniform: b < a < c
        other = [(a, c, b) for a, b, c in printed]
        noisy = [(a + 9_000 * (i % 2), b, c) for i, (a, b, c) in enumerate(printed)]
        for values, wanted in (
            (printed, "reproduced"),
            (other, "not reproduced as printed"),
            (noisy, "undecided"),
            (other[:4], "undecided"),
            ([(10_000, 10_000, 10_000)] * 5, "undecided"),
        ):
            assert judged("wang-table-4", self.rows("uniform", *values, lower=1))[1] == wanted


class TestCurves:
    """chen-2025 section 6 and wang-2025 section 7."""

    def test_chen_1(self) -> None:
        runs = [
            record(0, "h-sf", 1000, upper=990, lower=900),
            record(0, "a-min:intervals=rough,width=1000", 1020, upper=990, lower=900),
            record(0, "a-max:intervals=rough,width=1000", 1900, upper=990, lower=900),
        ]
        assert judged("chen-1", runs) == ["reproduced", "reproduced", "refuted"]
        tight = [record(0, "h-sf", 1000, upper=1000, lower=1000)]
        assert judged("chen-1", tight) == ["reproduced"]
        loose = [record(0, "h-sf", 1000, upper=1000, lower=900)]
        assert judged("chen-1", loose) == ["undecided"]

    def test_what_does_not_show_on_the_stand_in_is_left_open(self) -> None:
        runs = [
            record(0, "h-sf", 1000),
            record(0, "a-max:intervals=rough,width=1000", 1900),
            record(0, "a-max:intervals=buckets,width=100", 1500),
        ]
        assert judged("chen-2", runs)[0] == "undecided"
        assert "0.7894 to 0.7895 times" in verdicts_on("chen-2", runs)[0].found

    def test_instances_where_nothing_waits_say_nothing(self) -> None:
        policies = ("h-sf", "a-max:intervals=rough,width=1000", "mc-sf")
        same = [record(0, policy, 1000, upper=1000, lower=1000) for policy in policies]
        (verdict,) = verdicts_on("chen-1", same)
        assert verdict.claim.startswith("h-sf is a lower bound")

    def test_two_readings_of_the_benchmark(self) -> None:
        for value, wanted in ((800, "reproduced"), (700, "undecided")):
            values = {"h-sf": 1000, "mc-sf": value, "a-min:intervals=rough,width=1000": 820}
            runs = [record(0, policy, value) for policy, value in values.items()]
            assert judged("chen-1", runs)[:2] == ["reproduced", wanted]

    def test_mixed(self) -> None:
        values = {"mc-sf": 1200, "sorted-f:phase1=swap": 1000, "lp-swap": 1010, "sorted-lp": 1100}
        runs = [record(0, policy, value) for policy, value in values.items()]
        assert judged("wang-mixed", runs) == ["reproduced"] * 4


class TestEqualPrompts:
    """jaillet-2025-v1 theorem 4.2."""

    def test_one_better_schedule_refutes(self) -> None:
        (verdict,) = verdicts_on("equal-prompts", [*proved([1000, 1000]), record(7)])
        assert verdict.verdict == "refuted"
        assert verdict.certificates == ("certificates/7.json",)
        assert "with 4 requests 28 against 27" in verdict.found

    def test_none_is_no_proof(self) -> None:
        assert judged("equal-prompts", proved([1000] * 9)) == ["undecided"]


class TestAdversaries:
    """Games and constructions."""

    def games(self, ratios: Sequence[int]) -> list[Record]:
        return [
            record(
                i, policy, value * 100, upper=100, lower=100, family="thm-4.1",
                requests=4**i, memory=4**i,
            )
            for i, ratio in enumerate(ratios, 1)
            for policy, value in (("mc-sf", ratio), ("fcfs", 9 * ratio))
        ]  # fmt: skip

    def test_growth_like_a_root_is_seen_in_the_best_policy(self) -> None:
        (verdict,) = verdicts_on("adversary", self.games([1, 2, 4]))
        assert verdict.verdict == "reproduced"
        assert "4.000 at n = 64; slope of the logarithms from n = 16 on: 0.50" in verdict.found
        assert judged("adversary", self.games([2, 2, 2])) == ["undecided"]
        assert verdicts_on("adversary", self.games([1, 1, 2])) == []

    def test_growth_against_one_rule_has_to_be_certain(self) -> None:
        def runs(lower: int) -> list[Record]:
            return [
                record(i, "mc-sf", v, upper=100, lower=lower, family="thm-2.1", memory=10 * i)
                for i, v in ((2, 150), (3, 200))
            ]

        assert judged("adversary", runs(100)) == ["reproduced"]
        assert judged("adversary", runs(70)) == ["undecided"]

    def test_a_construction_that_falls_short_of_its_number(self) -> None:
        runs = [
            record(i, "mc-sf-total", v, upper=100, lower=100, family="thm-8.2", memory=100 * i)
            for i, v in enumerate([150, 200, 250], 1)
        ]
        (verdict,) = verdicts_on("adversary", runs)
        assert verdict.verdict == "not reproduced as printed", "2 sqrt(M) / 3 is 6.67 and more"
        assert "below what is printed at M = 100, 200, 300" in verdict.found

    def test_a_theorem_on_every_constant_is_only_measured(self) -> None:
        runs = [record(1, policy, 200, family="v1-thm-6.4") for policy in ("mc-sf", "fcfs")]
        assert judged("adversary", runs) == ["measured"]


def test_verdicts_have_the_words_of_the_contract() -> None:
    assert set(get_args(Judgement)) == {
        "reproduced", "not reproduced as printed", "refuted", "undecided", "measured",
    }  # fmt: skip
