"""The problem: instances, schedules and batch-time models, in integers, without any solver."""
