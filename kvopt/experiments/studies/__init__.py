"""Studies: many instances, many policies, every ratio certified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvopt import lazy_names

if TYPE_CHECKING:
    from kvopt.experiments.studies.description import Study as Study
    from kvopt.experiments.studies.description import builtin_names as builtin_names
    from kvopt.experiments.studies.description import builtin_study as builtin_study
    from kvopt.experiments.studies.description import read_study as read_study
    from kvopt.experiments.studies.records import Record as Record
    from kvopt.experiments.studies.records import StudiedInstance as StudiedInstance
    from kvopt.experiments.studies.records import read_records as read_records
    from kvopt.experiments.studies.running import StudyProgress as StudyProgress
    from kvopt.experiments.studies.running import StudyResult as StudyResult
    from kvopt.experiments.studies.running import run_study as run_study

__getattr__ = lazy_names(
    "kvopt.experiments.studies",
    {
        "description": "Study builtin_names builtin_study read_study",
        "records": "Record StudiedInstance read_records",
        "running": "StudyProgress StudyResult run_study",
    },
)
