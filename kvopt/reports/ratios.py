"""Histograms of ratios, one for each scheduler."""

from __future__ import annotations

from kvopt.reports.context import Context, Section, counted
from kvopt.reports.figures import by_family, figure
from kvopt.reports.histograms import histogram
from kvopt.reports.html import Markup, join, tag
from kvopt.reports.summaries import Group


def histograms(context: Context) -> Section | None:
    """Return a histogram for each family and scheduler."""
    drawn = [group for group in context.groups if group.are_many]
    if not drawn:
        return None
    figures = [(group.family, _histogram(group)) for group in drawn]
    note = tag(
        "p",
        "How many runs have which ratio to the optimum. Where optima are open, the lower ends of "
        "the intervals go up and the upper ends, hatched, go down: the true histogram lies "
        "between them. Dashed lines mark the means.",
    )
    body = join(note, by_family(context, figures))
    return Section("histograms", "Histograms of ratios", body)


def _histogram(group: Group) -> Markup:
    ratios = group.ratios
    said = [counted(len(ratios), "run"), f"mean {group.mean}"]
    if group.optimal:
        said.append(f"{group.optimal:,} proved optimal")
    if lost := len(group.runs) - len(ratios):
        said.append(f"{lost:,} without a ratio")
    if unbounded := sum(ratio.most is None for ratio in ratios):
        said.append(f"{unbounded:,} without an upper end")
    name = f"{group.label}, {group.family}"
    return figure(group.label, ", ".join(said), histogram(name, ratios, group.mean))
