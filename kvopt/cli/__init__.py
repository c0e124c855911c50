"""The command line: one module for each command, one Typer app for all."""

from kvopt.cli.entry import INTERRUPTED, REFUSED, main

__all__ = ["INTERRUPTED", "REFUSED", "main"]
