"""Parameters of `solve`, `bound` and `certify`: sizes, widths, limits and shares of time.

`SolveParams` has groups of them.  `kvopt info --params` prints them as TOML, and ``--params FILE``
reads a file with changed lines.  Every other size is a constant next to its use.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from kvopt.errors import InvalidInput, did_you_mean, shown
from kvopt.files.reading import blamed_on, read_text
from kvopt.problem.requests import LARGEST_INTEGER

Group = TypeVar("Group")


def _param(default: Any, doc: str, *, least: float = 0, most: float = math.inf) -> Any:
    """Return a field with its trade-off, unit and range."""
    return field(default=default, metadata={"doc": doc, "least": least, "most": most})


def _share(default: float, doc: str) -> Any:
    return _param(default, doc, most=1)


@dataclass(frozen=True)
class PortfolioParams:
    """Choice of bound and engine by size: ``auto``."""

    exact_requests: int = _param(
        80, "Requests up to which the exact engine prices all starts; more take longer than it has."
    )
    bound_share: float = _share(
        0.4, "Share of the time for bounds of larger instances; schedules get the rest."
    )
    lp_columns: int = _param(
        40_000, "Columns up to which an LP ends the climb of prices; more cost time and memory."
    )
    tokens_share: float = _share(
        0.3,
        "Share of the time left for searches under prices of tokens; local search gets the rest.",
    )
    provable: int = _param(
        30, "Requests up to which a solver's proof gets more time than better schedules."
    )


@dataclass(frozen=True)
class ExactParams:
    """The engine ``exact``: forward searches in time, by beam and exhaustive."""

    searchable: int = _param(
        45, "Requests up to which searches are exhaustive; beyond, that time goes to beams."
    )
    unaided: int = _param(
        20,
        "Requests up to which local search and completion bounds cost more than they save.",
    )
    width: int = _param(
        1000, "Largest beam width in labels while the bound rises: schedules for time.", least=1
    )
    widest_width: int = _param(
        40_000, "Largest beam width in labels when it rises no more.", least=1
    )
    most_labels: int = _param(
        60_000_000, "Most labels in a round of the last search: proofs against memory.", least=1
    )
    checkable_labels: int = _param(
        400_000_000,
        "Labels times requests of a proof, which `kvopt verify` repeats in minutes.",
    )
    completion_sets: int = _param(
        1_000_000,
        "Most sets of states of a time with completion bounds, for fewer labels.",
        least=1,
    )


@dataclass(frozen=True)
class ConfigurationParams:
    """The bound ``configuration``."""

    most_stages: int = _param(
        11, "Most stages of the climb, from coarse and quick to fine and slow.", least=1
    )


@dataclass(frozen=True)
class LagrangianParams:
    """The bounds ``lagrangian`` and ``slots``: prices that rise towards the LP bound."""

    most_steps: int = _param(
        6000, "Most steps: the bound against time, where no limit is.", least=1
    )
    longest: int = _param(
        20_000_000, "Most rounds with prices: longer horizons against memory, 8 GB here."
    )


@dataclass(frozen=True)
class ImproveParams:
    """Better schedules: beams, local search."""

    beam_requests: int = _param(
        200, "Requests from which on beams over all of a trace take the time of annealing."
    )
    widest_beam: int = _param(
        1024, "Nodes of the widest beam over a whole trace: schedules against memory.", least=1
    )
    longest_cycle: int = _param(
        2_000_000, "Most steps of a cycle of annealing: longer ones cool more slowly.", least=1
    )


@dataclass(frozen=True)
class DeadlineParams:
    """Parameters of ``certify --deadline``."""

    share: float = _share(
        0.15, "Share of the time for prices of a ceiling, and as much for schedules."
    )
    most_seconds: float = _param(
        10.0, "Seconds for each of the two at most: latency gets the rest."
    )


@dataclass(frozen=True)
class SolveParams:
    """All parameters, in groups.

    Examples
    --------
    >>> from kvopt import SolveParams
    >>> SolveParams().exact.width
    1000
    >>> SolveParams.of({"exact": {"width": 2000}}).exact.width
    2000
    """

    portfolio: PortfolioParams = PortfolioParams()
    exact: ExactParams = ExactParams()
    configuration: ConfigurationParams = ConfigurationParams()
    lagrangian: LagrangianParams = LagrangianParams()
    improve: ImproveParams = ImproveParams()
    deadlines: DeadlineParams = DeadlineParams()

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> SolveParams:
        """Return parameters from tables of changes.

        Raises
        ------
        InvalidInput
            With the name of the unknown or invalid parameter.
        """
        return _read(cls(), table, "")

    @classmethod
    def from_toml(cls, path: str | Path) -> SolveParams:
        """Read a TOML file with changed parameters."""
        with blamed_on(path):
            try:
                return cls.of(tomllib.loads(read_text(path)))
            except tomllib.TOMLDecodeError as error:
                raise InvalidInput(f"cannot be read: {error}") from error

    def to_toml(self) -> str:
        """Return all of them as TOML, each with its meaning."""
        return "\n".join(_lines(self)).strip() + "\n"


DEFAULT = SolveParams()
"""The default parameters."""


# ---- from tables, and to text ---------------------------------------------------------------


def _read(group: Group, table: object, where: str) -> Group:
    """Return a group with some entries replaced by those of a table."""
    if not isinstance(table, Mapping):
        raise InvalidInput(f"must be a table, got {shown(table)}", field=where or None)
    known = {each.name: each for each in fields(group)}  # type: ignore[arg-type]
    changed: dict[str, Any] = {}
    for name, value in table.items():
        path = f"{where}.{name}".strip(".")
        if name not in known:
            reason = f"is not one of {', '.join(known)}" + did_you_mean(name, known)
            raise InvalidInput(reason, field=path)
        default, limits = getattr(group, name), known[name].metadata
        if limits:
            changed[name] = _value(default, value, limits, path)
        else:
            changed[name] = _read(default, value, path)
    return type(group)(**{**vars(group), **changed})


def _value(default: float, value: Any, limits: Mapping[str, Any], path: str) -> Any:
    """Return a number if it is of the kind of its default and in its range."""
    kind = type(default)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        names = {int: "an integer", float: "a number"}
        raise InvalidInput(f"must be {names[kind]}, got {shown(value)}", field=path)
    if abs(value) > LARGEST_INTEGER:
        raise InvalidInput(f"must be at most 2^53 - 1, got {value}", field=path)
    if not limits["least"] <= value <= limits["most"]:
        ends = f"at least {limits['least']}"
        if limits["most"] < math.inf:
            ends = f"from {limits['least']} to {limits['most']}"
        raise InvalidInput(f"must be {ends}, got {value}", field=path)
    return value


def _lines(params: SolveParams) -> Iterator[str]:
    """Yield the lines of all groups."""
    for each in fields(params):
        group = getattr(params, each.name)
        yield from (f"# {(type(group).__doc__ or '').partition(chr(10))[0]}", f"[{each.name}]")
        for param in fields(group):
            value = getattr(group, param.name)
            text = f"{value:_}" if isinstance(value, int) else repr(value)
            yield from (f"# {param.metadata['doc']}", f"{param.name} = {text}")
        yield ""
