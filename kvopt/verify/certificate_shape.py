"""Read a certificate: JSON of a known shape, within limits of size."""

from __future__ import annotations

import functools
import json
import math
import os
from typing import Any

from kvopt.verify.step_budget import Unreadable, Work, quoted

SCOPES = ("runs", "restarts", "pauses", "chunks", "pauses+chunks", "sharing", "sharing+pauses",
          "sharing+chunks", "sharing+pauses+chunks")  # fmt: skip
"""Features of schedules.  In rounds a prompt in pieces is only a later start."""
RELAXATIONS = ("tokens", "shares", "limit", "weights")
"""Steps to a wider problem, whose lower bounds hold."""
LARGEST_FILE = 90_000_000
"""Limit in bytes; a larger file is refused unread."""
MOST_PARTS = 10_000_000
"""Limit of brackets and commas in a file, so that a short text cannot become huge objects."""
MOST_DIGITS = 300
"""Limit of the digits of an integer: above all honest ones, and fast enough in arithmetic."""
_COMPRESSED = (b"\xfd7zXZ", b"\x1f\x8b")
# Shapes: a type, a fixed text, None, a list of one shape, the fields of an object ("?" marks
# those that may be left out), or a tuple of alternatives.
_REQUEST = {
    "arrival": int, "prompt": int, "output": int, "id?": str, "arrival_seconds?": (int, float),
    "predicted?": {"lower": int, "upper": int}, "priority?": int,
    "deadline?": int, "ttft?": int, "tpot?": int, "e2e?": int, "weight?": int,
    "prefix?": [(int, str)],
}  # fmt: skip
INSTANCE = {
    "schema": ("kvopt.instance/1", "kvopt.instance/2"), "name?": str, "notes?": (str, dict),
    "memory": int, "workers?": int, "round_ms?": (int, float), "requests": [_REQUEST],
    "block_size?": int, "max_active?": int, "block_tokens?": int,
}  # fmt: skip
_MODEL = {
    "name?": str, "notes?": str, "lines": [{"round_ns": int, "token_ns": int}],
    "kv_ns": int, "prompt_ns": int,
}  # fmt: skip
_STAGE = {"denominator": int, "peaks": [[int]], "times": [int], "numerators": [[int]]}
_RESOURCES = (
    {"name": "tokens", "first": int, "numerators": [int]},
    {"name": "slots", "capacity": int, "times": [int], "numerators": [int]},
    {"name": "prefixes", "denominator": int, "times": [int], "numerators": [[int]]},
    {"name": "machine", "times": [int], "numerators": [int], "lines": [int], "reach?": int},
)
_PRICES = {"kind": "prices", "denominator": int, "resources": [_RESOURCES]}
_PARTS = (
    _PRICES,
    {"kind": "volume", "staircases?": [[int]]},
    {"kind": "configurations", "target": (None, int), "searched": bool, "stages": [_STAGE],
     "kept?": [int], "cuts?": [int]},
    {"kind": "branches", "target": int, "branches": [[int]], "leaves": [[int]]},
)  # fmt: skip
_SHARED = {
    "kind": "shared-rounds", "rows": [[int]], "unit": int, "cell": int, "fixed": [int],
    "slopes": [int], "interference": [int], "row_prices": [[int]], "by_memory?": int,
    "block_shares?": [[int]], "period?": int, "grown?": [int], "backlog?": [[int]],
    "waits?": [int],
}  # fmt: skip
_PROOFS = (
    *_PARTS,
    {"kind": "split", "parts": [{"from": int, "proof": _PARTS}]},
    {"kind": "shares", "lines": [int], "weights?": [int], "company?": [int], "mix?": [int],
     "parts?": int, "by_memory?": int},
    _SHARED,
)  # fmt: skip
_SPANS = {"value": int, "workers?": [int], "waits?": [[int]]}
_RUNS = (
    {**_SPANS, "starts": [int], "lost?": [[int]]},
    {**_SPANS, "segments": [[[int]]],
     "chunks?": [{"request": int, "start": int, "tokens": [int], "cached?": int}]},
)  # fmt: skip
_SIDES = {
    "scope": SCOPES,
    "upper": (None, *_RUNS),
    "lower": (None, {"value": int, "relaxations?": [RELAXATIONS], "proof": _PROOFS}),
}
CERTIFICATE = {
    "schema": "kvopt.certificate/4",
    "hash": str,
    "clock": ("rounds", _MODEL),
    **_SIDES,
    "narrower?": [_SIDES],
    "eager?": int,
    "policies?": [
        (
            *({"policy": str, "outcome": "completed", **run} for run in _RUNS),
            {"policy": str, "outcome": ("livelock", "unfinished"), "value": None},
        )
    ],
    "slo?": {
        "limits": {"ttft?": (int, str), "tpot?": (int, str), "e2e?": (int, str)}, "ceiling": int,
        "relaxations?": [RELAXATIONS],
        "proof": (_PRICES, _SHARED),
        "attained": [(None, int)], "best": (None, *({**run, "attained": int} for run in _RUNS)),
    },
    "machine_time?": {
        "value": int, "every": int, "misses": [int], "lines?": [int], "relaxations?": [RELAXATIONS],
    },
    "budget?": int,
    "provenance?": dict,
    "instance": INSTANCE,
}  # fmt: skip
_LEFT = {"deadlines": "deadlines are service levels now: certify again, with --slo",
         "after": "an order of requests is not checked any more",
         "slower": "slower machines are not checked any more: certify again"}  # fmt: skip
"""Fields of earlier versions, which are refused by name."""
_OLDER = [f"kvopt.{kind}certificate/{n}" for kind in ("", "seconds-") for n in (1, 2, 3)]


def text_of(path: str | os.PathLike[str]) -> str:
    """Return the text of a file that is not too large."""
    try:
        with open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            raw = stream.read(LARGEST_FILE + 1) if size <= LARGEST_FILE else b""
        if max(size, len(raw)) > LARGEST_FILE:
            raise Unreadable(f"has more than {LARGEST_FILE:,} bytes")
        if raw.startswith(_COMPRESSED):
            raise Unreadable("is compressed: unpack it first, with xz -d or gzip -d")
        return raw.decode("utf-8-sig")
    except (OSError, ValueError) as error:  # a missing file, or not text
        raise Unreadable(f"cannot be read: {quoted(str(error))}") from None


def certificate_of(text: str, work: Work) -> dict[str, Any]:
    """Return the object of a text that has the shape of a certificate."""
    if sum(map(text.count, "[{,")) > MOST_PARTS:
        raise Unreadable(f"has more than {MOST_PARTS:,} parts")
    try:
        value = json.loads(
            text,
            object_pairs_hook=_no_doubles,
            parse_int=functools.partial(_short_integer, work),
            parse_float=_finite,
            parse_constant=_finite,
        )
    except RecursionError:
        raise Unreadable("is nested too deeply") from None
    except ValueError as error:  # it is not JSON
        raise Unreadable(f"cannot be read: {quoted(str(error))}") from None
    schema, needed = value.get("schema") if type(value) is dict else None, CERTIFICATE["schema"]
    if schema != needed:
        other = f", not {quoted(schema)}" if type(schema) is str else ""
        older = "; one of before is not read any more: certify again" * (schema in _OLDER)
        raise Unreadable(f"certificate: must have the schema {needed}{other}{older}")
    if misfit := _misfit(value, CERTIFICATE, "certificate"):
        raise Unreadable(misfit)
    certificate: dict[str, Any] = value
    return certificate


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(members := dict(pairs)) < len(pairs):
        raise Unreadable("an object has a key twice")
    return members


def _short_integer(work: Work, text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise Unreadable(f"holds an integer of more than {MOST_DIGITS} digits")
    work.weight = max(work.weight, 1 + len(text) // 50)
    return int(text)


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise Unreadable(f"holds {quoted(text)}, which is not a finite number")
    return number


def _misfit(value: Any, shape: Any, where: str) -> str | None:
    """Return where a value differs from its shape; None if it does not."""
    if isinstance(shape, tuple):
        misfits = [_misfit(value, choice, where) for choice in shape]
        deepest = max(filter(None, misfits), key=lambda text: len(text.partition(": ")[0]))
        return None if None in misfits else deepest
    if isinstance(shape, type):  # not isinstance(value, ...): True is no integer here
        fits = type(value) is shape
        return None if fits else f"{where}: must be {shape.__name__}, is {type(value).__name__}"
    if isinstance(shape, list):
        if type(value) is not list:
            return f"{where}: must be a list"
        if shape == [int] and set(map(type, value)) <= {int}:
            return None
        parts = ((entry, shape[0], f"{where} {i}") for i, entry in enumerate(value))
    elif isinstance(shape, dict):
        shapes = {name.rstrip("?"): inner for name, inner in shape.items()}
        needed = {name for name in shape if name[-1] != "?"}
        if type(value) is not dict or not needed <= value.keys() <= shapes.keys():
            unknown = {*value} - {*shapes} if type(value) is dict else set()
            if left := sorted(unknown & {*_LEFT}):
                return f"{where}: has the field {left[0]}: {_LEFT[left[0]]}"
            return f"{where}: must be an object with the fields {' '.join(shape)}"
        parts = ((entry, shapes[name], f"{where}, {name}") for name, entry in value.items())
    else:
        return None if value == shape else f"{where}: must be {shape}"
    return next(filter(None, (_misfit(*part) for part in parts)), None)
