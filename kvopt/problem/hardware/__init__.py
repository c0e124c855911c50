"""Machines: tokens of cache that fit, and batch-time models fitted to tables."""
