"""Evaluate proofs by cases: which requests are active when one of them completes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kvopt.verify.certified_problem import Problem, Request
from kvopt.verify.step_budget import Prepared, Work, paired, refuse


class Row(NamedTuple):
    """A sum of starts, as pairs of a request and a factor, is at least a limit."""

    terms: Sequence[tuple[int, int]]
    limit: int


def by_branches(problem: Problem, proof: dict[str, Any], work: Work) -> Prepared:
    """Prepare the bound of a tree of cases.

    A schedule below the target is in one case of each branch, so in a leaf.  There the rows of all
    cases on the way hold, and those that deny the cases before them (Claim 2.7 of
    ``docs/theory/bounds.md``).
    """
    refuse(problem.used > 1, "lower: branches are of one worker")
    # Each number of a branch gives two rows of two terms, and each of a leaf a product or more.
    size = sum(map(len, proof["branches"])) + sum(map(len, proof["leaves"]))
    steps = 40 * size + len(proof["leaves"]) * (10 * len(problem.requests) + 50)
    return steps, lambda: _value(problem, proof, work)


def _value(problem: Problem, proof: dict[str, Any], work: Work) -> tuple[int, str]:
    """Walk through the tree, a case before its own cases; return the least bound of its leaves."""
    requests, target = problem.requests, proof["target"]
    tokens = sum(request.output for request in requests)
    # In a schedule below the target no request waits longer than all may together.
    waits = target - 1 - tokens
    spans = [(request.arrival, request.arrival + waits) for request in requests]
    more = tokens - sum(request.arrival for request in requests)
    rows, lowest, place = _order(requests), target, 0
    branches, leaves = list(reversed(proof["branches"])), list(reversed(proof["leaves"]))
    # Of each branch on the way: cases to come, rows of all of them, and the denial of the last one.
    path: list[tuple[Iterator[tuple[Row, Row | None]], int, Row | None]] = []
    while True:
        if leaves and leaves[-1][:1] == [place]:
            _, *numbers = leaves.pop()
            lowest = min(lowest, more + _least_sum(rows, numbers, spans, work))
        else:
            refuse(not branches, "lower: a case has neither branches nor multipliers")
            path.append((_cases(problem, branches.pop()), len(rows), None))
        place += 1
        # Go on with the next case of the last branch that has one.
        while path:
            cases, length, denial = path.pop()
            case = next(cases, None)
            if case is not None:
                del rows[length:]
                rows += [denial] if denial else []
                path.append((cases, len(rows), case[1]))
                rows.append(case[0])
                break
        else:
            break
    refuse(bool(branches or leaves), "lower: branches and leaves are not those of one tree")
    return lowest, f"{len(proof['branches']):,} branches"


def _least_sum(
    rows: Sequence[Row], numbers: list[int], spans: Sequence[tuple[int, int]], work: Work
) -> int:
    """Return what rows, times multipliers, prove of the sum of starts.

    What is left of that sum is at least what starts between the arrival and the last one give.
    """
    refuse(len(numbers) % 2 == 0, "lower: a leaf has a denominator, and pairs")
    over, places, multipliers = numbers[0], numbers[1::2], numbers[2::2]
    refuse(over < 1 or min(multipliers, default=0) < 0, "lower: multipliers are not negative")
    refuse(any(not 0 <= place < len(rows) for place in places), "lower: a leaf has no such row")
    work.spend(4 * sum(len(rows[place].terms) for place in places))
    left, total = [over] * len(spans), 0
    for place, multiplier in paired(places, multipliers):
        row = rows[place]
        total += multiplier * row.limit
        for i, factor in row.terms:
            left[i] -= multiplier * factor
    for rest, (arrival, last) in paired(left, spans):
        total += rest * (arrival if rest >= 0 else last)
    return -(-total // over)


def _apart(later: int, earlier: int, rounds: int) -> Row:
    """Return the row that one request starts at least so many rounds after another."""
    return Row(((later, 1), (earlier, -1)), rounds)


def _order(requests: Sequence[Request]) -> list[Row]:
    """Return the rows of all cases: requests of one shape start in the order of arrival.

    Two of them may change their starts, and total latency stays the same.
    """
    before: dict[tuple[int, int], int] = {}
    rows = []
    for i in sorted(range(len(requests)), key=lambda i: requests[i].arrival):
        shape = requests[i].prompt, requests[i].output
        if shape in before:
            rows.append(_apart(i, before[shape], 0))
        before[shape] = i
    return rows


def _cases(problem: Problem, branch: list[int]) -> Iterator[tuple[Row, Row | None]]:
    """Yield the cases of a branch: the row of each, and the one that denies it.

    When the first request completes, one of the others has not started, or is complete, or all are
    active: then they hold s + (completion - start) tokens each, M at most.  A branch (-1 - i, t)
    is on the start of request i: at t or before, or later.
    """
    requests, (first, *others) = problem.requests, (branch or [0])
    is_split = first < 0
    members = [-1 - first] if is_split else [first, *others]
    is_formed = len(branch) > 1 and len({*members}) == len(members)
    is_formed &= min(members) >= 0 and max(members) < len(requests)
    is_formed &= not is_split or len(others) == 1
    refuse(not is_formed, "lower: a branch has different requests, or a request and a time")
    if is_split:
        i, time = members[0], others[0]
        later = Row(((i, 1),), time + 1)
        yield Row(((i, -1),), -time), later
        yield later, None
        return
    output = requests[first].output
    for i in others:
        yield _apart(i, first, output), _apart(first, i, 1 - output)
    for i in others:
        less = requests[i].output - output
        yield _apart(first, i, less + 1), _apart(i, first, -less)
    tokens = sum(requests[i].prompt + output for i in members)
    terms = [(first, 1 - len(members)), *((i, 1) for i in others)]
    yield Row(terms, tokens - problem.memory), None
