"""Servers with good settings, found on a grid, and settings that change over time.

One machine without prefixes is simulated in compiled loops, which take the decisions of
`kvopt.simulate.vllm_server`.  Of a fleet they serve the share of one machine.  Then, and with
prefixes, the best points of the grid are run by the simulator, in a fleet behind routers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from kvopt.heuristics.seconds.limits_by_window import SettingsByWindow, settings_by_load
from kvopt.heuristics.seconds.server_settings import (
    CLASSES,
    SERVERS_ON_SAMPLE,
    Explored,
    Kind,
    Latency,
    ServerSetting,
    SettingsGrid,
    explored,
    is_blind,
    sampled,
)
from kvopt.heuristics.seconds.vllm_rules import OneServer
from kvopt.heuristics.seconds.worker_moves import joined_run, offer_policy
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.result import ServerAnswer
from kvopt.kernels.budget import Budget, wall_time
from kvopt.problem.clocks import Seconds
from kvopt.problem.instance import Instance
from kvopt.problem.problem import Problem
from kvopt.problem.scopes import Scope
from kvopt.timetable.work_intervals import Chunks

_SERVERS_BY_LOAD = 0.5
"""Share of the time: settings by load, of the time that other settings left."""
_SERVERS_OVER_TIME = 0.9
"""Share of the time: settings that change over time; their run is checked after it."""
_FIRST = (
    ServerSetting("total", 1024, 512, 1),
    ServerSetting("prompt", 1024, 512),
)
"""Settings with which the simulator begins."""
_AT_ONCE = tuple(ServerSetting("total", 1024, cap, 1) for cap in (512, 128, 32, 8))
"""Settings of a first run."""
_BEHIND_ROUTERS = 4
"""Settings of each class that the simulator runs."""
_ROUTERS = ("least-requests", "least-volume", "longest-prefix", "round-robin")
"""Routers to try with the best settings."""
OVER_TIME = "settings over time"
"""Name of runs whose settings change."""


def offer_first_server(search: Search, _: Budget) -> None:
    """Offer the best of a few servers in loops on one machine, which take moments."""
    if (server := _server_of(search.problem, search.instance)) is None:
        return
    tried = Explored(_in_loops(search.problem, server), Budget())
    tried.try_all(map(_grid_of(search.problem, search.instance).allowed, _AT_ONCE))
    if (best := tried.best()) is not None:
        offer_work(search, best.label, [server.events(best.by, best.limits())])
        _answer(search, "all", best, int(tried.latencies[best]))


def search_servers(search: Search, budget: Budget) -> None:
    """Offer servers with the best settings of a grid, and name these."""
    problem, share = search.problem, _share_of(search.problem)
    if (server := _server_of(problem, share)) is None:
        return  # the simulator would take too long as well
    if problem.is_fleet or "prefix" in share.extras:
        _explore_by_runs(search, share, server, budget)
    else:
        _explore_in_loops(search, server, budget)


def good_settings(
    problem: Problem, kinds: Sequence[Kind], count: int, budget: Budget
) -> list[list[ServerSetting]]:
    """Return the best settings of each class, the best first, by compiled loops.

    They serve the share of one machine, without prefixes.

    Parameters
    ----------
    problem
        The problem, in seconds.
    kinds
        The classes.
    count
        Limit of the number of settings of a class.
    budget
        Time.
    """
    if (server := _server_of(problem, _share_of(problem))) is None:
        return [[] for _ in kinds]

    def is_any(setting: ServerSetting) -> bool:
        return any(kind(setting) for kind in kinds)

    grid = _grid_of(problem, problem.instance.without_prefixes())
    tried = Explored(_in_loops(problem, server), budget)
    tried.try_all(filter(is_any, grid.points()))
    for kind in (is_any, *kinds):  # limits that are good for one order are tried with the others
        tried.refine(grid, kind)
    # Of settings with one latency, often the same decisions, one is enough.
    ranked = [{tried.latencies[s]: s for s in tried.ranked(kind)} for kind in kinds]
    return [[*best.values()][:count] for best in ranked]


def _server_of(problem: Problem, instance: Instance) -> OneServer | None:
    """Return a server for requests, without their prefixes; None if it cannot hold them."""
    assert isinstance(problem.clock, Seconds)
    return OneServer.of(instance.without_prefixes(), problem.clock)


def _grid_of(problem: Problem, instance: Instance) -> SettingsGrid:
    """Return the settings for requests; those for loops have no prefixes, and no order by them."""
    is_chunked = problem.scope.covers(Scope.CHUNKS)
    return SettingsGrid(instance, problem.clock.batch_time, chunked=is_chunked)


def _in_loops(problem: Problem, server: OneServer) -> Latency:
    """Return the latency of a setting by compiled loops."""

    def latency(setting: ServerSetting) -> float:
        total, pauses = server.latency(setting.by, setting.limits())
        return total if problem.has_pauses or not pauses else math.inf

    return latency


def _explore_in_loops(search: Search, server: OneServer, budget: Budget) -> None:
    """Explore the grid on one machine, and offer the best run of each class."""
    problem, instance = search.problem, search.instance
    sample = sampled(instance, search.clock.arrivals(instance))
    few = None if sample is None else _server_of(problem, sample)
    on_sample = None if few is None else _in_loops(problem, few)
    grid = _grid_of(problem, instance)
    tried = explored(grid, _in_loops(problem, server), on_sample, budget)
    for name, kind in CLASSES.items():
        if (best := tried.best(kind)) is not None:
            offer_work(search, best.label, [server.events(best.by, best.limits())])
            _answer(search, name, best, int(tried.latencies[best]))
    if (blind := tried.best(is_blind)) is not None and blind.chunked:
        assert isinstance(search.clock, Seconds)
        by_load = settings_by_load(instance, search.clock, blind, budget.part(_SERVERS_BY_LOAD))
        if by_load is not None:
            search.note(by_load.sentence)


def _explore_by_runs(search: Search, share: Instance, server: OneServer, budget: Budget) -> None:
    """Explore the grid on the share of a machine, and run the best points of it."""
    problem, instance = search.problem, search.instance
    grid, routed = _grid_of(problem, instance), _Routed(search, budget)
    if "prefix" in share.extras:
        first = [*map(grid.allowed, _FIRST)]  # a sample has other prefixes, and says little
    else:
        plain = _grid_of(problem, instance.without_prefixes())
        within = budget.part(SERVERS_ON_SAMPLE)
        coarse = explored(plain, _in_loops(problem, server), None, within)
        first = coarse.finalists(_BEHIND_ROUTERS)
    tried = Explored(routed.latency, budget)
    for setting in first:
        tried.try_all([setting])
        routed.narrow()
    for kind in CLASSES.values():
        tried.refine(grid, kind)


def _share_of(problem: Problem) -> Instance:
    """Return the requests of one of the machines if they get them in turn."""
    instance = problem.instance
    if not problem.is_fleet:
        return instance
    arrivals = problem.clock.arrivals(instance)
    in_order = sorted(range(len(arrivals)), key=lambda i: (arrivals[i], i))
    return instance.of_one_worker(sorted(in_order[:: instance.workers]))


class _Routed:
    """Runs of servers by the simulator, in a fleet behind routers."""

    def __init__(self, search: Search, budget: Budget) -> None:
        self._search, self._budget = search, budget
        is_fleet, has_prefixes = search.problem.is_fleet, "prefix" in search.instance.extras
        names = [name for name in _ROUTERS if has_prefixes or name != "longest-prefix"]
        self._latencies = dict.fromkeys(names if is_fleet else ["central"], math.inf)

    def latency(self, setting: ServerSetting) -> float:
        """Return the latency behind the best router, and offer the runs."""
        search, lowest = self._search, math.inf
        for router, before in self._latencies.items():
            label = setting.label + (f" behind {router}" if search.problem.is_fleet else "")
            run = offer_policy(search, setting.label, label, router, self._budget)
            if run is None or not search.problem.scope.covers(run.scope):
                continue
            for name, kind in CLASSES.items():
                if kind(setting):
                    _answer(search, name, setting, run.objective, router)
            lowest = min(lowest, run.objective)
            self._latencies[router] = min(before, run.objective)
        return lowest

    def narrow(self) -> None:
        """Keep the best router only."""
        best = min(self._latencies, key=self._latencies.__getitem__)
        self._latencies = {best: self._latencies[best]}


def _answer(
    search: Search, kind: str, setting: ServerSetting, latency: int, router: str = "central"
) -> None:
    """Keep settings as the best of a class if they are."""
    behind = router if search.problem.is_fleet else None
    search.answer_server(kind, ServerAnswer(setting.label, behind, setting.flags, latency))


def offer_work(search: Search, label: str, events: Sequence[Mapping[str, Any]]) -> None:
    """Offer a run of all machines by the work of each of them."""
    began, members = wall_time(), [[*range(len(search.instance))]]
    if search.problem.is_fleet:
        assert search.best is not None
        members = search.best.members
    segments: list[Any] = [None] * len(search.instance)
    workers, chunks = [0] * len(segments), list[Chunks]()
    for worker, (served, work) in enumerate(zip(members, events, strict=True)):
        for i, rows in zip(served, work["segments"], strict=True):
            segments[i], workers[i] = rows, worker
        chunks += (piece._replace(request=served[piece.request]) for piece in work["chunks"])
    resumed = [times for work in events for times in work["resumed"]]
    work = {"workers": workers, "segments": segments, "chunks": chunks, "resumed": resumed}
    search.offer(joined_run(search, label, began, **work), label)


def search_over_time(search: Search, budget: Budget) -> None:
    """Offer the best run with settings that change over time, from the best settings of a grid."""
    best, problem = search.best, search.problem
    assert best is not None
    setting = ServerSetting.of_policy(search.servers["all"].policy)
    parts = [part.instance for part in best.parts] if problem.is_fleet else [search.instance]
    servers = [_server_of(problem, part) for part in parts]
    if not all(servers) or "prefix" in search.instance.extras:
        return
    events: list[Mapping[str, Any]] = []
    for left, server in zip(range(len(servers), 0, -1), servers, strict=True):
        assert server is not None
        within = budget.part(_SERVERS_OVER_TIME / left)
        may_pause, seed = problem.has_pauses, search.limits.seed
        windows = SettingsByWindow(server, setting, within, seed, may_pause=may_pause)
        # Only with work of the last machine there is a run of all of them to offer.
        events.append({})
        for events[-1] in windows.search():
            if left == 1:
                offer_work(search, OVER_TIME, events)
