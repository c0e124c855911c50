"""The memory budget is kept, and nothing that was found is lost when memory runs out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import Run
from interpreters import python
from known import known

from kvopt import InvalidInput, bound, generate, solve, write_instance
from kvopt.incumbent.incumbent import Search
from kvopt.kernels import memory as budget
from kvopt.kernels.memory import parsed_size, used
from kvopt.problem.instance import Instance
from kvopt.problem.requests import Request

MB = 2**20
LONG = Instance(60_000, [Request(i % 7, 40 + i, 4_000 + 7 * i) for i in range(60)])
"""Its LP has some forty million coefficients: six gigabytes."""

LIMITED = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[1]),) * 2)
from kvopt import read_instance
from kvopt.{home} import {name}
found = {name}(read_instance(sys.argv[2]), {arguments})
print(json.dumps(found.to_json()))
"""


@pytest.mark.parametrize(
    ("text", "size"),
    [("4G", 4 * 2**30), ("512M", 512 * MB), ("1.5GiB", 3 * 2**29), ("2kb", 2048), ("77", 77)],
)
def test_sizes_are_read_with_their_units(text: str, size: int) -> None:
    assert parsed_size(text) == size


@pytest.mark.parametrize("text", ["", "4x", "-1G", "0", "G", "1e9"])
def test_sizes_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^ram: must be a size"):
        parsed_size(text)


def test_containers_limit_the_default(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "memory.max").write_text("3000000000\n")
    (tmp_path / "a" / "b" / "memory.max").write_text("max\n")
    (tmp_path / "memory" / "c").mkdir(parents=True)
    (tmp_path / "memory" / "c" / "memory.limit_in_bytes").write_text("2000000000\n")
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    groups = "4:memory:/c\n9:name=systemd:/\n0::/a/b\n"
    assert list(budget.container_limits(groups, tmp_path)) == [2_000_000_000, 3_000_000_000]


def test_what_is_used_is_what_the_system_says() -> None:
    before = used()
    held = bytearray(64 * MB)
    assert used() - before > 60 * MB
    del held


@pytest.mark.parametrize("engine", ["highs", "pyomo"])
def test_an_engine_that_would_pass_the_budget_is_refused(engine: str) -> None:
    found = solve(LONG, engine, time_limit=20, ram=used() + 200 * MB)
    assert found.schedule is not None
    assert found.lower_bound is not None
    assert found.stop_reason == "no-engine"
    assert any("memory budget" in note for note in found.notes), found.notes


@pytest.mark.parametrize("method", ["lp", "lagrangian"])
def test_a_bound_that_would_pass_the_budget_is_refused(method: str) -> None:
    long = Instance(10**6, [Request(i, 0, 500_000 + i) for i in range(4)])
    found = bound(long, method, ram=used() + 50 * MB)
    assert found.value is None
    assert found.note is not None
    assert "memory budget" in found.note or "columns" in found.note


@pytest.mark.slow
@pytest.mark.usefixtures("processor_clock")
def test_others_go_on_where_one_is_refused() -> None:
    found = solve(LONG, time_limit=1, ram=used() + 400 * MB)
    quick = solve(LONG, time_limit=0)
    assert known(found.lower_bound) > known(quick.lower_bound)
    assert found.seconds > 0.7


@pytest.mark.slow
def test_an_engine_that_grows_is_stopped() -> None:
    instance = generate("arrival-1", n=28, seed=2)
    solve(instance, "exact", time_limit=1)  # what it loads stays
    found = solve(instance, "exact", time_limit=60, ram=used() + 20 * MB)
    assert found.schedule is not None
    assert found.lower_bound is not None
    assert any("passed the memory budget" in note for note in found.notes)


def in_child(size: int, instance: Instance, call: dict[str, str], folder: Path) -> dict[str, Any]:
    """Call a function in a process to which the system refuses more memory than that."""
    write_instance(instance, folder / "i.json")
    script = LIMITED.format(**call)
    ended = python("-c", script, size, folder / "i.json", timeout=120)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system does not refuse memory")
@pytest.mark.parametrize(
    ("call", "sides"),
    [
        ({"home": "search.solving", "name": "solve", "arguments": "time_limit=1"}, "objective"),
        (
            {"home": "certificates", "name": "certify", "arguments": "['svf'], time_limit=1"},
            "upper",
        ),
    ],
)
def test_nothing_is_lost_where_memory_runs_out(
    call: dict[str, str], sides: str, tmp_path: Path
) -> None:
    found = in_child(900 * MB, LONG, call, tmp_path)
    assert found[sides] is not None
    assert found["lower" if sides == "upper" else "lower_bound"] is not None


def test_a_block_that_runs_out_of_memory_says_so() -> None:
    search = Search(generate("arrival-1", n=4))
    search.engine = "some engine"
    with search.surviving():
        bytearray(2**62)
    assert search.notes == ["some engine: ended, as the machine ran out of memory"]


def test_the_command_line_takes_a_budget(run: Run, ec1: Path) -> None:
    out = run.done("solve", ec1, "--ram", "2G", "--json")[0]
    assert json.loads(out)["status"] == "optimal"


def test_the_environment_gives_a_budget() -> None:
    script = "from kvopt.kernels.memory import default_budget; print(default_budget())"
    command = [sys.executable, "-c", script]
    told = {**os.environ, "KVOPT_RAM": "300M"}
    assert subprocess.check_output(command, env=told, text=True).strip() == str(300 * MB)
