"""The schedulers with a proved constant, and the worst of each that is certified here.

    python instances/worst.py [--write]

prints the table of benchmarks/findings/theory.md, or writes it there.  Ratios come from the
certificates in ``worst/``: the value of the scheduler over the latency of a schedule that
``kvopt verify`` checks, so each is certain from below, and exact where the certificate proves the
optimum.
"""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parent / "benchmarks" / "findings" / "theory.md"
_TABLE = re.compile(r"(?<=<!-- worst -->\n)(?:\|.*\n)*")
_SVF = "arXiv [2606.22327](https://arxiv.org/abs/2606.22327)"
_FENG = "arXiv [2601.22996](https://arxiv.org/abs/2601.22996)"
_UNREADABLE = "algorithm not readable here"


@dataclass(frozen=True)
class Row:
    """A scheduler, its constant, and the certificate of the worst that was found.

    Parameters
    ----------
    scheduler, source
        Its name, and where the constant is proved.
    proved
        The constant in words, with ``constant`` as a number where there is one.
    share
        What one request may need at most, as a share of M.
    policy, file
        The policy of kvopt and the certificate in ``worst/``; without them ``remark`` says why.
    """

    scheduler: str
    source: str
    proved: str
    constant: Fraction | None = None
    share: Fraction = Fraction(1)
    policy: str = ""
    file: str = ""
    remark: str = ""

    def certificate(self) -> dict[str, Any]:
        """Return the certificate as it is kept."""
        text = (HERE / "worst" / f"{self.file}.cert.json").read_text(encoding="utf-8")
        found: dict[str, Any] = json.loads(text)
        return found

    def value(self) -> int:
        """Return the total latency of the policy in the certificate."""
        (value,) = {
            run["value"] for run in self.certificate()["policies"] if run["policy"] == self.policy
        }
        return int(value)

    def line(self) -> str:
        """Return its line of the table."""
        if not self.file:
            return f"| {self.scheduler} | {self.source} | {self.proved} | {self.remark} | - |"
        kept = self.certificate()
        upper, value = kept["upper"]["value"], self.value()
        word = "" if upper == kept["lower"]["value"] else "at least "
        worst = f"{word}{value:,} / {upper:,} = {value * 1000 // upper / 1000:.3f}"
        shown = f"[{self.file}](../../instances/worst/{self.file}.cert.json)"
        return f"| {self.scheduler} | {self.source} | {self.proved} | {worst} | {shown} |"


def _svf(alpha: Fraction, file: str) -> Row:
    constant = 1 + 2 / (1 - alpha)
    words = f"1 + 2 / (1 - alpha) = {float(constant):.2f} at alpha = {alpha}"
    return Row("`svf`", f"{_SVF}, theorem 3.2", words, constant, alpha, "svf", file)


ONE_BIT = "svf-1bit:threshold=2,short=1,long=6"
ROWS = (
    Row(
        "`mc-sf`", "jaillet-2025-v2, theorem 4.3", "a constant, 9,216 by lemmas 4.4 and 4.7",
        Fraction(9216), Fraction(1, 2), "mc-sf", "equal-k15",
    ),
    Row(
        "`sorted-f`", "wang-2025, theorem 4.1", "below 48",
        Fraction(48), policy="sorted-f", file="equal-k15",
    ),
    _svf(Fraction(1, 2), "equal-k3"),
    _svf(Fraction(1, 4), "equal-k7"),
    _svf(Fraction(1, 8), "equal-k15"),
    Row(
        f"`{ONE_BIT}`", f"{_SVF}, theorem 3.3", "no constant: O(T)",
        share=Fraction(1, 2), policy=ONE_BIT, file="svf-1bit",
    ),
    Row("GBA", _FENG, "10.67, and 6.75 with large memory", remark=_UNREADABLE),
    Row("GSA, which knows no output", _FENG, "61.92, and 32 with large memory", remark=_UNREADABLE),
    Row(
        "WAIT, Nested WAIT", "arXiv [2504.11320](https://arxiv.org/abs/2504.11320)",
        "near the throughput of a fluid model as load grows; no constant for latency",
        remark="no ratio to certify",
    ),
)  # fmt: skip
"""The table, a row each."""


def table() -> str:
    """Return the table in Markdown."""
    head = ["scheduler", "source", "proved, for requests that are all there at once"]
    head += ["worst certified here", "certificate"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(row.line() for row in ROWS)]
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """Return the page with the table as it is now."""
    return _TABLE.sub(lambda _: table(), text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="write the table into the page")
    if parser.parse_args().write:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(table(), end="")
