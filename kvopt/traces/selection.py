"""Which requests of a trace are kept, and how many were not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kvopt.errors import InvalidInput
from kvopt.model.instance import checked_integer
from kvopt.traces.rows import Found, Row, Unread


@dataclass
class Selection:
    """Requests that pass, up to a limit, or a sample of them.

    Parameters
    ----------
    memory, max_total
        What a request may hold at most; the second is the user's own limit.
    limit
        How many may pass.
    sample, seed
        How many of those are kept, drawn without replacement; all by default.

    Attributes
    ----------
    kept
        The requests with the numbers of their lines.
    """

    memory: int
    limit: int | None = None
    sample: int | None = None
    seed: int = 0
    max_total: int | None = None
    kept: list[tuple[Row, int]] = field(default_factory=list, init=False)
    _dropped: dict[str, dict[str, int]] = field(default_factory=dict, init=False)
    _read: int = field(default=0, init=False)
    _passed: int = field(default=0, init=False)
    _late: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        for name, value, least in (
            ("limit", self.limit, 0),
            ("sample", self.sample, 0),
            ("max-total", self.max_total, 1),
        ):
            if value is not None:
                checked_integer(value, name, least)

    def take(self, lines: Iterable[Found]) -> None:
        """Read lines until they end or the limit is reached.

        Raises
        ------
        InvalidInput
            If there were lines and none of them is a request: that is another format.
        """
        random, latest = Random(self.seed), None
        if self.limit == 0:
            return
        for number, found in lines:
            self._read += 1
            reason = found.reason if isinstance(found, Unread) else self._refusal(found)
            if reason is not None:
                entry = self._dropped.setdefault(reason, {"rows": 0, "first_line": number})
                entry["rows"] += 1
                continue
            assert isinstance(found, Row)
            if latest is not None and found.time < latest:
                self._late += 1
            latest = found.time if latest is None else max(latest, found.time)
            self._keep(found, number, random)
            if self._passed == self.limit:
                break
        if self._read and not self._passed:
            raise InvalidInput(f"holds no request that can be used: {self.summary()}")

    def _refusal(self, row: Row) -> str | None:
        """Return why a request cannot be kept."""
        if row.output < 1:
            return "no output"
        if self.max_total is not None and row.prompt + row.output > self.max_total:
            return f"more than {self.max_total} tokens (--max-total)"
        if row.prompt + row.output > self.memory:
            return f"more tokens than memory ({self.memory})"
        return None

    def _keep(self, row: Row, number: int, random: Random) -> None:
        self._passed += 1
        if self.sample is None or len(self.kept) < self.sample:
            self.kept.append((row, number))
            return
        place = random.randrange(self._passed)  # so that all that passed are equally likely
        if place < self.sample:
            self.kept[place] = row, number

    def notes(self) -> dict[str, Any]:
        """Return what a reader of the instance should know."""
        options = {"limit": self.limit, "sample": self.sample, "max_total": self.max_total}
        if self.sample is not None:
            options["seed"] = self.seed
        return {
            **{name: value for name, value in options.items() if value is not None},
            "rows_read": self._read,
            "usable": self._passed,
            "kept": len(self.kept),
            "out_of_order": self._late,
            "dropped": self._dropped,
        }

    def summary(self) -> str:
        """Return in one line what was dropped, the most frequent reason first."""
        ranked = sorted(self._dropped.items(), key=lambda item: -item[1]["rows"])
        return "; ".join(
            f"{entry['rows']} x {reason} (first at line {entry['first_line']})"
            for reason, entry in ranked
        )
