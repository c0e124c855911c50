"""What a study is: families, draws, policies, prediction models and limits, from a TOML file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Self, get_args

from kvopt.errors import InvalidInput
from kvopt.experiments.studies.clock_key import clock_of, model_from_json
from kvopt.experiments.studies.sources import Kind, Source
from kvopt.experiments.studies.tables import Table
from kvopt.files.reading import read_text
from kvopt.kernels.modules import import_modules, located
from kvopt.model.batch_time import BatchTime
from kvopt.policies.registry import policy as policy_from

_TOP = (
    "name", "title", "clock", "batch_time", "certify", "policies", "predictions", "claims",
    "modules", "limits", "instances",
)  # fmt: skip
LIMITS = ("time_limit", "policy_time_limit", "threads", "seed")
_ENTRY = (
    "family", "file", "game", "inline", "requests",
    "draws", "seed", "n", "memory", "parameters", "policies",
)  # fmt: skip


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
    """

    time_limit: float = 60.0
    policy_time_limit: float = 60.0
    threads: int = 1
    seed: int = 0
    batch_time: BatchTime | None = None
    certify: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return the limits as a record carries them; what most studies have is not said."""
        said: dict[str, Any] = {name: getattr(self, name) for name in LIMITS}
        if self.batch_time is not None:
            said["batch_time"] = self.batch_time.to_json()
        return said if self.certify else {**said, "certify": False}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Build limits from what `to_json` returned."""
        return cls(**{**value, "batch_time": model_from_json(value.get("batch_time"))})


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
        Each instance is done once for each of them.
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


def study_from_text(text: str, file: Path | None = None) -> Study:
    """Build a study from the text of a TOML file; relative paths in it start at that file."""
    top = Table.parsed(text, None if file is None else str(file))
    folder = Path() if file is None else file.parent
    name = top.string("name", None if file is None else file.stem)
    if name is None or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise top.fault("name", f"must be letters, digits and dashes, got {name!r}")
    modules = tuple(located(module, folder) for module in top.strings("modules", ()))
    try:
        import_modules(modules)
    except InvalidInput as error:
        raise top.fault("modules", str(error)) from None
    clock, certify = clock_of(top, folder), top.boolean("certify", True)
    models = top.strings("predictions", ("",))
    policies = _policies(top, models, ())
    entries = tuple(
        entry
        for table in top.tables("instances")
        for entry in _entries(table, models, policies, folder, clock is not None)
    )
    if not entries:
        raise top.fault("instances", "is missing: a study needs tables [[instances]]")
    study = Study(
        name=name,
        title=top.string("title", name),
        entries=entries,
        limits=tuple(
            replace(limits, batch_time=clock, certify=certify)
            for limits in _limits(top.table("limits"))
        ),
        claims=_claims(top),
        modules=modules,
    )
    top.done(*_TOP)
    return study


def _policies(table: Table, models: Sequence[str], default: Sequence[str]) -> tuple[str, ...]:
    """Return the policies of a table, each with each prediction model."""
    if "policies" not in table:
        return tuple(default)
    found = []
    for name, model in product(table.strings("policies"), models):
        label = name if not model else f"{name}{',' if ':' in name else ':'}{model}"
        try:
            policy_from(label)
        except InvalidInput as error:
            raise table.fault("policies", f"{label}: {error}") from None
        found.append(label)
    return tuple(found)


def _limits(table: Table) -> Iterator[Limits]:
    fallback = Limits()
    time_limits = table.numbers("time_limit", fallback.time_limit)
    policy_time_limit = table.number("policy_time_limit", 0.0)
    threads = table.integer("threads", fallback.threads, 1)
    seed = table.integer("seed", fallback.seed)
    table.done(*LIMITS)
    for time_limit in time_limits:
        yield Limits(time_limit, policy_time_limit or time_limit, threads, seed)


def _entries(
    table: Table, models: Sequence[str], policies: Sequence[str], folder: Path, in_seconds: bool
) -> Iterator[Entry]:
    kinds: list[Kind] = [kind for kind in get_args(Kind) if kind in table]
    if len(kinds) != 1:
        raise table.fault("family", f"needs one of {', '.join(get_args(Kind))}")
    kind, name = kinds[0], table.string(kinds[0])
    if kind == "file":
        name = str((folder / name).resolve())
    fixed = kind in ("file", "inline")
    draws, seed = (1, None) if fixed else (table.integer("draws", 1, 1), table.integer("seed", 0))
    chosen = _policies(table, models, policies)
    if not chosen:
        raise table.fault("policies", "is missing: a study needs policies")
    sizes = product(table.choices("n"), table.choices("memory"))
    keys = {
        key: value if isinstance(value, list) else [value]
        for key, value in table.table("parameters").items().items()
    }
    if kind == "inline":
        keys["requests"] = [table.take("requests")]
    for (n, memory), values in product(list(sizes), list(product(*keys.values()))):
        parameters = dict(zip(keys, values, strict=True))
        source = Source(kind, name, seed, n, memory, parameters)
        try:
            source.check(chosen, in_seconds)
        except InvalidInput as error:
            said = str(error) if error.file == name else f"{name}: {error}"
            raise table.fault(kind, said) from None
        yield Entry(source, draws, chosen)
    table.done(*_ENTRY)


def _claims(top: Table) -> tuple[str, ...]:
    from kvopt.experiments.studies.claims import CLAIMS

    names = top.strings("claims", ())
    for name in names:
        if name not in CLAIMS:
            raise top.fault("claims", f"must be among {', '.join(CLAIMS)}, got {name!r}")
    return names
