"""What a study is: families, draws, policies, prediction models and limits, from a TOML file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any, get_args

from kvopt.errors import InvalidInput, unknown_name
from kvopt.experiments.studies.claims import CLAIMS
from kvopt.experiments.studies.clock_key import clock_of
from kvopt.experiments.studies.sources import FIXED, Kind, Source
from kvopt.experiments.studies.tables import Table, boolean, listed, positives, texts
from kvopt.files.reading import read_text
from kvopt.kernels.modules import import_modules, located
from kvopt.problem.batch_time import BatchTime
from kvopt.problem.clocks import ROUNDS, Clock, Seconds
from kvopt.problem.deadlines import Deadline
from kvopt.problem.scopes import Scope
from kvopt.simulate.policies.registry import policy as policy_from
from kvopt.simulate.policies.servers import uncovered
from kvopt.simulate.routers.labels import label_of, parts_of
from kvopt.simulate.routers.registry import router as router_from

_TOP = (
    "name", "title", "clock", "batch_time", "certify", "scope", "slower", "policies", "predictions",
    "router", "claims", "modules", "limits", "instances", "data",
)  # fmt: skip
LIMITS = ("time_limit", "policy_time_limit", "threads", "seed")
_ENTRY = (
    "family", "file", "trace", "game", "inline", "requests",
    "draws", "seed", "n", "memory", "rate", "max_total", "parameters", "policies",
    "workers",
)  # fmt: skip
_BUILTIN = files("kvopt.experiments.studies") / "builtin"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the work on one instance, and what kind of work it is.

    Parameters
    ----------
    time_limit
        Seconds for schedule and bound.
    policy_time_limit
        Seconds for each run of a policy.
    threads, seed
        For the solvers.
    batch_time
        How long a round lasts in a study in seconds, None in rounds.
    certify
        Whether the optimum is bounded; without it runs are simulated only.
    deadline
        By when requests should be done, as `kvopt.problem.deadlines.Deadline` reads it; None for no
        question of the kind.
    scope
        What the bound covers, and schedules may do.
    slower
        Whether slower machines are looked for on which no schedule is as good as a run.
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
        """Return the limits as a record carries them; what most studies have is not said."""
        said: dict[str, Any] = {name: getattr(self, name) for name in LIMITS}
        if self.batch_time is not None:
            said["batch_time"] = self.batch_time.to_json()
        if self.deadline is not None:
            said["deadline"] = self.deadline
        if self.scope is not Scope.RUNS:
            said["scope"] = str(self.scope)
        if self.slower:
            said["slower"] = True
        return said if self.certify else {**said, "certify": False}

    @property
    def clock(self) -> Clock:
        """How long rounds last."""
        return ROUNDS if self.batch_time is None else Seconds(self.batch_time)

    def covers(self, label: str) -> bool:
        """Whether the bound is one for what a policy may do."""
        policy = policy_from(parts_of(label)[1])
        return self.scope.covers(policy.scope(rounds=self.clock.is_even))


@dataclass(frozen=True, slots=True)
class Entry:
    """Draws from one source, and the policies that meet them.

    Parameters
    ----------
    source
        Of the first draw; the seeds of the others follow on it.
    draws
        How many.
    policies
        With their prediction models.
    """

    source: Source
    draws: int
    policies: tuple[str, ...]

    @property
    def instances(self) -> int:
        """How many instances it gives: of a game one for each opponent."""
        return self.draws * (len(self.policies) if self.source.kind == "game" else 1)

    def sources(self, most: int | None = None) -> Iterator[Source]:
        """Yield the source of each draw, of the first ``most`` only if that is given."""
        first = self.source.seed or 0
        for draw in range(self.draws if most is None else min(most, self.draws)):
            yield self.source if draw == 0 else replace(self.source, seed=first + draw)


@dataclass(frozen=True)
class Study:
    """A study as it is described.

    Parameters
    ----------
    name, title
        What it is called; ``title`` says it in a line.
    entries
        Every source of instances with its policies.
    limits
        Each instance is done once for each of them, which differ in times or in scopes.
    claims
        Names of published claims to put to the test; see `kvopt.experiments.studies.claims`.
    modules
        Python modules, or files ending in ``.py``, that register policies.
    """

    name: str
    title: str
    entries: tuple[Entry, ...]
    limits: tuple[Limits, ...]
    claims: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()


def read_study(path: str | Path) -> Study:
    """Read a study from a TOML file."""
    return study_from_text(read_text(path), Path(path))


def builtin_names() -> list[str]:
    """Return the names of the built-in studies: a TOML file each, as a user would write one."""
    found = (item.name for item in _BUILTIN.iterdir())
    return sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml"))


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
    that folder: public traces in place of stand-ins.

    To check it the first instance of each entry is made, which takes seconds for large ones.
    """
    top = Table.parsed(text, None if file is None else str(file))
    folder = Path() if file is None else file.parent
    name = top.string("name", None if file is None else file.stem)
    if name is None or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise top.fault("name", f"must be letters, digits and dashes, got {name!r}")
    modules = tuple(located(module, folder) for module in top.take("modules", (), texts))
    try:
        import_modules(modules)
    except InvalidInput as error:
        raise top.fault("modules", str(error)) from None
    clock, certify = clock_of(top, folder), top.take("certify", True, boolean)
    scopes, models = top.take("scope", [Scope.RUNS], _scopes), top.take("predictions", ("",), texts)
    slower = top.take("slower", False, boolean)
    kinds = tuple(
        Limits(batch_time=clock, certify=certify, scope=scope, slower=slower) for scope in scopes
    )
    ways = top.take("router", ("",), texts)
    policies = _policies(top, models, ways, (), kinds)
    tables, traces = top.tables("instances"), top.tables("data")
    if data is not None and not traces:
        raise top.fault("data", "is missing: nothing stands for traces in tables [[data]]")
    entries = tuple(
        entry
        for table in (tables if data is None else traces)
        for entry in _entries(table, models, ways, policies, data or folder, kinds, checked)
    )
    if not entries:
        raise top.fault("instances", "is missing: a study needs tables [[instances]]")
    claims = top.take("claims", (), texts)
    for claim in claims:
        if claim not in CLAIMS:
            raise top.fault("claims", unknown_name(claim, CLAIMS).reason)
    study = Study(
        name=name,
        title=top.string("title", name),
        entries=entries,
        limits=tuple(dict.fromkeys(_limits(top.table("limits"), kinds))),
        claims=claims,
        modules=modules,
    )
    top.done(*_TOP)
    return study


def _scopes(value: object) -> list[Scope]:
    """Return scopes, each once: a list, or one of them."""
    return list(dict.fromkeys(map(Scope.parse, listed(value))))


def _policies(
    table: Table,
    models: Sequence[str],
    ways: Sequence[str],
    default: Sequence[str],
    kinds: Sequence[Limits],
) -> tuple[str, ...]:
    """Return the policies of a table, each with each prediction model and behind each router."""
    if "policies" not in table:
        return tuple(default)
    found = []
    for name, model, way in product(table.take("policies", check=texts), models, ways):
        label = name if not model else f"{name}{',' if ':' in name else ':'}{model}"
        label = label_of(way, label) if way else label
        try:
            router, policy = parts_of(label)
            router_from(router)
            needed = policy_from(policy).scope(rounds=kinds[0].batch_time is None)
        except InvalidInput as error:
            raise table.fault("policies", f"{label}: {error}") from None
        if not any(kind.scope.covers(needed) for kind in kinds):
            reason = f'{label}: {uncovered(needed)}: write scope = "{needed}"'
            raise table.fault("policies", reason)
        found.append(label)
    return tuple(found)


def _limits(table: Table, kinds: Sequence[Limits]) -> Iterator[Limits]:
    fallback = Limits()
    time_limits = table.take("time_limit", [fallback.time_limit], positives)
    policy_time_limits = table.take("policy_time_limit", time_limits, positives)
    if len(policy_time_limits) == 1:
        policy_time_limits = policy_time_limits * len(time_limits)
    if len(policy_time_limits) != len(time_limits):
        raise table.fault("policy_time_limit", "must be a number, or one for each time limit")
    threads = table.integer("threads", fallback.threads, 1)
    seed = table.integer("seed", fallback.seed)
    deadlines: list[str | None] = [None]
    if "deadline" in table:
        if not all(kind.certify for kind in kinds):
            raise table.fault("deadline", "goes with certify = true")
        deadlines = [_deadline(table, text) for text in table.take("deadline", check=texts)]
    table.done(*LIMITS, "deadline")
    times = zip(time_limits, policy_time_limits, strict=True)
    for deadline, (each, of_policies) in product(deadlines, times):
        for kind in kinds:
            yield replace(
                kind, time_limit=each, policy_time_limit=of_policies, threads=threads, seed=seed,
                deadline=deadline,
            )  # fmt: skip


def _deadline(table: Table, text: str) -> str:
    try:
        return str(Deadline.parse(text))
    except InvalidInput as error:
        raise table.fault("deadline", error.reason) from None


def _entries(
    table: Table,
    models: Sequence[str],
    ways: Sequence[str],
    policies: Sequence[str],
    folder: Path,
    limits: Sequence[Limits],
    checked: bool,
) -> Iterator[Entry]:
    kinds: list[Kind] = [kind for kind in get_args(Kind) if kind in table]
    if len(kinds) != 1:
        raise table.fault("family", f"needs one of {', '.join(get_args(Kind))}")
    kind, name = kinds[0], table.string(kinds[0])
    if kind in ("file", "trace"):
        name = str((folder / name).resolve())
    draws, seed = (
        (1, None) if kind in FIXED else (table.integer("draws", 1, 1), table.integer("seed", 0))
    )
    chosen = _policies(table, models, ways, policies, limits)
    if not chosen:
        raise table.fault("policies", "is missing: a study needs policies")
    rates: list[float | None] = table.take("rate", [None], positives)
    axes = (table.choices("n"), table.choices("memory"), rates, table.choices("workers"))
    max_total = table.take("max_total", None)
    keys = {
        key: value if isinstance(value, list) else [value]
        for key, value in table.table("parameters").items().items()
    }
    if kind == "inline":
        keys["requests"] = [table.take("requests")]
    for (n, memory, rate, workers), values in product(product(*axes), product(*keys.values())):
        parameters = dict(zip(keys, values, strict=True))
        whole = None if rate is None else int(rate) if rate == int(rate) else rate
        source = Source(kind, name, seed, n, memory, parameters, whole, max_total, workers)
        try:
            if checked:
                source.check(chosen, limits[0].batch_time is not None)
        except InvalidInput as error:
            said = str(error) if error.file == name else f"{name}: {error}"
            raise table.fault(kind, said) from None
        yield Entry(source, draws, chosen)
    table.done(*_ENTRY)


def resolved_text(study: Study) -> str:
    """Return the TOML text of a study with everything said that a file may leave out.

    Lists that stood for several entries are written out.  A batch-time model stands there itself,
    so that no file has to be there.
    """
    first, scopes = study.limits[0], list(dict.fromkeys(each.scope for each in study.limits))
    alike = (first.scope, first.deadline)
    times = [each for each in study.limits if (each.scope, each.deadline) == alike]
    clock: dict[str, Any] = {"clock": "rounds"}
    if first.batch_time is not None:
        clock = {"clock": "seconds", "batch_time": first.batch_time.to_json()}
    top = {
        "name": study.name,
        "title": study.title,
        **clock,
        "certify": first.certify,
        "scope": None if scopes == [Scope.RUNS] else scopes,
        **({"slower": True} if first.slower else {}),
        "claims": study.claims,
        "modules": study.modules,
    }
    limits: dict[str, Any] = {}
    for key in LIMITS:
        values = [getattr(each, key) for each in times]
        limits[key] = values if len(set(values)) > 1 else values[0]
    if first.deadline is not None:
        limits["deadline"] = list(dict.fromkeys(each.deadline for each in study.limits))
    lines = [*_lines(top), "", "[limits]", *_lines(limits)]
    for entry in study.entries:
        draws = None if entry.source.seed is None else entry.draws
        said = {"draws": draws, **entry.source.to_json(), "policies": entry.policies}
        lines += ["", "[[instances]]", *_lines(said)]
    return "\n".join(lines) + "\n"


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {_toml(value)}" for key, value in table.items() if value is not None]


def _toml(value: Any) -> str:
    """Return a value as TOML; JSON texts are TOML texts, but for an unescaped delete."""
    if isinstance(value, dict):
        parts = (f"{json.dumps(key)} = {_toml(part)}" for key, part in value.items())
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value).replace("\x7f", "\\u007f")
