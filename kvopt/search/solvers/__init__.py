"""HiGHS, CP-SAT and Pyomo: a bound of theirs is a claim, a schedule is checked."""
