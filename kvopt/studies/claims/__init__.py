"""Published claims beside what was found: certified values only, as intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kvopt.studies.claims.adversaries import adversary
from kvopt.studies.claims.arrivals import arrival_1, arrival_2
from kvopt.studies.claims.chen import chen_1, chen_2, chen_3
from kvopt.studies.claims.equal import equal_prompts
from kvopt.studies.claims.mixed import mixed
from kvopt.studies.claims.regret import regret
from kvopt.studies.claims.table_4 import table_4
from kvopt.studies.claims.verdict import Verdict
from kvopt.studies.records import Record

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
    "equal-prompts": equal_prompts,
    "adversary": adversary,
    "regret": regret,
}
