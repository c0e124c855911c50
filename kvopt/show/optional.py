"""Optional packages: loaded at their first use, or reported missing in one line."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import NamedTuple

from kvopt.errors import MissingPackage


class Extra(NamedTuple):
    """An optional part of an installation: its package, and the use of kvopt without it."""

    package: str
    without: str


EXTRAS = {
    "plot": Extra("matplotlib", "without it no pictures and reports"),
    "cluster": Extra("distributed", "studies run on this machine without it"),
}
"""Parts of an installation by name, as in ``pip install 'kvopt[plot]'``."""


def optional(module: str, extra: str) -> ModuleType:
    """Return a module of another project, or explain how to install it.

    Parameters
    ----------
    module
        Its full name, such as ``matplotlib.figure``.
    extra
        The extra of kvopt that brings it.

    Raises
    ------
    MissingPackage
        If the package is not installed; other errors of its import are raised unchanged.

    Examples
    --------
    >>> optional("math", "plot").gcd(4, 6)
    2
    >>> optional("not_there.part", "plot")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    kvopt.errors.MissingPackage: not_there is not installed: pip install 'kvopt[plot]'; ...
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise MissingPackage(f"{package} is not installed: {remedy(extra)}") from None


def remedy(extra: str) -> str:
    """Return how to install a part, and the commands that work without it."""
    return f"pip install 'kvopt[{extra}]'; {EXTRAS[extra].without}"
