"""Better schedules where exact engines end: local search over orders, then windows of time."""

from __future__ import annotations

import math
import time

from kvopt.search import Search

_ORDERS_SHARE = 0.6
"""Share of the time for the local search over orders: it finds most, and finds it first."""


def improve(search: Search, seconds: float = math.inf) -> None:
    """Improve the schedule of a search for so long, or until nothing improves any more."""
    from kvopt.improving.local_search import search_orders
    from kvopt.improving.window_search import search_windows

    end = time.monotonic() + seconds
    search_orders(search, _ORDERS_SHARE * seconds)
    search_windows(search, end - time.monotonic())
    if seconds < math.inf:  # windows may have come to their end, or met too many requests
        search_orders(search, end - time.monotonic())
