"""Runs side by side: each is what it is alone, and what is of no use together is refused."""

from __future__ import annotations

import pandas as pd
import pytest

from kvopt import Comparison, Instance, InvalidInput, Request, compare, generate, run
from kvopt.model.batch_time import BatchTime, Line
from kvopt.simulation.clocks import Seconds
from kvopt.simulation.measures import MEASURES

SMALL = generate("arrival-1", n=6, seed=3)
LOOP = "alpha-protect:alpha=0.2"


def test_it_holds_the_runs_in_their_order() -> None:
    found = compare(SMALL, ["mc-sf", "fcfs", LOOP])
    assert len(found) == 3
    assert [each.policy for each in found] == ["mc-sf", "fcfs", LOOP]
    assert found[1].starts == run(SMALL, "fcfs").starts
    assert found.best == run(SMALL, "mc-sf").objective
    assert "livelock" in str(found)
    assert compare(SMALL, "svf")[0].policy == "svf"


def test_its_table_says_what_each_run_says() -> None:
    found = compare(SMALL, ["mc-sf", LOOP])
    first, second = found.to_dataframe().to_dict("records")
    assert first["total_latency"] == found[0].objective
    for name in MEASURES:
        assert first[f"{name}_p99"] == found[0].measures()[name]["p99"]
    assert pd.isna(second["total_latency"])
    assert pd.isna(second["latency_mean"])
    assert second["evictions"] == found[1].evictions
    assert "& livelock" in found.to_latex()


def test_run_sends_several_policies_here() -> None:
    with pytest.raises(InvalidInput, match=r"policy: must be a single one; kvopt\.compare"):
        run(SMALL, ["mc-sf", "fcfs"])  # type: ignore[arg-type]


def test_in_seconds() -> None:
    found = compare(SMALL, ["mc-sf"], clock=Seconds(BatchTime([Line(500_000_000, 0)])))
    (row,) = found.to_dataframe().to_dict("records")
    assert found[0].objective is not None
    assert row["total_latency"] == found[0].objective / 1e9
    assert "per token s" in found.to_latex()


def test_runs_that_cannot_be_compared_are_refused() -> None:
    other = run(Instance(9, [Request(0, 1, 2)]), "svf")
    with pytest.raises(InvalidInput, match="run of svf: is of another instance or clock"):
        Comparison([run(SMALL, "svf"), other])
    with pytest.raises(InvalidInput, match="at least one"):
        Comparison([])
