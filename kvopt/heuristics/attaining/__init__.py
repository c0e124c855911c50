"""Searches for schedules and runs in which many requests attain their service levels."""
