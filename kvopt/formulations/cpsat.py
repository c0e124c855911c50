"""The horizon-free constraint program: one start variable a request, no time index.

Take two requests i and j.  In every schedule exactly one of four things is true:

* i completes before j starts,
* j completes before i starts,
* i completes first while j is active,
* j completes first while i is active,

where of two that complete together the one with the smaller index counts as first.  Memory
peaks at completions, so it is enough to look at the completion ``c_i`` of each i: the
requests that are active then and not first hold ``s_j + c_i - start_j`` tokens each, and
these together with the peak of i must fit.  When several complete together, the check at the
first of them sees them all; that is why the order of ties has to be one order for all pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from kvopt.formulations.windows import Windows
from kvopt.kernels.dependencies import load_cp_model
from kvopt.model.instance import Instance
from kvopt.model.schedule import identical_groups

LARGEST_PAIRS = 200_000
"""Ordered pairs beyond which the model is not built: it grows with their number."""


@dataclass(frozen=True, eq=False)  # == of two variables is a constraint
class PairModel:
    """A ``cp_model.CpModel``, to which constraints can be added, and the start of each request."""

    model: Any
    starts: list[Any]


def pair_model(instance: Instance, windows: Windows, *, order_identical: bool = True) -> PairModel:
    """Build the model; its objective is total latency.

    Parameters
    ----------
    instance
        The problem.
    windows
        Start rounds to consider for each request, from `kvopt.bounds.windows.start_windows`.
    order_identical
        Whether requests of one shape start in order of arrival; without loss unless some of
        them are held where they are.
    """
    build = _Builder(instance, windows)
    build.pair_relations()
    build.memory_at_completions()
    build.redundant_cumulative()
    if order_identical:
        build.identical_requests_in_order()
    build.total_latency()
    return PairModel(build.model, build.starts)


class _Builder:
    """The constraint families, one method each."""

    def __init__(self, instance: Instance, windows: Windows) -> None:
        self.instance, self.windows = instance, windows
        self.model = load_cp_model().CpModel()
        self.starts = [
            self.model.new_int_var(window[0], window[-1], f"start_{i}")
            for i, window in enumerate(windows)
        ]
        self.ends = [k + r.output for k, r in zip(self.starts, instance, strict=True)]
        self.active: dict[tuple[int, int], Any] = {}

    def pair_relations(self) -> None:
        """One of two requests is over before the other starts, or completes during it.

        ``before[i, j]``: c_i <= start_j.  ``active[i, j]``: start_j < c_i <= c_j (c_i < c_j if
        i > j), and what j holds by then fits beside the peak of i:
        s_j + c_i - start_j <= M - (s_i + o_i).
        """
        count = len(self.starts)
        for i in range(count):
            for j in range(i):
                before = self._before(i, j), self._before(j, i)
                active = self._active(i, j), self._active(j, i)
                self.model.add_exactly_one(lit for lit in before + active if lit is not None)

    def _before(self, i: int, j: int) -> Any:
        first, second = self.windows[i], self.windows[j]
        if first[0] + self.instance.requests[i].output > second[-1]:
            return None
        literal = self.model.new_bool_var(f"before_{i}_{j}")
        self.model.add(self.starts[j] >= self.ends[i]).only_enforce_if(literal)
        return literal

    def _active(self, i: int, j: int) -> Any:
        room = self._room(i, j)
        if room < 1:
            return None
        literal = self.model.new_bool_var(f"active_{i}_{j}")
        grown = self.ends[i] - self.starts[j]
        self.model.add(grown >= 1).only_enforce_if(literal)
        self.model.add(grown <= room).only_enforce_if(literal)
        tie = 0 if i < j else 1
        self.model.add(self.ends[i] + tie <= self.ends[j]).only_enforce_if(literal)
        self.active[i, j] = literal
        return literal

    def _room(self, i: int, j: int) -> int:
        """Tokens that j can have grown when i completes beside it."""
        first, second = self.instance.requests[i], self.instance.requests[j]
        return min(second.output, self.instance.memory - first.peak - second.prompt)

    def memory_at_completions(self) -> None:
        """At the completion of i the active requests fit beside its peak.

        sum over j of load[i, j] <= M - (s_i + o_i), where load[i, j] is at least
        s_j + c_i - start_j when j is active at c_i and at least 0 otherwise.
        """
        loads: dict[int, list[Any]] = {i: [] for i in range(len(self.starts))}
        for (i, j), literal in self.active.items():
            prompt = self.instance.requests[j].prompt
            load = self.model.new_int_var(0, prompt + self._room(i, j), f"load_{i}_{j}")
            grown = self.ends[i] - self.starts[j]
            self.model.add(load >= prompt + grown).only_enforce_if(literal)
            loads[i].append(load)
        for i, terms in loads.items():
            if len(terms) > 1:  # a single load is within its own room already
                room = self.instance.memory - self.instance.requests[i].peak
                self.model.add(sum(terms) <= room)

    def redundant_cumulative(self) -> None:
        """At every time each active request holds its prompt and one token at least."""
        intervals = [
            self.model.new_fixed_size_interval_var(start, request.output, f"life_{i}")
            for i, (start, request) in enumerate(zip(self.starts, self.instance, strict=True))
        ]
        least = [request.prompt + 1 for request in self.instance]
        self.model.add_cumulative(intervals, least, self.instance.memory)

    def identical_requests_in_order(self) -> None:
        """Requests of one shape start in order of arrival: they can swap places."""
        for group in identical_groups(self.instance):
            for i, j in pairwise(group):
                self.model.add(self.starts[i] <= self.starts[j])

    def total_latency(self) -> None:
        """Minimise the sum of c_i - a_i."""
        arrivals = sum(request.arrival for request in self.instance)
        self.model.minimize(sum(self.ends) - arrivals)
