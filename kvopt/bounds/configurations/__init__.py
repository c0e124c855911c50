"""The configuration bound: what requests can stand in memory together, priced at every time.

The mathematics is in ``docs/configurations.md``.
"""
