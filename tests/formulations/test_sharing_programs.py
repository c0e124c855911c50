"""Programs with shared prefixes: every solver finds the optimum of brute force."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import pytest
from strategies import drawn_with_prefixes

from kvopt import Instance, Request, Schedule
from kvopt.formulations.time_indexed import time_indexed_arrays
from kvopt.formulations.windows import windows_until


def instance_of(seed: int) -> Instance:
    """Return a drawn instance; every fifth one has two workers."""
    found = drawn_with_prefixes(seed, 4)
    return replace(found, workers=2) if seed % 5 == 0 else found


@pytest.mark.parametrize("seed", range(1000, 1020))
def test_feasible_schedules_are_the_solutions(seed: int) -> None:
    """The columns of a schedule fulfil all rows exactly if brute force finds it feasible."""
    instance = instance_of(seed)
    latest = [instance.last_arrival + instance.total_output] * len(instance)
    model = time_indexed_arrays(instance, windows_until(instance, latest), order_identical=False)
    one_by_one = list(accumulate((r.output for r in instance), initial=instance.last_arrival))
    for late in range(4):
        starts = [r.arrival + late * (i % 2) for i, r in enumerate(instance)]
        starts = starts if late else one_by_one[:-1]
        schedule = Schedule(instance, starts, [0] * len(instance))
        columns = model.columns_of(schedule)
        if columns is None or not schedule.check().feasible:
            assert late
            continue
        values = [float(c in set(columns)) for c in range(model.num_columns)]
        body = model.matrix @ values
        assert (body >= model.row_lower).all()
        assert (body <= model.row_upper).all()
        assert model.cost @ values == schedule.objective


def test_nodes_have_columns_and_rows_of_their_own() -> None:
    """Four tokens that two share: a column for each time, and a row for each user and time."""
    shared = Instance(6, [Request(0, 4, 1, prefix=["a"])] * 2, block_tokens=4)
    columns, rows = time_indexed_arrays(shared).names()
    assert columns == ["x_r0_0", "x_r0_1", "x_r1_0", "x_r1_1", "held_0_1", "held_0_2"]
    assert rows[-4:] == ["used_0_0_1", "used_0_0_2", "used_0_1_1", "used_0_1_2"]
    plain = time_indexed_arrays(shared.without_prefixes()).names()
    assert plain == (columns[:4], rows[:-4])
