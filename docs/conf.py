"""How Sphinx builds these pages: ``make docs``, where a warning is an error."""

from __future__ import annotations

from kvopt.version import __version__

project = "kvopt"
author = "The kvopt developers"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
exclude_patterns = ["_build"]
default_role = "py:obj"  # a name in single backticks becomes a link where there is one

myst_heading_anchors = 3

autodoc_member_order = "bysource"
maximum_signature_line_length = 90
numpydoc_show_class_members = False  # members follow one by one, a table of them is too much
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = f"kvopt {release}"
