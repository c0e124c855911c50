"""Other solvers on the same draws, in the same run and with the same limit.

    python -m pip install didppy pumpkin-solver pyscipopt     # none is a dependency of kvopt
    python benchmarks/rivals.py [--rivals NAME ...] [--family arrival-1 arrival-2] [--n 8 10 12]
                                [--seeds 0 1] [--limit 60] [--threads 1] [--ram 6]

Each rival of ``rival_models/`` works on each draw in a process of its own, from the schedule of the
best policy and with proved start windows.  What it finds is judged here: schedules are checked in
integers by kvopt, and a bound above a schedule of any rival is an error of its model, which is
printed and ends this with status 1.  A rival that is not installed is left out with a word.

The limit counts seconds of the processor, not of the clock, so that a busy machine is no
disadvantage; CAASDy and Pumpkin, which have a clock only, get as much more of it as the machine is
busy when they begin.  A cell has the processor seconds to a proof, in bold, or else bound and total
latency when the limit was over.
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

from rival_models import Offers, Problem

from kvopt import Instance, Schedule, generate, run
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
    outcomes: list[Outcome] = []
    for family in options.family:
        print(f"\n{load()}\n\n| {family} | best known | {' | '.join(rivals)} |")
        print("|---|---|" + "---|" * len(rivals), flush=True)
        for n in options.n:
            here: list[Outcome] = []
            for seed in options.seeds:
                here += row(family, n, seed, rivals, options)
            outcomes += here
            proofs = Counter(each.rival for each in here if each.proved)
            cells = " | ".join(f"{proofs[name]}" for name in rivals)
            print(f"| {n}, proved | | {cells} |", flush=True)
    print(f"\n{load()}")
    faults = [o for o in outcomes if o.fault]
    for each in faults:
        print(f"{each.instance}: {each.rival}: {each.fault}")
    sys.exit(any("error of the model" in each.fault for each in faults))


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
    parser.add_argument("--alone", help=argparse.SUPPRESS)
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


def row(
    family: str, n: int, seed: int, rivals: Sequence[str], options: argparse.Namespace
) -> list[Outcome]:
    """Run rivals on a draw, print its row and return what was found."""
    instance = generate(family, n, seed=seed)
    found = [judged(name, instance, answers(name, (family, n, seed), options)) for name in rivals]
    best = against_each_other(found)
    texts = " | ".join(each.cell() for each in found)
    print(f"| {instance.name} | {best} | {texts} |", flush=True)
    return found


def answers(name: str, draw: tuple[str, int, int], options: argparse.Namespace) -> list[str]:
    """Let a rival work on a draw in a process of its own; return the lines that it wrote."""
    family, n, seed = draw
    command = [sys.executable, __file__, "--alone", name, "--family", family, "--n", str(n)]
    command += ["--seeds", str(seed), "--limit", str(options.limit)]
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
    file, function, _ = RIVALS[options.alone]
    module = import_module(f"rival_models.{file}")
    work: Callable[[Problem, Offers], None] = getattr(module, function)
    getattr(module, "warm_up", lambda: None)()
    instance = generate(options.family[0], options.n[0], seed=options.seeds[0])
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
