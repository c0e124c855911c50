"""The scripts of the papers from end to end: each row of the theory, a study, and the games."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import games
import pytest
import studies
import theory
from simulations import counted
from verdicts import PRINTED

from kvopt import run, verify
from kvopt.studies import Record, StudiedInstance, builtin_names

QUICK = {
    "lemma-1": ["not reproduced as printed"],
    "theorem-4.1": ["reproduced"],
    "lemmas-4.4-4.7": ["reproduced"],
    "theorem-4.2": ["refuted"],
    "theorem-5.3": ["refuted"],
    "theorem-6.2": ["reproduced"],
    "svf": ["measured", "measured"],
    "theorem-2.1": ["reproduced"],
    "theorem-8.2": ["not reproduced as printed", "reproduced"],
    "lemma-3.3": ["reproduced"],
    "dynamic-program": ["refuted"],
    "sorted-f": ["measured"],
}
"""Verdicts of topics, as in ``benchmarks/findings/theory.md``."""

pytestmark = pytest.mark.slow


def topics_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    theory.main([*arguments, "--json", "--draws", "1"])
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["topics"]
    return found


@pytest.mark.parametrize("topic", QUICK)
def test_a_row_of_the_theory(topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = topics_of(capsys, topic)
    assert [verdict["verdict"] for verdict in found["verdicts"]] == QUICK[topic]
    assert all(len(curve["x"]) == len(curve["y"]) for curve in found["curves"])


@pytest.mark.thorough
@pytest.mark.parametrize("topic", sorted(theory.TOPICS.keys() - QUICK.keys()))
def test_a_long_row_of_the_theory(topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(topics_of(capsys, topic)[0]["verdicts"]) == len(theory.CLAIMED[topic]["claims"])


def test_a_topic_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    theory.main(["theorem-6.2", "--draws", "1", "-o", str(tmp_path / "t.svg")])
    assert (tmp_path / "t.svg").read_text().startswith("<?xml")
    assert "jaillet-2025-v1 theorem 6.2" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        theory.main(["theorem-99"])
    assert "there is no topic theorem-99" in capsys.readouterr().err


def test_attempts_of_a_min_are_counted() -> None:
    tries = counted(40, 60, 5, 1, draws=2)
    assert sum(tries.completed.values()) == 2 * 40
    assert all(0 < tries.completed[key] <= tries.begun[key] for key in tries.completed)


def test_games_are_played_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert games.main([str(tmp_path), "--small", "--time-limit", "5"]) == 0
    first = capsys.readouterr()
    assert "(jaillet-2025" in first.out
    kept = sorted(tmp_path.glob("games/*.cert.json"))
    assert len(kept) == 2 * len(games.POLICIES)
    assert verify(kept[0]).valid
    assert games.main([str(tmp_path), "--small", "--time-limit", "5"]) == 0
    assert capsys.readouterr() == (first.out, ""), "nothing is played twice"


@pytest.mark.parametrize("game", games.SIZES)
def test_what_comes_later_does_not_change_the_first_move(game: str) -> None:
    for policy in games.POLICIES:
        instance = games.play(game, policy, 100)
        assert isinstance(instance.notes, dict)
        found = run(instance, policy)
        tries = [piece.start for piece in found.lost if piece.request == 0]
        assert min([*tries, found.starts[0]]) == instance.notes["start"]
        assert games.reference(instance).check().feasible


def test_a_study_is_run_and_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert studies.main(["equal-prompts", str(tmp_path), "--draws", "1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("refuted: ")
    assert studies.main(["equal-prompts", str(tmp_path), "--judge"]) == 0
    assert capsys.readouterr().out == out


def made(number: int, policy: str, value: int, ends: tuple[int, int], **fields: Any) -> Record:
    """Return the record of a run on an instance of 100 requests."""
    known = {"family": "arrival-1", "parameters": {}, **fields}
    instance = StudiedInstance(
        f"{number}", known["family"], known["parameters"], number, 100, 6, f"{known}{number}"
    )
    upper, lower = ends
    return Record(
        key=f"{number}", study="x", instance=instance, policy=policy, outcome="completed",
        value=value, upper=upper, lower=lower, certificate=f"certificates/{number}.json",
    )  # fmt: skip


def test_every_study_with_claims_is_built_in_and_judges_nothing_from_nothing() -> None:
    assert studies.CLAIMS.keys() <= {*builtin_names()}
    assert all(list(judge([])) == [] for judge in studies.CLAIMS.values())
    assert Fraction(PRINTED["arrival-1"]["mean"]) < Fraction(PRINTED["arrival-1"]["worst"])


def test_a_regret_that_grows_with_the_horizon_refutes() -> None:
    rows = [(100, 500, 400, 300), (400, 900, 500, 300), (1600, 2000, 400, 1)]
    records = [
        made(seed, "mc-sf", value, (upper, lower), family="steady", parameters={"rounds": horizon})
        for horizon, value, upper, lower in rows
        for seed in range(3)
    ]
    (verdict,) = studies.CLAIMS["regret"](records)
    assert (verdict.verdict, "[1.00, 2.00] at T = 100" in verdict.found) == ("refuted", True)
    (fewer,) = studies.CLAIMS["regret"]([r for r in records if r.instance.seed == 0])
    assert fewer.verdict == "undecided"


@pytest.mark.parametrize(
    ("value", "verdicts"), [(1000, ["undecided"] * 2), (1300, ["not reproduced as printed"] * 2)]
)
def test_printed_ratios_are_compared_with_intervals(value: int, verdicts: list[str]) -> None:
    runs = [made(k, "mc-sf", value, (1000, 1000)) for k in range(40)]
    found = [verdict.verdict for verdict in studies.CLAIMS["arrival-1"](runs)]
    assert found[:2] == verdicts


def test_a_table_that_no_schedule_comes_near_is_not_reproduced() -> None:
    policies = ("sorted-lp", "sorted-f:phase1=swap", "lp-swap")
    (family, printed), *_ = PRINTED["wang-table-4"].items()
    far = round(3 * max(printed))
    runs = [
        made(k, policy, far, (far, far - 1), family=family) for k in range(5) for policy in policies
    ]
    first, order = studies.CLAIMS["wang-table-4"](runs)
    assert (first.verdict, order.verdict) == ("not reproduced as printed", "undecided")
