"""Public traces of requests as instances."""

from kvopt.problem.traces.formats import FORMATS, Trace, register
from kvopt.problem.traces.importing import TraceOptions, import_trace
from kvopt.problem.traces.rows import Row, Unread, readable

__all__ = [
    "FORMATS",
    "Row",
    "Trace",
    "TraceOptions",
    "Unread",
    "import_trace",
    "readable",
    "register",
]
