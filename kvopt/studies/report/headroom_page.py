"""``write_headroom``: the page of ``kvopt headroom``, in the design of the reports of studies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from kvopt.files.atomic import write_atomically
from kvopt.show.plots.charts import Bar, intervals
from kvopt.show.plots.embedding import panels
from kvopt.show.plots.style import GROWTH, PROMPT, RUNNING
from kvopt.studies.report.pages import Cell, picture, pieces, rendered, sign

if TYPE_CHECKING:
    from markupsafe import Markup

    from kvopt.fleets.gains import Headroom
    from kvopt.fleets.sizes import FleetSizes

PAGE = "headroom.html"
_ROW = 0.4
"""Inches of a bar with its name."""
_SIGNS = (
    ("prompt", "█", "today"),
    ("running", "█", "simulated"),
    ("growth", "█", "best schedule known, in hindsight"),
    ("bound", "▨", "the optimum is in here, from the proved bound on"),
)


def write_headroom(answer: Headroom, folder: Path) -> None:
    """Write the page into a folder beside its certificates."""
    name = answer.problem.instance.name or "a log"
    source = "from a log, which is not in it: the page has no prompts"
    page = rendered("kvopt headroom", name, None, _sections(answer), source)
    write_atomically(folder / PAGE, page)


def _sections(answer: Headroom) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield address, title and content of each section, in the order of the questions."""
    texts, lines = answer.answers, [answer.undecided, answer.headline]
    body = pieces.answers(filter(None, lines)) + pieces.tiles(_tiles(answer)) + _bars(answer)
    yield "today", ("How long requests wait, and how much less is possible", body)
    lines = [f"today: {texts['today']}", f"at best: {texts['at best']}", answer.covered]
    rows = [
        (str(side.scope), *map(Cell, answer.interval(side), reversed(side.ends)))
        for side in answer.optima
    ]
    head = "schedules of the scope", "proved bound", "best schedule known"
    scopes = pieces.table("Mean latency of the optimum, by scope", head, rows)
    yield "possible", ("What possible covers", pieces.paragraphs(lines) + scopes)
    yield "ways", ("How much of it by settings, and by predicted lengths", _ways(answer))
    body = pieces.answers([texts["machines"]])
    if answer.machines is not None and answer.machines.bands:
        body += _machines(answer.machines)
    yield "machines", ("How many machines the service level takes", body)
    yield "limits", ("What limits", pieces.answers([texts["what limits"]]))
    yield "paste", ("To paste into an issue or a pull request", pieces.code(answer.markdown()))
    rows = [(pieces.link(quote(name), name, ""), value) for name, value in answer.hashes.items()]
    body = pieces.paragraphs(["kvopt verify CERTIFICATE checks a certificate, without any solver."])
    body += pieces.cards("What is proved", ("certificate", "hash of the file"), rows)
    command = f"Command: {answer.command or 'kvopt.headroom'}"
    body += pieces.paragraphs([command, *answer.notes])
    yield "certificates", ("Certificates and notes", body)


def _tiles(answer: Headroom) -> list[tuple[str, str]]:
    """Return figures with words."""
    low, high = answer.interval(answer.optimum)
    gain, ceiling = answer.gains
    rows = [
        (high, "mean latency of the best schedule known"),
        (low, "proved: no covered schedule is below"),
        (f"{answer.share(gain)} to {answer.share(ceiling)}", "less than today at best"),
    ]
    if answer.today is not None:
        today = f"mean latency today, {answer.source}"
        rows.insert(0, (answer.seconds(answer.today.objective), today))
    return rows


def _bars(answer: Headroom) -> Markup:
    """Draw today, simulations, the best schedule known, and the range of the optimum."""
    mean, (upper, lower) = answer.measure.mean, answer.ends
    values = [] if answer.today is None else [("today", answer.today.objective, PROMPT)]
    values += [(variant.words, variant.run.objective, RUNNING) for variant in answer.variants]
    values += [] if upper is None else [("best schedule known", upper, GROWTH)]
    bars = [
        Bar(name, 0.0, mean(v), answer.seconds(v), float(mean(v)), colour=colour)
        for name, v, colour in values
    ]
    if lower is not None:
        top = None if upper is None else mean(upper)
        interval = " to ".join(answer.interval(answer.optimum))
        bars.append(
            Bar("the optimum, unknown in this range", mean(lower), top, interval, is_range=True)
        )
    if not bars:
        return pieces.paragraphs(["Nothing is known yet."])
    figure, (ax,) = panels(_ROW * len(bars))
    intervals(bars, ax, "mean latency, seconds", floor=0.0)
    name = f"Mean latency: {'; '.join(f'{bar.name} {bar.note}' for bar in bars)}"
    return pieces.figures([picture("Mean latency of a request", figure, name, legend=_SIGNS)])


def _ways(answer: Headroom) -> Markup:
    """Return a table of the simulations."""
    today, mean = answer.today, answer.measure.mean
    rows = []
    for variant in answer.variants:
        value = variant.run.objective
        saved = "-"
        if today is not None:
            less = mean(today.objective - value)
            saved = f"{float(less):.3f} s, {float(less / mean(today.objective)):.1%}"
        options = f"vllm serve {variant.flags}"
        rows.append((variant.words, answer.seconds(value), saved, options, variant.priority or "-"))
    head = "simulated", "mean latency", "less than today", "options to paste", "priority to send"
    return pieces.cards("Simulations of this log, no proofs: they were chosen on it.", head, rows)


def _machines(sizes: FleetSizes) -> Markup:
    """Return the results for each number of machines, and draw several of them."""

    def cell(value: int | None, *, up: bool = True) -> Cell:
        return Cell(sizes.measure.worded(value, up=up), value)

    rows = [
        [str(band.workers), cell(band.lower, up=False), cell(band.upper)]
        + [cell(band.runs.get(label)) for label in sizes.labels]
        for band in sizes.bands
    ]
    head = "machines", "misses at least", "at most", *sizes.labels
    body = pieces.table("Requests that miss, proved, and those of schedulers", head, rows)
    if len(sizes.bands) < 2:
        return body
    figure, (ax,) = panels(2.6)
    sizes.plot(ax)
    if (inside := ax.get_legend()) is not None:
        inside.remove()  # names stand below it in full
    legend = [("bound", "▨", "the best schedule is in here"), ("capacity", "┄", "target")]
    legend += [sign(place, label) for place, label in enumerate(sizes.labels)]
    name = f"{sizes.measure.axis} by number of machines: {sizes.answer}"
    return pieces.figures([picture("By number of machines", figure, name, legend=legend)]) + body
