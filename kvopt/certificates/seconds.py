"""``certify_seconds``: a bound, a good run, and schedulers judged by them, in nanoseconds.

`kvopt.verify` checks what comes out and shares no code with what is here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from signal import SIGINT
from typing import Any

from kvopt.bounds.seconds import SecondsBound, seconds_bound
from kvopt.kernels.compiling import left_when, working_time
from kvopt.kernels.dependencies import versions
from kvopt.model.batch_time import BatchTime
from kvopt.model.instance import Instance
from kvopt.policies.base import Policy
from kvopt.policies.patient import LeastShare
from kvopt.policies.registry import policy as policy_from
from kvopt.search.incumbent import checked_limit
from kvopt.search.result import relative_gap
from kvopt.search.threads import signals_remembered
from kvopt.simulation.seconds import simulate_seconds
from kvopt.simulation.seconds_run import SecondsRun
from kvopt.simulation.simulator import Stopped

_BOUND_SHARE = 0.2
"""Share of a limit that the search for good weights may take."""

_WAYS = ((1, 0), (10, 30))
"""Windows and patience of the orders that are tried for a good schedule."""


@dataclass(frozen=True)
class SecondsCertificate:
    """An instance and a batch-time model, both sides of the optimum, and runs to judge by them.

    Parameters
    ----------
    instance, model
        The problem: requests, and how long rounds last.
    upper
        The best run known.
    lower
        A bound with its proof.
    runs
        What each scheduler did, in the order in which they were given.
    unfinished
        Schedulers that did not come to an end within the limit.
    provenance
        How the certificate came about.
    interrupted
        Whether Ctrl-C ended the work; schedulers that had not run by then are unfinished.
    """

    instance: Instance
    model: BatchTime
    upper: SecondsRun | None
    lower: SecondsBound | None
    runs: tuple[SecondsRun, ...] = ()
    unfinished: tuple[str, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def objective_ns(self) -> int | None:
        """Total latency of the best run."""
        return None if self.upper is None else self.upper.objective_ns

    @property
    def lower_bound_ns(self) -> int | None:
        """No schedule has a smaller total latency."""
        return None if self.lower is None else self.lower.value_ns

    @property
    def gap(self) -> float | None:
        """``(objective - bound) / objective``, None while a side is unknown."""
        return relative_gap(self.objective_ns, self.lower_bound_ns)

    def ratio(self, run: SecondsRun) -> tuple[float | None, float | None]:
        """Return the interval ``[value / upper, value / lower]`` that holds value / optimum."""
        return _share(run.objective_ns, self.objective_ns), _share(
            run.objective_ns, self.lower_bound_ns
        )

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``kvopt certify --seconds --json`` prints."""
        judged = [
            {
                "policy": run.policy,
                "outcome": str(run.outcome),
                "value_ns": run.objective_ns,
                "evictions": run.evictions,
                "ratio": list(self.ratio(run)),
            }
            for run in self.runs
        ]
        return {
            "upper_ns": self.objective_ns,
            "lower_ns": self.lower_bound_ns,
            "gap": self.gap,
            "policies": judged,
            "unfinished": list(self.unfinished),
            "provenance": self.provenance,
        }


def certify_seconds(
    instance: Instance,
    model: BatchTime,
    policies: Iterable[str | Policy | SecondsRun] = (),
    *,
    time_limit: float | None = None,
    command: str | None = None,
) -> SecondsCertificate:
    """Bound total latency on the clock of a model, and judge schedulers by the bound.

    Parameters
    ----------
    instance
        The requests, and when they arrive (`kvopt.model.arrivals.arrivals_ns`).
    model
        How long rounds last.
    policies
        Schedulers to judge, ``NAME[:key=value,...]`` or objects, or runs of them by this model.
    time_limit
        Seconds; schedulers that did not finish by then are left out.
    command
        What to record as the command that made it.

    Examples
    --------
    >>> from kvopt import Instance, Request
    >>> from kvopt import BatchTime, Line
    >>> instance = Instance(9, [Request(0, 1, o) for o in (3, 4, 5, 7)])
    >>> found = certify_seconds(instance, BatchTime([Line(40_000_000, 0)]), ["mc-sf"])
    >>> found.objective_ns, found.runs[0].objective_ns
    (1120000000, 1120000000)
    """
    began = working_time()
    limit = checked_limit(time_limit)
    share = None if limit is None else _BOUND_SHARE * limit
    judged = [_named(policy) for policy in policies]
    interrupted = False

    def interrupt(_: int) -> None:
        nonlocal interrupted
        interrupted = True

    def is_late() -> bool:
        return interrupted or (limit is not None and working_time() - began > limit)

    def run(label: str, scheduler: Policy | SecondsRun) -> SecondsRun | None:
        nonlocal interrupted
        if isinstance(scheduler, SecondsRun):
            return scheduler
        try:
            with left_when(lambda: interrupted):
                found = simulate_seconds(instance, scheduler, model, should_stop=is_late)
                return replace(found, policy=label)
        except KeyboardInterrupt:
            interrupted = True
        except (Stopped, MemoryError):
            pass
        return None

    with signals_remembered(interrupt, [SIGINT]):
        lower = seconds_bound(instance, model, time_limit=share, should_stop=lambda: interrupted)
        orders = [LeastShare.of(instance, model, lower.proof.lines, *way) for way in _WAYS]
        tried = [(label, run(label, scheduler)) for label, scheduler in judged]
        runs = [found for _, found in tried if found is not None]
        best = _best([*runs, *(run(order.name, order) for order in orders)])
    return SecondsCertificate(
        instance=instance,
        model=model,
        upper=best,
        lower=lower,
        runs=tuple(runs),
        unfinished=tuple(label for label, found in tried if found is None),
        provenance=_provenance(began, time_limit, command, best),
        interrupted=interrupted,
    )


def _named(policy: str | Policy | SecondsRun) -> tuple[str, Policy | SecondsRun]:
    if isinstance(policy, str):
        return policy, policy_from(policy)
    return (policy.policy if isinstance(policy, SecondsRun) else policy.name), policy


def _best(runs: Sequence[SecondsRun | None]) -> SecondsRun | None:
    complete = [
        (run.objective_ns, number, run)
        for number, run in enumerate(runs)
        if run is not None and run.objective_ns is not None
    ]
    return min(complete)[2] if complete else None


def _provenance(
    began: float, time_limit: float | None, command: str | None, best: SecondsRun | None
) -> dict[str, Any]:
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "versions": versions(),
        "time_limit": time_limit,
        "seconds": round(working_time() - began, 3),
        "found_by": None if best is None else best.policy,
    }


def _share(value: int | None, by: int | None) -> float | None:
    return None if value is None or not by else value / by
