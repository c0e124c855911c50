"""Reports of studies: one page that needs no network, and a table."""

from kvopt.show.optional import optional

optional("matplotlib", "plot")
optional("jinja2", "plot")

from kvopt.studies.report.writing import Written, write_report

__all__ = ["Written", "write_report"]
