"""Problems along any axes, so tiny that brute force knows their optimum, and every door to them.

python tests/support/combinations.py FIRST COUNT    asks every door about so many problems
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import claims
from axes import AXES
from brute_force import most_in_time
from certificates import claiming
from claims import Content
from strategies import batch_time

from kvopt import bound, certify, read_certificate, run, solve, verify, write_certificate
from kvopt.certificates.certificate_files import certificate_text
from kvopt.fleets import fleet_sizes
from kvopt.incumbent.in_time import InTime
from kvopt.problem.clocks import ROUNDS, Seconds
from kvopt.problem.instance_files import instance_from_json
from kvopt.problem.problem import Problem
from kvopt.problem.scopes import Scope
from kvopt.problem.slo import Slo
from kvopt.search.engines import methods_for
from kvopt.verify import verify_text

NAMES = tuple(axis.name for axis in AXES)
MOST_AXES = 3
"""Axes that are combined."""
SETS = tuple(axes for count in range(MOST_AXES + 1) for axes in combinations(NAMES, count))
LIMIT = 0.1
"""Seconds of a search or a bound: enough for every kind of bound."""
_LIMITS = ({"e2e": 4}, {"ttft": 3}, {"ttft": 3, "tpot": 1}, {"ttft": 3, "tpot": 2, "e2e": 6})
"""Service levels in rounds."""
_SLOW = 6
"""Nanoseconds in place of a round."""


@dataclass(frozen=True)
class Case:
    """A problem along some axes, with what brute force knows of it.

    Parameters
    ----------
    axes
        Names of the axes.
    problem
        The problem.
    least
        Its optimum.
    most
        How many requests can attain the service level, if it has one.
    """

    axes: tuple[str, ...]
    problem: Problem
    least: int
    most: int | None


class Answer(NamedTuple):
    """Both sides of an answer, None where a door has none."""

    lower: int | None
    upper: int | None
    in_time: InTime | None = None


def case(axes: tuple[str, ...], seed: int) -> Case:
    """Draw a problem of two to four requests along some axes, and solve it by brute force."""
    source = random.Random(f"{axes} {seed}")
    block = 2 if "blocks" in axes else 1
    unit = block * source.randint(1, 2) if "sharing" in axes else 1
    few = "chunks" in axes and "seconds" in axes
    rows: list[Content] = []
    for number in range(source.randint(2, 3 if few else 4)):
        shares = "sharing" in axes and (number == 0 or source.random() < 0.7)
        private, output = source.randint(0, 2), source.randint(1, 3)
        arrival = source.choice((0, 0, 1, 3, 5))
        row: Content = {"arrival": arrival, "prompt": private + unit * shares, "output": output}
        if "seconds" in axes:
            row |= {"arrival": 0, "arrival_seconds": arrival / 1e9}
        rows.append({**row, "prefix": ["a"]} if shares else row)
    weights = [source.choice((1, 2, 4)) if number else 2 for number in range(len(rows))]
    if "weights" in axes:
        rows = [{**row, "weight": weight} for row, weight in zip(rows, weights, strict=True)]
    memory = max(block * -(-(row["prompt"] + row["output"]) // block) for row in rows)
    instance: Content = {"schema": "kvopt.instance/2", "requests": rows}
    instance["memory"] = memory + source.randint(0, 5)
    model = _model(source) if "seconds" in axes else "rounds"
    named: Content = {
        "blocks": ("block_size", 2),
        "workers": ("workers", 2),
        "sharing": ("block_tokens", unit),
        "limit": ("max_active", source.choice((1, 2))),
    }
    instance |= dict(member for axis, member in named.items() if axis in axes)
    spelled = "+".join(name for name in ("pauses", "chunks") if name in axes) or "runs"
    limits: Content = source.choice(_LIMITS) if "slo" in axes else {}
    if "seconds" in axes:
        limits = {name: f"{limit * _SLOW}ns" for name, limit in limits.items()}
    tiny = claims.Problem(claiming(instance, clock=model, scope=spelled))
    due = [tiny.due_of(row, limits) for row in rows]
    scope = Scope.parse(spelled)
    problem = Problem(
        instance_from_json(instance),
        ROUNDS if tiny.server is None else Seconds(batch_time(tiny.server)),
        scope.joined(Scope.SHARING) if "sharing" in axes else scope,
        Slo(**limits) if limits else None,
    )
    most = most_in_time(tiny.memory, tiny.requests, due, **tiny.rules) if limits else None
    return Case(axes, problem, tiny.least(), most)


def _model(source: random.Random) -> Content:
    lines = [{"round_ns": source.randint(1, 9), "token_ns": source.randint(0, 4)}]
    if source.random() < 0.5:
        lines.append({"round_ns": source.randint(0, 5), "token_ns": source.randint(1, 6)})
    return {"lines": lines, "prompt_ns": source.choice((0, 1)), "kv_ns": source.choice((0, 1))}


# ---- the doors ----------------------------------------------------------------------------------


def _solved(problem: Problem) -> Answer:
    found = solve(problem, time_limit=LIMIT, threads=1)
    assert not found.faults, found.faults
    certificate = found.certificate()
    assert (certificate.objective, certificate.scope) == (found.objective, found.scope)
    assert certificate.lower_bound == (found.checked and found.checked.value)
    lines = verify_text(certificate_text(certificate)).lines
    assert lines[-1] == "VALID", lines
    return Answer(found.lower_bound, found.objective, found.in_time)


def _bounded(problem: Problem) -> Answer:
    """Return the best bound of all methods; in seconds there is one."""
    names = methods_for(problem.scope) if problem.clock.is_even else ["auto"]
    found = (bound(problem, name, time_limit=LIMIT, threads=1).value for name in names)
    return Answer(max((value for value in found if value is not None), default=None), None)


def _certified(problem: Problem) -> Answer:
    return _checked(problem, ["svf"], "central")


def _served(problem: Problem) -> Answer:
    """Certify runs of servers, which have to be compared with the bound."""
    block = problem.instance.block_size
    servers = [f"vllm-fcfs:block={block}", f"sglang:page={block}"]
    return _checked(problem, servers, "least-requests" if problem.is_fleet else "central")


def serves(problem: Problem) -> bool:
    """Whether a problem covers what servers may do."""
    return problem.scope.covers(Scope.PAUSES_AND_CHUNKS if problem.in_seconds else Scope.PAUSES)


def _checked(problem: Problem, policies: list[str], router: str) -> Answer:
    found = certify(problem, policies, router=router, time_limit=LIMIT, threads=1)
    for made in found.runs:
        at_least, at_most = found.ratio(made)
        assert made.objective is None or (at_least and at_least >= 1 and at_most), made.policy
    with TemporaryDirectory() as folder:
        path = Path(folder) / "c.json"
        write_certificate(found, path)
        lines = verify(path).lines
        assert lines[-1] == "VALID", lines
        again = certificate_text(read_certificate(path))
        assert again == path.read_text(), "it is written otherwise than it was read"
    return Answer(found.lower_bound, found.objective, found.in_time)


def _simulated(problem: Problem) -> Answer:
    made = run(problem.instance, "svf", clock=problem.clock)
    assert not made.violations()
    return Answer(None, made.objective)


def _sized(problem: Problem) -> Answer:
    workers, clock = problem.instance.workers, problem.clock
    target = "mean=1000" if clock.is_even else "mean=1000s"
    found = fleet_sizes(
        problem.instance, target, clock=clock, counts=[workers], scope=problem.scope,
        time_limit=LIMIT,
    )  # fmt: skip
    (band,) = found.bands
    return Answer(band.lower, band.upper)


def _by_solvers(problem: Problem) -> Answer:
    """Return the best schedule and the best bound of solvers."""
    found = [solve(problem, name, time_limit=LIMIT, threads=1) for name in ("highs", "cpsat")]
    assert not [fault for each in found for fault in each.faults]
    lowers = [each.lower_bound for each in found if each.lower_bound is not None]
    uppers = [each.objective for each in found if each.objective is not None]
    return Answer(max(lowers, default=None), min(uppers, default=None))


DOORS: Mapping[str, Callable[[Problem], Answer]] = {
    "solve": _solved,
    "solvers": _by_solvers,
    "bound": _bounded,
    "certify": _certified,
    "servers": _served,
    "fleet": _sized,
    "run": _simulated,
}


def doors_of(problem: Problem) -> Iterator[tuple[str, Callable[[Problem], Answer]]]:
    """Yield the doors that know a problem: solvers have no program in seconds or with pauses."""
    has_programs = problem.clock.is_even and not problem.has_pauses
    yield from ((door, ask) for door, ask in DOORS.items() if door != "solvers" or has_programs)


def wrong(asked: Case, door: str, answer: Answer) -> Iterator[str]:
    """Yield what is wrong about an answer."""
    if door != "run" and answer.lower is None:
        yield "has no bound"
    if door != "bound" and answer.upper is None:
        yield "has no schedule"
    if answer.lower is not None and answer.lower > asked.least:
        yield f"says {answer.lower} of an optimum of {asked.least}"
    # Servers pause, which a narrower scope does not: then they may be better than its optimum.
    is_comparable = door != "servers" or serves(asked.problem)
    if is_comparable and answer.upper is not None and answer.upper < asked.least:
        yield f"has a schedule of {answer.upper}, below {asked.least}"
    if asked.most is not None and answer.in_time is not None:
        if answer.in_time.ceiling < asked.most:
            yield f"says that {answer.in_time.ceiling} attain, of {asked.most}"
        if is_comparable and (answer.in_time.best_attained or 0) > asked.most:
            yield f"has more that attain than {asked.most}"


def main(first: int, count: int) -> int:
    """Ask every door about so many problems; return the number of wrong answers."""
    counts = Counter[str]()
    for number in range(first, first + count):
        asked = case(SETS[number % len(SETS)], number)
        for door, ask in doors_of(asked.problem):
            counts[door] += 1
            try:
                faults = list(wrong(asked, door, ask(asked.problem)))
            except Exception as error:
                faults = [f"{type(error).__name__}: {error}"]
            for fault in faults:
                counts["wrong"] += 1
                print(number, asked.axes, door, fault, flush=True)
    print(dict(counts))
    return counts["wrong"]


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])) > 0)
