"""Settings that all tests share."""

from __future__ import annotations

from hypothesis import settings

# The same examples in every run: a failure is always the fault of the change at hand.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
