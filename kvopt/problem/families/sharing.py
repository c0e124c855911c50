"""Sessions and agents: prompts that begin with earlier ones, in blocks that are shared.

A session has instructions, which all of its kind have, and turns.  The prompt of a turn is all of
the turn before, its answer included, and a message.  The next turn comes some time after the
answer could be there.  Lengths of chats are those of the family ``conversation``; an agent reads
instructions and results of tools, which are longer, and answers more briefly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from kvopt.problem.families.conversations import PAPER_MEMORY, conversation, mean_gap
from kvopt.problem.families.drawing import Draw, Drawing, Drawn, clipped
from kvopt.problem.requests import Request


def _step(draw: Draw) -> tuple[int, int]:
    """Draw the result of a tool, and an answer."""
    return clipped(draw.lognormal(200.5, 1.0), 2000), clipped(draw.lognormal(30.5, 0.8), 400)


def _sessions(draw: Draw, shape: Callable[[Draw], tuple[int, int]]) -> Drawn:
    memory, count = draw.memory or PAPER_MEMORY, draw.count(1000)
    requests, clock, gap, number = list[Request](), 0.0, mean_gap(draw), 0
    while len(requests) < count:
        clock += draw.exponential(gap) if gap else 0.0
        requests += _turns(draw, shape, memory, clock, number)[: count - len(requests)]
        number += 1
    return memory, sorted(requests, key=lambda request: request.arrival)


def _turns(
    draw: Draw, shape: Callable[[Draw], tuple[int, int]], memory: int, clock: float, number: int
) -> list[Request]:
    """Draw a session: it ends at random, or when its next turn does not fit."""
    size, system = draw.integer("block_tokens"), draw.integer("system")
    kind = draw.uniform_integer(1, draw.integer("kinds"))
    turns, history, goes_on = list[Request](), system, True

    def turn() -> tuple[int, int]:
        message, output = shape(draw)
        return history + message, output

    while goes_on:
        prompt, output = turn() if turns else draw.fitting(turn, memory)
        if prompt + output > memory:
            break
        path = [
            f"kind {kind}, {place}" if (place + 1) * size <= system else f"{number}, {place}"
            for place in range(prompt // size)
        ]
        turns.append(Request(math.ceil(clock), prompt, output, prefix=path))
        history = prompt + output
        clock = turns[-1].arrival + output + draw.exponential(draw.number("think"))
        goes_on = draw.random.random() * draw.number("turns") >= 1
    return turns


DRAWS: dict[str, Drawing] = {
    "sessions": partial(_sessions, shape=conversation),
    "agents": partial(_sessions, shape=_step),
}
