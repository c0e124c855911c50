"""Exact engines.  Each works on a `Search`: it offers starts and bounds, and returns nothing."""
