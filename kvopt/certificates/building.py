"""``certify``: the best schedule and the best proof within a limit, and runs to judge by them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from kvopt.certificates.picture import intervals_svg
from kvopt.certificates.sides import Sides, SidesInRounds, SidesInSeconds, attempt
from kvopt.errors import InvalidInput
from kvopt.files.instances import as_instance
from kvopt.kernels.dependencies import versions
from kvopt.model.instance import Instance
from kvopt.model.schedule import Schedule
from kvopt.model.scope import COVERED
from kvopt.model.summary import Facts, Summarised, share, times
from kvopt.policies.base import Policy
from kvopt.policies.registry import policy as policy_from
from kvopt.policies.servers import PAUSES, refuse_pauses
from kvopt.policies.svf import Svf
from kvopt.search.incumbent import Observer, Search, checked_limit
from kvopt.search.params import SolveParams
from kvopt.search.proofs import CheckedBound
from kvopt.search.result import StopReason, relative_gap
from kvopt.search.threads import signals_remembered
from kvopt.simulation.clocks import ROUNDS, Clock, Seconds
from kvopt.simulation.paused_runs import PausedRun
from kvopt.simulation.runs import Lost, Outcome, PolicyRun

GIVEN = "schedule"
"""Name under which a certificate judges a schedule that was made elsewhere."""

UNFINISHED = "unfinished"
"""Outcome of a policy that did not come to an end."""

_OF_SEARCH = ("seed", "threads", "compile_seconds", "stop_reason", "bounded_by")
"""What is said only of a search in rounds: in seconds none of it changes anything."""


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
        Total latency on the clock of the certificate; None unless completed.
    starts, lost
        Round of the last start of each request, and the work that evictions threw away.
    resumed
        As in `PolicyRun`.
    """

    policy: str
    outcome: str
    value: int | None = None
    starts: tuple[int, ...] = ()
    lost: tuple[Lost, ...] = ()
    resumed: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, run: PolicyRun) -> Self:
        """Return what is kept of a run: of one that never ended, no starts."""
        starts = tuple(start for start in run.starts if start is not None)
        if run.objective is None:
            starts = ()
        return cls(run.policy, str(run.outcome), run.objective, starts, run.lost, run.resumed)

    @property
    def evictions(self) -> int:
        """Number of evictions."""
        return len(self.lost)


@dataclass(frozen=True, repr=False)
class Certificate(Summarised):
    """An instance, both sides of its optimum, and runs to judge by them.

    Parameters
    ----------
    instance
        The problem.
    upper
        Best schedule known, checked in integers; on a clock of seconds the best run.
    lower
        Best bound with a proof.
    runs
        Policies and the given schedule.
    provenance
        How the certificate came about: versions, seed, command, times.
    notes
        What a reader should know.
    signal_number
        The signal that interrupted the work, where one did; policies that had not run by then
        are unfinished.
    clock
        How long rounds last, and so what totals are: rounds, or nanoseconds.
    """

    instance: Instance
    upper: Schedule | PolicyRun | None
    lower: CheckedBound | None
    runs: tuple[JudgedRun, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    signal_number: int | None = None
    clock: Clock = ROUNDS

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

    footnote = COVERED

    def facts(self) -> Facts:
        """Return what a summary says: both sides, and how far each run is from the optimum."""
        names = ("total latency", "lower bound")
        if not self.clock.is_even:
            names = ("total latency, ns", "lower bound, ns")
        said: dict[str, object] = {
            "instance": self.instance.name,
            "requests": len(self.instance),
            names[0]: "unknown" if self.objective is None else self.objective,
            names[1]: "unknown" if self.lower_bound is None else self.lower_bound,
            "gap": share(self.gap),
        }
        for run in self.runs:
            least = times(run.value, self.objective, up=False)
            most = times(run.value, self.lower_bound, up=True)
            is_known = run.value is not None
            said[run.policy] = f"{least} to {most} times the optimum" if is_known else run.outcome
        return {**said, "notes": "; ".join(self.notes) or None}

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the summary, and the intervals of runs as a picture."""
        rows = [(run.policy, *self.ratio(run)) for run in self.runs if run.value is not None]
        return super()._repr_html_() + (intervals_svg(rows) if rows else "")

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``kvopt certify --json`` prints: the claims without proofs.

        In seconds, policies that did not finish are listed apart.
        """
        totals, apart = self.clock.suffix, not self.clock.is_even
        judged = [
            {
                "policy": run.policy,
                "outcome": run.outcome,
                f"value{totals}": run.value,
                "evictions": run.evictions,
                "ratio": list(self.ratio(run)),
            }
            for run in self.runs
            if not (apart and run.outcome == UNFINISHED)
        ]
        said = {
            f"upper{totals}": self.objective,
            f"lower{totals}": self.lower_bound,
            "gap": self.gap,
            "policies": judged,
        }
        if apart:
            late = [run.policy for run in self.runs if run.outcome == UNFINISHED]
            return {**said, "unfinished": late, "provenance": self.provenance}
        return {**said, "provenance": self.provenance, "notes": list(self.notes)}


def certify(
    instance: Instance | str | Path,
    policies: str | Iterable[str | Policy | PolicyRun] = (),
    schedule: Schedule | None = None,
    *,
    clock: Clock = ROUNDS,
    time_limit: float | None = None,
    reserve: float = 0.0,
    threads: int | None = None,
    seed: int = 0,
    ram: int | None = None,
    params: SolveParams | None = None,
    observer: Observer | None = None,
    command: str | None = None,
) -> Certificate:
    """Find the best schedule and the best proof within a limit, and judge policies by them.

    Parameters
    ----------
    instance
        The problem, or the file that it is read from.
    policies
        Schedulers to judge, ``NAME[:key=value,...]`` as on the command line or objects; or runs
        that were made before, which are checked again.
    schedule
        A feasible schedule made elsewhere, in rounds, to judge as well and to improve on.
    clock
        How long rounds last, see `run`; totals are in its unit.
    time_limit
        Seconds for all of it; None to go on until the optimum is proved.
    reserve
        Seconds of the limit that were used before, or are needed afterwards to write.
    threads, seed
        For the solvers.
    ram
        Bytes that the process may hold; by default a share of what the machine has.
    params
        Widths, limits and shares of time that differ from the default.
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

    On a server where every round lasts 40 ms, in nanoseconds:

    >>> from kvopt import BatchTime, Line
    >>> from kvopt.simulation.clocks import Seconds
    >>> clock = Seconds(BatchTime([Line(40_000_000, 0)]))
    >>> certify(found.instance, ["mc-sf"], clock=clock).runs[0].value
    1120000000
    """
    instance = as_instance(instance)
    limit = checked_limit(time_limit)
    search = Search(
        instance,
        time_limit=None if limit is None else max(limit - reserve, 0.0),
        threads=threads,
        seed=seed,
        observer=observer,
        checkable=True,
        ram=ram,
        params=params,
    )
    sides = SidesInSeconds(search, clock) if isinstance(clock, Seconds) else SidesInRounds(search)
    runs = [] if schedule is None else [_given(search, schedule, clock)]
    chosen = [policies] if isinstance(policies, str) else policies  # one name is no list of letters
    labelled = [_labelled(search, choice, clock) for choice in chosen]
    with signals_remembered(search.interrupt):
        sides.first()
        runs += _judged(search, sides, labelled, clock)
        sides.rest()
    return _certificate(search, sides, clock, runs, time_limit, command)


def _judged(
    search: Search, sides: Sides, labelled: Iterable[tuple[str, Policy | PolicyRun]], clock: Clock
) -> Iterator[JudgedRun]:
    """Run the policies, but for `svf` where what it does is known.

    Their runs are what was asked for, so a proved optimum is no reason to leave one out.
    """
    search.engine = "policies"
    for label, policy in labelled:
        if sides.served is not None and policy == Svf():
            yield JudgedRun(label, "completed", sides.served.objective, sides.served.starts)
            continue
        made = attempt(search, policy, label, clock) if isinstance(policy, Policy) else policy
        if isinstance(made, str):
            search.note(f"{label}: {made}")
            yield JudgedRun(label, UNFINISHED)
        else:
            sides.offer(made)
            yield JudgedRun.of(made)


def _given(search: Search, schedule: Schedule, clock: Clock) -> JudgedRun:
    if not clock.is_even:
        raise InvalidInput("is in rounds, which this clock does not count", field="schedule")
    check = schedule.check()
    if schedule.instance.hash != search.instance.hash or not check.feasible:
        reason = check.violations[0] if check.violations else "is for another instance"
        raise InvalidInput(reason, field="schedule")
    search.offer_starts(schedule.starts, "given schedule")
    return JudgedRun(GIVEN, "completed", schedule.objective, schedule.starts)


def _labelled(
    search: Search, choice: str | Policy | PolicyRun, clock: Clock
) -> tuple[str, Policy | PolicyRun]:
    if isinstance(choice, str | Policy):
        label, policy = _named(choice)
        refuse_pauses(policy, label)
        return label, policy
    field = f"policy {choice.policy}"
    if isinstance(choice, PausedRun):
        raise InvalidInput(PAUSES, field=field)
    if choice.instance.hash != search.instance.hash:
        raise InvalidInput("is a run on another instance", field=field)
    if choice.clock != clock:
        raise InvalidInput("is a run on another clock", field=field)
    if broken := choice.violations():
        raise InvalidInput(broken[0], field=field)
    if (choice.objective is not None) != (choice.outcome is Outcome.COMPLETED):
        reason = f"is called {choice.outcome}, which its starts are not"
        raise InvalidInput(reason, field=field)
    return choice.policy, choice


def _named(choice: str | Policy) -> tuple[str, Policy]:
    if isinstance(choice, str):
        return choice, policy_from(choice)
    return choice.name, choice


def _certificate(
    search: Search,
    sides: Sides,
    clock: Clock,
    runs: Sequence[JudgedRun],
    time_limit: float | None,
    command: str | None,
) -> Certificate:
    result, (upper, lower, found_by) = search.result("certify"), sides.known()
    stopped, claim, notes = result.stop_reason, result.lower_bound, list(result.notes)
    if claim is not None and (lower is None or claim > lower.value):
        notes.append(
            f"{result.bounded_by} claims that no schedule is below {claim:,}; a solver's word is "
            "no proof, so the certificate does not claim it"
        )
        stopped = StopReason.NO_ENGINE if stopped is StopReason.PROVED else stopped
    provenance = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "versions": versions(),
        "seed": search.seed,
        "threads": search.threads,
        "time_limit": time_limit,
        "seconds": round(result.seconds, 3),
        "compile_seconds": round(result.compile_seconds, 3),
        "stop_reason": str(stopped),
        "found_by": found_by,
        "bounded_by": None if lower is None else lower.bounded_by,
    }
    return Certificate(
        instance=search.instance,
        upper=upper,
        lower=lower,
        runs=tuple(runs),
        provenance={
            key: value
            for key, value in provenance.items()
            if clock.is_even or key not in _OF_SEARCH
        },
        notes=(*result.faults, *notes),
        signal_number=result.signal_number,
        clock=clock,
    )


def _share(value: int | None, by: int | None) -> float | None:
    return None if value is None or not by else value / by
