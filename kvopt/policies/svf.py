"""Smallest volume first."""

from __future__ import annotations

from dataclasses import dataclass

from kvopt.policies.base import View
from kvopt.policies.prefix import Key, PrefixPolicy
from kvopt.policies.registry import register


@register
@dataclass
class Svf(PrefixPolicy):
    """Scan requests by believed token-rounds and stop at the first that does not fit."""

    name = "svf"
    source = "arXiv 2606.22327"

    def key(self, view: View, i: int) -> Key:
        """Return the volume ``s o + o (o + 1) / 2``."""
        output = view.beliefs.output[i]
        return (view.prompts[i] * output + output * (output + 1) // 2,)
