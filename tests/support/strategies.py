"""Small instances: drawn by hypothesis, or many at once from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from brute_force import Row, Server, Starts, Triple, feasible, optimum
from hypothesis import strategies as st
from literal.common import Job

from kvopt.problem.batch_time import BatchTime, Line
from kvopt.problem.clocks import arrivals_ns
from kvopt.problem.instance import Instance
from kvopt.problem.requests import Prediction, Request

Problem = tuple[int, tuple[Triple, ...]]
"""What the oracle takes: memory and ``(arrival, prompt, output)`` triples."""


def instance_of(memory: int, triples: list[Triple] | tuple[Triple, ...]) -> Instance:
    """Return the kvopt instance of a plain problem."""
    return Instance(memory, [Request(*triple) for triple in triples])


def plain(instance: Instance) -> Problem:
    """Return an instance as the plain numbers that the oracle takes."""
    return instance.memory, tuple((r.arrival, r.prompt, r.output) for r in instance)


def rows_of(instance: Instance) -> list[Row]:
    """Return the requests of an instance, with prefixes, as plain rows."""
    return [(r.arrival, r.prompt, r.output, tuple(r.prefix)) for r in instance]


def jobs_of(instance: Instance) -> list[Job]:
    """Return the requests of an instance, with their intervals, as transcriptions take them."""
    pairs = ((r, r.predicted or Prediction(r.output, r.output)) for r in instance)
    return [Job(r.arrival, r.prompt, r.output, p.lower, p.upper) for r, p in pairs]


def optimum_of(instance: Instance, **rules: Any) -> int:
    """Return the least weighted latency of an instance by brute force, with all that it asks for.

    In rounds, or in seconds on a ``server``.
    """
    asked: dict[str, Any] = {
        "weights": [request.weight for request in instance],
        "workers": instance.workers,
        "block": instance.block_size,
        "unit": instance.block_tokens or 1,
        "most_active": instance.max_active or inf,
    }
    rows = rows_of(instance)
    if rules.get("server"):
        rows = [(a, *row[1:]) for a, row in zip(arrivals_ns(instance), rows, strict=True)]
    return optimum(instance.memory, rows, **(asked | rules))


def batch_time(server: Server) -> BatchTime:
    """Return how long rounds last on a server of brute force."""
    return BatchTime([Line(*line) for line in server.lines], server.kv_ns, server.prompt_ns)


def timed_instance(memory: int, triples: Sequence[Triple], **more: Any) -> Instance:
    """Return an instance whose arrivals are nanoseconds."""
    requests = [Request(0, s, o, arrival_seconds=a / 10**9) for a, s, o in triples]
    return Instance(memory, requests, **more)


def shapes(memory: int, most_output: int) -> st.SearchStrategy[tuple[int, int]]:
    """Draw ``(prompt, output)`` with ``prompt + output <= memory``; narrow and wide alike."""
    outputs = st.integers(1, min(memory, most_output))
    return outputs.flatmap(
        lambda output: st.tuples(
            st.sampled_from([0, memory - output]) | st.integers(0, memory - output), st.just(output)
        )
    )


@st.composite
def instances(
    draw: st.DrawFn,
    *,
    most_requests: int = 6,
    most_memory: int = 12,
    most_output: int = 6,
    last_arrival: int = 6,
) -> Instance:
    """Draw an instance; its requests share few shapes, so that duplicates are likely."""
    memory = draw(st.integers(1, most_memory))
    pool = draw(st.lists(shapes(memory, most_output), min_size=1, max_size=4))
    requests = st.builds(
        lambda arrival, shape: Request(arrival, *shape),
        st.integers(0, last_arrival),
        st.sampled_from(pool),
    )
    return Instance(memory, draw(st.lists(requests, max_size=most_requests)))


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SECONDS = st.floats(0, 1e9, allow_nan=False) | st.integers(0, 10**9)
PREDICTIONS = st.tuples(st.integers(1, 9), st.integers(0, 9)).map(
    lambda pair: Prediction(pair[0], pair[0] + pair[1])
)
NOTES = TEXT | st.dictionaries(TEXT, TEXT | st.integers() | st.lists(TEXT, max_size=2), max_size=3)


@st.composite
def labelled_instances(draw: st.DrawFn) -> Instance:
    """Draw an instance that uses the optional fields too."""
    bare = draw(instances())
    count = len(bare)
    ids = draw(st.lists(TEXT.filter(bool), min_size=count, max_size=count, unique=True))
    requests = [
        Request(
            arrival=request.arrival,
            prompt=request.prompt,
            output=request.output,
            id=label,
            predicted=draw(st.none() | PREDICTIONS),
            arrival_seconds=draw(st.none() | SECONDS),
        )
        for request, label in zip(bare, ids, strict=True)
    ]
    return Instance(
        bare.memory,
        requests,
        name=draw(st.none() | TEXT),
        notes=draw(st.none() | NOTES),
        round_ms=draw(st.none() | st.floats(0.001, 1e6)),
    )


def random_instances(
    count: int,
    seed: int,
    *,
    least_requests: int = 0,
    most_requests: int = 5,
    most_memory: int = 10,
    most_output: int = 5,
    last_arrival: int = 5,
) -> Iterator[Instance]:
    """Yield ``count`` instances; half of them draw from two shapes, so that many are equal."""
    source = random.Random(seed)
    for _ in range(count):
        memory = source.randint(1, most_memory)
        pool = [random_shape(source, memory, most_output) for _ in range(source.choice((2, 9)))]
        size = source.randint(least_requests, most_requests)
        yield Instance(
            memory,
            [Request(source.randint(0, last_arrival), *source.choice(pool)) for _ in range(size)],
        )


def random_shape(source: random.Random, memory: int, most_output: int) -> tuple[int, int]:
    """Return ``(prompt, output)``; one in four has no prompt, one in four fills the memory."""
    output = source.randint(1, min(memory, most_output))
    wide = memory - output
    return source.choice((0, wide, source.randint(0, wide), source.randint(0, wide))), output


def random_starts(instance: Instance, source: random.Random, early: int = 0) -> list[int]:
    """Return starts at random, feasible or not, up to ``early`` rounds before the arrival."""
    slack = source.randint(0, instance.total_output)
    return [source.randint(r.arrival - early, r.arrival + slack) for r in instance]


def random_feasible_starts(instance: Instance, source: random.Random) -> Starts:
    """Return a feasible schedule: in random order, each request where it first fits.

    Some requests are first held back by a few rounds, so that memory may idle too.
    """
    memory, triples = plain(instance)
    starts: dict[int, int] = {}
    for i in source.sample(range(len(triples)), len(triples)):
        starts[i] = triples[i][0] + source.choice((0, 0, 0, 1, 3))
        while not feasible(memory, [triples[j] for j in starts], list(starts.values())):
            starts[i] += 1
    return tuple(starts[i] for i in range(len(triples)))


def drawn_fleet(seed: int) -> Instance:
    """Return a tiny random fleet in which requests are in each other's way."""
    rng = random.Random(seed)
    memory = rng.randint(2, 9)
    requests = []
    for _ in range(rng.randint(1, 5)):
        output = rng.randint(1, min(5, memory))
        prompt = rng.randint(0, memory - output)
        requests.append(Request(rng.choice((0, rng.randint(0, 5))), prompt, output))
    return Instance(memory, requests, workers=rng.randint(2, 3))


def drawn_with_prefixes(seed: int, most: int = 5, *, is_common: bool = False) -> Instance:
    """Return a small instance with prefixes in a forest of up to six blocks.

    With ``is_common`` all paths begin with the same root.
    """
    rng = random.Random(seed)
    block, count = rng.randint(1, 3), rng.randint(1, 6)
    parents = [rng.choice([None, *range(v)]) if v else None for v in range(count)]
    if is_common:
        parents = [None if v == 0 else (p or 0) for v, p in enumerate(parents)]
    label = (lambda v: f"b{v}") if seed % 2 else (lambda v: v)
    requests, memory = [], rng.randint(4, 12) + block * is_common
    for _ in range(rng.randint(1, most)):
        path: list[int | str] = []
        node = rng.choice([*range(count), *([] if is_common else [None])])
        while node is not None:
            path.insert(0, label(node))
            node = parents[node]
        path = path[: (memory - 1) // block]
        prompt = rng.randint(len(path) * block, min(memory - 1, len(path) * block + 3))
        output = rng.randint(1, min(3, memory - prompt))
        requests.append(Request(rng.randint(0, 3), prompt, output, prefix=path))
    return Instance(memory, requests, block_tokens=block)


def drawn_in_blocks(source: random.Random) -> Instance:
    """Return few requests, and blocks of two to four tokens that hold each of them."""
    block, blocks = source.randint(2, 4), source.randint(2, 4)
    requests = []
    for _ in range(source.choice((1, 2, 2, 3, 3, 4))):
        peak = source.randint(1, min(8, block * blocks))
        output = source.randint(1, min(4, peak))
        requests.append(Request(source.choice((0, 0, 1, 3)), peak - output, output))
    return Instance(block * blocks + source.randint(0, block - 1), requests, block_size=block)


SERVERS = (
    Server([(10, 0)], 0, 0),
    Server([(0, 3)], 0, 0),
    Server([(7, 1)], 2, 1),
    Server([(10, 0), (4, 3)], 0, 0),
    Server([(20, 1), (12, 2), (0, 5)], 0, 1),
    Server([(3, 3), (5, 0)], 1, 0),
)


def drawn_in_seconds(seed: int, most: int = 3) -> tuple[Instance, Server]:
    """Return few requests, with prefixes, weights, limits or workers now and then, and a server."""
    rng = random.Random(seed)
    server, late = rng.choice(SERVERS), rng.choice((0, 3, 11, 20))
    instance = drawn_with_prefixes(seed, most, is_common=seed % 4 == 0)
    if seed % 3 == 0:
        instance = replace(instance.without_prefixes(), workers=rng.choice((1, 2, 3)))
    rows = [
        replace(r, arrival_seconds=r.arrival * late / 10**9, weight=rng.choice((1, 1, 1, 2, 3)))
        for r in instance
    ]
    return replace(instance, requests=rows, max_active=rng.choice((None, None, None, 1, 2))), server
