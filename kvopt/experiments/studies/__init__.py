"""Studies: many instances, many policies, every ratio certified."""

from kvopt.experiments.studies.claims import Verdict
from kvopt.experiments.studies.description import Study, builtin_names, builtin_study, read_study
from kvopt.experiments.studies.records import Record, StudiedInstance, read_records
from kvopt.experiments.studies.running import StudyProgress, StudyResult, run_study

__all__ = [
    "Record", "StudiedInstance", "Study", "StudyProgress", "StudyResult", "Verdict",
    "builtin_names", "builtin_study", "read_records", "read_study", "run_study",
]  # fmt: skip
