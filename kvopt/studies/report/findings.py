"""Read and check the folder of a study, and sort it for the report.

The order of records in a file differs from run to run.  Here they are sorted by their keys, so that
the same results give the same page.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from kvopt.errors import InvalidInput, shown
from kvopt.files.reading import blamed_on, parse_json, read_text
from kvopt.problem.families import FAMILIES
from kvopt.studies.ratio_intervals import Runs, ratio_of
from kvopt.studies.record_lines import COUNTS, FILE, Record, grouped, natural, read_records
from kvopt.verify import verify

_FILE = "file"
"""Key of an instance from a file: its name."""

_SIZE = "n"
"""Key of a family with the number of requests: runs of all sizes are shown together."""


@dataclass(frozen=True)
class FamilyFindings:
    """One heading: its groups, the smallest mean ratio first, and its instances."""

    name: str
    groups: Sequence[Runs]
    instances: Sequence[Record]

    @property
    def runs(self) -> list[Record]:
        """The runs of all groups."""
        return [run for group in self.groups for run in group.records]


@dataclass(frozen=True)
class Findings:
    """The content of the folder of a study."""

    folder: Path
    records: tuple[Record, ...]
    description: str | None
    digest: str
    warnings: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the study, or of its folder if there is no record."""
        return self.records[0].study if self.records else self.folder.resolve().name

    @property
    def in_seconds(self) -> bool:
        """Whether runs were on the clock of a batch-time model."""
        return any(record.in_seconds for record in self.records)

    @property
    def title(self) -> str | None:
        """The title in the description, for example with its substitute data."""
        try:
            title = tomllib.loads(self.description or "").get("title")
        except tomllib.TOMLDecodeError:
            return None
        return title if isinstance(title, str) else None

    @cached_property
    def runs(self) -> list[Record]:
        """Records of policies under their headings, without instances that failed as a whole."""
        return headed([record for record in self.records if record.policy is not None])

    @cached_property
    def judged(self) -> list[Record]:
        """Runs with a ratio, the largest proved ratio first."""
        proved = [run for run in self.runs if least_ratio(run)]
        return sorted(proved, key=lambda run: (-least_ratio(run), _order(run)))

    @cached_property
    def failures(self) -> list[Record]:
        """Records with an error."""
        return [record for record in self.records if record.outcome == "error"]

    @cached_property
    def _works(self) -> dict[tuple[str, str], list[Record]]:
        return grouped(self.runs, _work)

    @property
    def instances(self) -> list[Record]:
        """One record for each instance, the first of its runs."""
        return [run for run, *_ in self._works.values()]

    def first_run(self, record: Record) -> Record:
        """Return the record that represents the instance of another one among `instances`."""
        return self._works[_work(record)][0]

    @cached_property
    def families(self) -> list[FamilyFindings]:
        """The runs by heading, in the order of the page."""
        unequal = differing(map(_limits, self.runs))

        def place(run: Record) -> tuple[str, str]:
            limits = in_words(_limits(run), unequal)
            return run.instance.family or "", ", ".join(filter(None, (run.policy, limits)))

        places = grouped(self.runs, place).items()
        groups = [Runs(label, tuple(runs), family) for (family, label), runs in places]
        groups.sort(
            key=lambda g: (natural(g.family), g.mean.lower is None, g.mean.lower or 0, g.policy)
        )
        instances = grouped(self.instances, lambda record: record.instance.family)
        by_name = grouped(groups, lambda group: group.family)
        return [
            FamilyFindings(name, group, instances.get(name, [])) for name, group in by_name.items()
        ]

    @cached_property
    def groups(self) -> list[Runs]:
        """Runs by family and policy."""
        return [group for family in self.families for group in family.groups]

    @cached_property
    def looks(self) -> dict[str, int]:
        """The place of each scheduler, which gives it one colour and marker in all pictures."""
        return {name: i for i, name in enumerate(dict.fromkeys(g.policy for g in self.groups))}

    def has(self, certificate: str | None) -> bool:
        """Whether a certificate is in the folder."""
        return certificate is not None and (self.folder / certificate).is_file()


def least_ratio(run: Record) -> Fraction:
    """Return the lower end of the ratio of a run, 0 if it has none."""
    return ratio_of(run).lower or Fraction()


def read_findings(folder: Path) -> Findings:
    """Read the folder of a study.

    Raises
    ------
    InvalidInput
        If it has no study, or a file with other than its original content.
    """
    path = folder / FILE
    if not path.is_file():
        reason = (
            f"holds no study: {FILE} is missing (kvopt fleet --out draws its folder as fleet.svg, "
            "kvopt.read_certificate(FILE).plot() draws a certificate)"
        )
        raise InvalidInput(reason, file=str(folder))
    warnings: list[str] = []
    records = sorted(read_records(folder, warnings.append), key=_order)
    with blamed_on(path):
        for record in records:
            _check(record)
    description = folder / "study.toml"
    return Findings(
        folder=folder,
        records=tuple(records),
        description=read_text(description) if description.exists() else None,
        digest="sha256:" + hashlib.sha256(path.read_bytes()).hexdigest(),
        warnings=tuple(warnings),
    )


def _check(record: Record) -> None:
    """Refuse a bound that a schedule refutes, and a certificate outside of the folder."""
    if record.certificate is not None:
        path = PurePosixPath(record.certificate)
        if path.is_absolute() or {"..", "\0"} & {*path.parts, *str(path)} or not path.name:
            reason = f"must be a path inside the folder, got {shown(record.certificate)}"
            raise InvalidInput(reason, field="certificate")
    reached = [total for total in (record.value, record.upper) if total is not None]
    if record.lower is not None and reached and min(reached) < record.lower:
        reason = f"is {record.lower}, above the total latency {min(reached)} that was reached"
        place = f"{record.instance.name}, {record.policy}"
        raise InvalidInput(f"{place}: {reason}", field="lower")


def _limits(record: Record) -> Mapping[str, object]:
    """Return the limits of a record with the scope, which older records omit."""
    return {**record.limits, "scope": str(record.scope)}


def headed(records: Sequence[Record]) -> list[Record]:
    """Return records whose family is their heading.

    Traffic at different rates is not comparable.  So in seconds the heading has the keys of a
    family in which records differ.
    """
    files = {(r.instance.name, _file(r)) for r in records if r.instance.family is None}
    ambiguous = len({name for name, _ in files}) < len(files)
    families = grouped(records, lambda record: record.instance.family)
    varied = {
        family: differing(record.instance.parameters for record in group)
        for family, group in families.items()
    }

    def heading(record: Record) -> str:
        family, keys = record.instance.family, record.instance.parameters
        name = family or (_file(record) if ambiguous else record.instance.name)
        if not record.in_seconds:
            return name
        source = FAMILIES[family].source if family in FAMILIES else ""
        stand_in = " (stand-in)" if source.startswith("stand-in") else ""
        changed = in_words(keys, [key for key in varied[family] if key not in (_SIZE, _FILE)])
        is_file = family and _FILE in keys and _FILE in varied[family]
        parts = [name + stand_in, changed, record.instance.name if is_file else ""]
        return ", ".join(filter(None, parts))

    return [
        replace(record, instance=replace(record.instance, family=heading(record)))
        for record in records
    ]


def _file(record: Record) -> str:
    return str(record.instance.parameters.get(_FILE, ""))


def _work(record: Record) -> tuple[str, str]:
    return record.instance.hash, limits_of(record)


def _order(record: Record) -> tuple[Any, ...]:
    instance = record.instance
    seed = -1 if instance.seed is None else instance.seed
    size = (instance.requests, instance.memory)
    name = natural(instance.family or instance.name)
    return name, *size, seed, *_work(record), record.policy or ""


def limits_of(record: Record) -> str:
    """Return the limits of a record on one line; a batch-time model by its name."""
    limits = {
        name: value.get("name") or "without a name" if isinstance(value, dict) else value
        for name, value in record.limits.items()
    }
    return in_words(limits, sorted(limits))


def in_words(keys: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return some keys of a table with their values."""
    return ", ".join(f"{name} {keys[name]}" for name in names if name in keys)


def differing(tables: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the keys in which some tables differ, except counts."""
    values: dict[str, set[str]] = {}
    for table in tables:
        for key, value in table.items():
            values.setdefault(key, set()).add(repr(value))
    return sorted(key for key, texts in values.items() if len(texts) > 1 and key not in COUNTS)


@dataclass(frozen=True, slots=True)
class Checked:
    """Number of verified certificates, and faults of others."""

    certificates: int
    faults: tuple[str, ...]


def check_certificates(study: Findings) -> Checked:
    """Verify every certificate and compare it with its records; return how many are valid."""
    certified = [record for record in study.records if record.certificate is not None]
    owners = grouped(certified, lambda record: record.certificate or "")
    faults = []
    for certificate, records in sorted(owners.items()):
        path = study.folder / certificate
        verdict = verify(path)
        wrong = [] if verdict.valid else [verdict.lines[-1]]
        if verdict.valid:
            content = parse_json(read_text(path))
            wrong = [line for record in records for line in _differences(content, record)]
        faults += [f"{certificate}: {line}" for line in wrong[:1]]
    return Checked(len(owners) - len(faults), tuple(faults))


def _differences(content: Mapping[str, Any], record: Record) -> list[str]:
    """Return the fields of a record that contradict its certificate."""
    runs = {run["policy"]: run for run in content.get("policies", ())}
    nothing = {"value": None}
    pairs = {
        "instance": (record.instance.hash, content["hash"]),
        "upper": (record.upper, (content["upper"] or nothing)["value"]),
        "lower": (record.lower, (content["lower"] or nothing)["value"]),
        "value": (record.value, runs.get(record.policy, nothing)["value"]),
    }
    if claim := content.get("slo"):
        counts = dict(zip(runs, claim["attained"], strict=True))
        pairs["ceiling"] = (record.ceiling, claim["ceiling"])
        pairs["attained"] = (record.attained, counts.get(record.policy))
    return [
        f"{record.policy}: {name} is {ours} in the record and {theirs} in the certificate"
        for name, (ours, theirs) in pairs.items()
        if ours != theirs
    ]
