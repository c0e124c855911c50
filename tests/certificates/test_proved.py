"""The checker that is proved in Coq: no holes in the proofs, and agreement with the verifier."""

from __future__ import annotations

import fcntl
import json
import random
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from certificates import (
    EC1,
    LOST,
    certificate,
    changed,
    judged,
    numbers_in,
    paused_certificate,
    prices_proof,
    proved,
    with_deadlines,
)
from commands import Run
from configuration_proofs import content_of, drawn_proofs, replay
from drawn_certificates import drawn, drawn_with_pauses_or_deadlines
from effort import many
from strategies import random_instances

from kvopt import certify, generate
from kvopt.certificates import coq_checker as checker
from kvopt.certificates.files import certificate_text
from kvopt.problem.instance import Instance
from kvopt.problem.instance_files import instance_to_json
from kvopt.problem.requests import Request
from kvopt.verify import verify

pytestmark = pytest.mark.usefixtures("processor_clock")

PROOFS = Path(__file__).parents[2] / "proofs"
SOURCES = sorted(PROOFS.glob("*.v"))
needs_coq = pytest.mark.skipif(
    shutil.which("coqc") is None or shutil.which("ocamlfind") is None,
    reason="Coq and OCaml are not installed",
)


def code_of(source: Path) -> str:
    """Return a file of Coq without its comments."""
    return re.sub(r"\(\*.*?\*\)", "", source.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_no_holes_and_no_axioms(source: Path) -> None:
    holes = r"\b(Admitted|admit|Axioms?|Parameters?|Conjecture|Abort|Unset|Bypass)\b"
    assert not re.findall(holes, code_of(source))


def test_what_the_checker_rests_on_prints_its_assumptions() -> None:
    text = code_of(PROOFS / "Checker.v")
    theorems = re.findall(r"^Theorem (accepted_\w+)", text, flags=re.MULTILINE)
    assert theorems
    for theorem in theorems:
        assert f"Print Assumptions {theorem}." in text


def test_every_file_of_theorems_ends_with_its_assumptions() -> None:
    for source in SOURCES:
        text = code_of(source)
        if re.search(r"^Theorem ", text, flags=re.MULTILINE) and source.name != "Sums.v":
            assert text.rstrip().splitlines()[-1].startswith("Print Assumptions"), source.name


@pytest.fixture(scope="session")
def program() -> Iterator[Path]:
    """Return the proved checker, built without its proofs: it is the same program."""
    make("unproved")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checker, "_BUILT", PROOFS / "build" / "unproved" / checker.PROGRAM)
        yield checker.proved_checker()


def make(target: str) -> None:
    with (PROOFS / "Makefile").open() as lock:  # one process of the tests builds
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["make", "-C", PROOFS, target], check=True, capture_output=True)


def verdicts(program: Path, folder: Path, contents: list[Any], *options: str) -> list[str]:
    """Return the first word that the program says of each certificate."""
    paths = [folder / f"{i}.json" for i in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    done = subprocess.run(
        [program, *options, paths[0], *paths], capture_output=True, text=True, check=False
    )
    words = [line.partition(":")[0] for line in done.stdout.splitlines()[1:]]
    assert len(words) == len(contents)
    return words


@needs_coq
@pytest.mark.thorough
def test_the_theorems_are_closed(program: Path) -> None:
    make("all")
    files = [PROOFS / "build" / f"{source.stem}.out" for source in SOURCES]
    said = [path.read_text() for path in files if path.exists()]
    lines = [line for text in said for line in text.splitlines()]
    asked = sum(code_of(source).count("Print Assumptions") for source in SOURCES)
    assert len(lines) == asked > 10
    assert set(lines) == {"Closed under the global context"}
    for name in ("plain.ml", "fast.ml"):
        tested = program.parent / name
        assert tested.read_text() == (PROOFS / "build" / name).read_text()


@needs_coq
@pytest.mark.slow
class TestProgram:
    @pytest.mark.parametrize("option", [[], ["--plain"]])
    @pytest.mark.parametrize("draw", [drawn, drawn_with_pauses_or_deadlines])
    def test_it_agrees_with_the_verifier(
        self,
        program: Path,
        tmp_path: Path,
        option: list[str],
        draw: Callable[[int, int], Iterator[dict[str, Any]]],
    ) -> None:
        contents = list(draw(3, many(300)))
        found = verdicts(program, tmp_path, contents, *option)
        expected = [judged(tmp_path / "c", content) for content in contents]
        names = {0: "VALID", 1: "INVALID"}
        assert found == [names[verdict.exit_status] for verdict in expected]
        assert min(found.count("VALID"), found.count("INVALID")) > len(found) // 5

    @pytest.mark.parametrize("option", [[], ["--plain"]])
    def test_it_agrees_on_configurations(
        self, program: Path, tmp_path: Path, option: list[str]
    ) -> None:
        """With stages, targets, searches and mistakes."""
        contents, expected = [], []
        counts: Counter[bool] = Counter()
        for problem, proof in drawn_proofs(8, many(200)):
            value = replay(problem, proof)
            counts[proof["searched"] and value is not None] += 1
            for more in (0, 1):
                contents.append(content_of(problem, proof, (value or 0) + more))
                expected.append("INVALID" if value is None or more else "VALID")
        assert verdicts(program, tmp_path, contents, *option) == expected
        assert counts[True] > 5

    def test_an_optimum_of_the_families(self, program: Path, tmp_path: Path) -> None:
        """The search is repeated, and one more is refused."""
        found = certify(generate("arrival-1", 5, seed=2), time_limit=60)
        content = json.loads(certificate_text(found))
        assert content["lower"]["value"] == content["upper"]["value"]
        path = tmp_path / "c.json"
        path.write_text(json.dumps(content))
        done = subprocess.run([program, path], capture_output=True, text=True, check=False)
        assert done.stdout.endswith("proved: that schedule is optimal\nVALID\n")
        content["lower"]["value"] += 1
        assert verdicts(program, tmp_path, [content]) == ["INVALID"]

    @pytest.mark.parametrize("kind", ["prices", "volume", "configurations"])
    def test_fleets(self, program: Path, tmp_path: Path, kind: str) -> None:
        """Bounds of several workers, and none above the optimum."""
        proofs = {
            "prices": prices_proof(3, 1, [1]),
            "volume": {"kind": "volume", "staircases": [[2, 2]]},
            "configurations": {"kind": "configurations", "target": None, "searched": False,
                "stages": [{"denominator": 4, "peaks": [[2, 1], [3, 2]], "times": [1],
                            "numerators": [[1, 1, 1]]}]},
        }  # fmt: skip
        rows = [{"arrival": 0, "prompt": 1, "output": o} for o in (1, 2, 1, 2)]
        instance = {"schema": "kvopt.instance/2", "memory": 3, "workers": 2, "requests": rows}
        upper = {"value": 9, "starts": [0, 1, 0, 1], "workers": [0, 0, 1, 1]}
        content = {
            "schema": "kvopt.certificate/3",
            "clock": "rounds",
            "scope": "runs",
            "instance": instance,
            "hash": "",
            "upper": upper,
        }
        contents = [
            {**content, "lower": {"value": value, "proof": proofs[kind]}} for value in range(12)
        ]
        # The optimum is 8: on each worker one runs after the other, the shorter first.
        found = verdicts(
            program, tmp_path, [{**c, "upper": {**upper, "value": 8}} for c in contents]
        )
        assert found == sorted(found, reverse=True)
        assert 6 <= found.count("VALID") <= 9
        assert "VALID" not in verdicts(program, tmp_path, contents)
        one = {**upper, "value": 8, "workers": [0, 0, 0, 1]}
        assert "VALID" not in verdicts(program, tmp_path, [{**c, "upper": one} for c in contents])

    def test_it_refuses_what_the_verifier_refuses(self, program: Path, tmp_path: Path) -> None:
        """Change every number of certificates with everything in them."""
        contents = []
        full = certificate(EC1, random.Random(3))
        full["policies"].append(LOST)
        stairs = {"kind": "volume", "staircases": [[1, 2], [3, 3]]}
        source = random.Random(5)
        whole = [
            {**full, "lower": {"value": proved(EC1, proof), "proof": proof}}
            for proof in (full["lower"]["proof"], stairs)
        ]
        whole += [with_deadlines(full, source), paused_certificate(EC1, source)]
        whole.append(with_deadlines(paused_certificate(EC1, source), source))
        for content in whole:
            for place in numbers_in(content):
                for change in (1, -1, 5, -(10**17), 10**17):
                    more = partial(int.__add__, change)
                    contents.append(changed(content, place, more))
        found = verdicts(program, tmp_path, contents)
        for content, word in zip(contents, found, strict=True):
            path = tmp_path / "c"
            path.write_text(json.dumps(content))
            verdict = verify(path)
            if verdict.lines[0] == "INVALID: hash: is not that of the instance":
                continue  # not looked at by the program, and `kvopt verify` runs both
            assert (word == "VALID") == verdict.valid, (word, verdict.lines[0], content)
        assert found.count("VALID") > 20

    def test_numbers_of_any_size(self, program: Path, tmp_path: Path) -> None:
        """Where machine integers end, the numbers of Coq go on."""
        source = random.Random(9)
        contents = []
        for instance in random_instances(40, 9, most_requests=4):
            scale = 10 ** source.choice((17, 18, 19, 40, 290))
            prices = [source.randint(0, scale // 3) for _ in range(source.randint(1, 6))]
            proof = prices_proof(scale, 1, prices)
            content = certificate(instance, source)
            for more in (0, 1):
                lower = {"value": proved(instance, proof) + more, "proof": proof}
                contents.append({**content, "lower": lower})
        assert verdicts(program, tmp_path, contents) == ["VALID", "INVALID"] * 40

    def test_arrivals_as_late_as_they_may_be(self, program: Path, tmp_path: Path) -> None:
        late = 2**53 - 60
        far = Instance(7, [Request(0, 1, 4), Request(late, 1, 4), Request(late + 2, 2, 4)])
        proofs = ({"kind": "volume"}, prices_proof(90, late + 1, [30, 20, 10]))
        content = {**certificate(EC1, random.Random(1)), "instance": instance_to_json(far)}
        content.update(upper=None, policies=[])
        contents = [
            {**content, "lower": {"value": proved(far, proof) + more, "proof": proof}}
            for proof in proofs
            for more in (0, 1)
        ]
        assert verdicts(program, tmp_path, contents) == ["VALID", "INVALID"] * 2

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"clock": {}}, "NOT COVERED: certificates in seconds"),
            ({"schema": "kvopt.certificate/9"}, "UNREADABLE: certificate: has an unknown schema"),
            ({"scope": "pauses+chunks"}, "NOT COVERED: prompts in pieces"),
            (
                {"deadlines": {}, "scope": "pauses"},
                "UNREADABLE: deadlines: has no aim",
            ),
            ({"more": 1}, "UNREADABLE: certificate: has an unknown field"),
            (
                {"lower": {"value": 1, "proof": {"kind": "other"}}},
                "NOT COVERED: this kind of proof",
            ),
            (
                {"upper": {"value": 1, "segments": [[[1, 1]]]}},
                "NOT COVERED: segments in a scope without pauses",
            ),
            (
                {"instance": {**instance_to_json(EC1), "block_size": 2}},
                "NOT COVERED: memory in whole blocks",
            ),
            (
                {"instance": {**instance_to_json(EC1), "workers": 9}},
                "NOT COVERED: more workers than requests",
            ),
            (
                {"instance": {**instance_to_json(EC1), "max_active": 2}},
                "NOT COVERED: instances with a field max_active",
            ),
            (
                {"instance": instance_to_json(Instance(7, [Request(0, 1, 2, weight=3)]))},
                "NOT COVERED: requests with a field weight",
            ),
        ],
    )
    def test_what_it_does_not_cover_is_not_valid(
        self, program: Path, tmp_path: Path, change: dict[str, Any], words: str
    ) -> None:
        path = tmp_path / "c.json"
        path.write_text(json.dumps({**certificate(EC1, random.Random(1)), **change}))
        done = subprocess.run([program, path], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.splitlines()[-1]) == (2, words)

    def test_what_is_proved_with_deadlines_and_pauses_is_said(
        self, program: Path, tmp_path: Path
    ) -> None:
        content = with_deadlines(paused_certificate(EC1, random.Random(2)), random.Random(4))
        claim = content["deadlines"]
        claim["best"] = {**content["upper"], "attained": claim["attained"][1]}
        if content["upper"]["value"] != content["policies"][1]["value"]:
            claim["best"] = {**content["upper"], "attained": claim["attained"][0]}
        path = tmp_path / "c.json"
        path.write_text(json.dumps(content))
        done = subprocess.run([program, path], capture_output=True, text=True, check=False)
        value, most, known = (
            content["upper"]["value"], claim["ceiling"], claim["best"]["attained"],
        )  # fmt: skip
        assert done.stdout.splitlines() == [
            f"proved: a feasible schedule with pauses has total latency {value}",
            "proved: no feasible schedule with pauses has total latency below "
            f"{content['lower']['value']}",
            f"proved: in no feasible schedule with pauses more than {most} requests attain their "
            "deadlines",
            f"proved: in a feasible schedule with pauses {known} do",
            "VALID",
        ]

    @pytest.mark.parametrize("text", ["", "{", "[1,]", '{"a": 1, "a": 2}', "[" * 50, "1 2", "01"])
    def test_what_is_no_json(self, program: Path, tmp_path: Path, text: str) -> None:
        assert verdicts(program, tmp_path, [text]) == ["UNREADABLE"]

    def test_only_operations_that_are_checked_are_used(self, program: Path) -> None:
        """In the fast program every operation on numbers is one of machine.ml."""
        text = (program.parent / "fast.ml").read_text()
        body = text[text.index("type request") :]
        mapped = set(re.findall(r"let (?:rec )?(\w+) = Machine\.", text))
        assert set(re.findall(r"\b(?:Z|Nat)\.(\w+)", body)) <= mapped
        assert not re.findall(r"\b(Pos|N)\.\w+", body)

    def test_the_command(self, program: Path, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "c.json"
        content = certificate(EC1, random.Random(1))
        path.write_text(json.dumps(content))
        code, out, _ = run("verify", path, "--proved")
        assert (code, out.splitlines()[-1]) == (0, "VALID")
        assert "checked again by the program that is proved in Coq:" in out
        assert (
            f"proved: no feasible schedule has total latency below {content['lower']['value']}"
            in out
        )
        content["upper"]["value"] += 1
        path.write_text(json.dumps(content))
        assert run("verify", path, "--proved")[0] == 1


def test_it_says_how_to_build_what_is_not_there(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checker, "_BUILT", tmp_path / "none")
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "c.json"
    path.write_text(json.dumps(certificate(EC1, random.Random(1))))
    code, out, err = run("verify", path, "--proved")
    assert (code, out) == (2, "")
    assert err.startswith("kvopt: --proved: the proved checker is not built: run `make proofs`")
    assert err.count("\n") == 1


def test_it_needs_a_file(run: Run) -> None:
    code, _, err = run("verify", "-", "--proved")
    assert (code, err) == (2, "kvopt: --proved: needs a file, not standard input\n")
