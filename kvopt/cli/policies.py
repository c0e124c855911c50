"""``kvopt policies``: the schedulers that kvopt knows."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Annotated, Any

from kvopt.cli import common
from kvopt.cli.common import option
from kvopt.show.summary import first_line
from kvopt.simulate.policies.base import Policy
from kvopt.simulate.policies.registry import policies
from kvopt.simulate.routers.registry import ROUTERS

_OPTIONAL = ("source", "parameters", "given", "needs")


def policies_command(
    _modules: common.Modules = None,
    routers: Annotated[
        bool, option("--routers", "List the routers of fleets instead, see kvopt run --router.")
    ] = False,
    json: common.Json = False,
) -> None:
    """List the schedulers with their source, what they have to know and their parameters.

    Every scheduler also takes pred=exact|lower|upper|mid|noise,
    intervals=file|rough|buckets|relative, eps, width and seed: what it believes of outputs.
    """
    if routers:
        rows = [
            {
                "router": kind.name,
                "summary": first_line(kind),
                "source": kind.source,
                "given": "when it arrives" if kind.is_irrevocable else "when it starts",
            }
            for kind in ROUTERS.all().values()
        ]
    else:
        rows = [_described(kind) for kind in policies().values()]
    if json:
        common.print_json({"routers" if routers else "policies": rows})
    else:
        common.print_rows(rows, ("parameters", "source", "summary"), _OPTIONAL)


def _described(kind: type[Policy]) -> dict[str, Any]:
    shared = {item.name for item in fields(Policy)}
    own = (item for item in fields(kind) if item.init and item.name not in shared)
    return {
        "policy": kind.name,
        "summary": first_line(kind),
        "source": kind.source,
        "needs": [str(need) for need in kind.needs],
        "parameters": {
            item.name: None if item.default in (MISSING, None) else str(item.default)
            for item in own
        },
    }
