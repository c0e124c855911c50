"""Experiments on many instances: studies, theory, hunts for bad cases and reductions."""
