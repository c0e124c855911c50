"""jaillet-2025: the adversaries, mc-sf on equal requests, its regret, and two lemmas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import product
from math import log, sqrt

from curves import Curve, Finding, Parts, dots, line
from games import play, reference
from simulations import Simulation, latency

from kvopt import Instance, Request, generate, run

Games = dict[str, list[float]]
"""Ratios by policy."""

_PROVED = 28
"""The proof of theorem 4.1 gives a ratio of sqrt(M) / 28."""


def theorem_4_1(simulation: Simulation) -> Parts:
    """Theorem 4.1 of jaillet-2025-v2: the adversary against every deterministic scheduler."""
    memories = [4**k for k in range(2, 6 + (simulation.scale > 1))]
    games = _games("thm-4.1", ("mc-sf", "fcfs", "svf", "h-sf", "paced"), memories)
    sizes = [m // 2 + 1 for m in memories]
    bound = [sqrt(m) / _PROVED for m in memories]
    apart = log(sizes[-1] / sizes[-2])
    slopes = {policy: log(ratios[-1] / ratios[-2]) / apart for policy, ratios in games.items()}
    holds = all(r >= b for ratios in games.values() for r, b in zip(ratios, bound, strict=True))
    yield Finding(
        f"against each scheduler played the ratio to a checked schedule is at least that; "
        f"at n = {sizes[-1]} it is {_ends(games)}; slope of log ratio over log n "
        "between the last two sizes: "
        + ", ".join(f"{policy} {slope:.2f}" for policy, slope in slopes.items()),
        holds,
    )
    yield line("sqrt(M) / 28, proved", zip(sizes, bound, strict=True))
    yield from _dots(sizes, games)
    yield {"slopes": slopes}


def lemmas_4_4_and_4_7(simulation: Simulation) -> Parts:
    """Lemmas 4.4 and 4.7 of jaillet-2025-v2, as inequalities on drawn backlogs."""
    upper, lower = [], []
    for seed in range(10 * simulation.draws * simulation.scale):
        # A backlog of one prompt; the lemmas need M to hold two of the largest requests.
        keys = {"u": 12, "q": 0.9, "prompt": seed % 4}
        instance = generate("geometric", 40 + seed, 2 * (12 + seed % 4), seed, keys)
        packed, outputs = _lemma_sums(instance)
        best = min(latency(instance, policy) for policy in ("mc-sf", "svf", "paced"))
        upper.append(latency(instance, "mc-sf") / (1536 * packed + 24 * outputs))
        lower.append((packed + outputs) / 6 / best)
    holds = max(upper) <= 1 and max(lower) <= 1
    yield Finding(
        f"hold on all {len(upper)} drawn backlogs with M at least twice the largest peak; "
        f"mc-sf reaches {float(max(upper)):.4f} of its bound, and the lower bound "
        f"{float(max(lower)):.2f} of a checked schedule"
        if holds
        else "one of them fails on a drawn backlog",
        holds,
    )
    yield {"largest_share_4_4": float(max(upper)), "largest_share_4_7": float(max(lower))}


def theorem_4_2(simulation: Simulation) -> Parts:
    """Theorem 4.2 of jaillet-2025-v1: mc-sf on requests that are all equal."""
    times = 200 * simulation.scale
    rows = [(output, _equal_ratio(output, times)) for output in (5, 7, 9, 15, 21, 31)]
    last, ratio = rows[-1]
    yield Finding(
        f"one start a round is feasible and {float(ratio):.3f} times as good with "
        f"o = {last} and {times * last} requests; with more requests the factor "
        f"tends to 2 o / (o + 3), so to 2 as o grows",
        ratio <= 1,
    )
    yield line("2 o / (o + 3)", [(output, 2 * output / (output + 3)) for output, _ in rows])
    yield dots("simulated", rows)


def theorem_5_3(simulation: Simulation) -> Parts:
    """Theorem 5.3 of jaillet-2025-v1: regret of mc-sf that is certain, by horizon."""
    horizons = [250 * 2**k for k in range(5 + (simulation.scale > 1))]
    curves = {
        rate: [(t, _certain_regret(rate, t, simulation.draws)) for t in horizons]
        for rate in (0.5, 0.8, 1.2)
    }
    said = "; ".join(
        f"rate {rate}: " + ", ".join(f"{float(r):.1f} at T = {t:,}" for t, r in rows)
        for rate, rows in curves.items()
    )
    linear = all(
        rows[-1][1] > Fraction(rows[-1][0], 2 * rows[0][0]) * rows[0][1] > 0
        for rate, rows in curves.items()
        if rate > 0.5
    )
    yield Finding(f"at least, in rounds a request: {said}", not linear)
    for rate, rows in curves.items():
        yield dots(f"{rate} requests a round", rows)


def theorem_6_2(simulation: Simulation) -> Parts:
    """Theorem 6.2 of jaillet-2025-v1: the adversary with prompts of epsilon M."""
    memories = [20 * 2**k for k in range(7 + (simulation.scale > 1))]
    games = _games("v1-thm-6.2", ("mc-sf", "fcfs", "svf", "paced"), memories)
    rises = all(ratios[-1] > max(ratios[-3], 5) and ratios[-3] > 1 for ratios in games.values())
    yield Finding(f"at M = {memories[-1]}: {_ends(games)}", rises)
    yield from _dots(memories, games)


def _games(game: str, policies: Iterable[str], memories: Iterable[int]) -> Games:
    """Return the ratio of each policy to a checked schedule, by memory."""
    found: Games = {}
    for policy, memory in product(policies, memories):
        instance = play(game, policy, memory)
        schedule = reference(instance)
        assert schedule.check().feasible, "the schedule of the proof"
        found.setdefault(policy, []).append(latency(instance, policy) / schedule.objective)
    return found


def _ends(games: Games) -> str:
    return ", ".join(f"{ratios[-1]:.2f} ({policy})" for policy, ratios in games.items())


def _dots(sizes: Iterable[int], games: Games) -> Iterator[Curve]:
    for policy, ratios in games.items():
        yield dots(policy, zip(sizes, ratios, strict=True))


def _equal_ratio(output: int, times: int) -> Fraction:
    instance = Instance(output * (output + 3) // 2, [Request(0, 1, output)] * (times * output))
    found = run(instance, "paced").schedule
    assert found is not None
    assert found.check().feasible
    return Fraction(latency(instance, "mc-sf"), found.objective)


def _certain_regret(rate: float, rounds: int, draws: int) -> Fraction:
    """Return the mean over draws of mc-sf less a schedule, for each request."""
    total = Fraction(0)
    for seed in range(draws):
        keys = {"rate": rate, "rounds": rounds, "prompt": 1, "batch": 2}
        instance = generate("steady", seed=seed, parameters=keys)
        own, paced = (latency(instance, policy) for policy in ("mc-sf", "paced"))
        total += Fraction(own - min(own, paced), max(len(instance), 1))
    return total / draws


def _lemma_sums(instance: Instance) -> tuple[Fraction, int]:
    """Return, over M, the sum over requests of the volumes of outputs no larger; and sum o."""
    volumes = sorted((request.output, request.volume) for request in instance)
    total = sum(volume for output, _ in volumes for other, volume in volumes if other <= output)
    return Fraction(total, instance.memory), instance.total_output
