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
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import certified_gaps
import exact
import model_building
import policies
import traces
from verifying import verified

from kvopt import bound, generate, run, solve
from kvopt.kernels.pipes import ended_by_reader
from kvopt.simulate.running import run as simulate

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

Figures = dict[str, float]


@dataclass(frozen=True)
class Question:
    """What is measured: its name, words and command, whether quickly, and from which trace."""

    name: str
    text: str
    command: str
    measure: Callable[[], Figures]
    quick: bool = False
    file: Path | None = None


@dataclass(frozen=True)
class Recorded:
    """Figures of a question, and where they are from."""

    figures: Mapping[str, float]
    machine: str
    commit: str


def main() -> None:
    """Ask the questions one by one and print the table of their answers."""
    options = parsed()
    recorded = read(RECORD)
    found: dict[str, Figures] = {}
    asked = [q for q in questions(options.data) if chosen(q, options)]
    interrupted = False
    try:
        answer(asked, found)
    except KeyboardInterrupt:
        interrupted = True
        say(f"interrupted after {len(found)} of {len(asked)} questions")
    print("\n".join(table([q for q in asked if q.name in found], recorded, found)))
    print("\nMeasured now:", machine())
    for place in dict.fromkeys(recorded[name].machine for name in found if name in recorded):
        print("Recorded:", place)
    if options.record:
        here = {name: Recorded(figures, machine(), commit()) for name, figures in found.items()}
        write(RECORD, recorded | here)
        say(f"{len(here)} questions recorded in {RECORD.name}")
    if interrupted:
        sys.exit(130)


def parsed() -> Namespace:
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


def chosen(question: Question, options: Namespace) -> bool:
    """Tell whether a question is asked."""
    if options.only:
        return question.name in options.only
    return question.quick or not options.quick


def say(text: str) -> None:
    """Tell how it goes, beside the table."""
    print(text, file=sys.stderr, flush=True)


# ---------------------------------------------------------------------------------------- questions


def questions(data: Path) -> list[Question]:
    """Return all questions, headlines first."""
    return [
        proofs("arrival-1", 12, range(5), quick=True),
        proofs("arrival-1", 16, range(5), quick=True),
        proofs("arrival-1", 20, (1, 3, 4), quick=True),
        full_size("arrival-1", (3,), quick=True),
        full_size("arrival-2", (3,), quick=True),
        certified("conv", 10_000, data, quick=True),
        certified("chat", 10_000, data, quick=True),
        policies_at(100_000, arrivals=False, quick=True),
        building(145_000, quick=True),
        proofs("arrival-1", 20, range(5)),
        proofs("arrival-2", 12, range(5)),
        proofs("arrival-2", 16, range(5)),
        proofs("arrival-2", 20, range(5)),
        full_size("arrival-1", range(20)),
        full_size("arrival-2", range(20)),
        certified("mixed", 10_000, data),
        certified("code", 8_000, data),
        policies_at(100_000, arrivals=True),
        building(22_000),
        building(500_000),
    ]


def proofs(family: str, n: int, seeds: Iterable[int], *, quick: bool = False) -> Question:
    """Ask how long proofs of optima take."""
    drawn = tuple(seeds)
    text = " ".join(map(str, drawn))
    return Question(
        f"proofs-{family}-{n}{few(drawn, 5)}",
        f"{family}, n = {n}, seeds {text}: proof by the exact engine",
        f"benchmarks/exact.py proofs --family {family} --n {n} --seeds {text} --limit {LIMIT:g} "
        "--threads 1",
        partial(measure_proofs, family, n, drawn),
        quick,
    )


def measure_proofs(family: str, n: int, seeds: Sequence[int]) -> Figures:
    times = []
    options = Namespace(limit=LIMIT, threads=1)
    for seed in seeds:
        seconds, upper, lower = exact.proved(generate(family, n, seed=seed), "exact", options)
        times.append(seconds if upper is not None and upper == lower else float("inf"))
        say(f"  seed {seed}: {times[-1]:.1f} s")
    return {"median s": statistics.median(times)}


def full_size(family: str, seeds: Iterable[int], *, quick: bool = False) -> Question:
    """Ask which gap is left at the size of the papers."""
    drawn = tuple(seeds)
    text = " ".join(map(str, drawn))
    return Question(
        f"full-size-{family}{few(drawn, 20)}",
        f"{family} of full size, seed{'s' * (len(drawn) > 1)} {text}: gap after {LIMIT:g} s",
        f"benchmarks/exact.py gaps --family {family} --seeds {text} --seconds {LIMIT:g} "
        "--threads 1",
        partial(measure_full_size, family, drawn),
        quick,
    )


def measure_full_size(family: str, seeds: Sequence[int]) -> Figures:
    gaps = []
    options = Namespace(seconds=[LIMIT], threads=1)
    for seed in seeds:
        [gap], _ = exact.certified(generate(family, seed=seed), options)
        gaps.append(gap)
        say(f"  seed {seed}: {gap:.2%}")
    return {"mean gap %": 100 * statistics.mean(gaps)}


def few(drawn: Sequence[int], whole: int) -> str:
    """Return what tells a question about some draws from that about all."""
    return "" if len(drawn) == whole else "-seeds-" + "-".join(map(str, drawn))


def certified(name: str, n: int, data: Path, *, quick: bool = False) -> Question:
    """Ask how well schedules of many requests are certified."""
    words = {
        "conv": "Azure conversations",
        "code": "Azure code",
        "mixed": "arXiv and the stand-in, 1:4",
        "chat": "the drawn stand-in of conversations",
    }
    file = {"mixed": "arxiv", "chat": None}.get(name, name)
    return Question(
        f"certified-{name}-{n}",
        f"{n:,} requests certified: {words[name]}, {BOUND_LIMIT:g} s for each side",
        f"benchmarks/certified_gaps.py --data DIR --cases {name}:{n} --limit {BOUND_LIMIT:g} "
        "--policies svf beams",
        partial(measure_certified, name, n, data),
        quick,
        data / traces.FILES[file][0] if file else None,
    )


def measure_certified(name: str, n: int, data: Path) -> Figures:
    instance = certified_gaps.case_instance(data, name, n, arrivals=False)
    result = bound(instance, "lagrangian", time_limit=BOUND_LIMIT)
    exact.stop_if_interrupted(result)
    assert result.value is not None
    say(f"  bound {result.value:,}")
    runs = {
        "svf": run(instance, "svf"),
        "beams": certified_gaps.beamed(instance, BOUND_LIMIT),
    }
    judged = list(runs.values())
    seconds, size = verified(certified_gaps.certificate_of(instance, judged, result))
    say(f"  verified in {seconds:.1f} s, {size / 1e6:.1f} MB")
    figures = {"bound": float(result.value)}
    for policy, found in runs.items():
        assert found.objective is not None
        figures[f"{policy} gap %"] = 100 * (found.objective - result.value) / found.objective
    return figures


def policies_at(n: int, *, arrivals: bool, quick: bool = False) -> Question:
    """Ask how long policies take on many requests."""
    return Question(
        f"policies-{n}{'-arrivals' if arrivals else ''}",
        f"policies on {n:,} requests of the stand-in, {'two a round' if arrivals else 'at once'}",
        f"benchmarks/policies.py --sizes {n} -- fcfs mc-sf svf",
        partial(measure_policies, n, arrivals),
        quick,
    )


def measure_policies(n: int, arrivals: bool) -> Figures:
    simulate(policies.backlog(100, True), "mc-sf")  # loads what is loaded once
    instance = policies.backlog(n, arrivals)
    return {f"{name} s": simulate(instance, name).wall_seconds for name in ("fcfs", "mc-sf", "svf")}


def building(columns: int, *, quick: bool = False) -> Question:
    """Ask how long the time-indexed model takes to build, and how large it is."""
    return Question(
        f"model-building-{columns}",
        f"model of {columns:,} columns: arrays and Pyomo",
        f"benchmarks/model_building.py --columns {columns}",
        partial(measure_building, columns),
        quick,
    )


def measure_building(columns: int) -> Figures:
    sides = {kind: model_building.measured(kind, columns) for kind in ("arrays", "pyomo")}
    figures: Figures = {}
    for kind, (seconds, megabytes, _) in sides.items():
        figures |= {f"{kind} s": seconds, f"{kind} MB": megabytes}
    return figures


def answer(asked: Sequence[Question], found: dict[str, Figures]) -> None:
    """Measure what is asked and put it down as it comes."""
    if any(q.name.startswith(("proofs", "full-size", "certified")) for q in asked):
        say("compiling")
        solve(generate("arrival-1", 8, seed=1), "exact", time_limit=60)
        small = generate("conversation", 20, traces.MEMORY, seed=1)
        bound(small, "lagrangian")
        certified_gaps.beamed(small, 1.0)
    for i, question in enumerate(asked, 1):
        say(f"{i} of {len(asked)}: {question.text}")
        if question.file is not None and not question.file.exists():
            say(f"  skipped: no {question.file}")
            continue
        began = time.monotonic()
        found[question.name] = question.measure()
        say(f"  {time.monotonic() - began:.0f} s")


# ------------------------------------------------------------------------------------------- record


def read(path: Path) -> dict[str, Recorded]:
    """Read the recorded figures of each question."""
    if not path.exists():
        return {}
    entries = tomllib.loads(path.read_text())
    return {
        name: Recorded(entry["figures"], entry["machine"], entry["commit"])
        for name, entry in entries.items()
    }


def write(path: Path, recorded: Mapping[str, Recorded]) -> None:
    """Write them."""
    blocks = [FIRST_LINES]
    for name, entry in recorded.items():
        figures = ", ".join(f'"{key}" = {short(v)}' for key, v in entry.figures.items())
        blocks.append(
            f"[{name}]\nfigures = {{ {figures} }}\n"
            f"machine = {json.dumps(entry.machine)}\ncommit = {json.dumps(entry.commit)}\n"
        )
    path.write_text("\n".join(blocks))


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
    rows = [("question", "figure", "recorded", "commit", "measured now", "command")]
    for question in asked:
        known = recorded.get(question.name, Recorded({}, "", ""))
        text, commit_, command = question.text, known.commit, f"`python {question.command}`"
        for key in found[question.name]:
            before, now = shown(known.figures.get(key)), shown(found[question.name][key])
            rows.append((text, key, before, commit_, now, command))
            text, commit_, command = "", "", ""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    return [lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]]


if __name__ == "__main__":
    with ended_by_reader():
        main()
