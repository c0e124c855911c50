"""Random certificates for two checkers to agree on, of which many claim a little too much."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from certificates import (
    certificate,
    paused_certificate,
    proved,
    random_proof,
    with_deadlines,
)
from strategies import random_instances

from kvopt.problem.instance import Instance


def drawn(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield certificates by prices and volumes, of which half claim a little too much."""
    source = random.Random(seed)
    for number, instance in enumerate(random_instances(count, seed, last_arrival=9)):
        content = certificate(instance, source)
        proof = drawn_proof(source, number)
        if number % 7 == 0:
            first = min((request.arrival for request in instance), default=0)
            parts = [{"from": first, "proof": proof}, {"from": 5, "proof": random_proof(source)}]
            proof = {"kind": "split", "parts": [p for p in parts if p["from"] in (first, 5)]}
            if first >= 5:
                proof["parts"].pop()
        value = proved(instance, proof)
        content["lower"] = {"value": value + source.choice((0, 0, 0, -1, 1, 2)), "proof": proof}
        content["upper"]["value"] += source.choice((0, 0, 0, 0, 0, 1))
        yield content


def drawn_proof(source: random.Random, number: int) -> dict[str, Any]:
    if number % 3 == 0:
        return random_proof(source)
    stairs = [
        sorted(source.randint(1, 9) for _ in range(source.randint(1, 4)))
        for _ in range(source.randint(0, 3))
    ]
    return {"kind": "volume", "staircases": stairs} if stairs else {"kind": "volume"}


def drawn_with_pauses_or_deadlines(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield certificates of either and of both, of which half claim a little too much."""
    source = random.Random(seed)
    for number, instance in enumerate(random_instances(count, seed, last_arrival=9)):
        if number % 4 == 0:
            requests = [replace(request, deadline=source.randint(1, 12)) for request in instance]
            instance = Instance(instance.memory, requests)
        made = certificate if number % 3 == 0 else paused_certificate
        content = made(instance, source)
        if number % 3 < 2:
            content = with_deadlines(content, source)
            claim = content["deadlines"]
            claim["ceiling"] += source.choice((0, 0, 0, 1, -1))
            if claim["best"]:
                claim["best"]["attained"] += source.choice((0, 0, 0, 0, -1))
        content["lower"]["value"] += source.choice((0, 0, 0, -1, 1))
        for row in content["policies"][-1].get("segments", [])[:1]:
            row[-1][1] += source.choice((0, 0, 0, 0, 0, 1))
        yield content
