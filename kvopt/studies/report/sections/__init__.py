"""The sections of a report that are built in."""
