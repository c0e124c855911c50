"""Every combination of axes through every door: no bound passes the optimum, no schedule beats it.

Brute force knows the optimum, and how many requests can attain a deadline; every certificate is
verified.  See `combinations` for the axes and the doors.
"""

from __future__ import annotations

import pytest
from combinations import DOORS, SETS, case, wrong
from effort import many

pytestmark = pytest.mark.usefixtures("processor_clock")
PARTS = 13
"""Tests over which the combinations are spread."""


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_door_answers_every_combination(part: int) -> None:
    faults, optima, asked = [], 0, 0
    for axes in SETS[part::PARTS]:
        for seed in range(many(2)):
            drawn = case(axes, seed)
            for door, ask in DOORS.items():
                answer = ask(drawn.problem)
                optima += door == "solve" and answer.upper == drawn.least
                faults += [(axes, seed, door, fault) for fault in wrong(drawn, door, answer)]
            asked += 1
    assert not faults
    assert optima > 0.6 * asked, "schedules are seldom optimal"
