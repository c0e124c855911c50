"""What an examination of a theorem returns: verdicts, and curves to draw."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from kvopt.experiments.studies.claims.verdict import Judgement, Verdict

__all__ = ["Curve", "Examination", "Judgement", "Verdict", "points"]


@dataclass(frozen=True)
class Curve:
    """A formula over a range, or what simulation gave at some places.

    Parameters
    ----------
    label
        What it shows.
    x, y
        Coordinates.
    kind
        ``formula`` is drawn as a line, ``simulation`` as dots.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    kind: Literal["formula", "simulation"] = "formula"


@dataclass(frozen=True)
class Examination:
    """A theorem beside what was computed and simulated.

    Parameters
    ----------
    topic, title
        What was examined.
    verdicts
        What became of each claim.
    curves
        What a picture shows.
    x_label, y_label
        Of the axes.
    logarithmic
        Axes with a logarithmic scale: any of ``x`` and ``y``.
    """

    topic: str
    title: str
    verdicts: tuple[Verdict, ...]
    curves: tuple[Curve, ...] = ()
    x_label: str = ""
    y_label: str = "ratio"
    logarithmic: str = ""
    values: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``kvopt theory --json`` prints."""
        return {
            "topic": self.topic,
            "title": self.title,
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
            "values": self.values,
            "curves": [
                {"label": c.label, "kind": c.kind, "x": list(c.x), "y": list(c.y)}
                for c in self.curves
            ],
        }


def points(label: str, pairs: Iterable[tuple[float, float]], *, simulated: bool = False) -> Curve:
    """Return a curve through pairs of coordinates."""
    rows = list(pairs)
    kind: Literal["formula", "simulation"] = "simulation" if simulated else "formula"
    return Curve(label, tuple(float(x) for x, _ in rows), tuple(float(y) for _, y in rows), kind)
