"""Modules that register policies of others, by name or by the path of a file."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path


def located(module: str, folder: Path) -> str:
    """Return the full path of a file that stands in a description; a name stays a name."""
    return str((folder / module).resolve()) if module.endswith(".py") else module


def import_modules(modules: Sequence[str]) -> None:
    """Import what registers policies, by module name or by path."""
    for module in modules:
        if not module.endswith(".py"):
            importlib.import_module(module)
            continue
        name = f"kvopt_study_{Path(module).stem}"
        known = sys.modules.get(name)
        if known is not None and known.__file__ == module:
            continue
        spec = importlib.util.spec_from_file_location(name, module)
        assert spec is not None, "a path that ends in .py has a loader"
        assert spec.loader is not None, "and so does its specification"
        sys.modules[name] = found = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
