"""First come, first served, with look-ahead."""

from __future__ import annotations

from dataclasses import dataclass

from kvopt.policies.base import View
from kvopt.policies.prefix import Key, PrefixPolicy
from kvopt.policies.registry import register


@register
@dataclass
class Fcfs(PrefixPolicy):
    """Scan requests by arrival and stop at the first that does not fit (MC-Benchmark)."""

    name = "fcfs"
    source = "jaillet-2025-v2, Algorithm 2"

    def key(self, view: View, i: int) -> Key:
        """Return the arrival: ties are broken by position alone."""
        return (view.arrivals[i],)

    def full_key(self, view: View, i: int) -> Key:
        """Return the arrival alone: position breaks ties."""
        return self.key(view, i)
