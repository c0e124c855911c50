"""Check the folder of a day: machines over time, with a certificate for windows of requests."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from kvopt.verify.certificate_shape import text_of
from kvopt.verify.certified_problem import Problem, Request, problem_of
from kvopt.verify.check_slo import Due, due_of
from kvopt.verify.step_budget import Invalid, Unreadable, paired, quoted, refuse

Checked = Callable[[str], dict[str, Any]]
"""Checks all claims of a certificate of the folder, and returns it."""
RESULTS, DAY = "every.json", "machine-time.cert.json"
_SHARE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,9})?)%")


def check_day(folder: str | os.PathLike[str], checked: Checked) -> list[str]:
    """Check that no window of a day does with fewer machines; return checked and proved claims.

    Machines that are on in a window serve what arrives in it, and the machines of later windows
    serve nothing of it before the window ends.  So the requests of the day that arrive in a window
    and are due inside it are served by its machines.  Of its arrivals ``misses`` may miss, so the
    others of these attain.  If a ceiling of them alone is lower, machines are too few.  A request
    whose first token alone is due inside counts as one of this token.  A shared block may have
    been computed before, so of prompts private tokens count.
    """
    stored, day = _stored(folder), checked(DAY)
    refuse("machine_time" not in day, f"{DAY}: needs a machine time")
    problem, claim, rows = problem_of(day), day["machine_time"], stored["windows"]
    every, misses, count = claim["every"], claim["misses"], len(rows)
    for name, here in (("instance", day["hash"]), ("clock", day["clock"]), ("every", every)):
        refuse(stored[name] != here, f"{RESULTS}: is about another {name} than {DAY}")
    refuse(count != len(misses), f"{RESULTS}: needs {len(misses):,} windows")
    due = due_of({**day, "slo": {"limits": stored["limits"]}}, problem)
    members, first = _members(problem, every)
    proved, total, names = list[str](), 0, [DAY]
    for k, (row, missing) in enumerate(paired(rows, misses)):
        arriving, where = members[first + k], f"window {k + 1}"
        here = (first + k) * every, len(arriving), missing
        is_other = (row["begin"], row["arrivals"], row["allowed"]) != here
        refuse(is_other, f"{where}: has another begin, or other numbers of arrivals or misses")
        low = int(len(arriving) * (1 - stored["attain"]))
        refuse(missing < low, f"{where}: allows {missing:,} misses, its share is {low:,}")
        inside = _inside(problem, due, arriving, (first + k + 1) * every)
        needed, machines = len(inside) - missing, row["proved"] or 0
        total += machines * every
        if machines > (needed > 0):
            names.append(f"window-{k + 1}.cert.json")
            _check_window(checked(names[-1]), day, inside, needed, machines, where)
        if machines:
            of = f"{missing:,} of its {len(arriving):,} requests"
            number = "1 machine" if machines == 1 else f"{machines:,} machines"
            proved.append(f"  {where} needs at least {number} if at most {of} miss")
    total = max(total, claim["value"])
    says = stored["machine_time"]["proved"]
    refuse(says > total, f"{RESULTS}: says machine time {says:,}, the windows give {total:,}")
    unit = "rounds" if problem.clock is None else "ns"
    return [
        f"day {quoted(day['instance'].get('name', ''))}: {len(due):,} requests in {count:,} "
        f"windows of {every:,} {unit}",
        f"  {day['hash']}",
        "checked: requests of windows arrive and are due inside them, and",
        *(f"  {name}" for name in names),
        "proved:",
        *proved,
        f"  machine time is at least {says:,} {unit}",
        "    if numbers change at borders of windows only",
        "not checked: the numbers of the formula, and that sufficient numbers suffice",
        "VALID",
    ]


def _stored(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the results of a folder, with the share as a fraction."""
    try:
        stored: dict[str, Any] = json.loads(text_of(os.path.join(folder, RESULTS)))
        share, limits = _SHARE.fullmatch(stored["attain"]), stored["limits"]
        numbers = [stored["machine_time"]["proved"]]
        for row in stored["windows"]:
            numbers += [row["begin"], row["arrivals"], row["allowed"], row["proved"] or 0]
        fits = {*map(type, numbers)} == {int} and isinstance(limits, dict)
        fits = fits and {*limits} <= {"ttft", "tpot", "e2e"}
        fits = fits and {"instance", "clock", "every"} <= stored.keys()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        fits, share = False, None
    if share is None or not fits:
        raise Unreadable(f"{RESULTS}: has not the shape of machines over time")
    return {**stored, "attain": Fraction(share[1]) / 100}


def _members(problem: Problem, every: int) -> tuple[dict[int, list[int]], int]:
    """Return the positions of the requests that arrive in each window, and the first window."""
    members: dict[int, list[int]] = defaultdict(list)
    for i, request in enumerate(problem.requests):
        members[request.arrival // every].append(i)
    return members, min(members, default=0)


def _inside(
    problem: Problem, due: list[Due], arriving: list[int], end: int
) -> list[tuple[Request, Due]]:
    """Return the requests that are due by the end of their window, with their limits."""
    inside = []
    for i in arriving:
        (arrival, prompt, output), limits = problem.requests[i], due[i]
        if problem.paths:
            prompt -= sum(problem.nodes[v] for v in problem.paths[i])
        if arrival + min(limits.total, limits.first + limits.rest) <= end:
            inside.append((Request(arrival, prompt, output), limits))
        elif arrival + min(limits.total, limits.first) <= end:
            inside.append((Request(arrival, prompt, 1), limits._replace(rest=0)))
    return inside


def _check_window(
    part: dict[str, Any],
    day: dict[str, Any],
    inside: list[tuple[Request, Due]],
    needed: int,
    machines: int,
    where: str,
) -> None:
    """Check that a certificate rules out fewer machines for these requests of a day."""
    refuse("slo" not in part, f"{where}: needs a ceiling")
    problem, whole = problem_of(part), problem_of(day)
    listed = [*zip(problem.requests, due_of(part, problem))]
    is_other = listed != inside
    refuse(is_other, f"{where}: its requests are not those of the day that are due inside it")
    scope = [name for name in day["scope"].split("+") if name != "sharing"] or ["runs"]
    refuse(part["scope"] != "+".join(scope), f"{where}: is about another scope than the day")
    refuse(part["clock"] != day["clock"], f"{where}: is about another clock than the day")
    memory = whole.memory // whole.block * whole.block
    narrower = problem.memory < memory or problem.block > 1
    narrower = narrower or problem.max_active not in (None, whole.max_active)
    refuse(narrower, f"{where}: has less memory or a lower limit than the day")
    refuse(problem.workers < machines - 1, f"{where}: rules out {problem.workers:,} machines only")
    ceiling = part["slo"]["ceiling"]
    if ceiling >= needed:
        raise Invalid(f"{where}: at most {ceiling:,} attain, which {needed:,} must")
