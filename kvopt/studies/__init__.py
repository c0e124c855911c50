"""Studies: many instances, many policies, every ratio certified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvopt import lazy_names

if TYPE_CHECKING:
    from kvopt.studies.description import Study as Study
    from kvopt.studies.description import builtin_names as builtin_names
    from kvopt.studies.description import builtin_study as builtin_study
    from kvopt.studies.description import read_study as read_study
    from kvopt.studies.execution import StudyProgress as StudyProgress
    from kvopt.studies.execution import StudyResult as StudyResult
    from kvopt.studies.execution import run_study as run_study
    from kvopt.studies.ratio_intervals import Interval as Interval
    from kvopt.studies.ratio_intervals import by_policy as by_policy
    from kvopt.studies.ratio_intervals import largest_of as largest_of
    from kvopt.studies.ratio_intervals import mean_of as mean_of
    from kvopt.studies.ratio_intervals import ratio_of as ratio_of
    from kvopt.studies.record_lines import Record as Record
    from kvopt.studies.record_lines import StudiedInstance as StudiedInstance
    from kvopt.studies.record_lines import read_records as read_records

_HOMES = {
    "description": "Study builtin_names builtin_study read_study",
    "ratio_intervals": "Interval by_policy largest_of mean_of ratio_of",
    "record_lines": "Record StudiedInstance read_records",
    "execution": "StudyProgress StudyResult run_study",
}

__all__ = sorted(" ".join(_HOMES.values()).split())

__getattr__ = lazy_names("kvopt.studies", _HOMES)
