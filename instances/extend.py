"""Extend the instance library, and improve what is known of each instance.

    python instances/extend.py [--time-limit 60] [NAME ...]
    python instances/extend.py --standard [--time-limit 600] [--threads 2] [NAME ...]
    python instances/extend.py --pages

Writes the instances of ``LIBRARY`` that are missing, solves every small instance whose gap is not
closed (or the named ones), and keeps the better of the old and the new on each side in
``best-known.json``.  Nothing gets worse by running it again.

``--standard`` is the standard run, of ten minutes on two cores: it certifies the instances that
are open or were never certified, those of the challenge set as well, and enters what is better
as ``submit.py`` does.  It may be ended at any moment: the same command goes on with those that
no run of this limit and number of threads has been through.

``--pages`` writes the table in ``README.md`` and ``library.html`` from what is known.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from library import CHALLENGE, STANDARD_SECONDS, Entry, Library, clock_of, closed, merged
from library_pages import write_pages

from kvopt import (
    Instance,
    InvalidInput,
    Request,
    Schedule,
    SolveResult,
    __version__,
    certify,
    generate,
    solve,
    write_certificate,
)
from kvopt import write_instance as write
from kvopt.problem.three_partition import ThreePartition

HERE = Path(__file__).parent
WHO = "kvopt"

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
    """Write what is missing and improve what is open."""
    options = parsed()
    library = Library(HERE)
    for name, instance in every_instance().items():
        if not (HERE / f"{name}.json").exists():
            write(instance, HERE / f"{name}.json")
    signal_number = None
    if not options.pages:
        signal_number = (standard if options.standard else solved)(library, options)
    if options.pages or options.standard:
        write_pages(library)
    if signal_number is not None:
        sys.exit(128 + signal_number)


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: every open instance")
    parser.add_argument("--time-limit", type=float)
    parser.add_argument("--threads", type=int, default=2)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--standard", action="store_true", help="certify, also the challenge set")
    what.add_argument("--pages", action="store_true", help="write the pages and nothing else")
    return parser.parse_args()


def solved(library: Library, options: argparse.Namespace) -> int | None:
    """Solve what is open or named, without the challenge set; return a signal that ended it."""
    known, limit = library.entries, options.time_limit or 60.0
    for name, path in library.paths.items():
        is_open = path.parent.name != CHALLENGE and not closed(known.get(name))
        if name in options.names or (is_open and not options.names):
            known[name], signal_number = improved(library.instance(name), known.get(name), limit)
            library.save()
            print(name, {key: known[name][key] for key in REPORTED}, flush=True)
            if signal_number is not None:
                return signal_number
    return None


def improved(instance: Instance, entry: Entry | None, limit: float) -> tuple[Entry, int | None]:
    """Solve once more and keep the better of both on each side; return a signal that ended it."""
    same = entry is not None and entry["instance"] == instance.hash
    old = entry if entry is not None and same else None
    start = known_schedule(instance, old) if old else None
    result = solve(instance, time_limit=limit, start=start)
    return merged(old, entry_of(result)), result.signal_number


def known_schedule(instance: Instance, entry: Entry) -> Schedule:
    """Return the schedule of an entry in rounds."""
    return Schedule(instance, entry["starts"], entry.get("workers", ()))


def entry_of(new: SolveResult) -> Entry:
    """Return the entry of the table that a result gives."""
    assert new.starts is not None
    assert new.lower_bound is not None
    facts = {
        "who": WHO,
        "date": datetime.date.today().isoformat(),
        "version": __version__,
        "seconds": round(new.seconds, 1),
    }
    return {
        "instance": new.instance.hash,
        "objective": new.objective,
        "starts": list(new.starts),
        "schedule": facts,
        "lower_bound": new.lower_bound,
        "bound_source": str(new.bound_source),
        "bounded_by": new.bounded_by,
        **facts,
    }


def standard(library: Library, options: argparse.Namespace) -> int | None:
    """Certify what is open or was never certified; return a signal that ended it."""
    run = {"time_limit": options.time_limit or STANDARD_SECONDS, "threads": options.threads}
    for name in options.names or [*library.paths]:
        entry = library.entries.get(name)
        is_known = closed(entry) and entry is not None and "certificate" in entry
        if is_known or (entry is not None and entry.get("run") == run):
            continue
        instance = library.instance(name)
        clock = clock_of(instance)
        start = known_schedule(instance, entry) if entry and clock is None else None
        found = certify(instance, schedule=start, clock=clock, **run)
        if found.signal_number is not None:
            return found.signal_number
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.json"
            write_certificate(replace(found, runs=()), path)
            try:
                _, said = library.submit(path, WHO)
            except InvalidInput as error:
                said = [error.reason]
        if name in library.entries:
            library.entries[name]["run"] = run
            library.save()
        print(name, *said, sep="; ", flush=True)
    return None


if __name__ == "__main__":
    main()
