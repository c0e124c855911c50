"""Numbers of machines with shared prefixes: bounds of fleets against brute force."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvopt import BatchTime, Instance, Line, Request, Scope, run, verify
from kvopt.fleets import fleet_sizes
from kvopt.problem.clocks import ROUNDS, Clock, Seconds

pytestmark = pytest.mark.usefixtures("processor_clock")

CLOCK = Seconds(BatchTime([Line(10_000_000, 1_000_000)], prompt_ns=5_000_000))


@pytest.mark.parametrize("clock", [ROUNDS, CLOCK], ids=["rounds", "seconds"])
def test_sharing_lets_fewer_machines_suffice(clock: Clock, tmp_path: Path) -> None:
    """Four requests of one long prefix: one cache holds all, or one after the other."""
    requests = [Request(0, 21, 3, prefix=("a", "b")) for _ in range(4)]
    instance = Instance(40, requests, block_tokens=10)
    target = "mean=3" if clock.is_even else "mean=350ms"
    common = {"policies": ["fcfs"], "routers": ["longest-prefix"], "clock": clock, "time_limit": 1}
    found = fleet_sizes(instance, target, out=tmp_path, **common)  # type: ignore[arg-type]
    assert found.scope is Scope.SHARING
    assert found.machines == (1, 1)
    for path in tmp_path.glob("*.cert.json"):
        assert verify(path).valid
    apart = fleet_sizes(instance, target, scope="runs", **common)  # type: ignore[arg-type]
    assert apart.scope is Scope.RUNS
    assert (apart.machines[0] or 0) > 1


def test_longest_prefix_saves_work_in_seconds() -> None:
    """Two prompts, four times each: each is computed on one worker, in turns on both."""
    requests = [
        Request(0, 31, 2, prefix=(name,), arrival_seconds=t) for t, name in enumerate("aabbabab")
    ]
    fleet = Instance(200, requests, block_tokens=30, workers=2)
    for router, blocks in (("longest-prefix", 2), ("round-robin", 4)):
        made = run(fleet, "fcfs", router=router, clock=CLOCK)
        assert made.is_complete
        assert sum(stretch.prompts for stretch in made.stretches) == blocks * 30 + 8
