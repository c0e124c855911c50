"""What a request takes of the machine, in any schedule that `kvopt.model.scope` covers.

Let f(b) be the time of a round that processes b tokens, without what each token held and each
prompt token cost in addition: the largest of some *lines*, so convex.  Then f(b) - f(0) of a sum
is at least the sum of f(b_i) - f(0), and a round in which request i processes b_i tokens and
holds h_i lasts at least

    sum_i  f(0) h_i / M  +  [f(b_i) - f(0) + prompt_ns P_i + kv_ns h_i],

since at most M tokens are held.  The sum over its rounds is what request i *takes*.  Any of the
lines may be left out in this; alone, a round with request i lasts at least as long as all lines
say.  ``docs/seconds-bounds.md`` has the proofs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kvopt.model.batch_time import BatchTime, Line
from kvopt.model.instance import Instance

Numbers = npt.NDArray[Any]
"""float64 to look for good weights; Python integers, which are exact, to prove."""


@dataclass(frozen=True, eq=False)
class Shares:
    """What each request takes, in columns; times are in nanoseconds.

    Parameters
    ----------
    takes
        Time of the machine, times M.
    delays
        What it takes, times the least time from then to its completion: twice the sum, times M.
    alone
        The time from its start to its completion when nothing else runs.
    prompts
        By how much the round in which it starts is longer with it than without, by all lines.
    """

    takes: Numbers
    delays: Numbers
    alone: Numbers
    prompts: Numbers


def shares(instance: Instance, model: BatchTime, lines: Sequence[Line], kind: type) -> Shares:
    """Return what the requests take by some lines of a model.

    Parameters
    ----------
    instance
        The requests, and the memory that they share.
    model
        How long rounds last.
    lines
        Some of the lines of the model.
    kind
        ``float``, or ``object`` for exact integers.

    Notes
    -----
    In a round its work comes first and its part of f(0) last.  The last round has r = 0 rounds
    after it.  A round other than the first holds h = top - r tokens and has work w = wide - kv r;
    the time from its end to the completion is at least T with 2 T = p r - kv r^2.  So a round adds

        M w (2 T + 2 base + w)  +  base h (2 T + base)

    to the delays: a polynomial in r, which is summed by the sums of 1, r, r^2, r^3.
    """
    memory = instance.memory
    prompt: Numbers = np.array([request.prompt for request in instance], dtype=kind)
    output: Numbers = np.array([request.output for request in instance], dtype=kind)
    kv, base = model.kv_ns, _time(lines, 0)
    top, rest = prompt + output, output - 1
    wide = _time(lines, 1) - base + kv * top
    p = 2 * (_time(model.lines, 1) + kv * top) + kv
    n1 = rest * (rest - 1) // 2
    n2 = n1 * (2 * rest - 1) // 3
    n3 = n1 * n1
    a, b = 2 * base + wide, p - kv
    later = memory * (wide * a * rest + (wide * b - kv * a) * n1 - kv * (wide + b) * n2
                      + kv * kv * n3)  # fmt: skip
    later += base * (top * base * rest + (top * p - base) * n1 - (kv * top + p) * n2 + kv * n3)
    # The first round processes the prompt as well.
    own = model.prompt_ns * prompt + kv * (prompt + 1)
    work, twice = _times(lines, prompt + 1) - base + own, p * rest - kv * rest * rest
    first = memory * work * (twice + 2 * base + work) + base * (prompt + 1) * (twice + base)
    volume = prompt * output + output * (output + 1) // 2
    return Shares(
        takes=base * volume + memory * (work + wide * rest - kv * n1),
        delays=first + later,
        alone=twice // 2 + _times(model.lines, prompt + 1) + own,
        prompts=_times(model.lines, prompt + 1) - _time(model.lines, 0) + own,
    )


def _time(lines: Sequence[Line], tokens: int) -> int:
    return max(line.round_ns + line.token_ns * tokens for line in lines)


def _times(lines: Sequence[Line], tokens: Numbers) -> Numbers:
    times = lines[0].round_ns + lines[0].token_ns * tokens
    for line in lines[1:]:
        times = np.maximum(times, line.round_ns + line.token_ns * tokens)
    return times
