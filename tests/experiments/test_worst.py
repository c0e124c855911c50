"""The worst certified cases: they verify, are runs of the policies, and are what the page says."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import pytest
from brute_force import feasible, tel

from kvopt import read_certificate, run, verify

sys.path.append(str(Path(__file__).parents[2] / "instances"))

import worst

KEPT = [row for row in worst.ROWS if row.file]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({row.file for row in KEPT}))
def test_certificates_verify(name: str) -> None:
    assert verify(worst.HERE / "worst" / f"{name}.cert.json").valid


@pytest.mark.slow
@pytest.mark.parametrize("row", KEPT, ids=lambda row: f"{row.policy}-{row.file}")
def test_the_policy_is_so_bad_and_no_worse_than_is_proved(row: worst.Row) -> None:
    kept = read_certificate(worst.HERE / "worst" / f"{row.file}.cert.json")
    instance = kept.instance
    assert max(r.prompt + r.output for r in instance) <= row.share * instance.memory
    assert {r.arrival for r in instance} == {0}
    assert row.policy != "mc-sf" or len({r.prompt for r in instance}) == 1
    assert run(instance, row.policy).objective == row.value()
    schedule, triples = kept.upper, [(r.arrival, r.prompt, r.output) for r in instance]
    assert schedule is not None
    assert feasible(instance.memory, triples, schedule.starts)
    ratio = Fraction(row.value(), tel(triples, schedule.starts))
    assert ratio > Fraction(7, 5)
    if row.constant is not None:
        assert ratio <= row.constant


def test_the_page_has_the_table() -> None:
    text = worst.PAGE.read_text(encoding="utf-8")
    assert worst.table() in text
    assert worst.page(text) == text
