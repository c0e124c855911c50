"""Where the instances of a study come from: a family, a file, or a game against a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from kvopt.errors import InvalidInput, shown
from kvopt.experiments.studies.games import check_game, play
from kvopt.experiments.studies.records import StudiedInstance
from kvopt.families import generate
from kvopt.files import read_instance
from kvopt.model.arrivals import arrivals_ns
from kvopt.model.instance import Instance, Request, checked_integer
from kvopt.model.schedule import Schedule

_ROW = ("arrival", "prompt", "output")

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
        said: dict[str, Any] = {self.kind: self.name, "seed": self.seed, "n": self.n}
        keys = dict(self.parameters)
        said |= {"memory": self.memory, "requests": keys.pop("requests", None)}
        said |= {"parameters": keys or None}
        return said

    def check(self, policies: Sequence[str], in_seconds: bool = False) -> None:
        """Refuse what cannot be drawn, or has no arrivals on the clock of the study."""
        for key, size in (("n", self.n), ("memory", self.memory)):
            if size is not None:
                checked_integer(size, key, 1)
        if self.kind == "file" and (self.n is not None or self.parameters):
            raise InvalidInput("a file has its own requests", field="n, parameters")
        if self.kind == "game" and in_seconds:
            raise InvalidInput("is played in rounds, not in seconds", field="clock")
        if self.kind == "game":
            check_game(self.name, policies, self.asked)
            return
        instance = self.instance()
        if in_seconds:
            arrivals_ns(instance)

    def instance(self, policy: str | None = None) -> Instance:
        """Draw the instance; a game needs the policy that it is played against."""
        if self.kind == "file":
            return read_instance(self.name, self.memory)
        if self.kind == "inline":
            return self._inline()
        if self.kind == "game":
            assert policy is not None, "a game has an opponent"
            return play(
                self.name,
                policy,
                n=self.n,
                memory=self.memory,
                seed=self.seed or 0,
                parameters=self.parameters,
            )
        return generate(self.name, self.n, self.memory, self.seed or 0, self.parameters)

    def _inline(self) -> Instance:
        """Build an instance from ``[arrival, prompt, output]`` of each request."""
        requests, rows = [], self.parameters["requests"]
        if not isinstance(rows, (list, tuple)):
            raise InvalidInput(f"must be a list, got {shown(rows)}", field="requests")
        for row in rows:
            if not isinstance(row, (list, tuple)) or len(row) != len(_ROW):
                reason = f"must hold [{', '.join(_ROW)}], got {shown(row)}"
                raise InvalidInput(reason, field="requests")
            requests.append(Request(*row))
        if self.memory is None:
            raise InvalidInput("is missing", field="memory")
        return Instance(self.memory, requests, self.name)

    def reference(self, instance: Instance) -> Schedule | None:
        """Return the schedule that a proof compares policies with, where the source knows one."""
        if self.kind != "game":
            return None
        from kvopt.experiments.studies.games import reference

        return reference(instance)

    def described(self, instance: Instance) -> StudiedInstance:
        """Return what a record says of an instance from here."""
        is_file = self.kind == "file"
        return StudiedInstance(
            name=Path(self.name).name if is_file else instance.name or self.name,
            family=_own_family(instance) if is_file else self.name,
            parameters=self.asked,
            seed=self.seed,
            requests=len(instance),
            memory=instance.memory,
            hash=instance.hash,
        )

    def unknown(self) -> StudiedInstance:
        """Return what a record says of an instance that could not be made."""
        return StudiedInstance(
            name=self.name,
            family=self.name,
            parameters=self.asked,
            seed=self.seed,
            requests=0,
            memory=self.memory or 0,
            hash=f"none:{asdict(self)}",
        )


def _own_family(instance: Instance) -> str | None:
    """Return the family that a generated file says it is from."""
    family = instance.notes.get("family") if isinstance(instance.notes, dict) else None
    return family if isinstance(family, str) else None
