"""arXiv 2606.22327: how far smallest volume first is from the optimum, from both sides."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from kvopt.experiments.hunting.judge import instance_of
from kvopt.experiments.hunting.space import Space
from kvopt.experiments.theory.examination import Finding, Parts, dots, line, topic
from kvopt.experiments.theory.simulations import Simulation, latency
from kvopt.problem.instance import Instance
from kvopt.problem.requests import Request
from kvopt.search.exact.starts import best_below

_OUTPUTS = (3, 7, 15, 31, 63)
"""Odd outputs of equal requests: requests that start together then end with a full cache."""


def ratio_proved(alpha: Fraction) -> Fraction:
    """Return the bound of Theorem 3.2 if no request needs more than ``alpha M`` alone."""
    return 1 + 2 / (1 - alpha)


def equal_requests(output: int, batches: int) -> Instance:
    """Return requests without prompts of which svf runs ``batches``, one after the other.

    M is the sum of 1 .. ``output``, so that one start a round is feasible.
    """
    count = batches * (output + 1) // 2
    return Instance(output * (output + 1) // 2, [Request(0, 0, output)] * count)


@topic("svf")
def smallest_volume_first(simulation: Simulation) -> Parts:
    """Theorem 3.2: its bound on drawn instances, and on equal requests, whose ratio nears 2."""
    worst, share, tried = _drawn(300 * simulation.draws * simulation.scale)
    yield Finding(
        f"the worst of {tried} small instances is {float(worst):.3f} times the optimum, and none "
        f"reaches more than {float(share):.2f} of its bound; `kvopt hunt --policy svf` looks for "
        "worse",
        "refuted" if share > 1 else "measured",
    )
    rows: list[tuple[float, Fraction]] = []
    for output in _OUTPUTS:
        instance = equal_requests(output, 200 * simulation.scale)
        values = [latency(instance, policy) for policy in ("svf", "paced")]
        rows.append((2 / (output + 1), Fraction(*values)))
    said = ", ".join(f"{float(ratio):.3f} at alpha = {alpha:g}" for alpha, ratio in rows)
    yield Finding(
        f"requests of output k and no prompt with M = k (k + 1) / 2: at least {said}; with more "
        "requests the factor tends to 2 - alpha, so the best constant is between 2 and 3",
        "measured",
    )
    alphas = [Fraction(k, 100) for k in range(1, 61)]
    yield line("theorem 3.2, at most", [(float(a), ratio_proved(a)) for a in alphas])
    yield line("equal requests, 2 - alpha", [(float(a), 2 - a) for a in alphas])
    yield dots("equal requests, simulated", rows)


def _drawn(count: int) -> tuple[Fraction, Fraction, int]:
    """Return the worst ratio of drawn instances, the largest share of its bound, and how many."""
    worst = share = Fraction(0)
    rng, space, tried = Random(0), Space(12, 6), 0
    while tried < count:
        memory, requests = space.drawn(rng)
        case = memory, tuple((a, s // 2, (o + 1) // 2) for a, s, o in requests)
        peak = max(s + o for _, s, o in case[1])
        if peak == memory:  # then the theorem gives no bound
            continue
        value = latency(instance_of(case), "svf")
        best = best_below(*case, value + 1)
        assert best is not None, "no run is below the optimum"
        ratio = Fraction(value, best[0])
        worst = max(worst, ratio)
        share = max(share, ratio / ratio_proved(Fraction(peak, memory)))
        tried += 1
    return worst, share, tried
