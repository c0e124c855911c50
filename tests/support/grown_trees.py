"""Trees of cases that have been grown some steps."""

from __future__ import annotations

from kvopt.problem.instance import Instance
from kvopt.search.exact.branch_search import BranchTree


def grown_tree(instance: Instance, target: int, steps: int) -> BranchTree:
    """Return the tree of a target after so many branches, or all; a schedule lowers the target."""
    tree = BranchTree(instance, target)
    waits = instance.total_output - sum(request.arrival for request in instance)
    for _ in range(steps):
        if tree.value >= tree.target or tree.is_stuck:
            break
        starts = tree.grow()
        if starts is not None:
            tree.lower(sum(starts) + waits)
    return tree
