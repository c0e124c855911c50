"""Other problems turned into instances, and answers read off schedules."""

from kvopt.experiments.reductions.three_partition import Reduction, ThreePartition, decide

__all__ = ["Reduction", "ThreePartition", "decide"]
