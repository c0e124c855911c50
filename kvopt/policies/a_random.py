"""A random order, known outputs: the benchmark behind the analysis of a-max."""

from __future__ import annotations

from dataclasses import dataclass

from kvopt.errors import InvalidInput
from kvopt.policies.base import View, shuffled_ranks
from kvopt.policies.prefix import Key, PrefixPolicy
from kvopt.policies.registry import register


@register
@dataclass
class ARandom(PrefixPolicy):
    """Admit in the order of one random permutation and stop at the first that does not fit.

    Parameters
    ----------
    memory
        Tokens it may use, when that is less than M: the paper couples it on ``alpha M``.
    """

    name = "a-random"
    source = "chen-2025, Algorithm 4"

    memory: int | None = None

    def __post_init__(self) -> None:
        if self.memory is not None and self.memory < 1:
            raise InvalidInput(f"must be at least 1, got {self.memory}", field="memory")

    def begin(self, view: View) -> None:
        """Draw the permutation."""
        super().begin(view)
        self._rank = shuffled_ranks(len(view.prompts), self.seed)

    def capacity(self, view: View) -> int:
        """Return M, or the smaller memory that was asked for."""
        return view.memory if self.memory is None else min(self.memory, view.memory)

    def key(self, view: View, i: int) -> Key:
        """Return the place in the permutation."""
        return (self._rank[i],)
