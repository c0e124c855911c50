"""The tables of the papers: what is kept of a study gives them again, and goes on."""

from __future__ import annotations

import copy
import json
import lzma
import re
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path
from zipfile import ZipFile

import kept_draws
import pytest
import studies
import tables
from msgspec import structs
from studied import tiny

from kvopt import Schedule, generate, verify, write_schedule
from kvopt.certificates.certificate_files import write_certificate
from kvopt.errors import InvalidInput
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.incumbent.certificate import Certificate
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.proofs import CheckedBound
from kvopt.problem.instance_files import instance_from_json
from kvopt.search.stages import states_priced
from kvopt.studies import Record, Study, builtin_study, read_records, read_study, run_study

SHIPPED = [path.name.removesuffix(".jsonl.xz") for path in sorted(tables.KEPT.glob("*.jsonl.xz"))]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return read_study(tiny(tmp_path_factory.mktemp("study") / "tiny.toml", draws=3))


@pytest.fixture(scope="module")
def folder(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("run")
    run_study(study, found, limit=2, jobs=1)
    return found


def test_what_is_kept_gives_the_same_table(
    study: Study, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept" / "tiny.jsonl.xz"
    assert tables.keep(study, kept, kept_draws.draws_of(folder)) == 0
    assert tables.show(study, kept, check=True) == 0
    said = capsys.readouterr().out
    assert "2 of 3 draws are kept." in said
    assert "0 faults." in said
    for line in tables.table(read_records(folder)):
        assert line in said


def test_a_study_goes_on_from_what_is_kept(study: Study, folder: Path, tmp_path: Path) -> None:
    kept = tmp_path / "tiny.jsonl.xz"
    tables.keep(study, kept, kept_draws.draws_of(folder))
    tables.unpack(study, kept_draws.read(kept), tmp_path / "again")
    result = run_study(study, tmp_path / "again", jobs=1)
    assert (result.progress.before, result.progress.done) == (2, 3)
    assert tables.keep(study, kept, kept_draws.draws_of(tmp_path / "again")) == 0
    assert len(kept_draws.read(kept)) == 3


def test_what_comes_after_the_first_draws_are_the_other_draws(study: Study) -> None:
    rest = tables.after(study, 2)
    assert set(tables.places_of(rest)) < set(tables.places_of(study))
    assert len(tables.places_of(rest)) == 1
    assert tables.after(study, 0) == study
    for wrong in (3, -1):
        with pytest.raises(InvalidInput, match="--after"):
            tables.after(study, wrong)


def test_a_folder_that_is_unpacked_has_the_limit_of_its_draws(
    study: Study, folder: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "tiny.jsonl.xz"
    tables.keep(study, kept, kept_draws.draws_of(folder))
    tables.unpack(tables.with_limits(study, 77.0, 2), kept_draws.read(kept), tmp_path / "again")
    assert read_study(tmp_path / "again" / "study.toml").limits == study.limits


def test_the_better_of_two_sides_is_kept(folder: Path) -> None:
    (best, *_) = kept_draws.draws_of(folder)
    poor = copy.deepcopy(best)
    poor["lower"]["by"] = poor["upper"]["by"] = "a worse one"
    poor["certificate"]["lower"] = {"value": 1, "proof": {"kind": "volume"}}
    poor["records"] = [replace(Record.from_json(row), lower=1).to_json() for row in poor["records"]]
    mixed = kept_draws.better(best, poor)
    assert mixed["certificate"]["lower"] == best["certificate"]["lower"]
    assert mixed["lower"]["by"] == best["lower"]["by"]
    assert mixed["upper"]["by"] == "a worse one"  # as good: what was found last
    assert mixed["records"][0]["lower"] == best["certificate"]["lower"]["value"]
    assert kept_draws.fault_of(mixed, {kept_draws.hash_of(best)}) is None


def test_better_schedules_of_other_runs_are_kept(
    study: Study, folder: Path, tmp_path: Path
) -> None:
    kept, found = tmp_path / "tiny.jsonl.xz", tmp_path / "found"
    found.mkdir()
    draws = list(kept_draws.draws_of(folder))
    for number, draw in enumerate(draws):
        instance = instance_from_json(draw["certificate"]["instance"])
        best = Schedule(instance, draw["certificate"]["upper"]["starts"])
        write_schedule(best, found / f"{number}.json")
        late = Schedule(instance, [start + 1 for start in best.starts])
        draw["certificate"]["upper"] = {"value": late.objective, "starts": list(late.starts)}
    assert tables.keep(study, kept, map(kept_draws.with_values, draws)) == 0
    for better in (len(draws), 0):
        new = list(kept_draws.with_schedules(kept_draws.read(kept), found, 7.0))
        assert len(new) == better
        assert tables.keep(study, kept, new) == 0
    assert kept_draws.read(kept)[0]["upper"]["seconds"] == 7.0
    assert tables.show(study, kept, check=True) == 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [("[1]", "names no instance"), ('{"schema": 1}', "names no instance"), ("{", "is not JSON")],
)
def test_a_file_that_is_no_schedule_is_named(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "it.json").write_text(content)
    with pytest.raises(InvalidInput, match=f"it.json: {reason}"):
        list(kept_draws.with_schedules([], tmp_path, 1.0))
    with pytest.raises(InvalidInput, match="none: is no folder"):
        list(kept_draws.with_schedules([], tmp_path / "none", 1.0))


def test_faults_are_seen(study: Study, folder: Path) -> None:
    (draw, *_) = kept_draws.draws_of(folder)
    places = tables.places_of(study)
    assert kept_draws.fault_of(draw, places) is None
    assert "draws no such instance" in (kept_draws.fault_of(draw, {}) or "")
    wrong = copy.deepcopy(draw)
    wrong["certificate"]["lower"]["value"] += 1
    assert "says otherwise" in (kept_draws.fault_of(wrong, places) or "")
    best = wrong["certificate"]["upper"]
    wrong = copy.deepcopy(draw)
    wrong["certificate"]["upper"]["starts"][0] += best["value"]
    assert "INVALID" in (kept_draws.fault_of(wrong, places) or "")


def test_what_is_not_valid_is_not_kept(
    study: Study, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = replace(study, entries=(structs.replace(study.entries[0], draws=1),))
    kept = tmp_path / "tiny.jsonl.xz"
    assert tables.keep(other, kept, kept_draws.draws_of(folder)) == 1
    assert "draws no such instance" in capsys.readouterr().err
    assert not kept.exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_shipped_can_be_recomputed(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert name in tables.STUDIES
    study, kept = builtin_study(name, checked=False), tables.KEPT / f"{name}.jsonl.xz"
    draws, places = kept_draws.read(kept, priced=False), tables.places_of(study)
    monkeypatch.setattr(tables, "places_of", lambda _: places)  # once: to draw takes seconds
    assert tables.show(study, kept, check=False) == 0
    assert draws
    assert f"{len(draws)} of {len(places)} draws are kept." in capsys.readouterr().out
    assert set(map(kept_draws.hash_of, draws)) <= set(places)
    assert name in studies.CLAIMS
    with ZipFile(kept_draws.prices_beside(kept)) as prices:
        asked = re.findall(r'"changes": "([^"]*)"', json.dumps(draws))
        assert sorted(asked) == sorted(prices.namelist())


@pytest.mark.thorough
@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_shipped_is_valid(name: str) -> None:
    study = builtin_study(name, checked=False)
    assert tables.show(study, tables.KEPT / f"{name}.jsonl.xz", check=True) == 0


def test_prices_that_are_kept_take_fewer_bytes_and_stay_valid(tmp_path: Path) -> None:
    instance, path = generate("arrival-1", 14, seed=2), tmp_path / "certificate.json"
    search = Search(instance)
    offer_list_schedules(search)
    for rising in islice(states_priced(search, search.budget), 3):
        evaluation = rising.evaluation
        value, proof = rising.proved(evaluation, 10**6)
    write_certificate(
        Certificate(instance, None, CheckedBound(value, "configuration", proof)), path
    )
    draw = {"certificate": json.loads(path.read_text()), "records": []}
    coarse = kept_draws.coarser(draw)
    assert coarse == kept_draws.coarser(coarse)
    for name, each in (("fine", draw), ("coarse", coarse)):
        kept_draws.write([each], tmp_path / name)
        assert kept_draws.read(tmp_path / name) == [each]
    assert 0.998 * value <= coarse["certificate"]["lower"]["value"] <= value
    with kept_draws.written(coarse) as found:
        assert verify(found).valid
    fine, small = (kept_draws.prices_beside(tmp_path / name) for name in ("fine", "coarse"))
    assert small.stat().st_size < fine.stat().st_size / 2


def test_another_study_in_the_folder_is_reported(
    study: Study,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["tables.py", "run", str(tmp_path), "--study", "arrival-1"])
    tables.unpack(study, [], tmp_path / "arrival-1")
    assert tables.main() == 1
    assert "holds another study" in capsys.readouterr().err


def test_the_same_draws_are_the_same_bytes(study: Study, folder: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "1.jsonl.xz", tmp_path / "2.jsonl.xz"
    tables.keep(study, first, kept_draws.draws_of(folder))
    tables.keep(study, second, kept_draws.draws_of(folder))
    tables.keep(study, second, kept_draws.draws_of(folder))
    assert lzma.decompress(first.read_bytes()) == lzma.decompress(second.read_bytes())
    prices = [kept_draws.prices_beside(path).read_bytes() for path in (first, second)]
    assert prices[0] == prices[1]


def test_a_folder_that_is_there_is_not_unpacked_into(study: Study, tmp_path: Path) -> None:
    tables.unpack(study, [], tmp_path / "one")
    with pytest.raises(InvalidInput, match="is there already"):
        tables.unpack(study, [], tmp_path / "one")
