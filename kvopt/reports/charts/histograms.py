"""Histograms of ratios: lower ends upwards, upper ends downwards, in the same bins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from kvopt.experiments.studies.intervals import Interval
from kvopt.reports.charts.axes import Axis, Box, Frame, label, line, path, step_for
from kvopt.reports.html import Markup, number

_WIDTH, _LEFT, _RIGHT, _TOP, _HALF = 360.0, 34.0, 350.0, 24.0, 92.0
"""Pixels of the picture, of its inner edges and of each half."""
_MOST_BINS = 24
"""Bars of a histogram; more would be hairlines."""


def histogram(name: str, ratios: Sequence[Interval], average: Interval) -> Markup:
    """Draw how often each ratio occurs; where all are exact, one half says it all.

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
    most = max([*below.values(), *above.values()], default=1)
    tick = max(1, int(step_for(most, 3)))
    most = -(-most // tick) * tick
    base, bottom = _TOP + _HALF, _TOP + _HALF * (1 if exact else 2)
    across = Axis("ratio to the optimum", 1, float(1 + step * max(4, int(span / step) + 1)))
    frame = Frame(
        Box(_WIDTH, bottom + 36, _LEFT, _RIGHT, _TOP, bottom),
        across,
        Axis("runs", 0 if exact else -most, most),
    )
    halves = [(average.least, _TOP, "exactly" if exact else "at least (over the best schedule)")]
    if not exact:
        halves.append((average.most, base, "at most (over the proved bound)"))
    largest = Interval(max(lows, default=None), max(highs, default=None))
    unknown = len(ratios) - len(highs)
    said = f"histogram of {len(ratios)} ratios, mean {average}, largest {largest}"
    return frame.svg(
        f"{name}: {said}" + (f", {unknown} without an upper end" if unknown else ""),
        frame.left(3 if exact else 6, whole=True),
        path(_bars(above, step, frame, 1), "bar least"),
        path(_bars(below, step, frame, -1), "bar most"),
        line(_LEFT, base, _RIGHT, base, "axis"),
        *(
            line(place, top, place, top + _HALF, "mean")
            for mean, top, _ in halves
            if mean is not None
            for place in [frame.x.at(float(mean))]
        ),
        frame.bottom(),
        *(
            label(_RIGHT, _TOP - 8 if top == _TOP else bottom - 4, title, "end", "title")
            for _, top, title in halves
        ),
    )


def _bars(counts: Counter[int], step: Fraction, frame: Frame, side: int) -> str:
    parts, base = [], number(frame.y.at(0))
    for place, count in sorted(counts.items()):
        left, right = (frame.x.at(float(1 + step * (place + end))) for end in (0, 1))
        end = number(frame.y.at(side * count))
        parts.append(f"M{number(left + 0.6)} {base}V{end}H{number(right - 0.6)}V{base}z")
    return "".join(parts)
