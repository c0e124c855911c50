"""Weights and a limit of active requests: schedules, programs and files."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from certificates import verified

from kvopt import Instance, InvalidInput, Request, certify, read_instance, write_instance

pytestmark = pytest.mark.usefixtures("processor_clock")

AXES = ("weight", "max_active")


def drawn(seed: int, axes: tuple[str, ...], count: int = 4) -> Instance:
    """Return a small instance with some of the axes."""
    rng = random.Random(seed)
    memory = rng.randint(4, 8)
    requests = []
    for _ in range(rng.randint(2, count)):
        prompt = rng.randint(0, 3)
        request = Request(rng.randint(0, 3), prompt, rng.randint(1, min(3, memory - prompt)))
        if "weight" in axes:
            request = replace(request, weight=rng.randint(1, 4))
        requests.append(request)
    most = rng.randint(1, 2) if "max_active" in axes else None
    return Instance(memory, requests, max_active=most)


COMBINATIONS = [
    tuple(axis for axis, is_in in zip(AXES, chosen, strict=True) if is_in)
    for chosen in product((False, True), repeat=len(AXES))
    if any(chosen)
]


def test_files_keep_everything(tmp_path: Path) -> None:
    for axes in COMBINATIONS:
        instance = drawn(3, axes)
        write_instance(instance, tmp_path / "i.json")
        again = read_instance(tmp_path / "i.json")
        assert again == instance
        assert again.hash == instance.hash
        plain = tuple(replace(r, weight=1, prefix=()) for r in instance)
        narrowed = replace(instance, requests=plain, max_active=None)
        assert instance.hash != narrowed.hash or not instance.extras
        frame = instance.to_dataframe()
        back = Instance.from_dataframe(frame, instance.memory)
        assert back.replace(max_active=instance.max_active) == instance
    with pytest.raises(InvalidInput, match="CSV has no place for it"):
        write_instance(drawn(3, ("weight",)), tmp_path / "i.csv")


@pytest.mark.slow
def test_a_search_that_begins_late_is_verified() -> None:
    # Labels are counted from the first arrival on: idle rounds before it are not cut off here.
    rows = (
        (15, 5, 22),
        (17, 2, 35),
        (23, 4, 11),
        (27, 5, 42),
        (29, 5, 38),
        (33, 2, 33),
        (44, 5, 29),
    )
    found = certify(Instance(52, [Request(*row) for row in rows], max_active=3), time_limit=60)
    assert found.lower is not None
    assert found.lower.bounded_by == "exact"
    verified(found)
