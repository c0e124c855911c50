"""The page of what works with what: axes, relaxations, how strong bounds are, and refusals.

``python tests/support/capabilities.py`` writes ``docs/capabilities.md``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import mean
from tempfile import gettempdir

from axes import AXES
from combinations import DOORS, NAMES, case

from kvopt import (
    BatchTime,
    Instance,
    InvalidInput,
    Line,
    Problem,
    Request,
    Scope,
    bound,
    export,
    run,
    solve,
    tiny_optimum,
)
from kvopt.fleets import fleet_sizes
from kvopt.problem.clocks import Seconds

PAGE = Path(__file__).parents[2] / "docs" / "capabilities.md"
DRAWS = 3
"""Problems of a cell."""
WEAK: dict[tuple[str, ...], str] = {}
"""Why a bound is below half of the optimum."""

_ONE = Instance(8, [Request(0, 1, 3), Request(0, 2, 2), Request(4, 1, 1)], round_ms=40)
_TWO = _ONE.replace(workers=2)
_CLOCK = Seconds(BatchTime([Line(40_000_000, 1_000_000)]))
_FILE = Path(gettempdir(), "refused.lp")

REFUSED: dict[str, tuple[Callable[[], object], ...]] = {
    "An engine or a method by name, along axes that it does not know: `auto` takes others": (
        partial(solve, Problem(_ONE, _CLOCK), "cpsat"),
        partial(solve, _TWO, "exact"),
        partial(solve, _ONE, "exact", scope="pauses"),
        partial(solve, _ONE.replace(max_active=2), "exact"),
        partial(bound, Problem(_ONE, _CLOCK), "lp"),
        partial(bound, _ONE, "slots", scope="pauses"),
    ),
    "A server behind a central line": (partial(run, _TWO, "vllm-fcfs:block=1"),),
    "A server with other blocks": (partial(run, _ONE.replace(block_size=2), "vllm-fcfs:block=1"),),
    "A plan of all starts for several workers, or for arrivals at any time": (
        partial(run, _TWO, "sorted-lp:hindsight=1"),
        partial(run, _ONE, "sorted-lp:hindsight=1", clock=_CLOCK),
    ),
    "A share without a service level, or a mean with one": (
        partial(fleet_sizes, _ONE, attain="99%", counts=[1]),
        partial(fleet_sizes, _ONE, "mean=9", counts=[1], slo="e2e=4"),
    ),
    "A program with columns that it does not have": (
        partial(export, _ONE.replace(block_size=2), _FILE),
        partial(export, _ONE, _FILE, "pauses"),
    ),
    "`tiny_optimum` along other axes than pauses": (
        partial(tiny_optimum, Problem(_TWO, scope=Scope.PAUSES)),
    ),
}
"""What asks for a thing that does not exist, with calls that do."""


def ratio(axes: tuple[str, ...]) -> float:
    """Return the mean of bound over optimum."""
    drawn = [case(axes, seed) for seed in range(DRAWS)]
    values = [(DOORS["bound"](each.problem).lower or 0) / each.least for each in drawn]
    return mean(values)


def refusal(work: Callable[[], object]) -> str:
    """Return the line with which it is refused."""
    try:
        work()
    except InvalidInput as error:
        return str(error)
    raise AssertionError("it is not refused")


def page() -> str:
    """Return the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield from (
        "# What works with what?",
        "",
        "A problem may differ from that of the papers along the following axes, and along any of "
        "them at once. `solve`,",
        "`bound`, `certify`, `fleet` and `run` answer every combination, and `kvopt verify` checks "
        "every certificate. A test asks all",
        "of them about each combination of up to three axes, against brute force.",
        "",
        "|axis|asked for by|schedules|lower bounds|",
        "|---|---|---|---|",
    )
    for axis in AXES:
        effect = {"narrows": "fewer", "widens": "more", "counts": "counted otherwise"}[axis.effect]
        yield f"|{axis.name}|`{axis.spelled}`|{effect}|{axis.sentence}|"
    yield from (
        "",
        "Where no bound knows an axis, that of a wider problem holds. Results and certificates "
        "name the [relaxations](theory/bounds.md#relaxations)",
        "that they used.",
        "",
        "## How strong bounds are",
        "",
        f"Bound over optimum, the mean of {DRAWS} drawn problems of two to four requests. The "
        "diagonal is an axis alone.",
        "",
        f"|axis|{'|'.join(NAMES)}|",
        "|---" * (len(NAMES) + 1) + "|",
    )
    weak = []
    for place, name in enumerate(NAMES):
        cells = []
        for other in NAMES[place:]:
            axes = (name,) if name == other else (name, other)
            value = ratio(axes)
            cells.append(f"{value:.2f}")
            if value < 0.5:
                weak.append(f"- {' and '.join(axes)}: {WEAK[axes]}.")
        yield f"|{name}|{'|' * place}{'|'.join(cells)}|"
    yield from (*([""] if weak else []), *weak)
    yield from ("", "`python tests/support/capabilities.py` writes this page.")


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"wrote {PAGE}\n")
