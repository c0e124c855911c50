"""Each thing that kvopt does against each axis of a problem: done, or refused by name.

``python tests/support/capabilities.py`` writes ``docs/capabilities.md``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

from kvopt import (
    BatchTime,
    Instance,
    InvalidInput,
    Line,
    Request,
    Scope,
    bound,
    bounds_by_workers,
    certify,
    export,
    read_certificate,
    run,
    solve,
    verify,
    write_certificate,
    write_schedule,
)
from kvopt.fleets import fleet_sizes
from kvopt.problem.clocks import Seconds
from kvopt.problem.deadlines import Deadline
from kvopt.problem.problem import Problem

PAGE = Path(__file__).parents[2] / "docs" / "capabilities.md"

_REQUESTS = ((0, 1, 3), (0, 2, 2), (1, 1, 4), (4, 3, 1))
BASE = Problem(Instance(8, [Request(*row) for row in _REQUESTS], round_ms=40))
"""In rounds, on one worker, tokens counted one by one, every request run to its end."""

_MODEL = BatchTime([Line(40_000_000, 1_000_000)], kv_ns=10)


class NoOptionError(Exception):
    """Says that nothing of the kind can be asked."""


def _two_workers(problem: Problem) -> Problem:
    return replace(problem, instance=replace(problem.instance, workers=2))


def _in_blocks(problem: Problem) -> Problem:
    return replace(problem, instance=replace(problem.instance, block_size=2))


def _changed(**fields: object) -> Callable[[Problem], Problem]:
    """Return what changes the last request."""

    def change(problem: Problem) -> Problem:
        *others, last = problem.instance.requests
        requests = (*others, replace(last, **fields))  # type: ignore[arg-type]
        return replace(problem, instance=replace(problem.instance, requests=requests))

    return change


def _two_active(problem: Problem) -> Problem:
    return replace(problem, instance=replace(problem.instance, max_active=2))


def _sharing(problem: Problem) -> Problem:
    """Return what lets two requests share the first two tokens of their prompts."""
    rows = problem.instance.requests
    requests = [replace(r, prefix=("a",)) if i in (1, 3) else r for i, r in enumerate(rows)]
    instance = replace(problem.instance, requests=requests, block_tokens=2)
    return replace(problem, instance=instance, scope=problem.scope.joined(Scope.SHARING))


AXES: Mapping[str, Callable[[Problem], Problem]] = {
    "seconds": lambda asked: replace(asked, clock=Seconds(_MODEL)),
    "workers": _two_workers,
    "pauses": lambda asked: replace(asked, scope=Scope.PAUSES_AND_CHUNKS),
    "blocks": _in_blocks,
    "deadline": lambda asked: replace(asked, deadline=Deadline.parse("4")),
    "weights": _changed(weight=3),
    "cap": _two_active,
    "sharing": _sharing,
}
"""How a problem is changed along each axis."""


def _certify(problem: Problem, folder: Path) -> None:
    names = ["svf"]
    if problem.scope.covers(Scope.PAUSES):
        names.append(f"vllm-fcfs:block={problem.instance.block_size}")
    path = folder / "c.json"
    found = certify(problem, names, router="least-requests", time_limit=0.2, threads=1)
    write_certificate(found, path)
    assert verify(path).valid
    assert read_certificate(path).lower_bound is not None


def _fleet(problem: Problem, _: Path) -> None:
    if problem.has_pauses:
        raise NoOptionError  # it is that of the schedulers
    target = "mean=1000" if problem.deadline is None else "misses=100%"
    if problem.in_seconds and problem.deadline is None:
        target += "s"
    found = fleet_sizes(
        problem.instance, target, clock=problem.clock, deadline=problem.deadline, counts=[1],
        scope=problem.scope, time_limit=0.2,
    )  # fmt: skip
    assert found.bands


def _bounds(problem: Problem, _: Path) -> None:
    _no_deadline(problem)
    assert bounds_by_workers(
        problem.instance, [1, 2], problem.clock, scope=problem.scope, time_limit=0.2
    )


def _run(name: str) -> Callable[[Problem, Path], None]:
    def work(problem: Problem, _: Path) -> None:
        _no_deadline(problem)
        made = run(problem.instance, name, clock=problem.clock, router="least-requests")
        if not problem.scope.covers(made.scope):
            raise InvalidInput(f"is {made.scope}", field="scope of the run")
        assert made.is_complete
        assert not made.violations()

    return work


def _export(problem: Problem, folder: Path) -> None:
    _no_deadline(problem)
    if problem.in_seconds:
        raise NoOptionError
    kind = "pauses" if problem.has_pauses else "time-indexed"
    export(problem.instance, folder / "p.lp", kind)


def _files(problem: Problem, folder: Path) -> None:
    found = solve(problem, time_limit=0.2, threads=1).schedule
    assert found is not None
    write_schedule(found, folder / "s.json")


def _no_deadline(problem: Problem) -> None:
    if problem.deadline is not None:
        raise NoOptionError


def _solve(engine: str) -> Callable[[Problem, Path], None]:
    def work(problem: Problem, _: Path) -> None:
        found = solve(problem, engine, time_limit=0.4, threads=1)
        assert found.schedule is not None
        assert found.lower_bound is not None
        assert (found.in_time is None) == (problem.deadline is None)

    return work


def _bound(method: str) -> Callable[[Problem, Path], None]:
    def work(problem: Problem, _: Path) -> None:
        found = bound(problem, method, time_limit=0.6, threads=1)
        if found.value is None:
            raise InvalidInput(found.note or "", field="no bound here")

    return work


CAPABILITIES: Mapping[str, Callable[[Problem, Path], None]] = {
    **{f"solve, {name}": _solve(name) for name in ("auto", "exact", "highs", "cpsat", "pyomo")},
    **{
        f"bound, {name}": _bound(name)
        for name in ("auto", "volume", "lp", "lagrangian", "slots", "configuration")
    },
    "bounds by workers": _bounds,
    "certify, verify": _certify,
    "fleet": _fleet,
    **{f"run, {name}": _run(name) for name in ("mc-sf", "a-min", "vllm-fcfs:block=1", "sglang")},
    "files of schedules": _files,
    "export": _export,
}
"""What is tried on a problem, in a folder for its files; it raises where that is refused."""

PAIRED = ("solve, auto", "bound, auto", "certify, verify", "fleet", "run, mc-sf")
"""Those that are tried along two axes at once too."""


def refusal(name: str, axes: tuple[str, ...]) -> str | None:
    """Return why something is refused along some axes.

    None where it is done, an empty text where it cannot be asked.
    """
    problem = BASE
    try:
        for axis in axes:
            problem = AXES[axis](problem)
        with TemporaryDirectory() as folder:
            CAPABILITIES[name](problem, Path(folder))
    except InvalidInput as refused:
        return str(InvalidInput(refused.reason, field=refused.field))
    except NoOptionError:
        return ""
    return None


def _table(
    corner: str, rows: dict[str, list[str | None]], heads: list[str], notes: list[str]
) -> list[str]:
    """Return the lines of a table, and add its refusals to the notes."""

    def mark(refused: str | None) -> str:
        if not refused:
            return "yes" if refused is None else "-"
        text = re.sub(
            r"^(weight|after|max_active)(: is not known by) .*", r"weight, ...\2 ...", refused
        )
        text = re.sub(r", got '\w+'$", ", got ...", text)
        if text not in notes:
            notes.append(text)
        return str(notes.index(text) + 1)

    lines = [[corner, *heads], ["---"] * (len(heads) + 1)]
    lines += [[name, *map(mark, row)] for name, row in rows.items()]
    return [*(f"|{'|'.join(line)}|" for line in lines), ""]


def page() -> str:
    """Return the page: both tables, then the reasons."""
    notes: list[str] = []
    single = {name: [refusal(name, (axis,)) for axis in AXES] for name in CAPABILITIES}
    pairs = {
        " + ".join(pair): [refusal(name, pair) for name in PAIRED] for pair in combinations(AXES, 2)
    }
    assert all(refusal(name, ()) is None for name in CAPABILITIES)
    refused = {pair: row for pair, row in pairs.items() if any(row)}
    return "\n".join([
        "# What works with what?",
        "",
        "Each capability was tried on a problem of four requests, changed along one axis:",
        "`blocks` is `block_size`, `cap` `max_active`, `sharing` `prefix`.",
        "`yes` means that it works; a test tries it with each commit. A number means that it is",
        "refused with that message below. `-` means that there is no such option.",
        "",
        *_table("capability", single, list(AXES), notes),
        "Along two axes at once the following is refused. All other pairs work.",
        "",
        *_table("axes", refused, list(PAIRED), notes),
        *(f"{number}. `{text}`" for number, text in enumerate(notes, 1)),
        "",
        "`python tests/support/capabilities.py` writes this page.",
        "",
    ])  # fmt: skip


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.exit(0)
