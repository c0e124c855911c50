"""Random certificates of tiny instances, where features meet, and random proofs for them."""

from __future__ import annotations

import itertools
import random
from typing import Any

from certificates import claiming, random_proof
from strategies import random_shape

from kvopt.verify.certified_problem import Problem, held_together, problem_of
from kvopt.verify.check_proofs import missing

Content = dict[str, Any]
SCOPES = ("runs", "restarts", "pauses", "chunks", "pauses+chunks")
KINDS = ("prices", "volume", "staircases", "configurations", "branches", "slots", "split")
LINES = ([(9, 0), (0, 3)], [(9, 0), (0, 3), (2, 2)], [(5, 1)], [(4, 0), (1, 2)], [(0, 4)])
FOREST = (["a"], ["a", 1], ["a", 1, 2], ["a", 3], ["b", "c"])
"""Paths of blocks that requests share."""


def drawn(source: random.Random) -> Content:
    """Return a certificate that claims nothing, of one of the kinds of problems there are."""
    timed = source.random() < 0.5
    block = 1 if timed else source.choice((1, 1, 2, 3))
    memory = block * source.randint(2, 8 if block == 1 else 4) + source.randrange(block)
    rows = []
    for _ in range(source.choice((1, 2, 2, 3, 3))):
        prompt, output = random_shape(source, memory // block * block, 3)
        arrival = source.choice((0, 0, 1, 2, 4, 7))
        rows.append(
            {"arrival": arrival, "prompt": min(prompt, 3) if timed else prompt, "output": output,
             "e2e": source.randint(1, 8), "arrival_seconds": 3e-9 * arrival}
        )  # fmt: skip
    instance = {"schema": "kvopt.instance/2", "memory": memory, "requests": rows, "round_ms": 3e-6}
    if block > 1:
        instance["block_size"] = block
    elif source.random() < 0.4:
        instance["workers"] = source.choice((2, 3))
    content = claiming(instance, scope=source.choice(SCOPES))
    if timed:
        content["clock"] = model(source)
    return content


def restricted(source: random.Random) -> Content:
    """Return one with weights, a limit, blocks, shared prefixes, or some of these."""
    block = source.choice((1, 1, 1, 2))
    memory, rows = source.randint(3, 7) * block, list[Content]()
    timed, size = source.random() < 0.3, source.choice((1, 1, 2)) * block
    shares = source.random() < 0.6
    for _ in range(source.choice((1, 2, 3, 3))):
        prompt, output = random_shape(source, memory // block * block, 3)
        row: Content = {"arrival": source.choice((0, 0, 1, 3)), "prompt": prompt, "output": output}
        if timed:
            row["arrival_seconds"] = 3e-9 * row["arrival"]
        if source.random() < 0.4:
            row["weight"] = source.randint(1, 4)
        path = source.choice(FOREST)[: prompt // size]
        if shares and path:
            row["prefix"] = list(path)
        rows.append(row)
    instance: Content = {"schema": "kvopt.instance/2", "memory": memory, "requests": rows}
    if block > 1:
        instance["block_size"] = block
    if source.random() < 0.3:
        instance["max_active"] = source.randint(1, 2)
    if source.random() < 0.3:
        instance["workers"] = 2
    scope = source.choice(("runs", "runs", "pauses", "chunks", "pauses+chunks"))
    if any("prefix" in row for row in rows):
        instance["block_tokens"] = size
        scope = f"sharing+{scope}".replace("+runs", "")
    return claiming(instance, clock=model(source) if timed else "rounds", scope=scope)


def model(source: random.Random) -> Content:
    """Return how long rounds last."""
    return {"lines": [{"round_ns": a, "token_ns": b} for a, b in source.choice(LINES)],
            "kv_ns": source.choice((0, 0, 1)), "prompt_ns": source.choice((0, 0, 1))}  # fmt: skip


def bound_of(content: Content, proof: Content, value: int) -> Content:
    """Return the claim of a lower bound, with the relaxations that its proof needs."""
    steps = missing(problem_of(content).within(content["scope"]), proof)
    return {"value": value, **({"relaxations": steps} if steps else {}), "proof": proof}


def proof_of(content: Content, source: random.Random) -> Content:
    """Return a proof of a kind that may go with the problem."""
    memory, rows = content["instance"]["memory"], content["instance"]["requests"]
    if content["clock"] != "rounds" and source.random() < 0.5:
        return shared_rounds(content, source)
    if content["clock"] != "rounds":
        lines = some_lines(content, source)
        counts = [row.get("weight", 1) for row in rows]
        weights = [n * source.choice((0, 16, 32, 64)) for n in counts]
        weights = weights if source.random() < 0.6 else []
        shares: Content = {"kind": "shares", "lines": lines, "weights": weights, "company": []}
        if weights and source.random() < 0.7:
            pairs = zip(counts, weights, strict=True)
            shares["company"] = [source.randint(0, 64 * n - weight) for n, weight in pairs]
        if "max_active" in content["instance"] and source.random() < 0.5:
            shares["by_memory"] = source.choice((0, 20, 48))
        if source.random() < 0.3:
            shares["parts"] = source.randint(0, 3)
        return {**shares, "mix": [1 + i for i in lines]} if source.random() < 0.4 else shares
    kind = source.choice(KINDS)
    if kind == "volume":
        return {"kind": "volume"}
    if kind == "staircases":
        steps = sorted(source.randint(1, memory) for _ in range(source.randint(1, 3)))
        return {"kind": "volume", "staircases": [steps]}
    if kind == "split":
        first = random_proof(source)
        parts = [{"from": 0, "proof": source.choice((first, with_slots(first, source)))}]
        parts.append({"from": source.randint(1, 7), "proof": {"kind": "volume"}})
        return {"kind": "split", "parts": parts}
    if kind == "configurations":
        return configurations(rows, source)
    proof = random_proof(source)
    if kind == "branches":
        return random_branches(source, len(rows), source.randint(1, 30))
    return with_slots(proof, source) if kind == "slots" else proof


def random_branches(source: random.Random, count: int, target: int) -> Content:
    """Return a tree of any cases of so many requests, with any multipliers."""
    branches, leaves = list[list[int]](), list[list[int]]()
    places = itertools.count()

    def grow(depth: int, rows: int) -> None:
        place, size = next(places), source.randint(1, min(3, count)) if count else 0
        if depth and size and source.random() < 0.7:
            branch = source.sample(range(count), size)
            if size == 1:
                branch = [-1 - branch[0], source.randint(-1, 12)]
            branches.append(branch)
            for case in range(2 if size == 1 else 2 * size - 1):
                grow(depth - 1, rows + case + 1)
        else:
            pairs = [
                (source.randrange(rows), source.choice((1, 1, 2, 3)))
                for _ in range(source.randint(0, 3) if rows else 0)
            ]
            leaves.append([place, source.choice((1, 1, 2, 6)), *itertools.chain(*pairs)])

    grow(2, 0)
    return {"kind": "branches", "target": target, "branches": branches, "leaves": leaves}


def shared_rounds(content: Content, source: random.Random) -> Content:
    """Return prices of shared rounds, of rows that are lines or roofs of some."""
    rows, unit = content["instance"]["requests"], 64 * source.choice((1, 4, 16))
    lines = some_lines(content, source)
    cell, longest = source.choice((1, 2, 3, 5, 9)), source.choice((1, 12, 30))
    fixed = [unit * row.get("weight", 1) * source.randint(0, 12) for row in rows]
    slopes = [price // source.choice((3, 9, 20, 40)) for price in fixed]
    beside = [source.choice((0, 0, 9, 40)) * row.get("weight", 1) for row in rows]
    prices = [
        [source.choice((0, 0, unit // 2, unit)) for _ in range(-(-longest // cell))] for _ in lines
    ]
    proof: Content = {"kind": "shared-rounds", "rows": [[line] for line in lines], "unit": unit,
             "cell": cell, "fixed": fixed, "slopes": slopes, "interference": beside,
             "row_prices": prices}  # fmt: skip
    if "chunks" not in content["scope"] and source.random() < 0.5:
        proof["rows"][0] = lines
    if "max_active" in content["instance"] and source.random() < 0.5:
        proof["by_memory"] = source.choice((0, 20, 48))
    if "sharing" in content["scope"] and source.random() < 0.7:
        proof["rows"][0] = lines[:1]
        proof["block_shares"] = [
            [source.choice((0, 1, 1, 9)) for _ in range(source.choice((1, 4, 30)))] for _ in rows
        ]
        proof["period"] = source.randint(1, 3)
    elif "chunks" not in content["scope"] and source.random() < 0.7:
        proof["grown"] = [source.choice((0, 9, 24)) * row.get("weight", 1) for row in rows]
        proof["backlog"] = [[source.choice((unit // 4, unit)) for _ in rows] for _ in range(2)]
        proof["waits"] = [source.choice((0, 0, 999)) for _ in rows]
    return proof


def shared_prices(problem: Problem, source: random.Random) -> Content:
    """Return prices of tokens and shared nodes: users pay as much as others, or one of them most.

    Now and then they pay more than the whole node, which the checker refuses.
    """
    most = held_together(problem)[2]
    borders, unit = sorted(source.sample(range(12), source.randint(2, 4))), source.choice((1, 2, 6))
    nodes = [v for path in problem.paths for v in path if v in most]
    shares = [[0] * (len(borders) - 1) for _ in nodes]
    for v in sorted(set(nodes)):
        rows = [row for row, node in zip(shares, nodes, strict=True) if node == v]
        for x in range(len(borders) - 1):
            if source.random() < 0.3:
                for row in rows:
                    row[x] = unit // most[v]
                continue
            for _ in range(unit + (source.random() < 0.2)):
                source.choice(rows)[x] += 1
    prefixes = {"name": "prefixes", "denominator": unit, "times": borders, "numerators": shares}
    proof = random_proof(source)
    proof = with_slots(proof, source) if source.random() < 0.3 else proof
    return {**proof, "resources": [*proof["resources"], prefixes]}


def with_slots(proof: Content, source: random.Random) -> Content:
    slots = []
    for count in source.sample(range(1, 6), source.randint(1, 3)):
        times = sorted(source.sample(range(12), source.randint(2, 5)))
        numbers = [source.randint(0, 5) for _ in times]
        slots.append({"name": "slots", "capacity": count, "times": times, "numerators": numbers})
    return {**proof, "resources": [*proof["resources"], *slots]}


def configurations(rows: list[Content], source: random.Random) -> Content:
    sizes = sorted({row["prompt"] + row["output"] for row in rows})
    peaks = [[size, source.randint(1, 3)] for size in sizes]
    times = sorted(source.sample(range(1, 10), source.randint(1, 3)))
    states, scale = sum(rounds for _, rounds in peaks), source.choice((1, 2, 4))
    prices = [[source.randint(0, scale) for _ in range(states)] for _ in times]
    stage = {"denominator": scale, "peaks": peaks, "times": times, "numerators": prices}
    target = source.choice((None, source.randint(1, 30)))
    searched = target is not None and source.random() < 0.5
    return {"kind": "configurations", "target": target, "searched": searched, "stages": [stage]}


def some_lines(content: Content, source: random.Random) -> list[int]:
    count = len(content["clock"]["lines"])
    return source.sample(range(count), source.randint(1, count))
