"""Families by paper, and the numbers of an instance that was drawn."""

from __future__ import annotations

from typing import Any

from kvopt.problem.instance import Instance

WANG = ["uniform", "normal", "binomial", "exponential", "mixed"]
TRAFFIC = ["conversation", "summarisation", "conversation-summarisation"]
SHARING = ["sessions", "agents"]
CHEN = ["two-point", "geometric", "linear-geometric"]


def prompts(instance: Instance) -> list[int]:
    return [request.prompt for request in instance]


def outputs(instance: Instance) -> list[int]:
    return [request.output for request in instance]


def arrivals(instance: Instance) -> list[int]:
    return [request.arrival for request in instance]


def noted(instance: Instance) -> dict[str, Any]:
    assert isinstance(instance.notes, dict)
    return instance.notes
