"""Schedules as pictures: a row a request, and the tokens held on the same time axis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kvopt.reports.axes import Frame, Scale, label
from kvopt.reports.html import Markup, number, tag
from kvopt.reports.memory import Work, memory
from kvopt.simulation.runs import PolicyRun

_WIDTH, _LEFT, _RIGHT, _TOP = 440.0, 46.0, 432.0, 8.0
_ROWS, _MEMORY, _BETWEEN = 300.0, 96.0, 26.0
_TALLEST_ROW = 16.0
_MOST_LOST = 200
"""Evictions up to which each has a bar of its own."""

_THIN = 4.0
"""Height of rows from which on lines of waiting requests would run together."""

_LABELLED = 24
"""Requests up to which each row has its name."""

MOST_ROWS = 400
"""Requests up to which each has a row; beyond, memory alone is drawn."""


def draw(run: PolicyRun, left: int, right: int) -> Markup:
    """Draw a run over the times ``left .. right``, so that two can be laid side by side."""
    instance = run.instance
    rows = len(instance) if len(instance) <= MOST_ROWS else 0
    row = min(_TALLEST_ROW, _ROWS / max(rows, 1))
    top = _TOP + rows * row + _BETWEEN
    x = Scale(left, right, _LEFT, _RIGHT)
    y = Scale(0, 1.1 * instance.memory, top + _MEMORY, top)
    frame = Frame(_WIDTH, top + _MEMORY + 34, x, y)
    work = list(_work(run))
    said = f"{run.policy}: total latency {run.objective:,}, makespan {run.makespan:,}, "
    return frame.svg(
        said + f"at most {run.peak_memory:,} of {instance.memory:,} tokens held",
        frame.bottom(x.ticks(6), "time (rounds)"),
        *(_Rows(run, x, row).drawn(work) if rows else ()),
        *memory(instance, work, frame),
    )


def _work(run: PolicyRun) -> Iterable[Work]:
    for piece in run.lost:
        yield Work(piece.request, piece.start, piece.end, lost=True)
    for i, start in enumerate(run.starts):
        if start is not None:
            yield Work(i, start, start + run.instance.requests[i].output, lost=False)


@dataclass(frozen=True, slots=True)
class _Rows:
    """One row a request in order of its last start; heights are tokens on one scale."""

    run: PolicyRun
    x: Scale
    row: float

    def drawn(self, work: Sequence[Work]) -> list[Markup]:
        floor = self._floors()
        kept = [piece for piece in work if not piece.lost]
        lost = [piece for piece in work if piece.lost]
        drawn = self._bars if len(lost) <= _MOST_LOST else self._spans
        return [
            tag("path", d=self._waits(floor), class_="wait" if self.row > _THIN else "wait many"),
            *self._bars(kept, floor, ("prompt", "grown")),
            *drawn(lost, floor, ("lost", "lost")),
            *self._names(floor),
        ]

    def _floors(self) -> dict[int, float]:
        requests = self.run.instance.requests
        known = [
            (k, k + requests[i].output, i) for i, k in enumerate(self.run.starts) if k is not None
        ]
        return {i: _TOP + (place + 0.9) * self.row for place, (_, _, i) in enumerate(sorted(known))}

    def _waits(self, floor: dict[int, float]) -> str:
        parts = []
        for i, base in floor.items():
            arrival, start = self.run.instance.requests[i].arrival, self.run.starts[i]
            if start is not None and start > arrival:
                begin, end = number(self.x.at(arrival)), number(self.x.at(start))
                parts.append(f"M{begin} {number(base)}H{end}")
        return "".join(parts)

    def _bars(
        self, work: Sequence[Work], floor: dict[int, float], kinds: tuple[str, str]
    ) -> list[Markup]:
        below, above = [], []
        unit = (
            (0.8 if len(floor) <= _LABELLED else 1.5)
            * self.row
            / max(request.peak for request in self.run.instance)
        )
        for piece in work:
            prompt = self.run.instance.requests[piece.request].prompt
            left, right = number(self.x.at(piece.begin)), number(self.x.at(piece.end))
            base = number(floor[piece.request])
            top = number(floor[piece.request] - prompt * unit)
            peak = number(floor[piece.request] - (prompt + piece.end - piece.begin) * unit)
            below.append(f"M{left} {base}V{top}H{right}V{base}z")
            above.append(f"M{left} {top}L{right} {peak}V{top}z")
        paths = zip((below, above), kinds, strict=True)
        return [tag("path", d="".join(part), class_=kind) for part, kind in paths if part]

    def _spans(
        self, work: Sequence[Work], floor: dict[int, float], kinds: tuple[str, str]
    ) -> list[Markup]:
        """Draw one flat bar where pieces follow each other more closely than can be seen."""
        spans: list[list[int]] = []
        gap = 2 * (self.x.high - self.x.low) / (self.x.end - self.x.start)
        for piece in sorted(work, key=lambda each: (each.request, each.begin)):
            if spans and spans[-1][0] == piece.request and piece.begin - spans[-1][2] <= gap:
                spans[-1][2] = piece.end
            else:
                spans.append([piece.request, piece.begin, piece.end])
        parts = []
        for i, begin, end in spans:
            base, top = number(floor[i]), number(floor[i] - 0.4 * self.row)
            left, right = number(self.x.at(begin)), number(self.x.at(end))
            parts.append(f"M{left} {base}V{top}H{right}V{base}z")
        return [tag("path", d="".join(parts), class_=kinds[0])]

    def _names(self, floor: dict[int, float]) -> list[Markup]:
        if len(floor) > _LABELLED:
            return [
                label(_LEFT - 5, _TOP + 10, str(len(floor)), "end"),
                label(_LEFT - 5, _TOP + 22, "rows", "end"),
            ]
        requests = self.run.instance.requests
        return [label(_LEFT - 5, y, _short(requests[i].id or ""), "end") for i, y in floor.items()]


def _short(name: str) -> str:
    return name if len(name) <= 6 else name[:5] + "…"
