"""HiGHS, CP-SAT and Pyomo: their bounds are claims, their schedules are checked."""
