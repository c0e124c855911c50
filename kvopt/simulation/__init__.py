"""One loop for every policy, on a clock of rounds or of seconds, and the runs that it returns."""
