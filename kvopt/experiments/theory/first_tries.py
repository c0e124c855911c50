"""How often a-min finishes what it starts (chen-2025, Lemma 1 and Proposition 1)."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from random import Random

from kvopt.model.instance import Instance, Prediction, Request
from kvopt.simulation.running import run
from kvopt.simulation.runs import PolicyRun


@dataclass
class Tries:
    """Tries by belief at their start and true output.

    Parameters
    ----------
    begun, completed
        Number of tries, and of those that ended with the request.
    """

    begun: Counter[tuple[int, int]] = field(default_factory=Counter)
    completed: Counter[tuple[int, int]] = field(default_factory=Counter)

    def add(self, found: PolicyRun) -> None:
        """Count the tries of a run whose beliefs began with 1; what is lost raises them."""
        losses: dict[int, list[int]] = defaultdict(list)
        for piece in found.lost:
            losses[piece.request].append(piece.end - piece.start)
        for position, request in enumerate(found.instance):
            belief = 1
            for tokens in losses[position]:
                self.begun[belief, request.output] += 1
                belief = max(belief, tokens)
            self.begun[belief, request.output] += 1
            self.completed[belief, request.output] += 1

    def share(self, belief: int, output: int) -> float | None:
        """Return the share of tries that completed, None if there were none."""
        begun = self.begun[belief, output]
        return self.completed[belief, output] / begun if begun else None


def lemma_1(prompt: int, belief: int, output: int) -> float:
    """Return the share that Lemma 1 states."""
    return (prompt + belief) / (prompt + output)


def counted(n: int, memory: int, u: int, prompt: int, draws: int) -> Tries:
    """Run a-min on backlogs with outputs uniform on 1..u and count its tries."""
    tries = Tries()
    for seed in range(draws):
        rng, interval = Random(seed), Prediction(1, u)
        outputs = [rng.randint(1, u) for _ in range(n)]
        requests = [Request(0, prompt, output, predicted=interval) for output in outputs]
        tries.add(run(Instance(memory, requests), f"a-min:seed={seed}"))
    return tries
