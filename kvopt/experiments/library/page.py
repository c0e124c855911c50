"""The pages of the library: the table in ``README.md``, and a page with pictures and filters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from kvopt import Instance, PolicyRun
from kvopt.experiments.library.table import CHALLENGE, CLASSES, Entry, Library, closed, difficulty
from kvopt.experiments.report.layout import Cell, picture, pieces
from kvopt.experiments.report.words import natural
from kvopt.experiments.report.writing import page_text
from kvopt.files.atomic import write_atomically
from kvopt.files.reading import read_text
from kvopt.show.plots.embedding import panels
from kvopt.show.plots.style import PALETTE
from kvopt.show.summary import counted, percent

if TYPE_CHECKING:
    from markupsafe import Markup

README, PAGE = "README.md", "library.html"
_MARKS = "<!-- table -->\n", "<!-- end of the table -->\n"
_MILLISECOND = 10**6
_LEGEND = [("running", "█", "running"), ("waiting", "█", "waiting")]
_WORDS = ("instance", "set", "clock", "class", "known")
"""Columns of words, which come first; the page filters by all except the first."""
_HEAD = (
    *_WORDS, "n", "workers", "M", "best", "bound", "gap", "schedule by", "bound by", "certificate",
)  # fmt: skip


@dataclass(frozen=True)
class _Row:
    """An instance with its entry, as the tables show it."""

    name: str
    place: str
    run: PolicyRun
    entry: Entry

    @property
    def instance(self) -> Instance:
        return self.run.instance

    @property
    def is_challenge(self) -> bool:
        return self.place.startswith(f"{CHALLENGE}/")

    @property
    def words(self) -> list[str]:
        """The cells of the first columns."""
        entry, clock = self.entry, "rounds" if self.run.clock.is_even else "seconds"
        checked = entry["bound_source"] == "checked"
        known = ("reproduced" if checked else "closed") if closed(entry) else "-"
        which = "challenge" if self.is_challenge else "small"
        return [self.name, which, clock, difficulty(entry), known]

    @cached_property
    def gap(self) -> Fraction:
        """The share of the best latency that is not proved."""
        best = self.entry["objective"]
        return Fraction(best - self.entry["lower_bound"], best) if best else Fraction(0)

    def total(self, side: str) -> Cell:
        """Return a side, in seconds rounded outward to milliseconds."""
        value = self.entry[side]
        if self.run.clock.is_even:
            return Cell(f"{value:,}", value)
        whole = (math.ceil if side == "objective" else math.floor)(Fraction(value, _MILLISECOND))
        return Cell(f"{whole / 1000:,.3f} s", value)

    def cells(self) -> list[Cell]:
        """Return the cells of the columns of numbers, without the last one."""
        instance, entry = self.instance, self.entry
        sizes = [Cell(f"{n:,}", n) for n in (len(instance), instance.workers, instance.memory)]
        sides = [self.total("objective"), self.total("lower_bound")]
        gap = Cell(percent(self.gap), self.gap)
        return [*sizes, *sides, gap, _origin(entry.get("schedule")), _origin(entry)]


def _origin(facts: Entry | None) -> Cell:
    """Return who found a bound or schedule, when and how long it took; sorted by the day."""
    if facts is None:
        return Cell("-", None)
    spent, threads, day = facts["seconds"], facts.get("threads"), facts["date"]
    took = [] if spent is None else [f"{spent:,} s" + (f" x {threads}" if threads else "")]
    said = ", ".join([facts.get("who", "kvopt"), day, *took])
    return Cell(said, None if day == "-" else date.fromisoformat(day).toordinal())


def write_pages(library: Library) -> None:
    """Write the table into the README of the library, and its page."""
    rows = [*rows_of(library)]
    path = library.folder / README
    write_atomically(path, with_table(read_text(path) if path.exists() else "", rows))
    write_atomically(library.folder / PAGE, _page(rows))


def rows_of(library: Library) -> Iterator[_Row]:
    """Yield the rows of the tables, in the order of names."""
    for name in sorted(library.entries, key=natural):
        place = library.paths[name].relative_to(library.folder).as_posix()
        yield _Row(name, place, library.run_of(name), library.entries[name])


def _counts(rows: list[_Row]) -> str:
    """Return the number of instances of each class, and of reproduced ones."""
    found = Counter(word for row in rows for word in row.words[-2:])
    classes = ", ".join(f"{found[name]} {name}" for name in CLASSES)
    return (
        f"{counted(len(rows), 'instance')}: {classes}. Of the optima {found['reproduced']} are "
        f"reproduced, and {found['closed']} closed by a solver's word."
    )


def with_table(text: str, rows: list[_Row]) -> str:
    """Return the text of a README with the table of now between its marks."""
    lines = [_counts(rows), "", f"| {' | '.join(_HEAD)} |", "|" + "---|" * len(_HEAD)]
    for row in sorted(rows, key=lambda row: not row.is_challenge):
        kept = row.entry.get("certificate")
        file = f"[file]({kept})" if kept else "-"
        cells = [*row.words, *(str(cell.said) for cell in row.cells()), file]
        lines.append(f"| {' | '.join(cells)} |")
    before, mark, rest = text.partition(_MARKS[0])
    _, _, after = rest.partition(_MARKS[1])
    return "".join([before, mark or _MARKS[0], "\n".join(lines), "\n", _MARKS[1], after])


def _page(rows: list[_Row]) -> str:
    table = []
    for row in rows:
        kept = row.entry.get("certificate")
        linked = Cell(pieces.link(kept, "file", ""), 1) if kept else Cell("-", None)
        name = pieces.link(f"#{row.name}", row.name, "")
        table.append([name, *row.words[1:], *row.cells(), linked])
    choices = {
        name: sorted({row.words[place] for row in rows})
        for place, name in enumerate(_WORDS)
        if place
    }
    said = "Latencies are totals; seconds are rounded outward. Press a heading to sort."
    body = pieces.filters(choices, 1) + pieces.table(said, _HEAD, table, len(_WORDS))
    drawn = [pieces.anchored(row.name, _picture(row)) for row in rows]
    sections = {
        "table": ("What is known", body),
        "schedules": ("The best schedules", pieces.signs(_LEGEND) + pieces.figures(drawn)),
    }
    return page_text(
        "instances with the best of both sides",
        "kvopt instance library",
        _counts(rows),
        sections,
        "the table of the library",
    )


def _picture(row: _Row) -> Markup:
    """Return a line for each request, in order of start: when it waits and when it runs."""
    found, count = row.run.timeline(), len(row.instance)
    place = {request: position for position, request in enumerate(found.order)}
    figure, (ax,) = panels(max(0.6, min(2.0, 0.05 * count)))
    spans = {
        "waiting": found.waits,
        "running": [(piece.request, piece.begin, piece.end) for piece in found.work],
    }
    for kind, known in spans.items():
        # One line with gaps takes a tenth of the bytes of as many lines.
        times = [t for _, begin, end in known for t in (begin, end, math.nan)]
        heights = [place[i] for i, *_ in known for _ in range(3)]
        ax.plot(times, heights, color=PALETTE[kind][0], linewidth=max(0.6, min(3, 60 / count)))
    ax.set(ylim=(count, -1), yticks=[], ylabel=f"requests; time in {found.unit}")
    best = row.total("objective").said
    words = f"{counted(count, 'request')}, M = {row.instance.memory:,}, latency {best}"
    link = pieces.link(row.place, "instance", "")
    return picture(row.name, figure, f"{row.name}: {words}", words, more=link)
