"""Axes of studies: memory, rate, machines, routers, keys of schedulers and service levels."""

from __future__ import annotations

import csv
import json
import re
from fractions import Fraction
from math import ceil, floor
from pathlib import Path
from statistics import fmean

import pytest
from commands import Run
from hypothesis import given
from hypothesis import strategies as st
from known import known
from refusals import refusal

from kvopt import Instance, InvalidInput, Outcome, Request, write_instance
from kvopt import run as simulate
from kvopt.problem.clocks import arrivals_ns
from kvopt.studies import read_study, run_study
from kvopt.studies.description import resolved_text, study_from_text
from kvopt.studies.report import write_report
from kvopt.studies.sources import changed
from kvopt.studies.tasks import tasks_of

HEAD = 'name = "x"\npolicies = ["mc-sf", "fcfs"]\n[[instances]]\n'
SAMPLE = Path(__file__).parents[2] / "samples" / "chat.csv"
TRACE = f'trace = "{SAMPLE}"\nparameters = {{ format = "azure" }}\n'
FEW = Instance(
    9, [Request(0, 1, 2, "a"), Request(4, 3, 5, "b"), Request(7, 1, 1, "c")], "few", "by hand"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_instance(FEW, tmp_path / "few.json")
    (tmp_path / "few.csv").write_text("arrival,prompt,output\n0,1,2\n4,3,5\n7,1,1\n")
    return tmp_path


def described(folder: Path, text: str) -> Path:
    (folder / "x.toml").write_text(HEAD + text)
    return folder / "x.toml"


class TestChanges:
    @given(
        st.lists(st.integers(0, 10**6), min_size=1, max_size=5),
        st.sampled_from([0.1, 0.3, 0.5, 1.5, 2, 3, 7.25]),
    )
    def test_a_rate_divides_arrivals_and_rounds_them_up(
        self, arrivals: list[int], rate: float
    ) -> None:
        instance = Instance(9, [Request(a, 1, 1) for a in (1, *arrivals)])
        found = changed(instance, rate=rate)
        exact = Fraction(str(rate))
        assert [r.arrival for r in found][1:] == [ceil(a / exact) for a in arrivals]

    def test_seconds_are_rounded_up_to_nanoseconds(self) -> None:
        times = [0.0, 0.1, 1 / 3, 123456.789012345]
        requests = [Request(0, 1, 1, arrival_seconds=time) for time in times]
        found = changed(Instance(9, requests), rate=3)
        assert arrivals_ns(found) == [-(-ns // 3) for ns in arrivals_ns(Instance(9, requests))]

    def test_rounds_with_a_length_get_seconds_that_are_not_whole_rounds(self) -> None:
        found = changed(Instance(9, [Request(3, 1, 1), Request(5, 1, 1)], round_ms=50), rate=2)
        assert [r.arrival for r in found] == [2, 3]
        assert arrivals_ns(found) == [75_000_000, 125_000_000]

    def test_large_requests_are_left_out_and_counted_beside_the_notes(self) -> None:
        found = changed(FEW, 5, max_total=5)
        assert [request.id for request in found] == ["a", "c"]
        assert found.notes == {"notes": "by hand", "max_total": 5, "left_out": 1}

    def test_nothing_changed_is_the_same(self) -> None:
        assert changed(FEW) is changed(FEW, 9) is changed(FEW, rate=1) is FEW
        assert changed(FEW, 8).requests == FEW.requests

    @pytest.mark.parametrize(
        ("keys", "said"),
        [
            (
                {"memory": 6},
                "request 'b': output: needs 8 tokens (prompt + output), memory is 6; "
                "max_total = 6 leaves out what does not fit",
            ),
            ({"max_total": 1}, "max_total: leaves no request: the smallest has 2 tokens"),
            ({"max_total": 0}, "max_total: must be at least 1, got 0"),
            ({"rate": 1e-16}, "request 'b': arrival: must be at most 2^53 - 1, got 4"),
        ],
    )
    def test_what_cannot_be_is_refused(self, keys: dict[str, float], said: str) -> None:
        with pytest.raises(InvalidInput) as error:
            changed(FEW, **keys)  # type: ignore[arg-type]
        assert str(error.value).startswith(said)

    def test_a_clock_that_floats_do_not_keep_is_refused(self) -> None:
        late = Instance(9, [Request(0, 1, 1, "late", arrival_seconds=1.7e9)])
        with pytest.raises(InvalidInput, match="'late': arrival_seconds: is too far from 0"):
            changed(late, rate=3)

    def test_seconds_of_some_requests_alone_are_refused(self) -> None:
        some = Instance(9, [Request(1, 1, 1, arrival_seconds=1.0), Request(2, 1, 1, "bare")])
        with pytest.raises(InvalidInput, match="'bare': arrival_seconds: is missing"):
            changed(some, rate=2)

    def test_a_backlog_has_no_rate(self) -> None:
        with pytest.raises(InvalidInput, match="rate: all requests arrive at once"):
            changed(Instance(9, [Request(0, 1, 1)]), rate=2)


class TestDescriptions:
    def test_memory_and_rate_are_multiplied_out(self, folder: Path) -> None:
        text = 'file = "few.json"\nmemory = [8, 9, 20]\nrate = [1, 2, 0.5]\n'
        study = read_study(described(folder, text))
        assert study_from_text(resolved_text(study)) == study
        tasks = list(tasks_of(study))
        found = [(t.instance.memory, t.instance.parameters["rate"]) for t in tasks]
        assert found == [(m, r) for m in (8, 9, 20) for r in (1, 2, 0.5)]
        assert len({task.instance.hash for task in tasks}) == 9
        assert tasks[3].instance.hash == FEW.hash, "rate 1 and its own cache change nothing"

    @pytest.mark.parametrize("name", ["few.json", "few.csv"])
    def test_what_is_left_out_is_in_the_record(self, folder: Path, name: str) -> None:
        text = f'file = "{name}"\nmemory = [5, 9]\nmax_total = 5\n'
        for task in tasks_of(read_study(described(folder, text))):
            assert (task.instance.requests, task.instance.parameters["left_out"]) == (2, 1)

    def test_a_log_is_read_as_it_is(self, folder: Path) -> None:
        text = TRACE + "memory = 2048\nmax_total = 1000\n"
        (task,) = tasks_of(read_study(described(folder, text)))
        asked = task.instance.parameters
        assert (task.instance.name, task.instance.family) == ("chat.csv", None)
        assert {*asked["dropped"]} == {"blank line", "no output", "missing field"}
        unread = sum(entry["rows"] for entry in asked["dropped"].values())
        assert asked["left_out"] > 0
        lines = len(SAMPLE.read_text().splitlines()) - 1
        assert task.instance.requests + asked["left_out"] + unread == lines

    def test_the_sample_can_be_copied(self) -> None:
        study = read_study(SAMPLE.with_suffix(".toml"))
        found = [(t.instance.memory, t.instance.parameters["rate"]) for t in tasks_of(study)]
        assert found == [(m, r) for m in (1024, 2048, 4096) for r in (1, 2, 4)]

    def test_families_take_a_rate_too(self) -> None:
        text = HEAD + 'family = "arrival-2"\nn = 9\nrate = [1, 2]\n'
        one, two = (task.source.instance() for task in tasks_of(study_from_text(text)))
        assert [-(-r.arrival // 2) for r in one] == [r.arrival for r in two]

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ('file = "few.json"\nmemory = [9, 7]\n', "few.json: request 'b': output: needs 8 "),
            ('file = "few.json"\nrate = 0\n', "instances[0].rate: must be a number > 0"),
            ('file = "few.json"\nrate = ["2"]\n', "rate[0]: must be a number, got a text"),
            ('file = "few.json"\nrate = []\n', "instances[0].rate: must be a list of length >= 1"),
            ('file = "few.json"\nmax_total = [5]\n', "max_total: must be an integer, got a list"),
            ('file = "few.json"\nn = 2\n', "few.json: n: a file has its own requests"),
            ('file = "few.csv"\n', "few.csv: memory: CSV has no memory"),
            (TRACE, "memory: is missing"),
            (TRACE + "memory = 100\n", "tokens (prompt + output), memory is 100"),
            (f'trace = "{SAMPLE}"\nmemory = 9\n', "format: is missing: parameters = { format"),
            (
                f'trace = "{SAMPLE}"\nmemory = 9\nparameters = {{ format = "azure", x = 1 }}\n',
                "x: is not a key of a trace, which has format, limit, sample, ",
            ),
        ],
    )
    def test_what_is_wrong_is_named(self, folder: Path, text: str, said: str) -> None:
        assert said in refusal(read_study, folder / "x.toml", HEAD + text)

    def test_a_description_can_be_read_without_its_files(self, tmp_path: Path) -> None:
        text = HEAD + 'file = "missing.json"\nmemory = [5, 9]\n'
        study = study_from_text(text, tmp_path / "x.toml", checked=False)
        assert sum(entry.draws for entry in study.entries) == 2
        with pytest.raises(InvalidInput):
            study_from_text(text, tmp_path / "x.toml")


@pytest.mark.slow
def test_a_study_of_a_log_notes_what_it_left_out_and_continues(folder: Path, run: Run) -> None:
    text = TRACE + "memory = [1200, 2048]\nmax_total = 1200\nrate = [1, 2]\n"
    path = described(folder, text)
    path.write_text("certify = false\n" + path.read_text())
    out, err = run.done("study", path, "--out", folder / "out", "--jobs", 1)
    assert "mc-sf certainly takes at least 1.00 times" in out
    assert "of 61 requests left out: they have more than 1,200 tokens (max_total)" in err
    again = run_study(path, folder / "out", jobs=1)
    assert (again.progress.before, len(again.records)) == (4, 8)


# ---- studies of fleets


FLEETS = """
name = "x"
policies = ["fcfs", "svf"]
router = ["round-robin", "central"]
[limits]
time_limit = 0.5
[[instances]]
family = "conversation"
n = 8
memory = 120
workers = [1, 2]
"""
LABELS = tuple(
    f"{router} + {policy}" for policy in ("fcfs", "svf") for router in ("round-robin", "central")
)


@pytest.mark.usefixtures("sketched")
def test_each_scheduler_runs_behind_each_router_on_each_number_of_machines(tmp_path: Path) -> None:
    study = study_from_text(FLEETS)
    assert study.entries[0].policies == LABELS
    assert study_from_text(resolved_text(study)).entries == study.entries
    found = run_study(study, tmp_path / "out", jobs=1)
    assert [entry.workers for entry in found.study.entries] == [1, 2]
    assert {(r.instance.parameters["workers"], r.policy) for r in found.records} == {
        (workers, label) for workers in (1, 2) for label in LABELS
    }
    for record in found.records:
        source = found.study.entries[record.instance.parameters["workers"] - 1]
        router, _, policy = known(record.policy).partition(" + ")
        assert record.value == simulate(source.instance(), policy, router=router).objective
        assert known(record.lower) <= (record.value or 0)
    again = run_study(found.study, tmp_path / "out", jobs=1)
    assert again.progress.before == again.progress.done == 2
    page = write_report(tmp_path / "out").page.read_text()
    (picture,) = re.findall(r'<section id="by-workers".*?</section>', page, re.DOTALL)
    assert "round-robin + fcfs" in picture


# ---- a study goes through the values of a key of a scheduler, such as alpha


TWO = Instance(6, [Request(0, 0, 5), Request(0, 0, 5)])


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("clock", ["rounds", "seconds"])
def test_each_value_is_a_run_of_its_own(run: Run, tmp_path: Path, clock: str) -> None:
    """Two requests start together while 2 tokens are within (1 - alpha) 6, and never both fit."""
    write_instance(TWO, tmp_path / "two.json")
    values = [f"alpha={k / 10:g}" for k in range(10)]
    study, folder = tmp_path / "alpha.toml", tmp_path / "out"
    study.write_text(
        f'clock = "{clock}"\ncertify = false\npolicies = ["alpha-protect"]\n'
        f'predictions = {json.dumps(values)}\n[[instances]]\nfile = "two.json"\n'
    )
    run.done("study", study, "--out", folder, "--jobs", 1, "--json")
    assert run("report", folder)[0] == 0
    with (folder / "report.csv").open(encoding="utf-8") as file:
        found = {row["policy"]: row["outcome"] for row in csv.DictReader(file)}
    assert found == {
        f"alpha-protect:{value}": str(simulate(TWO, f"alpha-protect:{value}").outcome)
        for value in values
    }
    done = [name for name, outcome in found.items() if outcome == Outcome.COMPLETED]
    assert done == ["alpha-protect:alpha=0.7", "alpha-protect:alpha=0.8"]


# ---- studies with service levels


LEVELS = """
name = "late"
policies = ["svf", "fcfs"]
[limits]
time_limit = 0.5
slo = ["e2e=12", "ttft=4,tpot=1"]
attain = "60%"
[[instances]]
family = "arrival-2"
n = 8
"""


def test_each_level_is_a_limit_of_its_own_and_survives_its_text() -> None:
    study = study_from_text(LEVELS)
    assert [limits.slo for limits in study.limits] == ["e2e=12", "ttft=4,tpot=1"]
    assert [limits.attain for limits in study.limits] == ["60%", "60%"]
    assert study_from_text(resolved_text(study)).limits == study.limits


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"e2e=12"', '"soon"'),
        ('"e2e=12"', "12"),
        ('"60%"', '"7"'),
        ('"60%"', '"101%"'),
        ('slo = ["e2e=12", "ttft=4,tpot=1"]', ""),
    ],
)
def test_what_is_no_level_is_refused(old: str, new: str) -> None:
    with pytest.raises(InvalidInput, match=r"limits\.(slo|attain)"):
        study_from_text(LEVELS.replace(old, new))


@pytest.mark.slow
@pytest.mark.usefixtures("sketched")
def test_records_and_report_count_requests_in_time(tmp_path: Path, run: Run) -> None:
    (tmp_path / "late.toml").write_text(LEVELS)
    found = run_study(read_study(tmp_path / "late.toml"), tmp_path / "out", jobs=1)
    assert len(found.records) == 4
    for record in found.records:
        assert known(record.attained) <= known(record.best_attained) <= (record.ceiling or 0)
        assert record.wanted == 5
        assert (record.verdict == "reached") == (known(record.attained) >= 5)
        assert (record.verdict == "impossible") == ((record.ceiling or 0) < 5)
    code, out, _ = run("study", tmp_path / "late.toml", "--out", tmp_path / "out")
    rows = [line.split() for line in out.splitlines() if line.startswith(("svf", "fcfs"))]
    share = floor(1e4 * fmean(r.attained or 0 for r in found.records if r.policy == "svf") / 8)
    assert code == 0
    assert f"{share / 100:.2f}%" in rows[0]
    assert "impossible" in rows[0]
    assert run("report", tmp_path / "out", "--verify")[0] == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert "share of the requests in time" in page
    assert "ttft=4,tpot=1" in page
    assert "60% attain" in page
    with (tmp_path / "out" / "report.csv").open(newline="") as table:
        cells = [*csv.DictReader(table)]
    assert {(c["key"], c["slo"], c["attained"], c["ceiling"], c["verdict"]) for c in cells} == {
        (r.key, r.limits["slo"], str(r.attained), str(r.ceiling), r.verdict) for r in found.records
    }
