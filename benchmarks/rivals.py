"""Other solvers on the same draws, in the same run and with the same limit.

    python -m pip install didppy pumpkin-solver pyscipopt     # none is a dependency of kvopt
    python benchmarks/rivals.py [--rivals NAME ...] [--family arrival-1 arrival-2] [--n 8 10 12]
                                [--seeds 0 1] [--limit 60] [--threads 1] [--ram 6]
    python benchmarks/rivals.py --rivals kvopt cpsat highs --instances instances/arrival-1-n*.json
                                --limit 600 --save instances/tables/engines.json

Each rival of ``rival_models/`` works on each draw in a process of its own, from the schedule of the
best policy and with proved start windows.  What it finds is judged here: schedules are checked in
integers by kvopt, and a bound above a schedule of any rival is an error of its model, which is
printed and ends this with status 1.  A rival that is not installed is left out with a word.

The limit counts seconds of the processor, not of the clock, so that a busy machine is no
disadvantage; CAASDy and Pumpkin, which have a clock only, get as much more of it as the machine is
busy when they begin.  A cell has the processor seconds to a proof, in bold, or else bound and total
latency when the limit was over.

With ``--instances`` a file of the library takes the place of a draw, and ``--save`` keeps the rows
for the page of the library; an instance that the file has is not run again, and a rival without a
proof is not asked for later files whose names begin in the same way.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from rival_models import Offers, Problem

from kvopt import Instance, Schedule, generate, read_instance, run
from kvopt.bounds.start_windows import start_windows
from kvopt.kernels.pipes import writing_output

RIVALS = {
    "kvopt": ("engines", "exact", "kvopt"),
    "cpsat": ("engines", "cpsat", "ortools"),
    "highs": ("engines", "highs", "highspy"),
    "scip": ("scip", "work", "pyscipopt"),
    "didp-cabs": ("didp", "cabs", "didppy"),
    "didp-caasdy": ("didp", "caasdy", "didppy"),
    "pumpkin": ("pumpkin", "work", "pumpkin_solver"),
}
"""Name of each rival: its file, its function and the module that it needs."""

POLICIES = ("fcfs", "mc-sf", "svf", "h-sf")
"""Where all begin: with the best schedule of these."""

GRACE = 1.5
"""Times the limit after which a process is ended."""


@dataclass
class Outcome:
    """What a rival found on a draw.

    Parameters
    ----------
    rival, instance
        Names of both.
    value, bound
        The best schedule, checked, and the best bound, claimed; None where there is none.
    wall, processor
        Seconds until it ended.
    fault
        What is wrong with an answer, or how its process ended.
    """

    rival: str
    instance: str
    value: int | None = None
    bound: int | None = None
    wall: float = math.nan
    processor: float = math.nan
    fault: str = ""

    @property
    def proved(self) -> bool:
        """Whether both sides meet."""
        return self.value is not None and self.value == self.bound

    def saved(self) -> dict[str, object]:
        """Return the fields that a table needs."""
        kept = {"value": self.value, "bound": self.bound, "processor": self.processor}
        return {**kept, "fault": self.fault}

    def cell(self) -> str:
        """Return it as a cell of the table."""
        sides = "-".join("?" if side is None else f"{side}" for side in (self.bound, self.value))
        return f"**{self.processor:.1f} s**" if self.proved and not self.fault else sides


def main() -> None:
    """Run the rivals, or be one of them."""
    options = parsed()
    if options.alone:
        alone(options)
        return
    rivals = [name for name in options.rivals if installed(name)]
    groups = {"instance": options.instances} if options.instances else drawn(options)
    outcomes: list[Outcome] = []
    for title, draws in groups.items():
        print(f"\n{load()}\n\n| {title} | best known | {' | '.join(rivals)} |")
        print("|---|---|" + "---|" * len(rivals), flush=True)
        unproved: set[tuple[str, str]] = set()
        here: list[Outcome] = []
        for draw in draws:
            group = set_of(Path(draw).stem) if options.instances else draw
            row_of = row(draw, [name for name in rivals if (group, name) not in unproved], options)
            unproved |= {(group, outcome.rival) for outcome in row_of if not outcome.proved}
            here += row_of
        outcomes += here
        proofs = Counter(outcome.rival for outcome in here if outcome.proved)
        cells = " | ".join(f"{proofs[name]}" for name in rivals)
        print(f"| proved | | {cells} |", flush=True)
    print(f"\n{load()}")
    faults = [o for o in outcomes if o.fault]
    for outcome in faults:
        print(f"{outcome.instance}: {outcome.rival}: {outcome.fault}")
    sys.exit(any("error of the model" in outcome.fault for outcome in faults))


def drawn(options: argparse.Namespace) -> dict[str, list[str]]:
    """Return the draws of each family and size."""
    return {
        f"{family}, n = {n}": [f"{family}:{n}:{seed}" for seed in options.seeds]
        for family in options.family
        for n in options.n
    }


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rivals", nargs="+", choices=RIVALS, default=list(RIVALS))
    parser.add_argument("--family", nargs="+", default=["arrival-1", "arrival-2"])
    parser.add_argument("--n", type=int, nargs="+", default=[8, 10, 12, 14, 16, 20])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of the processor")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--ram", type=float, default=6.0, help="gigabytes of each rival")
    parser.add_argument("--instances", nargs="+", metavar="FILE", help="in place of draws")
    parser.add_argument("--save", type=Path, metavar="FILE", help="rows of instances, as JSON")
    parser.add_argument("--alone", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def load() -> str:
    """Say how busy the machine is."""
    return "Load of the machine: " + ", ".join(f"{load:.1f}" for load in os.getloadavg())


def installed(name: str) -> bool:
    """Whether the module of a rival is there; says so if it is not."""
    if find_spec(RIVALS[name][2]) is not None:
        return True
    print(f"{name} is left out: {RIVALS[name][2]} is not installed", file=sys.stderr)
    return False


def set_of(name: str) -> str:
    """Return the name of an instance of the library without its size."""
    return name.rpartition("-n")[0]


def instance_of(draw: str) -> Instance:
    """Return an instance from its file, or draw it."""
    if draw.endswith(".json"):
        return read_instance(draw)
    family, n, seed = draw.split(":")
    return generate(family, int(n), seed=int(seed))


def row(draw: str, rivals: Sequence[str], options: argparse.Namespace) -> list[Outcome]:
    """Run rivals on a draw, print its row and return what they wrote."""
    instance = instance_of(draw)
    saved = json.loads(options.save.read_text()) if options.save and options.save.exists() else {}
    name = Path(draw).stem if options.save else instance.name or draw
    if name in saved:
        return [Outcome(rival, name, **cell) for rival, cell in saved[name]["rivals"].items()]
    outcomes = [judged(rival, instance, answers(rival, draw, options)) for rival in rivals]
    best = against_each_other(outcomes)
    by_rival = {outcome.rival: outcome.cell() for outcome in outcomes}
    texts = " | ".join(by_rival.get(rival, "") for rival in options.rivals)
    print(f"| {name} | {best} | {texts} |", flush=True)
    if options.save:
        cells = {outcome.rival: outcome.saved() for outcome in outcomes}
        saved[name] = {"limit": options.limit, "load": os.getloadavg()[0], "rivals": cells}
        options.save.write_text(json.dumps(dict(sorted(saved.items())), indent=1) + "\n")
    return outcomes


def answers(rival: str, draw: str, options: argparse.Namespace) -> list[str]:
    """Let a rival work on a draw in a process of its own; return the lines that it wrote."""
    command = [sys.executable, __file__, "--alone", rival, draw, "--limit", str(options.limit)]
    command += ["--threads", str(options.threads), "--ram", str(options.ram)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, error = child.communicate()
    if child.returncode:
        last = (error.strip().splitlines() or [""])[-1][:80]
        out += json.dumps({"fault": f"ended with status {child.returncode}: {last}"})
    return out.splitlines()


def judged(name: str, instance: Instance, lines: Sequence[str]) -> Outcome:
    """Check what a rival wrote: schedules in integers, and that its bound is below them."""
    found = Outcome(name, instance.name or "")
    for line in lines:
        said = json.loads(line)
        found.wall, found.processor = said.get("wall", found.wall), said.get("cpu", found.processor)
        if "starts" in said:
            take_schedule(found, instance, said["starts"])
        elif "bound" in said:
            bound = math.ceil(said["bound"] - 1e-6 * max(1.0, abs(said["bound"])))
            found.bound = bound if found.bound is None else max(bound, found.bound)
        elif "fault" in said:
            found.fault = said["fault"]
    return found


def take_schedule(found: Outcome, instance: Instance, starts: Sequence[int]) -> None:
    """Keep the better of the schedule known and another one, which is checked."""
    check = Schedule(instance, starts).check()
    if not check.feasible:
        found.fault = f"error of the model: no schedule: {check.violations[0]}"
    elif found.value is None or check.objective < found.value:
        found.value = check.objective


def against_each_other(outcomes: Sequence[Outcome]) -> int | None:
    """Return the least total latency of all, and mark bounds above it as errors."""
    best = min((each.value for each in outcomes if each.value is not None), default=None)
    for each in outcomes:
        if best is not None and each.bound is not None and each.bound > best:
            each.fault = f"error of the model: bound {each.bound} above a schedule of {best}"
    return best


# ----------------------------------------------------------------------------- one rival, alone


class Writer:
    """Writes what is found as lines of JSON, with the seconds that have gone by."""

    def __init__(self) -> None:
        # What solvers print goes to the errors, not between the lines.
        self.stream = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)
        self.restart()

    def restart(self) -> None:
        """Begin to count seconds."""
        self.began, self.began_cpu = time.monotonic(), time.process_time()

    def say(self, **facts: object) -> None:
        """Write a line."""
        wall, cpu = time.monotonic() - self.began, time.process_time() - self.began_cpu
        self.stream.write(
            json.dumps({**facts, "wall": round(wall, 2), "cpu": round(cpu, 2)}) + "\n"
        )

    def starts(self, starts: Sequence[int]) -> None:
        """Take a schedule."""
        self.say(starts=[int(start) for start in starts])

    def bound(self, value: float) -> None:
        """Take a bound, unless it says nothing."""
        if math.isfinite(value) and abs(value) < 1e15:
            self.say(bound=value)


def alone(options: argparse.Namespace) -> None:
    """Be one rival on one draw."""
    writer = Writer()
    rival, draw = options.alone
    file, function, _ = RIVALS[rival]
    module = import_module(f"rival_models.{file}")
    work: Callable[[Problem, Offers], None] = getattr(module, function)
    getattr(module, "warm_up", lambda: None)()
    instance = instance_of(draw)
    known = best_of_policies(instance)
    bounded(options.limit, options.ram)
    windows = start_windows(instance, known.objective)
    clock = options.limit * busyness()
    writer.restart()
    writer.starts(known.starts)
    work(Problem(instance, known, windows, options.limit, options.threads, clock), writer)
    writer.say(done=True)
    os._exit(0)  # a solver that was stopped may have left threads behind


def busyness() -> float:
    """Return how long a second of the processor takes on the clock, by half a second of work."""
    clock, processor = time.monotonic(), time.process_time()
    while time.process_time() - processor < 0.5:
        pass
    return max(1.0, (time.monotonic() - clock) / 0.5)


def bounded(limit: float, gigabytes: float) -> None:
    """Have the system end this process when it takes far too long, or refuse it memory."""
    memory = int(gigabytes * 1e9)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    seconds = int(time.process_time() + GRACE * limit) + 5
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def best_of_policies(instance: Instance) -> Schedule:
    """Return the schedule where all begin."""
    runs = [run(instance, policy) for policy in POLICIES]
    best = min((r for r in runs if r.objective is not None), key=lambda r: r.objective or 0)
    assert best.starts is not None
    return Schedule(instance, [start for start in best.starts if start is not None])


if __name__ == "__main__":
    with writing_output():
        main()
