"""Pictures: the numbers drawn are exact, files are whole, and large cases stay light."""

from __future__ import annotations

import random
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from strategies import instances, random_starts

from kvopt.errors import InvalidInput
from kvopt.problem.instance import Instance
from kvopt.problem.requests import Request
from kvopt.show.plots import memory_profile, new_figure, plot_instance, plot_schedule, rows, save
from kvopt.show.plots.style import label_step
from kvopt.timetable.schedule import Schedule

STARTS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
"""Suffixes, and how a file of each begins."""


def one_after_another(instance: Instance, lanes: int = 4) -> Schedule:
    """Return a schedule in which each of a few lanes runs its requests in turn."""
    free = [0] * lanes
    starts = []
    for i, request in enumerate(instance):
        start = max(free[i % lanes], request.arrival)
        starts.append(start)
        free[i % lanes] = start + request.output
    return Schedule(instance, starts)


def random_instance(count: int, *, output: int = 30, arrival: int = 0, seed: int = 0) -> Instance:
    source = random.Random(seed)
    requests = [
        Request(source.randint(0, arrival), source.randint(0, 9), source.randint(1, output))
        for _ in range(count)
    ]
    return Instance(4 * (output + 9), requests, name="random")


@pytest.fixture
def ec1() -> Schedule:
    instance = Instance(7, [Request(0, 1, output) for output in (1, 2, 3, 4)], name="EC.1")
    return Schedule(instance, (0, 0, 0, 2))


def row_labels(figure: Figure) -> list[str]:
    """Return the labels of the rows of the upper panel."""
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


# ---- what is drawn -----------------------------------------------------------------


@given(instances(), st.integers(0, 99))
def test_memory_agrees_with_the_schedule_at_every_time(instance: Instance, seed: int) -> None:
    schedule = Schedule(instance, random_starts(instance, random.Random(seed), early=3))
    loads = dict(schedule.loads(range(-9, schedule.makespan + 3)))
    for stepped in (True, False):
        timeline = schedule.timeline()
        vars(timeline)["stepped"] = stepped
        corners = [*zip(*timeline.held(), strict=True)]
        held = dict.fromkeys(loads, 0.0)
        for (begin, low), (end, high) in pairwise(corners):
            for t in range(int(begin) + 1, int(end) + 1):
                held[t] = low + (high - low) * (t - begin) / (end - begin)
            assert not stepped or begin == end or low == high
        assert held == pytest.approx(loads)
        assert not corners or corners[0][1] == corners[-1][1] == 0, "upright at both ends"


@given(instances(), st.integers(0, 99))
def test_prompts_held_are_those_of_the_active(instance: Instance, seed: int) -> None:
    schedule = Schedule(instance, random_starts(instance, random.Random(seed)))
    times, prompts = schedule.timeline().held_prompts()
    for (begin, end), heights in zip(pairwise(times), pairwise(prompts), strict=True):
        lives = zip(schedule.starts, schedule.completions, instance, strict=True)
        expected = sum(request.prompt for k, c, request in lives if k <= begin < end <= c)
        assert begin == end or heights == (expected,) * 2


def test_many_workers_together_hold_what_each_holds() -> None:
    instance = random_instance(30, arrival=9, seed=3)
    fleet = Instance(instance.memory, instance.requests, workers=3)
    schedule = Schedule(fleet, [3 * i for i in range(30)], [i % 3 for i in range(30)])
    timeline = schedule.timeline()
    curves = [(worker, timeline.held(worker)) for worker in range(3)]
    joined = replace(timeline, measured=curves)
    for worker in (None, 0, 1, 2):
        for found, wanted in zip(joined.held(worker), timeline.held(worker), strict=True):
            assert found == pytest.approx(wanted)


def test_steps_are_drawn_while_they_can_be_seen(ec1: Schedule) -> None:
    long = Instance(10**6, [Request(0, 0, 400)])
    many = Instance(10**6, [Request(0, 0, 100) for _ in range(99)])
    assert ec1.timeline().stepped
    assert not Schedule(long, [0]).timeline().stepped
    assert not Schedule(many, [0] * 99).timeline().stepped


def test_times_begin_at_0_unless_the_lead_is_long() -> None:
    def shown(arrival: int, start: int) -> tuple[float, float]:
        timeline = Schedule(Instance(9, [Request(arrival, 1, 4)]), [start]).timeline()
        return timeline.begin, timeline.end

    assert shown(0, 2) == (0, 6)
    assert shown(1, 6) == (0, 10)
    assert shown(1000, 1003) == (1000, 1007)
    assert shown(0, -2) == (-2, 2)
    empty = Schedule(Instance(9, []), []).timeline()
    assert (empty.begin, empty.end) == (0, 1)


# ---- panels ------------------------------------------------------------------------


def test_rows_are_in_order_of_start() -> None:
    instance = Instance(9, [Request(0, 1, 2, id=label) for label in "abc"])
    assert row_labels(plot_schedule(Schedule(instance, (4, 0, 2)))) == ["b", "c", "a"]


@pytest.mark.parametrize(("count", "labelled"), [(4, 4), (8, 8), (80, 80), (150, 75)])
def test_every_row_is_labelled_until_labels_would_touch(count: int, labelled: int) -> None:
    figure = plot_schedule(one_after_another(random_instance(count)))
    assert len(row_labels(figure)) == labelled


@pytest.mark.parametrize("rows", [1, 9, 10, 77, 1_000, 54_321])
def test_label_step_is_round_and_leaves_room(rows: int) -> None:
    figure = new_figure(4)
    step = label_step(figure.subplots(), rows, 8)
    assert str(step).strip("0") in {"1", "2", "5"}
    assert rows / step * 8 <= 4 * 72


@pytest.mark.slow
@pytest.mark.parametrize(("count", "arrival"), [(4, 60), (8, 0), (80, 60)])
def test_labels_neither_touch_nor_leave_the_figure(count: int, arrival: int) -> None:
    figure = plot_schedule(one_after_another(random_instance(count, arrival=arrival)))
    figure.draw_without_rendering()
    for ax in figure.axes:
        boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
        boxes.sort(key=lambda box: box.y0)
        assert all(low.y1 <= high.y0 + 1 for low, high in pairwise(boxes))
        assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes)


def test_panels_share_time_and_draw_on_the_axes_of_the_caller(ec1: Schedule) -> None:
    figure = plot_schedule(ec1)
    top, bottom = figure.axes
    assert top.get_xlim() == bottom.get_xlim()
    ax = new_figure(3).subplots()
    assert rows(ec1, ax) is ax
    assert memory_profile(ec1, ax) is ax
    assert isinstance(rows(ec1), Axes)
    assert isinstance(memory_profile(ec1), Axes)


def test_legend_names_the_peak_and_the_capacity(ec1: Schedule) -> None:
    labels = [text.get_text() for text in plot_schedule(ec1).legends[0].get_texts()]
    assert labels == ["waiting", "tokens produced", "prompt tokens", "M = 7", "peak 6 at time 1"]


def test_what_exceeds_the_capacity_is_marked() -> None:
    instance = Instance(5, [Request(0, 1, 3), Request(0, 1, 3)])
    ax = memory_profile(Schedule(instance, (0, 0)))
    assert "above M" in ax.get_legend_handles_labels()[1]
    assert ax.get_ylim()[1] > 8
    assert (
        "above M" not in memory_profile(Schedule(instance, (0, 3))).get_legend_handles_labels()[1]
    )


def test_profile_of_an_instance_is_its_demand() -> None:
    instance = Instance(5, [Request(0, 1, 3), Request(1, 1, 3)])
    assert "peak 7 at time 3" in memory_profile(instance).get_legend_handles_labels()[1]


# ---- titles ------------------------------------------------------------------------


@pytest.mark.slow
def test_title_holds_name_size_latency_and_what_is_known(ec1: Schedule) -> None:
    figure = plot_schedule(ec1, subtitle="proved optimal")
    facts = "4 requests, M = 7, total latency 12"
    assert figure.get_suptitle() == f"EC.1\n{facts}, proved optimal"
    assert plot_schedule(ec1, title="mine").get_suptitle() == f"mine\n{facts}"


def test_long_subtitle_goes_to_lines_of_its_own(ec1: Schedule) -> None:
    title = plot_schedule(ec1, subtitle="known " * 40).get_suptitle()
    assert max(map(len, title.split("\n"))) <= 100


@pytest.mark.slow
def test_any_label_can_be_drawn(tmp_path: Path) -> None:
    labels = ["$x_{", "$x_{$", "a\nb", "\\frac", "请求", "x" * 300, "_a"]
    requests = [Request(0, 1, 2, id=label) for label in labels]
    for name in ("_a $x_{$ a\nb \\frac 请求", "x" * 300):
        instance = Instance(99, requests, name=name)
        plot_schedule(Schedule(instance, [0] * len(labels)), tmp_path / "s.svg")
        plot_instance(instance, tmp_path / "i.png")


# ---- sizes -------------------------------------------------------------------------

LARGEST = 2**53 - 1
EDGE_CASES = {
    "empty": Schedule(Instance(5, []), []),
    "one": Schedule(Instance(5, [Request(3, 2, 3)]), [3]),
    "no prompts": Schedule(Instance(5, [Request(0, 0, 1), Request(0, 0, 2)]), [0, 1]),
    "huge": Schedule(Instance(LARGEST, [Request(LARGEST, LARGEST - 9, 9)]), [LARGEST]),
    "long": Schedule(Instance(LARGEST, [Request(0, 0, LARGEST), Request(5, 1, 1)]), [0, 7]),
    "too early": Schedule(Instance(9, [Request(5, 1, 3), Request(0, 1, 3)]), [1, -2]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EDGE_CASES)
def test_edge_cases_are_drawn_with_ticks_that_do_not_touch(name: str, tmp_path: Path) -> None:
    schedule, pictures = EDGE_CASES[name], [tmp_path / "s.png", tmp_path / "i.png"]
    figures = plot_schedule(schedule, pictures[0]), plot_instance(schedule.instance, pictures[1])
    assert all(picture.stat().st_size > 5_000 for picture in pictures)
    for figure in figures:
        for ax in figure.axes:
            low, high = ax.get_xlim()
            ticks = [tick for tick in ax.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
            labels = [tick.label1 for tick in ticks if tick.label1.get_visible()]
            boxes = [label.get_window_extent() for label in labels]
            assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


@pytest.mark.parametrize("output", [3, 300])
def test_a_thousand_requests_stay_light(output: int, tmp_path: Path) -> None:
    schedule = one_after_another(random_instance(1_000, output=output, arrival=500), lanes=40)
    begin = time.process_time()
    figure = plot_schedule(schedule, tmp_path / "s.svg")
    assert time.process_time() - begin < 3
    assert (tmp_path / "s.svg").stat().st_size < 2_000_000
    assert figure.get_figheight() < 18
    assert sum(len(ax.collections) + len(ax.patches) for ax in figure.axes) < 15


# ---- files -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("suffix", STARTS)
def test_suffix_chooses_the_format_and_bytes_are_the_same(
    suffix: str, ec1: Schedule, tmp_path: Path
) -> None:
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix.upper()}"
    plot_schedule(ec1, first)
    plot_schedule(ec1, second)
    assert first.read_bytes().startswith(STARTS[suffix])
    assert first.read_bytes() == second.read_bytes()
    assert {*tmp_path.iterdir()} == {first, second}


def test_same_requests_give_the_same_bytes(ec1: Schedule, tmp_path: Path) -> None:
    first, second = tmp_path / "a.svg", tmp_path / "b.svg"
    plot_instance(ec1.instance, first)
    plot_instance(ec1.instance, second)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("name", ["p.gif", "p", "p.png.txt", ".png"])
def test_other_suffixes_are_refused(name: str, ec1: Schedule, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="must end in"):
        plot_schedule(ec1, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_failed_save_keeps_the_old_file(
    ec1: Schedule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "p.svg"
    target.write_text("old")
    figure = plot_schedule(ec1)

    def stop_half_way(path: Path, **_: object) -> None:
        path.write_text("half")
        raise RuntimeError("stopped")

    monkeypatch.setattr(figure, "savefig", stop_half_way)
    with pytest.raises(RuntimeError, match="stopped"):
        save(figure, target)
    assert [path.name for path in tmp_path.iterdir()] == ["p.svg"]
    assert target.read_text() == "old"


def test_a_missing_folder_is_one_line(ec1: Schedule, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be written"):
        plot_schedule(ec1, tmp_path / "none" / "p.png")


def test_pyplot_is_never_loaded(ec1: Schedule, tmp_path: Path) -> None:
    before = "matplotlib.pyplot" in sys.modules
    plot_schedule(ec1, tmp_path / "p.png")
    assert ("matplotlib.pyplot" in sys.modules) is before
