"""Studies: families, draws, policies, prediction models and limits, from a TOML file."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

from msgspec import ValidationError, convert
from msgspec.structs import asdict

from kvopt import BatchTime, Scope
from kvopt import policy as policy_from
from kvopt.errors import InvalidInput, did_you_mean, placed, refuse, unknown_name
from kvopt.files.reading import read_text
from kvopt.kernels.extensions import import_modules, located
from kvopt.problem.clocks import ROUNDS, Clock, Seconds
from kvopt.problem.hardware import batch_time_files as models
from kvopt.problem.slo import Slo, allowed_misses
from kvopt.simulate.policies.server_policies import uncovered
from kvopt.simulate.routers import label_of, parts_of
from kvopt.simulate.routers import router as router_from
from kvopt.studies.sources import Count, Entry, Positives, Seed, Table, Text, Texts, listed

LIMITS = ("time_limit", "policy_time_limit", "threads", "seed")
_CLOCKS = ("rounds", "seconds")
_BUILTIN = files("kvopt.studies") / "builtin"
_GONE = {
    "claims": "is gone: python benchmarks/papers/studies.py STUDY DIR judges claims of papers",
    "game": "is gone: python benchmarks/papers/games.py DIR plays games",
    "slower": "is gone: write workers = [1, 2, ...] to compare numbers of machines",
}
"""Keys of earlier descriptions, and what to do instead."""


class _LimitsTable(Table, frozen=True):
    """The table ``[limits]``; a list stands for several limits."""

    time_limit: Positives = 60.0
    policy_time_limit: Positives | None = None
    threads: Count = 1
    seed: Seed = 0
    slo: Texts | None = None
    attain: Text | None = None


class Description(Table, frozen=True):
    """The whole file."""

    name: Text | None = None
    title: Text | None = None
    clock: str = _CLOCKS[0]
    batch_time: Text | dict[str, Any] | None = None
    certify: bool = True
    scope: Text = str(Scope.RUNS)
    modules: tuple[Text, ...] = ()
    predictions: tuple[str, ...] = ()
    router: tuple[str, ...] = ()
    policies: tuple[Text, ...] = ()
    limits: _LimitsTable = _LimitsTable()
    instances: tuple[Entry, ...] = ()
    data: tuple[Entry, ...] = ()


_WORDS = {
    "array": "a list", "bool": "a boolean", "float": "a number", "int": "an integer",
    "object": "a table", "str": "a text",
}  # fmt: skip
_TABLES: dict[str, type[Table]] = {"limits": _LimitsTable, "instances": Entry, "data": Entry}


@dataclass(frozen=True, slots=True)
class TaskLimits:
    """Limits and kind of the work on one instance, with the scope of bounds and schedules.

    ``time_limit`` is for schedule and bound, ``policy_time_limit`` for each run of a policy, in
    seconds. Without a ``batch_time`` the study is in rounds.  Unless ``certify``, runs are
    simulated only, and the optimum is not bounded.  ``attain`` is the share of the requests that
    shall attain ``slo``.
    """

    time_limit: float = 60.0
    policy_time_limit: float = 60.0
    threads: int = 1
    seed: int = 0
    batch_time: BatchTime | None = None
    certify: bool = True
    scope: Scope = Scope.RUNS
    slo: str | None = None
    attain: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the limits of a record, without the defaults of most studies."""
        newer = {
            "batch_time": self.batch_time and self.batch_time.to_json(),
            "slo": self.slo,
            "attain": self.attain,
            "scope": None if self.scope is Scope.RUNS else str(self.scope),
            "certify": None if self.certify else False,
        }
        numbers = {name: getattr(self, name) for name in LIMITS}
        return numbers | {name: value for name, value in newer.items() if value is not None}

    @property
    def clock(self) -> Clock:
        """The clock of the study."""
        return ROUNDS if self.batch_time is None else Seconds(self.batch_time)


@dataclass(frozen=True)
class Study:
    """The description of a study.

    Parameters
    ----------
    name, title
        Its name; ``title`` describes it in a line.
    entries
        Every source of instances with its policies.
    limits
        Each instance is done once for each of these limits, which differ in times or ``slo``.
    modules
        Python modules, or files ending in ``.py``, that register policies.
    """

    name: str
    title: str
    entries: tuple[Entry, ...]
    limits: tuple[TaskLimits, ...]
    modules: tuple[str, ...] = ()


def read_study(path: str | Path) -> Study:
    """Read a study from a TOML file."""
    return study_from_text(read_text(path), Path(path))


def builtin_names() -> list[str]:
    """Return the names of the built-in studies, each a TOML file like one of a user."""
    names = (item.name for item in _BUILTIN.iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def builtin_text(name: str) -> str:
    """Return the description of a built-in study."""
    if name not in builtin_names():
        raise unknown_name(name, builtin_names(), "study", " or a .toml file")
    return (_BUILTIN / f"{name}.toml").read_text(encoding="utf-8")


def builtin_study(name: str, *, checked: bool = True) -> Study:
    """Return a built-in study; see `study_from_text`."""
    return study_from_text(builtin_text(name), checked=checked)


def study_from_text(
    text: str, file: Path | None = None, *, checked: bool = True, data: Path | None = None
) -> Study:
    """Build a study from the text of a TOML file; relative paths in it start at that file.

    With a folder ``data`` its instances are those of the tables ``[[data]]``, whose paths start at
    that folder: public traces instead of stand-ins.

    As a check the first instance of each entry is drawn, which takes seconds for large ones.
    """
    with placed(file=None if file is None else str(file)):
        top = description_from_text(text)
        return _study(top, file, checked, data)


def description_from_text(text: str) -> Description:
    """Return the tables of a file as they are written; their values have the right types."""
    try:
        top = tomllib.loads(text)
        return convert(top, Description)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"is not TOML: {error}") from None
    except ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        place = place.rstrip("`").removeprefix(".")
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", message):
        key = unknown[1]
        keys = _TABLES.get(place.partition("[")[0], Description).__struct_fields__
        reason = f"is not a known key; there are {', '.join(keys)}{did_you_mean(key, keys)}"
        raise InvalidInput(_GONE.get(key, reason), field=f"{place}.{key}".removeprefix("."))

    def in_words(kinds: re.Match[str]) -> str:
        """Return the types of a message in words."""
        return " or ".join(_WORDS.get(k, k) for k in kinds[1].split(" | ") if k != "null")

    reason = re.sub(r"`(.*?)`", in_words, message).replace("Expected", "must be")
    raise InvalidInput(reason, field=place)


@contextmanager
def _at(field: str) -> Iterator[None]:
    """Name the field whose value the block refuses."""
    try:
        yield
    except InvalidInput as error:
        reason = str(error).removeprefix(f"{field.rpartition('.')[2]}: ")
        raise InvalidInput(reason, field=field) from None


def _study(top: Description, file: Path | None, checked: bool, data: Path | None) -> Study:
    """Return the study of a file, with lists multiplied out and names looked up."""
    folder = Path() if file is None else file.parent
    name = top.name or (file.stem if file else None)
    if name is None or not re.fullmatch(r"[\w.-]+", name):
        raise InvalidInput(f"must be letters, digits and dashes, got {name!r}", field="name")
    with _at("modules"):
        modules = tuple(located(module, folder) for module in top.modules)
        import_modules(modules)
    with _at("scope"):
        scope = Scope.parse(top.scope)
    kind = TaskLimits(batch_time=_model_of(top, folder), certify=top.certify, scope=scope)
    axes = _once(top.predictions, "predictions") or ("",), _once(top.router, "router") or ("",)
    no_data = "is missing: nothing stands for traces in tables [[data]]"
    refuse("data", no_data, data is not None and not top.data)
    entries: list[Entry] = []
    key, tables = ("instances", top.instances) if data is None else ("data", top.data)
    for place, table in enumerate(tables):
        field = "policies" if table.policies is None else f"{key}[{place}].policies"
        labels = _once(top.policies if table.policies is None else table.policies, field)
        refuse(f"{key}[{place}].policies", "is missing: a study needs policies", not labels)
        with _at(field):
            policies = tuple(_labels(labels, *axes, kind))
        expanded = [*table.expanded(f"{key}[{place}]", data or folder, policies)]
        for entry in expanded if checked else ():
            entry.check(f"{key}[{place}]", kind.clock)
        entries += expanded
    refuse("instances", "is missing: a study needs tables [[instances]]", not entries)
    limits = tuple(dict.fromkeys(_limits(top.limits, kind)))
    return Study(name, top.title or name, tuple(entries), limits, modules)


def _once(names: Sequence[str], field: str) -> Sequence[str]:
    """Return names; refuse one that is given twice."""
    for name in names:
        refuse(field, f"has {name!r} twice", names.count(name) > 1)
    return names


def _model_of(top: Description, folder: Path) -> BatchTime | None:
    """Return the model of a study in seconds, None for rounds."""
    if top.clock not in _CLOCKS:
        raise unknown_name(top.clock, _CLOCKS, "clock")
    source = top.batch_time
    if top.clock == _CLOCKS[0]:
        refuse("batch_time", 'goes with clock = "seconds"', source is not None)
        return None
    with _at("batch_time"):
        if isinstance(source, dict):
            model = models.batch_time_from_json({"schema": models.SCHEMA, **source})
        else:
            name = source or models.DEFAULT_MODEL
            model = models.batch_time(folder / name if name.lower().endswith(".json") else name)
    return BatchTime(model.lines, model.kv_ns, model.prompt_ns, model.name)  # without notes


def _labels(
    names: Sequence[str], beliefs: Sequence[str], routers: Sequence[str], kind: TaskLimits
) -> Iterator[str]:
    """Yield each policy with each prediction model and behind each router."""
    for name, belief, router in product(names, beliefs, routers):
        label = name if not belief else f"{name}{',' if ':' in name else ':'}{belief}"
        label = label_of(router, label) if router else label
        try:
            way, policy = parts_of(label)
            router_from(way)
            needed = policy_from(policy).scope(rounds=kind.clock.is_even)
        except InvalidInput as error:
            raise InvalidInput(f"{label}: {error}") from None
        if not kind.scope.covers(needed):
            raise InvalidInput(f'{label}: {uncovered(needed)}: write scope = "{needed}"')
        yield label


def _limits(table: _LimitsTable, kind: TaskLimits) -> Iterator[TaskLimits]:
    """Yield limits for each service level and each pair of times."""
    times = listed(table.time_limit)
    of_policies = listed(table.policy_time_limit or times)
    if len(of_policies) == 1:
        of_policies *= len(times)
    differ = "must be a number, or one for each time limit"
    refuse("limits.policy_time_limit", differ, len(of_policies) != len(times))
    uncertified = table.slo is not None and not kind.certify
    refuse("limits.slo", "goes with certify = true", uncertified)
    if table.attain is not None:
        if table.slo is None or not table.attain.endswith("%"):
            raise InvalidInput("must be a share, 99% say, of limits.slo", field="limits.attain")
        with _at("limits.attain"):
            allowed_misses(table.attain, 1)
    with _at("limits.slo"):
        levels = [text and str(Slo.parse(text)) for text in listed(table.slo)]
    for slo, pair in product(levels, zip(times, of_policies, strict=True)):
        limits = replace(kind, threads=table.threads, seed=table.seed, slo=slo, attain=table.attain)
        yield replace(limits, time_limit=pair[0], policy_time_limit=pair[1])


def resolved_text(study: Study) -> str:
    """Return the TOML text of a study, with every default.

    Lists that give several entries are expanded.  A batch-time model is included in full, so that
    no other file is needed.
    """
    first = study.limits[0]
    times = [limits for limits in study.limits if limits.slo == first.slo]
    top = {
        "name": study.name,
        "title": study.title,
        "clock": _CLOCKS[first.batch_time is not None],
        "batch_time": first.batch_time and first.batch_time.to_json(),
        "certify": first.certify,
        "scope": None if first.scope is Scope.RUNS else str(first.scope),
        "modules": study.modules,
    }
    table: dict[str, Any] = {}
    for key in LIMITS:
        values = [getattr(limits, key) for limits in times]
        table[key] = values if len(set(values)) > 1 else values[0]
    table["slo"] = first.slo and [*dict.fromkeys(limits.slo for limits in study.limits)]
    table["attain"] = first.attain
    entries = [{**asdict(entry), "draws": entry.draws} for entry in study.entries]
    parts = [("", top), ("\n[limits]\n", table), *(("\n[[instances]]\n", e) for e in entries)]
    return "".join(
        head + "".join(f"{k} = {_toml(v)}\n" for k, v in part.items() if v not in (None, {}))
        for head, part in parts
    )


def _toml(value: Any) -> str:
    """Return a value as TOML; JSON texts are TOML texts, except for an unescaped delete."""
    if isinstance(value, dict):
        parts = (f"{json.dumps(key)} = {_toml(part)}" for key, part in value.items())
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value).replace("\x7f", "\\u007f")
