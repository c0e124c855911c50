"""Studies: many instances, many policies, every ratio certified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvopt import lazy_names

if TYPE_CHECKING:
    from kvopt.experiments.studies.builtin import builtin_names, builtin_study
    from kvopt.experiments.studies.claims import Verdict
    from kvopt.experiments.studies.description import Study, read_study
    from kvopt.experiments.studies.progress import StudyProgress
    from kvopt.experiments.studies.records import Record, StudiedInstance, read_records
    from kvopt.experiments.studies.running import StudyResult, run_study

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


__getattr__ = lazy_names(
    "kvopt.experiments.studies",
    {
        "builtin": "builtin_names builtin_study",
        "claims": "Verdict",
        "description": "Study read_study",
        "progress": "StudyProgress",
        "records": "Record StudiedInstance read_records",
        "running": "StudyResult run_study",
    },
)
