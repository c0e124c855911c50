"""How many requests can be done in time, and how many are: what ``certify --deadline`` adds."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from kvopt.bounds.deadlines import Ceiling, deadline_ceiling
from kvopt.certificates.certificate import Certificate
from kvopt.errors import InvalidInput
from kvopt.heuristics.attaining.fleets import attaining_on_workers
from kvopt.heuristics.attaining.rounds import Attaining, attaining_in_rounds
from kvopt.heuristics.attaining.seconds import attaining_in_seconds
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.params import share_of
from kvopt.incumbent.proofs import DeadlinePrices
from kvopt.problem.clocks import Clock, Seconds
from kvopt.problem.deadlines import OWN, Aim, Deadline, attained
from kvopt.problem.instance import Instance
from kvopt.problem.scopes import Scope
from kvopt.search.exact.runs import AllRuns
from kvopt.timetable.runs import PolicyRun

_SEARCHED = "search for deadlines"
"""What the best run is called where a search found it."""


@dataclass(frozen=True, slots=True)
class InTime:
    """How many requests attain a deadline.

    Parameters
    ----------
    deadline
        Of all requests, or their own.
    after
        How long after its arrival, on the clock; None if each request has its own.
    ceiling, proof
        No schedule lets more attain, and the prices that prove it.
    sure_misses
        How many cannot even alone; None where a file was read, which does not say it.
    best
        The best run known.
    best_attained
        How many attain in it.
    attained
        The same of each run of the certificate, None where it never ended.
    """

    deadline: Deadline
    after: int | None
    ceiling: int
    proof: DeadlinePrices
    sure_misses: int | None
    best: PolicyRun | None
    best_attained: int | None
    attained: tuple[int | None, ...]

    def sentence(self, count: int) -> str:
        """Return what is proved, in words."""
        deadline = self.deadline
        what = "first tokens of" if deadline.aim is Aim.FIRST_TOKEN else "completions of"
        known = "no schedule is known" if self.best_attained is None else f"{self.best_attained:,}"
        said = (
            f"within {deadline.length}: {what} at most {self.ceiling:,} of {count:,} requests, "
            f"best known {known}"
        )
        if self.sure_misses:
            said += f"; {self.sure_misses:,} cannot even alone: sure misses"
        return said

    def to_json(self) -> dict[str, Any]:
        """Return what ``certify --json`` has at the top."""
        return {
            "deadline": str(self.deadline),
            "ceiling": self.ceiling,
            "best_attained": self.best_attained,
            "sure_misses": self.sure_misses,
        }

    def members(self) -> dict[str, Any]:
        """Return the object of a certificate file, but for the best run."""
        proof = self.proof
        prices = {
            "times": proof.times, "numerators": proof.numerators, "denominator": proof.denominator,
        }  # fmt: skip
        return {
            "aim": self.deadline.aim,
            "after": OWN if self.after is None else self.after,
            "ceiling": self.ceiling,
            "proof": {**prices, **({"lines": proof.lines} if proof.lines else {})},
            "attained": self.attained,
        }


def in_time_from(
    value: dict[str, Any], best: PolicyRun | None, said: object, instance: Instance, *, rounds: bool
) -> InTime:
    """Return what `InTime.members` gave, with the deadline as it is said where that is so."""
    after, aim = value["after"], Aim(value["aim"])
    length = None if after == OWN else int(after)
    deadline = Deadline(aim, length, None) if rounds else Deadline(aim, None, length)
    with suppress(InvalidInput):
        worded = Deadline.parse(said)
        if worded.aim is aim and worded.of_all(instance, rounds=rounds) == length:
            deadline = worded
    proof = value["proof"]
    return InTime(
        deadline=deadline,
        after=length,
        ceiling=value["ceiling"],
        proof=DeadlinePrices(
            tuple(proof["times"]), tuple(proof["numerators"]), proof["denominator"],
            tuple(proof.get("lines", ())),
        ),
        sure_misses=None,
        best=best,
        best_attained=None if value["best"] is None else value["best"]["attained"],
        attained=tuple(value["attained"]),
    )  # fmt: skip


class Attainment:
    """Looks for both sides of how many attain a deadline, and counts those of runs.

    Parameters
    ----------
    search
        What is asked when to stop, and how much time is left.
    clock
        As of `certify`.
    deadline
        What is asked for.
    """

    def __init__(self, search: Search, clock: Clock, deadline: Deadline) -> None:
        self._search, self._clock, self._deadline = search, clock, deadline
        self._instance = search.instance
        self._allowed = deadline.allowed(self._instance, rounds=clock.is_even)
        self._scope = Scope.RUNS
        self._ceiling: Ceiling | None = None
        self._found: Attaining | None = None

    def search(self, scope: Scope) -> None:
        """Look for prices, then for a schedule, before policies run."""
        search, self._scope = self._search, scope
        params = search.params.deadlines
        share = min(params.most_seconds, share_of(search.remaining, params.share))
        model = self._clock.batch_time if isinstance(self._clock, Seconds) else None

        def is_over() -> bool:
            return search.signal_number is not None

        self._ceiling = deadline_ceiling(
            self._instance, self._allowed, self._deadline.aim, model,
            scope=scope, time_limit=share, should_stop=is_over,
        )  # fmt: skip
        if not len(self._instance):
            return
        costs, aim = self._ceiling.costs, self._deadline.aim
        limits: dict[str, Any] = {"seed": search.seed, "time_limit": share, "should_stop": is_over}
        if model is None:
            self._found = attaining_in_rounds(self._instance, self._allowed, aim, costs, **limits)
        else:
            attaining = attaining_in_seconds
            if self._instance.workers > 1:
                attaining = attaining_on_workers
            self._found = attaining(self._instance, model, self._allowed, aim, costs, **limits)
        if self._found is not None and self._instance.workers == 1:
            runs = AllRuns(self._instance, model, self._allowed, aim)
            better = runs.best(
                self._found.count, self._ceiling.value, lambda: is_over() or search.remaining <= 0
            )
            self._found = better or self._found

    def count(self, run: PolicyRun) -> int | None:
        """Return how many attain in a run, None if it never ended."""
        if not run.is_complete:
            return None
        first = self._deadline.aim is Aim.FIRST_TOKEN
        times = run.first_tokens if first else run.completions
        return attained(times, run.arrivals, self._allowed)

    def result(self, found: Certificate) -> InTime | None:
        """Return both sides, and what the runs of a certificate attain; None if none is known."""
        if self._ceiling is None:
            return None
        upper, counts = found.upper, [self.count(run) for run in found.runs]
        known = [*zip(found.runs, counts, strict=True)]
        if upper is not None:
            best = upper if isinstance(upper, PolicyRun) else PolicyRun.of(upper, "")
            known.append((best, self.count(best)))
        most = self._best(self._candidates(known))
        return InTime(
            deadline=self._deadline,
            after=self._deadline.of_all(self._instance, rounds=self._clock.is_even),
            ceiling=self._ceiling.value,
            proof=self._ceiling.proof,
            sure_misses=self._ceiling.sure_misses,
            best=most and most[0],
            best_attained=most and most[1],
            attained=tuple(counts),
        )

    def _candidates(
        self, known: Iterable[tuple[PolicyRun, int | None]]
    ) -> Iterable[tuple[PolicyRun, int]]:
        """Yield what may be the best run, each with how many attain."""
        if self._found is not None and self._found.count >= 0:
            made = self._run_of(self._found)
            if broken := made.violations():
                raise AssertionError(broken[0])
            known = [(made, self.count(made)), *known]
        for run, count in known:
            if count is not None and self._scope.covers(run.scope):
                yield run, count

    def _run_of(self, found: Attaining) -> PolicyRun:
        """Return what the search found as a run."""
        resumed: list[dict[int, int]] = [{} for _ in range(self._instance.workers)]
        for number, time, worker in found.resumed:
            resumed[worker][number] = time
        return PolicyRun(
            self._instance, found.starts, found.workers, clock=self._clock, resumed=resumed,
            policy=_SEARCHED,
        )  # fmt: skip

    @staticmethod
    def _best(some: Iterable[tuple[PolicyRun, int]]) -> tuple[PolicyRun, int] | None:
        return max(some, key=lambda pair: pair[1], default=None)


def deadline_of(given: object) -> Deadline | None:
    """Return the deadline that was asked for, if one was."""
    return None if given is None else Deadline.parse(given)
