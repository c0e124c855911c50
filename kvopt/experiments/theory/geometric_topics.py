"""chen-2025 on a-min with geometric outputs, and on what its tries complete."""

from __future__ import annotations

from collections.abc import Callable

from kvopt.experiments.theory.backlogs import backlog, counts_of, mean_ratio
from kvopt.experiments.theory.examination import Curve, Examination, Verdict, points
from kvopt.experiments.theory.first_tries import counted, lemma_1
from kvopt.experiments.theory.formulas import linear_geometric
from kvopt.experiments.theory.rayleigh import quotient

_QS = tuple(k / 20 for k in range(1, 20))
_TAIL = 4000
"""Outputs beyond have no weight that a float shows."""


def theorem_8(draws: int, scale: int) -> Examination:
    """Theorem 8: the closed form for linearly weighted geometric outputs."""
    summed = {q: quotient({k: k * q ** (k - 1) for k in range(1, _TAIL)}) for q in _QS}
    distance = max(abs(summed[q] - linear_geometric(q)) for q in _QS)
    simulated = _simulated_geometric(1, draws, scale)
    most = max(linear_geometric(k / 1000) for k in range(1001))
    return Examination(
        "theorem-8",
        "a-min on linearly weighted geometric outputs",
        (
            Verdict(
                "The ratio of Lemma 2 has the printed closed form and stays below 14/9",
                "chen-2025 theorem 8",
                "at most 14/9 = 1.56",
                f"formula and sum differ by at most {distance:.1e}; the largest is {most:.4f}",
                "reproduced" if distance < 1e-9 and most < 14 / 9 + 1e-12 else "refuted",
            ),
            _simulation_verdict("chen-2025 theorem 8", simulated, linear_geometric),
        ),
        (points("theorem 8", [(q, linear_geometric(q)) for q in _QS]), simulated),
        x_label="q",
    )


def figure_3(draws: int, scale: int) -> Examination:
    """Figure 3: the ratio of a-min for geometric outputs, with and without a linear weight."""
    qs = (*_QS, 0.99)
    plain = [(q, _geometric(q)) for q in qs]
    weighted = [(q, linear_geometric(q)) for q in qs]
    curves = (
        points("geometric, Lemma 2", plain),
        points("linearly weighted, Lemma 2", weighted),
        _simulated_geometric(0, draws, scale),
        _simulated_geometric(1, draws, scale),
    )
    verdicts = [
        Verdict(
            f"The ratio for {name} outputs grows with q and is bounded by {most}",
            "chen-2025 figure 3",
            f"increasing, below {most}",
            f"by Lemma 2 {'increasing' if _rises(curve) else 'not increasing'}, "
            f"{curve[-1][1]:.4f} at q = {curve[-1][0]}",
            "reproduced" if _rises(curve) and curve[-1][1] < most else "refuted",
        )
        for name, most, curve in (
            ("geometric", 1.7, plain),
            ("linearly weighted geometric", 1.6, weighted),
        )
    ]
    verdicts.append(_simulation_verdict("chen-2025 figure 3, geometric", curves[2], _geometric))
    return Examination(
        "figure-3",
        "a-min on geometric outputs: Lemma 2 beside simulation",
        tuple(verdicts),
        curves,
        x_label="q",
    )


def lemma_1_topic(draws: int, scale: int) -> Examination:
    """Lemma 1 and Proposition 1: how many tries of a-min complete."""
    u, prompt = 20, 1
    tries = counted(1500 * scale, 750 * scale, u, prompt, draws)
    rows = [(i, j, tries.share(i, j)) for i in (1, 2, 5, 10) for j in (5, 10, 20) if i <= j]
    known = [(i, j, share) for i, j, share in rows if share is not None]
    said = "; ".join(
        f"belief {i}, output {j}: {share:.2f} against {lemma_1(prompt, i, j):.2f}"
        for i, j, share in known
    )
    far = max(abs(share - lemma_1(prompt, i, j)) for i, j, share in known)
    outputs = range(1, u + 1)
    first = [(j, share) for j in outputs if (share := tries.share(1, j)) is not None]
    return Examination(
        "lemma-1",
        "Share of the tries of a-min that complete, outputs uniform on 1..20",
        (
            Verdict(
                "Of the tries with belief i a share (s + i) / (s + j) of output j completes",
                "chen-2025 lemma 1, and proposition 1 which follows from it",
                "(s + i) / (s + j)",
                said,
                "reproduced" if far < 0.05 else "not reproduced as printed",
            ),
        ),
        (
            points("Lemma 1, belief 1", [(j, lemma_1(prompt, 1, j)) for j in outputs]),
            points("a-min, belief 1", first, simulated=True),
        ),
        x_label="output j",
        y_label="share of tries that complete",
    )


def _simulated_geometric(power: int, draws: int, scale: int) -> Curve:
    found = []
    for q in (0.3, 0.5, 0.7, 0.8, 0.9):
        counts = counts_of({k: k**power * q ** (k - 1) for k in range(1, 200)}, 1500 * scale)
        memory = max(200 * scale, 4 * max(counts))
        found.append((q, mean_ratio(backlog(counts, memory, 0, (1, max(counts))), "a-min", draws)))
    name = "linearly weighted" if power else "geometric"
    return points(f"{name}, simulated", found, simulated=True)


def _simulation_verdict(
    source: str, simulated: Curve, formula: Callable[[float], float]
) -> Verdict:
    rows = zip(simulated.x, simulated.y, strict=True)
    said = "; ".join(f"{ratio:.2f} at q = {q:g} (formula {formula(q):.2f})" for q, ratio in rows)
    return Verdict(
        "What Lemma 2 computes is what a-min does",
        source,
        "the ratio of Lemma 2, up to O(1/M)",
        f"simulated mean ratios to h-sf, which depend on M at these sizes: {said}",
        "measured",
    )


def _rises(curve: list[tuple[float, float]]) -> bool:
    values = [value for _, value in curve]
    return values == sorted(values)


def _geometric(q: float) -> float:
    return quotient({k: q ** (k - 1) for k in range(1, _TAIL)})
