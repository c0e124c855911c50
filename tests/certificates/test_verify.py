"""What a valid certificate proves, and that the verifier computes it exactly."""

from __future__ import annotations

import ast
import json
import math
import os
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from certificates import (
    EC1,
    SHAPES,
    certificate,
    judged,
    long_prices,
    prices_proof,
    proved,
    random_proof,
)
from commands import written
from interpreters import ROOT, python
from price_oracle import bound_of
from strategies import instance_of, plain

from kvopt.problem.instance import Instance
from kvopt.problem.requests import Request
from kvopt.verify import verify


class TestPriceBounds:
    """Any prices prove a bound, and it is computed exactly."""

    @pytest.mark.slow
    @pytest.mark.parametrize("shape", SHAPES)
    def test_long_tables_are_searched_exactly(
        self, shape: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Hundreds of rounds, so that blocks of every size are skipped and cut.
        source = random.Random(shape)
        for _ in range(6):
            proof = prices_proof(10**6, source.choice((1, 40)), long_prices(shape, source, 300))
            requests = [
                Request(source.randint(0, 400), source.randint(0, 40), source.randint(1, 60))
                for _ in range(12)
            ]
            instance = Instance(100, requests)
            exact = bound_of(*plain(instance), proof)
            for small in (0, 1, 3, 6):
                monkeypatch.setattr("kvopt.verify.check_prices.SMALL", small)
                assert proved(instance, proof) == math.ceil(exact)

    @pytest.mark.slow
    @pytest.mark.parametrize("length", [1, 2, 63, 64, 65])
    def test_outputs_longer_than_the_table_are_exact(self, length: int) -> None:
        source = random.Random(length)
        for _ in range(20):
            proof = prices_proof(50, 1, [source.randint(0, 30) for _ in range(length)])
            outputs = (1, length, length + 1, 2 * length + 1)
            requests = [Request(source.randint(0, length), 1, output) for output in outputs]
            instance = Instance(300, requests)
            exact = bound_of(*plain(instance), proof)
            assert proved(instance, proof) == math.ceil(exact)

    @pytest.mark.parametrize(
        ("proof", "value"),
        [
            (prices_proof(1, 1, []), 10),
            (prices_proof(5, 1, [0, 0, 0]), 10),
            (prices_proof(5, 10**15, [0]), 10),
            *((prices_proof(2, first, [1, 1]), 10 - 7) for first in (10, 1000, 10**15)),
        ],
    )
    def test_without_prices_or_beyond_the_horizon_the_outputs_remain(
        self, proof: dict[str, Any], value: int
    ) -> None:
        assert proved(EC1, proof) == value

    def test_prices_before_every_arrival_only_cost(self) -> None:
        late = instance_of(7, [(10**15, 1, 2), (10**15 + 3, 1, 2)])
        assert proved(late, prices_proof(2, 1, [1, 1])) == 4 - 7

    def test_arrivals_far_apart_change_nothing(self) -> None:
        far = instance_of(7, [(0, 1, 4), (10**15, 1, 4), (10**15, 1, 4), (10**15, 2, 4)])
        near = instance_of(7, [(0, 1, 4), (0, 1, 4), (0, 2, 4)])
        numbers = [30, 20, 10]
        assert proved(far, prices_proof(90, 10**15 + 1, numbers)) == 4 + proved(
            near, prices_proof(90, 1, numbers)
        )

    def test_weaker_prices_are_evaluated_anew(self, tmp_path: Path) -> None:
        source = random.Random(14)
        content = certificate(EC1, source)
        for _ in range(50):
            proof = random_proof(source)
            value = proved(EC1, proof)
            content["lower"] = {"value": value, "proof": proof}
            assert judged(tmp_path / "c", content).valid
            content["lower"]["value"] = value - 1
            assert judged(tmp_path / "c", content).valid
            content["lower"]["value"] = value + 1
            assert judged(tmp_path / "c", content).exit_status == 1


class TestReport:
    """The report says in words what was checked and what it proves."""

    def test_both_sides_and_policies_are_stated(self, tmp_path: Path) -> None:
        instance, mc_sf = instance_of(9, [(0, 1, o) for o in (3, 4, 5, 7)]), [0, 0, 3, 6]
        content = certificate(
            instance,
            random.Random(1),
            upper={"value": 28, "starts": mc_sf},
            lower={"value": 19, "proof": prices_proof(1, 1, [])},
            policies=[
                {"policy": "mc-sf", "outcome": "completed", "value": 28, "starts": mc_sf},
                {"policy": "x", "outcome": "unfinished", "value": None},
            ],
        )
        verdict = judged(tmp_path / "c", content)
        text = "\n".join(verdict.lines)
        assert verdict.valid
        assert verdict.readable
        assert "no schedule of these 4 requests has total latency below 19" in text
        assert "'mc-sf' is at most 1.474 and at least 1.000 times the optimum" in text
        assert "'x': unfinished, nothing is claimed" in text
        assert verdict.lines[-1] == "VALID"

    def test_ratios_are_rounded_outward(self, tmp_path: Path) -> None:
        one = instance_of(9, [(0, 1, 3)])
        content = certificate(
            one,
            random.Random(1),
            upper={"value": 3, "starts": [0]},
            policies=[{"policy": "late", "outcome": "completed", "value": 8, "starts": [5]}],
            lower={"value": 3, "proof": {"kind": "volume"}},
        )
        text = "\n".join(judged(tmp_path / "c", content).lines)
        assert "'late' is at most 2.667 and at least 2.666 times the optimum" in text
        assert "a schedule of total latency 3 is optimal" in text

    def test_a_side_may_be_unknown(self, tmp_path: Path) -> None:
        content = certificate(EC1, random.Random(1), upper=None, lower=None, policies=[])
        assert judged(tmp_path / "c", content).valid

    def test_an_empty_instance_is_optimal(self, tmp_path: Path) -> None:
        content = certificate(
            Instance(1, []), random.Random(1), lower={"value": 0, "proof": {"kind": "volume"}}
        )
        content["policies"][0]["value"] = content["upper"]["value"] = 0
        verdict = judged(tmp_path / "c", content)
        assert verdict.valid
        assert "'some' is optimal" in "\n".join(verdict.lines)


class TestRuns:
    """Schedules, and runs with work that evictions threw away."""

    @pytest.mark.parametrize(
        ("starts", "value", "words"),
        [
            ([0, 0, 0, 2], 12, None),
            ([0, 0, 0, 2], 11, "the starts give 12"),
            ([0, 0, 0, 0], 10, "9 tokens are held at one time"),
            ([-1, 0, 0, 3], 12, "before it arrives"),
            ([0, 0, 2], 12, "3 starts for 4 requests"),
        ],
    )
    def test_schedules_are_checked_for_rules_and_value(
        self, tmp_path: Path, starts: list[int], value: int, words: str | None
    ) -> None:
        content = certificate(EC1, random.Random(1), policies=[])
        content["upper"] = {"value": value, "starts": starts}
        verdict = judged(tmp_path / "c", content)
        assert verdict.valid == (words is None)
        assert words is None or (words in verdict.lines[0] and verdict.readable)

    @pytest.mark.parametrize(
        ("lost", "words"),
        [
            ([], None),
            ([[0, 0, 2]], None),
            ([[0, 0, 2], [0, 2, 4], [1, 4, 5]], None),
            ([[0, 0, 2], [1, 0, 2]], "tokens are held"),
            ([[0, 0, 2], [0, 1, 3]], "request 0 cannot lose"),
            ([[0, 4, 6]], "request 0 cannot lose"),  # its last start is 5
            ([[0, 0, 3]], "request 0 cannot lose"),  # it would have completed
            ([[0, 2, 2]], "request 0 cannot lose"),
            ([[0, -1, 1]], "request 0 cannot lose"),
            ([[2, 0, 1]], "must be [request, start, end]"),
            ([[-1, 0, 1]], "must be [request, start, end]"),
            ([[0, 1]], "must be [request, start, end]"),
        ],
    )
    def test_evictions_are_checked_for_rules(
        self, tmp_path: Path, lost: list[list[int]], words: str | None
    ) -> None:
        two = instance_of(4, [(0, 1, 3), (0, 1, 3)])
        run = {"policy": "p", "outcome": "completed", "value": 19, "starts": [5, 8], "lost": lost}
        content = certificate(two, random.Random(1), policies=[run])
        verdict = judged(tmp_path / "c", content)
        assert verdict.valid == (words is None), verdict.lines
        assert words is None or words in verdict.lines[0]


class TestIndependence:
    """One package, the standard library, nothing else of kvopt."""

    def test_one_file_alone_is_enough(self, tmp_path: Path) -> None:
        copy = tmp_path / "verify.pyz"
        made = [f"OUT={copy}", f"PYZ={tmp_path / 'pyz'}"]
        subprocess.run(["make", "-s", *made, "verify.pyz"], cwd=ROOT, check=True)
        path = tmp_path / "c.json"
        (tmp_path / "json.py").write_text("raise SystemExit('not the standard library')")
        disturbed = {**os.environ, "PYTHONPATH": str(tmp_path)}
        for content, status in (
            (certificate(EC1, random.Random(2)), 0),
            (certificate(EC1, random.Random(2), hash="sha256:0"), 1),
            ({}, 2),
        ):
            path.write_text(json.dumps(content))
            # -I -S: no site packages, no working directory, no environment.
            done = python("-I", "-S", copy, path, env=disturbed)
            assert (done.returncode, done.stderr) == (status, "")
            assert done.stdout.splitlines() == list(verify(path).lines)

    def test_it_is_written_for_python_3_9(self) -> None:
        files = [*(ROOT / "kvopt" / "verify").glob("*.py")]
        assert len(files) > 10
        for path in files:
            text = path.read_text(encoding="utf-8")
            ast.parse(text, feature_version=(3, 9))
            assert "strict=" not in text or path.name == "step_budget.py"
            # Later releases have itertools.pairwise, and evaluate list[int | None]().
            assert not re.search(r"from itertools import .*\bpairwise\b", text)
            assert not re.search(r"\w\[[^\]\n]*\|[^\]\n]*\]\(", text)

    @pytest.mark.parametrize("release", [(3, 7, 16), (3, 8, 18)])
    def test_older_releases_are_refused_in_a_line(self, release: tuple[int, ...]) -> None:
        """They can read the guard, and nothing that they cannot load comes before it."""
        text = (ROOT / "kvopt" / "verify" / "__init__.py").read_text(encoding="utf-8")
        ast.parse(text, feature_version=(3, 7))
        code = f"import runpy, sys; sys.version_info = {release}; runpy.run_module('kvopt.verify')"
        done = python("-c", code)
        said = f"kvopt.verify needs Python 3.9 or later, this is 3.{release[1]}\n"
        assert (done.returncode, done.stdout, done.stderr) == (2, "", said)

    def test_python_m_prints_the_verdict_or_its_use(self, tmp_path: Path) -> None:
        path = written(tmp_path / "c.json", json.dumps(certificate(EC1, random.Random(2))))
        done = python("-m", "kvopt.verify", path)
        assert done.returncode == 0
        assert done.stdout.endswith("VALID\n")
        none = python("-m", "kvopt.verify")
        assert none.returncode == 2
        assert "usage" in none.stderr

    @pytest.mark.parametrize(
        "code",
        [
            "import kvopt; v = kvopt.verify({path!r}); import kvopt.verify as m",
            "import kvopt.verify as m; from kvopt import verify; v = verify({path!r})",
        ],
    )
    def test_module_and_function_share_a_name(self, tmp_path: Path, code: str) -> None:
        path = written(tmp_path / "c.json", json.dumps(certificate(EC1, random.Random(2))))
        check = "; assert v.valid and m.Verdict and m.verify and m({path!r}).valid"
        python("-c", (code + check).format(path=str(path)), check=True)
