"""A study as the text of a TOML file with everything said that a description may leave out."""

from __future__ import annotations

import json
from typing import Any

from kvopt.experiments.studies.description import LIMITS, Limits, Study


def resolved_text(study: Study) -> str:
    """Return the TOML text of a study with everything said that a file may leave out.

    Lists that stood for several entries are written out.
    """
    lines = [
        f"name = {_toml(study.name)}",
        f"title = {_toml(study.title)}",
        *_clock(study.limits[0]),
        f"claims = {_toml(study.claims)}",
        f"modules = {_toml(study.modules)}",
        "",
        "[limits]",
    ]
    for key in LIMITS:
        values = list(dict.fromkeys(getattr(limits, key) for limits in study.limits))
        lines.append(f"{key} = {_toml(values[0] if len(values) == 1 else values)}")
    for entry in study.entries:
        draws = None if entry.source.seed is None else entry.draws
        said = {"draws": draws, **entry.source.to_json(), "policies": entry.policies}
        lines += ["", "[[instances]]"]
        lines += [f"{key} = {_toml(value)}" for key, value in said.items() if value is not None]
    return "\n".join(lines) + "\n"


def _clock(limits: Limits) -> list[str]:
    """Say by which clock a study goes; the model itself, so that no file has to be there."""
    lines = [f"certify = {_toml(limits.certify)}"]
    if limits.batch_time is None:
        return ['clock = "rounds"', *lines]
    return ['clock = "seconds"', f"batch_time = {_toml(limits.batch_time.to_json())}", *lines]


def _toml(value: Any) -> str:
    """Return a value as TOML; JSON texts are TOML texts, but for an unescaped delete."""
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{json.dumps(key)} = {_toml(part)}" for key, part in value.items())
            + "}"
        )
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value).replace("\x7f", "\\u007f")
