"""The configuration bound: prices on sets of requests that fit together in memory.

The mathematics is in ``docs/theory/configurations.md``.
"""
