"""``kvopt policies``: the schedulers that kvopt knows."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields
from typing import Any

from rich.markup import escape

from kvopt.cli import common
from kvopt.policies.base import Policy
from kvopt.policies.registry import policies


def policies_command(_modules: common.Modules = None, json: common.Json = False) -> None:
    """List the schedulers with their source, what they have to know and their parameters.

    Every scheduler also takes pred=exact|lower|upper|mid|noise,
    intervals=file|rough|buckets|relative, eps, width and seed: what it believes of outputs.
    """
    rows = [_described(kind) for kind in policies().values()]
    if json:
        common.print_json({"policies": rows})
        return
    table = common.new_table(
        "policy", "needs", "parameters", "source", "rule",
        prose=("parameters", "source", "rule"), optional=("source", "parameters", "needs"),
    )  # fmt: skip
    for row in rows:
        parameters = [
            key if value is None else f"{key}={value}" for key, value in row["parameters"].items()
        ]
        table.add_row(
            row["policy"],
            ", ".join(row["needs"]) or "nothing",
            escape(", ".join(parameters)),
            row["source"],
            escape(row["summary"]),
        )
    common.print_table(table)


def _described(kind: type[Policy]) -> dict[str, Any]:
    shared = {item.name for item in fields(Policy)}
    own = (item for item in fields(kind) if item.init and item.name not in shared)
    return {
        "policy": kind.name,
        "summary": (inspect.getdoc(kind) or "").partition("\n")[0].replace("``", ""),
        "source": kind.source,
        "needs": [str(need) for need in kind.needs],
        "parameters": {
            item.name: None if item.default in (MISSING, None) else str(item.default)
            for item in own
        },
    }
