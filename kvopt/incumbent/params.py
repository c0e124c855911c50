"""Parameters of `solve`, `bound` and `certify`: limits on size, a width and a share of time.

`SolveParams` has them.  ``kvopt info --params`` prints them as TOML, and ``--params FILE`` reads a
file with changed lines.  Every other size is a constant next to its use.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from kvopt.errors import InvalidInput, did_you_mean, shown
from kvopt.files.reading import blamed_on, read_text
from kvopt.problem.requests import LARGEST_INTEGER

_CONSTANTS = {
    "portfolio": "exact_requests lp_columns tokens_share provable",
    "exact": "unaided width widest_width completion_sets",
    "configuration": "most_stages",
    "lagrangian": "most_steps",
    "improve": "beam_requests longest_cycle",
    "deadlines": "share most_seconds",
}
"""Names of earlier parameters, which are refused as such."""


def _param(default: Any, doc: str, minimum: float = 0, maximum: float = LARGEST_INTEGER) -> Any:
    """Return a field with its trade-off, unit and range."""
    return field(default=default, metadata={"doc": doc, "minimum": minimum, "maximum": maximum})


@dataclass(frozen=True)
class SolveParams:
    """All parameters; ``exact_searchable`` is ``searchable`` in the table ``exact`` of a file.

    Examples
    --------
    >>> from kvopt import SolveParams
    >>> SolveParams().exact_searchable
    45
    >>> SolveParams.of({"exact": {"searchable": 60}}).exact_searchable
    60
    """

    portfolio_bound_share: float = _param(
        0.4, "Share of the time for bounds of larger instances; schedules get the rest.", maximum=1
    )
    exact_searchable: int = _param(
        45, "Requests up to which stages of prices have exhaustive searches; then only the end has."
    )
    exact_most_labels: int = _param(
        60_000_000, "Most labels in a round of the last search: proofs against memory.", minimum=1
    )
    exact_checkable_labels: int = _param(
        180_000_000, "Labels times requests of a proof, which `kvopt verify` repeats in minutes."
    )
    lagrangian_longest: int = _param(
        20_000_000, "Most rounds with prices: longer horizons against memory, 8 GB here."
    )
    improve_widest_beam: int = _param(
        1024, "Nodes of the widest beam over a whole trace: schedules against memory.", minimum=1
    )

    @classmethod
    def of(cls, tables: Mapping[str, Any]) -> SolveParams:
        """Return parameters from tables of changes.

        Raises
        ------
        InvalidInput
            With the name of the unknown or invalid parameter.
        """
        by_path = {parameter.name.replace("_", ".", 1): parameter for parameter in fields(cls)}
        changed: dict[str, Any] = {}
        for group, table in _entries(tables, None):
            for name, value in _entries(table, group):
                path = f"{group}.{name}"
                if name in _CONSTANTS.get(group, "").split():
                    raise InvalidInput("is a constant now", field=path)
                if path not in by_path:
                    reason = f"is not one of {', '.join(by_path)}" + did_you_mean(path, by_path)
                    raise InvalidInput(reason, field=path)
                changed[by_path[path].name] = _checked_value(by_path[path], value, path)
        return cls(**changed)

    @classmethod
    def from_toml(cls, path: str | Path) -> SolveParams:
        """Read a TOML file with changed parameters."""
        with blamed_on(path):
            try:
                return cls.of(tomllib.loads(read_text(path)))
            except tomllib.TOMLDecodeError as error:
                raise InvalidInput(f"cannot be read: {error}") from error

    def tables(self) -> dict[str, dict[str, float]]:
        """Return them as the tables of a file."""
        tables: dict[str, dict[str, float]] = {}
        for parameter in fields(self):
            group, name = parameter.name.split("_", 1)
            tables.setdefault(group, {})[name] = getattr(self, parameter.name)
        return tables

    def to_toml(self) -> str:
        """Return them as TOML, each with its meaning."""
        docs = {parameter.name: parameter.metadata["doc"] for parameter in fields(self)}
        parts = []
        for group, table in self.tables().items():
            lines = (f"# {docs[f'{group}_{name}']}\n{name} = {v:_}" for name, v in table.items())
            parts.append("\n".join((f"[{group}]", *lines)))
        return "\n\n".join(parts) + "\n"


DEFAULT = SolveParams()
"""The default parameters."""


def _entries(table: object, where: str | None) -> list[tuple[str, Any]]:
    """Return the entries of a table; an empty one has nothing to change."""
    if not isinstance(table, Mapping):
        raise InvalidInput(f"must be a table, got {shown(table)}", field=where)
    return list(table.items())


def _checked_value(param: Field[Any], value: Any, path: str) -> Any:
    """Return a number if it is of the kind of its default and in its range."""
    kind = type(param.default)
    minimum, maximum = param.metadata["minimum"], param.metadata["maximum"]
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        name = "an integer" if kind is int else "a number"
        raise InvalidInput(f"must be {name}, got {shown(value)}", field=path)
    if not minimum <= value <= maximum:
        raise InvalidInput(f"must be from {minimum} to {maximum}, got {value}", field=path)
    return value
