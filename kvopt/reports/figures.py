"""Pictures with their captions, laid out family by family."""

from __future__ import annotations

from collections.abc import Sequence

from kvopt.reports.context import Context, unfolded
from kvopt.reports.html import Markup, join, tag

_SHOWN = 12
"""Pictures of a family that are shown at once; the others unfold."""


def figure(title: str, said: str | None, picture: Markup) -> Markup:
    """Return a picture with a title and a line below it."""
    words = join(tag("strong", title), tag("span", said) if said else None)
    return tag("figure", tag("figcaption", words), picture)


def by_family(context: Context, figures: Sequence[tuple[str, Markup]]) -> Markup:
    """Return pictures with their families, under a heading for each."""
    parts = []
    for family in context.families:
        found = [figure for owner, figure in figures if owner == family]
        if found and len(context.families) > 1:
            parts.append(tag("h3", family))
        parts.append(tag("div", *found[:_SHOWN], class_="figures"))
        if rest := found[_SHOWN:]:
            parts.append(unfolded(f"{len(rest)} more", tag("div", *rest, class_="figures")))
    return join(*parts)
