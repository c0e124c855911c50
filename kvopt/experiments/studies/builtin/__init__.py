"""Built-in studies: a TOML file each, as a user would write one."""

from __future__ import annotations

from importlib.resources import files

from kvopt.errors import InvalidInput
from kvopt.experiments.studies.description import Study, study_from_text


def builtin_names() -> list[str]:
    """Return the names of the built-in studies."""
    found = (item.name for item in files(__package__).iterdir())
    return sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml"))


def builtin_text(name: str) -> str:
    """Return the description of a built-in study."""
    if name not in builtin_names():
        reason = f"must be one of {', '.join(builtin_names())} or a .toml file, got {name!r}"
        raise InvalidInput(reason, field="study")
    return (files(__package__) / f"{name}.toml").read_text(encoding="utf-8")


def builtin_study(name: str) -> Study:
    """Return a built-in study."""
    return study_from_text(builtin_text(name))
