"""Reports of studies: one page that needs no network, and a table."""

from kvopt.experiments.report.layout import Cell, pieces
from kvopt.experiments.report.registry import SECTIONS, Context, Section, register
from kvopt.experiments.report.writing import Written, write_report

__all__ = [
    "SECTIONS",
    "Cell",
    "Context",
    "Section",
    "Written",
    "pieces",
    "register",
    "write_report",
]
