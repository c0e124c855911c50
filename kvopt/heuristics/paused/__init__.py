"""Schedules with pauses: orders for every size, exhaustive layers for few requests."""
