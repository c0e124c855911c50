"""Measure the headline figures again, beside the recorded ones.

    python benchmarks/all.py [--quick] [--only NAME ...] [--data DIR] [--record]

``--quick`` takes some eight minutes on two idle cores; without it some questions are asked of more
draws and sizes as well, for up to an hour.  ``--only`` takes the questions named, quick or not.
The recorded figures are those of ``recorded.toml``; ``--record`` writes what was measured there, as
figures of this machine and commit, and leaves the others as they are.  Questions about traces are
skipped where ``--data`` does not have them; the stand-in, which is drawn, is asked in any case.
Ctrl-C ends it with the questions that are answered by then.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import exact
import model_building
import policies
import traces

from kvopt import Certificate, Instance, Schedule, bound, generate, run, solve
from kvopt.heuristics.trace_beams import search_traces
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits
from kvopt.kernels.budget import Budget
from kvopt.kernels.pipes import writing_output

HERE = Path(__file__).resolve().parent
RECORD = HERE / "recorded.toml"
DATA = HERE.parents[1] / "shared" / "data"
FIRST_LINES = """\
# Headline figures, which benchmarks/all.py measures again: of each question what was measured,
# where and with which commit ("" if unknown).  The tables around them are in RESULTS.md.
"""
LIMIT = 60.0
"""Seconds of a proof with --quick, and of a gap at full size."""
BOUND_LIMIT = 30.0
"""Seconds of a bound of 10,000 requests, and of the beams beside it."""
TRACES = {
    "conv": "Azure conversations",
    "chat": "the drawn stand-in of conversations",
    "mixed": "arXiv and the stand-in, 1:4",
    "code": "Azure code",
}
SOME = ("fcfs", "mc-sf", "svf")

Figures = dict[str, float]
Recorded = Mapping[str, Any]
"""Of a question ``figures``, ``machine`` and ``commit``."""


@dataclass(frozen=True)
class Question:
    """What is measured: its name, words and function, whether quickly, and from which trace."""

    name: str
    text: str
    measure: Callable[[], Figures]
    quick: bool = False
    file: Path | None = None


def main() -> None:
    """Ask the questions one by one and print the table of their answers."""
    options = parsed()
    recorded: dict[str, Recorded] = tomllib.loads(RECORD.read_text())
    found: dict[str, Figures] = {}
    asked = [
        q for q in questions(options.data)
        if (q.name in options.only if options.only else q.quick or not options.quick)
    ]  # fmt: skip
    interrupted = False
    try:
        answer(asked, found)
    except KeyboardInterrupt:
        interrupted = True
        say(f"interrupted after {len(found)} of {len(asked)} questions")
    print("\n".join(table([q for q in asked if q.name in found], recorded, found)))
    print("\nMeasured now:", machine())
    for place in dict.fromkeys(recorded[name]["machine"] for name in found if name in recorded):
        print("Recorded:", place)
    if options.record:
        here = {"machine": machine(), "commit": commit()}
        write(recorded | {name: {"figures": figures, **here} for name, figures in found.items()})
        say(f"{len(found)} questions recorded in {RECORD.name}")
    if interrupted:
        sys.exit(130)


def parsed() -> argparse.Namespace:
    """Read the command line."""
    names = [q.name for q in questions(DATA)]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="the headlines, in some eight minutes")
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--data", type=Path, default=DATA, help="folder of traces")
    parser.add_argument("--record", action="store_true", help=f"write to {RECORD.name}")
    return parser.parse_args()


def say(text: str) -> None:
    """Tell how it goes, beside the table."""
    print(text, file=sys.stderr, flush=True)


# ---------------------------------------------------------------------------------------- questions


def questions(data: Path) -> Iterator[Question]:
    """Yield all questions, headlines first."""
    for family, n, seeds, quick in (
        ("arrival-1", 12, (0, 1, 2, 3, 4), True),
        ("arrival-1", 16, (0, 1, 2, 3, 4), True),
        ("arrival-1", 20, (1, 3, 4), True),
        ("arrival-1", 20, (0, 1, 2, 3, 4), False),
        ("arrival-2", 12, (0, 1, 2, 3, 4), False),
        ("arrival-2", 16, (0, 1, 2, 3, 4), False),
        ("arrival-2", 20, (0, 1, 2, 3, 4), False),
    ):
        yield Question(
            f"proofs-{family}-{n}{few(seeds, 5)}",
            f"{family}, n = {n}, seeds {words(seeds)}: proof by the exact engine",
            partial(measure_proofs, family, n, seeds),
            quick,
        )
    for drawn, quick in (((3,), True), (tuple(range(20)), False)):
        for family in ("arrival-1", "arrival-2"):
            yield Question(
                f"full-size-{family}{few(drawn, 20)}",
                f"{family} of full size, seeds {words(drawn)}: gap after {LIMIT:g} s",
                partial(measure_full_size, family, drawn),
                quick,
            )
    for name, trace in TRACES.items():
        n = 8_000 if name == "code" else 10_000
        file = {"mixed": "arxiv", "chat": None}.get(name, name)
        yield Question(
            f"certified-{name}-{n}",
            f"{n:,} requests certified: {trace}, {BOUND_LIMIT:g} s for each side",
            partial(measure_certified, data, f"{name}:{n}"),
            quick=name in ("conv", "chat"),
            file=data / traces.FILES[file][0] if file else None,
        )
    for arrivals in (False, True):
        when = "two a round" if arrivals else "at once"
        yield Question(
            f"policies-100000{'-arrivals' * arrivals}",
            f"policies on 100,000 requests of the stand-in, {when}",
            partial(measure_policies, 100_000, arrivals),
            quick=not arrivals,
        )
    for columns in (145_000, 22_000, 500_000):
        yield Question(
            f"model-building-{columns}",
            f"model of {columns:,} columns: arrays and Pyomo",
            partial(measure_building, columns),
            quick=columns == 145_000,
        )


def few(drawn: Sequence[int], whole: int) -> str:
    """Return what tells a question about some draws from that about all."""
    return "" if len(drawn) == whole else "-seeds-" + "-".join(map(str, drawn))


def words(seeds: Sequence[int]) -> str:
    return " ".join(map(str, seeds))


def measure_proofs(family: str, n: int, seeds: Sequence[int]) -> Figures:
    times = []
    for seed in seeds:
        found = solve(generate(family, n, seed=seed), "exact", time_limit=LIMIT, threads=1)
        exact.stop_if_interrupted(found)
        times.append(found.seconds if found.status == "optimal" else float("inf"))
        say(f"  seed {seed}: {times[-1]:.1f} s")
    return {"median s": statistics.median(times)}


def measure_full_size(family: str, seeds: Sequence[int]) -> Figures:
    gaps = []
    for seed in seeds:
        [gap], _ = exact.certified(generate(family, seed=seed), [LIMIT], threads=1)
        gaps.append(gap)
        say(f"  seed {seed}: {gap:.2%}")
    return {"mean gap %": 100 * statistics.mean(gaps)}


def measure_certified(data: Path, case: str) -> Figures:
    instance = traces.of_case(data, case)
    result = bound(instance, "lagrangian", time_limit=BOUND_LIMIT)
    exact.stop_if_interrupted(result)
    assert result.value is not None
    say(f"  bound {result.value:,}")
    best = beamed(instance, BOUND_LIMIT)
    sides = {"svf": run(instance, "svf").objective, "beams": best.objective}
    seconds, size = traces.verified(Certificate(instance, best, result.checked))
    say(f"  verified in {seconds:.1f} s, {size / 1e6:.1f} MB")
    gaps = {
        f"{name} gap %": 100 * (1 - result.value / total) for name, total in sides.items() if total
    }
    return {"bound": float(result.value), **gaps}


def beamed(instance: Instance, seconds: float) -> Schedule:
    """Return the best schedule that beams over the whole trace find."""
    search = Search(instance, Limits(threads=2))
    search.offer_starts(run(instance, "svf").starts, "svf")
    search_traces(search, Budget(seconds))
    assert search.schedule is not None
    return search.schedule


def measure_policies(n: int, arrivals: bool) -> Figures:
    run(policies.backlog(100, True), "mc-sf")  # loads what is loaded once
    instance = policies.backlog(n, arrivals)
    return {f"{name} s": run(instance, name).wall_seconds for name in SOME}


def measure_building(columns: int) -> Figures:
    figures: Figures = {}
    for kind in ("arrays", "pyomo"):
        seconds, megabytes = model_building.measured(kind, columns)
        figures |= {f"{kind} s": seconds, f"{kind} MB": megabytes}
    return figures


def answer(asked: Sequence[Question], found: dict[str, Figures]) -> None:
    """Measure what is asked and put it down as it comes."""
    if any(q.name.startswith(("proofs", "full-size", "certified")) for q in asked):
        say("compiling")
        solve(generate("arrival-1", 8, seed=1), "exact", time_limit=60)
        small = generate("conversation", 20, traces.MEMORY, seed=1)
        bound(small, "lagrangian")
        beamed(small, 1.0)
    for i, question in enumerate(asked, 1):
        say(f"{i} of {len(asked)}: {question.text}")
        if question.file is not None and not question.file.exists():
            say(f"  skipped: no {question.file}")
            continue
        began = time.monotonic()
        found[question.name] = question.measure()
        say(f"  {time.monotonic() - began:.0f} s")


# ------------------------------------------------------------------------------------------- record


def write(recorded: Mapping[str, Recorded]) -> None:
    """Write the recorded figures of each question."""
    blocks = [FIRST_LINES]
    for name, entry in recorded.items():
        figures = ", ".join(f'"{key}" = {short(v)}' for key, v in entry["figures"].items())
        blocks.append(
            f"[{name}]\nfigures = {{ {figures} }}\n"
            f"machine = {json.dumps(entry['machine'])}\ncommit = {json.dumps(entry['commit'])}\n"
        )
    RECORD.write_text("\n".join(blocks))


def short(value: float) -> str:
    """Return a figure with three digits, or whole if it has more."""
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def shown(value: float | None) -> str:
    """Return a figure of the table; infinite are seconds that did not suffice."""
    if value is None or value == float("inf"):
        return "-" if value is None else "open"
    return f"{value:,.0f}" if value >= 1000 else short(value)


def machine() -> str:
    """Describe this machine, and how busy it is."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("highspy", "ortools"))
    return (
        f"{os.cpu_count()} {platform.machine()} cores, {platform.system()}; "
        f"Python {platform.python_version()}, {versions}; load {os.getloadavg()[0]:.1f}"
    )


def commit() -> str:
    """Return the commit that is checked out, with a mark if files were changed since."""
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def table(
    asked: Sequence[Question], recorded: Mapping[str, Recorded], found: Mapping[str, Figures]
) -> list[str]:
    """Return a Markdown table: a row for each figure, recorded and measured."""
    rows = ["| question | figure | recorded | commit | measured now | command |", "|" + 6 * "---|"]
    for question in asked:
        known = recorded.get(question.name, {"figures": {}, "commit": ""})
        text, said = question.text, known["commit"]
        command = f"`python benchmarks/all.py --only {question.name}`"
        for key, value in found[question.name].items():
            before, now = shown(known["figures"].get(key)), shown(value)
            rows.append(f"| {text} | {key} | {before} | {said} | {now} | {command} |")
            text = said = command = ""
    return rows


if __name__ == "__main__":
    with writing_output():
        main()
