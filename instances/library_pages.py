"""The pages of the library: the table in ``README.md``, and a page with pictures and filters."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cached_property
from html import escape
from typing import Any, NamedTuple

from library import CHALLENGE, CLASSES, Entry, Library, closed, difficulty, write_whole

from kvopt import Instance, Schedule

README, PAGE, ENGINES = "README.md", "library.html", "tables/engines.json"
_MARKS = "<!-- table -->\n", "<!-- end of the table -->\n"
_MILLISECOND = 10**6
_RIVALS = {"kvopt": "kvopt", "cpsat": "CP-SAT", "highs": "HiGHS"}
_WIDTH, _LINE = 720, 3
"""Pixels of a picture, and of the line of a request in it, at most."""
_WORDS = ("instance", "set", "clock", "class", "known")
"""Columns of words, which come first; the page filters by all except the first."""
_HEAD = (
    *_WORDS, "n", "workers", "M", "best", "bound", "gap", "schedule by", "bound by", "certificate",
)  # fmt: skip
_SHOWN = tuple(name for name in _HEAD if not name.endswith(" by"))
"""Columns of the page, which has the finders next to the pictures."""
_CLASSES = "".join(
    f"<dt>{name}</dt><dd>{words}</dd>"
    for name, words in {
        "easy": "the optimum is proved, and its bound took at most a minute",
        "medium": "the same in at most ten minutes on two cores, the standard run",
        "hard": "the same in more time",
        "open": "schedule and bound do not meet",
        "reproduced": "the bound of an optimum was evaluated again in integers",
        "closed": "a solver says that it is optimal: its bound cannot be checked",
    }.items()
)


class Cell(NamedTuple):
    """What a cell says, and the number by which it is sorted."""

    said: str
    number: Fraction | int | None


@dataclass(frozen=True)
class Row:
    """An instance with its entry, as the tables show it."""

    name: str
    place: str
    instance: Instance
    schedule: Schedule | None
    entry: Entry
    in_seconds: bool

    @property
    def is_challenge(self) -> bool:
        """Whether it is of the challenge set."""
        return self.place.startswith(f"{CHALLENGE}/")

    @property
    def words(self) -> list[str]:
        """The cells of the first columns."""
        entry, clock = self.entry, "seconds" if self.in_seconds else "rounds"
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
        if not self.in_seconds:
            return Cell(f"{value:,}", value)
        whole = (math.ceil if side == "objective" else math.floor)(Fraction(value, _MILLISECOND))
        return Cell(f"{whole / 1000:,.3f} s", value)

    def cells(self) -> list[Cell]:
        """Return the cells of the columns of numbers, without the last one."""
        instance, entry = self.instance, self.entry
        sizes = [Cell(f"{n:,}", n) for n in (len(instance), instance.workers, instance.memory)]
        sides = [self.total("objective"), self.total("lower_bound")]
        # A gap that is not 0 never looks like 0.
        said = f"{max(100 * float(self.gap), 0.01):.2f}%" if self.gap else "0%"
        gap = Cell(said, self.gap)
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
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    write_whole(path, with_table(text, rows).encode())
    path = library.folder / ENGINES
    engines = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    write_whole(library.folder / PAGE, page(rows, engines).encode())


def rows_of(library: Library) -> Iterator[Row]:
    """Yield the rows of the tables, in the order of names: a2 before a10."""

    def natural(name: str) -> list[tuple[int, str]]:
        parts = enumerate(re.split(r"([0-9]{1,18})", name))
        return [(int(part), "") if at % 2 else (0, part) for at, part in parts]

    for name in sorted(library.entries, key=natural):
        place = library.paths[name].relative_to(library.folder).as_posix()
        instance, schedule = library.instance(name), library.schedule(name)
        notes = instance.notes if isinstance(instance.notes, dict) else {}
        yield Row(name, place, instance, schedule, library.entries[name], "batch_time" in notes)


def _counts(rows: list[Row]) -> str:
    """Return the number of instances of each class, and of reproduced ones."""
    found = Counter(word for row in rows for word in row.words[-2:])
    classes = ", ".join(f"{found[name]} {name}" for name in CLASSES)
    return (
        f"{len(rows)} instance{'s' * (len(rows) != 1)}: {classes}. Of the optima "
        f"{found['reproduced']} are reproduced, and {found['closed']} closed by a solver's word."
    )


def with_table(text: str, rows: list[Row]) -> str:
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


# ---- the page -----------------------------------------------------------------------------------

_STYLE = """
:root { color-scheme: light dark;
  --ground: #fff; --soft: #57606a; --rule: #d5dae0; --link: #0b57a4; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #14181d; --soft: #a3adb8; --rule: #3a434d; --link: #7ab8f5; }
}
body { font: 1rem/1.5 system-ui, sans-serif; margin: 1rem; background: var(--ground);
  overflow-wrap: anywhere; }
p, dl { max-width: 46rem; } a { color: var(--link); } dd { margin-left: 1.5rem; }
.answer { font-size: 1.25rem; } .soft { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .875rem; }
th, td { padding: .25rem .5rem; text-align: left; border-bottom: 1px solid var(--rule);
  white-space: nowrap; }
td[data-value] { text-align: right; }
th button { all: unset; cursor: pointer; }
th button:focus-visible { outline: 3px solid; }
svg { width: 100%; max-width: 45rem; } svg path { stroke-width: 2; fill: none; }
svg text { font-size: 12px; fill: currentColor; } svg line { stroke: var(--rule); }
circle { fill: #2a78b5; fill-opacity: .6; }
.running { stroke: #2a78b5; } .waiting { stroke: #e0a33e; }
@media print { .filters { display: none; } }
"""
_SCRIPT = """
const body = document.querySelector("table.known").tBodies[0];
document.querySelectorAll("table.known th button").forEach((button, place) => {
  let turn = 1;
  const key = (row) => row.cells[place].dataset.value ?? row.cells[place].textContent;
  button.onclick = () => {
    const byKey = (a, b) => turn * key(a).localeCompare(key(b), "en", { numeric: true });
    body.append(...[...body.rows].sort(byKey));
    turn = -turn;
  };
});
const choices = [...document.querySelectorAll("select")];
document.querySelector(".filters").onchange = () => {
  for (const row of body.rows) {
    const fits = (each) => !each.value || row.cells[each.dataset.column].textContent === each.value;
    row.hidden = !choices.every(fits);
    document.getElementById(row.dataset.name).hidden = row.hidden;
  }
};
"""


def page(rows: list[Row], engines: Mapping[str, Any]) -> str:
    """Return a page that needs no network: the answer, a picture of it, tables and schedules."""
    filters = "".join(_filter(name, place, rows) for place, name in enumerate(_WORDS) if place)
    head = "".join(f'<th scope="col"><button>{name}</button></th>' for name in _SHOWN)
    table = "\n".join(map(_line, rows))
    pictures = "\n".join(f'<div id="{escape(row.name)}">{_picture(row)}</div>' for row in rows)
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>kvopt instance library</title>
<style>{_STYLE}</style></head><body><main>
<h1>kvopt instance library</h1>
<p class="answer">{_answer(rows)}</p>
{_gaps(rows)}
<h2>By group</h2>
{_groups(rows)}
<h2>Classes</h2><dl>{_CLASSES}</dl>
<p>Have you a log of real requests? Instances of servers are rare here and welcome: the
<a href="README.md">README</a> tells how to send one, a better schedule or a better bound.</p>
{_engines(rows, engines)}
<h2>What is known</h2><p>{_counts(rows)}</p><p class="filters">{filters}</p>
<p>Latencies are totals; seconds are rounded outward. Press a heading to sort. A certificate can be
checked by <code>kvopt verify</code>, or <a href="check.html">in the browser</a>.</p>
<div class="wide"><table class="known"><thead><tr>{head}</tr></thead><tbody>
{table}
</tbody></table></div>
<h2>The best schedules</h2><p>A line for each request, in order of start:
<span style="color: #e0a33e">waiting</span>, then <span style="color: #2a78b5">running</span>.</p>
{pictures}
</main><script>{_SCRIPT}</script></body></html>
"""


def _answer(rows: Sequence[Row]) -> str:
    """Return how many instances are solved, and how far apart the sides of the others are."""
    unsolved = [row for row in rows if row.gap]
    solved = len(rows) - len(unsolved)
    if not unsolved:
        return f"All of the {solved} instances are solved."
    widest = max(unsolved, key=lambda row: row.gap)
    return (
        f"{solved} of {len(rows)} instances are solved. For the other {len(unsolved)} the best "
        f"latency is {_excess(unsolved)} above the bound in the geometric mean; "
        f"{escape(widest.name)} is widest open, {100 * float(widest.gap):.1f}%."
    )


def _excess(rows: Sequence[Row]) -> str:
    """Return the geometric mean of best latency over bound, less 1."""
    ratios = [row.entry["objective"] / row.entry["lower_bound"] for row in rows if row.gap < 1]
    ratios = [ratio for ratio in ratios if ratio > 0]
    return f"{100 * (statistics.geometric_mean(ratios) - 1):.2f}%" if ratios else "-"


def _by_group(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of each group that has any, in one order."""
    groups: dict[str, list[Row]] = {"small": [], "one machine": [], "fleets": [], "seconds": []}
    for row in rows:
        name = "fleets" if row.instance.workers > 1 else "one machine"
        name = "seconds" if row.in_seconds else name
        groups[name if row.is_challenge else "small"].append(row)
    return {name: members for name, members in groups.items() if members}


def _groups(rows: Sequence[Row]) -> str:
    """Return a table of the groups: sizes, solved ones and mean gaps."""
    head = ("group", "instances", "solved", "mean over all", "mean over open", "widest gap")
    lines = ["".join(f"<th>{name}</th>" for name in head)]
    for name, members in _by_group(rows).items():
        unsolved = [row for row in members if row.gap]
        widest = f"{100 * float(max(row.gap for row in members)):.2f}%"
        cells = (len(members), len(members) - len(unsolved), _excess(members), _excess(unsolved))
        numbers = "".join(f'<td data-value="">{cell}</td>' for cell in (*cells, widest))
        lines.append(f'<th scope="row">{name}</th>{numbers}')
    table = "".join(f"<tr>{line}</tr>" for line in lines)
    note = "Means are geometric, of the best latency over the bound, less 1."
    return f'<div class="wide"><table>{table}</table></div><p class="soft">{note}</p>'


def _gaps(rows: Sequence[Row]) -> str:
    """Return a picture of the gaps of open instances by group, on a logarithmic scale."""
    groups = {
        name: unsolved
        for name, members in _by_group(rows).items()
        if (unsolved := [row for row in members if row.gap])
    }
    if not groups:
        return ""
    left, right, top = 100, _WIDTH - 20, 24
    bottom = top + 28 * len(groups)

    def place(gap: float) -> float:
        share = (math.log10(min(max(gap, 1e-3), 1.0)) + 3) / 3
        return left + share * (right - left)

    parts = []
    for gap, label in ((1e-3, "0.1%"), (1e-2, "1%"), (1e-1, "10%"), (1.0, "100%")):
        x = place(gap)
        parts.append(f'<line x1="{x:.0f}" y1="{top}" x2="{x:.0f}" y2="{bottom}"/>')
        parts.append(f'<text x="{x:.0f}" y="{top - 8}" text-anchor="middle">{label}</text>')
    for number, (name, members) in enumerate(groups.items()):
        y = top + 28 * number + 14
        parts.append(f'<text x="0" y="{y + 4}">{name}</text>')
        for row in members:
            title = f"{escape(row.name)}: {100 * float(row.gap):.2f}%"
            circle = f'<circle cx="{place(float(row.gap)):.1f}" cy="{y}" r="5">'
            parts.append(
                f'<a href="#{escape(row.name)}">{circle}<title>{title}</title></circle></a>'
            )
    size = f'viewBox="0 0 {_WIDTH} {bottom + 4}"'
    return (
        f'<svg role="img" aria-label="Gaps of open instances" {size}>{"".join(parts)}</svg>'
        '<p class="soft">The gap of each open instance: the share of the best latency that is not '
        "proved. Point at one for its name.</p>"
    )


def _engines(rows: Sequence[Row], engines: Mapping[str, Any]) -> str:
    """Return a table of engines on the same instances: seconds to a proof, else the gap."""
    head = "".join(f"<th>{name}</th>" for name in ("instance", "n", "M", *_RIVALS.values()))
    lines = []
    for row in rows:
        if row.name in engines:
            cells = engines[row.name]["rivals"]
            sizes = (f"{len(row.instance)}", f"{row.instance.memory:,}")
            texts = (*sizes, *(_reached(cells.get(name)) for name in _RIVALS))
            numbers = "".join(f'<td data-value="">{text}</td>' for text in texts)
            name = escape(row.name)
            lines.append(f'<tr><th scope="row"><a href="#{name}">{name}</a></th>{numbers}</tr>')
    if not lines:
        return ""
    return (
        "<h2>Engines, ten minutes each</h2><p>Seconds of the processor to a proof, on one thread "
        "and from the same schedule, or the gap between both sides after 600 of them. CP-SAT has "
        "the model of pairs, HiGHS the time-indexed one; neither runs on more requests of a family "
        "once it fails. <code>benchmarks/rivals.py</code> makes the table again.</p>"
        f'<div class="wide"><table><tr>{head}</tr>{"".join(lines)}</table></div>'
    )


def _reached(cell: Mapping[str, Any] | None) -> str:
    """Return the seconds to a proof, or the gap at the limit."""
    if cell is None or cell["value"] is None or cell["bound"] is None:
        return "-"
    if cell["value"] == cell["bound"]:
        return f"{cell['processor']:.1f} s"
    return f"gap {100 * (1 - cell['bound'] / cell['value']):.1f}%"


def _filter(name: str, place: int, rows: Sequence[Row]) -> str:
    values = sorted({row.words[place] for row in rows})
    options = "".join(f"<option>{value}</option>" for value in ("", *values))
    return f'<label>{name} <select data-column="{place}">{options}</select></label> '


def _line(row: Row) -> str:
    """Return a row of the table; a number is sorted by its digits before and after the point."""
    kept = row.entry.get("certificate")
    name = escape(row.name)
    words = "".join(f"<td>{escape(word)}</td>" for word in row.words[1:])
    numbers = "".join(
        f'<td data-value="{"" if c.number is None else f"{float(c.number):.9f}"}">'
        f"{escape(c.said)}</td>"
        for c in row.cells()[: len(_SHOWN) - len(_WORDS) - 1]
    )
    file = "-"
    if kept:  # `make browser` makes what the second link needs
        path = escape(kept)
        file = f'<a href="{path}">file</a> <a href="check.html?file={path}">check</a>'
    link = f'<th scope="row"><a href="#{name}">{name}</a></th>'
    return f'<tr data-name="{name}">{link}{words}{numbers}<td>{file}</td></tr>'


def _picture(row: Row) -> str:
    """Return a line for each request, in order of start: when it waits and when it runs."""
    count, best = len(row.instance), row.total("objective").said
    words = f"{count} request{'s' * (count != 1)}, M = {row.instance.memory:,}, latency {best}"
    title = f"<h3>{escape(row.name)}</h3><p>{words} "
    title += f'<a href="{escape(row.place)}">instance</a>'
    by = [cell.said for cell in row.cells()[-2:]]  # of the schedule, and of the bound
    names = zip(("schedule", "bound"), by, strict=True)
    title += "".join(f"; {name} by {escape(said)}" for name, said in names if said != "-") + "</p>"
    if row.schedule is None:
        return title
    found = row.schedule.timeline()
    place = {request: position for position, request in enumerate(found.order)}
    work = [(piece.request, piece.begin, piece.end) for piece in found.work]
    scale = _WIDTH / max((end for _, _, end in work), default=1)
    step = max(_LINE, min(8, 160 // max(count, 1)))
    lines = {
        kind: "".join(
            f"M{begin * scale:.1f} {step * (place[i] + 1)}H{end * scale:.1f}"
            for i, begin, end in spans
        )
        for kind, spans in (("waiting", found.waits), ("running", work))
    }
    paths = "".join(f'<path class="{kind}" d="{line}"/>' for kind, line in lines.items())
    size = f'viewBox="0 0 {_WIDTH} {step * (count + 1)}"'
    return f'{title}<svg role="img" aria-label="{escape(row.name)}" {size}>{paths}</svg>'
