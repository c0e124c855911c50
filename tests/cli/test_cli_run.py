"""``kvopt run``, ``kvopt policies`` and pictures of what schedulers do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import EC1, Run
from interpreters import python
from theirs import installed, policy_file

from kvopt.simulate.policies.by_name import policies


def test_run_prints_a_row_for_each_policy(run: Run, ec1: Path) -> None:
    code, out, err = run("run", ec1, "-P", "mc-sf", "-P", "alpha-protect:alpha=0.1")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].split()[:2] == ["policy", "latency"]
    assert [line.split()[0] for line in out.splitlines()[1:]] == [
        "mc-sf",
        "alpha-protect:alpha=0.1",
    ]


def test_run_json_holds_the_contract(run: Run, ec1: Path) -> None:
    code, out, err = run("run", ec1, "--policy", "mc-sf:alpha=0", "--json")
    assert (code, err) == (0, "")
    (row,) = json.loads(out)["policies"]
    assert row["policy"] == "mc-sf:alpha=0"
    assert row["objective"] == 12
    assert row["starts"] == [0, 0, 0, 2]
    assert row["outcome"] == "completed"
    assert (row["evictions"], row["makespan"], row["peak_memory"]) == (0, 6, 6)


def test_a_livelock_has_no_objective_and_exit_0(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "pair.json"
    file.write_text(
        json.dumps({**EC1, "memory": 6, "requests": [{"arrival": 0, "prompt": 0, "output": 5}] * 2})
    )
    (row,) = run.json("run", file, "-P", "alpha-protect:alpha=0")["policies"]
    assert (row["objective"], row["starts"], row["outcome"]) == (None, [None, None], "livelock")


def test_run_writes_the_schedule(run: Run, ec1: Path, tmp_path: Path) -> None:
    schedule = tmp_path / "s.json"
    assert run("run", ec1, "-P", "fcfs", "-o", schedule)[0] == 0
    assert run("check", ec1, schedule)[0] == 0
    picture = tmp_path / "s.svg"
    assert run("plot", ec1, "--policy", "fcfs", "-o", picture)[0] == 0
    assert "fcfs" in picture.read_text()


@pytest.mark.slow
def test_policies_lists_every_name(run: Run) -> None:
    rows = run.json("policies")["policies"]
    assert [row["policy"] for row in rows] == list(policies())
    assert all(row["source"] and row["summary"] for row in rows)
    shown = run("policies")[1]
    assert all(name in shown for name in policies())


@pytest.mark.slow
def test_ctrl_c_keeps_the_runs_that_are_done(tmp_path: Path, run: Run) -> None:
    file, begun = tmp_path / "big.json", tmp_path / "begun"
    assert run("generate", "conversation", "--n", 1000, "-m", 16492, "-o", file)[0] == 0
    body = (
        f"import pathlib, time; pathlib.Path({str(begun)!r}).touch(); time.sleep(0.01); return i,"
    )
    theirs = policy_file(tmp_path, "slow", body)
    command = [sys.executable, "-c", "from kvopt.cli import main; main()", "run", str(file)]
    slow = ["--json", "--module", str(theirs), "-P", "mc-sf", "-P", "slow"]
    child = subprocess.Popen(
        [*command, *slow], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": "."}
    )
    while not begun.exists():
        assert child.poll() is None
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=120)
    assert child.returncode == 130
    assert json.loads(out)["policies"][0]["policy"] == "mc-sf"


@pytest.mark.slow
def test_an_installed_package_brings_its_own_policies(ec1: Path, tmp_path: Path) -> None:
    """As `docs/policies.md` says: an entry point, and every command knows the name."""
    environment = installed(tmp_path, "longest-first", "return (-view.beliefs.output[i],)")
    command = ("-m", "kvopt", "run", ec1, "-P", "longest-first", "--json")
    done = python(*command, env=environment, check=True)
    (row,) = json.loads(done.stdout)["policies"]
    assert (row["policy"], row["objective"]) == ("longest-first", 21)


def test_run_on_a_fleet_names_workers(run: Run, ec1: Path, tmp_path: Path) -> None:
    fleet = ("--workers", "2", "--router", "round-robin")
    code, out, err = run("run", ec1, "-P", "fcfs", *fleet, "--json")
    (row,) = json.loads(out)["policies"]
    assert (code, err) == (0, "")
    assert (row["workers"], row["router"]) == ([0, 1, 0, 1], "round-robin")
    schedule = tmp_path / "s.json"
    code, _, err = run("run", ec1, "-P", "fcfs", *fleet, "-o", schedule)
    assert (code, json.loads(schedule.read_text())["workers"]) == (0, [0, 1, 0, 1])
    assert "router round-robin: a request is given to one of 2 workers when it arrives" in err
    assert run("check", ec1, schedule, "--workers", "2")[0] == 0
    assert run("check", ec1, schedule)[0] == 2  # it is for a fleet


def test_memory_over_time_of_a_fleet_is_by_worker(run: Run, ec1: Path, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    options = ("--workers", "2", "--seconds", "--timeline", table)
    assert run("run", ec1, "-P", "fcfs", *options)[0] == 0
    names = {line.rsplit(",", 2)[0] for line in table.read_text().splitlines()[1:]}
    assert names == {'"fcfs, worker 0"', '"fcfs, worker 1"'}


@pytest.mark.parametrize("command", [("run",), ("certify", "-t", "0.2", "-o", "c.json")])
def test_a_router_has_no_effect_on_a_single_machine(
    run: Run, ec1: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ec1.parent)
    err = run.done(command[0], ec1, "-P", "fcfs", "--router", "random", *command[1:])[1]
    assert "router random has no effect: there is one machine" in err


def test_routers_are_listed(run: Run) -> None:
    rows = {row["router"]: row for row in run.json("policies", "--routers")["routers"]}
    assert rows["central"]["given"] == "when it starts"
    assert rows["least-volume"]["given"] == "when it arrives"
    assert run("policies", "--routers")[1].splitlines()[0].startswith("router")


def test_a_policy_that_is_refused_leaves_the_runs_before_it(
    run: Run, large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kvopt.simulate.policies.phase1.MAX_WAITING", 20)
    names = ("-P", "mc-sf", "-P", "sorted-f:phase1=exact")
    code, out, err = run("run", large, *names, "--json")
    assert code == 2
    assert [made["policy"] for made in json.loads(out)["policies"]] == ["mc-sf"]
    assert "takes 20 waiting requests" in err
