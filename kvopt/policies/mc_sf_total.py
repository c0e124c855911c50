"""MC-SF with prompts in the order."""

from __future__ import annotations

from dataclasses import dataclass

from kvopt.policies.base import View
from kvopt.policies.prefix import Key, PrefixPolicy
from kvopt.policies.registry import register


@register
@dataclass
class McSfTotal(PrefixPolicy):
    """Scan requests by prompt plus believed output and stop at the first that does not fit."""

    name = "mc-sf-total"
    source = "wang-2025, Theorem 8.2"

    def key(self, view: View, i: int) -> Key:
        """Return the believed peak."""
        return (view.prompts[i] + view.beliefs.output[i],)
