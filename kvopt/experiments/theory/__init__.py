"""Compare theorems of the papers with computation and simulation."""

# Each of the four adds its topics, in the order in which they are examined.
from kvopt.experiments.theory import chen, jaillet, kong, wang
from kvopt.experiments.theory.examination import TOPICS, Curve, Examination, examine

__all__ = ["TOPICS", "Curve", "Examination", "chen", "examine", "jaillet", "kong", "wang"]
