"""Searches within windows of time, with the rest of a schedule fixed around them."""
