"""Evaluate proofs by volume: memory as a fluid resource."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Any

from kvopt.verify.certified_problem import Problem, Request
from kvopt.verify.step_budget import Prepared, Work, paired, refuse


def by_volume(problem: Problem, proof: dict[str, Any], _: Work) -> Prepared:
    """Prepare the bound of fluid resources: memory, M tokens in each round.

    A request needs v = s o + o (o + 1) / 2 token-rounds.  The j-th completion of a schedule is
    not before the j-th of the fluid, nor before the j-th smallest a + o.  At most as many
    states of a staircase as it has thresholds can occur together (Claim 3.14 of
    ``docs/theory/configurations.md``): another resource.  A limit of
    active requests is one of slots, of which a request needs its output.  Each worker of a fleet
    has as much of all.
    """
    memory, requests, staircases = problem.memory, problem.requests, proof.get("staircases", [])
    many = len(requests)
    # Each request passes all thresholds.
    steps = many * (100 * len(staircases) + 20 * sum(map(len, staircases)))

    def value() -> int:
        volumes = [r.prompt * r.output + r.output * (r.output + 1) // 2 for r in requests]
        resources = [(volumes, memory)]
        if problem.max_active is not None:
            resources.append(([request.output for request in requests], problem.max_active))
        for thresholds in staircases:
            is_formed = sorted(thresholds) == thresholds and min(thresholds, default=0) > 0
            refuse(not is_formed, "lower: thresholds of a staircase ascend, from 1 on")
            passed = [_passed(memory, thresholds, request) for request in requests]
            resources.append((passed, len(thresholds)))
        # No schedule has its j-th completion before entry j.
        earliest = sorted(request.arrival + request.output for request in requests)
        for needed, rate in resources:
            earliest = list(map(max, earliest, _fluid(requests, needed, problem.used * rate)))
        return sum(earliest) - sum(request.arrival for request in requests)

    return steps, lambda: (value(), "volume")


def _passed(memory: int, thresholds: list[int], request: Request) -> int:
    """Count the states of a staircase that a request passes.

    They are the (h, r), tokens held and rounds to go, with i >= 1 thresholds up to h, and
    h + (i + 1) r + their sum > M.  After g rounds h = s + g and r = o - g:
    then i g < s + (i + 1) o + their sum - M.
    """
    count = total = 0
    prompt, output = request.prompt, request.output
    for i, (low, high) in enumerate(zip(thresholds, [*thresholds[1:], memory + 1]), 1):
        total += low
        last = min(output, high - 1 - prompt, (prompt + (i + 1) * output + total - memory - 1) // i)
        count += max(0, last - max(1, low - prompt) + 1)
    return count


def _fluid(requests: list[Request], volumes: list[int], rate: int) -> list[int]:
    """Return completions of the fluid that serves the least remaining volume first, ascending.

    By every time it completes as many requests as any schedule can (Claim 2.2 of
    ``docs/theory/bounds.md``).  Time is counted in units:
    round t is the units (t - 1) rate + 1 .. t rate.
    """
    jobs = [(r.arrival * rate, 0, v) for r, v in paired(requests, volumes)]
    return [-(-end // rate) for _, _, end, is_done in serve(jobs) if is_done]


def serve(jobs: list[tuple[int, int, int]]) -> Iterator[tuple[int, int, int, bool]]:
    """Serve jobs (arrival, rank, amount): always one of the least rank, then the least remaining.

    Yield intervals (rank, begin, end), and whether a job was done at the end.
    """
    arriving, clock = sorted(jobs, reverse=True), 0
    waiting: list[tuple[int, int]] = []
    while arriving or waiting:
        if not waiting:
            clock = max(clock, arriving[-1][0])
        while arriving and arriving[-1][0] <= clock:
            heappush(waiting, arriving.pop()[1:])
        rank, left = heappop(waiting)
        end = min(clock + left, arriving[-1][0]) if arriving else clock + left
        if end < clock + left:
            heappush(waiting, (rank, clock + left - end))
        yield rank, clock, end, end == clock + left
        clock = end
