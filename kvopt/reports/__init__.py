"""Reports of studies: one page that needs no network, and a table."""

from kvopt.reports.registry import SECTIONS, Context, Section, register
from kvopt.reports.writing import Written, write_report

__all__ = ["SECTIONS", "Context", "Section", "Written", "register", "write_report"]
