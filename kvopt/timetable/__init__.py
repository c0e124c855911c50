"""Schedules and runs: their check in integers, their measures and files."""
