"""Theorems of the papers beside what can be computed and simulated."""

from kvopt.theory.examination import Curve, Examination
from kvopt.theory.topics import TOPICS, examine

__all__ = ["TOPICS", "Curve", "Examination", "examine"]
