"""Reports of studies: one page that needs no network, and a table."""

from kvopt.reports.context import Context
from kvopt.reports.layout import Section
from kvopt.reports.registry import SECTIONS, register
from kvopt.reports.writing import Written, write_report

__all__ = ["SECTIONS", "Context", "Section", "Written", "register", "write_report"]
