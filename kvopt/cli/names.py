"""Names that options and arguments take, for help and for completion: from registries alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def _policies() -> Iterable[str]:
    from kvopt.simulate.policies.registry import POLICIES

    return POLICIES.names()


def _routers() -> Iterable[str]:
    from kvopt.simulate.routers.registry import ROUTERS

    return ROUTERS.names()


def _engines() -> Iterable[str]:
    from kvopt.search.registry import ENGINES

    return ENGINES.names()


def _methods() -> Iterable[str]:
    from kvopt.bounds.registry import BOUNDS

    return BOUNDS.names()


def _families() -> Iterable[str]:
    from kvopt.problem.families import FAMILIES

    return FAMILIES


def _traces() -> Iterable[str]:
    from kvopt.problem.traces import FORMATS

    return FORMATS.names()


def _formulations() -> Iterable[str]:
    from kvopt.formulations.export import FORMULATIONS

    return FORMULATIONS


def _exports() -> Iterable[str]:
    from kvopt.formulations.export import FORMATS

    return FORMATS


def _studies() -> Iterable[str]:
    from kvopt.experiments.studies.description import builtin_names

    return builtin_names()


def _topics() -> Iterable[str]:
    from kvopt.experiments.theory import TOPICS

    return TOPICS


def _models() -> Iterable[str]:
    from kvopt.problem.hardware.presets import MODELS

    return MODELS


def _gpus() -> Iterable[str]:
    from kvopt.problem.hardware.presets import GPUS

    return GPUS


def _batch_times() -> Iterable[str]:
    from kvopt.problem.hardware.batch_time_files import PRESETS

    return map(str, PRESETS)


def _scopes() -> Iterable[str]:
    from kvopt.problem.scopes import Scope

    return map(str, Scope)


NAMES: dict[str, Callable[[], Iterable[str]]] = {
    "policies": _policies,
    "routers": _routers,
    "engines": _engines,
    "methods": _methods,
    "families": _families,
    "traces": _traces,
    "formulations": _formulations,
    "exports": _exports,
    "studies": _studies,
    "topics": _topics,
    "models": _models,
    "gpus": _gpus,
    "batch_times": _batch_times,
    "scopes": _scopes,
}
"""Functions, so that nothing is loaded before it is needed; ``{policies}`` in a help text stands
for the names of policies."""


def completing(kind: str) -> Callable[[str], list[str]]:
    """Return what completes the names of a kind, for ``autocompletion`` of an option."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in NAMES[kind]() if name.startswith(incomplete)]

    return complete


def filled_in(text: str) -> str:
    """Return a help text with names in it."""
    for kind, names in NAMES.items():
        if (place := f"{{{kind}}}") in text:
            text = text.replace(place, ", ".join(names()))
    return text
