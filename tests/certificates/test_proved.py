"""The checker that is proved in Coq: no holes in the proofs, and what `proofs/check.py` says."""

from __future__ import annotations

import fcntl
import json
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from certificates import EC1, certificate, paused_certificate, prices_proof, with_slo
from interpreters import python

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
    text = code_of(source)
    assert not re.findall(holes, text)
    if re.search(r"^Theorem ", text, flags=re.MULTILINE) and source.name != "Sums.v":
        assert text.rstrip().splitlines()[-1].startswith("Print Assumptions")


def test_what_the_checker_rests_on_prints_its_assumptions() -> None:
    text = code_of(PROOFS / "Checker.v")
    theorems = re.findall(r"^Theorem (accepted_\w+)", text, flags=re.MULTILINE)
    assert theorems
    for theorem in theorems:
        assert f"Print Assumptions {theorem}." in text


def check(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return python(PROOFS / "check.py", *arguments)


def test_it_says_how_to_build_what_is_not_there(tmp_path: Path) -> None:
    done = check("--program", tmp_path / "none", tmp_path / "c.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("none is not there: run `make proofs` first\n")


@pytest.fixture(scope="session")
def program() -> Path:
    """Return the proved checker, built without its proofs: it is the same program."""
    with (PROOFS / "Makefile").open() as lock:  # one process of the tests builds
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["make", "-C", PROOFS, "unproved"], check=True, capture_output=True)
    return PROOFS / "build" / "unproved" / "kvopt-proved"


@needs_coq
@pytest.mark.slow
def test_both_checkers_agree_on_good_false_and_uncovered_certificates(
    program: Path, tmp_path: Path
) -> None:
    plain = certificate(EC1, random.Random(1))
    paused = with_slo(paused_certificate(EC1, random.Random(2)), random.Random(4))
    false = {**plain, "lower": {**plain["lower"], "value": plain["lower"]["value"] + 1}}
    proof, slots = prices_proof(1, 1, []), {"name": "slots", "capacity": 1}
    slots |= {"times": [0, 1], "numerators": [0, 0]}
    proof["resources"].append(slots)
    uncovered = {**plain, "lower": {"value": 0, "proof": proof}}
    again = "checked again by the program that is proved in Coq:"
    for number, (content, status, last) in enumerate(
        (
            (plain, 0, "VALID"),
            (paused, 0, "VALID"),
            (false, 1, "INVALID: lower: says "),
            (uncovered, 2, "NOT COVERED: prices of slots or prefixes"),
        )
    ):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(content))
        done = check("--program", program, path)
        lines = done.stdout.splitlines()
        assert (done.returncode, again in lines) == (status, status != 1), lines
        assert lines[-1].startswith(last)
    done = check("--program", program, tmp_path / "0.json", tmp_path / "1.json")
    value = plain["lower"]["value"]
    assert f"proved: no feasible schedule has total latency below {value}" in done.stdout
    assert "proved: in no feasible schedule with pauses more than " in done.stdout
    # Of the false one alone: what the first checker would not have let pass.
    alone = subprocess.run([program, tmp_path / "2.json"], capture_output=True, check=False)
    assert (alone.returncode, alone.stdout.split(b":")[0]) == (1, b"INVALID")
