"""Pictures of reports: quantiles, bars and points are what the numbers give."""

from __future__ import annotations

import re
from fractions import Fraction
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from kvopt import Instance, Request, run
from kvopt.show.plots import rows
from kvopt.show.plots.charts import points, spread
from kvopt.show.plots.embedding import embedded, panels
from kvopt.show.plots.style import PALETTE, policy
from kvopt.studies.ratio_intervals import Interval, quantile_of
from kvopt.studies.report.pages import pieces, sign


def parts(least: int, most: int) -> st.SearchStrategy[Fraction]:
    """Draw a number of sixtieths, in a tenth of the time of ``st.fractions``."""
    return st.integers(least, most).map(lambda count: Fraction(count, 60))


@st.composite
def enclosed(draw: st.DrawFn) -> tuple[list[Interval], list[Fraction]]:
    """Draw numbers and intervals that hold them, some of them open."""
    numbers = draw(st.lists(parts(60, 540), min_size=1, max_size=12))
    slack = st.none() | parts(0, 180)
    found = []
    for number in numbers:
        below, above = draw(slack), draw(slack)
        least = None if below is None else number - below
        found.append(Interval(least, None if above is None else number + above))
    return found, numbers


@given(enclosed(), parts(0, 60))
def test_quantiles_of_ends_enclose_the_quantile(
    drawn: tuple[list[Interval], list[Fraction]], share: Fraction
) -> None:
    found, numbers = drawn
    wanted = next(
        x for x in sorted(numbers) if sum(y <= x for y in numbers) >= share * len(numbers)
    )
    quantile = quantile_of(found, share)
    assert quantile.lower is None or quantile.lower <= wanted
    assert quantile.upper is None or quantile.upper >= wanted
    assert quantile_of([Interval(x, x) for x in numbers], share) == Interval(wanted, wanted)


# ---- pictures ----------------------------------------------------------------------


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=9))
def test_an_axis_holds_all_its_values(values: list[float]) -> None:
    _, (ax,) = panels(1.0)
    spread(ax.yaxis, values)
    low, high = ax.get_ylim()
    assert low <= min(values) <= max(values) <= high
    assert (ax.get_yscale() == "log") == (max(values) / min(values) > 5)


def test_schedulers_differ_without_colours() -> None:
    looks = [policy(place) for place in range(25)]
    assert len({(look["marker"], str(look["linestyle"])) for look in looks}) == 25
    assert len({sign(place, "x")[:2] for place in range(25)}) == 25


def test_an_embedded_picture_has_no_style_and_the_colours_of_the_page() -> None:
    figure, axes = panels(1.0, 1.0)
    rows(run(Instance(9, [Request(0, 1, 4, id="<&>"), Request(0, 3, 2)]), "mc-sf"), axes[0])
    points([(0, 1, 2), (1, 2, None)], axes[1], 0, ["0", "1"])
    drawn = embedded(figure, '"name" <b>', [("first\n<b>", "a.json?&"), ("second", None)])
    assert 'aria-label="&quot;name&quot; &lt;b&gt;"' in drawn
    assert "style" not in drawn
    assert "<b>" not in drawn
    assert '<a href="a.json?&amp;"><title>first\n&lt;b&gt;</title>' in drawn
    assert "<a><title>second</title>" in drawn
    assert {f"var(--{name})" for name in ("prompt", "growth", "grid", "policy-0")} <= {
        *re.findall(r"var\(--[a-z0-9-]+\)", drawn)
    }
    assert not {light for light, _ in PALETTE.values()} & {*re.findall("#[0-9a-f]{6}", drawn)}


@given(st.text(), st.text())
def test_pieces_escape_all_text(inside: str, value: str) -> None:
    made = pieces.link(value, inside, "")

    class Reader(HTMLParser):
        found: tuple[str, str | None] = ("", None)

        def handle_starttag(self, name: str, pairs: list[tuple[str, str | None]]) -> None:
            assert name == "a"
            self.found = ("", dict(pairs)["href"])

        def handle_data(self, text: str) -> None:
            self.found = (self.found[0] + text, self.found[1])

    reader = Reader()
    reader.feed(made)
    reader.close()
    if inside.isprintable() and value.isprintable():
        assert (reader.found[0].strip(), reader.found[1]) == (inside.strip(), value)
