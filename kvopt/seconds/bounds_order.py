"""A good schedule beside the bound: what takes the least of the machine goes first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kvopt.instance import Instance
from kvopt.policies.base import View
from kvopt.policies.prefix import Key, PrefixPolicy
from kvopt.seconds.bounds_shares import shares
from kvopt.seconds.model import BatchTime


@dataclass
class LeastShare(PrefixPolicy):
    """Scan requests by what they take of the machine and stop at the first that does not fit.

    It knows all outputs, as the bound does, and is asked for by no name: it looks for a
    schedule that a certificate can hold as its upper side.

    Parameters
    ----------
    takes
        What each request takes.
    """

    name = "least-share"
    source = "the order in which the fluid of the bound serves requests"
    takes: Sequence[int] = field(default=(), kw_only=True)

    @classmethod
    def of(cls, instance: Instance, model: BatchTime, lines: Sequence[int]) -> LeastShare:
        """Return the policy for an instance and some lines of a model."""
        part = shares(instance, model, [model.lines[i] for i in lines], object)
        return cls(takes=part.takes.tolist())

    def key(self, view: View, i: int) -> Key:  # noqa: ARG002
        """Return what the request takes."""
        return (self.takes[i],)
