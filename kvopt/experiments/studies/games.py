"""Games of jaillet-2025: the adversary waits for the policy's first move, then answers it.

A policy that is deterministic and online starts the first request at a round that does not
depend on what arrives later.  So the game is played by running the policy on that request
alone and building the rest of the instance around the round that it chose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

from kvopt.errors import InvalidInput, shown
from kvopt.families.base import Parameter
from kvopt.model.instance import Instance, Request, checked_integer
from kvopt.model.schedule import Schedule
from kvopt.policies.base import Need
from kvopt.policies.registry import policy as policy_from
from kvopt.simulation.running import run

Values = Mapping[str, Any]
Opening = Callable[[int, Values], Request]
Answer = Callable[[int, Values, int], list[Request]]

DEFAULT_MEMORY = 64


@dataclass(frozen=True, slots=True)
class Game:
    """An adversary that plays one request, waits until it starts, and then plays the others.

    Parameters
    ----------
    name, summary, source
        What it is called, what it does, where it is from.
    opening
        Returns the request of round 0, from the memory and the values of the keys.
    answer
        Returns the others, from the same and the round in which the first one started.
    parameters
        Its keys.
    least_memory
        The game makes no sense below.
    """

    name: str
    summary: str
    source: str
    opening: Opening
    answer: Answer
    parameters: tuple[Parameter, ...] = ()
    least_memory: int = 4


def check_game(name: str, policies: Sequence[str], asked: Mapping[str, Any]) -> None:
    """Refuse a game, keys or opponents that it cannot be played with."""
    _values(name, asked)
    for label in policies:
        opponent = policy_from(label)
        if opponent.draws or Need.ARRIVALS in opponent.needs:
            why = "draws while it runs" if opponent.draws else "knows arrivals in advance"
            raise InvalidInput(f"{label} {why}: {name} is for others", field="policies")


def play(
    name: str,
    policy: str,
    *,
    n: int | None = None,
    memory: int | None = None,
    seed: int = 0,  # noqa: ARG001
    parameters: Mapping[str, Any] | None = None,
) -> Instance:
    """Play a game against a policy and return the instance that came out.

    Parameters
    ----------
    name
        One of `GAMES`.
    policy
        The opponent, ``NAME[:key=value,...]``.
    n
        Must be None: the number of requests follows from the memory.
    memory
        M, 64 when left out.
    seed
        Not used: nothing is drawn.  Here because every source of instances has one.
    parameters
        Keys of the game.

    Raises
    ------
    InvalidInput
        For what `check_game` refuses, and for a policy that never starts the first request.

    Examples
    --------
    >>> found = play("thm-4.1", "mc-sf", memory=16)
    >>> [(r.arrival, r.prompt, r.output) for r in found][:2], len(found)
    ([(0, 1, 15), (14, 1, 1)], 9)
    """
    asked = dict(parameters or {})
    if n is not None:
        asked["n"] = n
    if memory is not None:
        asked["memory"] = memory
    check_game(name, [policy], asked)
    game, (size, values) = GAMES[name], _values(name, asked)
    first = game.opening(size, values)
    start = run(Instance(size, [first]), policy).starts[0]
    if start is None:
        raise InvalidInput(f"{policy} never starts the first request of {name}", field="policies")
    notes = {"game": name, "source": game.source, "policy": policy, "start": start, **values}
    title = f"{name}-m{size}-{policy}"
    return Instance(size, [first, *game.answer(size, values, start)], title, notes)


def reference(instance: Instance) -> Schedule:
    """Return the schedule that a proof compares a policy with, at the size that the game has.

    Either the first request waits until all others are done, or it starts at once and the others
    wait for its end where they come before that: the better of the two.

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
    """Return starts of all requests but the first, as many in a round as fit alone."""
    short = instance.requests[1:]
    together = instance.memory // max((request.peak for request in short), default=1)
    return [begin + position // together for position in range(len(short))]


def _values(name: str, asked: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """Return the memory and every key with its value."""
    if name not in GAMES:
        raise InvalidInput(f"must be one of {', '.join(GAMES)}, got {shown(name)}", field="game")
    game = GAMES[name]
    known = {parameter.name: parameter for parameter in game.parameters}
    for key in asked:
        if key == "n":
            raise InvalidInput(f"follows from the memory in {name}", field="n")
        if key != "memory" and key not in known:
            reason = f"is not a key of {name}, which has {', '.join(known) or 'none'}"
            raise InvalidInput(reason, field=key)
    memory = checked_integer(asked.get("memory", DEFAULT_MEMORY), "memory", game.least_memory)
    return memory, {
        key: parameter.parsed(asked[key]) if key in asked else parameter.default
        for key, parameter in known.items()
    }


def _long(memory: int, values: Values) -> Request:  # noqa: ARG001
    return Request(0, 1, memory - 1)


def _just_before_the_end(memory: int, values: Values, start: int) -> list[Request]:  # noqa: ARG001
    """Half of M short requests arrive when the long one has sqrt(M) / 2 rounds left, about."""
    arrival = start + memory - isqrt(memory) // 2
    return [Request(arrival, 1, 1)] * (memory // 2)


def _long_of_one_prompt(memory: int, values: Values) -> Request:
    prompt = _share(memory, values)
    return Request(0, prompt, memory - prompt)


def _when_nothing_fits(memory: int, values: Values, start: int) -> list[Request]:
    """Requests of the same prompt arrive when the long one leaves no room for a single one."""
    prompt = _share(memory, values)
    arrival = start + memory - 2 * prompt
    return [Request(arrival, prompt, 1)] * prompt


def _share(memory: int, values: Values) -> int:
    share = round(float(values["epsilon"]) * memory)
    if not 1 <= share < memory / 2:
        reason = f"epsilon M is {share} for M = {memory}: it must be in 1 .. M / 2"
        raise InvalidInput(reason, field="epsilon")
    return share


GAMES: dict[str, Game] = {
    game.name: game
    for game in (
        Game(
            "thm-4.1",
            "a request of peak M; when it has sqrt(M) / 2 rounds left, M / 2 requests (1, 1)",
            "jaillet-2025-v2 appendix B.1",
            _long,
            _just_before_the_end,
        ),
        Game(
            "v1-thm-6.2",
            "a request of peak M; epsilon M before its end epsilon M requests (epsilon M, 1)",
            "jaillet-2025-v1 theorem 6.2",
            _long_of_one_prompt,
            _when_nothing_fits,
            (Parameter("epsilon", "share of M that a prompt takes", 0.1, float, 1e-6, 0.5),),
        ),
    )
}
"""Every game by its name."""
