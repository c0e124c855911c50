"""Topics and results of examinations: verdicts, and curves to draw."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from importlib.resources import files
from itertools import starmap
from typing import Any, Literal, NamedTuple

from kvopt.errors import unknown_name
from kvopt.experiments.studies.claims.verdict import Verdict
from kvopt.experiments.theory.simulations import Simulation
from kvopt.problem.requests import checked_integer


@dataclass(frozen=True)
class Curve:
    """A formula over a range, or results of simulations at some points.

    Parameters
    ----------
    label
        Its name in the legend.
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
    """A theorem with computed and simulated results.

    Parameters
    ----------
    topic, title
        Name of the topic.
    verdicts
        Verdicts of the claims.
    curves
        Curves of a picture.
    x_label, y_label
        Labels of the axes.
    logarithmic
        Axes with a logarithmic scale: any of ``x`` and ``y``.
    values
        Numbers on which the verdicts depend.
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
        kept = ("topic", "title", "verdicts", "values", "curves")
        return {name: value for name, value in asdict(self).items() if name in kept}


class Finding(NamedTuple):
    """The finding on the next claim of a topic, and whether it agrees with the claim."""

    found: str
    agrees: bool = True


Parts = Iterator[Finding | Curve | dict[str, Any]]
"""Results of the function of a topic: findings, curves in the order of the legend, values."""

Examiner = Callable[[Simulation], Parts]

TOPICS: dict[str, Examiner] = {}
"""Every topic that ``kvopt theory`` examines."""

_CLAIMED: dict[str, Any] = tomllib.loads(
    (files("kvopt.experiments.theory") / "claims.toml").read_text(encoding="utf-8")
)
"""Claims of papers with their possible verdicts, and captions of pictures, by topic."""


def topic(name: str) -> Callable[[Examiner], Examiner]:
    """Return a decorator that makes a topic of the function that yields its parts."""

    def added(parts: Examiner) -> Examiner:
        TOPICS[name] = parts
        return parts

    return added


def line(label: str, pairs: Iterable[tuple[float, float | Fraction]]) -> Curve:
    """Return a formula through pairs of coordinates."""
    rows = list(pairs)
    return Curve(label, tuple(float(x) for x, _ in rows), tuple(float(y) for _, y in rows))


def dots(label: str, pairs: Iterable[tuple[float, float | Fraction]]) -> Curve:
    """Return a curve of simulated values at pairs of coordinates."""
    return replace(line(label, pairs), kind="simulation")


def examine(topic: str, *, draws: int = 2, scale: int = 1) -> Examination:
    """Compare a theorem of the papers with computation and simulation.

    Parameters
    ----------
    topic
        One of `TOPICS`.
    draws
        Seeds of random policies.
    scale
        Factor on the size of simulations.

    Examples
    --------
    >>> [verdict.verdict for verdict in examine("theorem-4.2").verdicts]
    ['refuted']
    """
    if topic not in TOPICS:
        raise unknown_name(topic, TOPICS, "topic")
    checked_integer(draws, "draws", 1)
    checked_integer(scale, "scale", 1)
    found, said = list(TOPICS[topic](Simulation(draws, scale))), _CLAIMED[topic]
    findings = [part for part in found if isinstance(part, Finding)]
    return Examination(
        topic,
        verdicts=tuple(starmap(_verdict, zip(said["claims"], findings, strict=True))),
        curves=tuple(part for part in found if isinstance(part, Curve)),
        values={k: v for part in found if isinstance(part, dict) for k, v in part.items()},
        **said["picture"],
    )


def _verdict(claim: dict[str, Any], finding: Finding) -> Verdict:
    texts = {key: text for key, text in claim.items() if key != "verdicts"}
    verdict = claim["verdicts"][0 if finding.agrees else 1]
    return Verdict(**texts, found=finding.found, verdict=verdict)
