"""``kvopt fleet``: the contract, the sentence, the files, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Run
from shapes import faults

QUICK = ("-t", "0.2")


def test_json_holds_the_contract(run: Run, ec1: Path) -> None:
    code, out, err = run("fleet", ec1, "--target", "mean=3", "--counts", "1..3", "--json", *QUICK)
    said = json.loads(out)
    assert (code, err) == (0, "")
    assert [row["workers"] for row in said["fleets"]] == [1, 2, 3]
    for row in said["fleets"]:
        assert {"workers", "lower", "upper"} <= row.keys()
        assert row["lower"] <= row["upper"]
    assert said["machines"] == [1, 1]  # its optimum is 12 for four requests
    assert (said["unit"], said["target"], said["requests"]) == ("rounds", 12, 4)


def test_the_answer_is_a_sentence(run: Run, ec1: Path) -> None:
    args = ("--match", "fcfs", "--router", "round-robin", "--workers", "2")
    code, out, err = run("fleet", ec1, *args, *QUICK)
    first, second, heads, *rows = out.splitlines()
    assert code == 0
    assert first.startswith("Any covered scheduler needs at least 2 machines for what round-robin")
    assert first.endswith(
        "As a scheduler, round-robin + fcfs needs 2 machines; round-robin + svf needs 2 machines."
    )
    assert second.startswith("target: ")
    assert heads.split()[:4] == ["machines", "mean", "at", "least"]
    assert "round-robin + fcfs" in heads
    assert "central + svf" in heads
    assert [row.split()[0] for row in rows] == ["1", "2"]
    assert "impossible" in rows[0]
    assert "reached" in rows[1]
    assert "covered:" in err


def test_routers_and_policies_are_those_that_were_named(run: Run, ec1: Path) -> None:
    named = ("--router", "random", "--router", "two-choices", "-P", "fcfs", "-P", "mc-sf")
    (row,) = run.json("fleet", ec1, "--target", "mean=3", "--counts", "2", *named, *QUICK)["fleets"]
    assert {*row["runs"]} == {
        f"{router} + {policy}"
        for router in ("random", "two-choices")
        for policy in ("fcfs", "mc-sf")
    }


def test_out_holds_certificates_picture_and_answer(run: Run, ec1: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "fleets"
    args = ("fleet", ec1, "--target", "mean=3", "--counts", "1,2", "--out", out, *QUICK)
    code, printed, _ = run(*args)
    assert code == 0
    assert {path.name for path in out.iterdir()} == {
        "1.cert.json", "2.cert.json", "fleet.json", "fleet.svg", "fleet.png",
    }  # fmt: skip
    for count in (1, 2):
        assert run("verify", out / f"{count}.cert.json")[0] == 0
    assert "mean latency, rounds" in (out / "fleet.svg").read_text()
    said = json.loads((out / "fleet.json").read_text())
    assert faults("fleet", said) == []
    assert said["answer"] == printed.splitlines()[0]
    assert run(*args)[:2] == (0, printed)


def test_targets_in_seconds_are_in_nanoseconds(run: Run, ec1: Path) -> None:
    args = ("--seconds", "--target", "mean=1s", "--counts", "1..2", "--json")
    code, out, err = run("fleet", ec1, *args, *QUICK)
    said = json.loads(out)
    assert faults("fleet", said) == []
    assert (code, said["unit"], said["target"]) == (0, "ns", 4 * 10**9)
    assert "assumed: --batch-time" in err


@pytest.mark.parametrize(
    ("options", "gpus"),
    [((), 2), (("--batch-time", "llama-3-70b@4xh100"), 4), (("--gpus", "8"), 8)],
)
def test_machines_are_counted_in_gpus_too(
    run: Run, ec1: Path, options: tuple[str, ...], gpus: int
) -> None:
    """The default model is of two GPUs."""
    args = ("--seconds", "--target", "mean=1s", "--counts", "1..2", *options)
    _, out, _ = run("fleet", ec1, *args, *QUICK)
    assert f"with 1 machine ({gpus} GPUs) a schedule is known that does" in out
    assert f"As a scheduler, least-volume + svf needs 1 machine ({gpus} GPUs)." in out
    assert json.loads(run("fleet", ec1, *args, "--json", *QUICK)[1])["gpus"] == gpus


def test_misses_of_a_service_level_are_shares(run: Run, ec1: Path, tmp_path: Path) -> None:
    out = tmp_path / "fleets"
    late = ("--attain", "100%", "--slo", "e2e=4", "--counts", "1..2", "--out", out)
    code, printed, _ = run("fleet", ec1, *late, *QUICK)
    first, second, heads, *rows = printed.splitlines()
    assert code == 0
    assert first.startswith("Any covered scheduler needs at least 2 machines for 100% with e2e=4")
    assert second == "target: at most 0 of 4 requests miss"
    assert heads.split()[:4] == ["machines", "misses", "at", "least"]
    assert [row.split()[:3] for row in rows] == [["1", "25.00%", "25.00%"], ["2", "0.00%", "0.00%"]]
    assert "misses, % of requests" in (out / "fleet.svg").read_text()
    verified = run("verify", out / "2.cert.json")[1]
    assert "at most 4 of 4 requests can attain e2e=4" in verified


def test_servers_are_sent_requests_on_arrival(run: Run, ec1: Path) -> None:
    server = "vllm-fcfs:block=1"
    _, row = run.json("fleet", ec1, "--match", server, "--workers", "2", *QUICK)["fleets"]
    assert {*row["runs"]} == {
        f"least-volume + {server}", "least-volume + svf", "central + svf",
    }  # fmt: skip


def test_servers_of_a_fleet_run_and_write_their_segments(run: Run, tmp_path: Path) -> None:
    instance = tmp_path / "two.json"
    rows = [{"arrival": 0, "prompt": s, "output": o} for s, o in ((2, 7), (2, 2), (4, 9), (0, 5))]
    said = {"schema": "kvopt.instance/1", "memory": 16, "requests": [*rows, *rows]}
    instance.write_text(json.dumps(said))
    args = ("--workers", "2", "--router", "least-requests", "-P", "vllm-fcfs:block=1")
    code, out, _ = run("run", instance, *args)
    assert code == 0
    assert "pauses with tokens kept" in out
    schedule = tmp_path / "schedule.json"
    (made,), said = (
        run.json("run", instance, *args, "-o", schedule)["policies"],
        json.loads(schedule.read_text()),
    )
    assert {name: said[name] for name in ("segments", "workers")} == {
        name: made[name] for name in ("segments", "workers")
    }
    code, out, _ = run("check", instance, schedule, "--workers", "2")
    assert code == 0
    assert f"total latency {made['objective']:,}" in out


def test_windows_are_printed_with_sums(run: Run, ec1: Path, tmp_path: Path) -> None:
    out = tmp_path / "day"
    aim = ("--attain", "75%", "--slo", "e2e=4")
    args = ("fleet", ec1, "--every", "20", *aim, "--out", out, *QUICK)
    code, printed, err = run(*args)
    answer, heads, row, sums, last = printed.splitlines()
    assert code == 0
    assert answer.startswith("Any covered scheduler needs at least 20 machine rounds for 75% with")
    assert heads.split()[:5] == ["from", "round", "arrivals", "formula", "proved"]
    assert row.split()[:2] == ["0", "4"]
    assert sums.split()[:2] == ["machine", "rounds"]
    assert last.split()[0] == "sum"
    assert "covered:" in err
    assert {path.name for path in out.iterdir()} >= {"every.json", "every.svg", "every.png"}
    said = json.loads((out / "every.json").read_text())
    assert said["answer"] == answer
    assert json.loads(run(*args, "--json")[1]) == said


def test_over_time_refuses_other_aims(run: Run, ec1: Path) -> None:
    aim = ("--attain", "75%", "--slo", "e2e=4")
    for more in (("--target", "mean=3"), ("--match", "fcfs"), ("--counts", "2", *aim), ()):
        code, _, err = run("fleet", ec1, "--every", "20", *more)
        assert code == 2
        assert "--every needs --attain 99% with --slo" in err
    code, _, err = run("fleet", ec1, "--start-up", "2", *aim)
    assert code == 2
    assert "goes with --every" in err
