"""Simulate a server with other settings, with and without knowledge of outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, NamedTuple

from kvopt import PolicyRun
from kvopt import policy as policy_from
from kvopt.heuristics.seconds.server_search import good_settings
from kvopt.heuristics.seconds.server_settings import ServerSetting, has_flags
from kvopt.kernels.budget import Budget
from kvopt.problem.problem import Problem
from kvopt.simulate.policies.by_name import pairs
from kvopt.simulate.policies.server_policies import ServerPolicy

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
    """A class of settings by what a server must know: its name, words, and which it covers."""

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
    """A simulated server, in words what it knows and changes: no proof.

    Names are ``settings``, ``prompts``, or ``outputs`` with an error in percent.  ``flags`` are
    options of ``vllm serve``; clients send ``priority`` as that of a request, nothing for the
    order of arrival.
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
        scale = self.run.instance.total_weight * self.run.clock.scale
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
    text = ",".join(f"{key}={value}" for key, value in {**limits, **keys, **kept}.items())
    return name + text


def variants(
    problem: Problem, scheduler: str, simulate: Simulate, budget: Budget
) -> Iterator[Variant]:
    """Yield servers of each class, simulated with the other rules of a scheduler, in seconds.

    Compiled loops choose the finalists of each class among limits and orders.  The first of all
    classes come first; later ones may be better.
    """
    server = policy_from(scheduler)
    today = ServerSetting.of_policy(scheduler) if isinstance(server, ServerPolicy) else None
    if today is not None:
        blocks = replace(problem.instance, block_size=today.block)
        problem = replace(problem, instance=blocks)
    # Half of the time is for limits and orders in loops, the other half for runs.
    kinds = [knowledge.covers for knowledge in CLASSES]
    ranked = good_settings(problem, kinds, _FINALISTS, budget.part(0.5))
    for finalists in ranked:
        # Limits of today with this order: loops leave out some rules, so these may be better.
        if today is not None and finalists and (by := finalists[0].by) != today.by:
            finalists.insert(1, replace(today, by=by, prompts=None))
    for row in zip_longest(*ranked):
        for knowledge, setting in zip(CLASSES, row, strict=True):
            for name, words, error in _named(knowledge):
                if setting is None or budget.over():
                    continue
                noise = {} if not error else {"pred": "noise", "eps": error}
                if (run := simulate(policy_of(setting, scheduler, **noise))) is not None:
                    yield Variant(name, words, run, setting.flags or "", _PRIORITIES[setting.by])


def _named(knowledge: Knowledge) -> Iterator[tuple[str, str, float | None]]:
    """Yield name, words and error of each variant of a class: predictions may err."""
    if knowledge.name != "outputs":
        yield knowledge.name, knowledge.words, None
        return
    for error in ERRORS:
        about = f"off by up to {error:.0%}" if error else "exact"
        yield f"{knowledge.name} {error:.0%}", f"{knowledge.words}, {about}", error


NAMES = {name: words for knowledge in CLASSES for name, words, _ in _named(knowledge)}
"""Names of variants in their order, with words."""
