"""Files that commands write: tested before long work; a failed write never loses a result."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from kvopt.certificates import Certificate, write_certificate
from kvopt.cli.messages import print_results_as_messages, say
from kvopt.errors import InvalidInput, KvoptError
from kvopt.files.atomic import TEMPORARY, own_descriptor, refuse_unwritable

STANDARD_OUTPUT = Path("-")


def try_outputs(*, as_json: bool = False, **given: Path | None) -> None:
    """Refuse a file that cannot be written, before the work whose result it holds.

    If one of them is standard output, everything else is printed to standard error.

    Parameters
    ----------
    as_json
        Whether standard output holds one JSON object.
    given
        Paths by the long name of their option, with ``_`` for ``-``; None is no file.
    """
    piped = [
        f"--{name.replace('_', '-')} {path}" for name, path in given.items() if _is_piped(path)
    ]
    if piped and as_json:
        raise InvalidInput("goes without --json: both are standard output", field=piped[0])
    if len(piped) > 1:
        raise InvalidInput(f"goes without {piped[1]}: both are standard output", field=piped[0])
    if piped:
        print_results_as_messages()
    for name, path in given.items():
        if path is None:
            continue
        try:
            refuse_unwritable(path)
        except InvalidInput as error:
            raise _named(error, f"--{name.replace('_', '-')}", path) from None


def _is_piped(path: Path | None) -> bool:
    return path is not None and own_descriptor(path) == 1


def try_folder(path: Path) -> None:
    """Refuse a folder that can neither be used nor created; create none."""
    real = path.absolute()
    existing = next(place for place in (real, *real.parents) if os.path.lexists(place))
    try:
        refuse_unwritable(existing / TEMPORARY)
    except InvalidInput as error:
        raise InvalidInput(error.reason, field=f"--out {path}") from None


@contextmanager
def written(
    option: str, path: Path | None, write: Callable[[Path], object] | None
) -> Iterator[bool]:
    """Write a file, let the block print the result, and report a failed write last.

    A full disk must not lose the result of an hour.  The block learns whether a file was
    written: none is without a path, or without content.
    """
    if path is None or write is None:
        yield False
        return
    failure: Exception | None = None
    try:
        write(path)
    except BrokenPipeError:
        raise
    except (KvoptError, OSError, UnicodeError) as error:
        failure = error
    yield failure is None
    if failure is not None:
        raise _named(failure, option, path) from None


def write_output(path: Path, write: Callable[[Path], object], about: str = "") -> None:
    """Write the file of ``--output`` if nothing else is printed, and report it."""
    with written("--output", path, write):
        pass
    say(f"wrote {name_of(path)}{about}")


def name_of(path: Path) -> str:
    """Return the name of a written file for messages."""
    return "standard output" if _is_piped(path) else str(path)


@contextmanager
def certificate_written(
    option: str, path: Path | None, found: Certificate | None
) -> Iterator[None]:
    """Write a certificate, if given, as `written` does, and report it."""
    write = None if found is None else partial(write_certificate, found)
    with written(option, path, write) as is_there:
        yield
    if is_there and path is not None:
        say(f"kvopt: wrote {name_of(path)}; kvopt verify checks it")


def _named(error: Exception, option: str, path: Path) -> KvoptError:
    """Return the error with option and path, each once."""
    place = f"{option} {path}"
    if isinstance(error, InvalidInput):
        # An error with a field is about the content, not the path.
        return error if error.field is not None else InvalidInput(error.reason, field=place)
    if isinstance(error, KvoptError):
        return error
    reason = getattr(error, "strerror", None) or str(error)
    return InvalidInput(f"cannot be written: {reason}", field=place)
