"""Experiments on many instances: studies, theory, hunts for bad cases, reductions, grids."""
