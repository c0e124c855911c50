"""Theorems of the papers beside what can be computed and simulated."""

from kvopt.experiments.theory.examination import Curve, Examination
from kvopt.experiments.theory.topics import TOPICS, examine

__all__ = ["TOPICS", "Curve", "Examination", "examine"]
