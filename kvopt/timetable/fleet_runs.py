"""What a fleet did: a run of each worker, put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeVar

from kvopt.problem.clocks import Stretch
from kvopt.show.summary import Facts
from kvopt.timetable.runs import Chunks, Lost, Outcome, PolicyRun
from kvopt.timetable.schedule import Schedule

Row = TypeVar("Row", Lost, Chunks)


def _part(run: PolicyRun, members: Sequence[int], resumed: Mapping[int, int]) -> PolicyRun:
    """Return what a worker did with its requests, which has rounds of its own."""
    place = {i: position for position, i in enumerate(members)}

    def own(rows: Sequence[Row]) -> tuple[Row, ...]:
        return tuple(
            row._replace(request=place[row.request]) for row in rows if row.request in place
        )

    starts = tuple(run.starts[i] for i in members)
    return replace(
        run,
        instance=run.instance.of_one_worker(members),
        starts=starts,
        lost=own(run.lost),
        outcome=Outcome.LIVELOCK if None in starts else Outcome.COMPLETED,
        resumed={} if run.clock.is_even else resumed,
        segments=tuple(run.segments[i] for i in members if run.segments),
        chunks=own(run.chunks),
    )


@dataclass(frozen=True, repr=False)
class FleetRun(PolicyRun):
    """What a scheduler did on the workers of a fleet.

    Rounds are numbered by each worker for itself.

    Parameters
    ----------
    router
        How requests came to workers, as it was given.
    workers
        The worker of each request; None for what was never started.
    parts
        The run of each worker, on its requests in the order of the whole.
    """

    router: str = "central"
    workers: tuple[int | None, ...] = ()
    parts: tuple[PolicyRun, ...] = ()

    @classmethod
    def of(
        cls,
        run: PolicyRun,
        workers: Sequence[int | None],
        resumed: Mapping[int, Mapping[int, int]],
        router: str = "central",
    ) -> Self:
        """Return a run of a fleet whose columns are in a run of all its requests.

        Of each worker ``resumed`` says when it began to work after it was idle.
        """
        members: list[list[int]] = [[] for _ in range(run.instance.workers)]
        for i, worker in enumerate(workers):
            if worker is not None:
                members[worker].append(i)
        parts = [_part(run, mine, resumed.get(w, {})) for w, mine in enumerate(members)]
        return cls(
            run.instance, run.policy, run.starts, run.lost, run.outcome, run.wall_seconds,
            run.note, run.clock, segments=run.segments, chunks=run.chunks, router=router,
            workers=tuple(workers), parts=tuple(parts),
        )  # fmt: skip

    def facts(self) -> Facts:
        """Return what a summary says."""
        return {**super().facts(), "workers": self.instance.workers, "router": self.router}

    @cached_property
    def schedule(self) -> Schedule | None:
        """The last starts as a schedule; see `PolicyRun.schedule`."""
        starts = [start for start in self.starts if start is not None]
        workers = [worker for worker in self.workers if worker is not None]
        is_one = self.clock.is_even and len(starts) == len(self.starts) and not self.pauses
        return Schedule(self.instance, starts, workers) if is_one else None

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """What each worker did in order, one worker after the other."""
        return tuple(stretch for part in self.parts for stretch in part.stretches)

    @cached_property
    def start_times(self) -> tuple[int | None, ...]:
        """When each request started for the last time."""
        return self._together(lambda part: part.start_times)

    @cached_property
    def first_tokens(self) -> tuple[int | None, ...]:
        """When the round that produced each request's first token ended."""
        return self._together(lambda part: part.first_tokens)

    @cached_property
    def completions(self) -> tuple[int | None, ...]:
        """When each request finished."""
        return self._together(lambda part: part.completions)

    @cached_property
    def peak_memory(self) -> int:
        """Most tokens that a worker held at one time."""
        return max(part.peak_memory for part in self.parts)

    def violations(self) -> list[str]:
        """Return what breaks the rules of the problem, worker by worker."""
        served = [sum(worker == each for worker in self.workers) for each in range(len(self.parts))]
        if [len(part.instance) for part in self.parts] != served:
            return ["the runs of the workers are not those of their requests"]
        return [
            f"worker {number}: {text}"
            for number, part in enumerate(self.parts)
            for text in part.violations()
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``kvopt run --json`` prints for this policy."""
        return {**super().to_json(), "router": self.router, "workers": list(self.workers)}

    def _together(
        self, times: Callable[[PolicyRun], Sequence[int | None]]
    ) -> tuple[int | None, ...]:
        """Return the times of all requests, taken from the runs of their workers."""
        of_parts = [iter(times(part)) for part in self.parts]
        return tuple(None if worker is None else next(of_parts[worker]) for worker in self.workers)
