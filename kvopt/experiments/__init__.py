"""Studies of many instances, and their report."""
