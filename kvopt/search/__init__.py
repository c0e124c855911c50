"""The search for both sides of an optimum: stages, engines and public functions."""

from kvopt.search.registry import register

__all__ = ["register"]
