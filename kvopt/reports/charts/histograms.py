"""Histograms of ratios: lower ends upwards, upper ends downwards, in the same bins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

from kvopt.experiments.studies.intervals import Interval
from kvopt.reports.charts.axes import Axis, Frame, label, labels, line, multiples, path, step_for
from kvopt.reports.html import Markup, number

_WIDTH, _LEFT, _RIGHT, _TOP, _HALF = 360.0, 34.0, 350.0, 24.0, 92.0
_BASE = _TOP + _HALF
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
    exact = all(ratio.least is not None and ratio.least == ratio.most for ratio in ratios)
    lows = [ratio.least for ratio in ratios if ratio.least is not None]
    highs = [ratio.most for ratio in ratios if ratio.most is not None]
    # Bins from 1 on, of a round width, hold all ends.
    span = max([*lows, *highs, Fraction(101, 100)]) - 1
    step = Fraction(step_for(float(span), _MOST_BINS)).limit_denominator(10**9)
    above, below = (
        Counter(max(0, int((end - 1) // step)) for end in ends)
        for ends in (lows, [] if exact else highs)
    )
    high = float(1 + step * max(4, int(span / step) + 1))
    bottom = _BASE + (0 if exact else _HALF)
    x = Axis("ratio to the optimum", 1, high).on(_LEFT, _RIGHT)
    frame = Frame(_WIDTH, bottom + 36, x, Axis("", 0, 1).on(bottom, _TOP))
    most = max([*below.values(), *above.values()], default=1)
    tick = max(1, int(step_for(most, 3)))
    most = -(-most // tick) * tick
    unit = _HALF / most
    return frame.svg(
        f"{name}: {_said(lows, highs, len(ratios), average)}",
        *_grid(most, exact),
        path(_bars(above, step, x, -unit), "bar least"),
        path(_bars(below, step, x, unit), "bar most"),
        line(_LEFT, _BASE, _RIGHT, _BASE, "axis"),
        _mark(average.least, x, _TOP),
        None if exact else _mark(average.most, x, _BASE),
        frame.bottom(),
        *_titles(exact),
    )


def _grid(most: int, exact: bool) -> Iterable[Markup]:
    ticks = [value for value in multiples(0, most, 3) if value == int(value)]
    for side in (-1,) if exact else (-1, 1):
        for value, shown in zip(ticks, labels(ticks), strict=True):
            y = _BASE + side * value * _HALF / most
            yield line(_LEFT, y, _RIGHT, y, "grid")
            if side < 0 or value:
                yield label(_LEFT - 5, y + 3.5, shown, "end")


def _titles(exact: bool) -> Iterable[Markup]:
    yield label(2, _TOP - 10, "runs", "start", "title")
    above = "exactly" if exact else "at least (over the best schedule)"
    yield label(_RIGHT, _TOP - 10, above, "end", "title")
    if not exact:
        yield label(_RIGHT, _BASE + _HALF - 4, "at most (over the proved bound)", "end", "title")


def _bars(counts: Counter[int], step: Fraction, x: Axis, unit: float) -> str:
    parts = []
    for place, count in sorted(counts.items()):
        left, right = (x.at(float(1 + step * (place + side))) for side in (0, 1))
        base, end = number(_BASE), number(_BASE + count * unit)
        parts.append(f"M{number(left + 0.6)} {base}V{end}H{number(right - 0.6)}V{base}z")
    return "".join(parts)


def _mark(value: Fraction | None, x: Axis, top: float) -> Markup | None:
    place = None if value is None else x.at(float(value))
    return None if place is None else line(place, top, place, top + _HALF, "mean")


def _said(lows: list[Fraction], highs: list[Fraction], count: int, average: Interval) -> str:
    largest = Interval(max(lows, default=None), max(highs, default=None))
    unknown = count - len(highs)
    rest = f", {unknown} without an upper end" if unknown else ""
    return f"histogram of {count} ratios, mean {average}, largest {largest}{rest}"
