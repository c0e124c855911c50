"""Hunting: small instances on which schedulers are far from the optimum, each certified."""

from kvopt.hunting.search import Hunt, hunt

__all__ = ["Hunt", "hunt"]
