"""Studies: many instances, many policies, every ratio certified."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kvopt.experiments.studies.builtin import builtin_names, builtin_study
    from kvopt.experiments.studies.claims import Verdict
    from kvopt.experiments.studies.description import Study, read_study
    from kvopt.experiments.studies.progress import StudyProgress
    from kvopt.experiments.studies.records import Record, StudiedInstance, read_records
    from kvopt.experiments.studies.running import StudyResult, run_study

_HOMES = {
    "builtin": ("builtin_names", "builtin_study"),
    "claims": ("Verdict",),
    "description": ("Study", "read_study"),
    "progress": ("StudyProgress",),
    "records": ("Record", "StudiedInstance", "read_records"),
    "running": ("StudyResult", "run_study"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Record",
    "StudiedInstance",
    "Study",
    "StudyProgress",
    "StudyResult",
    "Verdict",
    "builtin_names",
    "builtin_study",
    "read_records",
    "read_study",
    "run_study",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'kvopt.experiments.studies' has no attribute {name!r}")
    return getattr(import_module(f"kvopt.experiments.studies.{_HOME_OF[name]}"), name)
