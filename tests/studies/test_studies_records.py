"""Lines of a record file: what was written is read, and what was damaged is seen."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from studied import record

from kvopt.errors import InvalidInput
from kvopt.show.summary import rounded
from kvopt.studies.ratio_intervals import Interval, largest_of, mean_of, ratio_of
from kvopt.studies.record_lines import DamagedRecord, Record, StudiedInstance, read_records

COUNTS = st.none() | st.integers(0, 2**53)


@st.composite
def records(draw: st.DrawFn) -> Record:
    completed = draw(st.booleans())
    return record(
        draw(st.integers(0, 5)),
        draw(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=9)),
        draw(st.integers(0, 2**53)) if completed else None,
        upper=draw(COUNTS),
        lower=draw(COUNTS),
        evictions=draw(st.integers(0, 99)),
        makespan=draw(COUNTS),
        peak_memory=draw(COUNTS),
        seconds=draw(st.floats(0, 1e6)),
        error=draw(st.none() | st.text(max_size=9).filter(str.isprintable)),
    )


def written(folder: Path, *lines: Record | str) -> Path:
    texts = [line if isinstance(line, str) else json.dumps(line.to_json()) for line in lines]
    (folder / "records.jsonl").write_text("".join(text + "\n" for text in texts))
    return folder


@pytest.mark.slow
@given(records())
def test_a_record_comes_back_as_it_was(made: Record) -> None:
    assert Record.from_json(json.loads(json.dumps(made.to_json()))) == made


@pytest.mark.slow
@given(records(), st.data())
@examples(150)
def test_a_changed_byte_is_seen(made: Record, data: st.DataObject) -> None:
    line = bytearray(json.dumps(made.to_json()).encode())
    place = data.draw(st.integers(0, len(line) - 1))
    line[place] = data.draw(st.integers(32, 126).filter(lambda byte: byte != line[place]))
    with suppress(ValueError, InvalidInput):
        # Some changes say the same, such as a capital letter in an escape.
        assert Record.from_json(json.loads(line)) == made


@given(records(), st.data())
def test_half_a_line_is_seen(made: Record, data: st.DataObject) -> None:
    line = json.dumps(made.to_json())
    half = line[: data.draw(st.integers(0, len(line) - 1))]
    with pytest.raises((ValueError, InvalidInput)):
        Record.from_json(json.loads(half))


def test_damaged_lines_are_reported_and_do_not_count(tmp_path: Path) -> None:
    good = [record(number) for number in range(3)]
    text = json.dumps(good[1].to_json())
    wrong = text.replace('"value": 28', '"value": 29')
    assert wrong != text
    folder = written(tmp_path, good[0], wrong, text[:100], "", "[]", "\x00", good[2])
    said: list[str] = []
    assert read_records(folder, said.append) == [good[0], good[2]]
    assert [message.split(": ")[1].split()[:2] for message in said] == [
        ["line", "2"], ["line", "3"], ["line", "5"], ["line", "6"],
    ]  # fmt: skip
    with pytest.warns(DamagedRecord, match="line 1 is damaged"):
        read_records(written(tmp_path, wrong))


def test_the_latest_line_counts_once(tmp_path: Path) -> None:
    old, new = record(value=30, lower=20), record(value=28)
    other, policy = record(1), record(policy="fcfs", value=40)
    assert read_records(written(tmp_path, old, other, policy, new)) == [new, other, policy]


def test_a_new_version_replaces_the_old(tmp_path: Path) -> None:
    folder = written(tmp_path, record(key="old"), record(key="new", value=29))
    assert [found.value for found in read_records(folder)] == [29]


def test_a_failure_is_forgotten_once_the_instance_is_done(tmp_path: Path) -> None:
    failed = record(policy=None, value=None, outcome="error", error="no")
    assert read_records(written(tmp_path, failed)) == [failed]
    assert read_records(written(tmp_path, failed, record())) == [record()]


def test_a_folder_without_records_has_none(tmp_path: Path) -> None:
    assert read_records(tmp_path) == []


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").mkdir()
    with pytest.raises(InvalidInput, match=r"records\.jsonl: cannot be read"):
        read_records(tmp_path)


def test_an_unknown_outcome_is_refused() -> None:
    with pytest.raises(InvalidInput, match="outcome"):
        Record.from_json(record(outcome="fine").to_json())


class TestIntervals:
    """Numbers that hold for certain."""

    def test_ratios_are_intervals_between_both_sides(self) -> None:
        assert ratio_of(record(upper=27, lower=25)) == Interval(Fraction(28, 27), Fraction(28, 25))
        assert ratio_of(record(value=None)) == Interval(None, None)
        assert ratio_of(record(lower=0)) == Interval(Fraction(28, 27), None)

    def test_one_unknown_end_leaves_the_mean_unknown(self) -> None:
        half = Interval(Fraction(1), None)
        whole = Interval(Fraction(2), Fraction(3))
        assert mean_of([half, whole]) == Interval(Fraction(3, 2), None)
        assert largest_of([half, whole]) == Interval(Fraction(2), None)
        assert mean_of([]) == Interval(None, None) == largest_of([])

    @pytest.mark.slow
    @given(st.fractions(), st.integers(0, 6))
    def test_rounding_goes_outward(self, value: Fraction, places: int) -> None:
        low, high = (
            Fraction(rounded(value, up=up, places=places).replace(",", "")) for up in (False, True)
        )
        assert low <= value <= high
        assert high - low <= Fraction(1, 10**places)

    def test_intervals_are_rounded_outward(self) -> None:
        assert str(Interval(Fraction(28, 27), Fraction(28, 27))) == "1.037"
        assert str(Interval(Fraction(28, 27), Fraction(28, 25))) == "[1.037, 1.120]"
        assert str(Interval(None, None)) == "[-, -]"
        assert str(Interval(Fraction(-1, 3), Fraction(-1, 30))) == "[-0.3334, -0.0333]"


def test_a_mean_counts_each_latency_as_often_as_its_weight() -> None:
    weighted = StudiedInstance("i", None, {}, None, requests=2, memory=9, hash="h", weight=6)
    assert weighted.mean(12) == 2
    assert replace(weighted, weight=None).mean(12) == 6  # a record of an earlier release
