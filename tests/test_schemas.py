"""The JSON Schemas of docs/static/schemas: up to date, and true of what kvopt reads and writes."""

from __future__ import annotations

import importlib
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from shapes import FOLDER, faults

from kvopt import (
    BatchTime,
    Instance,
    Line,
    Request,
    Schedule,
    certify,
    write_instance,
    write_schedule,
)
from kvopt.certificates import write_certificate
from kvopt.studies.description import builtin_names, builtin_text
from kvopt.timetable.records import read_record
from kvopt.timetable.run_files import write_run

ROOT = Path(__file__).parents[1]
TRIO = Instance(6, [Request(0, 2, 2), Request(0, 2, 2), Request(1, 4, 1)], round_ms=50)


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


@pytest.fixture
def schemas(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "docs")
    return importlib.import_module("schemas")


def test_schemas_are_those_of_the_code(schemas: Any) -> None:
    for path, text in schemas.written():
        assert path.read_text("utf-8") == text, "run python docs/schemas.py"
        Draft202012Validator.check_schema(json.loads(text))
    assert {path.name for path, _ in schemas.written()} == {path.name for path in FOLDER.iterdir()}


def test_schemas_know_the_fields_of_instances(schemas: Any) -> None:
    """Each field of the second schema of instances is one that the first refuses."""
    module = importlib.import_module("kvopt.problem.instance_files")
    names = (*module._TOP_NEWER, *module._REQUEST_NEWER)
    assert {name.rstrip("?") for name in schemas.NEWER} == {*names}


INSTANCES = [
    *sorted((ROOT / "instances").glob("*.json")),
    *sorted((ROOT / "models").glob("*.json")),
    *sorted((ROOT / "samples").glob("*.json")),
]


def test_files_of_the_repository_are_valid() -> None:
    kinds: dict[str, int] = {}
    for path in [*INSTANCES, *sorted((ROOT / "instances" / "worst").glob("*.json"))]:
        content = read(path)
        if "schema" in content:
            kind = content["schema"].removeprefix("kvopt.").partition("/")[0]
            kinds[kind] = kinds.get(kind, 0) + 1
            assert faults(kind, content) == [], path
    assert kinds["instance"] > 50
    assert kinds["certificate"] > 3


def test_descriptions_of_studies_are_valid() -> None:
    texts = [builtin_text(name) for name in builtin_names()]
    texts += [path.read_text("utf-8") for path in (ROOT / "samples").glob("*.toml")]
    for text in texts:
        assert faults("study", tomllib.loads(text)) == []


def test_written_files_are_valid(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    fleet = TRIO.replace(workers=2)
    for instance in (TRIO, fleet):
        write_instance(instance, path)
        assert faults("instance", read(path)) == []
    for schedule in (
        Schedule(TRIO, (0, 2, 4)),
        Schedule(fleet, (0, 0, 2), workers=(0, 1, 0)),
        Schedule(TRIO, segments=[[[1, 1], [3, 3]], [[4, 5]], [[2, 2]]]),
    ):
        write_schedule(schedule, path)
        assert faults("schedule", read(path)) == []
    write_run(read_record(ROOT / "samples" / "vllm.jsonl"), path)
    assert faults("run", read(path)) == []


@pytest.mark.slow
@pytest.mark.parametrize("clock", [None, BatchTime([Line(60, 10)])])
def test_written_certificates_are_valid(tmp_path: Path, clock: BatchTime | None) -> None:
    policies = ["fcfs", "alpha-protect:alpha=0.9"]
    options: dict[str, Any] = {"clock": "seconds", "batch_time": clock} if clock else {}
    certificate = certify(TRIO, policies, time_limit=5, **options)
    write_certificate(certificate, tmp_path / "cert.json")
    assert faults("certificate", read(tmp_path / "cert.json")) == []


GOOD = {"schema": "kvopt.instance/1", "memory": 7, "requests": [
    {"arrival": 0, "prompt": 1, "output": 2}]}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("instance", {**GOOD, "memory": 0}),
        ("instance", {**GOOD, "memory": 7.5}),
        ("instance", {**GOOD, "workers": 2}),
        ("instance", {**GOOD, "requests": [{"arrival": -1, "prompt": 1, "output": 2}]}),
        ("instance", {**GOOD, "requests": [{"arrival": 0, "prompt": 1}]}),
        ("instance", {**GOOD, "name": None}),
        ("schedule", {"schema": "kvopt.schedule/1", "segments": []}),
        ("run", {"schema": "kvopt.run/1", "policy": "p", "value": 1}),
        ("certificate", {"schema": "kvopt.certificate/3"}),
        ("study", {"polices": ["fcfs"]}),
        ("study", {"limits": {"time_limit": -1}}),
    ],
)
def test_what_kvopt_refuses_is_invalid(kind: str, content: object) -> None:
    assert (
        faults("instance", GOOD) == faults("instance", {**GOOD, "schema": "kvopt.instance/2"}) == []
    )
    assert faults(kind, content) != []
