"""Scopes: the schedules that a bound or an optimum covers.

``docs/problem.md`` shows a pause, and a prompt in pieces, below the bound for runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import reduce

from kvopt.errors import unknown_name


class Scope(StrEnum):
    """The schedules that a bound or an optimum covers, or features that a schedule uses.

    In all of them a request may be evicted, lose its tokens and start again: its last run counts,
    so a bound for ``runs`` holds for ``restarts`` too.

    Examples
    --------
    >>> Scope.PAUSES.covers(Scope.RUNS), Scope.RUNS.covers(Scope.PAUSES)
    (True, False)
    >>> str(Scope.PAUSES.joined(Scope.CHUNKS))
    'pauses+chunks'
    """

    RUNS = "runs"
    """A request that was started runs to its end."""
    RESTARTS = "restarts"
    """A request may be evicted: its tokens are lost, and it starts again."""
    PAUSES = "pauses"
    """A request may be interrupted: it frees its memory, keeps its tokens and continues later."""
    CHUNKS = "chunks"
    """In seconds: a prompt may be processed in pieces, over rounds that yield no token."""
    PAUSES_AND_CHUNKS = "pauses+chunks"
    """Both."""
    SHARING = "sharing"
    """Active requests hold a block of a prefix that they share once, and run to their end."""
    SHARING_AND_PAUSES = "sharing+pauses"
    SHARING_AND_CHUNKS = "sharing+chunks"
    SHARING_PAUSES_AND_CHUNKS = "sharing+pauses+chunks"

    @classmethod
    def parse(cls, text: object) -> Scope:
        """Return the scope of a name, else raise; names joined by ``+`` have no order."""
        for scope in cls:
            if isinstance(text, str) and sorted(text.split("+")) == sorted(scope.split("+")):
                return scope
        raise unknown_name(text, list(cls), "scope")

    def covers(self, other: Scope) -> bool:
        """Whether a bound of this scope holds for all schedules of the other one."""
        return _ALLOWED[other] <= _ALLOWED[self] | {"restarts"}

    def joined(self, other: Scope) -> Scope:
        """Return the least scope that covers both."""
        both = _ALLOWED[self] | _ALLOWED[other]
        return next(scope for scope in Scope if both <= _ALLOWED[scope])

    @property
    def sentence(self) -> str:
        """The exact sentence printed with every bound or optimum."""
        pauses, chunks = "pauses" in _ALLOWED[self], "chunks" in _ALLOWED[self]
        sharing = "holds a shared prefix once and " if "sharing" in _ALLOWED[self] else ""
        prompts = "processes each prompt at once or in pieces, and " if chunks else ""
        paused = ", pauses it with its tokens kept" if pauses else " once started"
        missing = [] if pauses else ["pausing a request with its tokens kept"]
        missing += [] if chunks else ["processing a prompt in pieces"]
        where = ", in seconds" if pauses else ""  # in rounds pieces change nothing
        outside = f"; not covered{where}: {', or '.join(missing)}" if missing else ""
        return (
            f"covered: every schedule that {sharing}{prompts}runs each request to its end{paused}, "
            f"or evicts it, loses its tokens and starts it again{outside}"
        )

    @property
    def without_sharing(self) -> Scope:
        """The same scope without shared prefixes."""
        allowed = _ALLOWED[self] - {"sharing"}
        return (
            self
            if allowed == _ALLOWED[self]
            else least_scope(scope for scope in Scope if _ALLOWED[scope] == allowed)
        )


def least_scope(needed: Iterable[Scope]) -> Scope:
    """Return the least scope that covers all of these: the default scope of a bound."""
    scope = reduce(Scope.joined, needed, Scope.RUNS)
    return Scope.RUNS if Scope.RESTARTS.covers(scope) else scope


_ALLOWED = {
    scope: frozenset({"restarts", *scope.split("+")} if scope is not Scope.RUNS else ())
    for scope in Scope
}
