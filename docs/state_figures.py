"""The pictures of states: what one request passes, what stands together, and a staircase."""

from __future__ import annotations

from bisect import bisect_right

from drawing import HUES, THICK, Picture, Plane


def configurations() -> Picture:
    """Draw the states of a request, and what a configuration holds later."""
    picture = Picture(900, 360, "States of a request, and what a configuration holds later")
    picture.heading(
        30, "One request: prompt 2, output 4", "each bar is a state (h, r); h + r = 6 throughout"
    )
    plane = Plane(picture, 50, 300, 70, 28)
    plane.axes(4.3, 7.5, ())
    for j in range(4):
        x, held = plane.x(j) + 14, 3 + j
        picture.box(x, plane.y(held), 50, 28 * held, "sand")
        picture.box(x, plane.y(2), 50, 56, "blue")
        picture.text(x + 25, plane.y(held) - 8, f"({held}, {3 - j})", anchor="middle")
        picture.text(x + 25, 320, f"k + {j + 1}", anchor="middle")
    picture.text(plane.x(0) + 39, plane.y(0.8), "prompt", "on small", "middle")
    picture.heading(
        400,
        "A configuration at time t: states (2, 3), (3, 1), (4, 0)",
        "each ring: a member completes, and memory is checked",
    )
    plane = Plane(picture, 420, 300, 95, 20)
    plane.axes(4, 12, ())
    plane.limit(4, 11)
    members = ((2, 3), (3, 1), (4, 0))
    for later in range(4):
        x, held = plane.x(later) + 22, 0
        picture.text(x + 26, 320, f"t + {later}" if later else "t", anchor="middle")
        for hue, (now, left) in zip(HUES, members, strict=False):
            if left >= later:
                held += now + later
                picture.box(x, plane.y(held), 52, 20 * (now + later), f"{hue} paper-edge")
                middle = plane.y(held) + 10 * (now + later) + 5
                picture.text(x + 26, middle, f"({now + later}, {left - later})", "on", "middle")
        picture.text(x + 26, plane.y(held) - 12, held, "ink bold", "middle")
        if any(left == later for _, left in members):
            ring = f'<circle cx="{x + 26}" cy="{plane.y(held)}" r="6" class="paper limit-edge"'
            picture.marks.append(f"{ring}{THICK}/>")
    return picture


def staircase() -> Picture:
    """Draw a staircase of states, and a configuration with as many members in it as fit."""
    memory, thresholds, members = 7, (2, 3), ((2, 2), (3, 1), (1, 0))
    assert all(sum(h + x for h, r in members if r >= x) <= memory for _, x in members)
    picture = Picture(620, 400, "A staircase: at most two requests are in its states together")
    told = "blue: the staircase of the thresholds 2 and 3 for M = 7; frames: a configuration"
    picture.heading(30, "At most two members are in the blue states", told)
    plane = Plane(picture, 60, 340, 60, 36)
    for h in range(1, memory + 1):
        level = bisect_right(thresholds, h)
        for r in range(memory - h + 1):
            high = h + (level + 1) * r > memory - sum(thresholds[:level])
            hue = "blue" if level and high else "stone"
            picture.box(plane.x(h - 1) + 2, plane.y(r + 1) + 2, 56, 32, hue)
            picture.text(
                plane.x(h - 0.5), plane.y(r + 0.5) + 5, f"({h}, {r})", "on small", "middle"
            )
    for h, r in members:
        picture.frame(plane.x(h - 1) + 4, plane.y(r + 1) + 4, 52, 28)
    plane.axes(memory, memory, (), "tokens held, h")
    picture.text(plane.left + 8, plane.y(memory) - 8, "rounds to go, r", "quiet small")
    return picture
