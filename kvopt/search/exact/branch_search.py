"""Prove an optimum by cases, for dozens of requests in a cache of any size.

A linear program has the rows of a case alone, so its optimum is a list of starts that may break
memory.  Where it does, the request that completes there and the fewest others with too many tokens
are a branch (`kvopt.bounds.branches`).  The case of the least bound comes first, so the bound of
all rises, and a first optimum that breaks nothing is a best schedule.  Floats of a program only
choose branches and multipliers; every bound is evaluated in integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from kvopt.bounds.branches import Latency, Row, cases, order_rows
from kvopt.formulations.highs import set_options
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits
from kvopt.incumbent.proofs import BranchProof
from kvopt.kernels.budget import Budget
from kvopt.kernels.solver_versions import load_highspy
from kvopt.problem.arrays import Floats
from kvopt.problem.instance import Instance
from kvopt.timetable.schedule import Schedule

NAME = "branches"
"""Name in `bounded_by`."""

_TRIED = 8
"""Branches of a node whose cases are all solved, to take the best one."""
_GAIN = 3.0
"""Weight of the gains of cases in the choice: a case that closes the gap counts exp(-3)."""
_TOLERANCE = 1e-6
_DENOMINATORS = (1, 2, 3, 4, 6, 12, 60, 2**20)
"""Denominators of multipliers, the smallest one that proves the value of the program is taken."""
_MAX_NODES = 50_000
"""Limit of the nodes of a tree, some 2 KB each."""
_TRIAL, _TRIAL_NODES = 0.4, 10_000
"""Share of the time, and nodes, after which cases have to prove more than was known before."""
_OFTEN = 1.3
"""Factor of the number of nodes from one offered bound to the next."""


@dataclass(slots=True)
class Node:
    """A case, with what its rows prove.

    Parameters
    ----------
    parent
        None at the root.
    rows
        Rows that the parent does not have.
    value
        Bound on total latency of all schedules of this case that are below the target.
    multipliers
        Denominator and pairs of rows and multipliers that prove the value.
    starts
        Optimum of the linear program; None if there is none, or the node has its children.
    """

    parent: Node | None
    rows: tuple[Row, ...]
    value: int
    multipliers: tuple[int, ...]
    starts: Floats | None
    branch: tuple[int, ...] = ()
    children: list[Node] = field(default_factory=list)


class Program:
    """The linear program of the rows of a case: the least sum of starts."""

    def __init__(self, instance: Instance) -> None:
        self._highspy = load_highspy()
        self._highs = self._highspy.Highs()
        set_options(
            self._highs,
            Limits(threads=1),
            output_flag=False,
            solver="simplex",
            presolve="off",
        )
        for request in instance:
            self._highs.addCol(1.0, float(request.arrival), self._highs.inf, 0, [], [])
        self.rows: list[Row] = []

    def push(self, rows: tuple[Row, ...]) -> None:
        """Add rows."""
        for row in rows:
            index, value = zip(*row.terms, strict=True)
            self._highs.addRow(float(row.limit), self._highs.inf, len(index), index, value)
        self.rows += rows

    def cut(self, length: int) -> None:
        """Keep so many rows."""
        if length < len(self.rows):
            gone = np.arange(length, len(self.rows), dtype=np.int32)
            self._highs.deleteRows(len(gone), gone)
            del self.rows[length:]

    def solve(self) -> tuple[float, Floats | None, Floats]:
        """Return the least sum, starts with it, and multipliers of the rows.

        Without starts that obey the rows the sum is infinite, and the multipliers prove it.
        """
        self._highs.run()
        status, statuses = self._highs.getModelStatus(), self._highspy.HighsModelStatus
        if status in (statuses.kOptimal, statuses.kModelEmpty):
            solution = self._highs.getSolution()
            value = self._highs.getInfo().objective_function_value
            return value, np.array(solution.col_value), np.array(solution.row_dual)
        if status == statuses.kInfeasible:
            _, has_ray, ray = self._highs.getDualRay()
            if has_ray:
                return math.inf, None, np.array(ray)
        return -math.inf, None, np.zeros(len(self.rows))


class BranchTree:
    """Cases of an instance, and the bound of all.

    Parameters
    ----------
    instance
        Of one worker, without further fields.
    target
        Total latency of a known schedule.
    """

    def __init__(self, instance: Instance, target: int) -> None:
        self._instance, self._count = instance, 0
        self._prompts = np.array([request.prompt for request in instance], dtype=np.int64)
        self._outputs = np.array([request.output for request in instance], dtype=np.int64)
        self._program = Program(instance)
        self._open: list[tuple[int, int, Node]] = []
        self.target, self.size, self.is_stuck = target, 1, False
        self._latency = Latency.below(instance, target)
        self._order = tuple(order_rows(instance))
        self._program.push(self._order)
        self._root = self._node(None, (), self._latency.value((), 1, ()), (1,))
        self._enter(self._root)

    def lower(self, target: int) -> None:
        """Look for schedules below a smaller target from now on."""
        if target < self.target:
            self.target, self._latency = target, Latency.below(self._instance, target)

    @property
    def value(self) -> int:
        """No schedule has a smaller total latency than this; the target if all cases are closed."""
        return min(self._open[0][0], self.target) if self._open else self.target

    def _enter(self, node: Node) -> None:
        if node.value < self.target:
            self._count += 1
            # Of equal bounds the deepest, newest case comes first.
            heappush(self._open, (node.value, -self._count, node))

    def _node(
        self, parent: Node | None, rows: tuple[Row, ...], known: int, proved: tuple[int, ...]
    ) -> Node:
        """Return a case, with the multipliers of its parent if its program has no better ones."""
        node = Node(parent, rows, known, proved, None)
        least, node.starts, multipliers = self._program.solve()
        # A ray is as long as the target needs, so that infeasible cases need no rule of their own.
        wanted = self.target
        if least == math.inf:
            multipliers = multipliers * self._scale(multipliers)
        else:
            wanted = min(wanted, math.ceil(max(least, 0.0) + self._latency.more - _TOLERANCE))
        for over in _DENOMINATORS:
            if node.value >= wanted:
                break
            whole = np.rint(np.maximum(multipliers, 0.0) * over).astype(np.int64)
            used = [(r, int(whole[r])) for r in np.flatnonzero(whole).tolist()]
            value = self._latency.value(self._program.rows, over, used)
            if value > node.value:
                node.value = value
                node.multipliers = (over, *(number for pair in used for number in pair))
        return node

    def _scale(self, ray: Floats) -> float:
        """Return the factor of a ray with which it proves more than the target."""
        gain = 0.0
        left = np.zeros(len(self._instance))
        for multiplier, (terms, limit) in zip(ray.tolist(), self._program.rows, strict=True):
            gain += multiplier * limit
            for i, factor in terms:
                left[i] -= multiplier * factor
        gain += sum(rest * low for rest, (low, _) in zip(left, self._latency.bounds, strict=True))
        return (self.target + 1.0) / gain if gain > 0.0 else 0.0

    def grow(self) -> list[int] | None:
        """Branch on the case of the least bound; return starts if its optimum is a schedule.

        The case is closed then: nothing in it is better.
        """
        node, starts = self._open[0][2], self._open[0][2].starts
        if starts is None:  # its program failed, or proved less than its optimum
            self.is_stuck = True
            return None
        heappop(self._open)
        self._load(node)
        best = math.inf
        for branch in self._branches(starts):
            children = self._children(node, branch)
            gap = self.target - node.value
            gains = [(c.value - node.value) / gap for c in children if c.value < self.target]
            score = sum(math.exp(-_GAIN * gain) for gain in gains)
            if score < best:
                best, node.branch, node.children = score, branch, children
            if not gains:
                break
        node.starts = None
        if not node.children:  # memory is kept, and starts are whole
            self._enter(node)
            return [int(start) for start in np.rint(starts)]
        self.size += len(node.children)
        for child in node.children:
            self._enter(child)
        return None

    def _load(self, node: Node) -> None:
        """Give the program the rows of a case, from the root on."""
        path: list[tuple[Row, ...]] = []
        at: Node | None = node
        while at is not None:
            path.append(at.rows)
            at = at.parent
        self._program.cut(len(self._order))
        for rows in reversed(path):
            self._program.push(rows)

    def _children(self, node: Node, branch: tuple[int, ...]) -> list[Node]:
        """Return the cases of a branch."""
        length, children = len(self._program.rows), list[Node]()
        denied: tuple[Row, ...] = ()
        for case in cases(self._instance, branch):
            here = len(self._program.rows)
            self._program.push(case.rows)
            rows = (*denied, *case.rows)
            children.append(self._node(node, rows, node.value, node.multipliers))
            self._program.cut(here)
            self._program.push(case.denial)
            denied = (*denied, *case.denial)
        self._program.cut(length)
        return children

    def _branches(self, starts: Floats) -> list[tuple[int, ...]]:
        """Return branches that cut off starts, those with few cases first; none for a schedule."""
        ends = starts + self._outputs
        # For each completion, a row: requests that are active then, and the tokens that they hold.
        active = (starts < ends[:, None] - _TOLERANCE) & (ends[:, None] <= ends + _TOLERANCE)
        np.fill_diagonal(active, val=True)
        held = np.where(active, self._prompts + ends[:, None] - starts, 0.0)
        excess = held.sum(axis=1) - self._instance.memory
        found = []
        for first in np.flatnonzero(excess > 1e-4).tolist():
            tokens, others = held[first], list[int]()
            total = tokens[first] - self._instance.memory
            for i in np.argsort(-tokens, kind="stable").tolist():
                if total > 1e-4:
                    break
                if i != first:
                    others.append(i)
                    total += tokens[i]
            found.append((len(others), -excess[first], (first, *others)))
        if found:
            return [branch for _, _, branch in sorted(found)[:_TRIED]]
        broken = np.flatnonzero(np.abs(starts - np.rint(starts)) > _TOLERANCE)
        return [(-1 - i, math.floor(starts[i])) for i in broken[:1].tolist()]

    def proof(self) -> BranchProof:
        """Return the proof of the value."""
        branches, leaves, stack = list[tuple[int, ...]](), list[tuple[int, ...]](), [self._root]
        place = 0
        while stack:
            node = stack.pop()
            if node.children:
                branches.append(node.branch)
                stack += reversed(node.children)
            else:
                leaves.append((place, *node.multipliers))
            place += 1
        return BranchProof(self.target, tuple(branches), tuple(leaves))


def search_branches(search: Search, budget: Budget) -> None:
    """Raise the bound, and offer a best schedule, until both meet or the time is up."""
    assert search.objective is not None
    tree = BranchTree(search.instance, search.objective)
    next_offer, known, trial = 1.0, search.lower_bound or 0, budget.part(_TRIAL)

    def offer() -> None:
        if search.lower_bound is None or tree.value > search.lower_bound:
            search.offer_checked(tree.value, NAME, tree.proof())

    while tree.value < tree.target and not (tree.is_stuck or budget.over()):
        # With a long queue cases begin far below prices, and would never reach them.
        if tree.value <= known and (trial.over() or tree.size > _TRIAL_NODES):
            break
        if tree.size > _MAX_NODES:
            search.note(f"{NAME}: ended with {tree.size:,} cases, as more take too much memory")
            break
        starts = tree.grow()
        if starts is not None:
            search.offer(Schedule(search.instance, starts), NAME)
            tree.lower(search.objective)
        if tree.size >= next_offer:
            offer()
            next_offer = _OFTEN * tree.size
    offer()
