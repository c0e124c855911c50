"""The horizon-free constraint program: one variable a request for its wait, no time index.

The solver counts waits from the arrivals, so that late arrivals make no number large.

Take two requests i and j.  In every schedule exactly one of four things is true:

* i completes before j starts,
* j completes before i starts,
* i completes first while j is active,
* j completes first while i is active,

If two complete together, the one with the smaller index counts as first.  Memory peaks at
completions, so a check at the completion ``c_i`` of each i suffices: the requests that are
active then and not first hold ``s_j + c_i - start_j`` tokens each, and these together with
the peak of i must fit.  When several complete together, the check at the
first of them includes them all.  Therefore all pairs need the same order of ties.

In a fleet a fifth case is possible: the two are on different workers.

With shared prefixes the requests that are active at the completion of i hold, in addition to its
peak, their private tokens and once each node that one of them uses and that is not on its path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvopt.errors import Stopped
from kvopt.formulations.windows import Windows, workers_allowed
from kvopt.kernels.solver_versions import load_cp_model
from kvopt.problem.instance import Instance
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.standard_form import heavier_but_later, in_standard_form, start_order

LARGEST_PAIRS = 200_000
"""Limit of ordered pairs: the model grows with their number."""


def has_few_pairs(instance: Instance) -> bool:
    """Whether the model of an instance is small enough to be built."""
    return len(instance) * (len(instance) - 1) <= LARGEST_PAIRS


class PairModel:
    """A ``cp_model.CpModel`` of total latency, to which constraints can be added.

    The constraint families have one method each.

    Parameters
    ----------
    instance
        The problem.
    windows
        Start rounds to consider for each request, from `kvopt.bounds.start_windows.start_windows`.
    order_identical
        Whether requests of one shape are in standard form; without loss unless some of them have
        fixed starts.
    should_stop
        Asked while pairs are added; `Stopped` is raised when it turns true.

    Attributes
    ----------
    model
        The model.
    starts
        The start of each request, as an expression.
    """

    def __init__(
        self,
        instance: Instance,
        windows: Windows,
        *,
        order_identical: bool = True,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._instance, self._windows, self._should_stop = instance, windows, should_stop
        self._forest, self._private = instance.forest, instance.forest.private
        self.model = load_cp_model().CpModel()
        self._waits = [
            self.model.new_int_var(window[0] - r.arrival, window[-1] - r.arrival, f"wait_{i}")
            for i, (window, r) in enumerate(zip(windows, instance, strict=True))
        ]
        self.starts = [wait + r.arrival for wait, r in zip(self._waits, instance, strict=True)]
        self._ends = [k + r.output for k, r in zip(self.starts, instance, strict=True)]
        self._active_at: dict[tuple[int, int], Any] = {}
        self._workers: list[dict[int, Any]] = [{} for _ in instance]
        """For each request a Boolean for each worker that it may be on, none for one worker."""
        if instance.workers > 1:
            self._choose_workers()
        self._pair_relations()
        self._memory_at_completions()
        self._active_at_completions()
        self._redundant_cumulative()
        if order_identical:
            self._one_shape_in_order()
        self._total_latency()

    def hint(self, schedule: Schedule) -> None:
        """Suggest a schedule."""
        form = in_standard_form(schedule)
        for i, (start, worker) in enumerate(zip(form.starts, form.workers, strict=True)):
            self.model.add_hint(self._waits[i], start - self._instance.requests[i].arrival)
            for machine, literal in self._workers[i].items():
                self.model.add_hint(literal, machine == worker)

    def schedule(self, value: Callable[[Any], Any]) -> Schedule:
        """Return the schedule in the values of variables."""
        chosen = ([w for w, literal in at.items() if value(literal)] or [0] for at in self._workers)
        rows = zip(self._waits, self._instance, strict=True)
        starts = [int(value(wait)) + request.arrival for wait, request in rows]
        return Schedule(self._instance, starts, [workers[0] for workers in chosen])

    def _choose_workers(self) -> None:
        """Each request is on one worker; of equal workers only as many as differ count."""
        for i, choices in enumerate(workers_allowed(self._instance)):
            self._workers[i] = {w: self.model.new_bool_var(f"at_{i}_{w}") for w in choices}
            self.model.add_exactly_one(self._workers[i].values())

    def _check_time(self) -> None:
        """Raise `Stopped` in time: hundreds of thousands of pairs take many seconds."""
        if self._should_stop():
            raise Stopped

    def _pair_relations(self) -> None:
        """One of two requests completes before the other starts, or while it is active.

        ``before[i, j]``: c_i <= start_j.  ``active[i, j]``: start_j < c_i <= c_j (c_i < c_j if
        i > j), and the tokens of j then fit next to the peak of i:
        s_j + c_i - start_j <= M - (s_i + o_i).
        """
        count = len(self.starts)
        for i in range(count):
            self._check_time()
            for j in range(i):
                before = self._before(i, j), self._before(j, i)
                active = self._active(i, j), self._active(j, i)
                states = (*before, *active, self._apart(i, j))
                self.model.add_exactly_one(literal for literal in states if literal is not None)

    def _apart(self, i: int, j: int) -> Any:
        """``apart[i, j]``: i and j are on different workers."""
        if self._instance.workers == 1:
            return None
        literal = self.model.new_bool_var(f"apart_{i}_{j}")
        for worker in self._workers[i] | self._workers[j]:
            here, there = self._workers[i].get(worker), self._workers[j].get(worker)
            if here is not None and there is not None:
                self.model.add_bool_or(~here, ~there, ~literal)
                self.model.add_bool_or(~here, there, literal)
            else:
                self.model.add_implication(here if there is None else there, literal)
        return literal

    def _before(self, i: int, j: int) -> Any:
        """``before[i, j]``: c_i <= start_j; None if no windows allow it."""
        first, second = self._windows[i], self._windows[j]
        if first[0] + self._instance.requests[i].output > second[-1]:
            return None
        literal = self.model.new_bool_var(f"before_{i}_{j}")
        self.model.add(self.starts[j] >= self._ends[i]).only_enforce_if(literal)
        return literal

    def _active(self, i: int, j: int) -> Any:
        """``active[i, j]``: j has begun when i completes first, and fits next to its peak."""
        room = self._room(i, j)
        if room < 1:
            return None
        literal = self.model.new_bool_var(f"active_{i}_{j}")
        grown = self._ends[i] - self.starts[j]
        self.model.add(grown >= 1).only_enforce_if(literal)
        self.model.add(grown <= room).only_enforce_if(literal)
        tie = 0 if i < j else 1
        self.model.add(self._ends[i] + tie <= self._ends[j]).only_enforce_if(literal)
        self._active_at[i, j] = literal
        return literal

    def _room(self, i: int, j: int) -> int:
        """Tokens that j can have grown when i completes while both are active."""
        first, second = self._instance.requests[i], self._instance.requests[j]
        more = self._private[j] + sum(self._forest.weights[v] for v in self._apart_from(i, j))
        return min(second.output, self._instance.memory - first.peak - more)

    def _apart_from(self, i: int, j: int) -> list[int]:
        """Return the nodes of j that i does not hold."""
        return [v for v in self._forest.paths[j] if v not in self._forest.paths[i]]

    def _memory_at_completions(self) -> None:
        """At the completion of i the active requests fit together with its peak.

        sum over j of load[i, j] <= M - (s_i + o_i), where load[i, j] is at least
        s_j + c_i - start_j when j is active at c_i and at least 0 otherwise.  With prefixes s_j
        is the private prompt, and w_v used[i, v] joins the sum: used[i, v] if a j with v is active.
        """
        loads: dict[int, list[Any]] = {i: [] for i in range(len(self.starts))}
        for (i, j), literal in self._active_at.items():
            self._check_time()
            prompt = self._private[j]
            load = self.model.new_int_var(0, prompt + self._room(i, j), f"load_{i}_{j}")
            grown = self._ends[i] - self.starts[j]
            self.model.add(load >= prompt + grown).only_enforce_if(literal)
            loads[i].append(load)
        for (i, v), literals in self._users().items():
            used = self.model.new_bool_var(f"used_{i}_{v}")
            for literal in literals:
                self.model.add_implication(literal, used)
            loads[i].append(self._forest.weights[v] * used)
        for i, terms in loads.items():
            if len(terms) > 1:  # a single load is already limited by its own row
                room = self._instance.memory - self._instance.requests[i].peak
                self.model.add(sum(terms) <= room)

    def _users(self) -> dict[tuple[int, int], list[Any]]:
        """Return users of nodes that may be active at the completion of a request without them."""
        users: dict[tuple[int, int], list[Any]] = {}
        for (i, j), literal in self._active_at.items():
            for v in self._apart_from(i, j):
                users.setdefault((i, v), []).append(literal)
        return users

    def _redundant_cumulative(self) -> None:
        """At every time each active request holds its private prompt and one token at least."""
        intervals = [
            self.model.new_fixed_size_interval_var(start, request.output, f"life_{i}")
            for i, (start, request) in enumerate(zip(self.starts, self._instance, strict=True))
        ]
        demands = [prompt + 1 for prompt in self._private]
        memory = self._instance.memory * self._instance.workers
        self.model.add_cumulative(intervals, demands, memory)

    def _one_shape_in_order(self) -> None:
        """Requests of one shape have the places that the standard form gives them.

        k_i <= k_j for pairs in order; for a heavier i that arrives later, or else k_j < a_i.
        """
        for i, j in start_order(self._instance):
            self.model.add(self.starts[i] <= self.starts[j])
        for i, j in heavier_but_later(self._instance):
            self._check_time()
            early = self.model.new_bool_var(f"early_{j}_{i}")
            arrival = self._instance.requests[i].arrival
            self.model.add(self.starts[j] < arrival).only_enforce_if(early)
            self.model.add(self.starts[i] <= self.starts[j]).only_enforce_if(~early)

    def _active_at_completions(self) -> None:
        """At the completion of i the number of active requests is within the limit.

        sum over j of active[i, j] <= max_active - 1.  Requests active at a time are active at
        the next completion too.
        """
        if self._instance.max_active is None:
            return
        for i in range(len(self.starts)):
            others = [literal for (first, _), literal in self._active_at.items() if first == i]
            self.model.add(sum(others) <= self._instance.max_active - 1)

    def _total_latency(self) -> None:
        """Minimise the sum of w_i (c_i - a_i)."""
        rows = zip(self._instance, self._waits, strict=True)
        self.model.minimize(sum(r.weight * (wait + r.output) for r, wait in rows))
