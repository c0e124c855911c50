"""Exact engines.  Each works on a `Search`: it offers starts and bounds, and returns nothing."""

from kvopt.engines.registry import register

__all__ = ["register"]
