"""Verdicts on claims about traffic in seconds: printed figures agree, others are left open."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest
from studied import record, verdicts_on

from kvopt.experiments.studies.claims import CLAIMS, Verdict
from kvopt.experiments.studies.claims.traffic import keys_of
from kvopt.experiments.studies.description import Limits, builtin_text
from kvopt.experiments.studies.records import Record
from kvopt.problem.hardware.batch_time_files import DEFAULT_MODEL, batch_time

SECONDS = 10**9
MODEL = batch_time(DEFAULT_MODEL)

PRINTED = {
    "mc-sf": 32.112,
    "fcfs": 46.472,
    "alpha-protect:alpha=0.3": 51.933,
    "alpha-protect:alpha=0.25": 51.046,
    "alpha-beta:alpha=0.2,beta=0.2": 50.401,
    "alpha-beta:alpha=0.2,beta=0.1": 50.395,
    "alpha-beta:alpha=0.1,beta=0.2": 53.393,
    "alpha-beta:alpha=0.1,beta=0.1": 50.862,
}


def run_of(
    policy: str, mean: float | None, n: int = 1000, rate: float = 50, number: int = 0
) -> Record:
    """Return a record of traffic with a mean latency in seconds."""
    value = None if mean is None else round(mean * n * SECONDS)
    return record(
        number,
        policy,
        value,
        requests=n,
        hash=f"sha256:{n}-{rate}-{number}",
        family="conversation",
        parameters={"n": n, "per_second": rate},
        limits=Limits(batch_time=MODEL).to_json(),
        upper=value,
        lower=None if value is None else value // 2,
    )


def judged(verdicts: Sequence[Verdict]) -> dict[str, str]:
    return {verdict.claim: verdict.verdict for verdict in verdicts}


def one(verdicts: Sequence[Verdict], words: str) -> Verdict:
    (found,) = [verdict for verdict in verdicts if words in verdict.claim]
    return found


@pytest.mark.parametrize("name", ["v2-5.2-traffic", "v2-5.2-table-1", "v2-5.2-alpha"])
def test_a_study_in_rounds_says_nothing_of_seconds(name: str) -> None:
    rounds = [record(k, policy, 30) for k in range(9) for policy in PRINTED]
    assert verdicts_on(name, rounds) == []


@pytest.mark.parametrize(
    "name",
    ["v2-5.2-traffic", "v2-5.2-table-1", "v2-5.2-alpha", "v2-5.2-errors", "wang-7", "chen-6"],
)
def test_every_study_of_stand_ins_says_so(name: str) -> None:
    said = tomllib.loads(builtin_text(name))
    assert "stand-in" in said["title"].lower()
    assert said["clock"] == "seconds"
    assert set(said["claims"]) <= CLAIMS.keys()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("mc-sf", ("mc-sf", {})),
        ("a-b:alpha=0.1,beta=0.2", ("a-b", {"alpha": "0.1", "beta": "0.2"})),
        (None, ("", {})),
    ],
)
def test_keys_of_policies(text: str | None, wanted: tuple[str, dict[str, str]]) -> None:
    assert keys_of(text) == wanted


class TestTraffic:
    """Figure 3."""

    SIZES = (1000, 2000, 3000, 4000)

    def curves(
        self, of: Mapping[str, Callable[[int], float | None]], rate: float = 50
    ) -> list[Record]:
        return [
            run_of(policy, mean(n), n, rate, number=place)
            for place, n in enumerate(self.SIZES)
            for policy, mean in of.items()
        ]

    def test_what_is_printed_agrees(self) -> None:
        found = verdicts_on(
            "v2-5.2-traffic",
            self.curves(
                {
                    "mc-sf": lambda n: 5 + n / 100,
                    "fcfs": lambda n: 5 + 3 * n / 100,
                    "alpha-protect:alpha=0.3": lambda n: 6 + 3.2 * n / 100,
                }
            ),
        )
        assert one(found, "the best of eight").verdict == "reproduced"
        assert one(found, "rises more steeply").verdict == "reproduced"
        assert "3.00 times (fcfs), the others up to 3.2" in one(found, "rises more").found
        assert one(found, "1/6 s").verdict == "not reproduced as printed"
        assert "0.01000 and 0.03000 s" in one(found, "1/6 s").found
        far = one(found, "How far mc-sf")
        assert (far.verdict, "[1.000, 2.000]" in far.found) == ("measured", True)

    def test_what_does_not_agree_is_left_open(self) -> None:
        alike = {policy: (lambda n: n / 1000) for policy in ("mc-sf", "fcfs", "a-min")}
        found = verdicts_on("v2-5.2-traffic", self.curves(alike, rate=10))
        assert one(found, "the best of eight").verdict == "undecided"
        assert one(found, "rises more steeply").verdict == "undecided"
        assert one(found, "rises more steeply").found.endswith("on the stand-in: does not agree")

    def test_a_curve_that_bends_is_no_line(self) -> None:
        bent = {"mc-sf": lambda n: (n / 1000) ** 3, "fcfs": lambda n: 3 * (n / 1000) ** 3}
        assert (
            one(verdicts_on("v2-5.2-traffic", self.curves(bent)), "rises more steeply").verdict
            == "undecided"
        )

    def test_a_rate_that_is_not_printed_is_measured(self) -> None:
        of = {"mc-sf": lambda n: n / 1000, "fcfs": lambda n: 5 * n / 1000}
        found = verdicts_on("v2-5.2-traffic", self.curves(of, rate=16))
        assert {verdict.verdict for verdict in found} == {"measured"}

    def test_who_loops_has_no_curve(self) -> None:
        found = verdicts_on(
            "v2-5.2-traffic",
            self.curves(
                {
                    "mc-sf": lambda n: n / 100,
                    "fcfs": lambda n: 3 * n / 100,
                    "alpha-protect:alpha=0.1": lambda n: n / 1000 if n < 3000 else None,
                }
            ),
        )
        assert one(found, "the best of eight").verdict == "reproduced"

    def test_two_sizes_say_nothing_of_slopes(self) -> None:
        assert (
            verdicts_on(
                "v2-5.2-traffic", self.curves({"mc-sf": lambda n: n, "fcfs": lambda n: 3 * n})[:4]
            )
            == []
        )


class TestTable1:
    """Averages over runs."""

    def runs(self, scale: float = 1.0, spread: float = 0.43, runs: int = 6) -> list[Record]:
        return [
            run_of(policy, scale * mean + spread * (number % 2 - 0.5) * 1.5, number=number)
            for number in range(runs)
            for policy, mean in PRINTED.items()
        ]

    def test_what_is_printed_agrees(self) -> None:
        found = verdicts_on("v2-5.2-table-1", self.runs())
        assert len(found) == 6
        assert {verdict.verdict for verdict in found} == {"reproduced"}

    def test_a_faster_server_has_the_same_ratios(self) -> None:
        found = judged(verdicts_on("v2-5.2-table-1", self.runs(0.5, spread=0.0)))
        assert found["MC-Benchmark (fcfs) as a multiple of mc-sf"] == "reproduced"
        assert found["The six others as multiples of mc-sf"] == "reproduced"
        assert found["Average latency of mc-sf in seconds"] == "undecided"
        assert found["Standard deviation of mc-sf over the runs"] == "undecided"

    def test_averages_over_other_runs_are_not_compared(self) -> None:
        assert verdicts_on("v2-5.2-table-1", self.runs()[:-1]) == []
        assert verdicts_on("v2-5.2-table-1", self.runs(runs=4)) == []
        assert verdicts_on("v2-5.2-table-1", [run_of("mc-sf", 1, number=k) for k in range(9)]) == []


class TestProtection:
    """The smallest alpha, and what protection costs."""

    @staticmethod
    def grid(loops: Sequence[int], number: int = 0, rate: float = 50) -> list[Record]:
        return [
            run_of(
                f"alpha-protect:alpha={k / 100:g}", None if k in loops else 9, 10_000, rate, number
            )
            for k in range(31)
        ]

    def test_printed_alphas_agree(self) -> None:
        found = verdicts_on("v2-5.2-alpha", self.grid(range(21)) + self.grid(range(24), rate=10))
        assert {verdict.verdict for verdict in found} == {"reproduced"}
        assert len(found) == 3

    def test_safe_is_where_nothing_above_loops(self) -> None:
        found = verdicts_on("v2-5.2-alpha", self.grid([0, 1, 2, 3, 7]) + self.grid([], number=1))
        assert "0.08, 0 with 10,000 requests" in one(found, "smallest alpha").found
        assert one(found, "smallest alpha").verdict == "undecided"
        assert one(found, "loops at 50").verdict == "undecided"
        assert (
            "none with" in one(verdicts_on("v2-5.2-alpha", self.grid([30])), "smallest alpha").found
        )

    def test_curves_over_alpha(self) -> None:
        def sweep(of: Callable[[float], float | None]) -> list[Record]:
            alphas = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
            return [run_of(f"alpha-beta:alpha={a},beta=0.1", of(a)) for a in alphas]

        valley = verdicts_on("v2-5.2-alpha", sweep(lambda a: 10 + 100 * abs(a - 0.2)))
        assert [verdict.verdict for verdict in valley] == ["reproduced"] * 2
        rising = verdicts_on("v2-5.2-alpha", sweep(lambda a: 10 + a))
        assert [verdict.verdict for verdict in rising] == ["undecided"] * 2
        assert "least at 0.02" in rising[1].found
        looping = verdicts_on("v2-5.2-alpha", sweep(lambda a: None if a < 0.1 else 10 + a))
        assert looping[0].found.startswith("no end at 0.02")
        assert looping[0].verdict == "reproduced"
        assert "all alike" in verdicts_on("v2-5.2-alpha", sweep(lambda _: 4.0))[1].found


class TestErrors:
    """Predictions with noise."""

    @staticmethod
    def runs(noisy: float | None, bare: float | None) -> list[Record]:
        return [
            run_of("fcfs", 20),
            run_of("mc-sf", 10),
            run_of("mc-sf:pred=noise,eps=0.5,alpha=0.1", noisy),
            run_of("mc-sf:pred=noise,eps=0.5", bare),
        ]

    def test_below_the_benchmark(self) -> None:
        found = verdicts_on("v2-5.2-errors", self.runs(11, None))
        assert "0.55 to 0.55 times fcfs; 0 of 1 runs do not complete" in found[0].found
        assert found[0].verdict == "reproduced"

    @pytest.mark.parametrize("noisy", [None, 19.0])
    def test_a_loop_or_a_curve_close_by_does_not_agree(self, noisy: float | None) -> None:
        assert verdicts_on("v2-5.2-errors", self.runs(noisy, None))[0].verdict == "undecided"

    def test_without_the_benchmark_nothing_is_compared(self) -> None:
        assert verdicts_on("v2-5.2-errors", self.runs(11, 12)[1:]) == []


def test_claims_on_backlogs_say_which_clock_they_are_about() -> None:
    values = {"mc-sf": 2.0, "sorted-f:phase1=swap": 1.0, "sorted-lp": 0.9, "lp-swap": 0.95}
    found = verdicts_on("wang-mixed", [run_of(policy, mean) for policy, mean in values.items()])
    assert found
    assert all(", in seconds, on 1 instances" in verdict.found for verdict in found)


def test_a_benchmark_that_is_beaten_is_no_bound() -> None:
    rows = {"h-sf": 2.0, "mc-sf": 1.5, "a-max:intervals=rough,width=1000": 6.0}
    runs = [run_of(policy, mean) for policy, mean in rows.items()]
    best = runs[1].value
    found = verdicts_on("chen-6", [replace(run, upper=best, lower=1) for run in runs])
    assert one(found, "lower bound on the latency").verdict == "refuted"
    assert len(judged(found)) == len(found), "each claim once"
