"""Policies under shared prefixes, against a literal simulator that knows definitions alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from brute_force import Row, feasible
from effort import many
from strategies import drawn_with_prefixes, optimum_of, rows_of

from kvopt import Instance, Request, Scope, compare, policy, run

Choice = Callable[[list[Row], int, dict[int, int], list[int], int], int]
"""Requests, block, starts of active ones, waiting ones, how many were started: the next one."""


def matched(rows: list[Row], block: int, active: dict[int, int], i: int) -> int:
    """Return the tokens of a prefix that active requests hold."""
    return block * len({b for j in active for b in rows[j][3]} & set(rows[i][3]))


def volume(rows: list[Row], block: int, i: int) -> tuple[int, ...]:
    """Return the volume of what only this request uses, with the ties of a line."""
    arrival, prompt, output, path = rows[i]
    shared = {b for j, row in enumerate(rows) if j != i for b in row[3]}
    own = prompt - block * len(shared & set(path))
    return own * output + output * (output + 1) // 2, prompt, arrival, i


def longest(rows: list[Row], block: int, active: dict[int, int], waiting: list[int]) -> int:
    """Return the request with the longest match, the older one of equals."""
    return min(waiting, key=lambda i: (-matched(rows, block, active, i), rows[i][0], i))


def oldest(rows: list[Row], waiting: list[int]) -> int:
    """Return the one that arrived first."""
    return min(waiting, key=lambda i: (rows[i][0], i))


CHOICES: dict[str, Choice] = {
    "fcfs": lambda rows, _b, _active, waiting, _n: oldest(rows, waiting),
    "svf": lambda rows, _b, _active, waiting, _n: min(
        waiting,
        key=lambda i: (rows[i][1] * rows[i][2] + rows[i][2] * (rows[i][2] + 1) // 2,
                       rows[i][1], rows[i][0], i),
    ),
    "svf-private": lambda rows, b, _active, waiting, _n: min(
        waiting, key=lambda i: volume(rows, b, i)
    ),
    "lpm": lambda rows, b, active, waiting, _n: longest(rows, b, active, waiting),
    "k-lpm:k=1": lambda rows, _b, _active, waiting, _n: oldest(rows, waiting),
    "k-lpm:k=3": lambda rows, b, active, waiting, n: (
        oldest(rows, waiting) if n % 3 == 0 else longest(rows, b, active, waiting)
    ),
}  # fmt: skip


def literal(instance: Instance, choose: Choice) -> list[int]:
    """Return the starts if the chosen request starts while it fits up to the end of all."""
    rows, block, starts = rows_of(instance), instance.block_tokens or 1, dict[int, int]()
    time = 0
    while len(starts) < len(rows):
        while True:
            active = {i: k for i, k in starts.items() if k + rows[i][2] > time}
            waiting = [i for i, row in enumerate(rows) if i not in starts and row[0] <= time]
            if not waiting:
                break
            i = choose(rows, block, active, waiting, len(starts))
            together = [*active, i]
            ages = [active[j] - time if j in active else 0 for j in together]
            held = [(min(ages), *rows[j][1:]) for j in together]
            if not feasible(instance.memory, held, ages, unit=block):
                break
            starts[i] = time
        time += 1
    return [starts[i] for i in range(len(rows))]


@pytest.mark.parametrize("name", CHOICES)
def test_agrees_with_a_literal_simulator(name: str) -> None:
    for seed in range(2000, 2000 + many(240)):
        instance = drawn_with_prefixes(seed, 9)
        made = run(instance, name)
        assert list(made.starts) == literal(instance, CHOICES[name]), seed
        assert made.scope is (Scope.SHARING if "prefix" in instance.extras else Scope.RUNS)
        if len(instance) < 5:
            assert made.objective >= optimum_of(instance)


def test_the_same_prefix_goes_on() -> None:
    """One of a starts; then lpm prefers the other one of a, which is younger than that of b."""
    requests = [
        Request(0, 4, 3, prefix=["a"]), Request(0, 4, 1, prefix=["b"]),
        Request(1, 4, 1, prefix=["a"]),
    ]  # fmt: skip
    instance = Instance(8, requests, block_tokens=4)
    assert run(instance, "fcfs").starts == (0, 3, 4)
    assert run(instance, "lpm").starts == (0, 3, 1)
    assert run(instance, "k-lpm:k=1").starts == (0, 3, 4)
    assert {row.policy for row in compare(instance, ["lpm", "svf-private"]).runs} == {
        "lpm", "svf-private"
    }  # fmt: skip


def test_workers_of_a_fleet_share_nothing() -> None:
    instance = replace(drawn_with_prefixes(7, 6), workers=2)
    assert not run(instance, "lpm").violations()
    assert policy("lpm").parameters()["seed"] == 0


def test_requests_of_a_prefix_go_to_one_worker() -> None:
    """Of two prefixes each worker gets one; with no slack the fewest requests decide."""
    requests = [Request(t, 5, 4, prefix=[name]) for t, name in enumerate("abab")]
    instance = Instance(20, requests, block_tokens=4, workers=2)
    made = run(instance, "fcfs", router="longest-prefix")
    assert made.workers == (0, 1, 0, 1)
    ordered = replace(instance, requests=[requests[i] for i in (0, 2, 1, 3)])
    made = run(ordered, "fcfs", router="longest-prefix")
    assert made.workers == (0, 0, 1, 1)
    assert run(ordered, "fcfs", router="least-requests").workers == (0, 0, 1, 1)
    same = replace(instance, requests=[replace(r, prefix=["a"]) for r in requests])
    assert run(same, "fcfs", router="longest-prefix").workers == (0, 0, 0, 0)
    assert run(same, "fcfs", router="longest-prefix:slack=0").workers == (0, 1, 0, 1)
