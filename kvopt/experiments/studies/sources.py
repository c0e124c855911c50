"""Where the instances of a study come from: a family, a file, or a game against a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from kvopt.errors import InvalidInput, shown
from kvopt.experiments.studies.games import check_game, play, reference
from kvopt.experiments.studies.records import StudiedInstance
from kvopt.families import generate
from kvopt.files import read_instance
from kvopt.model.arrivals import arrivals_ns
from kvopt.model.instance import Instance, Request, checked_integer
from kvopt.model.schedule import Schedule

Kind = Literal["family", "file", "game", "inline"]


@dataclass(frozen=True, slots=True)
class Source:
    """What one instance is drawn from.

    Parameters
    ----------
    kind, name
        A family, the path of an instance, a game that is played against each policy, or the name
        of an instance that is written in the description itself.
    seed
        Of the draw; None for a file.
    n, memory, parameters
        What was asked for; of an inline instance its ``requests``.
    """

    kind: Kind
    name: str
    seed: int | None = 0
    n: int | None = None
    memory: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def asked(self) -> dict[str, Any]:
        """What was asked for, as a record carries it."""
        sizes = {key: size for key, size in (("n", self.n), ("memory", self.memory)) if size}
        file = {"file": self.name} if self.kind == "file" else {}
        return {**sizes, **file, **self.parameters}

    def to_json(self) -> dict[str, Any]:
        """Return the keys of a description that give this source."""
        keys = dict(self.parameters)
        return {
            self.kind: self.name,
            "seed": self.seed,
            "n": self.n,
            "memory": self.memory,
            "requests": keys.pop("requests", None),
            "parameters": keys or None,
        }

    def check(self, policies: Sequence[str], in_seconds: bool = False) -> None:
        """Refuse what cannot be drawn, or has no arrivals on the clock of the study."""
        for key, size in (("n", self.n), ("memory", self.memory)):
            if size is not None:
                checked_integer(size, key, 1)
        if self.kind == "file" and (self.n is not None or self.parameters):
            raise InvalidInput("a file has its own requests", field="n, parameters")
        if self.kind == "game":
            if in_seconds:
                raise InvalidInput("is played in rounds, not in seconds", field="clock")
            check_game(self.name, policies, self.asked)
        elif in_seconds:
            arrivals_ns(self.instance())
        else:
            self.instance()

    def instance(self, policy: str | None = None) -> Instance:
        """Draw the instance; a game needs the policy that it is played against."""
        if self.kind == "file":
            return read_instance(self.name, self.memory)
        if self.kind == "inline":
            return self._inline()
        if self.kind == "game":
            assert policy is not None, "a game has an opponent"
            return play(self.name, policy, memory=self.memory, parameters=self.parameters)
        return generate(self.name, self.n, self.memory, self.seed or 0, self.parameters)

    def _inline(self) -> Instance:
        """Build an instance from ``[arrival, prompt, output]`` of each request."""
        rows = self.parameters["requests"]
        if not isinstance(rows, (list, tuple)):
            raise InvalidInput(f"must be a list, got {shown(rows)}", field="requests")
        for row in rows:
            if not isinstance(row, (list, tuple)) or len(row) != 3:
                reason = f"must hold [arrival, prompt, output], got {shown(row)}"
                raise InvalidInput(reason, field="requests")
        requests = [Request(*row) for row in rows]
        if self.memory is None:
            raise InvalidInput("is missing", field="memory")
        return Instance(self.memory, requests, self.name)

    def reference(self, instance: Instance) -> Schedule | None:
        """Return the schedule that a proof compares policies with, where the source knows one."""
        return reference(instance) if self.kind == "game" else None

    def described(self, instance: Instance | None) -> StudiedInstance:
        """Return what a record says of an instance from here, None for one not made yet."""
        name: str = self.name
        family: str | None = self.name
        if self.kind == "file":
            name = Path(name).name
            # A generated file says what it is from.
            notes = instance.notes if instance and isinstance(instance.notes, dict) else {}
            family = notes["family"] if isinstance(notes.get("family"), str) else None
        elif instance is not None and instance.name:
            name = instance.name
        return StudiedInstance(
            name=name,
            family=family,
            parameters=self.asked,
            seed=self.seed,
            requests=0 if instance is None else len(instance),
            memory=(self.memory or 0) if instance is None else instance.memory,
            hash=f"none:{asdict(self)}" if instance is None else instance.hash,
        )
