"""Studies: families, draws, policies, prediction models and limits, from a TOML file."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any, get_args

from kvopt import BatchTime, Scope
from kvopt import policy as policy_from
from kvopt.errors import InvalidInput, shown, unknown_name
from kvopt.experiments.studies.sources import FIXED, Kind, Source
from kvopt.experiments.studies.tables import (
    Table,
    boolean,
    listed,
    lists_of,
    one_of,
    positives,
    rates,
    text_of,
    texts,
)
from kvopt.files.reading import read_text
from kvopt.kernels.modules import import_modules, located
from kvopt.problem.clocks import ROUNDS, Clock, Seconds
from kvopt.problem.deadlines import Deadline
from kvopt.problem.hardware.batch_time_files import (
    DEFAULT_MODEL,
    SCHEMA,
    batch_time,
    batch_time_from_json,
)
from kvopt.simulate.policies.servers import uncovered
from kvopt.simulate.routers.registry import label_of, parts_of
from kvopt.simulate.routers.registry import router as router_from

LIMITS = ("time_limit", "policy_time_limit", "threads", "seed")
_CLOCKS = ("rounds", "seconds")
_LEFT = {"claims": "python benchmarks/papers/studies.py STUDY DIR judges the claims of papers"}
"""Fields that are refused, and what replaces them."""
_LEFT_SOURCES = {"game": "python benchmarks/papers/games.py DIR plays them"}
"""The same of the tables of instances."""
_BUILTIN = files("kvopt.experiments.studies") / "builtin"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits and kind of the work on one instance.

    Parameters
    ----------
    time_limit
        Seconds for schedule and bound.
    policy_time_limit
        Seconds for each run of a policy.
    threads, seed
        Threads and seed of the solvers.
    batch_time
        How long a round lasts in a study in seconds, None in rounds.
    certify
        Whether the optimum is bounded; without it runs are simulated only.
    deadline
        Deadline of requests, as `kvopt.problem.deadlines.Deadline` reads it; None for no deadline.
    scope
        The scope of bounds and schedules.
    slower
        Whether to search for slower machines on which no schedule is as good as a run.
    """

    time_limit: float = 60.0
    policy_time_limit: float = 60.0
    threads: int = 1
    seed: int = 0
    batch_time: BatchTime | None = None
    certify: bool = True
    scope: Scope = Scope.RUNS
    deadline: str | None = None
    slower: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the limits of a record, without the defaults of most studies."""
        said: dict[str, Any] = {name: getattr(self, name) for name in LIMITS}
        newer = {
            "batch_time": self.batch_time and self.batch_time.to_json(),
            "deadline": self.deadline,
            "scope": None if self.scope is Scope.RUNS else str(self.scope),
            "slower": self.slower or None,
            "certify": None if self.certify else False,
        }
        return said | {name: value for name, value in newer.items() if value is not None}

    @property
    def clock(self) -> Clock:
        """The clock of the study."""
        return ROUNDS if self.batch_time is None else Seconds(self.batch_time)

    def covers(self, label: str) -> bool:
        """Whether the bound covers the policy."""
        policy = policy_from(parts_of(label)[1])
        return self.scope.covers(policy.scope(rounds=self.clock.is_even))


@dataclass(frozen=True, slots=True)
class Entry:
    """Draws from one source, and the policies that run on them.

    Parameters
    ----------
    source
        Source of the first draw; later draws have the next seeds.
    draws
        Number of draws.
    policies
        Policies with their prediction models.
    """

    source: Source
    draws: int
    policies: tuple[str, ...]

    @property
    def instances(self) -> int:
        """Return the number of its instances."""
        return self.draws

    def sources(self, most: int | None = None) -> Iterator[Source]:
        """Yield the source of each draw, of the first ``most`` only if that is given."""
        first = self.source.seed or 0
        for draw in range(self.draws if most is None else min(most, self.draws)):
            yield self.source if draw == 0 else replace(self.source, seed=first + draw)


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
        Each instance is done once for each of these limits, which differ in times or in scopes.
    modules
        Python modules, or files ending in ``.py``, that register policies.
    """

    name: str
    title: str
    entries: tuple[Entry, ...]
    limits: tuple[Limits, ...]
    modules: tuple[str, ...] = ()


def read_study(path: str | Path) -> Study:
    """Read a study from a TOML file."""
    return study_from_text(read_text(path), Path(path))


def builtin_names() -> list[str]:
    """Return the names of the built-in studies, each a TOML file like one of a user."""
    found = (item.name for item in _BUILTIN.iterdir())
    return sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml"))


def builtin_text(name: str) -> str:
    """Return the description of a built-in study."""
    if name == "adversary":
        raise InvalidInput(_LEFT_SOURCES["game"], field=f"study {name}")
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
    top = Table.parsed(text, None if file is None else str(file))
    folder = Path() if file is None else file.parent
    for field, instead in _LEFT.items():
        if field in top:
            raise top.fault(field, f"is not part of a study any more: {instead}")
    name = top.take("name", None if file is None else file.stem, text_of)
    if name is None or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise top.fault("name", f"must be letters, digits and dashes, got {name!r}")
    modules = top.take("modules", (), lambda value: _loaded(value, folder))
    kind = Limits(
        batch_time=_model_of(top, folder),
        certify=top.take("certify", True, boolean),
        slower=top.take("slower", False, boolean),
    )
    scopes = top.take("scope", [Scope.RUNS], lambda value: list(map(Scope.parse, listed(value))))
    kinds = [replace(kind, scope=scope) for scope in dict.fromkeys(scopes)]
    axes = top.take("predictions", ("",), texts), top.take("router", ("",), texts)

    def chosen(value: object) -> tuple[str, ...]:
        return tuple(_labels(texts(value), *axes, kinds))

    policies = top.take("policies", (), chosen)
    tables, traces = top.tables("instances"), top.tables("data")
    if data is not None and not traces:
        raise top.fault("data", "is missing: nothing stands for traces in tables [[data]]")
    entries: list[Entry] = []
    for table in tables if data is None else traces:
        mine = table.take("policies", policies, chosen)
        if not mine:
            raise table.fault("policies", "is missing: a study needs policies")
        entries += _entries(table, data or folder, mine, kind.clock if checked else None)
    if not entries:
        raise top.fault("instances", "is missing: a study needs tables [[instances]]")
    study = Study(
        name,
        top.take("title", name, text_of),
        tuple(entries),
        tuple(dict.fromkeys(_limits(top.table("limits"), kinds))),
        modules,
    )
    top.done()
    return study


def _loaded(value: object, folder: Path) -> tuple[str, ...]:
    """Import modules and return their names."""
    modules = tuple(located(module, folder) for module in texts(value))
    import_modules(modules)
    return modules


def _model_of(top: Table, folder: Path) -> BatchTime | None:
    """Return the model of a study in seconds, None for rounds."""
    if top.take("clock", _CLOCKS[0], one_of(_CLOCKS)) == _CLOCKS[0]:
        if "batch_time" in top:
            raise top.fault("batch_time", 'goes with clock = "seconds"')
        return None

    def named(given: object) -> BatchTime:
        if isinstance(given, dict):
            return batch_time_from_json({"schema": SCHEMA, **given})
        if not isinstance(given, str):
            raise InvalidInput(f"must be a preset, a file or a table, got {shown(given)}")
        return batch_time(folder / given if given.lower().endswith(".json") else given)

    model = top.take("batch_time", None, named) or batch_time(DEFAULT_MODEL)
    return BatchTime(model.lines, model.kv_ns, model.prompt_ns, model.name)  # without notes


def _labels(
    names: Sequence[str], models: Sequence[str], routers: Sequence[str], kinds: Sequence[Limits]
) -> Iterator[str]:
    """Yield each policy with each prediction model and behind each router."""
    for name, model, router in product(names, models, routers):
        label = name if not model else f"{name}{',' if ':' in name else ':'}{model}"
        label = label_of(router, label) if router else label
        try:
            way, policy = parts_of(label)
            router_from(way)
            needed = policy_from(policy).scope(rounds=kinds[0].clock.is_even)
        except InvalidInput as error:
            raise InvalidInput(f"{label}: {error}") from None
        if not any(kind.scope.covers(needed) for kind in kinds):
            raise InvalidInput(f'{label}: {uncovered(needed)}: write scope = "{needed}"')
        yield label


def _limits(table: Table, kinds: Sequence[Limits]) -> Iterator[Limits]:
    times = table.take("time_limit", [kinds[0].time_limit], positives)
    of_policies = table.take("policy_time_limit", times, positives)
    if len(of_policies) == 1:
        of_policies *= len(times)
    if len(of_policies) != len(times):
        raise table.fault("policy_time_limit", "must be a number, or one for each time limit")
    threads = table.integer("threads", kinds[0].threads, 1)
    seed = table.integer("seed", kinds[0].seed)
    if "deadline" in table and not kinds[0].certify:
        raise table.fault("deadline", "goes with certify = true")
    deadlines = table.take(
        "deadline", [None], lambda value: [str(Deadline.parse(text)) for text in texts(value)]
    )
    table.done()
    for deadline, pair, kind in product(deadlines, zip(times, of_policies, strict=True), kinds):
        yield replace(
            kind,
            time_limit=pair[0],
            policy_time_limit=pair[1],
            threads=threads,
            seed=seed,
            deadline=deadline,
        )


def _entries(
    table: Table, folder: Path, policies: tuple[str, ...], clock: Clock | None
) -> Iterator[Entry]:
    """Yield the entries of a table, one for each combination of its lists.

    Their first draws are checked on a clock, unless there is none.
    """
    for field, instead in _LEFT_SOURCES.items():
        if field in table:
            raise table.fault(field, f"is not part of a study any more: {instead}")
    kinds: list[Kind] = [kind for kind in get_args(Kind) if kind in table]
    if len(kinds) != 1:
        raise table.fault("family", f"needs one of {', '.join(get_args(Kind))}")
    kind, name = kinds[0], table.take(kinds[0], check=text_of)
    if kind in ("file", "trace"):
        name = str((folder / name).resolve())
    is_drawn = kind not in FIXED
    draws = table.integer("draws", 1, 1) if is_drawn else 1
    seed = table.integer("seed", 0) if is_drawn else None
    sizes = {
        key: table.take(key, [None], rates if key == "rate" else listed)
        for key in ("n", "memory", "rate", "workers")
    }
    max_total = table.take("max_total", None)
    lists = table.take("parameters", {}, lists_of)
    if kind == "inline":
        lists["requests"] = [table.take("requests")]
    table.done()
    for values in product(*sizes.values(), *lists.values()):
        sized = dict(zip(sizes, values, strict=False))
        parameters = dict(zip(lists, values[len(sizes) :], strict=True))
        source = Source(kind, name, seed, parameters=parameters, max_total=max_total, **sized)
        try:
            if clock is not None:
                source.check(not clock.is_even)
        except InvalidInput as error:
            said = str(error) if error.file == name else f"{name}: {error}"
            raise table.fault(kind, said) from None
        yield Entry(source, draws, policies)


def resolved_text(study: Study) -> str:
    """Return the TOML text of a study, with every default.

    Lists that give several entries are expanded.  A batch-time model is included in full, so that
    no other file is needed.
    """
    first = study.limits[0]
    scopes, deadlines = (
        list(dict.fromkeys(getattr(each, key) for each in study.limits))
        for key in ("scope", "deadline")
    )
    alike = (first.scope, first.deadline)
    times = [each for each in study.limits if (each.scope, each.deadline) == alike]
    top = {
        "name": study.name,
        "title": study.title,
        "clock": _CLOCKS[first.batch_time is not None],
        "batch_time": first.batch_time and first.batch_time.to_json(),
        "certify": first.certify,
        "scope": None if scopes == [Scope.RUNS] else scopes,
        "slower": first.slower or None,
        "modules": study.modules,
    }
    limits: dict[str, Any] = {key: [getattr(each, key) for each in times] for key in LIMITS}
    for key, values in limits.items():
        if len(set(values)) == 1:
            limits[key] = values[0]
    limits["deadline"] = None if first.deadline is None else deadlines
    lines = [*_lines(top), "", "[limits]", *_lines(limits)]
    for entry in study.entries:
        draws = None if entry.source.seed is None else entry.draws
        said = {"draws": draws, **entry.source.to_json(), "policies": entry.policies}
        lines += ["", "[[instances]]", *_lines(said)]
    return "\n".join(lines) + "\n"


def resolved_entries(study: Study) -> list[dict[str, Any]]:
    """Return the tables of instances of that text."""
    tables: list[dict[str, Any]] = tomllib.loads(resolved_text(study))["instances"]
    return tables


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {_toml(value)}" for key, value in table.items() if value is not None]


def _toml(value: Any) -> str:
    """Return a value as TOML; JSON texts are TOML texts, except for an unescaped delete."""
    if isinstance(value, dict):
        parts = (f"{json.dumps(key)} = {_toml(part)}" for key, part in value.items())
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value).replace("\x7f", "\\u007f")
