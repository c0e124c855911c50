"""Schedules of a fleet: assign requests to workers, and order them."""
