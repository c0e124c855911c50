"""Certificates come back from files as they were, and only where every claim holds."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kvopt import (
    FalseClaim,
    InvalidInput,
    certify,
    generate,
    read_certificate,
    write_certificate,
)
from kvopt.incumbent.proofs import CheckedBound, ConfigurationProof, StatePrices

SMALL = generate("arrival-1", n=6, seed=3)


def test_how_large_a_search_is_comes_back(tmp_path: Path) -> None:
    """So a check is granted as much as before."""
    found = certify(SMALL)
    assert found.lower is not None
    stage = StatePrices(1, ((3, 1),), (1,), ((0,),))
    proof = ConfigurationProof((stage,), 1, searched=True, kept=(10**6,) * 99)
    bound = CheckedBound(1, "a search", proof)
    write_certificate(replace(found, lower=bound), tmp_path / "c.json")
    write_certificate(read_certificate(tmp_path / "c.json"), tmp_path / "d.json")
    assert '"budget": 20' in (tmp_path / "c.json").read_text()
    assert (tmp_path / "c.json").read_text() == (tmp_path / "d.json").read_text()


@pytest.fixture
def content(tmp_path: Path) -> dict[str, object]:
    write_certificate(certify(SMALL, ["fcfs"]), tmp_path / "good.json")
    found: dict[str, object] = json.loads((tmp_path / "good.json").read_text())
    return found


def refusal(tmp_path: Path, text: str) -> InvalidInput:
    file = tmp_path / "bad.json"
    file.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        read_certificate(file)
    assert caught.value.file == str(file)
    assert str(caught.value).count(str(file)) == 1
    return caught.value


def test_false_claims_are_refused(tmp_path: Path, content: dict[str, object]) -> None:
    policies = content["policies"]
    assert isinstance(policies, list)
    policies[0]["value"] += 1
    error = refusal(tmp_path, json.dumps(content))
    assert isinstance(error, FalseClaim)
    assert "fcfs" in str(error)


def test_other_files_are_refused_by_file_and_field(
    tmp_path: Path, content: dict[str, object]
) -> None:
    assert "is not JSON" in str(refusal(tmp_path, "{"))
    assert "must have the schema" in str(refusal(tmp_path, "{}"))
    other = json.dumps({"schema": "kvopt.instance/1"})
    assert "not 'kvopt.instance/1'" in str(refusal(tmp_path, other))
    content["upper"] = {"value": "3", "starts": []}
    error = refusal(tmp_path, json.dumps(content))
    assert "certificate, upper, value: must be int" in str(error)
    assert not isinstance(error, FalseClaim)
    with pytest.raises(InvalidInput, match=r"none\.json: cannot be read: No such file"):
        read_certificate(tmp_path / "none.json")
