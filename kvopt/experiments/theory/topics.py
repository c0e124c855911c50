"""Every topic that ``kvopt theory`` examines."""

from __future__ import annotations

from collections.abc import Callable

from kvopt.errors import InvalidInput
from kvopt.experiments.theory import (
    a_max_topics,
    a_min_topics,
    geometric_topics,
    jaillet_topics,
    wang_topics,
)
from kvopt.experiments.theory.examination import Examination
from kvopt.model.instance import checked_integer

Examiner = Callable[[int, int], Examination]
"""Takes the draws of what is random, and how many times as large simulations are."""

TOPICS: dict[str, Examiner] = {
    "rayleigh": a_min_topics.rayleigh,
    "theorem-1": a_max_topics.theorem_1,
    "theorem-2": a_max_topics.theorem_2,
    "theorem-4": a_min_topics.theorem_4,
    "theorem-6": a_min_topics.theorem_6,
    "theorem-7": a_min_topics.theorem_7,
    "theorem-8": geometric_topics.theorem_8,
    "theorem-ec1": a_max_topics.theorem_ec1,
    "proposition-ec1": a_max_topics.proposition_ec1,
    "lemma-1": geometric_topics.lemma_1_topic,
    "figure-3": geometric_topics.figure_3,
    "theorem-4.1": jaillet_topics.theorem_4_1,
    "lemmas-4.4-4.7": jaillet_topics.lemmas_4_4_and_4_7,
    "theorem-4.2": jaillet_topics.theorem_4_2,
    "theorem-5.3": jaillet_topics.regret,
    "theorem-6.2": jaillet_topics.theorem_6_2,
    "theorem-2.1": wang_topics.theorem_2_1,
    "theorem-8.2": wang_topics.theorem_8_2,
    "lemma-3.3": wang_topics.lemma_3_3,
    "dynamic-program": wang_topics.dynamic_program,
    "sorted-f": wang_topics.forty_eight,
}


def examine(topic: str, *, draws: int = 2, scale: int = 1) -> Examination:
    """Put a theorem of the papers beside what is computed and simulated.

    Parameters
    ----------
    topic
        One of `TOPICS`.
    draws
        Seeds for what is random.
    scale
        Simulations are so many times as large.

    Examples
    --------
    >>> [verdict.verdict for verdict in examine("theorem-4.2").verdicts]
    ['refuted']
    """
    if topic not in TOPICS:
        raise InvalidInput(f"must be one of {', '.join(TOPICS)}, got {topic!r}", field="topic")
    checked_integer(draws, "--draws", 1)
    checked_integer(scale, "--scale", 1)
    return TOPICS[topic](draws, scale)
