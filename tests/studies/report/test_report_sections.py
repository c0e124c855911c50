"""Sections of a report: those with data, in the order of their texts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kvopt.studies.report import write_report
from kvopt.studies.report.context import TEXTS
from kvopt.studies.report.writing import BY_FAMILY, WHOLE


def test_each_section_has_a_text_and_one_function() -> None:
    assert sorted(TEXTS) == sorted([*WHOLE, *BY_FAMILY])


@pytest.mark.usefixtures("sketched")
def test_sections_with_data_stand_in_order_and_are_linked(studied: Path) -> None:
    text = write_report(studied).page.read_text()
    names = re.findall(r'<section id="([^"]*)"', text)
    assert re.findall(r'<li><a href="#([^"]*)"', text) == names
    assert names == [name for name in TEXTS if name in names]
    assert names[0] == "overview"
    assert names[-2:] == ["failures", "provenance"]
    assert "latency" not in names, "the study is in rounds"
