"""The dependency traps: refused releases, both orders of import, the thread pool of HiGHS."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from interpreters import python

from kvopt import Instance, Request, Status, UnsupportedDependency, solve
from kvopt.kernels.solver_versions import refuse_known_bad, versions

SOLVE_WITH = """
import kvopt
from kvopt import Instance, Request, solve
instance = Instance(9, [Request(0, 1, o) for o in (3, 4, 5, 7)])
for engine in {engines}:
    result = solve(instance, engine, quick_start=False)
    assert result.objective == result.lower_bound == 27, result
"""
REFUSED = """
for engine in ("highs", "cpsat", "pyomo"):
    try:
        solve(instance, engine, quick_start=False)
    except kvopt.UnsupportedDependency as refusal:
        assert "1.14.0" in str(refusal)
        print(engine, end=" ")
"""


def run_python(code: str, *paths: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh process, with some folders first on its path."""
    head = f"import sys; sys.path[:0] = {[str(path) for path in paths]}\n"
    return python("-c", head + code)


@pytest.mark.parametrize("version", ["1.14.0", "1.14.1", "1.15.0", "1.16", "2.0.0"])
def test_bad_releases_of_highspy_are_refused(version: str) -> None:
    with pytest.raises(UnsupportedDependency, match=version):
        refuse_known_bad(version)


@pytest.mark.parametrize("version", ["1.11.0", "1.13.1", None])
def test_good_releases_pass(version: str | None) -> None:
    refuse_known_bad(version)


@pytest.mark.slow
def test_an_installed_bad_release_stops_every_solver_and_no_other_engine(tmp_path: Path) -> None:
    """Its metadata are first on the path."""
    info = tmp_path / "highspy-1.14.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: highspy\nVersion: 1.14.0\n")
    code = SOLVE_WITH.format(engines=["exact", "auto"]) + REFUSED
    done = run_python(code, tmp_path)
    assert (done.returncode, done.stdout) == (0, "highs cpsat pyomo "), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("engines", [["highs", "cpsat"], ["cpsat", "highs"]])
def test_both_orders_of_import_solve(engines: list[str]) -> None:
    done = run_python(SOLVE_WITH.format(engines=engines))
    assert done.returncode == 0, done.stderr


def test_the_thread_pool_of_highs_may_change_size() -> None:
    instance = Instance(9, [Request(0, 1, o) for o in (3, 4, 5, 7)])
    for threads in (1, 2, 1, 4):
        result = solve(instance, "highs", threads=threads, quick_start=False)
        assert result.status is Status.OPTIMAL
        assert not result.faults


def test_versions_name_every_solver() -> None:
    assert {"kvopt", "python", "highspy", "ortools", "pyomo"} <= set(versions())
