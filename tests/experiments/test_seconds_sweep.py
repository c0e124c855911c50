"""The grid of alpha: what it runs, and which alpha is safe."""

from __future__ import annotations

from fractions import Fraction

from effort import examples
from hypothesis import given
from strategies import instances

from kvopt import BatchTime, Instance, Line, Outcome, Request
from kvopt.experiments.grids import HUNDREDTHS, alpha_grid, smallest_safe_alpha
from kvopt.problem.clocks import Seconds
from kvopt.simulate.running import run as simulate
from kvopt.timetable.runs import PolicyRun

MODEL = BatchTime([Line(100, 3)], kv_ns=1)
TWO = Instance(6, [Request(0, 0, 5), Request(0, 0, 5)])
TENTHS = [Fraction(k, 10) for k in range(10)]


def outcome(outcome: Outcome) -> PolicyRun:
    """Return a run of the two requests that has the outcome."""
    alpha = "0" if outcome is Outcome.LIVELOCK else "0.7"
    run = simulate(TWO, f"alpha-protect:alpha={alpha}", clock=Seconds(MODEL))
    assert run.outcome is outcome
    return run


def test_the_grid_of_the_paper_has_steps_of_a_hundredth() -> None:
    assert [str(float(alpha)) for alpha in HUNDREDTHS[:3]] == ["0.0", "0.01", "0.02"]
    assert HUNDREDTHS[-1] == Fraction(3, 10)


def test_two_requests_that_must_not_run_together() -> None:
    """They start together while 1 + 1 tokens are within (1 - alpha) 6, and never both fit.

    Below 1 token no request starts at all, which is a livelock too.
    """
    grid = alpha_grid(TWO, Seconds(MODEL), [Fraction(k, 12) for k in range(12)])
    done = [alpha for alpha, run in grid if run.outcome is Outcome.COMPLETED]
    assert done == [Fraction(9, 12), Fraction(10, 12)]
    assert smallest_safe_alpha(grid[:11]) == Fraction(9, 12)
    assert smallest_safe_alpha(grid) is None


def test_safe_is_where_nothing_above_loops() -> None:
    loop, done = outcome(Outcome.LIVELOCK), outcome(Outcome.COMPLETED)
    pattern = [done, loop, done, loop, done, done]
    grid = list(zip(TENTHS, pattern, strict=False))
    assert smallest_safe_alpha(grid) == Fraction(4, 10)
    assert smallest_safe_alpha(grid[::-1]) == Fraction(4, 10)
    assert smallest_safe_alpha(grid[:4]) is None
    assert smallest_safe_alpha(grid[:1]) == 0
    assert smallest_safe_alpha([]) is None


@examples(20)
@given(instances(last_arrival=0))
def test_above_the_safe_alpha_every_run_of_the_grid_completes(instance: Instance) -> None:
    grid = alpha_grid(instance, Seconds(MODEL), TENTHS)
    safe = smallest_safe_alpha(grid)
    for alpha, run in grid:
        if safe is not None and alpha >= safe:
            assert run.completed == len(instance)
