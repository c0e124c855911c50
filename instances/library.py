"""The table of the library: the better of two schedules and of two bounds, with their finders."""

from __future__ import annotations

import json
import lzma
import re
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

from kvopt import Instance, InvalidInput, Schedule, Seconds, batch_time, read_instance, verify

Entry = dict[str, Any]
"""Entry of an instance; ``instances/README.md`` describes the fields."""

TABLE, CHALLENGE, CERTIFICATES = "best-known.json", "challenge", "certificates"

LARGEST_KEPT = 800_000
"""Bytes of a compressed certificate that is kept; a larger one is verified and dropped."""

CLASSES = ("easy", "medium", "hard", "open")

STANDARD_SECONDS = 600.0
"""Limit of the standard run, on two cores."""
_EASY = 60.0
"""Seconds of a proof up to which an instance is easy."""

_UPPER = ("objective", "starts", "workers", "lost", "waits", "schedule")
_LOWER = (
    "lower_bound", "bound_source", "bounded_by", "who", "date", "version", "seconds", "threads",
    "certificate",
)  # fmt: skip
_SPANS = _UPPER[1:-1]
_NARROW = ("runs", "restarts")
"""Scopes whose schedules the table may hold."""


def closed(entry: Entry | None) -> bool:
    """Whether the best schedule meets the best bound."""
    return entry is not None and entry["objective"] == entry["lower_bound"]


def difficulty(entry: Entry) -> str:
    """Return the class of an instance: by the time of its proof, else ``open``."""
    seconds = entry["seconds"]
    is_hard = seconds is None or seconds > STANDARD_SECONDS
    place = 2 if is_hard else int(seconds > _EASY)
    return CLASSES[place if closed(entry) else 3]


def merged(old: Entry | None, new: Entry) -> Entry:
    """Return the better of both on each side; of equal ones the old one.

    Of equal bounds the checked one is better, then the one with a certificate.
    """
    if old is None:
        return new
    upper = new if _value(new) < _value(old) else old
    lower = new if _strength(new) > _strength(old) else old
    kept = {name: upper[name] for name in _UPPER if name in upper}
    kept |= {name: lower[name] for name in _LOWER if name in lower}
    rest = {name: old[name] for name in old if name not in (*_UPPER, *_LOWER)}
    return {**rest, **kept}


def _value(entry: Entry) -> float:
    value = entry["objective"]
    return float("inf") if value is None else value


def _strength(entry: Entry) -> tuple[int, bool, bool]:
    value = entry["lower_bound"]
    checked = entry["bound_source"] == "checked"
    return -1 if value is None else value, checked, bool(entry.get("certificate"))


def clock_of(instance: Instance) -> Seconds | None:
    """Return the clock of a model that the notes of an instance name, None for rounds."""
    notes = instance.notes if isinstance(instance.notes, dict) else {}
    return Seconds(batch_time(notes["batch_time"])) if "batch_time" in notes else None


@dataclass(frozen=True)
class Library:
    """A folder of instances with a table of their known values."""

    folder: Path

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """The entries by the name of their instance."""
        path = self.folder / TABLE
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InvalidInput(f"cannot be read: {error}", file=str(path)) from None
        if not isinstance(found, dict) or not all(
            isinstance(row, dict) and {"instance", *_LOWER[:3], *_UPPER[:2]} <= {*row}
            for row in found.values()
        ):
            raise InvalidInput("is not the table of an instance library", file=str(path))
        return found

    @cached_property
    def paths(self) -> dict[str, Path]:
        """The file of each instance by its name."""
        found = [*self.folder.glob("*.json"), *self.folder.glob(f"{CHALLENGE}/*.json")]
        known = {path.stem: path for path in sorted(found) if path.name != TABLE}
        for name in self.entries:
            if name not in known:
                reason = f"there is no file of the instance {name}"
                raise InvalidInput(reason, file=str(self.folder / TABLE))
        return known

    def instance(self, name: str) -> Instance:
        """Read an instance."""
        return read_instance(self.paths[name])

    def schedule(self, name: str) -> Schedule | None:
        """Return the best schedule that is known of an instance, None if it lost work."""
        entry, instance = self.entries[name], self.instance(name)
        clock, workers = clock_of(instance), entry.get("workers", ())
        if entry.get("lost"):
            return None
        if clock is None:
            return Schedule(instance, entry["starts"], workers)
        resumed: list[dict[int, int]] = [{} for _ in range(instance.workers)]
        for number, time, *worker in entry.get("waits", ()):
            resumed[worker[0] if worker else 0][number] = time
        waits = resumed if any(resumed) else ()
        return Schedule(instance, entry["starts"], workers, clock=clock, resumed=waits)

    def save(self) -> None:
        """Write the table, one instance a line."""
        known = self.entries
        rows = ",\n".join(f"{json.dumps(k)}: {json.dumps(known[k])}" for k in sorted(known))
        write_whole(self.folder / TABLE, ("{\n" + rows + "\n}\n").encode())

    def submit(
        self, path: Path, who: str, seconds: float | None = None, budget: float | None = None
    ) -> tuple[str, list[str]]:
        """Enter the values of a certificate that improve the table.

        Parameters
        ----------
        path
            The certificate.
        who, seconds
            Name of the finder, and seconds taken; by default those of the certificate.
        budget
            As of `kvopt.verify`, which checks it.

        Returns
        -------
        tuple[str, list[str]]
            The name of the instance, and the improvement in words.

        Raises
        ------
        InvalidInput
            If the certificate is not valid, of no instance of the library, or not better.
        """
        if _plain(who) != who or not who:
            reason = "must be up to 60 letters, digits, blanks and .,:;@+()/-"
            raise InvalidInput(reason, field="who")
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise InvalidInput(f"cannot be read: {error.strerror}", file=str(path)) from None
        verdict = verify(path, budget)
        if not verdict.valid:
            raise InvalidInput(verdict.lines[-1].partition(": ")[2], file=str(path))
        content: dict[str, Any] = json.loads(raw)
        name = self._name_of(content, path)
        old, new = self.entries.get(name), _entry_of(content, raw, name, who, seconds)
        entry = merged(old, new)
        if entry["objective"] is None or entry["lower_bound"] is None:
            reason = f"is the first of {name}, and has to have both sides"
            raise InvalidInput(reason, file=str(path))
        if gained := _gained(old, entry):
            self.entries[name] = entry
            self._keep(name, entry, new, raw)
            self.save()
            return name, gained
        assert old is not None
        sides = ("upper", "objective"), ("lower", "lower_bound")
        known = "; ".join(f"{side} {new[key]}, known {old[key]}" for side, key in sides)
        reason = f"is not better than the known sides of {name}: {known}"
        raise InvalidInput(reason, file=str(path))

    def _name_of(self, content: dict[str, Any], path: Path) -> str:
        """Return the name of the instance that a certificate is of, on the clock that it has."""
        digest, known = content["hash"], self.entries
        for name in self.paths:
            kept = known[name]["instance"] if name in known else self.instance(name).hash
            if kept == digest and (instance := self.instance(name)).hash == digest:
                if _same_clock(content["clock"], clock_of(instance)):
                    return name
                reason = f"is not that of {name} in the library"
                raise InvalidInput(reason, field="clock", file=str(path))
        reason = f"{digest} is of no instance of the library"
        raise InvalidInput(reason, field="hash", file=str(path))

    def _keep(self, name: str, entry: Entry, new: Entry, raw: bytes) -> None:
        """Keep the certificate of a new bound instead of the one before."""
        kept = self.folder / CERTIFICATES / f"{name}.json.xz"
        if any(entry.get(key) != new.get(key) for key in _LOWER):
            return
        if entry.get("certificate"):
            kept.parent.mkdir(exist_ok=True)
            write_whole(kept, lzma.compress(raw))
        else:
            kept.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that is never seen half written."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_bytes(content)
    temporary.replace(path)


def _same_clock(said: object, clock: Seconds | None) -> bool:
    """Whether the clock of a certificate is that of an instance."""
    if clock is None or not isinstance(said, dict):
        return clock is None and said == "rounds"
    times = {**clock.batch_time.to_json(), "name": None, "notes": None}
    return {**said, "name": None, "notes": None} == times


def _gained(old: Entry | None, new: Entry) -> list[str]:
    """Return the improvements of an entry, in words."""
    before = old or dict.fromkeys(("objective", "lower_bound", "bound_source"))
    said = [
        f"{key.replace('_', ' ')} {new[key]:,}, known before: {before[key] or 'nothing'}"
        for key in ("objective", "lower_bound")
        if new[key] != before[key]
    ]
    if not said and old is not None and new != old:
        said.append(f"lower bound {new['lower_bound']:,} has a certificate that was checked")
    return said


def _entry_of(
    content: dict[str, Any], raw: bytes, name: str, who: str, seconds: float | None
) -> Entry:
    """Return the entry of a checked certificate."""
    sides = [*content.get("narrower", ()), content]
    bounds = [side["lower"] for side in sides if side.get("lower")]
    lower = max(bounds, key=lambda bound: bound["value"], default=None)
    # A schedule of a wider scope does more than the table allows.
    runs = [side["upper"] for side in sides if side.get("upper") and side["scope"] in _NARROW]
    upper: dict[str, Any] = min(runs, key=lambda run: run["value"], default={})
    # In rounds the same schedule without the lost work is as good.
    kept = [key for key in _SPANS if key != "lost" or content["clock"] != "rounds"]
    made = content.get("provenance", {})
    spent, threads = made.get("seconds") if seconds is None else seconds, made.get("threads")
    versions = made.get("versions")
    facts = {
        "who": who,
        "date": _day(made.get("created")),
        "version": _plain(versions.get("kvopt", "-")) if isinstance(versions, dict) else "-",
        "seconds": round(spent, 1) if isinstance(spent, int | float) else None,
        "threads": threads if isinstance(threads, int) else None,
    }
    is_small = len(raw) <= 40 * LARGEST_KEPT and len(lzma.compress(raw)) <= LARGEST_KEPT
    return {
        "instance": content["hash"],
        "objective": upper.get("value"),
        **{key: upper[key] for key in kept if key in upper},
        "schedule": facts,
        "lower_bound": lower and lower["value"],
        "bound_source": "checked",
        "bounded_by": lower and _plain(made.get("bounded_by") or lower["proof"]["kind"]),
        **facts,
        "certificate": f"{CERTIFICATES}/{name}.json.xz" if lower and is_small else None,
    }


def _day(text: object) -> str:
    """Return the day at the beginning of a text, or a dash."""
    try:
        return date.fromisoformat(str(text)[:10]).isoformat()
    except ValueError:
        return "-"


def _plain(text: object) -> str:
    """Return a contributor's text without characters that a table or page could read as markup."""
    return re.sub(r"[^\w .,:;@+()/-]", "?", str(text))[:60]
