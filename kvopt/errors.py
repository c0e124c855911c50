"""Errors that a user can act on.

Ordinary outcomes (a time limit, an interrupt, no schedule found) are never exceptions:
they are fields of a result.  An error names the file, the request and the
field at fault, on one line.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


class KvoptError(Exception):
    """Base of every error that kvopt raises on purpose."""


class InvalidInput(KvoptError, ValueError):
    """An instance, a schedule or an option breaks the format.

    Parameters
    ----------
    reason
        The fault, in a few words.
    field
        The field at fault, if any.
    request
        The request at fault: its id, or its position when it has none.
    file
        The file that was read, when there was one.
    """

    def __init__(
        self,
        reason: str,
        *,
        field: str | None = None,
        request: str | None = None,
        file: str | None = None,
    ) -> None:
        self.reason = reason
        self.field = field
        self.request = request
        self.file = file
        super().__init__(str(self))

    def __str__(self) -> str:
        parts = [self.file, self.request and f"request {self.request}", self.field, self.reason]
        return one_line(": ".join(part for part in parts if part))

    def located(self, *, request: str | None = None, file: str | None = None) -> InvalidInput:
        """Return the same error with a place filled in where it was still unknown."""
        return type(self)(
            self.reason,
            field=self.field,
            request=self.request or request,
            file=self.file or file,
        )


def refuse(field: str, reason: str, condition: bool) -> None:
    """Raise the error that names a field or an option, on a condition."""
    if condition:
        raise InvalidInput(reason, field=field)


@contextmanager
def placed(*, request: str | None = None, file: str | None = None) -> Iterator[None]:
    """Add a place to the errors that the block raises."""
    try:
        yield
    except InvalidInput as error:
        raise error.located(request=request, file=file) from None


class FalseClaim(InvalidInput):
    """A file can be read, but a number in it differs from its content."""


class TooLarge(KvoptError):
    """A model would exceed its limit of size."""


class MissingSolver(KvoptError):
    """A solver that was asked for by name is not installed."""


class MissingPackage(KvoptError, ImportError):
    """The request needs a package that is not installed."""


class PolicyFault(KvoptError):
    """A solver, a plugin or a policy failed, or broke a rule of the simulator such as memory."""


class UnsupportedDependency(KvoptError):
    """An installed release is known to give wrong answers or to break the process."""


class Stopped(KvoptError):
    """Work was asked to stop before its end."""


class SolverFault(UserWarning):
    """A solver claimed something that an exact check refutes; the claim was dropped."""


LEFT = {
    "after": "an order of requests left kvopt: give each its arrival",
    "deadline": "deadlines are service levels: --slo e2e=30s, or ttft=2s for first tokens",
    "latex": "left kvopt: `to_dataframe().to_latex()` of pandas makes tables",
    "naive": "left kvopt: the tests compare with definitions, tests/support/definitions.py",
    "pauses": "the program with pauses left kvopt: `kvopt solve --scope pauses` searches them",
    "prices": "left kvopt: `kvopt.bounds.lagrangian_bound(...)` returns prices",
    "proved": "left kvopt: run `make check-proved FILES=...` in a clone",
    "slower": "slower machines left kvopt: `kvopt fleet` compares numbers of machines",
}
"""Names that options, files and tables had before, with their replacements."""


def did_you_mean(name: object, names: Collection[str]) -> str:
    """Return an addition to a refusal: what replaces a name, or the nearest name, if any."""
    text = str(name)
    if text in LEFT:
        return f"; {LEFT[text]}"
    begun = [full for full in names if text and full.startswith(text.lower())]
    near = get_close_matches(text, names, 1) or begun
    return f"; did you mean {near[0]}?" if len(near) == 1 else ""


def unknown_name(
    name: object,
    names: Collection[str],
    field: str | None = None,
    besides: str = "",
    near: Collection[str] = (),
) -> InvalidInput:
    """Return the error that refuses a name, with all known names and the nearest one.

    Parameters
    ----------
    name, names
        The given name, and the known ones.
    field
        Field of the name.
    besides
        Other values that are accepted instead of a name.
    near
        Names to search for the nearest, if they are too many to list.
    """
    reason = f"must be one of {', '.join(names)}{besides}, got {shown(name)}"
    return InvalidInput(reason + did_you_mean(str(name).lower(), near or names), field=field)


def one_line(text: str) -> str:
    """Make control characters visible, so that a message stays on one line."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def shown(value: object, limit: int = 60) -> str:
    """Return a short form of a foreign value for an error message."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 200:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deeply, or an endless integer inside
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= limit else text[: limit - 3] + "..."
