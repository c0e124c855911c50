"""Smallest volume first."""

from __future__ import annotations

from dataclasses import dataclass

from kvopt.problem.requests import volume_of
from kvopt.simulate.policies.base import View
from kvopt.simulate.policies.in_line import Key, PrefixPolicy
from kvopt.simulate.policies.registry import register


@register
@dataclass
class Svf(PrefixPolicy):
    """Scan requests by believed token-rounds and stop at the first that does not fit."""

    name = "svf"
    source = "arXiv 2606.22327"

    def key(self, view: View, i: int) -> Key:
        """Return the volume ``s o + o (o + 1) / 2``."""
        return (volume_of(view.prompts[i], view.beliefs.output[i]),)
