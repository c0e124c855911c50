"""SCIP on the time-indexed program that ``kvopt export`` writes, from the known schedule."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from pyscipopt import SCIP_EVENTTYPE, Eventhdlr, Model

from kvopt.formulations.export import export
from rival_models import Offers, Problem


def work(problem: Problem, offers: Offers) -> None:
    """Branch and cut; schedules are offered when they are found, the bound at the end."""
    model = Model()
    model.hideOutput()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.lp"
        export(problem.instance, path, windows=problem.windows)
        model.readProblem(str(path))
    columns = {variable.name: variable for variable in model.getVars()}
    hint = model.createSol()
    for i, start in enumerate(problem.known.starts):
        model.setSolVal(hint, columns[f"x_{problem.instance.requests[i].id}_{start}"], 1.0)
    model.addSol(hint)
    model.setParam("timing/clocktype", 1)  # of the processor
    model.setParam("limits/time", problem.seconds)
    model.includeEventhdlr(_Found(columns, problem, offers), "found", "offers schedules")
    model.optimize()
    offers.bound(model.getDualbound())


class _Found(Eventhdlr):  # type: ignore[misc]
    """Offers each schedule that is better than the last."""

    def __init__(self, columns: dict[str, Any], problem: Problem, offers: Offers) -> None:
        self.columns, self.problem, self.offers = columns, problem, offers

    def eventinit(self) -> None:
        """Ask to be called."""
        self.model.catchEvent(SCIP_EVENTTYPE.BESTSOLFOUND, self)

    def eventexit(self) -> None:
        """Ask no more."""
        self.model.dropEvent(SCIP_EVENTTYPE.BESTSOLFOUND, self)

    def eventexec(self, event: Any) -> None:
        """Offer the schedule."""
        del event
        best = self.model.getBestSol()
        self.offers.starts(
            [
                max(window, key=lambda k: self.model.getSolVal(best, self.columns[f"x_{r.id}_{k}"]))
                for r, window in zip(self.problem.instance, self.problem.windows, strict=True)
            ]
        )
