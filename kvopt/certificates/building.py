"""``certify``: the best schedule and the best proof within a limit, and runs to judge by them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kvopt.certificates.both_sides import first_sides, rest
from kvopt.engines.solving import available_threads, checked_limit
from kvopt.errors import InvalidInput
from kvopt.kernels.compiling import Abandoned
from kvopt.kernels.dependencies import versions
from kvopt.model.instance import Instance
from kvopt.model.schedule import Schedule
from kvopt.policies.base import Policy
from kvopt.policies.registry import policy as policy_from
from kvopt.policies.svf import Svf
from kvopt.search.incumbent import Observer, Search
from kvopt.search.proofs import CheckedBound
from kvopt.search.result import relative_gap
from kvopt.search.threads import signals_interrupt
from kvopt.simulation.runs import Lost, Outcome, PolicyRun
from kvopt.simulation.simulator import Stopped, simulate

GIVEN = "schedule"
"""Name under which a certificate judges a schedule that was made elsewhere."""


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """What a policy, or another source, did with the instance.

    Parameters
    ----------
    policy
        The policy and its parameters, as they were given.
    outcome
        ``completed``, ``livelock``, or ``unfinished`` when time ran out.
    value
        Total latency; None unless completed.
    starts, lost
        Last start of each request, and the work that evictions threw away.
    """

    policy: str
    outcome: str
    value: int | None = None
    starts: tuple[int, ...] = ()
    lost: tuple[Lost, ...] = ()


@dataclass(frozen=True)
class Certificate:
    """An instance, both sides of its optimum, and runs to judge by them.

    Parameters
    ----------
    instance
        The problem.
    upper
        Best schedule known, checked in integers.
    lower
        Best bound with a proof.
    runs
        Policies and the given schedule.
    provenance
        How the certificate came about: versions, seed, command, times.
    notes
        What a reader should know.
    signal_number
        The signal that interrupted the work, where one did.
    """

    instance: Instance
    upper: Schedule | None
    lower: CheckedBound | None
    runs: tuple[JudgedRun, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    signal_number: int | None = None

    @property
    def objective(self) -> int | None:
        """Total latency of the best schedule."""
        return None if self.upper is None else self.upper.objective

    @property
    def lower_bound(self) -> int | None:
        """No schedule has a smaller total latency."""
        return None if self.lower is None else self.lower.value

    @property
    def gap(self) -> float | None:
        """``(objective - bound) / objective``, None while a side is unknown."""
        return relative_gap(self.objective, self.lower_bound)

    def ratio(self, run: JudgedRun) -> tuple[float | None, float | None]:
        """Return the interval ``[value / upper, value / lower]`` that holds value / optimum.

        An end is None while it is unknown, or when its bound is 0 and tells nothing.
        """
        return _share(run.value, self.objective), _share(run.value, self.lower_bound)

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``kvopt certify --json`` prints: the claims without proofs."""
        return {
            "upper": self.objective,
            "lower": self.lower_bound,
            "gap": self.gap,
            "policies": [
                {
                    "policy": run.policy,
                    "outcome": run.outcome,
                    "value": run.value,
                    "evictions": len(run.lost),
                    "ratio": list(self.ratio(run)),
                }
                for run in self.runs
            ],
            "provenance": self.provenance,
            "notes": list(self.notes),
        }


def certify(
    instance: Instance,
    policies: str | Iterable[str | Policy | PolicyRun] = (),
    schedule: Schedule | None = None,
    *,
    time_limit: float | None = None,
    reserve: float = 0.0,
    threads: int | None = None,
    seed: int = 0,
    ram: int | None = None,
    observer: Observer | None = None,
    command: str | None = None,
) -> Certificate:
    """Find the best schedule and the best proof within a limit, and judge policies by them.

    Parameters
    ----------
    instance
        The problem.
    policies
        Schedulers to judge, ``NAME[:key=value,...]`` as on the command line or objects; or runs
        that were made before, which are checked again.
    schedule
        A feasible schedule made elsewhere, to judge as well and to improve on.
    time_limit
        Seconds for all of it; None to go on until the optimum is proved.
    reserve
        Seconds of the limit that were used before, or are needed afterwards to write.
    threads, seed
        For the solvers.
    ram
        Bytes that the process may hold; by default a share of what the machine has.
    observer
        Called with a `Progress` whenever a side improves.
    command
        What to record as the command that made it.

    Returns
    -------
    Certificate
        Limits and Ctrl-C are ordinary ends: what was found until then is in it.

    Examples
    --------
    >>> from kvopt import Instance, Request, certify
    >>> found = certify(Instance(9, [Request(0, 1, o) for o in (3, 4, 5, 7)]), ["mc-sf"])
    >>> found.objective, found.runs[0].value
    (27, 28)
    """
    limit = checked_limit(time_limit)
    search = Search(
        instance,
        time_limit=None if limit is None else max(limit - reserve, 0.0),
        threads=threads or available_threads(),
        seed=seed,
        observer=observer,
        ram=ram,
    )
    runs = [] if schedule is None else [_given(search, schedule)]
    chosen = [policies] if isinstance(policies, str) else policies  # one name is no list of letters
    labelled = [_labelled(search, choice) for choice in chosen]
    with signals_interrupt(search):
        first_sides(search)
        served = search.schedule if search.found_by == f"policy {Svf.name}" else None
        runs += _judged(search, labelled, served)
        rest(search)
    return _certificate(search, runs, time_limit, command)


def _given(search: Search, schedule: Schedule) -> JudgedRun:
    check = schedule.check()
    if schedule.instance.hash != search.instance.hash or not check.feasible:
        reason = check.violations[0] if check.violations else "is for another instance"
        raise InvalidInput(reason, field="schedule")
    search.offer_starts(schedule.starts, "given schedule")
    return JudgedRun(GIVEN, "completed", schedule.objective, schedule.starts)


def _labelled(search: Search, choice: str | Policy | PolicyRun) -> tuple[str, Policy | PolicyRun]:
    if isinstance(choice, str):
        return choice, policy_from(choice)
    if isinstance(choice, Policy):
        return choice.name, choice
    if choice.instance.hash != search.instance.hash:
        raise InvalidInput("is a run on another instance", field=f"policy {choice.policy}")
    broken = choice.violations()
    if (choice.schedule is not None) != (choice.outcome is Outcome.COMPLETED):
        broken.append(f"is called {choice.outcome}, which its starts are not")
    if broken:
        raise InvalidInput(broken[0], field=f"policy {choice.policy}")
    return choice.policy, choice


def _judged(
    search: Search, labelled: Sequence[tuple[str, Policy | PolicyRun]], served: Schedule | None
) -> Iterator[JudgedRun]:
    """Run the policies, but for `svf` where what it does is known.

    Their runs are what was asked for, so a proved optimum is no reason to leave one out.
    """
    late, search.engine = False, "policies"
    for label, policy in labelled:
        if isinstance(policy, PolicyRun):
            yield _of_run(search, policy)
            continue
        if served is not None and policy == Svf():
            yield JudgedRun(label, "completed", served.objective, served.starts)
            continue
        try:
            if late or _is_over(search):
                raise Stopped
            run = simulate(search.instance, policy, label, lambda: _is_over(search))
        except (Stopped, Abandoned):
            late = True
            search.note(f"{label}: did not finish within the limit")
            yield JudgedRun(label, "unfinished")
        except MemoryError:
            search.note(f"{label}: ended, as the machine ran out of memory")
            yield JudgedRun(label, "unfinished")
        else:
            yield _of_run(search, run)


def _is_over(search: Search) -> bool:
    return search.remaining <= 0 or search.signal_number is not None


def _of_run(search: Search, run: PolicyRun) -> JudgedRun:
    if run.schedule is None:
        return JudgedRun(run.policy, str(run.outcome))
    if run.schedule.instance is search.instance:
        search.offer_schedule(run.schedule, f"policy {run.policy}")
    else:
        search.offer_starts(run.schedule.starts, f"policy {run.policy}")
    return JudgedRun(
        run.policy, str(run.outcome), run.objective, run.schedule.starts, tuple(run.lost)
    )


def _certificate(
    search: Search, runs: Sequence[JudgedRun], time_limit: float | None, command: str | None
) -> Certificate:
    result = search.result("certify")
    provenance = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "versions": versions(),
        "seed": search.seed,
        "threads": search.threads,
        "time_limit": time_limit,
        "seconds": round(result.seconds, 3),
        "compile_seconds": round(result.compile_seconds, 3),
        "stop_reason": str(result.stop_reason),
        "found_by": result.found_by,
        "bounded_by": result.bounded_by,
    }
    return Certificate(
        instance=search.instance,
        upper=result.schedule,
        lower=result.checked,
        runs=tuple(runs),
        provenance=provenance,
        notes=result.notes,
        signal_number=result.signal_number,
    )


def _share(value: int | None, by: int | None) -> float | None:
    return None if value is None or not by else value / by
