"""Check a certificate of kvopt in exact integers, with the standard library alone.

    python -m kvopt.verify FILE [--budget K] [--jobs N]

This package needs nothing else of kvopt.  ``make verify.pyz`` makes one file of it, which runs
alone.

The problem: a cache of M tokens; request i arrives at round a, has a prompt of s tokens and
produces o more, one a round.  Started at k >= a it holds s + (t - k) tokens at the times
t = k+1 .. k+o; its latency is k + o - a.  No more than M tokens may be held at any time.  The
optimum is the least total latency of a schedule.

A certificate claims that the optimum is at most ``upper``, with a schedule; that it is at least
``lower``, with a proof; and what policies reached, with their runs.  Its ``scope`` names
the covered schedules, and ``narrower`` has both sides of optima of narrower scopes.  It is
unreadable if it does not have the shape in `certificate_shape`, and invalid if a claim in it is
false.  A file may state how long its check takes, and is granted that up to about ten minutes.  One
that takes more steps is unreadable too, with the budget that it needs if that is known;
``--budget K`` allows K times half a minute.
The exit status is 0 if it is valid, 1 if it is invalid, and 2 if it is unreadable.

A fleet has ``workers`` such caches; a schedule names the worker of each request, and on
each worker no more than M tokens may be held.

The ``clock`` is that of rounds, or one on which a round lasts as long as its batch, see `Clock`
in `certified_problem`.
"""

from __future__ import annotations

import sys

if sys.version_info < (3, 9):  # before modules that older releases cannot load
    major, minor = sys.version_info[:2]
    sys.stderr.write(f"kvopt.verify needs Python 3.9 or later, this is {major}.{minor}\n")
    raise SystemExit(2)

import os
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from kvopt.verify.certificate_shape import certificate_of, text_of
from kvopt.verify.check_day import check_day
from kvopt.verify.report import report_on
from kvopt.verify.step_budget import Invalid, Unreadable, Work


@dataclass(frozen=True)
class Verdict:
    """Result of a check: ``valid`` if every claim holds; ``lines`` state the proved ones."""

    valid: bool
    readable: bool
    lines: tuple[str, ...]

    @property
    def exit_status(self) -> int:
        """0 valid, 1 invalid, 2 unreadable."""
        return 0 if self.valid else 1 if self.readable else 2


def verify(
    path: str | os.PathLike[str],
    budget: float | None = None,
    progress: Callable[[str], None] | None = None,
    *,
    jobs: int = 1,
) -> Verdict:
    """Check a certificate file; the answer is a verdict for any content of the file.

    Of a folder of machines over time it checks every certificate, and that windows belong to it.
    The check may take ``budget`` times the default number of steps; by default what the file
    says, up to about ten minutes.  ``progress`` is called with a line every quarter of a minute or
    so.  So many ``jobs`` share a search.

    Raises
    ------
    ValueError
        If the budget is not a positive number.
    """
    work = Work(budget, progress, jobs=jobs)
    if not os.path.isdir(path):
        return _verdict(lambda: report_on(_certificate(text_of(path), work), work))

    def checked(name: str) -> dict[str, Any]:
        work = Work(budget, progress, jobs=jobs)
        try:
            certificate = _certificate(text_of(os.path.join(path, name)), work)
            report_on(certificate, work)
        except (Invalid, Unreadable) as error:
            raise type(error)(f"{name}: {error}") from None
        return certificate

    return _verdict(lambda: check_day(path, checked))


def verify_text(text: str) -> Verdict:
    """Check a certificate given as text."""
    work = Work()
    return _verdict(lambda: report_on(_certificate(text, work), work))


def _certificate(text: str, work: Work) -> dict[str, Any]:
    certificate = certificate_of(text, work)
    work.grant(certificate.get("budget"))
    return certificate


def _verdict(report: Callable[[], list[str]]) -> Verdict:
    try:
        return Verdict(True, True, tuple(report()))
    except Invalid as error:
        return Verdict(False, True, (f"INVALID: {error}",))
    except Unreadable as error:
        return Verdict(False, False, (f"UNREADABLE: {error}",))
    except MemoryError:
        return Verdict(False, False, ("UNREADABLE: needs more memory than there is",))


class _Callable(ModuleType):
    """Lets ``kvopt.verify`` be the function as well as its module."""

    def __call__(self, *arguments: Any, **named: Any) -> Verdict:
        return verify(*arguments, **named)


sys.modules[__name__].__class__ = _Callable
