"""Published claims beside what was found: certified values only, as intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kvopt.experiments.studies.claims.adversaries import adversary
from kvopt.experiments.studies.claims.arrivals import arrival_1, arrival_2
from kvopt.experiments.studies.claims.chen import chen_1, chen_2, chen_3, chen_6
from kvopt.experiments.studies.claims.equal import equal_prompts
from kvopt.experiments.studies.claims.mixed import mixed
from kvopt.experiments.studies.claims.prediction_errors import errors
from kvopt.experiments.studies.claims.protection import protection
from kvopt.experiments.studies.claims.regret import regret
from kvopt.experiments.studies.claims.table_1 import table_1
from kvopt.experiments.studies.claims.table_4 import table_4
from kvopt.experiments.studies.claims.traffic import traffic
from kvopt.experiments.studies.claims.verdict import Verdict
from kvopt.experiments.studies.records import Record

__all__ = ["CLAIMS", "Claim", "Verdict"]

Claim = Callable[[Sequence[Record]], list[Verdict]]
"""A function from the records of a study to verdicts; none where the records say nothing."""

CLAIMS: dict[str, Claim] = {
    "arrival-1": arrival_1,
    "arrival-2": arrival_2,
    "wang-table-4": table_4,
    "wang-mixed": mixed,
    "chen-1": chen_1,
    "chen-2": chen_2,
    "chen-3": chen_3,
    "chen-6": chen_6,
    "equal-prompts": equal_prompts,
    "adversary": adversary,
    "regret": regret,
    "v2-5.2-traffic": traffic,
    "v2-5.2-table-1": table_1,
    "v2-5.2-alpha": protection,
    "v2-5.2-errors": errors,
}
