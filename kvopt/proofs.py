"""What a checked lower bound rests on: data that proves it from the instance alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prices:
    """Integer prices of one token at the times ``1, 2, ...``, over a denominator.

    What they prove, and why, is in `kvopt.bounds.prices`.

    Parameters
    ----------
    numerators
        Price of time t times ``denominator``, at position t - 1; none is negative.
    denominator
        At least 1.
    """

    numerators: tuple[int, ...]
    denominator: int

    def __post_init__(self) -> None:
        if self.denominator < 1 or min(self.numerators, default=0) < 0:
            raise ValueError("prices must not be negative, and their denominator is at least 1")


@dataclass(frozen=True, slots=True)
class VolumeProof:
    """The bound follows from volumes, see `kvopt.bounds.volume`: the instance says it all."""


Proof = Prices | VolumeProof


@dataclass(frozen=True, slots=True)
class CheckedBound:
    """A lower bound that was re-evaluated in integers.

    Parameters
    ----------
    value
        No schedule has a smaller total latency.
    bounded_by
        The method that found it.
    proof
        What proves it.
    """

    value: int
    bounded_by: str
    proof: Proof
