"""How Sphinx builds these pages: ``make docs``, where a warning is an error."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

from kvopt.version import __version__

sys.path.insert(0, str(Path(__file__).parent))

from options import with_options, with_parameters

project = "kvopt"
author = "The kvopt developers"
release = version = __version__

extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx_copybutton"]
nb_execution_mode = "off"  # the tests run notebooks; what they hold is shown
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
exclude_patterns = ["_build"]
default_role = "py:obj"  # a name in single backticks becomes a link where there is one

myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
maximum_signature_line_length = 90
numpydoc_show_class_members = False  # members follow one by one, a table of them is too much
python_use_unqualified_type_names = True

html_theme = "furo"
html_show_copyright = False
html_title = f"kvopt {release}"
html_math_renderer = "mathml"
html_static_path = ["static"]
html_css_files = ["pages.css"]


def setup(app: Sphinx) -> None:
    """Write formulas as MathML: browsers draw it themselves, with no script and no network."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(_inline_math, None), block_renderers=(_block_math, None)
    )
    app.connect("doctree-resolved", _keep_together)
    app.connect("source-read", _fill_options)


def _fill_options(_: Sphinx, page: str, source: list[str]) -> None:
    if page == "command-line":
        source[0] = with_parameters(with_options(source[0]))


def _keep_together(_: Sphinx, page: nodes.document, __: str) -> None:
    """Let no line break come between a formula and the punctuation, or the -th, after it."""
    for formula in list(page.findall(nodes.math)):
        around = formula.parent
        place = around.index(formula)
        after = around[place + 1] if place + 1 < len(around) else None
        if isinstance(after, nodes.Text) and (ending := re.match(r"[-.,;:)?\w\"”]{1,5}", after)):
            around[place + 1] = nodes.Text(after[ending.end() :])
            kept = nodes.inline("", "", classes=["formula-and-ending"])
            around[place] = kept
            kept += [formula, nodes.Text(ending.group())]


def _inline_math(page: HTML5Translator, node: nodes.math) -> None:
    page.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def _block_math(page: HTML5Translator, node: nodes.math_block) -> None:
    page.body.append(page.starttag(node, "div", CLASS="formula"))
    page.body.append(_mathml(node, as_block=True) + "</div>\n")
    raise nodes.SkipNode


def _mathml(node: nodes.Element, *, as_block: bool) -> str:
    text = node.astext()
    try:
        return str(tex2mathml(text, as_block=as_block))
    except MathError as wrong:
        logging.getLogger(__name__).warning("%s: %s", text, wrong, location=node)
        return "<code>[formula]</code>"
