"""Simulate a server with other settings, with and without knowledge of outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from kvopt import PolicyRun
from kvopt import policy as policy_from
from kvopt.heuristics.seconds.server_grid import has_flags
from kvopt.heuristics.seconds.server_runs import ServerSetting
from kvopt.heuristics.seconds.server_search import good_settings
from kvopt.kernels.budget import Budget
from kvopt.problem.problem import Problem
from kvopt.simulate.policies.registry import pairs
from kvopt.simulate.policies.servers import ServerPolicy

ERRORS = 0.5, 0.2, 0.0
"""Errors of predicted outputs: a prediction is between (1 - error) and (1 + error) times it."""
_FINALISTS = 3
"""Settings of each class that the simulator runs with all rules of the server."""
_REPLACED = {"budget", "max_seqs", "chunked", "by", "prompts", "pred", "eps"}
"""Keys of a scheduler that a setting replaces; its other rules stay."""

_PRIORITIES = {
    "arrival": "",
    "prompt": "prompt tokens",
    "output": "predicted output tokens",
    "total": "prompt and predicted output tokens",
    "volume": "predicted token-rounds",
}
"""What clients send as priority, by order of the line."""

Simulate = Callable[[str], PolicyRun | None]
"""Runs a scheduler; None if it does not complete in its time."""


class Knowledge(NamedTuple):
    """What a server must know and change for a class of settings.

    Parameters
    ----------
    name
        Name in JSON.
    words
        Words for readers.
    covers
        Whether a setting belongs to the class.
    """

    name: str
    words: str
    covers: Callable[[ServerSetting], bool]


CLASSES = (
    Knowledge("settings", "settings alone", lambda s: has_flags(s) and s.by == "arrival"),
    Knowledge("prompts", "shortest prompts first", lambda s: has_flags(s) and s.by == "prompt"),
    Knowledge("outputs", "by predicted length", lambda s: has_flags(s) and s.knows_outputs),
)
"""Classes of settings: the first two know no output."""


@dataclass(frozen=True)
class Variant:
    """A simulated server: no proof.

    Parameters
    ----------
    name
        ``settings``, ``prompts``, or ``outputs`` with an error in percent.
    words
        What it knows and changes, in words.
    run
        Its run.
    flags
        Options of ``vllm serve``.
    priority
        What clients send as the priority of a request, empty for the order of arrival.
    """

    name: str
    words: str
    run: PolicyRun
    flags: str
    priority: str = ""

    @property
    def is_blind(self) -> bool:
        """Whether it knows no output."""
        return not self.name.startswith("outputs")

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``kvopt headroom --json`` prints."""
        scale = sum(request.weight for request in self.run.instance) * self.run.clock.scale
        return {
            "name": self.name,
            "policy": self.run.policy,
            "router": self.run.router,
            "vllm": self.flags,
            "priority": self.priority or None,
            "mean_seconds": self.run.objective / scale,
            "proved": False,
        }


def policy_of(setting: ServerSetting, scheduler: str, **keys: object) -> str:
    """Return a scheduler with the order and limits of a setting, and its other rules.

    Examples
    --------
    >>> policy_of(ServerSetting("prompt", 512, 64), "vllm-fcfs:preset=serve-h100,max_seqs=9")
    'vllm-priority:by=prompt,budget=512,max_seqs=64,preset=serve-h100'
    """
    rules = {"block": str(setting.block)}
    if isinstance(policy_from(scheduler), ServerPolicy):
        rules = pairs(scheduler.partition(":")[2], "scheduler")
    limits: dict[str, object] = {"budget": setting.budget, "max_seqs": setting.cap}
    if not setting.chunked:
        limits["chunked"] = 0
    kept = {key: text for key, text in rules.items() if key not in _REPLACED}
    name = "vllm-fcfs:" if setting.by == "arrival" else f"vllm-priority:by={setting.by},"
    said = ",".join(f"{key}={value}" for key, value in {**limits, **keys, **kept}.items())
    return name + said


def variants(
    problem: Problem, scheduler: str, simulate: Simulate, budget: Budget
) -> Iterator[Variant]:
    """Yield the best server of each class, simulated with the rules of a scheduler.

    Compiled loops choose the finalists of each class among limits and orders.

    Parameters
    ----------
    problem
        The problem, in seconds.
    scheduler
        The scheduler whose other rules stay.
    simulate
        Runs a scheduler.
    budget
        Time.
    """
    server = policy_from(scheduler)
    today = ServerSetting.of_policy(scheduler) if isinstance(server, ServerPolicy) else None
    if today is not None:
        blocks = replace(problem.instance, block_size=today.block)
        problem = replace(problem, instance=blocks)
    # Half of the time is for limits and orders in loops, the other half for runs.
    kinds = [each.covers for each in CLASSES]
    ranked = good_settings(problem, kinds, _FINALISTS, budget.part(0.5))
    for (name, words, _), finalists in zip(CLASSES, ranked, strict=True):
        # Limits of today with this order: loops leave out some rules, so these may be better.
        own = [replace(today, by=best.by, prompts=None) for best in finalists[:1] if today]
        tried = (
            (setting, simulate(policy_of(setting, scheduler)))
            for setting in dict.fromkeys([*finalists, *own])
        )
        runs = [(run.objective, setting, run) for setting, run in tried if run is not None]
        if not runs:
            continue
        _, setting, run = min(runs, key=lambda row: row[0])
        advice = setting.flags or "", _PRIORITIES[setting.by]
        if name != "outputs":
            yield Variant(name, words, run, *advice)
            continue
        # Exact lengths chose the setting; predictions that err keep it.
        for error in ERRORS:
            noisy = policy_of(setting, scheduler, pred="noise", eps=error)
            predicted = run if not error else simulate(noisy)
            if predicted is not None:
                percents = f"{error:.0%}"
                about = f"{words}, off by up to {percents}" if error else f"{words}, exact"
                yield Variant(f"{name} {percents}", about, predicted, *advice)
