"""Bounds that hold for schedules with pauses: volumes of memory, and prices on memory."""

from __future__ import annotations

from kvopt.bounds.registry import PAUSED_BOUNDS
from kvopt.incumbent.incumbent import Search
from kvopt.search.portfolio import climb, offer_volume


@PAUSED_BOUNDS.register("volume")
def _volume(search: Search) -> None:
    """Staircases look ahead along a run, so their volumes are left out."""
    offer_volume(search)


@PAUSED_BOUNDS.register("lagrangian")
def _lagrangian(search: Search) -> None:
    climb(search, pauses=True)


@PAUSED_BOUNDS.register("auto")
def _auto(search: Search) -> None:
    offer_volume(search)
    climb(search, pauses=True)
