"""``machine_time_bound``: machine time of requests that attain, however often numbers change.

Let a unit of machine time at t cost u(t) <= 1.  A machine that is on for a while sells at most
the length of that while, so the time of all machines is at least what requests pay.  A request that
attains pays the least with u = 1 exactly what it takes, X_i, and no price up to 1 lets it pay more:
so u = 1 is best.  Of a group of which so many may miss those with the largest X_i may be the ones.

In rounds X_i is the volume of a request over the memory of a machine; in seconds its part of the
`fluid <kvopt.bounds.seconds>`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kvopt.bounds.seconds_evaluation import shares
from kvopt.bounds.shares import Processed, shared_out
from kvopt.problem.batch_time import BatchTime, Line
from kvopt.problem.instance import Instance
from kvopt.problem.requests import volume_of
from kvopt.problem.scopes import Scope

Group = tuple[Sequence[int], int]
"""Positions of requests, and how many of them may miss."""


def machine_time_bound(
    instance: Instance,
    groups: Iterable[Group],
    model: BatchTime | None = None,
    *,
    scope: Scope = Scope.RUNS,
) -> int:
    """Return a time that the machines of any schedule are on together, rounded up.

    Parameters
    ----------
    instance, model
        The problem; without a model in rounds.
    groups
        Requests, of each group all but so many attain.
    scope
        Scope of the schedules.

    Examples
    --------
    >>> from kvopt import Request
    >>> machine_time_bound(Instance(4, [Request(0, 2, 2)] * 3), [(range(3), 1)])
    4
    """
    chosen = [(list(members), misses) for members, misses in groups]
    plain = shared_out(instance.in_tokens(), chunks=scope.covers(Scope.CHUNKS))
    totals = (
        sum(
            sum(sorted(takes[i] for i in members)[: max(len(members) - misses, 0)])
            for members, misses in chosen
        )
        for takes in _machine_times(plain, instance.forest.private, model, scope)
    )
    return -(-max(totals) // plain.memory)


def _machine_times(
    plain: Instance, fresh: Sequence[int], model: BatchTime | None, scope: Scope
) -> Iterator[list[int]]:
    """Yield machine times of all requests, times the memory of a machine, by lines of the model."""
    if model is None:
        yield [volume_of(request.prompt, request.output) for request in plain]
        return
    done = Processed(fresh, [()] * len(plain))
    chosen: list[Sequence[Line]] = [(line,) for line in model.lines]
    if len(model.lines) > 1 and not scope.covers(Scope.CHUNKS):  # one line covers pieces
        chosen.append(model.lines)
    for lines in chosen:
        yield shares(plain, model, lines, object, done=done).takes.tolist()
