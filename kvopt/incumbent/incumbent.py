"""The one place where claims of engines become results.

An engine never returns anything.  It offers starts and bounds to a `Search`, which checks
the starts in integers, cross-checks the bounds, keeps the best of both, tells observers
and tells when to stop.  So a limit or an interrupt can fall anywhere and both sides of
the answer survive it.
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from kvopt.errors import MissingSolver, SolverFault, Stopped, TooLarge
from kvopt.incumbent.in_time import Ceiling, InTime, attained_in
from kvopt.incumbent.limits import Limits, Observer, ignore, never
from kvopt.incumbent.proofs import CheckedBound, Proof
from kvopt.incumbent.result import (
    BoundSource,
    Progress,
    ServerAnswer,
    SolveResult,
    StageLog,
    Status,
    StopReason,
)
from kvopt.kernels import memory
from kvopt.kernels.budget import Budget, wall_time
from kvopt.kernels.solver_versions import versions
from kvopt.problem.instance import Instance
from kvopt.problem.problem import Problem, as_problem
from kvopt.timetable.policy_run import PolicyRun
from kvopt.timetable.schedule import Schedule

_LOGGER = logging.getLogger("kvopt")


class Search:
    """Both sides of one search: the best schedule, the best bound, and what was noted on the way.

    Thread-safe: solvers call back from threads of their own.

    Parameters
    ----------
    problem
        The problem to solve; an instance alone means rounds, without pauses.
    limits
        Its options; time counts from now.
    budget
        What it may take, by default as the limits tell.
    checkable
        Whether bounds are wanted with a proof that can be checked again, even if that takes
        longer than to trust an exhaustive search.

    Attributes
    ----------
    granted, budget
        The budget that it was given, and the part of it that ends with a proof, or a small gap.
    best
        The best schedule.
    schedule
        The best schedule in rounds without pauses, given by its starts.
    stages
        Stages that ran, with their times and gains.
    servers
        The best settings of a server by kind.
    eager
        Total latency of the one eager schedule, None unless there is one.
    ceiling, best_in_time, attained_count
        Upper bound on the requests that attain the service level, the run in which most do, and
        their number.
    """

    def __init__(
        self,
        problem: Problem | Instance,
        limits: Limits | None = None,
        *,
        budget: Budget | None = None,
        checkable: bool = False,
    ) -> None:
        self.problem, self.checkable = as_problem(problem), checkable
        self.instance, self.clock = self.problem.instance, self.problem.clock
        self.limits = limits = limits or Limits()
        self.granted = Budget(limits.time_limit, ram=limits.ram) if budget is None else budget
        self.budget = self.granted.part(until=self._is_settled)
        self.best: Schedule | None = None
        self.schedule: Schedule | None = None
        self.lower_bound: int | None = None
        self.bound_source: BoundSource | None = None
        self.found_by: str | None = None
        self.bounded_by: str | None = None
        self.engine = "start"
        self.stages: dict[str, StageLog] = {}
        self.ceiling: Ceiling | None = None
        self.best_in_time: PolicyRun | None = None
        self.attained_count = -1
        self.eager: int | None = None
        self.faults: list[str] = []
        self.notes: list[str] = []
        self.checked: CheckedBound | None = None
        self.servers: dict[str, ServerAnswer] = {}
        self._failure: BaseException | None = None
        self._lock = threading.RLock()
        self._spent = {"build": 0.0, "solve": 0.0}

    # ---- offers of engines ------------------------------------------------------------

    def offer_starts(
        self, starts: Sequence[int], found_by: str, workers: Sequence[int] = ()
    ) -> bool:
        """Keep the starts if they are feasible and better; return whether they were kept.

        For a fleet also give the worker of each request.
        """
        return self.offer(Schedule(self.instance, starts, workers), found_by)

    def offer(self, schedule: Schedule, found_by: str) -> bool:
        """Keep a schedule if it is feasible, within the scope, and better; return whether it is.

        A schedule that was checked before is not checked again.
        """
        theirs, ours = schedule.instance, self.instance
        if theirs is not ours and theirs.hash != ours.hash:
            raise ValueError("the schedule is for another instance")
        if not (schedule.is_complete and self.problem.scope.covers(schedule.scope)):
            return False
        broken = schedule.violations()
        with self._lock:
            if broken:
                self.fault(f"{found_by} offered an infeasible schedule: {broken[0]}")
                return False
            if self.problem.slo is not None:
                attained = attained_in(schedule, self.problem.slo)
                if attained is not None and attained > self.attained_count:
                    self.best_in_time = PolicyRun.of(schedule, found_by)
                    self.attained_count = attained
            if self.objective is not None and schedule.objective >= self.objective:
                return False
            self.best, self.found_by = schedule, found_by
            if schedule.is_plain:
                self.schedule = schedule
            self._cross_check()
            self._tell()
            return True

    @property
    def in_time(self) -> InTime | None:
        """Bounds on the number of requests that attain the service level, None if unknown."""
        ceiling, slo = self.ceiling, self.problem.slo
        if ceiling is None or slo is None:
            return None
        return InTime(
            slo=slo,
            count=len(self.instance),
            ceiling=ceiling.value,
            proof=ceiling.proof,
            sure_misses=ceiling.sure_misses,
            best=self.best_in_time,
            relaxations=ceiling.relaxations,
        )

    def offer_checked(
        self, value: int, bounded_by: str, proof: Proof, relaxations: tuple[str, ...] = ()
    ) -> None:
        """Keep a lower bound that was re-evaluated in integers, with its proof."""
        self.offer_bound(CheckedBound(value, bounded_by, proof, relaxations))

    def offer_bound(self, bound: CheckedBound) -> None:
        """Keep a lower bound that came with its proof."""
        with self._lock:
            if self.checked is None or bound.value > self.checked.value:
                self.checked = bound
            self._keep_bound(bound.value, BoundSource.CHECKED, bound.bounded_by)

    def offer_claimed(self, value: int, bounded_by: str) -> None:
        """Keep a lower bound that is a claim of a solver."""
        with self._lock:
            self._keep_bound(value, BoundSource.SOLVER, bounded_by)

    def fault(self, what: str) -> None:
        """Record that a solver claimed something an exact check refutes."""
        with self._lock:
            if what not in self.faults:
                self.faults.append(what)
                warnings.warn(what, SolverFault, stacklevel=3)

    def note(self, text: str) -> None:
        """Record a remark about the answer for users."""
        with self._lock:
            if text not in self.notes:
                self.notes.append(text)

    @property
    def is_led_by_server(self) -> bool:
        """Whether the best schedule is the run of a server with the best settings."""
        best = self.servers.get("all")
        return best is not None and best.objective == self.objective

    def answer_server(self, kind: str, answer: ServerAnswer) -> None:
        """Keep settings of a server if they are the best of their kind."""
        with self._lock:
            before = self.servers.get(kind)
            if before is None or answer.objective < before.objective:
                self.servers[kind] = answer

    def inside(
        self,
        problem: Problem | Instance,
        budget: Budget | None = None,
        *,
        observer: Observer = ignore,
    ) -> Search:
        """Return a search of another problem, with the engine and the options of this one.

        Its instance is that of a part, or in blocks.  By default it ends with this one.
        """
        limits = replace(self.limits, observer=observer, stop=never, gap=None)
        wanted = problem if isinstance(problem, Problem) else self.problem.of(problem)
        budget = self.budget.part() if budget is None else budget
        inner = Search(wanted, limits, budget=budget, checkable=self.checkable)
        inner.engine = self.engine
        return inner

    def work_inside(
        self,
        problem: Problem | Instance,
        work: Callable[[Search], object],
        budget: Budget | None = None,
        *,
        takes: Collection[str],
        warm_start: bool = False,
        more: int = 0,
        relaxations: tuple[str, ...] = (),
    ) -> None:
        """Run work on another problem, see `inside`, and take its results at once.

        It takes its ``schedules`` with the same starts, its ``bounds`` with their proofs, plus
        ``more``, and its ``claims``, as the arguments tell; ``relaxations`` lead to that problem.
        With a warm start the other search begins from the schedules of this one, and from its bound
        if bounds and claims are those of this problem.
        """

        def hear(_: object) -> None:
            if "schedules" in takes and inner.best is not None:
                self.offer(_moved(inner.best, self.instance), inner.found_by or inner.engine)
            if "bounds" in takes and (bound := inner.checked) is not None:
                steps = (*relaxations, *bound.relaxations)
                self.offer_checked(bound.value + more, bound.bounded_by, bound.proof, steps)
            if "claims" in takes and inner.lower_bound is not None:
                self.offer_claimed(inner.lower_bound + more, inner.bounded_by or inner.engine)

        inner = self.inside(problem, budget, observer=hear)
        for candidate in (self.best, self.schedule) if warm_start else ():
            if candidate is not None:
                inner.offer(_moved(candidate, inner.instance), self.found_by or inner.engine)
        if warm_start and self.checked is not None and {"bounds", "claims"} <= {*takes}:
            inner.offer_bound(self.checked)
        try:
            with inner.surviving():
                work(inner)
        finally:
            self.take_notes(inner)

    def take_notes(self, other: Search) -> None:
        """Move the notes, times and stages of a search of a part here."""
        with self._lock:
            self.faults += [fault for fault in other.faults if fault not in self.faults]
        self._count_stages(other.stages.values())
        for note in other.notes:
            self.note(note)
        for phase, seconds in other._spent.items():
            self.count_time(phase, seconds)
        other.stages, other._spent = {}, dict.fromkeys(other._spent, 0.0)

    @contextmanager
    def counting(self, stage: str) -> Iterator[None]:
        """Count the time of a stage, and its gains."""
        began, objective, bound = wall_time(), self.objective, self.lower_bound
        try:
            yield
        finally:
            now = self.objective
            fell = 0 if objective is None or now is None else objective - now
            rose = (self.lower_bound or 0) - (bound or 0)
            is_first = objective is None and now is not None
            log = StageLog(stage, wall_time() - began, fell, rose, is_first)
            _LOGGER.debug("%s", log)
            self._count_stages([log])

    def _count_stages(self, logs: Iterable[StageLog]) -> None:
        """Add to the logs of stages."""
        with self._lock:
            for log in logs:
                before = self.stages.get(log.name, StageLog(log.name))
                self.stages[log.name] = before.plus(log)

    @contextmanager
    def timing(self, phase: str) -> Iterator[None]:
        """Count the time of a block as ``build`` or ``solve``."""
        begin = wall_time()
        try:
            yield
        finally:
            self.count_time(phase, wall_time() - begin)

    def count_time(self, phase: str, seconds: float) -> None:
        """Add time spent elsewhere, for instance in a child process, to ``build`` or ``solve``."""
        with self._lock:
            self._spent[phase] += seconds

    # ---- questions of engines ---------------------------------------------------------

    @property
    def objective(self) -> int | None:
        """Total latency of the best schedule, None without one."""
        return None if self.best is None else self.best.objective

    @property
    def proof(self) -> Proof | None:
        """The proof of the best checked bound, None without one."""
        return None if self.checked is None else self.checked.proof

    @property
    def progress(self) -> Progress:
        """Schedule and bound so far."""
        with self._lock:
            return Progress(self.objective, self.lower_bound, self.granted.spent, self.engine)

    @property
    def proved(self) -> bool:
        """Whether the schedule meets the bound."""
        with self._lock:
            return self.objective is not None and self.objective == self.lower_bound

    @contextmanager
    def surviving(self, name: str | None = None) -> Iterator[None]:
        """End a block that is too large, or lacks memory or a package, with a note.

        A block that had to stop ends without one.  Without a name it names the current engine.
        """
        try:
            yield
        except Stopped:
            pass
        except (MissingSolver, TooLarge) as error:
            self.note(f"{name or self.engine}: {error}")
        except MemoryError:
            memory.give_back()
            self.note(f"{name or self.engine}: ended, as the machine ran out of memory")

    # ---- the result -------------------------------------------------------------------

    def result(self, engine: str) -> SolveResult:
        """Return both sides as a result; an error of a caller's callback is raised here."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            return SolveResult(
                problem=self.problem,
                status=self._status(),
                stop_reason=self._reason() or StopReason.NO_ENGINE,
                schedule=self.best,
                lower_bound=self.lower_bound,
                bound_source=self.bound_source,
                engine=engine,
                found_by=self.found_by,
                bounded_by=self.bounded_by,
                seconds=self.granted.spent,
                build_seconds=self._spent["build"],
                solve_seconds=self._spent["solve"],
                seed=self.limits.seed,
                threads=self.limits.threads,
                versions=versions(),
                signal_number=self.granted.signal_number,
                checked=self.checked,
                faults=tuple(self.faults),
                notes=tuple(self.notes),
                stages=tuple(self.stages.values()),
                in_time=self.in_time,
                settings={
                    kind: answer.to_json(self.instance, self.clock)
                    for kind, answer in self.servers.items()
                },
                eager=self.eager,
            )

    # ---- inside -----------------------------------------------------------------------

    def _status(self) -> Status:
        if self.objective is None:
            return Status.UNKNOWN
        return Status.OPTIMAL if self.proved else Status.FEASIBLE

    def _reason(self) -> StopReason | None:
        if self.proved:
            return StopReason.PROVED
        if self.granted.is_interrupted or self._failure is not None:
            return StopReason.INTERRUPTED
        if self._is_settled():
            return StopReason.GAP
        return None if self.granted.left else StopReason.TIME_LIMIT

    def _is_settled(self) -> bool:
        """Whether the answer suffices, or an error of a caller's function ended the search."""
        try:
            return self.proved or self._failure is not None or self.limits.suffices(self.progress)
        except Exception as error:
            self._failure = error  # raised by result(), not inside a solver's callback
            return True

    def _tell(self) -> None:
        try:
            self.limits.observer(self.progress)
        except Exception as error:
            self._failure = error

    def _keep_bound(self, value: int, source: BoundSource, bounded_by: str) -> None:
        """Keep a bound if it is better than the best so far, or as good and checked."""
        same = value == self.lower_bound and self.bound_source is not source
        upgrade = same and source is BoundSource.CHECKED
        if self.lower_bound is None or value > self.lower_bound or upgrade:
            self.lower_bound, self.bound_source, self.bounded_by = value, source, bounded_by
            self._cross_check()
            self._tell()

    def _cross_check(self) -> None:
        """Drop a solver's bound that a checked schedule refutes."""
        if self.objective is None or (self.lower_bound or 0) <= self.objective:
            return
        claim = f"{self.bounded_by} claimed that no schedule is below {self.lower_bound}"
        if self.bound_source is BoundSource.CHECKED:
            raise AssertionError(f"{claim}, and a checked one has {self.objective}")
        self.fault(f"{claim}, but a checked schedule has {self.objective}")
        self.lower_bound = self.bound_source = self.bounded_by = None
        if self.checked is not None:
            self.lower_bound, self.bounded_by = self.checked.value, self.checked.bounded_by
            self.bound_source = BoundSource.CHECKED


def _moved(schedule: Schedule, instance: Instance) -> Schedule:
    """Return the same starts in another instance, on its first workers if it has fewer."""
    if schedule.instance is instance:
        return schedule
    if schedule.instance.workers <= instance.workers:
        return replace(schedule, instance=instance)
    used = sorted({*schedule.workers})
    workers = [used.index(worker) for worker in schedule.workers]
    resumed = [schedule.resumed[worker] for worker in used if worker < len(schedule.resumed)]
    return replace(schedule, instance=instance, workers=workers, resumed=resumed)
