"""Extend the instance library, and improve what is known of each instance.

    python instances/extend.py [--time-limit 60] [NAME ...]

Writes the instances of ``LIBRARY`` that are missing, solves every instance whose gap is not
closed (or the named ones), and keeps the better of the old and the new on each side in
``best-known.json``.  Nothing gets worse by running it again.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from pathlib import Path
from typing import Any

from kvopt import Instance, Request, Schedule, SolveResult, generate, read_instance, solve
from kvopt import write_instance as write
from kvopt.experiments.three_partition import ThreePartition
from kvopt.files.atomic import write_atomically
from kvopt.kernels.pipes import ended_by_reader
from kvopt.version import __version__

HERE = Path(__file__).parent
TABLE = HERE / "best-known.json"

WORKED: dict[str, Instance] = {
    "wang-example-3.1": Instance(64, [Request(0, 63, 1), *[Request(0, 1, 2)] * 21]),
    "chen-example-1": Instance(10, [Request(0, 1, 1)] * 5),
    "chen-example-ec.1": Instance(7, [Request(0, 1, o) for o in (1, 2, 3, 4)]),
    "mc-sf-equal-prompts": Instance(9, [Request(0, 1, o) for o in (3, 4, 5, 7)]),
    "mc-sf-equal-prompts-n6": Instance(12, [Request(0, 0, o) for o in (4, 4, 4, 6, 6, 6)]),
    "mc-sf-no-prompts": Instance(4, [Request(0, 0, o) for o in (2, 2, 3, 3)]),
    "short-horizon": Instance(4, [Request(0, 0, 4), Request(1, 3, 1)]),
}

DRAWN: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "arrival-1": ((4, 6, 8, 10, 12, 16, 20), {}),
    "arrival-2": ((4, 6, 8, 10, 12, 16, 20), {}),
    "uniform": ((4, 8, 12, 20), {}),
    "normal": ((4, 8, 12, 20), {}),
    "binomial": ((4, 8, 12, 20), {}),
    "exponential": ((4, 8, 12, 20), {}),
    "mixed": ((4, 8, 12, 20), {}),
    "two-point": ((4, 8, 12), {"l": 2, "u": 10}),
    "geometric": ((4, 8, 12), {"u": 20}),
    "linear-geometric": ((4, 8, 12), {"u": 20}),
    "three-partition": ((6, 9, 12), {}),
    "v1-thm-6.4": ((4, 8, 12), {}),
    "conversation": ((4, 8, 12, 20), {}),
    "summarisation": ((4, 8, 12, 20), {}),
    "conversation-summarisation": ((4, 8, 12, 20), {}),
}

HARD: dict[str, tuple[int, str]] = {
    "three-partition-no-n6": (20, "6 6 6 6 9 7"),
    "three-partition-yes-n36": (
        100,
        "42 38 27 37 35 33 42 31 35 33 33 34 36 32 27 26 37 26 31 37 27 27 39 35 32 36 30 "
        "34 29 37 39 37 28 40 27 31",
    ),
    "three-partition-yes-n48": (
        100,
        "28 35 33 27 33 35 39 33 31 31 26 36 33 27 29 30 27 37 29 26 35 39 46 32 37 34 38 "
        "32 35 35 37 35 37 32 34 28 36 35 37 35 42 29 35 32 38 27 34 29",
    ),
    "three-partition-no-n15": (
        100,
        "39 26 38 35 38 30 28 39 29 38 31 29 27 41 32",
    ),
    "three-partition-no-n24": (
        100,
        "32 27 30 26 30 37 40 31 26 33 43 38 34 26 41 32 44 39 28 39 31 26 39 28",
    ),
    "three-partition-no-n36": (
        100,
        "34 39 38 41 26 41 26 39 34 33 33 38 26 30 26 42 29 29 33 40 29 28 30 26 41 27 28 "
        "26 29 39 46 43 38 32 31 30",
    ),
}
"""3-Partition problems, T and the numbers: of those drawn, the longest for a direct search."""

MEMORY = {
    "two-point": 20,
    "geometric": 40,
    "linear-geometric": 40,
    "conversation": 1400,
    "summarisation": 9000,
    "conversation-summarisation": 9000,
}
"""Memory for small draws: the papers' own would hold all of them at once."""

REPORTED = ("objective", "lower_bound", "bound_source", "bounded_by", "seconds")


def every_instance() -> dict[str, Instance]:
    """Return every instance of the library by name."""
    found = dict(WORKED)
    for family, (sizes, parameters) in DRAWN.items():
        for n in sizes:
            instance = generate(family, n, MEMORY.get(family), seed=1, parameters=parameters)
            found[f"{family}-n{n}"] = instance
    for name, (target, numbers) in HARD.items():
        found[name] = ThreePartition(target, tuple(map(int, numbers.split()))).instance()
    found["thm-2.1-k2"] = generate("thm-2.1", parameters={"k": 2})
    found["thm-8.2-k3"] = generate("thm-8.2", parameters={"k": 3})
    return found


def main() -> None:
    """Write what is missing and solve what is open."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: every open instance")
    parser.add_argument("--time-limit", type=float, default=60.0)
    options = parser.parse_args()
    for name, instance in every_instance().items():
        if not (HERE / f"{name}.json").exists():
            write(instance, HERE / f"{name}.json")
    known = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    for path in sorted(HERE.glob("*.json")):
        wanted = path.stem in options.names if options.names else not closed(known.get(path.stem))
        if path != TABLE and wanted:
            instance = read_instance(path)
            entry = known.get(path.stem)
            known[path.stem], signal_number = improved(instance, entry, options.time_limit)
            save(known)
            facts = {key: known[path.stem][key] for key in REPORTED}
            print(path.stem, facts, flush=True)
            if signal_number is not None:
                sys.exit(128 + signal_number)


def closed(entry: dict[str, Any] | None) -> bool:
    """Whether the best schedule meets the best bound."""
    return entry is not None and entry["objective"] == entry["lower_bound"]


def improved(
    instance: Instance, entry: dict[str, Any] | None, limit: float
) -> tuple[dict[str, Any], int | None]:
    """Solve once more and keep the better of both on each side; return a signal that ended it."""
    same = entry is not None and entry["instance"] == instance.hash
    old = entry if entry is not None and same else None
    start = Schedule(instance, old["starts"]) if old else None
    result = solve(instance, time_limit=limit, start=start)
    return merged(instance, old, result), result.signal_number


def merged(instance: Instance, old: dict[str, Any] | None, new: SolveResult) -> dict[str, Any]:
    """Return the entry of the table: best schedule, best bound, how and when."""
    assert new.starts is not None
    assert new.lower_bound is not None
    entry: dict[str, Any] = {
        "instance": instance.hash,
        "objective": new.objective,
        "starts": list(new.starts),
        "lower_bound": new.lower_bound,
        "bound_source": str(new.bound_source),
        "bounded_by": new.bounded_by,
        "date": datetime.date.today().isoformat(),
        "version": __version__,
        "seconds": round(new.seconds, 1),
    }
    if old is not None and old["lower_bound"] >= new.lower_bound:
        for key in ("lower_bound", "bound_source", "bounded_by", "date", "version", "seconds"):
            entry[key] = old[key]
    return entry


def save(known: dict[str, Any]) -> None:
    """Write the table, one instance a line."""
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known))
    write_atomically(TABLE, "{\n" + rows + "\n}\n")


if __name__ == "__main__":
    with ended_by_reader():
        main()
