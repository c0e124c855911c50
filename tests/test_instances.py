"""The instance library: every file, schedule and bound is checked again."""

from __future__ import annotations

import datetime
import importlib.util
import json
import lzma
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import worst
from known import known
from library import Library, clock_of
from library_pages import rows_of, with_table

from kvopt import Schedule, import_trace, read_certificate, read_instance, run
from kvopt.problem.instance_files import instance_text, instance_to_json
from kvopt.verify import verify
from kvopt.verify.certified_problem import problem_of
from kvopt.verify.check_runs import checked_run
from kvopt.verify.step_budget import Work

HERE = Path(__file__).parent.parent / "instances"
KNOWN: dict[str, dict[str, Any]] = json.loads((HERE / "best-known.json").read_text())
LIBRARY = Library(HERE)
NAMES = sorted(path.stem for path in HERE.glob("*.json") if path.stem != "best-known")
CHALLENGE = sorted(path.stem for path in HERE.glob("challenge/*.json"))
OPTIMA = {  # the worked cases, from the papers and by hand
    "wang-example-3.1": 45,
    "chen-example-1": 5,
    "chen-example-ec.1": 12,
    "mc-sf-equal-prompts": 27,
    "mc-sf-equal-prompts-n6": 42,
    "mc-sf-no-prompts": 15,
    "short-horizon": 7,
}


def script(name: str = "extend") -> Any:
    spec = known(importlib.util.spec_from_file_location(name, HERE / f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    known(spec.loader).exec_module(module)
    return module


def test_every_file_is_known_and_every_entry_has_a_file() -> None:
    assert sorted(KNOWN) == sorted(NAMES + CHALLENGE)


@pytest.mark.parametrize("name", NAMES)
def test_schedule_and_bound_hold(name: str) -> None:
    instance, entry = read_instance(HERE / f"{name}.json"), KNOWN[name]
    check = Schedule(instance, entry["starts"]).check()
    assert entry["instance"] == instance.hash
    assert check.feasible, check.violations
    assert check.objective == entry["objective"]
    assert instance.total_output <= entry["lower_bound"] <= entry["objective"]
    assert entry["bound_source"] in ("checked", "solver")
    assert entry["bounded_by"]
    assert datetime.date.fromisoformat(entry["date"])


@pytest.mark.parametrize("name", OPTIMA)
def test_worked_cases_have_their_optimum(name: str) -> None:
    entry = KNOWN[name]
    assert entry["objective"] == entry["lower_bound"] == OPTIMA[name]


def test_the_script_writes_the_same_files() -> None:
    made = script().every_instance()
    assert sorted(made) == NAMES
    for name, instance in made.items():
        assert instance_text(instance) == (HERE / f"{name}.json").read_text()


def test_the_challenge_set_is_what_the_issue_asked_for() -> None:
    found = [LIBRARY.instance(name) for name in CHALLENGE]
    assert len(found) == 40
    assert all(40 <= len(instance) <= 200 for instance in found)
    assert [instance.name for instance in found] == CHALLENGE
    assert {instance.workers for instance in found} == {1, 2, 4}
    assert len({instance.hash for instance in found}) == 40
    for instance in found:
        notes: Any = instance.notes
        assert ("azure" in str(instance.name)) == (notes.get("licence") == "CC-BY-4.0")


@pytest.mark.parametrize("name", CHALLENGE)
def test_what_is_known_of_the_challenge_set_holds(name: str) -> None:
    instance, entry = LIBRARY.instance(name), KNOWN[name]
    clock: Any = clock_of(instance)
    said = instance_to_json(instance)
    model = "rounds" if clock is None else clock.batch_time.to_json()
    problem = problem_of({"instance": said, "hash": instance.hash, "clock": model, "scope": "runs"})
    claim: dict[str, Any] = {
        key: entry[key] for key in ("starts", "workers", "lost", "waits") if key in entry
    }
    checked_run(problem, {"value": entry["objective"], **claim}, name, Work())
    assert entry["instance"] == instance.hash
    assert 0 < entry["lower_bound"] <= entry["objective"]
    assert entry["bound_source"] == "checked"
    assert entry["run"]["time_limit"] > 0


@pytest.mark.parametrize("name", [n for n in CHALLENGE if not clock_of(LIBRARY.instance(n))])
def test_a_standard_run_begins_with_the_known_schedule(name: str) -> None:
    check = script().known_schedule(LIBRARY.instance(name), KNOWN[name]).check()
    assert check.feasible, check.violations
    assert check.objective == KNOWN[name]["objective"]


@pytest.mark.parametrize("name", [name for name in KNOWN if KNOWN[name].get("certificate")])
def test_certificates_are_of_their_entries(name: str) -> None:
    found = json.loads(lzma.decompress((HERE / KNOWN[name]["certificate"]).read_bytes()))
    assert found["hash"] == KNOWN[name]["instance"]
    assert found["lower"]["value"] == KNOWN[name]["lower_bound"]


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in KNOWN if KNOWN[name].get("certificate")])
def test_certificates_are_valid(name: str, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(lzma.decompress((HERE / KNOWN[name]["certificate"]).read_bytes()))
    assert verify(path, 100).lines[-1] == "VALID"  # a search of half an hour needs so much


def test_every_kept_certificate_is_of_an_entry() -> None:
    kept = {f"certificates/{path.name}" for path in HERE.glob("certificates/*")}
    assert kept == {entry["certificate"] for entry in KNOWN.values() if entry.get("certificate")}


def test_the_other_script_writes_the_same_challenges() -> None:
    made = {instance.name: instance for instance in script("challenge").drawn()}
    assert sorted(made) == [name for name in CHALLENGE if "azure" not in name]
    for name, instance in made.items():
        assert instance_text(instance) == LIBRARY.paths[str(name)].read_text()


def test_parts_of_a_trace_begin_at_zero() -> None:
    path = HERE.parent / "samples" / "chat.csv"
    whole = import_trace(path, "azure", 4096)
    found = script("challenge").part(path, "azure-n5", 7, 5, 4096)
    begin = whole[7].arrival
    assert [r.kind for r in found] == [
        (r.arrival - begin, r.prompt, r.output) for r in whole.requests[7:12]
    ]
    assert [r.id for r in found] == ["r0", "r1", "r2", "r3", "r4"]
    assert found[0].arrival_seconds == 0


def test_the_pages_show_the_table() -> None:
    text, page = (HERE / "README.md").read_text(), (HERE / "library.html").read_text()
    assert with_table(text, [*rows_of(LIBRARY)]) == text, "run make library"
    assert len(page) < 2_000_000
    for name in KNOWN:
        assert f'<div id="{name}">' in page, "run make library"
        assert f">{KNOWN[name]['objective']:,}<" in page or name.startswith("seconds")


def test_the_script_keeps_the_better_of_both_sides() -> None:
    module, instance = script(), read_instance(HERE / "chen-example-ec.1.json")
    poor = {
        **KNOWN["chen-example-ec.1"],
        "starts": [0, 1, 3, 6],
        "objective": 20,
        "lower_bound": 11,
        "date": "2000-01-01",
    }
    better, signal_number = module.improved(instance, poor, 600.0)  # it ends with the proof
    assert signal_number is None
    assert (better["objective"], better["lower_bound"]) == (12, 12)
    again, _ = module.improved(instance, better, 600.0)
    assert {**again, "seconds": 0} == {**better, "seconds": 0}


@pytest.mark.slow
@pytest.mark.parametrize(
    "row", [r for r in worst.ROWS if r.file], ids=lambda r: f"{r.policy}-{r.file}"
)
def test_the_worst_cases_are_runs_within_what_is_proved(row: worst.Row) -> None:
    kept = read_certificate(worst.HERE / "worst" / f"{row.file}.cert.json")
    instance, best = kept.instance, kept.objective
    assert max(request.peak for request in instance) <= row.share * instance.memory
    assert run(instance, row.policy).objective == row.value()
    assert Fraction(7, 5) < Fraction(row.value(), known(best)) <= (row.constant or 2)
    text = worst.PAGE.read_text(encoding="utf-8")
    assert worst.table() in text
    assert worst.page(text) == text
