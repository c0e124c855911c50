"""Studies: many instances, many policies, every ratio certified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvopt import lazy_names

if TYPE_CHECKING:
    from kvopt.studies.description import Study as Study
    from kvopt.studies.description import builtin_names as builtin_names
    from kvopt.studies.description import builtin_study as builtin_study
    from kvopt.studies.description import read_study as read_study
    from kvopt.studies.intervals import Interval as Interval
    from kvopt.studies.intervals import by_policy as by_policy
    from kvopt.studies.intervals import largest_of as largest_of
    from kvopt.studies.intervals import mean_of as mean_of
    from kvopt.studies.intervals import ratio_of as ratio_of
    from kvopt.studies.records import Record as Record
    from kvopt.studies.records import StudiedInstance as StudiedInstance
    from kvopt.studies.records import read_records as read_records
    from kvopt.studies.running import StudyProgress as StudyProgress
    from kvopt.studies.running import StudyResult as StudyResult
    from kvopt.studies.running import run_study as run_study

_HOMES = {
    "description": "Study builtin_names builtin_study read_study",
    "intervals": "Interval by_policy largest_of mean_of ratio_of",
    "records": "Record StudiedInstance read_records",
    "running": "StudyProgress StudyResult run_study",
}

__all__ = sorted(" ".join(_HOMES.values()).split())

__getattr__ = lazy_names("kvopt.studies", _HOMES)
