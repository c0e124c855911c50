"""A router that is told where to send requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from kvopt.simulate.routers.base import ArrivalRouter, Load


@dataclass
class Sent(ArrivalRouter):
    """Sends requests where it was told to, in the order of their arrival."""

    name: ClassVar[str] = "sent"

    to: Sequence[int] = ()

    def begin(self, workers: int) -> None:
        self._left = iter(self.to)

    def choose(self, loads: Sequence[Load], prompt: int, output: int) -> int:
        return next(self._left)
