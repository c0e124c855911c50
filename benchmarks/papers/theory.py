"""Compare theorems of the papers with formulas and simulations, and draw conclusions.

    python benchmarks/papers/theory.py [TOPIC ...] [--draws 2] [--scale 1] [--json] [-o OUT.png]

All topics take a minute or two.  Each prints the claims of ``theory.toml`` with a verdict.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import count
from pathlib import Path
from textwrap import indent
from typing import Any

import chen
import jaillet
import kong
import wang
from curves import Curve, Finding, Parts
from simulations import Simulation
from verdicts import Verdict

from kvopt import InvalidInput

TOPICS: dict[str, Callable[[Simulation], Parts]] = {
    "rayleigh": chen.rayleigh,
    "theorem-1": chen.theorem_1,
    "theorem-2": chen.theorem_2,
    "theorem-4": chen.theorem_4,
    "theorem-6": chen.theorem_6,
    "theorem-7": chen.theorem_7,
    "theorem-8": chen.theorem_8,
    "theorem-ec1": chen.theorem_ec1,
    "proposition-ec1": chen.proposition_ec1,
    "lemma-1": chen.lemma_1_and_proposition_1,
    "figure-3": chen.figure_3,
    "theorem-4.1": jaillet.theorem_4_1,
    "lemmas-4.4-4.7": jaillet.lemmas_4_4_and_4_7,
    "theorem-4.2": jaillet.theorem_4_2,
    "theorem-5.3": jaillet.theorem_5_3,
    "theorem-6.2": jaillet.theorem_6_2,
    "svf": kong.smallest_volume_first,
    "theorem-2.1": wang.theorem_2_1,
    "theorem-8.2": wang.theorem_8_2,
    "lemma-3.3": wang.lemma_3_3,
    "dynamic-program": wang.dynamic_program,
    "sorted-f": wang.forty_eight,
}
CLAIMED: dict[str, Any] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
"""Claims of papers with their possible verdicts, and captions of pictures, by topic."""


def examine(topic: str, draws: int = 2, scale: int = 1) -> dict[str, Any]:
    """Return title, verdicts, values and curves of a topic.

    Parameters
    ----------
    topic
        One of `TOPICS`.
    draws
        Seeds of random policies.
    scale
        Factor on the size of simulations.
    """
    parts, claimed = list(TOPICS[topic](Simulation(draws, scale))), CLAIMED[topic]
    findings = [part for part in parts if isinstance(part, Finding)]
    return {
        "topic": topic,
        "title": claimed["picture"]["title"],
        "verdicts": [
            verdict(claim, finding)
            for claim, finding in zip(claimed["claims"], findings, strict=True)
        ],
        "values": {k: v for part in parts if isinstance(part, dict) for k, v in part.items()},
        "curves": [part for part in parts if isinstance(part, Curve)],
    }


def verdict(claim: dict[str, Any], finding: Finding) -> Verdict:
    """Return the first verdict of a claim if the finding agrees with it, else the second one."""
    texts = {key: text for key, text in claim.items() if key != "verdicts"}
    judgement = claim["verdicts"][0 if finding.agrees else 1]
    return Verdict(**texts, found=finding.found, verdict=judgement)


def draw(examination: dict[str, Any], path: Path) -> None:
    """Draw the curves of a topic: lines are formulas, dots are simulated."""
    from matplotlib import pyplot

    curves, caption = examination["curves"], CLAIMED[examination["topic"]]["picture"]
    kinds = [curve.kind for curve in curves]
    # If each formula has its simulation, the two share a colour.
    shift = 0 if kinds.count("formula") == kinds.count("simulation") else 3
    colours = {"formula": count(), "simulation": count(shift)}
    figure, ax = pyplot.subplots(figsize=(5.6, 4), layout="constrained")
    for curve in filter(lambda curve: curve.x, curves):
        colour, mark = f"C{next(colours[curve.kind]) % 10}", "-" if curve.kind == "formula" else "o"
        ax.plot(curve.x, curve.y, mark, color=colour, mfc="none", label=curve.label)
    ax.set(**{f"{name}scale": "log" for name in caption.get("logarithmic", "")})
    ax.set(xlabel=caption.get("x_label", ""), ylabel=caption.get("y_label", "ratio"))
    ax.set_title(caption["title"], fontsize=10)
    ax.legend(frameon=False, fontsize=8)
    figure.savefig(path)
    pyplot.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Examine the topics, and print what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=f"of {', '.join(TOPICS)}")
    parser.add_argument("--draws", type=int, default=2, help="seeds of random policies")
    parser.add_argument("--scale", type=int, default=1, help="simulate so many times as large")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("-o", "--output", type=Path, help="draw the topic")
    options = parser.parse_args(arguments)
    for name in options.topics:
        if name not in TOPICS:
            parser.error(f"there is no topic {name}; there are {', '.join(TOPICS)}")
    if options.draws < 1 or options.scale < 1:
        parser.error("--draws and --scale must be at least 1")
    if options.output and len(options.topics) != 1:
        parser.error("-o goes with one topic")
    found = []
    for name in options.topics or TOPICS:
        found.append(examine(name, options.draws, options.scale))
        if not options.json:
            print(f"{name}: {found[-1]['title']}")
            for each in found[-1]["verdicts"]:
                print(indent(str(each), "  "), flush=True)
    if options.json:
        print(json.dumps({"topics": found}, default=asdict))
    if options.output:
        draw(found[0], options.output)


if __name__ == "__main__":
    try:
        main()
    except InvalidInput as error:
        sys.exit(str(error))
