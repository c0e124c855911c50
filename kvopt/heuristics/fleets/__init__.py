"""Schedules of a fleet: which worker serves which request, and in which order."""
