"""How strong the bounds in rounds are, on ten instances of the library.

    python benchmarks/strength.py [--write]

prints the table of docs/theory/strength.md, or writes it there.  Bounds are evaluated in integers;
optima come from ``instances/best-known.json``.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path

from kvopt import bound, read_instance

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "theory" / "strength.md"
INSTANCES = (
    *("arrival-1-n10", "arrival-1-n20", "arrival-2-n10", "arrival-2-n20", "uniform-n12"),
    *("normal-n12", "two-point-n12", "mixed-n20", "three-partition-no-n24", "summarisation-n12"),
)
METHODS = ("lp", "volume", "lagrangian", "slots", "configuration")
_TABLE = re.compile(r"(?<=<!-- strength -->\n)(?:\|.*\n)*")


def rows(limit: float) -> Iterator[str]:
    """Yield the rows of the table, each bound as a share of the optimum."""
    yield "| instance | n | M | optimum | " + " | ".join(METHODS) + " |"
    yield "|---|---|---|---|" + "---|" * len(METHODS)
    best = json.loads((ROOT / "instances" / "best-known.json").read_text(encoding="utf-8"))
    for name in INSTANCES:
        instance = read_instance(ROOT / "instances" / f"{name}.json")
        optimum = best[name]["objective"]
        values = [bound(instance, method, time_limit=limit).value for method in METHODS]
        shares = ["-" if value is None else f"{value / optimum:.3f}" for value in values]
        cells = [name, f"{len(instance)}", f"{instance.memory:,}", f"{optimum:,}", *shares]
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table, or write it into its page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table into its page")
    parser.add_argument("--time-limit", type=float, default=60, help="seconds for a bound")
    options = parser.parse_args()
    table = "".join(f"{row}\n" for row in rows(options.time_limit))
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(_TABLE.sub(lambda _: table, page), encoding="utf-8")
    else:
        print(table, end="")


if __name__ == "__main__":
    main()
