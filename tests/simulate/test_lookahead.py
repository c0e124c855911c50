"""What policies look ahead with, and what they believe, against the definitions."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import instance_of, instances

from kvopt import Instance, Prediction, Request, run
from kvopt.problem.predictions import PredictionModel


@pytest.mark.parametrize("policy", ["fcfs", "mc-sf", "svf"])
def test_arrivals_near_the_limit_are_as_good_as_at_0(policy: str) -> None:
    runs = [
        run(instance_of(10**6, [(arrival, 0, 11)] * 1_100), policy)
        for arrival in (0, 2**53 - 10**6)
    ]
    assert runs[0].objective == runs[1].objective == 11 * 1_100


def test_prediction_models_give_their_intervals() -> None:
    requests = [
        Request(0, 1, 5, predicted=Prediction(2, 9)),
        Request(0, 1, 101),
        Request(0, 195, 5),
    ]
    instance = Instance(200, requests)

    def intervals(model: PredictionModel) -> list[tuple[int, int]]:
        found = model.beliefs(instance)
        return list(zip(found.lower, found.upper, strict=True))

    assert intervals(PredictionModel()) == [(2, 9), (101, 101), (5, 5)]
    assert intervals(PredictionModel(intervals="rough")) == [(1, 199), (1, 199), (1, 5)]
    assert intervals(PredictionModel(intervals="buckets")) == [(1, 100), (101, 199), (1, 5)]
    tenth = PredictionModel(intervals="relative", eps=Fraction("0.1"))
    assert intervals(tenth) == [(5, 5), (91, 111), (5, 5)]
    assert PredictionModel("mid").beliefs(instance).output == [5, 101, 5]
    assert PredictionModel("upper").beliefs(instance).output == [9, 101, 5]
    assert PredictionModel("exact").beliefs(instance).output == [5, 101, 5]


@given(instance=instances(), eps=st.fractions(0, 1), seed=st.integers(0, 9))
def test_noise_stays_in_its_range(instance: Instance, eps: Fraction, seed: int) -> None:
    model = PredictionModel("noise", eps=eps, seed=seed)
    believed = model.beliefs(instance).output
    assert believed == model.beliefs(instance).output
    for request, output in zip(instance, believed, strict=True):
        assert 1 <= output <= instance.memory - request.prompt
        assert abs(output - request.output) <= eps * request.output + Fraction(1, 2) or output == 1
