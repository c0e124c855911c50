"""Theorems of the papers beside what can be computed and simulated."""

# Each of the three adds its topics, in the order in which they are examined.
from kvopt.experiments.theory import chen, jaillet, wang
from kvopt.experiments.theory.examination import TOPICS, Curve, Examination, examine

__all__ = ["TOPICS", "Curve", "Examination", "chen", "examine", "jaillet", "wang"]
