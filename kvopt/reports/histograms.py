"""Histograms of ratios: lower ends upwards, upper ends downwards, in the same bins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

from kvopt.experiments.studies.intervals import Interval
from kvopt.reports.axes import Frame, Scale, label, labels, line, round_values, step_for
from kvopt.reports.html import Markup, number, tag
from kvopt.reports.quantiles import is_exact

_WIDTH, _LEFT, _RIGHT, _TOP, _HALF = 360.0, 34.0, 350.0, 24.0, 92.0
_MOST_BINS = 24


def histogram(name: str, ratios: Sequence[Interval], average: Interval) -> Markup:
    """Draw how often each ratio occurs.

    Where every optimum is known both ends are the same, and one histogram says it all.

    Parameters
    ----------
    name
        What a reader without the picture is told first.
    ratios
        The intervals; unknown upper ends are not drawn.
    average
        The mean, which is marked.
    """
    exact = all(map(is_exact, ratios))
    lows = [ratio.least for ratio in ratios if ratio.least is not None]
    highs = [] if exact else [ratio.most for ratio in ratios if ratio.most is not None]
    step, count = _bins([*lows, *highs])
    below, above = _counts(highs, step), _counts(lows, step)
    most = max([*below.values(), *above.values()], default=1)
    frame = _frame(float(1 + step * count), exact)
    unit = _HALF / _rounded_up(most)
    base = _TOP + _HALF
    parts = [
        *_grid(_rounded_up(most), unit, exact),
        tag("path", d=_bars(above, step, frame.x, base, -unit), class_="bar least"),
        tag("path", d=_bars(below, step, frame.x, base, unit), class_="bar most"),
        line(_LEFT, base, _RIGHT, base, "axis"),
        *_mark(average.least, frame.x, base - _HALF, base),
        *(() if exact else _mark(average.most, frame.x, base, base + _HALF)),
        frame.bottom(round_values(frame.x.low, frame.x.high, 6), "ratio to the optimum"),
        *_titles(exact),
    ]
    return frame.svg(f"{name}: {_said(ratios, average)}", *parts)


def _bins(ends: list[Fraction]) -> tuple[Fraction, int]:
    """Return a round width and how many bins from 1 on cover all ends."""
    span = max([*ends, Fraction(101, 100)]) - 1
    step = Fraction(step_for(float(span), _MOST_BINS)).limit_denominator(10**9)
    return step, max(4, int(span / step) + 1)


def _counts(ends: Iterable[Fraction], step: Fraction) -> Counter[int]:
    return Counter(max(0, int((end - 1) // step)) for end in ends)


def _frame(high: float, exact: bool) -> Frame:
    height = _TOP + _HALF * (1 if exact else 2)
    x = Scale(1, high, _LEFT, _RIGHT)
    return Frame(_WIDTH, height + 36, x, Scale(0, 1, height, _TOP))


def _rounded_up(most: int) -> int:
    step = max(1, int(step_for(most, 3)))
    return -(-most // step) * step


def _grid(most: int, unit: float, exact: bool) -> Iterable[Markup]:
    base = _TOP + _HALF
    ticks = [value for value in round_values(0, most, 3) if value == int(value)]
    for side in (-1,) if exact else (-1, 1):
        for value, shown in zip(ticks, labels(ticks), strict=True):
            y = base + side * value * unit
            yield line(_LEFT, y, _RIGHT, y, "grid")
            if side < 0 or value:
                yield label(_LEFT - 5, y + 3.5, shown, "end")


def _titles(exact: bool) -> Iterable[Markup]:
    yield label(2, _TOP - 10, "runs", "start", "title")
    above = "exactly" if exact else "at least (over the best schedule)"
    yield label(_RIGHT, _TOP - 10, above, "end", "title")
    if not exact:
        yield label(_RIGHT, _TOP + 2 * _HALF - 4, "at most (over the proved bound)", "end", "title")


def _bars(counts: Counter[int], step: Fraction, x: Scale, base: float, unit: float) -> str:
    parts = []
    for place in sorted(counts):
        left, right = (x.at(float(1 + step * (place + side))) for side in (0, 1))
        corners = number(left + 0.6), number(base + counts[place] * unit), number(right - 0.6)
        parts.append("M{0} {3}V{1}H{2}V{3}z".format(*corners, number(base)))
    return "".join(parts)


def _mark(value: Fraction | None, x: Scale, top: float, bottom: float) -> Iterable[Markup]:
    if value is not None:
        place = x.at(float(value))
        yield line(place, top, place, bottom, "mean")


def _said(ratios: Sequence[Interval], average: Interval) -> str:
    lows = [ratio.least for ratio in ratios if ratio.least is not None]
    highs = [ratio.most for ratio in ratios if ratio.most is not None]
    largest = Interval(max(lows, default=None), max(highs, default=None))
    unknown = len(ratios) - len(highs)
    rest = f", {unknown} without an upper end" if unknown else ""
    return f"histogram of {len(ratios)} ratios, mean {average}, largest {largest}{rest}"
