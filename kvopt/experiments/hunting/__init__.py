"""Hunting: small instances on which schedulers are far from the optimum, each certified."""

from kvopt.experiments.hunting.search import Hunt, hunt

__all__ = ["Hunt", "hunt"]
