"""Studies in seconds: the numbers of simulations and certificates, and the same guarantees."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from commands import Run
from known import known
from studied import certified
from studied import record as record_of

import kvopt
from kvopt import BatchTime, Instance, Line, Request, write_instance
from kvopt.errors import InvalidInput
from kvopt.problem.clocks import Seconds
from kvopt.problem.hardware.batch_time_files import PRESETS, write_batch_time
from kvopt.simulate.run_policy import run as simulate
from kvopt.studies import Record, read_records, read_study, run_study
from kvopt.studies.description import resolved_text, study_from_text
from kvopt.studies.ratio_intervals import ratio_of
from kvopt.studies.record_lines import FILE, DamagedRecord, Times, digest
from kvopt.studies.tasks import tasks_of

MODEL = BatchTime([Line(1_000_000, 2_000)], kv_ns=10, name="small")

HEAD = """
name = "traffic"
clock = "seconds"
batch_time = "small.json"
policies = ["mc-sf", "fcfs", "alpha-protect:alpha=0.05", "alpha-protect:alpha=0.3"]

[limits]
time_limit = 0.5
"""
TRAFFIC = """
[[instances]]
family = "conversation"
n = [20, 30]
memory = 1500
parameters = { per_second = 500 }
"""


def described(folder: Path, text: str) -> Path:
    """Write a description beside the model that it names."""
    write_batch_time(MODEL, folder / "small.json")
    (folder / "traffic.toml").write_text(text)
    return folder / "traffic.toml"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a description and the folder of a run of it; tests leave both as they are."""
    folder = tmp_path_factory.mktemp("study")
    description = described(folder, HEAD + TRAFFIC)
    found = run_study(description, folder / "out", jobs=1)
    assert (found.progress.done, found.progress.failed) == (2, 0)
    return description, folder / "out"


@pytest.mark.slow
def test_records_hold_what_a_simulation_gives(done: tuple[Path, Path]) -> None:
    found = read_records(done[1])
    assert len(found) == 8
    assert {record.outcome for record in found} == {"completed", "livelock"}
    for record in found:
        name, keys = str(record.instance.family), dict(record.instance.parameters)
        n, memory = keys.pop("n"), keys.pop("memory")
        instance = kvopt.generate(name, n, memory, record.instance.seed or 0, keys)
        run = simulate(instance, str(record.policy), clock=Seconds(MODEL))
        assert record.times is not None
        assert (record.value, record.outcome) == (run.objective, str(run.outcome))
        assert (record.evictions, record.peak_memory) == (run.evictions, run.peak_memory)
        assert record.makespan == (run.makespan if record.value is not None else None)
        said = run.to_json()
        assert dict(record.times.latency) == said["latency"]
        assert dict(record.times.first_token) == said["time_to_first_token"]
        assert record.times.tokens_per_second == said["tokens_per_second"]
        assert record.times.completed == said["completed"]


def test_each_instance_is_certified_and_verifies(done: tuple[Path, Path]) -> None:
    for record, content in certified(done[1]):
        assert content["clock"]["lines"]
        ratio = ratio_of(record)
        if record.value is not None:
            assert 1 <= known(ratio.lower) <= known(ratio.upper)


def test_the_folder_needs_no_file_of_the_model(done: tuple[Path, Path]) -> None:
    study = read_study(done[0])
    assert read_study(done[1] / "study.toml") == study
    assert study_from_text(resolved_text(study)) == study
    assert study.limits[0].batch_time == MODEL


def test_another_model_is_another_study(done: tuple[Path, Path]) -> None:
    study = read_study(done[0])
    other = BatchTime(MODEL.lines, kv_ns=11, name=MODEL.name)
    limits = tuple(replace(limit, batch_time=other) for limit in study.limits)
    with pytest.raises(InvalidInput, match="holds another study"):
        run_study(replace(study, limits=limits), done[1])
    (task, *_), (moved, *_) = tasks_of(study), tasks_of(replace(study, limits=limits))
    assert task.key("mc-sf") != moved.key("mc-sf")


def test_a_task_comes_back_from_the_process_that_does_it(done: tuple[Path, Path]) -> None:
    for task in tasks_of(read_study(done[0])):
        assert pickle.loads(pickle.dumps(task)) == task


@pytest.mark.parametrize("clock", ["rounds", "seconds"])
def test_without_certify_only_policies_run(clock: str, tmp_path: Path) -> None:
    text = f'name = "x"\nclock = "{clock}"\ncertify = false\npolicies = ["mc-sf", "fcfs"]\n'
    (tmp_path / "x.toml").write_text(
        text + '[[instances]]\nfamily = "geometric"\nn = 9\nmemory = 60\ndraws = 3\n'
    )
    found = run_study(tmp_path / "x.toml", tmp_path / "out", jobs=1)
    assert (found.progress.done, found.progress.failed) == (3, 0)
    by_instance: dict[str, list[Record]] = {}
    for record in found.records:
        assert (record.certificate, record.lower, record.bounded_by) == (None, None, None)
        by_instance.setdefault(record.instance.hash, []).append(record)
    for mine in by_instance.values():
        assert {r.upper for r in mine} == {min(r.value for r in mine if r.value is not None)}
    assert list((tmp_path / "out" / "certificates").iterdir()) == []
    again = run_study(tmp_path / "x.toml", tmp_path / "out", jobs=1)
    assert (again.progress.before, len(again.records)) == (3, 6)


@pytest.mark.slow
def test_files_keep_their_arrivals_and_their_names(tmp_path: Path, run: Run) -> None:
    trace = tmp_path / "trace.csv"
    rows = ["2024-05-10 00:00:00.000,10,5", "2024-05-10 00:00:00.004,20,7"]
    trace.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + "\n".join(rows) + "\n")
    run.done("import", trace, "--format", "azure", "--memory", 40, "-o", tmp_path / "trace.json")
    drawn = kvopt.generate("conversation", 3, 1500, parameters={"per_second": 9})
    write_instance(drawn, tmp_path / "drawn.json")
    files = "".join(f'[[instances]]\nfile = "{name}.json"\n' for name in ("trace", "drawn"))
    found = run_study(described(tmp_path, HEAD + files), tmp_path / "out", jobs=1)
    assert found.progress.failed == 0
    first, last = found.records[0], found.records[-1]
    assert (first.instance.name, first.instance.family) == ("trace.json", None)
    assert (last.instance.name, last.instance.family) == ("drawn.json", "conversation")
    assert first.instance.parameters == {"file": str(tmp_path / "trace.json")}
    instance = kvopt.read_instance(tmp_path / "trace.json")
    run_of_it = simulate(instance, str(first.policy), clock=Seconds(MODEL))
    assert run_of_it.arrivals == (0, 4_000_000)
    assert first.value == run_of_it.objective


ENTRY = '[[instances]]\nfamily = "arrival-1"\n'


def test_the_preset_is_what_run_takes_too() -> None:
    text = 'name = "x"\nclock = "seconds"\npolicies = ["mc-sf"]\n'
    study = study_from_text(text + ENTRY)
    model, preset = study.limits[0].batch_time, PRESETS["llama-2-70b-2xa100"]
    assert model is not None
    assert (model.lines, model.kv_ns, model.name) == (preset.lines, preset.kv_ns, preset.name)


class TestTimes:
    """What a record keeps of a run."""

    def test_mean_memory_of_one_request_is_its_area(self) -> None:
        run = simulate(Instance(9, [Request(0, 3, 2)]), "fcfs", clock=Seconds(MODEL))
        times = Times.of(run)
        first, second = (MODEL.round_ns(1, 3, 4), MODEL.round_ns(1, 0, 5))
        area = Fraction(first * (0 + 4), 2) + Fraction(second * (4 + 5), 2)
        assert times.mean_memory == pytest.approx(float(area / (first + second)))
        assert times.ended == (first + second) / 1e9

    @pytest.mark.parametrize(
        ("member", "value"),
        [
            ("latency", {"mean": 1.0}),
            ("latency", {"mean": "x", "median": 1.0, "p99": 1.0}),
            ("ended", True),
        ],
    )
    def test_what_is_no_time_does_not_count_though_its_digest_fits(
        self, tmp_path: Path, member: str, value: object
    ) -> None:
        run = simulate(Instance(9, [Request(0, 3, 2)]), "fcfs", clock=Seconds(MODEL))
        said = record_of(times=Times.of(run)).to_json()
        assert Record.from_json(json.loads(json.dumps(said))).times == Times.of(run)
        said["times"] = {**said["times"], member: value}
        with pytest.raises(InvalidInput, match="digest"):
            Record.from_json(said)
        said["digest"] = digest({key: part for key, part in said.items() if key != "digest"})
        (tmp_path / FILE).write_text(json.dumps(said) + "\n")
        with pytest.warns(DamagedRecord, match=r"records\.jsonl: line 1 is damaged"):
            assert read_records(tmp_path) == []
