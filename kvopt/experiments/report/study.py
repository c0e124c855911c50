"""The folder of a study, as the report sees it: read, checked, and in an order of its own.

Records come in the order in which work was done, which differs from run to run; here they are
sorted by what they are, so that the same results give the same page.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, get_args

from kvopt.errors import InvalidInput, shown
from kvopt.experiments.report.words import limits_of, natural
from kvopt.experiments.studies.claims import Verdict
from kvopt.experiments.studies.claims.verdict import Judgement
from kvopt.experiments.studies.intervals import Interval, ratio_of
from kvopt.experiments.studies.records import FILE, Record, read_records
from kvopt.files.reading import blamed_on, check_fields, parse_json, read_text
from kvopt.problem.families import FAMILIES

_FILE = "file"
"""Key of an instance from a file, for which its name stands."""

COUNTS = ("left_out", "unread")
"""Keys of what was counted in a trace, and not asked for."""

_SIZE = "n"
"""Key of a family that says how many requests there are: runs of all sizes stand together."""


@dataclass(frozen=True, slots=True)
class Run:
    """A record of a policy, with the interval that holds its ratio.

    It is None unless the run completed; an optimum of 0 has no ratio.
    """

    record: Record
    ratio: Interval | None

    @property
    def least(self) -> Fraction:
        """Lower end of the ratio, 0 where there is none."""
        return (self.ratio and self.ratio.least) or Fraction(0)


@dataclass(frozen=True)
class Study:
    """All that a study left in its folder."""

    folder: Path
    records: tuple[Record, ...]
    verdicts: tuple[Verdict, ...]
    description: str | None
    digest: str
    warnings: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the study, or of its folder while it has no record."""
        return self.records[0].study if self.records else self.folder.resolve().name

    @property
    def in_seconds(self) -> bool:
        """Whether runs were on the clock of a batch-time model."""
        return any(record.in_seconds for record in self.records)

    @property
    def title(self) -> str | None:
        """What the description says of the study in a line: on what it stands in, for example."""
        title = self._described.get("title")
        return title if isinstance(title, str) else None

    @cached_property
    def _described(self) -> dict[str, Any]:
        """The description as a table, empty where it is none."""
        try:
            return tomllib.loads(self.description or "")
        except tomllib.TOMLDecodeError:
            return {}

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Records of policies under their headings, without instances that failed as a whole."""
        records = headed([record for record in self.records if record.policy is not None])
        return tuple(Run(r, ratio if (ratio := ratio_of(r)).least else None) for r in records)

    @cached_property
    def judged(self) -> tuple[Run, ...]:
        """Runs with a ratio, the largest proved ratio first."""
        found = [run for run in self.runs if run.ratio is not None]
        return tuple(sorted(found, key=lambda run: (-run.least, _order(run.record))))

    @cached_property
    def failures(self) -> tuple[Record, ...]:
        """Records with an error."""
        return tuple(record for record in self.records if record.outcome == "error")

    @cached_property
    def instances(self) -> tuple[Record, ...]:
        """One record for each instance with both sides known or not: the first of its runs."""
        found: dict[tuple[str, str], Record] = {}
        for run in self.runs:
            found.setdefault(_work(run.record), run.record)
        return tuple(found.values())

    def place(self, record: Record) -> int:
        """Return the position of the instance of a record among `instances`."""
        return self._places[_work(record)]

    @cached_property
    def _places(self) -> dict[tuple[str, str], int]:
        return {_work(record): place for place, record in enumerate(self.instances)}

    @cached_property
    def _paths(self) -> dict[str, str]:
        """Files and modules of the description that lie somewhere, as a page names them."""
        top = self._described
        found: list[object] = [_file(record) for record in self.records]
        entries = top.get("instances")
        for entry in entries if isinstance(entries, list) else ():
            found += (
                [entry.get(key) for key in ("file", "trace")] if isinstance(entry, dict) else []
            )
        modules = top.get("modules")
        found += modules if isinstance(modules, list) else []
        absolute = {p for p in found if isinstance(p, str) and PurePosixPath(p).is_absolute()}
        return shortened(sorted(absolute))

    def portable(self, text: str) -> str:
        """Return a text without the folders in which files of the study lay when it was run."""
        if self.folder.is_absolute():
            text = text.replace(f"{self.folder}/", "")
        for path in sorted(self._paths, key=len, reverse=True):
            text = text.replace(path, self._paths[path])
        return text

    def has(self, certificate: str | None) -> bool:
        """Whether a certificate is in the folder."""
        return certificate is not None and (self.folder / certificate).is_file()


def read_study(folder: Path) -> Study:
    """Read the folder of a study.

    Raises
    ------
    InvalidInput
        If it holds no study, or a file that is not as it was written.
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
    for record in records:
        if record.certificate is not None:
            _check_inside(record.certificate, path)
        _check_bound(record, path)
    verdicts, description = folder / "verdicts.json", folder / "study.toml"
    return Study(
        folder=folder,
        records=tuple(records),
        verdicts=_read_verdicts(verdicts) if verdicts.exists() else (),
        description=read_text(description) if description.exists() else None,
        digest="sha256:" + hashlib.sha256(path.read_bytes()).hexdigest(),
        warnings=tuple(warnings),
    )


def _check_bound(record: Record, path: Path) -> None:
    """Refuse a bound that a schedule in the same record refutes."""
    known = [total for total in (record.value, record.upper) if total is not None]
    if record.lower is not None and known and min(known) < record.lower:
        reason = f"is {record.lower}, above the total latency {min(known)} that was reached"
        place = f"{record.instance.name}, {record.policy}"
        raise InvalidInput(f"{place}: {reason}", field="lower", file=str(path))


def _check_inside(certificate: object, path: Path) -> None:
    """Refuse a certificate that would lead out of the folder."""
    if isinstance(certificate, str) and certificate and "\0" not in certificate:
        place = PurePosixPath(certificate)
        if not place.is_absolute() and ".." not in place.parts:
            return
    reason = f"must be a path inside the folder, got {shown(certificate)}"
    raise InvalidInput(reason, field="certificate", file=str(path))


def _read_verdicts(path: Path) -> tuple[Verdict, ...]:
    """Read what became of published claims."""
    with blamed_on(path):
        names = ("schema", "study", "verdicts")
        value = parse_json(read_text(path))
        top = check_fields(value, "verdicts", names, schema="kvopt.verdicts/1")
        if not isinstance(top["verdicts"], list):
            raise InvalidInput("must be a list", field="verdicts")
        return tuple(_verdict(row, path) for row in top["verdicts"])


def _verdict(value: object, path: Path) -> Verdict:
    names = [item.name for item in fields(Verdict)]
    row = check_fields(value, "verdict", names, ())
    for name in names:
        kind, wanted = (list, "a list") if name == "certificates" else (str, "text")
        if not isinstance(row[name], kind):
            raise InvalidInput(f"must be {wanted}, got {shown(row[name])}", field=name)
    if row["verdict"] not in (known := get_args(Judgement)):
        reason = f"must be one of {', '.join(known)}, got {shown(row['verdict'])}"
        raise InvalidInput(reason, field="verdict")
    for certificate in row["certificates"]:
        _check_inside(certificate, path)
    return Verdict(**{**row, "certificates": tuple(row["certificates"])})


def headed(records: Sequence[Record]) -> list[Record]:
    """Return records whose family is the heading under which they stand.

    Traffic at one rate is not comparable with traffic at another; so in seconds the keys of a
    family in which records differ are part of the heading.
    """
    files = {(r.instance.name, _file(r)) for r in records if r.instance.family is None}
    places = shortened(place for _, place in files)
    parameters: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        parameters.setdefault(record.instance.family or "", []).append(record.instance.parameters)
    ambiguous = len({name for name, _ in files}) < len(files)
    varied = {family: differing(keys) for family, keys in parameters.items()}

    def heading(record: Record) -> str:
        family = record.instance.family
        name = family or (places[_file(record)] if ambiguous else record.instance.name)
        return _setting(record, name, varied[family or ""]) if record.in_seconds else name

    return [
        replace(record, instance=replace(record.instance, family=heading(record)))
        for record in records
    ]


def _file(record: Record) -> str:
    return str(record.instance.parameters.get(_FILE, ""))


def shortened(paths: Iterable[str]) -> dict[str, str]:
    """Return as much of the end of each path as tells it apart: no page says where it was made."""
    split = {path: PurePosixPath(path).parts for path in paths}
    seen = Counter(parts[-n:] for parts in split.values() for n in range(1, len(parts) + 1))

    def end(parts: tuple[str, ...]) -> tuple[str, ...]:
        ends = (parts[-n:] for n in range(1, len(parts) + 1))
        return next((each for each in ends if seen[each] == 1), parts)

    return {path: "/".join(end(parts)) for path, parts in split.items()}


def _setting(record: Record, name: str, varied: Sequence[str]) -> str:
    """Return a name with the keys in which records under it differ; sizes stand together."""
    keys = record.instance.parameters
    found = FAMILIES.get(record.instance.family or "")
    stand_in = " (stand-in)" if found and found.source.startswith("stand-in") else ""
    said = settings(keys, [key for key in varied if key not in (_SIZE, _FILE)])
    if _FILE in keys and _FILE in varied and record.instance.family is not None:
        said.append(record.instance.name)
    return ", ".join([name + stand_in, *said])


def settings(keys: Mapping[str, Any], shown: Iterable[str]) -> list[str]:
    """Return some of the keys of an instance with their values."""
    return [f"{key} {keys[key]}" for key in shown if key in keys and key not in COUNTS]


def differing(found: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the keys in which some mappings differ."""
    values: dict[str, set[str]] = {}
    for each in found:
        for key, value in each.items():
            values.setdefault(key, set()).add(repr(value))
    return sorted(key for key, known in values.items() if len(known) > 1)


def _work(record: Record) -> tuple[str, str]:
    return record.instance.hash, limits_of(record)


def _order(record: Record) -> tuple[Any, ...]:
    instance = record.instance
    seed = -1 if instance.seed is None else instance.seed
    size = (instance.requests, instance.memory)
    name = natural(instance.family or instance.name)
    return name, *size, seed, *_work(record), record.policy or ""
