"""The instance library: the best of both sides of each instance, its pages, and submissions."""
