"""The search for both sides of an optimum: its stages, engines and doors."""

from kvopt.search.registry import register

__all__ = ["register"]
