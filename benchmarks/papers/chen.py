"""chen-2025: a-min, a-l, a-max and a-random, on intervals of outputs and on geometric ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import product

import formulas
from curves import Curve, Finding, Parts, dots, line
from simulations import (
    PAIRS,
    Simulation,
    backlog,
    counted,
    counts_of,
    mean_ratio,
    scaled_ratio,
    two_point,
    worst_outputs,
)

from kvopt import Instance, Request

Formula = Callable[[float], float]

_ALPHAS = tuple(k / 50 for k in range(1, 51))
_ABOVE = 1.1
"""A simulated ratio this much above a bound exceeds the bound's vanishing term."""

_QS = tuple(k / 20 for k in range(1, 20))
_TAIL = 4000
"""Larger outputs have a weight below the precision of floats."""


def rayleigh(_: Simulation) -> Parts:
    """Corollary 1, Theorem 5 and figure 1: the quotient, its bound and the printed fit."""
    us = range(2, 301)
    ratios = [formulas.largest_quotient(u)[0] for u in us]
    harmonic = [sum(1 / i for i in range(1, u + 1)) for u in us]
    below = all(r <= h for r, h in zip(ratios, harmonic, strict=True))
    yield Finding(
        f"the largest eigenvalue goes from {ratios[0]:.4f} at u = 2 to {ratios[-1]:.4f} at "
        f"u = 300 and is below the trace for every u between",
        below,
    )
    best = formulas.best_fit(us, ratios)
    printed, refitted = ([formulas.fitted(fit, u) for u in us] for fit in (formulas.PRINTED, best))
    explained, again = formulas.r_squared(ratios, printed), formulas.r_squared(ratios, refitted)
    yield Finding(
        f"R^2 of the printed fit on u = 2..300 is {explained:.4f}; the best one is "
        f"{best[0]:.4f} log(u {best[1]:+.4f}) + {best[2]:.4f} with R^2 {again:.6f}",
        explained > 0.9999,
    )
    yield line("largest eigenvalue", zip(us, ratios, strict=True))
    yield line("printed fit", zip(us, printed, strict=True))
    yield line("best fit", zip(us, refitted, strict=True))
    yield line("trace, 1 + 1/2 + ... + 1/u", zip(us, harmonic, strict=True))
    yield {"r_squared_printed": explained, "best_fit": list(best), "r_squared_best": again}


def theorem_1(simulation: Simulation) -> Parts:
    """Theorem 1: the upper bound on a-max."""
    rows = simulation.by_alpha("a-max")
    above = [(a, ratio) for a, ratio in rows if ratio > _ABOVE * formulas.a_max_upper(a)]
    largest = max(ratio * alpha for alpha, ratio in rows)
    yield Finding(
        f"above at {above}"
        if above
        else f"no simulated ratio is above; the largest is {largest:.2f} / alpha, so what was "
        "tried grows like 1 / alpha, not its square",
        not above,
    )
    yield _line("theorem 1, at most", formulas.a_max_upper)
    yield _line("theorem 2, at least", formulas.a_max_lower)
    yield dots("a-max, simulated", rows)


def theorem_2(simulation: Simulation) -> Parts:
    """Theorem 2: the lower bound on a-max, by a construction that the proof simplifies wrongly."""
    own = [(a, formulas.a_max_construction(a, a**0.5)) for a in _ALPHAS[:-1]]
    best = [(a, formulas.a_max_construction(a, formulas.best_mix(a))) for a in _ALPHAS[:-1]]
    simulated = []
    for low, up in PAIRS:  # a u requests of output l and b l of output u, a / b the best mix
        mix = formulas.best_mix(low / up) * up / low
        simulated.append((low / up, simulation.mixed("a-max", low, up, mix)))
    alpha, reached = best[0]
    claimed = formulas.a_max_lower(alpha)
    yield Finding(
        f"the proof's own fraction is {own[0][1]:.1f} there with its mix and "
        f"{reached:.1f} = {reached * alpha:.3f} / alpha with the best; as alpha falls that "
        f"goes to (1 + sqrt 2) / 2 = 1.207 / alpha.  Simulated: {_said(simulated)}",
        reached >= claimed,
    )
    yield _line("theorem 2, printed", formulas.a_max_lower)
    yield line("the construction, its mix", own)
    yield line("the construction, best mix", best)
    yield dots("a-max, simulated, best mix", simulated)


def theorem_4(simulation: Simulation) -> Parts:
    """Theorem 4: no policy with incomplete information is better than a-min."""
    games = {name: simulation.by_alpha(name) for name in ("a-min", "a-l", "a-max", "a-switch")}
    better = [
        f"{policy} {rows[k][1]:.2f} against {own:.2f} at alpha = {alpha:g}"
        for k, (alpha, own) in enumerate(games["a-min"])
        for policy, rows in games.items()
        if rows[k][1] < own
    ]
    # Undecided: the ratio is a supremum over all outputs in [l, u], of which two are a part.
    yield Finding(
        "over mixes of two outputs " + ("; ".join(better) or "none was better than a-min")
    )
    for policy, rows in games.items():
        yield dots(policy, rows)


def _two_point(policy: str, theorem: str, bound: Formula) -> Callable[[Simulation], Parts]:
    """Return the topic about a policy on two outputs."""

    def is_above(alpha: float, ratio: float) -> bool:
        return ratio > _ABOVE * bound(alpha)

    def examined(simulation: Simulation) -> Parts:
        # A term that vanishes with M is allowed: cases above are repeated four times larger.
        large = Simulation(simulation.draws, 4 * simulation.scale)
        rows = simulation.by_alpha(policy)
        pairs = [pair for pair, row in zip(PAIRS, rows, strict=True) if is_above(*row)]
        again = large.by_alpha(policy, pairs)
        stay = [
            f"{ratio:.2f} against {bound(alpha):.2f} at alpha = {alpha:g}, M = {large.memory(20)}"
            for alpha, ratio in again
            if is_above(alpha, ratio)
        ]
        yield Finding(
            f"above it by more than a tenth, and at a quarter of the size too: {'; '.join(stay)}"
            if stay
            else "simulated mean ratios are within a tenth of it, or fall to that with size",
            not stay,
        )
        yield _line(theorem, bound, _ALPHAS[:-1])
        for size, found in ((simulation, rows), (large, again)):
            yield dots(f"{policy}, M = {size.memory(20)}", found)

    return examined


theorem_6 = _two_point("a-min", "theorem 6", formulas.a_min_two_point)
theorem_7 = _two_point("a-l", "theorem 7", formulas.a_l_two_point)


def theorem_8(simulation: Simulation) -> Parts:
    """Theorem 8: the closed form for linearly weighted geometric outputs."""
    distance = max(abs(_lemma_2(1, q) - formulas.linear_geometric(q)) for q in _QS)
    simulated = _simulated_geometric(1, simulation)
    most = max(formulas.linear_geometric(k / 1000) for k in range(1001))
    yield Finding(
        f"formula and sum differ by at most {distance:.1e}; the largest is {most:.4f}",
        distance < 1e-9 and most < 14 / 9 + 1e-12,
    )
    yield _simulation_verdict(simulated, formulas.linear_geometric)
    yield _line("theorem 8", formulas.linear_geometric, _QS)
    yield simulated


def theorem_ec1(simulation: Simulation) -> Parts:
    """Theorem EC.1: outputs l and u are the worst, and the bound on a-random."""
    ends, _ = worst_outputs("fcfs:pred=upper", 2, 4, (1, 3), (1, 3))
    inside, outputs = worst_outputs("fcfs:pred=upper", 2, 4, (1, 3), (1, 2, 3))
    yield Finding(
        f"fcfs:pred=upper, two requests, M = 4, interval [1, 3]: {inside} with outputs {outputs}, "
        f"at most {ends} with outputs 1 and 3 only.  By the paper's own formulas: a-min is within "
        f"3/2 for two outputs (theorem 6), and the quotient of corollary 1 is "
        f"{formulas.largest_quotient(300)[0]:.2f} at u = 300",
        inside <= ends,
    )
    rows = simulation.by_alpha("a-random")
    is_above = any(ratio > _ABOVE * formulas.a_random_upper(a) for a, ratio in rows)
    yield Finding(f"on two outputs: {_said(rows)}", not is_above)
    yield _line("theorem EC.1, at most", formulas.a_random_upper)
    yield dots("a-random, simulated", rows)


def proposition_ec1(simulation: Simulation) -> Parts:
    """Proposition EC.1: latency scales with memory at most inversely."""
    ratio = scaled_ratio(Instance(4, [Request(0, 0, 3), Request(0, 0, 2)]), 3)
    betas = [k / 20 for k in range(4, 21)]
    memory, requests = 300 * simulation.scale, 1500 * simulation.scale
    drawn = backlog(two_point(4, 20, 5.0, requests), memory)
    # Relative to h-sf in M, as the others: it cancels.
    whole, *scaled = (
        mean_ratio(drawn, f"a-random:memory={round(beta * memory)}", simulation.draws)
        for beta in (1, *betas)
    )
    rows = [(beta, value / whole) for beta, value in zip(betas, scaled, strict=True)]
    above = [f"{r:.3f} at beta = {b:g}" for b, r in rows if r > 1.0001 / b]
    yield Finding(
        f"requests (s, o) = (0, 3), (0, 2), first come first served: a factor {ratio} from M = 4 "
        f"to 3, not 4/3.  On a backlog of {requests} requests the factor of a-random is "
        + (f"above 1/beta too: {above[0]}" if above else "within 1/beta")
    )
    yield _line("1 / beta", lambda beta: 1 / beta, betas)
    yield dots("a-random in beta M over a-random in M", rows)


def lemma_1_and_proposition_1(simulation: Simulation) -> Parts:
    """Lemma 1 and Proposition 1: the share of a-min's attempts that complete."""
    u, prompt, scale = 20, 1, simulation.scale
    tries = counted(1500 * scale, 750 * scale, u, prompt, simulation.draws)
    known = [
        (i, j, share, formulas.lemma_1(prompt, i, j))
        for i, j in product((1, 2, 5, 10), (5, 10, 20))
        if i <= j and (share := tries.share(i, j)) is not None
    ]
    far = max(abs(share - stated) for _, _, share, stated in known)
    yield Finding(
        "; ".join(
            f"belief {i}, output {j}: {share:.2f} against {stated:.2f}"
            for i, j, share, stated in known
        ),
        far < 0.05,
    )
    outputs = range(1, u + 1)
    first = [(j, share) for j in outputs if (share := tries.share(1, j)) is not None]
    yield line("Lemma 1, belief 1", [(j, formulas.lemma_1(prompt, 1, j)) for j in outputs])
    yield dots("a-min, belief 1", first)


def figure_3(simulation: Simulation) -> Parts:
    """Figure 3: the ratio of a-min for geometric outputs, with and without a linear weight."""
    geometric = partial(_lemma_2, 0)
    qs = (*_QS, 0.99)
    curves = (
        _line("geometric, Lemma 2", geometric, qs),
        _line("linearly weighted, Lemma 2", formulas.linear_geometric, qs),
    )
    for most, curve in zip((1.7, 1.6), curves, strict=True):
        rises, last = list(curve.y) == sorted(curve.y), curve.y[-1]
        yield Finding(
            f"by Lemma 2 {'increasing' if rises else 'not increasing'}, {last:.4f} at q = {qs[-1]}",
            rises and last < most,
        )
    simulated = [_simulated_geometric(power, simulation) for power in (0, 1)]
    yield _simulation_verdict(simulated[0], geometric)
    yield from (*curves, *simulated)


def _line(label: str, formula: Formula, at: Iterable[float] = _ALPHAS) -> Curve:
    return line(label, [(x, formula(x)) for x in at])


def _said(rows: Iterable[tuple[float, float]]) -> str:
    return "; ".join(f"{ratio:.2f} at alpha = {alpha:g}" for alpha, ratio in rows)


def _lemma_2(power: int, q: float) -> float:
    """Return the ratio of Lemma 2 for outputs k with weight ``k^power q^(k-1)``."""
    return formulas.quotient({k: k**power * q ** (k - 1) for k in range(1, _TAIL)})


def _simulated_geometric(power: int, simulation: Simulation) -> Curve:
    found, scale = [], simulation.scale
    for q in (0.3, 0.5, 0.7, 0.8, 0.9):
        counts = counts_of({k: k**power * q ** (k - 1) for k in range(1, 200)}, 1500 * scale)
        drawn = backlog(counts, max(200 * scale, 4 * max(counts)), 0, (1, max(counts)))
        found.append((q, mean_ratio(drawn, "a-min", simulation.draws)))
    return dots(f"{'linearly weighted' if power else 'geometric'}, simulated", found)


def _simulation_verdict(simulated: Curve, formula: Formula) -> Finding:
    rows = zip(simulated.x, simulated.y, strict=True)
    said = "; ".join(f"{ratio:.2f} at q = {q:g} (formula {formula(q):.2f})" for q, ratio in rows)
    return Finding(f"simulated mean ratios to h-sf, which depend on M at these sizes: {said}")
