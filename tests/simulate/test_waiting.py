"""A line that stays sorted while items join and leave."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kvopt.simulate.policies.waiting import SortedLine

STEPS = st.lists(st.tuples(st.integers(0, 60), st.lists(st.integers(0, 9), max_size=50)))
"""How many leave, then which join."""


@given(STEPS)
def test_it_is_what_sorting_anew_gives(steps: list[tuple[int, list[int]]]) -> None:
    line: SortedLine[int] = SortedLine()
    expected: list[int] = []
    for leaving, joining in steps:
        for item in expected[::3][:leaving]:
            line.remove(item)
            expected.remove(item)
        for item in joining:
            line.add(item)
        expected += joining
        assert len(line) == len(expected)
        assert line.items() == sorted(expected)
