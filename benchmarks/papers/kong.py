"""arXiv 2606.22327: how far smallest volume first is from the optimum, from both sides."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from curves import Finding, Parts, dots, line
from simulations import Simulation, latency, ratio_of, tiny_instance

from kvopt import Instance, Request

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


def smallest_volume_first(simulation: Simulation) -> Parts:
    """Theorem 3.2: its bound on drawn instances, and on equal requests, whose ratio nears 2."""
    drawn = _drawn(300 * simulation.draws * simulation.scale)
    worst, share = (max(ratios) for ratios in zip(*drawn, strict=True))
    yield Finding(
        f"the worst of {len(drawn)} small instances is {float(worst):.3f} times the optimum, and "
        f"none reaches more than {float(share):.2f} of its bound; `hunt.py --policy svf` looks "
        "for worse",
        share <= 1,
    )
    rows: list[tuple[float, Fraction]] = []
    for output in _OUTPUTS:
        instance = equal_requests(output, 200 * simulation.scale)
        values = [latency(instance, policy) for policy in ("svf", "paced")]
        rows.append((2 / (output + 1), Fraction(*values)))
    said = ", ".join(f"{float(ratio):.3f} at alpha = {alpha:g}" for alpha, ratio in rows)
    yield Finding(
        f"requests of output k and no prompt with M = k (k + 1) / 2: at least {said}; with more "
        "requests the factor tends to 2 - alpha, so the best constant is between 2 and 3"
    )
    alphas = [Fraction(k, 100) for k in range(1, 61)]
    yield line("theorem 3.2, at most", [(float(a), ratio_proved(a)) for a in alphas])
    yield line("equal requests, 2 - alpha", [(float(a), 2 - a) for a in alphas])
    yield dots("equal requests, simulated", rows)


def _drawn(count: int) -> list[tuple[Fraction, Fraction]]:
    """Return the ratios of drawn instances, and each as a share of its bound."""
    found: list[tuple[Fraction, Fraction]] = []
    rng = Random(0)
    while len(found) < count:
        drawn = tiny_instance(rng, 12, 6)
        halved = [Request(0, r.prompt // 2, (r.output + 1) // 2) for r in drawn]
        peak = max(request.peak for request in halved)
        if peak < drawn.memory:  # else the theorem gives no bound
            ratio = ratio_of(Instance(drawn.memory, halved), "svf")
            found.append((ratio, ratio / ratio_proved(Fraction(peak, drawn.memory))))
    return found
