"""Public traces of requests as instances."""

from kvopt.traces.formats import FORMATS, Trace, register
from kvopt.traces.importing import import_trace
from kvopt.traces.rows import Row, Unread, readable

__all__ = ["FORMATS", "Row", "Trace", "Unread", "import_trace", "readable", "register"]
