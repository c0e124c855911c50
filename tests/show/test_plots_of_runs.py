"""Pictures of runs: what is counted is true, on any clock, and notebooks show it."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from commands import Run
from hypothesis import given
from hypothesis import strategies as st
from strategies import instances, random_starts

from kvopt import (
    BatchTime,
    Instance,
    InvalidInput,
    Line,
    PolicyRun,
    Request,
    Schedule,
    certify,
    compare,
    generate,
    run,
    solve,
    write_instance,
)
from kvopt.problem.clocks import ROUNDS, Clock, Seconds
from kvopt.show.plots import Bar, bands, intervals, new_figure, plot_runs, plot_schedule, rows
from kvopt.show.plots.style import CROWDED, figure_of
from kvopt.show.plots.timeline import Curve, thinned

CLOCK = Seconds(BatchTime([Line(40_000_000, 100_000)], kv_ns=80))
SMALL = generate("arrival-1", n=6, seed=3)
MANY = generate("conversation", n=CROWDED + 50, memory=4000, seed=1)
POLICIES = ("mc-sf", "fcfs", "alpha-beta:alpha=0,beta=0.5,seed=1", "alpha-protect:alpha=0.2")


def at(curve: Curve, time: float) -> int:
    """Return the height of a curve of steps after a time."""
    times, heights = curve
    return int([0, *heights][int(np.searchsorted(times, time, side="right"))])


@pytest.mark.parametrize("clock", [ROUNDS, CLOCK], ids=["rounds", "seconds"])
@pytest.mark.parametrize("policy", POLICIES)
def test_at_each_time_the_counts_are_those_of_the_run(clock: Clock, policy: str) -> None:
    made = run(SMALL, policy, clock=clock)
    timeline, scale = made.timeline(), clock.scale
    busy, waiting = timeline.counted("running"), timeline.counted("waiting")
    for stretch in made.stretches:
        middle = (stretch.began + stretch.ended) / 2 / scale
        assert at(busy, middle) == stretch.active
        arrived = sum(arrival < stretch.ended for arrival in made.arrivals)
        gone = sum(end is not None and end <= stretch.began for end in made.completions)
        assert at(waiting, middle) == arrived - gone - stretch.active
    assert sum(piece.is_lost for piece in timeline.work) == made.evictions
    assert sum(not piece.is_lost for piece in timeline.work) == made.completed


@given(instances(), st.integers(0, 99))
def test_a_schedule_is_counted_as_it_is(instance: Instance, seed: int) -> None:
    schedule = Schedule(instance, random_starts(instance, random.Random(seed)))
    curve = schedule.timeline().counted("running")
    for time in range(schedule.makespan + 1):
        spans = zip(schedule.starts, schedule.completions, strict=True)
        assert at(curve, time + 0.5) == sum(k <= time < c for k, c in spans)


@pytest.mark.parametrize("clock", [ROUNDS, CLOCK], ids=["rounds", "seconds"])
@pytest.mark.parametrize("policy", POLICIES)
def test_tokens_fall_upright_and_are_those_held(clock: Clock, policy: str) -> None:
    made = run(SMALL, policy, clock=clock)
    times, held = made.timeline().held()
    ends = held[0], held[-1], max(held)
    assert ends == pytest.approx((0, 0, made.peak_memory), abs=1e-6)
    assert [*times] == sorted(times)
    for stretch in made.stretches:
        just_before = stretch.ended / clock.scale - 1e-9
        expected = np.interp(just_before, times, held)
        assert expected == pytest.approx(stretch.held_last, abs=1e-4)


def test_thinning_keeps_what_can_be_seen() -> None:
    times = np.arange(100_000.0)
    heights = np.zeros(100_000)
    heights[54_321] = 7
    shown, values = thinned((times, heights))
    assert len(shown) == len(values) < 9_000
    assert (shown[0], shown[-1], max(values)) == (0, 99_999, 7)
    assert [*shown] == sorted(shown)
    assert abs(shown[int(np.argmax(values))] - 54_321) < 60
    assert len(thinned((times[:100], heights[:100]))[0]) == 100


def test_many_requests_become_bands() -> None:
    made = run(MANY, "svf")
    assert made.schedule is not None
    labels = [ax.get_ylabel() for ax in plot_schedule(made.schedule).axes]
    assert labels == ["waiting requests", "running requests", "tokens held"]
    assert [ax.get_ylabel() for ax in plot_schedule(made).axes] == labels
    assert rows(made).get_ylabel() == "running and waiting requests"
    assert plot_schedule(made).axes[0].get_ylim()[1] >= max(made.timeline().counted("waiting")[1])


def test_runs_side_by_side_share_their_scales() -> None:
    found = compare(SMALL, POLICIES)
    for runs in (found.runs, found.runs[:2], found.runs[:3]):
        figure = plot_runs(runs)
        assert len(figure.axes) == 2 * len(runs)
        assert len({ax.get_xlim() for ax in figure.axes}) == 1
        assert len({ax.get_ylim() for ax in figure.axes if ax.get_ylabel() == "tokens held"}) == 1
        titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
        assert [title.partition(": ")[0] for title in titles] == [each.policy for each in runs]
    assert "livelock" in plot_schedule(found[3]).get_suptitle()
    other = run(Instance(9, [Request(0, 1, 2)]), "svf")
    with pytest.raises(InvalidInput, match="another instance"):
        plot_runs([found[0], other])


def test_times_of_a_run_in_seconds_are_seconds() -> None:
    made = run(SMALL, "mc-sf", clock=CLOCK)
    figure = made.plot()
    assert figure.axes[-1].get_xlabel() == "time (seconds)"
    assert figure.axes[-1].get_xlim()[1] == pytest.approx(made.makespan / 1e9, rel=0.02)


@pytest.mark.slow
def test_a_notebook_shows_pictures_by_itself() -> None:
    made = run(SMALL, "mc-sf")
    assert made.schedule is not None
    figures = [
        SMALL.plot(), made.schedule.plot(), made.plot(), compare(SMALL, ["svf"]).plot(),
        solve(SMALL).plot(), certify(SMALL, ["svf"]).plot(),
    ]  # fmt: skip
    for figure in figures:
        picture = figure._repr_png_()  # type: ignore[attr-defined]
        assert picture.startswith(b"\x89PNG")
        assert len(picture) < 150_000
    assert "proved optimal" in (figures[4].get_suptitle())


def test_a_panel_is_drawn_on_the_axes_of_the_caller() -> None:
    made = run(SMALL, "mc-sf")
    assert made.schedule is not None
    for thing in (made, made.schedule, solve(SMALL), certify(SMALL, ["svf"])):
        figure = new_figure(3)
        assert thing.plot(ax=figure.subplots()) is figure
        assert len(figure.axes) == 1


def test_what_has_no_schedule_cannot_be_drawn() -> None:
    with pytest.raises(InvalidInput, match="schedule: has found none"):
        solve(SMALL, time_limit=0, quick_start=False).plot()


def test_intervals_show_open_ends() -> None:
    rows = [("a", 1.2, 1.5), ("b", None, 1.3), ("c", 1.1, None), ("$x_{ $", 1.0, 1.0)]
    ax = intervals([Bar(*row) for row in rows])
    figure_of(ax).draw_without_rendering()
    widths = [bar.get_width() for bar in ax.patches]  # type: ignore[attr-defined]
    assert widths[:2] == pytest.approx([0.3, 0.3])
    assert ax.patches[2].get_x() + widths[2] == ax.get_xlim()[1]  # type: ignore[attr-defined]


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("clock", [ROUNDS, CLOCK], ids=["rounds", "seconds"])
def test_few_requests_can_be_drawn(count: int, clock: Clock, tmp_path: Path) -> None:
    made: PolicyRun = run(Instance(9, [Request(0, 1, 2)] * count), "svf", clock=clock)
    plot_schedule(made, tmp_path / "r.png")
    assert bands(made).get_ylim()[1] > 1


@pytest.mark.slow
def test_the_command_draws_several_and_livelocks(run: Run, tmp_path: Path) -> None:
    file, picture = tmp_path / "i.json", tmp_path / "p.svg"
    write_instance(SMALL, file)
    for more in (("-P", "fcfs", "--seconds"), ("-P", "alpha-protect:alpha=0.2"), ("--seconds",)):
        assert run("plot", file, "-P", "mc-sf", *more, "-o", picture)[0] == 0
        text = picture.read_text()
        assert "mc-sf: latency mean" in text
        assert ("time (seconds)" in text) == ("--seconds" in more)
