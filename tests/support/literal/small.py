"""Small instances for the tests, and what can be said of them from the definitions alone."""

import itertools
import random
from collections.abc import Sequence

from literal.common import Job


def together(prompt: int, *outputs: int, lower: int | None = None) -> list[Job]:
    upper = None if lower is None else max(outputs)
    return [Job(0, prompt, output, lower, upper) for output in outputs]


def peak(jobs: Sequence[Job], starts: Sequence[int]) -> int:
    """Return the most tokens held at any time, from the definition alone."""
    most = 0
    horizon = max((start + job.output for job, start in zip(jobs, starts, strict=True)), default=0)
    for time in range(horizon + 1):
        held = 0
        for job, start in zip(jobs, starts, strict=True):
            if start + 1 <= time <= start + job.output:
                held += job.prompt + time - start
        most = max(most, held)
    return most


def optimum(jobs: Sequence[Job], memory: int, horizon: int) -> int:
    best = None
    ranges = [range(job.arrival, horizon) for job in jobs]
    for starts in itertools.product(*ranges):
        if peak(jobs, starts) <= memory:
            total = sum(
                start + job.output - job.arrival for job, start in zip(jobs, starts, strict=True)
            )
            best = total if best is None else min(best, total)
    assert best is not None
    return best


def draw(generator: random.Random) -> tuple[list[Job], int]:
    memory = generator.randint(2, 12)
    jobs = []
    for _ in range(generator.randint(0, 6)):
        output = generator.randint(1, memory)
        prompt = generator.randint(0, memory - output)
        lower = generator.randint(1, output)
        upper = generator.randint(output, memory - prompt)
        jobs.append(
            Job(generator.choice([0, 0, generator.randint(0, 8)]), prompt, output, lower, upper)
        )
    return jobs, memory
