"""Short summaries of objects for a prompt, a log, or a notebook, and words for numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from html import escape
from inspect import getdoc
from textwrap import fill
from typing import ClassVar

Facts = Mapping[str, object]
"""Facts by name; None is not shown."""

WIDE_GAP = 0.2
UNDECIDED = (
    "this does not decide whether much better schedules exist, as the bound may be too low, or the "
    "search too short"
)
"""Remark if bound and schedule are far apart."""


class Summarised:
    """Objects that are shown by their facts, not by all fields.

    Attributes
    ----------
    footnote
        A remark for readers of the facts; not in the single line of ``repr``.
    """

    footnote: ClassVar[str | None] = None

    def facts(self) -> Facts:
        """Return the facts of a summary, by name."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(f'{k} {v}' for k, v in self._rows())}>"

    def __str__(self) -> str:
        facts = self._rows()
        width = max((len(name) for name, _ in facts), default=0)
        lines = [type(self).__name__, *(f"  {name:{width}}  {value}" for name, value in facts)]
        if self.footnote is not None:
            lines.append(fill(self.footnote, 88, initial_indent="  ", subsequent_indent="  "))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the notebook view."""
        rows = "".join(
            f'<tr><th style="text-align:left">{escape(name)}</th>'
            f'<td style="text-align:left">{escape(value)}</td></tr>'
            for name, value in self._rows()
        )
        below = "" if self.footnote is None else f"<p><small>{escape(self.footnote)}</small></p>"
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>{below}"

    def _rows(self) -> list[tuple[str, str]]:
        return [(name, worded(value)) for name, value in self.facts().items() if value is not None]


class Names(Summarised, dict[str, str]):
    """Names with a line about each; they print as a table."""

    __repr__ = Summarised.__str__

    def facts(self) -> Facts:
        """Return the lines."""
        return self


def first_line(kind: type) -> str:
    """Return the first line of a class's docstring."""
    return (getdoc(kind) or "").partition("\n")[0].replace("``", "")


def worded(value: object) -> str:
    """Return a fact for readers: with separators of thousands, shares as percentages."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return " ".join(str(value).split())


def spread(values: Sequence[int]) -> str | None:
    """Return the smallest and the largest of some integers, None for none."""
    if not values:
        return None
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def share(value: Fraction | float | None) -> str | None:
    """Return a share as a percentage; one that is not 0 never looks like 0."""
    if value is None:
        return None
    return f"{max(100 * float(value), 0.01):.2f}%" if value else "0%"


def percent(value: Fraction | float | None) -> str:
    """Return that percentage, a dash if it is unknown."""
    return share(value) or "-"


def far_apart(gap: float | None) -> str | None:
    """Return the note on an optimum with a gap above a fifth, else None.

    The best schedule may be optimal then, or more than 1.25 times the optimum.
    """
    if gap is None or gap <= WIDE_GAP:
        return None
    return f"the bound and the best schedule are {100 * gap:.0f}% apart"


def ratio(value: int | None, by: int | None) -> float | None:
    """Return a ratio, None if a number is unknown or the second is 0."""
    return None if value is None or not by else value / by


def exact_ratio(value: int | None, by: int | None) -> Fraction | None:
    """Return the same without rounding."""
    return None if value is None or not by else Fraction(value, by)


def rounded(value: Fraction | None, *, up: bool, places: int = 4) -> str:
    """Return a number to some places, rounded in one direction; a dash if it is unknown.

    Ends of intervals are rounded outward, so that they stay true.
    """
    if value is None:
        return "-"
    scaled = value * 10**places
    whole = -(-scaled.numerator // scaled.denominator) if up else scaled.__floor__()
    sign, whole = ("-" if whole < 0 else ""), abs(whole)
    return f"{sign}{whole // 10**places:,}.{whole % 10**places:0{places}}"


def relative_gap(objective: int | None, lower_bound: int | None) -> float | None:
    """Return ``(objective - bound) / objective``; 0 when both are 0, None if one is unknown."""
    if objective is None or lower_bound is None:
        return None
    return (objective - lower_bound) / objective if objective else 0.0
