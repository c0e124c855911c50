"""Arrivals, weights and memories up to the largest numbers: no bound passes the optimum."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from effort import many
from known import known
from strategies import optimum_of

from kvopt import Instance, Request, bound, certify, solve
from kvopt.certificates.certificate_files import certificate_text
from kvopt.problem.requests import LARGEST_INTEGER
from kvopt.verify import verify_text

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("error")]

MODES: dict[str, dict[str, Any]] = {
    "plain": {},
    "weights": {},
    "cap": {"max_active": 2},
    "prefixes": {"block_tokens": 2},
    "fleet": {"workers": 2},
    "fleet with weights": {"max_active": 1, "workers": 2},
    "blocks": {"block_size": 3},
    "pauses": {},
}


def large(rng: random.Random) -> int:
    """Draw a number of any magnitude."""
    return rng.randint(1, 2 ** rng.randint(1, 53))


def drawn(mode: str, seed: int) -> Instance:
    """Draw two crowds of up to three requests, far apart, with numbers of any magnitude."""
    rng = random.Random(seed)
    memory = max(9, large(rng) // 3 * 3)  # whole blocks
    begins = [rng.choice((0, large(rng) // 2)), LARGEST_INTEGER - rng.randint(100, 2**45)]
    requests = []
    for begin in begins[: rng.randint(1, 2)]:
        for _ in range(rng.randint(1, 3)):
            output = rng.randint(1, 3)
            prompt = min(memory - output, memory // rng.randint(1, 3) + rng.randint(-3, 3))
            weight = large(rng) if "weights" in mode else 1
            paths = [(), (1,), (1, 2)][: 1 + min(2, max(0, prompt) // 2)]
            prefix = rng.choice(paths) if mode == "prefixes" else ()
            arrival = begin + rng.randint(0, 2)
            requests.append(Request(arrival, max(0, prompt), output, weight=weight, prefix=prefix))
    return Instance(memory, requests, **MODES[mode])


def optimum(instance: Instance, mode: str) -> int:
    """Return the least weighted latency, crowd by crowd, each from its first arrival on."""
    crowds: dict[int, list[Request]] = {}
    for request in instance:
        near = [k for k in crowds if abs(request.arrival - k) < 100]
        crowds.setdefault(near[0] if near else request.arrival, []).append(request)
    parts = (
        replace(instance, requests=crowd).shifted(-min(r.arrival for r in crowd))
        for crowd in crowds.values()
    )
    return sum(optimum_of(part, scope="pauses" if mode == "pauses" else "runs") for part in parts)


@pytest.mark.parametrize("mode", MODES)
def test_no_bound_passes_the_optimum(mode: str) -> None:
    scope = "pauses" if mode == "pauses" else None
    for seed in range(many(6)):
        instance = drawn(mode, seed)
        best = optimum(instance, mode)
        for engine in ("auto",) if mode == "pauses" else ("auto", "cpsat", "highs"):
            found = solve(instance, engine, scope=scope, time_limit=5, threads=1)
            assert not found.faults
            assert (found.lower_bound or 0) <= best <= known(found.objective), (seed, engine)
        proved = bound(instance, scope=scope, time_limit=5, threads=1).value
        assert known(proved) <= best, seed
        certificate = certify(instance, ["svf"], scope=scope, time_limit=5, threads=1)
        assert verify_text(certificate_text(certificate)).valid, seed
