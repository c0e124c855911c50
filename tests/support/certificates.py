"""What the tests of certificates share: a valid one, literal bounds, places of numbers."""

from __future__ import annotations

import copy
import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import inf
from pathlib import Path
from typing import Any

from msgspec import to_builtins
from strategies import instance_of, plain, random_feasible_starts

from kvopt.certificates.certificate_files import certificate_text
from kvopt.incumbent.certificate import Certificate
from kvopt.incumbent.proofs import Proof
from kvopt.problem.clocks import ROUNDS, Clock
from kvopt.problem.instance import Instance
from kvopt.problem.instance_files import instance_to_json
from kvopt.problem.scopes import Scope
from kvopt.verify import Verdict, verify, verify_text
from kvopt.verify.certified_problem import Problem, Request, hash_of
from kvopt.verify.certified_problem import problem_of as read_problem
from kvopt.verify.check_proofs import value_of_proof
from kvopt.verify.check_slo import Due, most_in_time
from kvopt.verify.step_budget import Work

Place = tuple[str | int, ...]

EC1 = instance_of(7, [(0, 1, o) for o in (1, 2, 3, 4)])
LOST = {
    "policy": "evicts",
    "outcome": "completed",
    "value": 4 + 8 + 9 + 15,
    "starts": [3, 6, 6, 11],
    "lost": [[1, 2, 3], [1, 3, 4], [3, 2, 4]],
}
"""A run of `EC1` with evictions."""


def prices_proof(denominator: int, first: int, numerators: Sequence[int]) -> dict[str, Any]:
    tokens = {"name": "tokens", "first": first, "numerators": list(numerators)}
    return {"kind": "prices", "denominator": denominator, "resources": [tokens]}


def prices_between(
    borders: Sequence[int], numerators: Sequence[int], one: int, lines: Sequence[int] | None = None
) -> dict[str, Any]:
    """Return prices that are constant between borders: of machine time, if there are lines."""
    if lines is None:
        pairs = zip(borders, borders[1:], numerators, strict=False)
        each = [price for a, b, price in pairs for _ in range(a, b)]
        return prices_proof(one, borders[0] + 1 if each else 1, each)
    machine = {"name": "machine", "times": [*borders], "numerators": [*numerators]}
    return {"kind": "prices", "denominator": one, "resources": [{**machine, "lines": [*lines]}]}


def split(*parts: Any) -> dict[str, Any]:
    """Return a proof by parts, each with the arrival from which on it counts."""
    return {"kind": "split", "parts": [{"from": begin, "proof": proof} for begin, proof in parts]}


def problem_of(instance: Instance, **more: Any) -> Problem:
    """Return an instance as the verifier has it, in rounds if nothing else is said."""
    requests = [Request(request.arrival, request.prompt, request.output) for request in instance]
    return Problem(instance.memory, requests, instance.workers, instance.block_size, **more)


def problem_from(instance: Instance, clock: Clock = ROUNDS, scope: str = "runs") -> Problem:
    """Return a problem as the verifier reads it from a certificate that claims nothing."""
    nothing = Certificate(instance, None, None, scope=Scope(scope), clock=clock)
    return read_problem(json.loads(certificate_text(nothing))).within(scope)


def in_file(proof: Proof) -> dict[str, Any]:
    """Return a proof as a reader finds it in a file."""
    read: dict[str, Any] = json.loads(json.dumps(to_builtins(proof)))
    return read


def proved(instance: Instance, proof: Proof | dict[str, Any], **more: Any) -> int:
    """Return what the verifier makes of a proof."""
    read = proof if isinstance(proof, dict) else in_file(proof)
    return value_of_proof(problem_of(instance, **more), read, Work())[0]


SHAPES = ("falling", "rough", "spiky", "waves")


def long_prices(shape: str, source: random.Random, count: int) -> list[int]:
    """Return prices of many rounds, in millionths, so that blocks of every size are skipped."""
    times = range(count)
    if shape == "falling":
        return [10**6 * (count - t) ** 2 // count**2 // 10 for t in times]
    if shape == "rough":
        return [10**6 * (count - t) // (10 * count) + source.randint(0, 3000) for t in times]
    if shape == "spiky":
        return [source.choice((0, 0, 0, source.randint(0, 10**6))) for _ in times]
    return [int(30000 * (1 + math.sin(t / 20)) + source.randint(0, 50)) for t in times]


def random_proof(source: random.Random, most: int = 12) -> dict[str, Any]:
    """Return prices of many shapes: falling, spiky, dense, with zeros, late or early."""
    count = source.randint(0, most)
    denominator = source.choice((1, 2, 3, 7, 100, 2**30))
    level = source.choice((denominator, denominator // 3 + 1, denominator // 20 + 1))
    kind = source.randrange(3)
    if kind == 0:
        numbers = sorted((source.randint(0, level) for _ in range(count)), reverse=True)
    elif kind == 1:
        numbers = [source.choice((0, 0, source.randint(0, level))) for _ in range(count)]
    else:
        numbers = [source.randint(0, level) for _ in range(count)]
    return prices_proof(denominator, source.choice((1, 1, 2, 5)), numbers)


def claiming(instance: Instance | dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return a certificate of an instance, or of its object, that claims these members alone."""
    return {
        "schema": "kvopt.certificate/4",
        "clock": "rounds",
        "scope": "runs",
        "instance": instance_to_json(instance) if isinstance(instance, Instance) else instance,
        "hash": instance.hash if isinstance(instance, Instance) else hash_of(instance),
        "upper": None,
        "lower": None,
        **members,
    }


def certificate(instance: Instance, source: random.Random, **members: Any) -> dict[str, Any]:
    """Return a valid certificate as an object, with a random schedule and random prices."""
    starts = random_feasible_starts(instance, source)
    value = sum(k + r.output - r.arrival for k, r in zip(starts, instance, strict=True))
    proof = random_proof(source)
    claims = {
        "upper": {"value": value, "starts": list(starts)},
        "lower": {"value": proved(instance, proof), "proof": proof},
        "policies": [
            {"policy": "some", "outcome": "completed", "value": value, "starts": list(starts)},
            {"policy": "other", "outcome": "livelock", "value": None},
        ],
        "provenance": {"seed": 7},
    }
    return claiming(instance, **claims | members)


def random_segments(instance: Instance, source: random.Random) -> list[list[list[int]]]:
    """Return a feasible schedule with pauses: in random order each token where it first fits.

    Some tokens are held back, so that there are pauses without need too.
    """
    memory, requests = plain(instance)
    held: Counter[int] = Counter()
    found: list[list[list[int]]] = [[] for _ in requests]
    for i in source.sample(range(len(requests)), len(requests)):
        time, prompt, output = requests[i]
        for tokens in range(prompt + 1, prompt + output + 1):
            time += source.choice((1, 1, 1, 1, 2, 4))
            while held[time] + tokens > memory:
                time += 1
            held[time] += tokens
            if found[i] and found[i][-1][1] == time - 1 and source.random() < 0.8:
                found[i][-1][1] = time
            else:
                found[i].append([time, time])
    return found


def paused_certificate(instance: Instance, source: random.Random) -> dict[str, Any]:
    """Return a valid certificate of the scope of pauses."""
    segments = random_segments(instance, source)
    value = sum(rows[-1][1] - r.arrival for rows, r in zip(segments, instance, strict=True))
    run = certificate(instance, source)["policies"][0]
    named = {"policy": "pauses", "outcome": "completed", "value": value, "segments": segments}
    upper = {"value": value, "segments": segments}
    if run["value"] < value:
        upper = {"value": run["value"], "starts": run["starts"]}
    proof = source.choice((random_proof(source), random_proof(source), {"kind": "volume"}))
    lower = {"value": proved(instance, proof, pauses=True), "proof": proof}
    return certificate(
        instance, source, scope="pauses", upper=upper, lower=lower,
        policies=[run, named],
    )  # fmt: skip


def with_slo(content: dict[str, Any], source: random.Random) -> dict[str, Any]:
    """Return a valid certificate with a service level: random prices, and runs as they are."""
    content = dict(content)
    rows = content["instance"]["requests"]
    borders = sorted({source.randint(0, 25) for _ in range(source.randint(0, 6))})
    one = source.choice((1, 5, 100, 2**40))
    level = source.choice((one // 30 + 1, one // 8 + 1, one))
    prices = [source.randint(0, level) for _ in borders[1:]]
    prices = sorted(prices, reverse=True) if source.random() < 0.3 else prices
    name = source.choice(("ttft", "e2e"))
    own = bool(rows) and all("e2e" in row for row in rows)
    limits: dict[str, Any] = {"e2e": "own"} if own else {name: source.randint(1, 12)}
    claim: dict[str, Any] = {"limits": limits, "proof": prices_between(borders, prices, one)}
    content["slo"] = claim
    due = [Due(limits.get("ttft", inf), inf, row["e2e"] if own else limits.get("e2e", inf))
           for row in rows]  # fmt: skip
    requests = [Request(row["arrival"], row["prompt"], row["output"]) for row in rows]
    problem = Problem(content["instance"]["memory"], requests, pauses="pauses" in content["scope"])
    claim["ceiling"] = most_in_time(problem, claim["proof"], due, Work())[0]

    def attained(run: dict[str, Any]) -> int | None:
        if run["value"] is None:
            return None
        if "segments" in run:
            times = [(row[0][0], row[-1][1]) for row in run["segments"]]
        else:
            pairs = zip(run["starts"], requests, strict=True)
            times = [(k + 1, k + request.output) for k, request in pairs]
        return sum(
            limit.is_met(request.arrival, ends)
            for request, ends, limit in zip(requests, times, due, strict=True)
        )

    claim["attained"] = [attained(run) for run in content["policies"]]
    best = content["upper"]
    claim["best"] = source.choice((None, {**best, "attained": attained(best)}))
    return content


def verified(made: Certificate) -> str:
    """Return the report on the file of a certificate, which is valid."""
    verdict = verify_text(certificate_text(made))
    assert verdict.valid, verdict.lines
    return "\n".join(verdict.lines)


def judged(path: Path, content: object) -> Verdict:
    """Write an object or a text to a file and verify it."""
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return verify(path)


def changed(content: Any, place: Place, change: Callable[[Any], Any]) -> Any:
    """Return a certificate with one value changed; what is not there is None before."""
    found = copy.deepcopy(content)
    inner: Any = found
    for step in place[:-1]:
        inner = inner[step]
    key = place[-1]
    is_there = key in inner if isinstance(inner, dict) else True
    inner[key] = change(inner[key] if is_there else None)
    return found


def assert_unreadable(verdict: Verdict) -> None:
    """A file is refused in one line that can be printed, before anything is checked."""
    assert verdict.exit_status == 2, verdict.lines
    assert len(verdict.lines) == 1
    assert verdict.lines[0].isprintable()


def value_at(content: Any, place: Place) -> Any:
    """Return what a JSON value has at a place."""
    for step in place:
        content = content[step]
    return content


def places_in(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the place of every value inside a JSON value, of lists the first and last."""
    keys = [*value] if isinstance(value, dict) else sorted({0, len(value) - 1}) if value else []
    for key in keys:
        yield (*place, key)
        if isinstance(value[key], (dict, list)):
            yield from places_in(value[key], (*place, key))


def numbers_in(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the place of every number of a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in inner:
        if isinstance(part, (dict, list)):
            yield from numbers_in(part, (*place, key))
        elif isinstance(part, (int, float)) and not isinstance(part, bool):
            yield (*place, key)
