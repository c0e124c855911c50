"""The tables of two papers, whole: run them, keep what is best, and recompute them unsolved.

    python instances/tables.py run DIR [--study NAME ...] [--after K] [--draws K] [--time-limit S]
                                  [--threads T] [--jobs N]
    python instances/tables.py keep DIR
    python instances/tables.py schedules DIR --seconds S
    python instances/tables.py show [--study NAME ...] [--check]
    python instances/tables.py unpack DIR

The studies are ``arrival-1`` and ``arrival-2`` (jaillet-2025-v2 section 5.1, 200 draws each) and
``wang-table-4`` (10 draws of each of its five rows). ``run`` makes a folder of each below DIR, as
``kvopt study`` does: it may be ended at any moment, and the same command goes on. ``keep`` takes
over what a folder holds into ``instances/tables/``, a line for each draw with its records and its
certificate, and keeps the better of old and new on each side, with who found it, when and in how
many seconds. ``schedules`` does so with files of schedules, each of which took S seconds, such as
``benchmarks/exact.py --schedules DIR`` writes. Prices of states are rounded to 16ths, 32nds or
64ths first, and only the last ones are kept, where that loses at most 0.15% of the bound, or half a
percent where they spare a search: it takes a tenth of the bytes. ``show`` works out the
tables from these files alone, without a solver. With ``--check`` each draw is made again from its
seed, and its certificate goes through `kvopt.verify`. ``unpack`` makes folders again, for ``kvopt
report`` and to go on from.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from kept_draws import (
    Draw,
    better,
    coarser,
    draws_of,
    fault_of,
    hash_of,
    read,
    with_schedules,
    write,
)
from msgspec import structs

from kvopt.errors import InvalidInput, KvoptError
from kvopt.files.atomic import write_atomically
from kvopt.kernels.pipes import writing_output
from kvopt.studies import Record, Study, StudyProgress, builtin_study, run_study
from kvopt.studies.description import TaskLimits, resolved_text
from kvopt.studies.ratio_intervals import by_policy
from kvopt.studies.record_lines import FILE
from kvopt.studies.sources import Entry
from kvopt.studies.tasks import tasks_of

sys.path.append(str(Path(__file__).parents[1] / "benchmarks" / "papers"))

from studies import CLAIMS

STUDIES = ("arrival-1", "arrival-2", "wang-table-4")
KEPT = Path(__file__).parent / "tables"
GOAL = Fraction(3, 100)
"""Width that the interval of the mean ratio of the first scheduler should have at most."""


def main() -> int:
    """Do what is asked for; the status is 1 if a draw failed or a check did."""
    options = parsed()
    try:
        return max(done(builtin_study(name), options) for name in options.study)
    except KvoptError as error:
        print(error, file=sys.stderr)
        return 1


def done(study: Study, options: argparse.Namespace) -> int:
    """Do what is asked for with one study; return the status."""
    kept = KEPT / f"{study.name}.jsonl.xz"
    if options.what == "show":
        return show(study, kept, check=options.check)
    folder = options.folder / study.name
    if options.what == "run":
        return run(study, folder, options)
    if options.what == "keep":
        return keep(study, kept, draws_of(folder))
    if options.what == "schedules":
        return keep(study, kept, with_schedules(read(kept), options.folder, options.seconds))
    unpack(study, read(kept), folder)
    return 0


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="what", required=True)
    for what in ("run", "keep", "schedules", "show", "unpack"):
        command = commands.add_parser(what)
        if what != "show":
            command.add_argument("folder", type=Path, metavar="DIR")
        command.add_argument("--study", nargs="+", choices=STUDIES, default=list(STUDIES))
        if what == "run":
            command.add_argument("--after", type=int, help="leave out so many first of each row")
            command.add_argument("--draws", type=int, help="only so many of each row")
            command.add_argument("--time-limit", type=float, help="seconds of each draw")
            command.add_argument("--threads", type=int, help="threads of each draw")
            command.add_argument("--jobs", type=int, default=1, help="draws at a time")
        elif what == "schedules":
            command.add_argument("--seconds", type=float, required=True, help="that each took")
        elif what == "show":
            command.add_argument("--check", action="store_true")
    return parser.parse_args()


# ------------------------------------------------------------------------------ running, keeping


def run(study: Study, folder: Path, options: argparse.Namespace) -> int:
    """Run a study, or what is left of it; print how long the whole would take."""
    study = with_limits(after(study, options.after or 0), options.time_limit, options.threads)
    result = run_study(study, folder, jobs=options.jobs, limit=options.draws, observer=_tell)
    whole, found = sum(entry.draws for entry in study.entries), result.progress
    print(f"{study.name}: {found.done} of {whole} draws done, {found.failed} failed", end="")
    print(f"; {found.done - found.before} now, in {found.seconds:.0f} s", end="")
    if found.rate:
        print(f"; the whole at this rate: {whole / found.rate / 3600:.1f} hours", end="")
    print(flush=True)
    if result.signal_number is not None:
        sys.exit(128 + result.signal_number)
    return int(found.failed > 0)


def after(study: Study, left_out: int) -> Study:
    """Return a study without the first draws of each row; the others keep their seeds."""

    def rest(entry: Entry) -> Entry:
        first = (entry.seed or 0) + left_out
        return structs.replace(entry, seed=first, draws=entry.draws - left_out)

    if not all(0 <= left_out < entry.draws for entry in study.entries):
        raise InvalidInput(f"must leave a draw of each row, got {left_out}", field="--after")
    return replace(study, entries=tuple(map(rest, study.entries)))


def with_limits(study: Study, seconds: float | None, threads: int | None) -> Study:
    """Return a study with other limits of each draw; None leaves its own."""

    def changed(limits: TaskLimits) -> TaskLimits:
        longest = limits.time_limit if seconds is None else seconds
        return replace(limits, time_limit=longest, threads=threads or limits.threads)

    return replace(study, limits=tuple(changed(each) for each in study.limits))


def _tell(progress: StudyProgress) -> None:
    print(f"\r{progress.done}/{progress.instances}", end="\r", file=sys.stderr, flush=True)


def keep(study: Study, path: Path, found: Iterable[Draw]) -> int:
    """Take over draws where they are better; return 1 if a certificate is not valid."""
    places = places_of(study)
    before = {hash_of(draw): draw for draw in read(path)}
    kept = {key: coarser(draw) for key, draw in before.items()}
    new = [coarser(draw) for draw in found]
    for draw in new:
        old = kept.get(hash_of(draw))
        kept[hash_of(draw)] = draw if old is None else better(old, draw)
    changed = [draw for key, draw in kept.items() if draw is not before.get(key)]
    bad = faults_of(changed, places)
    if bad:
        print("\n".join(bad), file=sys.stderr)
        return 1
    write(sorted(kept.values(), key=lambda draw: places[hash_of(draw)]), path)
    print(f"{study.name}: {len(new)} draws taken over, {len(kept)} kept")
    return 0


# ---------------------------------------------------------------------- recomputing and checking


def show(study: Study, path: Path, *, check: bool) -> int:
    """Print the table of a study from what is kept; return 1 if a check fails."""
    draws, places, began = read(path, priced=check), places_of(study), time.monotonic()
    print(f"## {study.name}: {study.title}\n\n{len(draws)} of {len(places)} draws are kept.")
    faults = faults_of(draws, places) if check else []
    if check:
        print(f"{len(draws)} certificates checked in {time.monotonic() - began:.0f} s: ", end="")
        print(f"{len(faults)} faults.")
        print("\n".join(faults))
    records = [Record.from_json(row) for draw in draws for row in draw["records"]]
    if records:
        print("\n".join(["", *table(records), "", *verdicts(study, records)]))
    print()
    return int(bool(faults))


def table(records: Sequence[Record]) -> list[str]:
    """Return mean and worst ratio of each scheduler on each family as certified intervals."""
    lines = ["| family | scheduler | draws | proved | mean x optimum | width | worst x optimum |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for family in dict.fromkeys(record.instance.family for record in records):
        mine = [record for record in records if record.instance.family == family]
        for row in by_policy(mine):
            width = row.mean.width
            shown = "-" if width is None else f"{float(width):.2%}"
            lines.append(
                f"| {family} | `{row.policy}` | {len(row.done)} | {row.proved} | {row.mean} | "
                f"{shown}{' (goal met)' if width is not None and width <= GOAL else ''} | "
                f"{row.worst} |"
            )
    return lines


def verdicts(study: Study, records: Sequence[Record]) -> list[str]:
    """Return what became of the published claims."""
    found = CLAIMS[study.name](records) if study.name in CLAIMS else ()
    lines = ["| claim | published | found | verdict |", "|---|---|---|---|"]
    return lines + [f"| {v.claim} | {v.published} | {v.found} | **{v.verdict}** |" for v in found]


def places_of(study: Study) -> dict[str, int]:
    """Draw all instances of a study again; return the place of each hash among them."""
    return {task.instance.hash: place for place, task in enumerate(tasks_of(study))}


def faults_of(draws: Sequence[Draw], places: Container[str]) -> list[str]:
    """Say what is wrong with draws; each takes some seconds, so how far it is is told."""
    faults = []
    for number, draw in enumerate(draws):
        print(f"\r{number}/{len(draws)} checked", end="\r", file=sys.stderr, flush=True)
        if fault := fault_of(draw, places):
            faults.append(fault)
    return faults


def unpack(study: Study, draws: Sequence[Draw], folder: Path) -> None:
    """Write a folder of a study; with the limits of all draws ``run`` goes on from there."""
    limits = [record["limits"] for draw in draws for record in draw["records"]]
    of_all = {(each["time_limit"], each["threads"]) for each in limits}
    if len(of_all) == 1:
        study = with_limits(study, *of_all.pop())
    try:
        (folder / "certificates").mkdir(parents=True)
    except FileExistsError:
        raise InvalidInput("is there already", file=str(folder)) from None
    write_atomically(folder / "study.toml", resolved_text(study))
    rows = []
    for draw in draws:
        rows += draw["records"]
        path = folder / draw["records"][0]["certificate"]
        write_atomically(path, json.dumps(draw["certificate"]))
    write_atomically(folder / FILE, "".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    with writing_output():
        sys.exit(main())
