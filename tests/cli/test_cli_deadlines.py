"""``certify --deadline``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Run

from kvopt import Instance, Request, write_instance


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file of three requests: in three rounds two can be done, one never."""
    path = tmp_path / "three.json"
    write_instance(Instance(6, [Request(0, 1, 2), Request(0, 1, 3), Request(0, 1, 4)]), path)
    return path


def test_the_ceiling_is_printed_and_verified(run: Run, file: Path) -> None:
    cert = file.with_name("c.json")
    code, out, _ = run("certify", file, "-P", "svf", "--deadline", "3", "-t", "20", "-o", cert)
    assert code == 0
    assert "within 3 rounds: completions of at most 2 of 3 requests, best known 2; 1 cannot" in out
    assert out.splitlines()[1].split()[:3] == ["policy", "in", "time"]
    code, out, _ = run("verify", cert)
    assert code == 0
    assert "at most 2 of 3 requests can complete within 3 rounds of their arrival" in out


def test_json(run: Run, file: Path) -> None:
    options = ("--deadline", "first-token:1", "-t", "20", "--json", "-o", file.with_name("c.json"))
    code, out, _ = run("certify", file, "-P", "svf", *options)
    said = json.loads(out)
    assert (code, said["ceiling"], said["policies"][0]["attained"]) == (0, 2, 2)
