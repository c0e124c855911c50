"""Pictures of reports: quantiles, bars, ticks and memory are what the numbers give."""

from __future__ import annotations

import re
from fractions import Fraction
from html.parser import HTMLParser
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import instances

from kvopt import Instance, Request, run
from kvopt.experiments.studies.intervals import Interval
from kvopt.reports.charts.axes import Axis
from kvopt.reports.charts.bands import counts_of, most_of, thinned
from kvopt.reports.charts.histograms import histogram
from kvopt.reports.charts.legend import apart, letter
from kvopt.reports.charts.schedules import MOST_ROWS, draw
from kvopt.reports.html import Markup, tag
from kvopt.reports.summaries import quantile_of


@st.composite
def enclosed(draw: st.DrawFn) -> tuple[list[Interval], list[Fraction]]:
    """Draw numbers and intervals that hold them, some of them open."""
    numbers = draw(st.lists(st.fractions(1, 9, max_denominator=50), min_size=1, max_size=30))
    slack = st.none() | st.fractions(0, 3, max_denominator=20)
    found = []
    for number in numbers:
        below, above = draw(slack), draw(slack)
        least = None if below is None else number - below
        found.append(Interval(least, None if above is None else number + above))
    return found, numbers


@given(enclosed(), st.fractions(0, 1, max_denominator=100))
def test_quantiles_of_ends_enclose_the_quantile(
    drawn: tuple[list[Interval], list[Fraction]], share: Fraction
) -> None:
    found, numbers = drawn
    wanted = next(
        x for x in sorted(numbers) if sum(y <= x for y in numbers) >= share * len(numbers)
    )
    quantile = quantile_of(found, share)
    assert quantile.least is None or quantile.least <= wanted
    assert quantile.most is None or quantile.most >= wanted
    exact = quantile_of([Interval(x, x) for x in numbers], share)
    assert exact == Interval(wanted, wanted)


# ---- pictures ----------------------------------------------------------------------


@given(st.lists(st.fractions(1, 40, max_denominator=60), min_size=1, max_size=40), st.booleans())
def test_bars_of_a_histogram_count_every_ratio(lows: list[Fraction], exact: bool) -> None:
    ratios = [Interval(low, low if exact else low + Fraction(1, 7)) for low in lows]
    drawn = histogram("x", ratios, Interval(lows[0], lows[0]))
    between = abs(_grid_line(drawn, 0) - _grid_line(drawn, 1))
    unit = between / abs(_tick(drawn, 0) - _tick(drawn, 1))
    for kind in ("least",) if exact else ("least", "most"):
        path = re.search(rf'<path d="([^"]*)" class="bar {kind}"/>', drawn)
        assert path is not None
        bars = re.findall(r"M([\d.]+) ([\d.]+)V([\d.]+)H([\d.]+)V", path[1])
        heights = [abs(float(base) - float(top)) / unit for _, base, top, _ in bars]
        assert sum(heights) == pytest.approx(len(lows), abs=0.05 * len(bars) / unit + 0.3)
        assert all(34 <= float(left) < float(right) <= 350.1 for left, _, _, right in bars)


def _grid_line(drawn: str, which: int) -> float:
    return float(re.findall(r'y1="([\d.]+)"[^>]*class="grid"', drawn)[which])


def _tick(drawn: str, which: int) -> float:
    return float(re.findall(r'text-anchor="end">([\d,]+)<', drawn)[which].replace(",", ""))


@given(instances(most_requests=6))
def test_memory_of_a_run_is_drawn_up_to_its_peak(instance: Instance) -> None:
    found = run(instance, "alpha-beta:alpha=0,beta=0.5,seed=1")
    if found.schedule is None or not found.peak_memory:
        return
    drawn = draw(found, 0, found.makespan)
    (top,) = map(float, re.findall(r'y1="([\d.]+)"[^>]*class="capacity"', drawn))
    (base,) = map(float, re.findall(r'y1="([\d.]+)"[^>]*class="axis"', drawn))
    paths = re.findall(
        r'<path d="M[\d.]+ ([\d.]+)L([^V]*)V[\d.]+z" class="(?:lost|grown)"/>', drawn
    )
    areas = [corners for begin, corners in paths if float(begin) == base]
    places = [float(y) for corners in areas for y in re.findall(r" ([\d.]+)", corners)]
    unit = (base - top) / instance.memory
    assert (base - min(places)) / unit == pytest.approx(found.peak_memory, abs=0.11 / unit)


@given(instances(), st.sampled_from(["fcfs", "alpha-beta:alpha=0.1,beta=0.5,rounds=200"]))
def test_bands_count_requests_that_run_and_that_wait(instance: Instance, policy: str) -> None:
    found = run(instance, policy)
    counts = {time: both for time, *both in counts_of(found)}
    assert list(counts) == sorted(counts)
    busy, waits = 0, 0
    for time in range(found.makespan + 1):
        busy, waits = counts.get(time, (busy, waits))
        active = sum(begin <= time < end for _, begin, end in found.pieces())
        here = [
            request.arrival <= time and (start is None or time < start + request.output)
            for request, start in zip(instance, found.starts, strict=True)
        ]
        assert (busy, busy + waits) == (active, sum(here))


def test_many_requests_are_bands_with_few_corners() -> None:
    crowd = Instance(50, [Request(k // 2, 1, 1 + k % 9) for k in range(MOST_ROWS * 10)])
    found = run(crowd, "fcfs")
    counts = counts_of(found)
    assert len(counts) <= 386 < found.makespan
    assert most_of(counts) == most_of(list(thinned(counts)))
    picture = draw(found, 0, found.makespan)
    assert 'class="waiting"' in picture
    assert 'class="running"' in picture
    assert 'class="wait many"' not in picture
    few = Instance(50, crowd.requests[:MOST_ROWS])
    assert 'class="waiting"' not in draw(run(few, "fcfs"), 0, 99)


@given(st.lists(st.floats(24, 220), min_size=1, max_size=19))
def test_letters_stay_apart_in_order_and_inside(places: list[float]) -> None:
    moved = apart(places, 24, 220)
    order = sorted(range(len(places)), key=lambda i: places[i])
    heights = [moved[i] for i in order]
    assert all(low + 10.88 <= high for low, high in pairwise(heights))
    assert 24 - 1e-9 <= heights[0] <= heights[-1] <= 220 + 1e-9
    if all(abs(a - b) >= 11 for a, b in combinations(places, 2)):
        assert moved == places


def test_letters_never_run_out() -> None:
    found = [letter(i) for i in range(800)]
    assert found[:2] + found[25:28] + found[701:703] == ["A", "B", "Z", "AA", "AB", "ZZ", "AAA"]
    assert len(set(found)) == 800


@given(st.floats(1, 50), st.floats(1.001, 500), st.booleans(), st.integers(2, 9))
def test_ticks_are_few_distinct_and_inside(
    low: float, factor: float, logarithmic: bool, most: int
) -> None:
    axis = Axis("x", low, low * factor, logarithmic).on(0, 100)
    ticks = axis.ticks(most)
    assert len(ticks) <= most + 1
    assert len({shown for _, shown in ticks}) == len(ticks)
    assert all(-1e-6 <= axis.at(tick) <= 100 + 1e-6 for tick, _ in ticks)


@given(st.text(), st.text())
def test_markup_escapes_all_text(inside: str, value: str) -> None:
    made = tag("p", inside, id=value)

    class Reader(HTMLParser):
        found: tuple[str, str | None] = ("", None)

        def handle_starttag(self, name: str, pairs: list[tuple[str, str | None]]) -> None:
            assert name == "p"
            self.found = ("", dict(pairs)["id"])

        def handle_data(self, text: str) -> None:
            self.found = (self.found[0] + text, self.found[1])

    reader = Reader()
    reader.feed(made)
    reader.close()
    assert isinstance(made, Markup)
    if inside.isprintable() and value.isprintable():
        assert reader.found == (inside, value)
