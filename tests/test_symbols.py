"""Every letter of the pages that state the problem and prove bounds is in the table of symbols."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [
    *("certificates", "engines", "fleets", "formulations", "how-many-machines", "problem"),
    *("seconds", *(f"theory/{path.stem}" for path in sorted((DOCS / "theory").glob("*.md")))),
]

_FORMULA = re.compile(r"\$\$(.*?)\$\$|\$([^$\n][^$]*?)\$", re.DOTALL)
_WORDS = re.compile(
    r"\\(?:mathtt|text|begin|end)\{[^}]*\}|\\(?:cdot|emptyset|exp|frac|ge|in|infty|int|lceil|ldots|le|"
    r"left|leftarrow|lfloor|log|max|min|notin|qquad|quad|rceil|rfloor|right|setminus|sqrt|subseteq|sum|"
    r"supseteq|to)(?![A-Za-z])"
)
_LETTER = re.compile(r"\\mathrm\{([^}]*)\}|(\\[A-Za-z]+)|([A-Za-z])")


def letters(page: str) -> set[str]:
    """Return what stands for a quantity in the formulas of a page."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    formulas = (_WORDS.sub(" ", "".join(found)) for found in _FORMULA.findall(text))
    return {"".join(found) for formula in formulas for found in _LETTER.findall(formula)}


@pytest.mark.parametrize("page", PAGES)
def test_every_letter_is_in_the_table(page: str) -> None:
    assert letters(page) - letters("glossary") == set()


def test_a_letter_stands_for_one_thing() -> None:
    rows = re.findall(r"^\| (\S.*?) \|", (DOCS / "glossary.md").read_text("utf-8"), re.MULTILINE)
    symbols = [symbol for row in rows for symbol in re.findall(r"\$(.*?)\$", row)]
    assert sorted(symbols) == sorted(set(symbols))
