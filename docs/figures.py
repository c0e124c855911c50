"""The pictures of these pages: ``python docs/figures.py`` draws them into ``docs/images``.

What they show is computed by kvopt, but for the figures of one certified run (`CERTIFIED`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from drawing import HUES, THICK, Picture, Plane
from state_figures import configurations, staircase

from kvopt import BatchTime, Instance, Line, Request, Schedule, generate, import_trace, run
from kvopt.bounds.prices import price_bound
from kvopt.bounds.seconds import seconds_bound
from kvopt.bounds.volume import fluid_completions, volume_bound
from kvopt.incumbent.proofs import token_prices
from kvopt.problem.clocks import Seconds
from kvopt.problem.hardware.batch_time_files import PRESETS

FOLDER = Path(__file__).parent / "images"

EC1 = Instance(7, [Request(0, 1, o) for o in (1, 2, 3, 4)])
"""The example of `problem.md`."""

OPTIMUM = (19, 14, 0, 0, 55, 37, 0, 0, 81, 0)
"""``kvopt generate arrival-1 --n 10 --seed 1 -o a.json && kvopt solve a.json``: proved, checked."""

CERTIFIED = {"bound": 118_804, "best": 119_853}
"""``kvopt generate conversation --n 1000 --seed 1 -o c.json && kvopt certify c.json -t 60``."""

JUDGED = {
    "patient": "as svf, lets small ones pass",
    "svf": "smallest volume first",
    "mc-sf": "shortest answer first",
    "fcfs": "arrival order, lengths known",
    "alpha-protect:alpha=0.25": "arrival order, lengths unknown",
}


def front() -> Picture:
    """Draw the figure of the front page: a proved optimum, and certified distances."""
    picture = Picture(940, 400, "A proved optimum, and how far schedulers are from one")
    instance = generate("arrival-1", n=10, seed=1)
    schedule = Schedule(instance, OPTIMUM)
    check = schedule.check()
    assert check.feasible
    words = f"total latency {check.objective}; each block is a request that grows in the cache"
    picture.heading(30, "The best schedule of ten requests, proved", words)
    plane = Plane(picture, 40, 340, 3.3, 7.5)
    plane.stack(schedule, [""] * len(instance))
    plane.axes(check.makespan, instance.memory + 2, range(0, check.makespan, 20), "rounds")
    plane.limit(check.makespan, instance.memory)
    _distances(picture, 500)
    return picture


def _distances(picture: Picture, left: float) -> None:
    """Draw the certified interval of each scheduler."""
    chat = generate("conversation", n=1000, seed=1)
    known = f"certified: the optimum is between {CERTIFIED['bound']:,} and {CERTIFIED['best']:,}"
    picture.heading(left, "How many times the optimum: 1,000 conversations", known)
    zero, unit = left + 6, 115.0
    picture.box(zero + 200, 368, 6, 14, "limit")
    picture.text(zero + 212, 380, "red: not decided by the proof", "quiet small")
    for tick in (1, 2, 3):
        x = zero + unit * (tick - 1)
        picture.path([(x, 80), (x, 340)], "line-edge")
        picture.text(x, 358, f"{tick}x", "quiet small", "middle")
    for row, (policy, words) in enumerate(JUDGED.items()):
        value = run(chat, policy).objective
        assert value is not None
        least, most = value / CERTIFIED["best"], value / CERTIFIED["bound"]
        y = 100 + 50 * row
        start, end = (zero + unit * (ratio - 1) for ratio in (least, most))
        picture.text(zero + 6, y, f"{policy.partition(':')[0]}: {words}", "ink small")
        picture.box(zero, y + 8, end - zero, 16, "blue")
        picture.box(start, y + 8, max(end - start, 2), 16, "limit")
        picture.text(end + 8, y + 21, f"{least:.2f} to {most:.2f}", "ink bold small")


def request() -> Picture:
    """Draw the life of one request."""
    picture = Picture(760, 320, "One request over time: it waits, starts, grows and is gone")
    plane = Plane(picture, 60, 260, 52, 20)
    arrival, start, one = 1, 4, Request(1, 3, 6)
    tops = [one.prompt + j for j in range(1, one.output + 1)]
    last = start + one.output
    plane.block(start + 1, [0] * one.output, [one.prompt] * one.output, "blue")
    plane.block(start + 1, [one.prompt] * one.output, tops, "sand")
    plane.axes(last + 2, 10.5, range(last + 2))
    picture.text(30, 34, "tokens held", "quiet small")
    picture.text(plane.x(start) + 14, plane.y(1.3), "prompt: s = 3 tokens", "on")
    picture.text(plane.x(start + 3), plane.y(4), "output: o = 6, one a round", "on", "middle")
    picture.arrow((plane.x(arrival), plane.y(0.8)), (plane.x(start), plane.y(0.8)))
    picture.text(plane.x(arrival), plane.y(2.1), "waits from the arrival", "quiet small")
    picture.text(plane.x(arrival), plane.y(1.2), "a = 1 to the start k = 4", "quiet small")
    picture.arrow((plane.x(arrival), plane.y(9.8)), (plane.x(last), plane.y(9.8)))
    picture.text(plane.x(arrival), plane.y(10.2), "latency: c - a = 9", "ink small")
    picture.text(plane.x(last) + 8, plane.y(8.4), "peak:", "ink small")
    picture.text(plane.x(last) + 8, plane.y(7.6), "s + o = 9", "ink small")
    picture.text(plane.x(last) + 8, plane.y(1.6), "completes at", "ink small")
    picture.text(plane.x(last) + 8, plane.y(0.8), "c = k + o = 10", "ink small")
    return picture


def schedule() -> Picture:
    """Draw two schedules of the example: one that does not fit, and the best."""
    picture = Picture(
        860, 320, "Four requests: all at once do not fit; the last one waits and fits"
    )
    panels = (((0, 0, 0, 0), "All four start at round 0"), ((0, 0, 0, 2), "The last one waits"))
    for (starts, words), left in zip(panels, (40, 460), strict=True):
        found = Schedule(EC1, starts)
        check = found.check()
        fits = "fits, and is optimal" if check.feasible else "does not fit"
        told = f"total latency {check.objective}, peak {check.peak_memory}: {fits}"
        picture.heading(left, words, told, "quiet" if check.feasible else "limit")
        plane = Plane(picture, left, 270, 46, 20)
        plane.stack(found, [f"r{i}" for i in range(len(EC1))])
        plane.axes(7, 10, range(8))
        plane.limit(7, EC1.memory)
    return picture


def pause() -> Picture:
    """Draw the pause that no bound covers, beside the optimum without one."""
    picture = Picture(930, 350, "A pause with tokens kept is below the optimum without pauses")
    pair = Instance(10, [Request(0, 0, 10), Request(6, 5, 1)])
    best = Schedule(pair, (3, 6))
    assert best.check().feasible
    picture.heading(
        40, f"Covered: total latency {best.objective}", "the first request waits so that both fit"
    )
    plane = Plane(picture, 40, 300, 27, 20)
    plane.stack(best, ["", ""])
    plane.axes(13, 11, range(14))
    plane.limit(13, 10)
    told = "paused while the other runs, its tokens kept elsewhere"
    picture.heading(490, "Not covered: total latency 12", told)
    plane = Plane(picture, 490, 300, 27, 20)
    plane.block(1, [0] * 6, range(1, 7), "blue")
    plane.block(7, [0], [6], "sand")
    plane.block(8, [0] * 4, range(7, 11), "blue")
    plane.axes(13, 11, range(14))
    plane.limit(13, 10)
    picture.text(plane.x(6.5), plane.y(6) - 6, "pause", "ink small", "middle")
    return picture


def horizon() -> Picture:
    """Draw a schedule that is done earlier and the one that is better."""
    picture = Picture(820, 260, "A later end and a smaller total latency")
    pair = Instance(4, [Request(0, 0, 4), Request(1, 3, 1)])
    panels = (((0, 4), "Done at 5"), ((2, 1), "Done at 6, and optimal"))
    for (starts, words), left in zip(panels, (40, 440), strict=True):
        found = Schedule(pair, starts)
        assert found.check().feasible
        picture.heading(left, words, f"total latency {found.objective}")
        plane = Plane(picture, left, 210, 46, 24)
        plane.stack(found, ["r0", "r1"])
        plane.axes(7, 5, range(8))
        plane.limit(7, 4)
    return picture


def fluid() -> Picture:
    """Draw volumes as memory holds them, and poured without a gap."""
    picture = Picture(920, 320, "The volumes of four requests in a schedule, and poured as a fluid")
    found = Schedule(EC1, (0, 0, 0, 2))
    picture.heading(
        40, "A schedule: completions at 1, 2, 3, 6", "the areas are the volumes 2, 5, 9 and 14"
    )
    plane = Plane(picture, 40, 270, 50, 22)
    plane.stack(found, [f"r{i}" for i in range(len(EC1))])
    plane.axes(7, 8, range(8))
    plane.limit(7, EC1.memory)
    done = fluid_completions([(r.arrival, r.volume) for r in EC1], EC1.memory)
    rounded = ", ".join(map(str, done))
    plane = Plane(picture, 490, 270, 50, 22)
    claim = f"and not before 1, 2, 3, 4: total latency is at least {volume_bound(EC1)}"
    picture.heading(490, f"Poured, the smallest first: by {rounded}", claim)
    at = Fraction(0)
    for i, request in enumerate(EC1):
        after = at + Fraction(request.volume, EC1.memory)
        left, width = plane.x(float(at)), float(after - at) * plane.per_time
        picture.box(left, plane.y(EC1.memory), width, 22 * EC1.memory, f"{HUES[i]} paper-edge")
        picture.text(left + width / 2, plane.y(3.4), f"r{i}", "on small", "middle")
        at = after
    plane.axes(7, 8, range(8))
    plane.limit(7, EC1.memory)
    return picture


def prices() -> Picture:
    """Draw what each start costs when the tokens of one time have a price."""
    picture = Picture(920, 340, "The cost of each start: latency and payment")
    price, memory = Fraction(2, 3), EC1.memory
    assert price_bound(EC1, token_prices(numerators=(0, 2), denominator=3)) == 12
    picture.heading(
        30,
        "A token at time 2 costs 2/3. Which start is cheapest?",
        "latency below, payment above; the least of each is framed",
    )
    total = Fraction(0)
    for i, one in enumerate(EC1):
        costs: list[tuple[int, Fraction]] = []
        for start in range(4):
            held = one.prompt + 2 - start if start < 2 <= start + one.output else 0
            costs.append((start + one.output, held * price))
        least = min(latency + payment for latency, payment in costs)
        total += least
        plane = Plane(picture, 40 + 160 * i, 270, 34, 26)
        for start, (latency, payment) in enumerate(costs):
            x, top = plane.x(start), plane.y(float(latency + payment))
            picture.box(x, plane.y(latency), 26, latency * 26, "blue")
            picture.box(x, top, 26, float(payment) * 26, "sand")
            if latency + payment == least:
                picture.frame(x, top, 26, plane.bottom - top)
            picture.text(x + 13, 288, start, "quiet small", "middle")
        picture.text(plane.x(2) - 4, 310, f"start of r{i}", "quiet small", "middle")
    paid = memory * price
    for line, words in enumerate(
        (f"sum of the least: {total}", f"less M times 2/3: {_mixed(paid)}",
         f"bound: {_mixed(total - paid)}", "rounded up: 12")
    ):  # fmt: skip
        picture.text(690, 150 + 24 * line, words, "ink bold" if line == 3 else "ink")
    return picture


def _mixed(value: Fraction) -> str:
    whole, rest = divmod(value, 1)
    return f"{whole} {rest}" if rest else str(whole)


def rounds() -> Picture:
    """Draw rounds that last as long as their batch."""
    picture = Picture(900, 330, "Rounds of different lengths: a long prompt makes a long round")
    model = PRESETS["llama-2-70b-2xa100"]
    requests = [Request(0, 400, 10), Request(2, 1600, 6), Request(5, 900, 4)]
    starts = (0, 3, 6)
    told = "a column is a round: its width is its length by the model, its height the tokens held"
    picture.heading(30, "Ten rounds on two A100 with Llama-2-70B", told)
    plane = Plane(picture, 50, 270, 640, 0.055)
    plane.axes(1.3, 3400, ())
    for tenths in range(0, 13, 2):
        x = plane.x(tenths / 10)
        picture.text(x, 288, f"{tenths / 10:.1f} s", "quiet small", "middle")
    now = 0
    for time in range(1, 11):
        active = [i for i, k in enumerate(starts) if k < time <= k + requests[i].output]
        begun = sum(requests[i].prompt for i in active if starts[i] == time - 1)
        held = [requests[i].prompt + time - starts[i] for i in active]
        after = now + model.round_ns(active=len(active), prompts=begun, held=sum(held))
        below = 0
        for i, tokens in zip(active, held, strict=True):
            x, width = plane.x(now / 1e9), (after - now) / 1e9 * plane.per_time
            look = f"{HUES[i]} paper-edge"
            picture.box(x, plane.y(below + tokens), width, plane.per_token * tokens, look)
            below += tokens
        if begun:
            middle = plane.x((now + after) / 2e9)
            picture.text(middle, plane.y(below) - 22, "prompt of", "ink small", "middle")
            picture.text(middle, plane.y(below) - 8, f"{begun:,}", "ink small", "middle")
        now = after
    return picture


def machine() -> Picture:
    """Draw the rounds of three requests as services of a machine, and the best fluid."""
    picture = Picture(920, 290, "Rounds of three requests, and the machine as a fluid")
    model, memory = BatchTime([Line(60, 10)]), 6
    trio = [("C", Request(0, 4, 1)), ("A", Request(0, 2, 2)), ("B", Request(0, 2, 2))]
    picture.heading(
        40,
        "The best schedule: 110 + 270 + 430 = 810",
        "height: the share of the machine; grey: given away",
    )
    plane = Plane(picture, 40, 230, 0.85, 140)
    now, taken = 0.0, []
    for hue, (name, one) in zip(HUES, trio, strict=False):
        taken.append(0.0)
        for token in range(1, one.output + 1):
            work = 10 * (1 + one.prompt * (token == 1))
            share = (one.prompt + token) / memory
            end = now + model.round_ns(1, one.prompt * (token == 1), 0)
            picture.box(plane.x(now), plane.y(1), work * 0.85, 140, hue)
            picture.box(plane.x(now + work), plane.y(1), 60 * 0.85, 140, "stone")
            picture.box(plane.x(now + work), plane.y(share), 60 * 0.85, 140 * share, hue)
            picture.path([(plane.x(end), plane.y(1)), (plane.x(end), plane.y(0))], "ink-edge")
            picture.text(plane.x(now) + 5, plane.y(0.05), name, "on small")
            now, taken[-1] = end, taken[-1] + work + 60 * share
    plane.axes(460, 1, range(0, 450, 100), "ns")
    total = seconds_bound(Instance(memory, [one for _, one in trio]), model).value_ns
    told = f"means at 50, 155, 265; no schedule is below {total} ns"
    picture.heading(500, "Poured: the machine times 100, 110, 110", told)
    plane, begin = Plane(picture, 500, 230, 0.85, 140), 0.0
    for hue, (name, _), time in zip(HUES, trio, taken, strict=False):
        picture.box(plane.x(begin), plane.y(1), time * 0.85, 140, f"{hue} paper-edge")
        middle = plane.x(begin + time / 2)
        picture.text(middle, plane.y(0.5) - 10, name, "on small", "middle")
        picture.dot(middle, plane.y(0.5), "ink", 4)
        begin += time
    plane.axes(460, 1, range(0, 450, 100), "ns")
    return picture


def waiting() -> Picture:
    """Draw how many requests of the sample wait and run over time, under two schedulers."""
    picture = Picture(920, 320, "Waiting and running requests of the sample under two schedulers")
    sample = Path(__file__).parents[1] / "samples" / "chat.csv"
    chat = import_trace(sample, "azure", memory=2048)
    for policy, left in (("fcfs", 40), ("svf", 490)):
        found = run(chat, policy, clock=Seconds(PRESETS["llama-2-70b-2xa100"]))
        assert found.objective is not None
        mean = found.objective / 1e9 / len(chat)
        picture.heading(
            left,
            f"{policy}: a mean latency of {mean:.1f} s",
            "requests that wait (sand) and that run (blue)",
        )
        plane = Plane(picture, left, 270, 4.1, 4.4)
        there = plane.count(found.arrivals, found.completions)
        running = plane.count(found.start_times, found.completions)
        picture.path([*there, there[0]], "sand sand-edge")
        picture.path([*running, running[0]], "blue blue-edge")
        plane.axes(96, 46, range(0, 100, 20), "seconds")
        for tick in (20, 40):
            picture.text(left - 6, plane.y(tick) + 4, tick, "quiet small", "end")
    return picture


def interval() -> Picture:
    """Draw what a certificate says: where the optimum lies, and so each ratio."""
    six = generate("arrival-1", n=6, seed=3)
    lower, upper, value = 142, 149, run(six, "fcfs").objective
    assert volume_bound(six) <= lower
    assert value is not None
    picture = Picture(900, 220, "Bound, optimum, best schedule and a scheduler on one line")
    zero = 40

    def x(latency: float) -> float:
        return zero + (latency - 130) * 14

    y = 110
    picture.text(30, 34, "A certificate encloses the optimum", "ink bold")
    picture.path([(zero, y), (x(187), y)], "quiet-edge")
    picture.box(x(lower), y - 12, x(upper) - x(lower), 24, "blue")
    picture.text((x(lower) + x(upper)) / 2, y + 5, "optimum", "on", "middle")
    for at, name, words, anchor in (
        (lower, "bound", "no schedule is below", "end"),
        (upper, "best schedule", "checked start by start", "start"),
        (value, "fcfs", "reached by a scheduler", "middle"),
    ):
        picture.path([(x(at), y - 20), (x(at), y + 20)], "limit-edge", rest=THICK)
        picture.text(x(at), y - 30, f"{name}: {at}", "ink bold", anchor)
        picture.text(x(at), y + 40, words, "quiet small", anchor)
    told = (
        f"so fcfs is at least {value} / {upper} = {value / upper:.3f} "
        f"and at most {value} / {lower} = {value / lower:.3f} times the optimum"
    )
    picture.text(30, 196, told)
    return picture


CORNERS = (
    (
        "Papers' corner",
        ("rounds, one machine", "requests run to their end (runs)", "total latency, weights"),
        "answers: optima, programs, proofs, studies",
    ),
    (
        "Server's corner",
        ("seconds, several machines", "prefixes, prompts in pieces", "preemption, blocks, a cap",
         "limits on first token and pace"),
        "answers: bounds, schedulers, machines",
    ),
)  # fmt: skip
"""The two combinations of axes that must work completely, and the questions that they answer."""


def rooms() -> Picture:
    """Draw the storeys of the code, as `pyproject.toml` has them, and the two corners."""
    project = Path(__file__).parents[1] / "pyproject.toml"
    contract = tomllib.loads(project.read_text())["tool"]["importlinter"]["contracts"][0]
    layers = [layer.split(" : ") for layer in contract["layers"]]
    picture = Picture(900, 44 + 30 * len(layers) + 16, "Rooms of the code, and the two corners")
    picture.text(30, 32, "Rooms of the code: imports point down", "ink bold")
    for row, names in enumerate(layers):
        y = 46 + 30 * row
        width = 460 / len(names)
        for column, name in enumerate(names):
            picture.box(30 + width * column, y, width - 6, 25, "blue")
            middle = 27 + width * (column + 0.5)
            picture.text(middle, y + 17, name, "on", "middle")
    picture.arrow((510, 46), (510, 44 + 30 * len(layers)))
    picture.text(560, 32, "Problems: two corners, axes between", "ink bold")
    for (name, axes, answers), y in zip(CORNERS, (46, 316), strict=True):
        picture.box(560, y, 310, 175, "stone")
        picture.text(575, y + 26, name, "on bold")
        for line, words in enumerate(axes):
            picture.text(575, y + 52 + 20 * line, words, "on")
        picture.text(575, y + 158, answers, "on small")
    picture.arrow((715, 228), (715, 308))
    picture.text(725, 255, "each axis allows more,", "quiet small")
    picture.text(725, 272, "forbids some or counts", "quiet small")
    picture.text(725, 289, "otherwise", "quiet small")
    return picture


FIGURES = (
    *(front, request, schedule, pause, horizon, fluid, prices, configurations, staircase),
    *(rounds, machine, waiting, interval, rooms),
)


def drawn() -> Iterator[tuple[Path, str]]:
    """Yield the name of each file, and what is in it."""
    for draw in FIGURES:
        yield FOLDER / f"{draw.__name__}.svg", draw().svg()


if __name__ == "__main__":
    for path, content in drawn():
        path.write_text(content, encoding="utf-8")
