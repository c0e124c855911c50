"""Adversaries that wait for a policy's first move, and the schedules that they are measured by."""

from __future__ import annotations

from math import isqrt

import pytest

from kvopt import InvalidInput, run
from kvopt.experiments.studies.games import GAMES, check_game, play, reference

POLICIES = (
    "mc-sf", "fcfs", "svf", "h-sf", "mc-sf-total", "paced:gap=3", "alpha-protect:alpha=0.05",
    "sorted-f:phase1=swap", "a-min", "a-max",
)  # fmt: skip


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("policy", POLICIES)
def test_what_comes_later_does_not_change_the_first_move(game: str, policy: str) -> None:
    instance = play(game, policy, memory=100)
    assert isinstance(instance.notes, dict)
    start = instance.notes["start"]
    found = run(instance, policy)
    first_try = min((piece.start for piece in found.lost if piece.request == 0), default=None)
    assert (found.starts[0] if first_try is None else first_try) == start
    assert instance.requests[0].peak == instance.memory == 100


def test_the_square_root_game_is_that_of_the_proof() -> None:
    for memory in (16, 64, 100, 1024):
        long, *short = play("thm-4.1", "mc-sf", memory=memory)
        assert (long.arrival, long.prompt, long.output) == (0, 1, memory - 1)
        assert len(short) == memory // 2
        assert {(r.arrival, r.prompt, r.output) for r in short} == {
            (memory - isqrt(memory) // 2, 1, 1)
        }


def test_no_short_request_fits_beside_the_end_of_the_long_one() -> None:
    instance = play("v1-thm-6.2", "mc-sf", memory=200, parameters={"epsilon": 0.2})
    long, *short = instance
    assert (long.prompt, long.output, len(short)) == (40, 160, 40)
    (shape,) = {(r.arrival, r.prompt, r.output) for r in short}
    assert shape == (120, 40, 1)
    found = run(instance, "mc-sf")
    assert all(start is not None and start >= long.output for start in found.starts[1:])


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("memory", [20, 64, 333, 1000])
def test_references_are_feasible_and_good(game: str, memory: int) -> None:
    instance = play(game, "mc-sf", memory=memory)
    check = reference(instance).check()
    assert check.feasible, check.violations
    value = run(instance, "mc-sf").objective
    assert value is not None
    assert check.objective <= value
    if game == "thm-4.1":
        assert check.objective <= 3.5 * memory, "equation 13 of the proof"


def test_a_policy_that_never_starts_has_no_game() -> None:
    with pytest.raises(InvalidInput, match="never starts the first request"):
        play("thm-4.1", "mc-sf:alpha=0.5", memory=64)


@pytest.mark.parametrize(
    ("game", "policies", "asked", "said"),
    [
        ("chess", ["mc-sf"], {}, "game: must be one of"),
        ("thm-4.1", ["nobody"], {}, "policy"),
        ("thm-4.1", ["alpha-beta:alpha=0.1,beta=0.5"], {}, "draws while it runs"),
        ("thm-4.1", ["sorted-lp:hindsight=1"], {}, "knows arrivals in advance"),
        ("thm-4.1", ["mc-sf"], {"n": 5}, "n: follows from the memory"),
        ("thm-4.1", ["mc-sf"], {"memory": 3}, "memory: must be at least 4"),
        ("thm-4.1", ["mc-sf"], {"epsilon": 0.1}, "is not a key of thm-4.1, which has no keys"),
        ("v1-thm-6.2", ["mc-sf"], {"epsilon": 0.7}, "epsilon"),
    ],
)
def test_what_is_refused(
    game: str, policies: list[str], asked: dict[str, float], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        check_game(game, policies, asked)


def test_a_share_that_rounds_to_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="epsilon M is 0"):
        play("v1-thm-6.2", "mc-sf", memory=10, parameters={"epsilon": 0.01})
