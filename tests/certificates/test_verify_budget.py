"""What a check may take: small files that kept the verifier busy, and budgets."""

from __future__ import annotations

import json
import lzma
import math
import resource
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from certificates import claiming, judged, prices_proof
from commands import Run, written
from interpreters import ROOT, python

import kvopt
import kvopt.verify as checker
from kvopt import BatchTime, Line
from kvopt.bounds.configurations.cost_to_go import CostToGo
from kvopt.certificates.certificate_files import write_certificate
from kvopt.cli import certify as commands
from kvopt.incumbent.proofs import ConfigurationProof
from kvopt.problem.clocks import Seconds
from kvopt.verify import apart, verify
from kvopt.verify import step_budget as budget
from kvopt.verify.certified_problem import Problem, Request
from kvopt.verify.check_proofs import value_of_proof
from kvopt.verify.step_budget import MOST_STATED, Work


def rows(*triples: tuple[int, int, int]) -> list[dict[str, int]]:
    return [{"arrival": a, "prompt": s, "output": o} for a, s, o in triples]


def claimed(
    memory: int, requests: list[dict[str, int]], proof: dict[str, Any], value: int = 0, **more: Any
) -> dict[str, Any]:
    """Return a certificate of nothing but a lower bound."""
    instance = {"schema": "kvopt.instance/1", "memory": memory, "requests": requests}
    return claiming(instance, **{"lower": {"value": value, "proof": proof}, **more})


def a_long_output() -> dict[str, Any]:
    """Search on while a request of 100,000 rounds runs: its tail was copied in each of them."""
    stage = {"denominator": 1, "peaks": [[4, 3]], "times": [99_000], "numerators": [[0, 0, 9]]}
    proof = {"kind": "configurations", "target": 100_003, "searched": True, "stages": [stage]}
    return claimed(200_000, rows((0, 1, 100_000), (98_990, 1, 3)), proof)


CLOCK = Seconds(BatchTime([Line(45_000_000, 160_000), Line(32_000_000, 310_000)], 80))


def an_endless_search() -> dict[str, Any]:
    """Search without prices, and say that this takes as long as a file is granted."""
    stage = {"denominator": 1, "peaks": [], "times": [60], "numerators": [[]]}
    proof = {"kind": "configurations", "target": 900, "searched": True, "stages": [stage]}
    shapes = [(0, 1 + i % 5, 2 + i) for i in range(14)]
    return claimed(60, rows(*shapes), proof, budget=20)


def a_long_staircase() -> dict[str, Any]:
    """Return thresholds that each request passes one by one, and many requests."""
    requests = rows(*((0, 10**6 + i, 1) for i in range(10_000)))
    return claimed(10**9, requests, {"kind": "volume", "staircases": [[1] * 60_000]})


def a_repeated_line() -> dict[str, Any]:
    """Return a proof in seconds that names one line of the model a hundred thousand times."""
    proof = {"kind": "shares", "lines": [0] * 100_000, "weights": [], "company": []}
    found = claimed(100, rows(*[(0, 1, 2)] * 2000), proof)
    model = {"lines": [{"round_ns": 1, "token_ns": 1}], "kv_ns": 0, "prompt_ns": 0}
    return {**found, "clock": model}


def a_long_gap() -> dict[str, Any]:
    """Return ten million rounds between an arrival and the first price."""
    proof = prices_proof(1, 10**7, [1])
    return claimed(2**52, rows((0, 1, 10**7)), proof)


def pieces_between_pauses() -> dict[str, Any]:
    """Return a request that pauses after each token, with a piece of its prompt in each pause."""
    many = 20_000
    found = claimed(many + 5, rows((0, 1, many)), {})
    pieces = [{"request": 0, "start": 2 * j, "tokens": [1]} for j in range(many)]
    segments = [[[2 * j + 2, 2 * j + 2] for j in range(many)]]
    return {
        **found,
        "scope": "pauses+chunks",
        "clock": {"lines": [{"round_ns": 1, "token_ns": 0}], "kv_ns": 0, "prompt_ns": 0},
        "upper": {"value": 2 * many, "segments": segments, "chunks": pieces},
        "lower": None,
    }


def of_slots(borders: int, count: int, outputs: list[int]) -> dict[str, Any]:
    """Return prices of slots with many thresholds, borders or requests."""
    proof, times = prices_proof(1000, 1, [1]), [*range(0, 3 * borders, 3)]
    numbers = [i % 9 for i in range(borders)]
    slots = {"name": "slots", "capacity": count, "times": times, "numerators": numbers}
    return claimed(
        10**9,
        rows(*((0, 5 * 10**8 + i, output) for i, output in enumerate(outputs))),
        {**proof, "resources": [*proof["resources"], slots]},
    )


def many_slots() -> dict[str, Any]:
    """Return a count of slots that made millions of thresholds."""
    return of_slots(3, 8 * 10**6, [10] * 3)


def many_thresholds() -> dict[str, Any]:
    """Return thresholds that each of many requests looked through, to reach none of them."""
    return of_slots(3, 50_000, [1000] * 10_000)


def many_borders() -> dict[str, Any]:
    """Return requests so long that each of their starts passes thousands of borders."""
    return of_slots(20_000, 1, [30_000] * 40)


def twenty_seconds() -> None:
    """End this process if it keeps a processor busy for long, however many others do so, too."""
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))


class TestSmallFiles:
    """None of them is checked for long, nor takes much memory."""

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("made", "status", "words"),
        [
            (a_long_output, 2, "the budget of 300,000,000 steps is used up: verify --budget 2"),
            (
                a_long_staircase,
                2,
                "lower: volume: needs about 41 times the default budget of steps",
            ),
            (a_repeated_line, 0, "VALID"),
            (a_long_gap, 2, "steps: verify --budget "),
            (pieces_between_pauses, 0, "VALID"),
            (many_slots, 2, "lower: prices: needs about"),
            (many_thresholds, 0, "VALID"),
            (many_borders, 0, "VALID"),
        ],
    )
    def test_small_files_are_refused_in_little_memory(
        self, tmp_path: Path, made: Any, status: int, words: str
    ) -> None:
        path = written(tmp_path / "c.json", json.dumps(made()))
        code = (
            "import re, sys, kvopt.verify as v, kvopt.verify.step_budget as w; w.STEPS //= 2;"
            "r = v.verify(sys.argv[1]);"
            "most = re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1];"
            "print(most, r.exit_status, r.lines[-1])"
        )
        done = python("-c", code, path, check=True, preexec_fn=twenty_seconds)
        kilobytes, found, last = done.stdout.split(" ", 2)
        assert int(found) == status, last
        assert words in last
        assert int(kilobytes) < 250_000

    def test_the_budget_that_is_needed_is_named_where_it_is_known(self, tmp_path: Path) -> None:
        (line,) = judged(tmp_path / "c", a_long_gap()).lines
        assert "needs about 12 times the default budget of steps: verify --budget 12" in line
        last = 10**299
        stage = {"denominator": 1, "peaks": [], "times": [last], "numerators": [[]]}
        proof = {"kind": "configurations", "target": None, "searched": False, "stages": [stage]}
        (line,) = judged(tmp_path / "c", claimed(9, rows((0, 1, 1)), proof)).lines
        assert line.endswith("needs about more than 1,000,000 times the default budget of steps")

    def test_prices_far_after_requests_that_are_done_cost_nothing(self) -> None:
        for first in (10**9, 10**15, 10**298):
            proof = prices_proof(1, first, [5])
            work = Work()
            problem = Problem(7, [Request(a, 1, 10**6) for a in range(9)])
            assert value_of_proof(problem, proof, work)[0] == 9 * 10**6 - 35
            assert work.used < 10_000


class TestMemory:
    """What needs too much ends with a sentence, whatever happens to the process that checks."""

    @pytest.mark.parametrize("module", ["kvopt", "kvopt.verify"])
    def test_a_table_that_the_system_refuses_is_a_verdict(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, module: str
    ) -> None:
        path = written(tmp_path / "c.json", json.dumps({**a_long_gap(), "budget": 20}))
        code = apart.CODE.replace("[2]))", "[2]), memory=10**8)")
        with_little = partial(apart.verify_apart, code=code)
        if module == "kvopt":
            monkeypatch.setattr(commands, "verify_apart", with_little)
            status, out, _ = run("verify", path)
            assert (status, out) == (2, "UNREADABLE: needs more memory than there is\n")
        else:
            assert with_little(path).lines == ("UNREADABLE: needs more memory than there is",)

    def test_a_check_that_is_killed_is_a_verdict(self, tmp_path: Path) -> None:
        code = "import os; os.kill(os.getpid(), 9)"
        verdict = apart.verify_apart(tmp_path / "c.json", code=code)
        assert verdict.exit_status == 2
        assert "ended without a verdict, with status -9, most likely for want" in verdict.lines[0]

    def test_it_says_the_same_as_in_this_process(self, tmp_path: Path) -> None:
        path = tmp_path / "c.json"
        for content in (a_repeated_line(), claimed(9, rows((0, 1, 2)), {"kind": "volume"}, 9)):
            path.write_text(json.dumps(content))
            assert apart.verify_apart(path) == verify(path)


class TestBudget:
    """``--budget K`` allows K times the default; no file helps itself to more."""

    @pytest.fixture
    def path(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        proof = {"kind": "volume", "staircases": [[1, 2, 5]]}
        (tmp_path / "c").write_text(json.dumps(claimed(9, rows(*[(0, 1, 2)] * 30), proof)))
        monkeypatch.setattr("kvopt.verify.step_budget.STEPS", 3_000)
        return tmp_path / "c"

    def test_the_reader_may_allow_more_or_less(self, path: Path) -> None:
        assert verify(path).exit_status == 2
        assert "verify --budget 2 allows it about 1 min and 1.7 GB" in verify(path).lines[0]
        assert verify(path, 10).valid
        assert verify(path, budget=10.5).valid
        assert verify(path, 0.001).exit_status == 2

    @pytest.mark.parametrize("budget", [0, -1, math.inf, math.nan])
    def test_budgets_that_are_none_are_refused(self, path: Path, budget: float) -> None:
        with pytest.raises(ValueError, match="must be a positive number"):
            verify(path, budget)

    def test_a_file_is_granted_what_it_states_up_to_ten_minutes(self, path: Path) -> None:
        found = json.loads(path.read_text())
        assert judged(path, {**found, "budget": 2}).valid
        assert judged(path, {**found, "budget": 20}).valid
        assert not verify(path, 1).valid  # the reader decides
        verdict = judged(path, {**found, "budget": 1000})
        assert verdict.exit_status == 2
        assert (
            "needs 1,000 times the default budget of steps: verify --budget 1000"
            in (verdict.lines[0])
        )
        assert "about 500 min and 850.0 GB" in verdict.lines[0]
        assert verify(path, 1000).valid

    def test_a_search_of_which_no_sizes_are_stated_is_soon_refused(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr("kvopt.verify.step_budget.STEPS", 1_000_000)
        verdict = judged(tmp_path / "c", an_endless_search())
        assert "budget of 2,000,000 steps is used up: verify --budget 4" in verdict.lines[0]
        said = an_endless_search()
        said["lower"]["proof"]["kept"] = [100] * 60
        verdict = judged(tmp_path / "c", said)
        assert "partial schedules at round 1, the file says fewer" in verdict.lines[0]

    @pytest.mark.parametrize(("budget", "status"), [(2, 0), (1, 1), (-5, 1), (2.0, 2), ("2", 2)])
    def test_a_budget_in_the_file_is_a_number_from_two_on(
        self, tmp_path: Path, budget: object, status: int
    ) -> None:
        found = claimed(9, rows((0, 1, 2)), {"kind": "volume"}, budget=budget)
        assert judged(tmp_path / "c", found).exit_status == status

    def test_progress_is_told(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        said: list[str] = []
        assert verify(path, 10, said.append).valid
        assert not said
        monkeypatch.setattr("kvopt.verify.step_budget.MARK", 2_000)
        assert verify(path, 10, said.append).valid
        assert said == ["checking, 16% of at most about 5 min"]

    def test_progress_of_a_search_is_told_by_what_the_file_states(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kept = ROOT / "instances" / "certificates" / "arrival-2-n8.json.xz"
        path, messages = tmp_path / "c.json", list[str]()
        path.write_bytes(lzma.decompress(kept.read_bytes()))
        monkeypatch.setattr("kvopt.verify.step_budget.MARK", 10_000)
        assert verify(path, 10, messages.append).valid
        shares = [int(line.split(", ")[2].split("%")[0]) for line in messages if "search" in line]
        assert shares == sorted(shares)
        assert shares[0] == 0
        assert shares[-1] >= 90

    @pytest.mark.slow
    @pytest.mark.parametrize("module", ["kvopt", "kvopt.verify"])
    def test_it_may_be_interrupted(self, tmp_path: Path, module: str) -> None:
        path = written(tmp_path / "c.json", json.dumps(a_long_output()))
        command = [sys.executable, "-m", module, *["verify"] * (module == "kvopt"), str(path)]
        with subprocess.Popen(
            [*command, "--budget", "1000"], cwd=ROOT, stderr=subprocess.PIPE, text=True
        ) as child:
            assert child.stderr is not None
            assert "checking, 0% of at most about 500 min" in child.stderr.readline()
            child.send_signal(signal.SIGINT)
            *_, last = child.stderr
            assert "interrupted" in last
        assert child.returncode == 130

    @pytest.mark.parametrize(
        "arguments",
        [["--budget"], ["--budget", "0"], ["--budget", "nan"], ["--budget", "x"], ["second"]],
    )
    def test_bad_arguments_are_refused(
        self, arguments: list[str], tmp_path: Path, run: Run
    ) -> None:
        (tmp_path / "c").write_text(json.dumps(claimed(9, rows((0, 1, 2)), {"kind": "volume"})))
        done = python("-m", "kvopt.verify", tmp_path / "c", *arguments)
        assert done.returncode == 2
        assert not done.stdout
        assert done.stderr.splitlines()[-1].startswith("python -m kvopt.verify: error: ")
        code, out, err = run("verify", tmp_path / "c", *arguments)
        assert code == 2
        assert not out
        assert err

    def test_good_arguments_are_taken(self, tmp_path: Path, run: Run) -> None:
        path = written(tmp_path / "c", json.dumps(claimed(9, rows((0, 1, 2)), {"kind": "volume"})))
        assert run("verify", path, "--budget", "2.5")[0] == 0
        assert python("-m", "kvopt.verify", "--budget", "3", path).returncode == 0


@pytest.mark.usefixtures("processor_clock")
class TestWritten:
    """A certificate asks for as long a check as there is, and states how large its search is."""

    @pytest.mark.slow
    def test_a_long_search_is_accepted_by_default(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        instance = kvopt.generate("arrival-1", n=12, seed=1)
        # Of a search with cost-to-go bounds the labels of a round are not known before.
        with monkeypatch.context() as without:
            without.setattr(CostToGo, "fits", staticmethod(lambda _: False))
            found = kvopt.certify(instance, ["mc-sf"], time_limit=60)
        assert found.lower is not None
        assert isinstance(found.lower.proof, ConfigurationProof)
        monkeypatch.setattr("kvopt.verify.step_budget.STEPS", 500 * sum(found.lower.proof.kept))
        write_certificate(found, tmp_path / "c")
        content = json.loads((tmp_path / "c").read_text())
        assert content["budget"] == MOST_STATED
        assert verify(tmp_path / "c").valid
        # Where it says less, it is refused: at once where it says so of a round.
        content["lower"]["proof"]["kept"][5] = 0
        verdict = judged(tmp_path / "c", content)
        assert "partial schedules at round 6, the file says fewer" in verdict.lines[0]
        del content["lower"]["proof"]["kept"]
        # Its tables are refused before they are begun, its search when the budget is used up.
        for steps, words in (
            (500_000, "lower: configurations: needs about "),
            (2_500_000, "is used up: verify --budget 4"),
        ):
            monkeypatch.setattr("kvopt.verify.step_budget.STEPS", steps)
            verdict = judged(tmp_path / "c", {**content, "budget": 2})
            assert words in verdict.lines[0]

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("family", "n", "asked", "shape"),
        [
            ("arrival-1", 11, {}, {}),
            ("arrival-2", 20, {}, {"block_size": 4}),
            ("uniform", 9, {}, {"workers": 2}),
            ("arrival-1", 9, {"scope": "pauses"}, {"block_size": 4}),
            ("arrival-2", 25, {"scope": "pauses", "slo": "e2e=20"}, {}),
            ("arrival-1", 12, {"clock": CLOCK, "slo": "ttft=3s,tpot=1s"}, {"workers": 2}),
            ("arrival-1", 12, {"clock": CLOCK, "scope": "pauses+chunks"}, {}),
        ],
    )
    def test_all_kinds_are_accepted_by_default(
        self, tmp_path: Path, family: str, n: int, asked: dict[str, Any], shape: dict[str, Any],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:  # fmt: skip
        drawn = kvopt.generate(family, n=n, seed=5)
        memory = 4 * -(-drawn.memory // 4) + 4
        instance = kvopt.Instance(memory, drawn.requests, **shape)
        found = kvopt.certify(instance, ["mc-sf"], time_limit=0.5, **asked)
        write_certificate(found, tmp_path / "c")
        works = [Work()]
        monkeypatch.setattr(checker, "Work", lambda *_, **__: works[0])
        assert verify(tmp_path / "c").valid
        assert works[0].used <= 5 * budget.STEPS
