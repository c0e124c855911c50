"""Reports of studies: one page that needs no network, and a table."""

from kvopt.reports.writing import write_report

__all__ = ["write_report"]
