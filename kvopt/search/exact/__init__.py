"""Exhaustive searches, which prove an optimum."""
