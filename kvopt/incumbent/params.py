"""What may be turned: widths, limits, shares of time and stages of `solve`, `bound`, `certify`.

`SolveParams` has a group for each of them.  `kvopt info --params` prints it as TOML, and
``--params FILE`` reads a file with those lines that differ.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from kvopt.errors import InvalidInput, did_you_mean, shown
from kvopt.files.reading import blamed_on, read_text
from kvopt.problem.requests import LARGEST_INTEGER

Group = TypeVar("Group")


def _param(default: Any, doc: str, *, least: float = 0, most: float = math.inf) -> Any:
    """Return a field with what it means, its unit included, and the range it may have."""
    return field(default=default, metadata={"doc": doc, "least": least, "most": most})


def _share(default: float, doc: str) -> Any:
    return _param(default, doc, most=1)


_LEAST_HEAT = 1e-6
"""Temperature below which powers of e leave the range of floats."""


@dataclass(frozen=True)
class PortfolioParams:
    """Which bound and which engine for which size: ``auto``."""

    list_requests: int = _param(
        5_000, "Requests up to which four list schedules are tried at once; beyond, one is."
    )
    exact_requests: int = _param(
        80, "Requests up to which all starts are laid out for the exact engine, where they fit."
    )
    bound_share: float = _share(
        0.4, "Share of the time left for bounds, where configurations are too many."
    )
    lp_columns: int = _param(
        40_000, "Columns up to which an LP follows the climb of prices; a few seconds at most."
    )
    lp_at_once: int = _param(
        16_000, "Columns up to which the LP needs no climb before it; a second at most."
    )
    tokens_share: float = _share(
        0.3, "Share of the time left for searches under prices of tokens, in large caches."
    )
    lp_kinds: int = _param(
        10, "Kinds of requests up to which the method lagrangian ends with that LP."
    )
    proved_at_once: int = _param(
        12, "Requests up to which a solver proves at once and finds the schedule on its way."
    )
    provable: int = _param(30, "Requests up to which a solver's proof is worth most of the time.")
    improved_share: float = _share(
        0.3, "Share of the time left for better schedules before such a proof is tried."
    )
    round_share: float = _share(
        0.1, "Share of the time that must be left to go once more through parts without a proof."
    )


@dataclass(frozen=True)
class ExactParams:
    """The engine ``exact``: forward searches in time, by beam and exhaustive."""

    patience: float = _share(
        0.5, "Share of the time after which prices stop to climb, and searches have the rest."
    )
    searchable: int = _param(45, "Requests up to which there are exhaustive searches.")
    unaided: int = _param(
        20, "Requests up to which there is no local search beside the beam searches."
    )
    aid_share: float = _share(
        0.2, "Share of the time for that local search where searches forward find schedules too."
    )
    aid_least: float = _param(20.0, "Seconds for it at least.")
    first_width: int = _param(100, "Beam width in labels while prices are rough.", least=1)
    width: int = _param(1000, "Largest beam width in labels while the bound rises.", least=1)
    wider_width: int = _param(
        3000, "Largest beam width in labels before the last exhaustive search.", least=1
    )
    widest_width: int = _param(40_000, "Largest beam width in labels after it.", least=1)
    horizon: int = _param(5, "Rounds of the look-ahead of a beam search beyond `unaided` requests.")
    wide_horizons: tuple[int, ...] = _param(
        (5, 3, 8), "Rounds of the look-ahead of wider beam searches, in turn."
    )
    first_labels: int = _param(
        1000, "Labels in a round of the first searches for a better bound.", least=1
    )
    rising_labels: int = _param(
        30_000, "Most labels in a round of such searches while the bound rises.", least=1
    )
    most_labels: int = _param(
        60_000_000, "Most labels in a round of the last search, if memory allows.", least=1
    )
    checkable_labels: int = _param(
        20_000_000, "Labels times requests that `kvopt verify` can repeat, in some minutes."
    )
    exclusion_horizon: int = _param(
        20, "Rounds of the look-ahead of exhaustive searches that `kvopt verify` does not repeat."
    )
    uncompleted: int = _param(
        20, "Requests up to which completion bounds come when prices do not rise any more."
    )
    completion_sets: int = _param(
        1_000_000, "Most sets of states of a time that completion bounds are kept of.", least=1
    )
    completion_share: float = _share(
        0.6, "Share of the time left for completion bounds before the last searches."
    )
    completion_window: float = _param(
        1 / 4, "Share of what is open that sets may cost more than the cheapest.", most=1
    )
    first_rise: float = _param(
        1 / 64, "Share of what is open that the first search for a better bound tries.", most=1
    )
    more_work: float = _param(
        4.0, "Factor of the labels from one search for a better bound to the next.", least=1
    )


@dataclass(frozen=True)
class ConfigurationStage:
    """How prices of states climb for a while."""

    refinement: int = _param(1, "The first distance of knots is divided by this.", least=1)
    heat: float = _param(
        0.06, "Temperature, as a share of the mean latency of a round.", least=_LEAST_HEAT
    )
    gain: float = _param(2e-3, "Share of the bound that a window must add to go on.")
    steps: int = _param(60, "Most steps.", least=1)
    window: int = _param(10, "Steps over which the gain is measured.", least=1)
    is_patient: bool = _param(False, "Whether it takes long, gives little, and is cut short first.")


_FINE = 64
"""Refinement at which all times are knots, for instances that can be proved."""


@dataclass(frozen=True)
class ConfigurationParams:
    """The bound ``configuration``."""

    first_knots: int = _param(
        24, "Least knots of the first stage, where there are as many times.", least=1
    )
    worth_ruling_out: float = _share(
        0.9, "Share of starts left at most for a stage to rule some out: each lengthens the proof."
    )
    stages: tuple[ConfigurationStage, ...] = _param(
        (
            ConfigurationStage(1, 0.06, 2e-3, 60),
            ConfigurationStage(1, 0.02, 1e-3, 100),
            ConfigurationStage(2, 0.01, 1e-3, 150),
            ConfigurationStage(4, 0.006, 2e-4, 200),
            ConfigurationStage(8, 0.006, 1e-4, 200),
            ConfigurationStage(8, 0.003, 5e-5, 300),
            ConfigurationStage(16, 0.003, 5e-5, 300),
            ConfigurationStage(32, 0.002, 3e-5, 400),
            ConfigurationStage(_FINE, 0.004, 5e-5, 600, window=40, is_patient=True),
            ConfigurationStage(_FINE, 0.002, 4e-5, 800, window=40, is_patient=True),
            ConfigurationStage(_FINE, 0.001, 2e-5, 800, window=40, is_patient=True),
        ),
        "Stages of the climb: coarse and hot to fine and cold, then patient ones with all knots.",
    )
    few_knots: int = _param(8, "The same as ``first_knots`` for thousands of requests.", least=1)
    large_stages: tuple[ConfigurationStage, ...] = _param(
        (
            ConfigurationStage(1, 0.02, 1e-3, 100),
            ConfigurationStage(2, 0.01, 1e-3, 100),
            ConfigurationStage(4, 0.006, 4e-4, 150),
            ConfigurationStage(4, 0.003, 2e-4, 300),
            ConfigurationStage(8, 0.003, 1e-4, 300),
            ConfigurationStage(8, 0.0015, 5e-5, 500),
            ConfigurationStage(16, 0.0015, 5e-5, 500),
        ),
        "Stages of the climb for thousands of requests, which ends before all times are knots.",
    )


@dataclass(frozen=True)
class LagrangianStage:
    """Hasty or patient steps of the ascent of prices."""

    failures: int = _param(10, "Steps without progress before the aim is lowered.", least=1)
    aim: float = _param(0.002, "First aim above the best value, as a share of it.")


@dataclass(frozen=True)
class LagrangianParams:
    """The bound ``lagrangian``: prices that rise towards the LP bound."""

    most_steps: int = _param(6000, "Most steps; small instances converge long before.", least=1)
    longest: int = _param(20_000_000, "Rounds with prices beyond which it is refused; about 8 GB.")
    memory: float = _param(0.95, "Weight of the directions so far in the next one.", most=1)
    lowered: float = _param(0.7, "Factor on the aim after it was not met.", most=1)
    raised: float = _param(1.5, "Factor on the aim after progress again and again.", least=1)
    end: float = _param(1e-6, "Aim, as a share of the value, below which a stage ends.")
    stages: tuple[LagrangianStage, ...] = _param(
        (LagrangianStage(10, 0.002), LagrangianStage(100, 0.003)), "Stages, hasty ones first."
    )
    least_gain: float = _share(
        0.0002,
        "Share of the bound to gain while a climb's time doubles; else schedules get the rest.",
    )


@dataclass(frozen=True)
class SlotsParams:
    """The bound ``slots``: prices of tokens and of slots, where many requests are large."""

    large_share: float = _share(
        0.1, "Share of the work in requests of more than half the memory from which on it is tried."
    )
    most_slots: int = _param(3, "Memory counts as 1, 2, ... up to so many slots.", least=1)
    sample: int = _param(1000, "Requests of the first coarse program that gives prices.", least=1)
    cells: int = _param(60, "Cells of time of that program.", least=1)
    most_columns: int = _param(1_600_000, "Limit of requests times cells of finer ones.", least=1)
    least_worth: float = _share(0.01, "Share of slots in all prices below which they are left out.")
    least_gain: float = _share(
        0.0005,
        "Share of the bound to gain while a climb's time doubles; else schedules get the rest.",
    )


@dataclass(frozen=True)
class ImproveParams:
    """Better schedules: beams, annealing over orders."""

    orders_share: float = _share(
        0.6, "Share of the time for annealing over orders: it finds most, and finds it first."
    )
    beam_requests: int = _param(
        200, "Requests from which on beams over all of a trace may find more."
    )
    beams_share: float = _share(
        0.7, "Share of the time for these beams; what improves part by part has the rest."
    )
    one_burst_share: float = _share(
        0.95, "The same where most requests wait in one burst, of which no part improves alone."
    )
    state_beams_share: float = _share(
        0.4, "The same for beams by prices of states, where there are any, and then for these."
    )
    priced_share: float = _share(
        0.8, "Share of the time for beams by prices of states where requests are fewer."
    )
    widest_beam: int = _param(1024, "Scenes of the widest beam over a whole trace.", least=1)
    first_cycle: int = _param(20_000, "Steps of the first cycle of annealing.", least=1)
    longest_cycle: int = _param(2_000_000, "Most steps of a cycle.", least=1)
    coldest: float = _param(
        0.3, "Temperature at the end of a cycle, in rounds of latency.", least=_LEAST_HEAT
    )
    idle_cycles: int = _param(
        4, "Cycles without improvement after which they end, where there is no limit.", least=1
    )


@dataclass(frozen=True)
class DeadlineParams:
    """What ``certify --deadline`` adds."""

    share: float = _share(
        0.15, "Share of the time for prices of a ceiling, and as much for schedules."
    )
    most_seconds: float = _param(10.0, "Seconds for each of the two at most.")


@dataclass(frozen=True)
class SolveParams:
    """What may be turned, in groups.

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
    slots: SlotsParams = SlotsParams()
    improve: ImproveParams = ImproveParams()
    deadlines: DeadlineParams = DeadlineParams()

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> SolveParams:
        """Return parameters from tables of those that differ.

        Raises
        ------
        InvalidInput
            With the name of the parameter that is not known, or not as it must be.
        """
        return _read(cls(), table, "")

    @classmethod
    def from_toml(cls, path: str | Path) -> SolveParams:
        """Read a TOML file with those parameters that differ."""
        with blamed_on(path):
            try:
                return cls.of(tomllib.loads(read_text(path)))
            except tomllib.TOMLDecodeError as error:
                raise InvalidInput(f"cannot be read: {error}") from error

    def to_toml(self) -> str:
        """Return all of them as TOML, each with what it means."""
        return "\n".join(_lines(self)).strip() + "\n"


DEFAULT = SolveParams()
"""Those that hold unless others are given."""


def share_of(seconds: float, share: float) -> float:
    """Return a share of some seconds; none of infinitely many are none."""
    return share * seconds if share else 0.0


# ---- from tables, and to text ---------------------------------------------------------------


def _read(group: Group, table: object, where: str) -> Group:
    """Return a group with the entries of a table in place of its own."""
    if not isinstance(table, Mapping):
        raise InvalidInput(f"must be a table, got {shown(table)}", field=where or None)
    known = {each.name: each for each in fields(group)}  # type: ignore[arg-type]
    changed: dict[str, Any] = {}
    for name, value in table.items():
        path = f"{where}.{name}" if where else name
        if name not in known:
            reason = f"is not one of {', '.join(known)}" + did_you_mean(name, known)
            raise InvalidInput(reason, field=path)
        changed[name] = _value(getattr(group, name), value, known[name].metadata, path)
    return type(group)(**{**vars(group), **changed})


def _value(default: Any, value: Any, limits: Mapping[str, Any], path: str) -> Any:
    """Return a value if it is of the kind of its default and in its range."""
    if is_dataclass(default):
        return _read(default, value, path)
    if isinstance(default, tuple):
        if not isinstance(value, list | tuple) or not value:
            raise InvalidInput(f"must be a list that is not empty, got {shown(value)}", field=path)
        pattern = _fresh(default[0])
        return tuple(_value(pattern, each, limits, f"{path}[{i}]") for i, each in enumerate(value))
    kind = type(default)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        names = {bool: "true or false", int: "an integer", float: "a number"}
        raise InvalidInput(f"must be {names[kind]}, got {shown(value)}", field=path)
    if kind is not bool and abs(value) > LARGEST_INTEGER:
        raise InvalidInput(f"must be at most 2^53 - 1, got {value}", field=path)
    if kind is not bool and not limits["least"] <= value <= limits["most"]:
        ends = f"at least {limits['least']}"
        if limits["most"] < math.inf:
            ends = f"from {limits['least']} to {limits['most']}"
        raise InvalidInput(f"must be {ends}, got {value}", field=path)
    return value


def _fresh(value: Any) -> Any:
    """Return what an entry of a list is read on top of: a stage of defaults, or the value."""
    return value.__class__() if hasattr(value, "__dataclass_fields__") else value


def _lines(group: Any, where: str = "") -> Iterator[str]:
    """Yield the lines of a group: its own parameters, then tables, then lists of tables."""
    nested = []
    for each in fields(group):
        value, path = getattr(group, each.name), f"{where}.{each.name}".strip(".")
        if is_dataclass(value) or (isinstance(value, tuple) and is_dataclass(value[0])):
            nested.append((path, value, each.metadata.get("doc")))
            continue
        yield f"# {each.metadata['doc']}"
        yield f"{each.name} = {_text(value)}"
    for path, value, doc in nested:
        if is_dataclass(value):
            yield from ("", f"# {_first_line(value)}", f"[{path}]", *_lines(value, path))
            continue
        yield from ("", f"# {doc}")
        yield from (f"# {each.name}: {each.metadata['doc']}" for each in fields(value[0]))
        for stage in value:
            entries = [
                f"{each.name} = {_text(getattr(stage, each.name))}" for each in fields(stage)
            ]
            yield from (f"[[{path}]]", *entries)


def _first_line(group: object) -> str:
    return (type(group).__doc__ or "").partition("\n")[0]


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:_}" if isinstance(value, int) else repr(value)
