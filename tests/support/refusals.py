"""Files with one thing wrong, and the line with which they are refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvopt.errors import InvalidInput

MISSING = object()
"""Stands for a field that is taken out."""

Place = tuple[str | int, ...]


def edited(place: Place, value: object, original: dict[str, Any]) -> str:
    """Return the JSON text of a document with one field set or taken out."""
    document = copy.deepcopy(original)
    inner: Any = document
    for step in place[:-1]:
        inner = inner[step]
    if value is MISSING:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return json.dumps(document)


def refusal(read: Callable[[Path], object], path: Path, content: str | bytes) -> str:
    """Return the line with which a file is refused, without the file's name."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InvalidInput) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert message.isprintable(), "a message is one line"
    return message.removeprefix(f"{path}: ")
