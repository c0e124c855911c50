"""Games of jaillet-2025: the adversary waits for the policy's first move, then answers it.

A policy that is deterministic and online starts the first request at a round that does not
depend on later arrivals.  So a game runs the policy on that request alone, and builds the rest of
the instance around the chosen round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

from kvopt import Instance, Need, Schedule, run
from kvopt import policy as policy_from
from kvopt.errors import InvalidInput, unknown_name
from kvopt.problem.families.base import Parameter, values_of
from kvopt.problem.requests import Request, checked_integer

Values = Mapping[str, Any]

DEFAULT_MEMORY = 64
"""Tokens of the cache by default."""
_LEAST_MEMORY = 4
"""Least cache of a game."""


@dataclass(frozen=True, slots=True)
class Game:
    """A request of peak M, and others that arrive shortly before its end.

    Parameters
    ----------
    source
        Source of the game.
    shape
        From the memory and the values of the keys it returns the prompt of all requests, the rounds
        from the arrival of the others to the end of the long one, and their number.
    parameters
        Its keys.
    """

    source: str
    shape: Callable[[int, Values], tuple[int, int, int]]
    parameters: tuple[Parameter, ...] = ()


def _half_the_memory(memory: int, values: Values) -> tuple[int, int, int]:  # noqa: ARG001
    """Half of M requests (1, 1) arrive when the long one has sqrt(M) / 2 rounds left, about."""
    return 1, isqrt(memory) // 2 - 1, memory // 2


def _when_nothing_fits(memory: int, values: Values) -> tuple[int, int, int]:
    """Let epsilon M requests (epsilon M, 1) arrive when the long one leaves no room for one."""
    share = round(float(values["epsilon"]) * memory)
    if not 1 <= share < memory / 2:
        reason = f"epsilon M is {share} for M = {memory}: it must be in 1 .. M / 2"
        raise InvalidInput(reason, field="epsilon")
    return share, share, share


_EPSILON = Parameter("epsilon", "share of M that a prompt takes", 0.1, float, 1e-6, 0.5)

GAMES = {
    "thm-4.1": Game("jaillet-2025-v2 appendix B.1", _half_the_memory),
    "v1-thm-6.2": Game("jaillet-2025-v1 theorem 6.2", _when_nothing_fits, (_EPSILON,)),
}
"""Every game by its name."""


def check_game(
    name: str, policies: Sequence[str], asked: Mapping[str, Any]
) -> tuple[int, dict[str, Any]]:
    """Return the memory and every key with its value.

    Unknown games, and keys or opponents that do not fit, are refused.
    """
    if name not in GAMES:
        raise unknown_name(name, GAMES, "game")
    if "n" in asked:
        raise InvalidInput(f"follows from the memory in {name}", field="n")
    given = {"memory": DEFAULT_MEMORY, **asked}
    memory = checked_integer(given.pop("memory"), "memory", _LEAST_MEMORY)
    for label in policies:
        opponent = policy_from(label)
        if opponent.draws or Need.ARRIVALS in opponent.needs:
            why = "draws while it runs" if opponent.draws else "knows arrivals in advance"
            raise InvalidInput(f"{label} {why}: {name} is for others", field="policies")
    return memory, values_of(name, GAMES[name].parameters, given)


def play(
    name: str,
    policy: str,
    *,
    memory: int | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Instance:
    """Play a game against a policy and return the resulting instance.

    Parameters
    ----------
    name
        One of `GAMES`.
    policy
        The opponent, ``NAME[:key=value,...]``.
    memory
        M, by default 64.
    parameters
        Keys of the game.

    Raises
    ------
    InvalidInput
        As `check_game` raises it, and for a policy that never starts the first request.

    Examples
    --------
    >>> found = play("thm-4.1", "mc-sf", memory=16)
    >>> [(r.arrival, r.prompt, r.output) for r in found][:2], len(found)
    ([(0, 1, 15), (14, 1, 1)], 9)
    """
    asked = {**(parameters or {}), **({} if memory is None else {"memory": memory})}
    game, (size, values) = GAMES[name], check_game(name, [policy], asked)
    prompt, left, count = game.shape(size, values)
    long = Request(0, prompt, size - prompt)
    start = run(Instance(size, [long]), policy).starts[0]
    if start is None:
        raise InvalidInput(f"{policy} never starts the first request of {name}", field="policies")
    notes = {"game": name, "source": game.source, "policy": policy, "start": start, **values}
    others = [Request(start + long.output - left, prompt, 1)] * count
    return Instance(size, [long, *others], f"{name}-m{size}-{policy}", notes)


def reference(instance: Instance) -> Schedule:
    """Return the schedule that the proof compares a policy with, at the size of the game.

    It is the better of two: the first request waits until all others are done, or it starts at once
    and others that arrive before its end wait for it.

    Examples
    --------
    >>> reference(play("thm-4.1", "mc-sf", memory=256)).objective
    632
    """
    long, *short = instance.requests
    arrival = max((request.arrival for request in short), default=0)
    waiting = _batches(instance, arrival)
    last = max((start + 1 for start in waiting), default=0)
    following = _batches(instance, max(arrival, long.output))
    found = (Schedule(instance, [last, *waiting]), Schedule(instance, [0, *following]))
    return min(found, key=lambda schedule: schedule.objective)


def _batches(instance: Instance, begin: int) -> list[int]:
    """Return starts of all requests except the first, as many in a round as fit alone."""
    short = instance.requests[1:]
    together = instance.memory // max((request.peak for request in short), default=1)
    return [begin + position // together for position in range(len(short))]
