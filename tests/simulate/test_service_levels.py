"""The scheduler for service levels."""

from __future__ import annotations

import random

from effort import many

from kvopt import BatchTime, Instance, Line, Request, Seconds, generate, run
from kvopt.incumbent.in_time import attained_in
from kvopt.problem.slo import Slo

CLOCK = Seconds(BatchTime([Line(10_000_000, 1_000_000)]))
"""A round lasts 10 ms, and 1 ms for each token."""


def test_the_first_due_goes_first_and_who_is_late_last() -> None:
    requests = [Request(0, 0, 1, e2e=9), Request(0, 0, 1, e2e=2), Request(0, 0, 2, e2e=1)]
    assert run(Instance(2, requests), "slo", slo="own").starts == (0, 0, 1)
    assert run(Instance(1, requests[:2]), "slo", slo="own").starts == (1, 0)


def test_a_batch_stays_small_enough_for_the_pace() -> None:
    """With pace 12 ms two are active at most, with a long prompt none beside them."""
    short = [Request(0, 0, 9, arrival_seconds=0.0)] * 4
    found = run(Instance(999, short), "slo", clock=CLOCK, slo="tpot=12ms")
    assert sorted(found.starts) == [0, 0, 9, 9]
    assert attained_in(found, Slo.parse("tpot=12ms")) == 4
    assert attained_in(run(Instance(999, short), "fcfs", clock=CLOCK), Slo(tpot="12ms")) == 0
    late = [*short[:2], Request(0, 100, 2, arrival_seconds=0.02)]
    found = run(Instance(999, late), "slo", clock=CLOCK, slo="tpot=12ms,ttft=500ms")
    assert found.starts == (0, 0, 9)


def test_without_a_service_level_requests_start_by_arrival() -> None:
    drawn = generate("conversation", 40, 500, seed=2, parameters={"per_second": 40})
    found = run(drawn, "slo")
    assert found.objective is not None
    assert not found.violations()


def test_slo_completes_everything_on_machines_and_clocks() -> None:
    source = random.Random(5)
    for _ in range(many(20)):
        drawn = generate("arrival-2", 12, seed=source.randint(0, 99))
        for clock, slo in ((None, "ttft=4,e2e=20"), (CLOCK, "ttft=90ms,tpot=20ms")):
            fleet = drawn.replace(workers=source.randint(1, 3), round_ms=15.0)
            found = run(fleet, "slo", clock=clock, slo=slo)
            assert found.is_complete
            assert not found.violations()
