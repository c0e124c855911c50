"""What a check may take: small files that kept the verifier busy, and budgets."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from certificates import judged
from commands import Run
from strategies import instance_of

import kvopt
import kvopt.verify as checker
from kvopt.certificates.effort import budget_needed
from kvopt.certificates.writing import certificate_text, with_budget, write_with_budget
from kvopt.files import instance_from_json
from kvopt.search.proofs import ConfigurationProof, StatePrices
from kvopt.verify import verify

HERE = Path(__file__).parents[2]


def rows(*triples: tuple[int, int, int]) -> list[dict[str, int]]:
    return [{"arrival": a, "prompt": s, "output": o} for a, s, o in triples]


def claimed(
    memory: int, requests: list[dict[str, int]], proof: dict[str, Any], value: int = 0, **more: Any
) -> dict[str, Any]:
    """Return a certificate of nothing but a lower bound."""
    instance = {"schema": "kvopt.instance/1", "memory": memory, "requests": requests}
    return {
        "schema": "kvopt.certificate/1",
        "instance": instance,
        "hash": instance_from_json(instance).hash,
        "upper": None,
        "lower": {"value": value, "proof": proof},
        **more,
    }


def a_long_output() -> dict[str, Any]:
    """Search on while a request of 100,000 rounds runs: its tail was copied in each of them."""
    stage = {"denominator": 1, "peaks": [[4, 3]], "times": [99_000], "numerators": [[0, 0, 9]]}
    proof = {
        "kind": "configurations",
        "target": 100_003,
        "searched": True,
        "stages": [stage],
    }
    return claimed(200_000, rows((0, 1, 100_000), (98_990, 1, 3)), proof)


def a_long_staircase() -> dict[str, Any]:
    """Return thresholds that each request passes one by one, and many requests."""
    requests = rows(*((0, 10**6 + i, 1) for i in range(10_000)))
    return claimed(10**9, requests, {"kind": "volume", "staircases": [[1] * 60_000]})


def a_repeated_line() -> dict[str, Any]:
    """Return a proof in seconds that names one line of the model a hundred thousand times."""
    proof = {"kind": "shares", "lines": [0] * 100_000, "weights": [], "company": []}
    found = claimed(100, rows(*[(0, 1, 2)] * 2000), proof)
    model = {"lines": [{"round_ns": 1, "token_ns": 1}], "kv_ns": 0, "prompt_ns": 0}
    return {**found, "schema": "kvopt.seconds-certificate/1", "model": model}


def a_long_gap() -> dict[str, Any]:
    """Return ten million rounds between an arrival and the first price."""
    proof = {"kind": "prices", "denominator": 1, "first": 10**7, "numerators": [1]}
    return claimed(2**52, rows((0, 1, 10**7)), proof)


def pieces_between_pauses() -> dict[str, Any]:
    """Return a request that pauses after each token, with a piece of its prompt in each pause."""
    many = 40_000
    found = claimed(many + 5, rows((0, 1, many)), {})
    pieces = [{"request": 0, "start": 2 * j, "tokens": [1]} for j in range(many)]
    segments = [[[2 * j + 2, 2 * j + 2] for j in range(many)]]
    return {
        **found,
        "schema": "kvopt.seconds-certificate/2",
        "scope": "pauses+chunks",
        "model": {"lines": [{"round_ns": 1, "token_ns": 0}], "kv_ns": 0, "prompt_ns": 0},
        "upper": {"value": 2 * many, "segments": segments, "chunks": pieces},
        "lower": None,
    }


def of_slots(borders: int, count: int, outputs: list[int]) -> dict[str, Any]:
    """Return prices of slots with many thresholds, borders or requests."""
    return {
        **claimed(
            10**9,
            rows(*((0, 5 * 10**8 + i, output) for i, output in enumerate(outputs))),
            {
                "kind": "slot-prices",
                "denominator": 1000,
                "first": 1,
                "numerators": [1],
                "borders": list(range(0, 3 * borders, 3)),
                "slots": [{"count": count, "numerators": [i % 9 for i in range(borders)]}],
            },
        ),
        "schema": "kvopt.certificate/2",
    }


def many_slots() -> dict[str, Any]:
    """Return a count of slots that made millions of thresholds."""
    return of_slots(3, 8 * 10**6, [10] * 3)


def many_thresholds() -> dict[str, Any]:
    """Return thresholds that each of many requests looked through, to reach none of them."""
    return of_slots(3, 100_000, [1000] * 20_000)


def many_borders() -> dict[str, Any]:
    """Return requests so long that each of their starts passes thousands of borders."""
    return of_slots(20_000, 1, [30_000] * 300)


class TestSmallFiles:
    """None of them is checked for long, nor takes much memory."""

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("made", "status", "words"),
        [
            (a_long_output, 2, "the budget of 600,000,000 steps is used up: verify --budget 2"),
            (a_long_staircase, 2, "staircases would take too long"),
            (a_repeated_line, 0, "VALID"),
            (a_long_gap, 2, "steps: verify --budget "),
            (pieces_between_pauses, 0, "VALID"),
            (many_slots, 2, "slots: needs about 2 times the default budget of steps"),
            (many_thresholds, 0, "VALID"),
            (many_borders, 2, "steps is used up: verify --budget 2"),
        ],
    )
    def test_refused_in_time(self, tmp_path: Path, made: Any, status: int, words: str) -> None:
        path = tmp_path / "c.json"
        path.write_text(json.dumps(made()))
        code = (
            "import re, sys, kvopt.verify as v; r = v.verify(sys.argv[1]);"
            "most = re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1];"
            "print(most, r.exit_status, r.lines[-1])"
        )
        began = time.monotonic()
        command = [sys.executable, "-c", code, str(path)]
        done = subprocess.run(
            command, cwd=HERE, capture_output=True, text=True, check=True, timeout=60
        )
        assert time.monotonic() - began < 30
        kilobytes, found, last = done.stdout.split(" ", 2)
        assert int(found) == status, last
        assert words in last
        assert int(kilobytes) < 500_000

    def test_the_budget_that_is_needed_is_named_where_it_is_known(self, tmp_path: Path) -> None:
        (line,) = judged(tmp_path / "c", a_long_gap()).lines
        assert "too many rounds lie between an arrival and the first price" in line
        assert "needs about 7 times the default budget of steps: verify --budget 7" in line
        last = 10**299
        stage = {"denominator": 1, "peaks": [], "times": [last], "numerators": [[]]}
        proof = {"kind": "configurations", "target": None, "searched": False, "stages": [stage]}
        (line,) = judged(tmp_path / "c", claimed(9, rows((0, 1, 1)), proof)).lines
        assert line.endswith("needs about more than 1,000,000 times the default budget of memory")

    def test_prices_far_after_requests_that_are_done_cost_nothing(self) -> None:
        for first in (10**9, 10**15, 10**298):
            proof = {"kind": "prices", "denominator": 1, "first": first, "numerators": [5]}
            work = checker._Work()
            requests = [checker.Request(a, 1, 10**6) for a in range(9)]
            assert checker._judged(7, requests, work, proof)[0] == 9 * 10**6 - 35
            assert work.used < 10_000


class TestBudget:
    """``--budget K`` allows K times the default; no file helps itself to more."""

    @pytest.fixture
    def path(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        found = claimed(9, rows(*[(0, 1, 2)] * 30), {"kind": "volume"})
        (tmp_path / "c").write_text(json.dumps(found))
        monkeypatch.setattr(checker, "STEPS", 8_000)
        return tmp_path / "c"

    def test_more_is_allowed_and_less(self, path: Path) -> None:
        assert verify(path).exit_status == 2
        assert "verify --budget 2 allows more" in verify(path).lines[0]
        assert verify(path, 10).valid
        assert verify(path, budget=10.5).valid
        assert verify(path, 0.001).exit_status == 2

    @pytest.mark.parametrize("budget", [0, -1, math.inf, math.nan])
    def test_budgets_that_are_none(self, path: Path, budget: float) -> None:
        with pytest.raises(ValueError, match="must be a positive number"):
            verify(path, budget)

    def test_a_file_cannot_grant_itself_time(self, path: Path) -> None:
        found = json.loads(path.read_text())
        found.update(schema="kvopt.certificate/2", budget=1000)
        verdict = judged(path, found)
        assert verdict.exit_status == 2
        assert verdict.lines[0].endswith("; the file says that it needs 1,000 times")
        assert verify(path, 1000).valid

    @pytest.mark.parametrize(("budget", "status"), [(2, 0), (1, 1), (-5, 1), (2.0, 2), ("2", 2)])
    def test_the_field(self, tmp_path: Path, budget: object, status: int) -> None:
        found = claimed(9, rows((0, 1, 2)), {"kind": "volume"}, budget=budget)
        found["schema"] = "kvopt.certificate/2"
        assert judged(tmp_path / "c", found).exit_status == status
        found["schema"] = "kvopt.certificate/1"
        assert judged(tmp_path / "c", found).exit_status == 2

    def test_larger_files_have_more(self) -> None:
        work = checker._Work(2)
        work.grow(checker.SMALL_FILE)
        assert work.default_steps == checker.STEPS
        work.grow(3 * checker.SMALL_FILE)
        assert work.default_steps == 3 * checker.STEPS
        assert work.left() == 6 * checker.BYTES

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--budget"],
            ["--budget", "0"],
            ["--budget", "-2"],
            ["--budget", "nan"],
            ["--budget", "inf"],
            ["--budget", "x"],
            ["second"],
            ["--other", "2"],
        ],
    )
    def test_bad_arguments(self, arguments: list[str], tmp_path: Path, run: Run) -> None:
        (tmp_path / "c").write_text(json.dumps(claimed(9, rows((0, 1, 2)), {"kind": "volume"})))
        command = [sys.executable, "-m", "kvopt.verify", str(tmp_path / "c"), *arguments]
        done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert len((done.stdout + done.stderr).splitlines()) == 1
        code, out, err = run("verify", tmp_path / "c", *arguments)
        assert code == 2
        assert not out
        assert err

    def test_good_arguments(self, tmp_path: Path, run: Run) -> None:
        path = tmp_path / "c"
        path.write_text(json.dumps(claimed(9, rows((0, 1, 2)), {"kind": "volume"})))
        assert run("verify", path, "--budget", "2.5")[0] == 0
        for arguments in (["--budget", "3", path], [path, "--budget", "3"]):
            assert checker._arguments([str(a) for a in arguments]) == (str(path), 3.0)


class TestWritten:
    """A certificate that needs more than the default budget says so."""

    @pytest.mark.slow
    @pytest.mark.parametrize(("n", "seed"), [(8, 2), (10, 1), (12, 1)])
    def test_it_verifies_under_the_budget_that_it_states(
        self, tmp_path: Path, n: int, seed: int
    ) -> None:
        instance = kvopt.generate("arrival-1", n=n, seed=seed)
        found = kvopt.certify(instance, ["mc-sf"], time_limit=20)
        needed = write_with_budget(found, tmp_path / "c")
        content = json.loads((tmp_path / "c").read_text())
        assert content.get("budget", 1) == needed
        assert content["schema"] == f"kvopt.certificate/{1 + (needed > 1)}"
        assert verify(tmp_path / "c", needed).valid

    def test_a_long_search_is_noted(self) -> None:
        instance = instance_of(9, [(0, 1, 3)] * 4)
        stage = StatePrices(4, ((4, 1),), (1, 3), ((1,), (2,)))
        proof = ConfigurationProof((stage,), 30, searched=True, kept=10**6)
        assert budget_needed(1000, instance, 1, proof) > 5
        assert budget_needed(1000, instance, 1, ConfigurationProof((stage,), 30)) == 1
        # Large files have more to begin with.
        assert budget_needed(50_000_000, instance, 1, proof) < 5

    def test_the_text(self, tmp_path: Path) -> None:
        instance = instance_of(9, [(0, 1, 3)] * 4)
        text = certificate_text(kvopt.certify(instance, time_limit=1))
        assert with_budget(text, "kvopt.certificate/2", 1) == text
        more = with_budget(text, "kvopt.certificate/2", 7)
        content = json.loads(more)
        assert content.pop("budget") == 7
        assert content == {**json.loads(text), "schema": "kvopt.certificate/2"}
        assert judged(tmp_path / "c", more).valid
