"""Tables of pandas: what is in them is what is known, and nothing is passed over."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from strategies import instances

from kvopt import (
    BatchTime,
    Instance,
    InvalidInput,
    Line,
    Prediction,
    Request,
    Schedule,
    certify,
    run,
    solve,
)
from kvopt.problem.clocks import Seconds
from kvopt.show.dataframes import frame

EC1 = Instance(7, [Request(0, 1, o) for o in (1, 2, 3, 4)], name="EC.1")
LOOP = Instance(9, [Request(0, 1, o) for o in (7, 7, 7)], name="a_loop")
CLOCK = Seconds(BatchTime([Line(500_000_000, 0)]))


@pytest.mark.slow
@given(instances())
def test_an_instance_comes_back(instance: Instance) -> None:
    df = instance.to_dataframe()
    assert len(df) == len(instance)
    back = Instance.from_dataframe(df, instance.memory, round_ms=instance.round_ms)
    assert back.hash == instance.hash
    assert [request.id for request in back] == [request.id for request in instance]


def test_what_some_requests_have_comes_back_where_it_is() -> None:
    requests = [
        Request(0, 1, 2, "a", Prediction(1, 4)),
        Request(3, 0, 1, "b", arrival_seconds=0.25, priority=-2),
        Request(4, 0, 1, "c", priority=0, e2e=7),
    ]
    df = Instance(9, requests).to_dataframe()
    assert df["predicted_lower"].tolist() == [1, pd.NA, pd.NA]
    assert df["e2e"].tolist() == [pd.NA, pd.NA, 7]
    assert Instance.from_dataframe(df, 9).requests == tuple(requests)


def table(**columns: list[object]) -> pd.DataFrame:
    return pd.DataFrame({"arrival": [0, 0], "prompt": [1, 1], "output": [2, 3], **columns})


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("output", 1.5, "request in row 1: output: must be an integer, got 1.5"),
        ("output", None, "request in row 1: output: is missing"),
        ("prompt", pd.NA, "request in row 1: prompt: is missing"),
        ("prompt", float("inf"), "request in row 1: prompt: must be an integer, got inf"),
        ("arrival", "3", "request in row 1: arrival: must be an integer, got '3'"),
        ("arrival", True, "request in row 1: arrival: must be an integer, got True"),
        ("arrival", -1, "request in row 1: arrival: must be at least 0, got -1"),
        ("output", 0, "request in row 1: output: must be at least 1, got 0"),
        ("output", 2.0**60, "request in row 1: output: must be at most 2^53 - 1, got"),
        ("id", None, "request in row 1: id: is missing"),
        ("predicted_lower", 2, "request in row 1: predicted_upper: is missing"),
        ("outputs", 3, "column 'outputs': is not known: must be one of arrival, prompt, output"),
    ],
)
def test_what_is_wrong_is_named_by_row_and_column(column: str, value: object, said: str) -> None:
    first: object = {"id": "a", "predicted_lower": None}.get(column, 1)
    with pytest.raises(InvalidInput) as caught:
        Instance.from_dataframe(table(**{column: [first, value]}), 9)
    assert str(caught.value).startswith(said)


def test_other_tables_are_refused() -> None:
    with pytest.raises(InvalidInput, match="must be a DataFrame, got a list"):
        Instance.from_dataframe([1], 9)
    with pytest.raises(InvalidInput, match="column output: is missing"):
        Instance.from_dataframe(table().drop(columns="output"), 9)
    twice = pd.concat([table(), table()[["output"]]], axis=1)
    with pytest.raises(InvalidInput, match="column output: is there twice"):
        Instance.from_dataframe(twice, 9)


def test_whole_floats_and_integer_ids_are_integers_and_names() -> None:
    made = Instance.from_dataframe(table(output=[2.0, 3.0], id=[7, 8]), 9, name="mine")
    assert [(r.output, r.id) for r in made] == [(2, "7"), (3, "8")]
    assert type(made[0].output) is int
    assert made.name == "mine"


def test_schedules_and_runs_have_a_row_for_each_request() -> None:
    df = Schedule(EC1, (0, 0, 0, 2)).to_dataframe()
    assert df["latency"].sum() == 12
    assert df.iloc[3].to_dict() == {
        "id": "r3", "arrival": 0, "prompt": 1, "output": 4,
        "start": 2, "first_token": 3, "completion": 6, "latency": 6, "wait": 2, "evictions": 0,
    }  # fmt: skip
    assert run(EC1, "mc-sf").to_dataframe()["latency"].sum() == 12
    timed = run(EC1, "mc-sf", clock=CLOCK).to_dataframe()
    assert timed["latency_seconds"].sum() == 6.0
    assert timed["first_token_seconds"].tolist() == [0.5, 0.5, 0.5, 1.5]


def test_what_never_finished_is_unknown_and_integers_stay_integers() -> None:
    df = run(LOOP, "alpha-protect:alpha=0.1").to_dataframe()
    assert df["completion"].isna().all()
    assert df["evictions"].sum() > 0
    mixed = frame({"a": [2**62, None], "b": [2**70, None]})
    assert mixed["a"].tolist() == [2**62, pd.NA]
    assert mixed["b"][0] == 2**70


def test_results_are_a_row() -> None:
    (row,) = solve(EC1).to_dataframe().to_dict("records")
    assert (row["instance"], row["objective"], row["lower_bound"]) == ("EC.1", 12, 12)
    (row,) = solve(EC1, time_limit=0, quick_start=False).to_dataframe().to_dict("records")
    assert row["objective"] is None or pd.isna(row["objective"])


def test_certificates_have_a_row_for_each_policy() -> None:
    found = certify(EC1, ["mc-sf", "fcfs"])
    df = found.to_dataframe()
    assert df["policy"].tolist() == ["mc-sf", "fcfs"]
    assert df["value"].tolist() == [judged.objective for judged in found.runs]
    for judged, row in zip(found.runs, df.to_dict("records"), strict=True):
        assert (row["at_least"], row["at_most"]) == found.ratio(judged)
    seconds = certify(EC1, ["mc-sf"], clock=CLOCK, time_limit=0.5)
    assert seconds.to_dataframe()["value"].tolist() == [6.0]
