"""Schedules as pictures: a row a request, or bands of many, and the tokens held below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kvopt.problem.instance import Instance
from kvopt.reports.charts.axes import Axis, Box, Frame, label, path
from kvopt.reports.charts.bands import bands, counts_of, most_of
from kvopt.reports.html import Markup, number
from kvopt.timetable.outlines import Points, outline
from kvopt.timetable.runs import PolicyRun
from kvopt.timetable.sweep import Stretch, swept

_WIDTH, _LEFT, _RIGHT, _TOP = 440.0, 46.0, 432.0, 8.0
"""Pixels of the picture and of its inner edges."""
_ROWS, _MEMORY, _BETWEEN = 300.0, 96.0, 26.0
"""Pixels of all rows together, of the memory below, and between them."""
_TALLEST_ROW = 16.0
"""Pixels of a row where there are few."""
_MOST_LOST = 200
"""Evictions up to which each has a bar of its own."""

_THIN = 4.0
"""Height of rows from which on lines of waiting requests would run together."""

_LABELLED = 24
"""Requests up to which each row has its name."""

MOST_ROWS = 120
"""Requests up to which each has a row; beyond, bands say how many run and wait."""

_BANDS = 150.0
"""Pixels of those bands."""

_MOST_CORNERS = 800
"""Corners of an outline; with more, each column of pixels keeps its highest."""
_COLUMNS = 386
"""Columns, a pixel wide, of a picture that has more corners than can be told apart."""


class Work(NamedTuple):
    """A stretch of work of one request, lost or kept; ``before`` is what it had produced."""

    request: int
    start: int
    end: int
    before: int = 0


def _kept(run: PolicyRun) -> Iterator[Work]:
    """Yield the work that was not lost: a stretch of each request, or what pauses cut it into."""
    if run.segments:
        for i, segments in enumerate(run.segments):
            before = 0
            for first, last in segments:
                yield Work(i, first - 1, last, before)
                before += last - first + 1
        return
    for i, start in enumerate(run.starts):
        if start is not None:
            yield Work(i, start, start + run.instance.requests[i].output)


def draw(run: PolicyRun, left: int, right: int) -> Markup:
    """Draw a run over the times ``left .. right``, so that two can be laid side by side."""
    instance = run.instance
    kept = sorted(_kept(run), key=lambda piece: (piece.start, piece.end))
    lost = [Work(piece.request, piece.start, piece.end) for piece in run.lost]
    rows = len(instance) if len(instance) <= MOST_ROWS else 0
    row = min(_TALLEST_ROW, _ROWS / max(rows, 1))
    top = _TOP + (rows * row or _BANDS) + _BETWEEN
    box = Box(_WIDTH, top + _MEMORY + 34, _LEFT, _RIGHT, top, top + _MEMORY)
    frame = Frame(box, Axis("time (rounds)", left, right), Axis("", 0, 1.1 * instance.memory))
    order = dict.fromkeys(piece.request for piece in kept)
    floor = {request: _TOP + (place + 0.9) * row for place, request in enumerate(order)}
    said = f"{run.policy}: total latency {run.objective:,}, makespan {run.makespan:,}, "
    return frame.svg(
        said + f"at most {run.peak_memory:,} of {instance.memory:,} tokens held",
        frame.bottom(),
        *(_Rows(instance, frame.x, row, floor).drawn(kept, lost) if rows else _bands(run, frame)),
        *_memory(run, kept, lost, frame),
        frame.tokens(instance.memory),
    )


def _bands(run: PolicyRun, below: Frame) -> Iterable[Markup]:
    """Draw how many requests run and wait, above the tokens on the same time axis."""
    counts = counts_of(run)
    top = _TOP + 14
    box = Box(_WIDTH, below.height, _LEFT, _RIGHT, top, top + _BANDS - 14)
    frame = Frame(box, below.x, Axis("requests", 0, 1.05 * max(most_of(counts), 1)))
    yield bands(frame, counts)
    yield frame.left(4, whole=True)


@dataclass(frozen=True)
class _Rows:
    """One row a request, above a floor of its own; heights are tokens on one scale."""

    instance: Instance
    x: Axis
    row: float
    floor: dict[int, float]

    def drawn(self, kept: Sequence[Work], lost: Sequence[Work]) -> Iterable[Markup]:
        requests = self.instance.requests
        waits, free = [], {i: requests[i].arrival for i in self.floor}
        for piece in kept:
            since, free[piece.request] = free[piece.request], piece.end
            if piece.start > since:
                place = f"M{self._across(since)} {number(self.floor[piece.request])}"
                waits.append(f"{place}H{self._across(piece.start)}")
        yield path("".join(waits), "wait" if self.row > _THIN else "wait many")
        yield from self._bars(kept, ("prompt", "grown"))
        if len(lost) <= _MOST_LOST:
            yield from self._bars(lost, ("lost", "lost"))
        else:
            yield self._spans(lost)
        if len(self.floor) > _LABELLED:
            yield label(_LEFT - 5, _TOP + 10, str(len(self.floor)), "end")
            yield label(_LEFT - 5, _TOP + 22, "rows", "end")
            return
        for i, floor in self.floor.items():
            name = requests[i].id or ""
            yield label(_LEFT - 5, floor, name if len(name) <= 6 else name[:5] + "…", "end")

    def _bars(self, work: Sequence[Work], kinds: tuple[str, str]) -> list[Markup]:
        """Draw prompts as boxes and growth as slopes above them."""
        below, above = [], []
        tallest = max(request.peak for request in self.instance)
        unit = (0.8 if len(self.floor) <= _LABELLED else 1.5) * self.row / tallest
        for piece in work:
            prompt, base = self.instance.requests[piece.request].prompt, self.floor[piece.request]
            left, right = self._across(piece.start), self._across(piece.end)
            top = number(base - prompt * unit)
            grown = prompt + piece.before
            peak = number(base - (grown + piece.end - piece.start) * unit)
            side = f"V{number(base - grown * unit)}" if piece.before else ""
            below.append(f"M{left} {number(base)}V{top}H{right}V{number(base)}z")
            above.append(f"M{left} {top}{side}L{right} {peak}V{top}z")
        paths = zip((below, above), kinds, strict=True)
        return [path("".join(part), kind) for part, kind in paths if part]

    def _spans(self, work: Sequence[Work]) -> Markup:
        """Draw one flat bar where pieces follow each other more closely than can be seen."""
        spans: list[list[int]] = []
        gap = 2 * (self.x.high - self.x.low) / (self.x.end - self.x.start)
        for piece in sorted(work, key=lambda each: (each.request, each.start)):
            if spans and spans[-1][0] == piece.request and piece.start - spans[-1][2] <= gap:
                spans[-1][2] = piece.end
            else:
                spans.append([piece.request, piece.start, piece.end])
        parts = []
        for i, begin, end in spans:
            base, top = number(self.floor[i]), number(self.floor[i] - 0.4 * self.row)
            parts.append(f"M{self._across(begin)} {base}V{top}H{self._across(end)}V{base}z")
        return path("".join(parts), "lost")

    def _across(self, time: int) -> str:
        return number(self.x.at(time))


def _memory(
    run: PolicyRun, kept: Sequence[Work], lost: Sequence[Work], frame: Frame
) -> Iterable[Markup]:
    """Draw the tokens held; what evictions threw away is seen where it stands above the rest."""

    def area(work: Sequence[Work], corners: Callable[[Stretch], Points], kind: str) -> Markup:
        requests = run.instance.requests
        starts, ends = [each.start for each in work], [each.end for each in work]
        before = [requests[each.request].prompt + each.before for each in work]
        sweep = swept(starts, ends, before)
        found = [corner for stretch in sweep.stretches() for corner in corners(stretch)]
        return frame.area(_thin(found), kind)

    def held(stretch: Stretch) -> Points:
        return outline(stretch, stepped=False)

    def prompts(stretch: Stretch) -> Points:
        return [(time, stretch.prompts) for time in (stretch.begin, stretch.end)]

    if lost:
        yield area([*lost, *kept], held, "lost")
    yield area(kept, held, "grown")
    yield area([piece._replace(before=0) for piece in kept], prompts, "prompt")


def _thin(corners: Points) -> Points:
    """Return corners as they are; of very many the highest in each column."""
    if len(corners) <= _MOST_CORNERS:
        return corners
    first, last = corners[0][0], corners[-1][0]
    highest: dict[int, tuple[float, float]] = {}
    for time, held in corners:
        column = int((time - first) * _COLUMNS / (last - first))
        highest[column] = max((held, time), highest.get(column, (0, time)))
    return [(time, held) for held, time in (highest[column] for column in sorted(highest))]
