"""Searches that prove an optimum because they leave no schedule out."""
