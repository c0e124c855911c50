"""Repeat the steps from a problem to a wider one, whose bounds hold for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from kvopt.verify.certified_problem import Problem, held_together, surely_processed
from kvopt.verify.step_budget import paired, refuse

Step = Callable[[Problem], "tuple[Problem, int]"]


def relaxed(problem: Problem, names: Sequence[str]) -> tuple[Problem, int, str]:
    """Return a wider problem, what is added to its bounds, and the steps in words.

    Each schedule of a problem is one of the next problem, whose total latency is less by ``more``
    at least.  So a bound of the last problem, and all that is added, is one of the first.
    """
    total, words = 0, list[str]()
    for name in names:
        step, sentence = STEPS[name]
        problem, more = step(problem)
        total, words = total + more, [*words, sentence]
    return problem, total, " and ".join(words)


def _tokens(problem: Problem) -> tuple[Problem, int]:
    """Count tokens: h tokens take B ceil(h / B) >= h in blocks, of B floor(M / B) in all."""
    memory = problem.memory - problem.memory % problem.block
    return replace(problem, memory=memory, block=1, unit=1), 0


def _shares(problem: Problem) -> tuple[Problem, int]:
    """Leave out prefixes; prompts count shares of them.

    If K users of a node can be active together, see `held_together`, each of them counts w / K
    of its w tokens: together at most the held ones.  Prompts are the whole sums rounded down,
    so active requests hold at least these.  In whole blocks only nodes on all paths may be left
    out, which are whole blocks of memory.
    """
    memory, private, together = held_together(problem)
    refuse(
        problem.block > 1 and together, "lower: shares of prefixes count tokens, which come first"
    )
    prompts = [
        tokens + int(sum(Fraction(problem.nodes[v], together[v]) for v in path if v in together))
        for tokens, path in paired(private, problem.paths or [()] * len(private))
    ]
    fresh, firsts = surely_processed(problem) if problem.nodes else ((), ())
    requests = [r._replace(prompt=s) for r, s in paired(problem.requests, prompts)]
    changed = replace(problem, memory=memory, requests=requests, fresh=fresh, firsts=firsts)
    return replace(changed, nodes=(), paths=()), 0


def _limit(problem: Problem) -> tuple[Problem, int]:
    """Drop the limit of active requests, which only forbids schedules."""
    return replace(problem, max_active=None), 0


def _weights(problem: Problem) -> tuple[Problem, int]:
    """Count each request once: no latency is below its output, so w - 1 outputs are added."""
    pairs = paired(problem.weights or (1,) * len(problem.requests), problem.requests)
    more = sum((weight - 1) * request.output for weight, request in pairs)
    return replace(problem, weights=()), more


STEPS: dict[str, tuple[Step, str]] = {
    "tokens": (_tokens, "tokens for blocks"),
    "shares": (_shares, "a share of its prefix for each request"),
    "limit": (_limit, "no limit of active requests"),
    "weights": (_weights, "outputs for weights above 1"),
}
"""Names of the steps, what they do, and the same in words."""
