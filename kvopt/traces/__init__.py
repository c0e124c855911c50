"""Public traces of requests as instances."""

from kvopt.traces.importing import FORMATS, import_trace

__all__ = ["FORMATS", "import_trace"]
