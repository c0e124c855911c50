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
    text = ",".join(f"{key}={value}" for key, value in {**limits, **keys, **kept}.items())
    return name + text


def variants(
    problem: Problem, scheduler: str, simulate: Simulate, budget: Budget
) -> Iterator[Variant]:
    """Yield servers of each class, simulated with the rules of a scheduler.

    Compiled loops choose the finalists of each class among limits and orders.  The first of all
    classes come first; later ones may be better.

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
    kinds = [knowledge.covers for knowledge in CLASSES]
    ranked = good_settings(problem, kinds, _FINALISTS, budget.part(0.5))
    for finalists in ranked:
        # Limits of today with this order: loops leave out some rules, so these may be better.
        if today is not None and finalists and (by := finalists[0].by) != today.by:
            finalists.insert(1, replace(today, by=by, prompts=None))
    for row in zip_longest(*ranked):
        for knowledge, setting in zip(CLASSES, row, strict=True):
            for error in ERRORS if knowledge.name == "outputs" else (None,):
                if setting is None or budget.over():
                    continue
                noise = {} if not error else {"pred": "noise", "eps": error}
                if (run := simulate(policy_of(setting, scheduler, **noise))) is not None:
                    name, words = _named(knowledge, error)
                    advice = setting.flags or "", _PRIORITIES[setting.by]
                    yield Variant(name, words, run, *advice)


def _named(knowledge: Knowledge, error: float | None) -> tuple[str, str]:
    """Return name and words of a class with predictions that err."""
    name, words, _ = knowledge
    if error is None:
        return name, words
    about = f"off by up to {error:.0%}" if error else "exact"
    return f"{name} {error:.0%}", f"{words}, {about}"


NAMES = dict(
    _named(knowledge, error)
    for knowledge in CLASSES
    for error in (ERRORS if knowledge.name == "outputs" else (None,))
)
"""Names of variants in their order, with words."""
