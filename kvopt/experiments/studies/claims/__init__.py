"""Published claims next to the results: certified values only, as intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from kvopt.experiments.studies.claims.adversaries import adversary
from kvopt.experiments.studies.claims.backlogs import chen, mixed, table_4
from kvopt.experiments.studies.claims.mc_sf import arrivals, equal_prompts, regret
from kvopt.experiments.studies.claims.traffic import errors, protection, table_1, traffic
from kvopt.experiments.studies.claims.verdict import Verdict
from kvopt.experiments.studies.records import Record

__all__ = ["CLAIMS", "Claim", "Verdict"]

Claim = Callable[[Sequence[Record]], Iterable[Verdict]]
"""A function from the records of a study to verdicts; empty if the records do not suffice."""

CLAIMS: dict[str, Claim] = {
    "arrival-1": partial(arrivals, name="arrival-1"),
    "arrival-2": partial(arrivals, name="arrival-2"),
    "wang-table-4": table_4,
    "wang-mixed": mixed,
    "chen-1": partial(chen, experiments=(1,)),
    "chen-2": partial(chen, experiments=(2,)),
    "chen-3": partial(chen, experiments=(3,)),
    "chen-6": partial(chen, experiments=(1, 2, 3)),
    "equal-prompts": equal_prompts,
    "adversary": adversary,
    "regret": regret,
    "v2-5.2-traffic": traffic,
    "v2-5.2-table-1": table_1,
    "v2-5.2-alpha": protection,
    "v2-5.2-errors": errors,
}
