"""How often a-min finishes what it starts, beside Lemma 1 and Proposition 1 of chen-2025.

    python benchmarks/chen_frequencies.py [--n 4000] [--memory 2000] [--u 20] [--draws 5]

Outputs are uniform on 1..u and the interval of all is [1, u].  Lemma 1 says that of the tries
that begin with belief i, a share (s + i) / (s + j) of those with true output j completes;
Proposition 1 that of the requests with output j a share (s + 1) / (s + j) completes at belief 1
and 1 / (s + j) at each later one.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter, defaultdict

from kvopt import Instance, PolicyRun, Prediction, Request, run


def main() -> None:
    """Print the shares for a few pairs of belief and output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=4000)
    parser.add_argument("--memory", type=int, default=2000)
    parser.add_argument("--u", type=int, default=20)
    parser.add_argument("--prompt", type=int, default=1)
    parser.add_argument("--draws", type=int, default=5)
    options = parser.parse_args()
    begun: Counter[tuple[int, int]] = Counter()
    completed: Counter[tuple[int, int]] = Counter()
    for seed in range(options.draws):
        rng = random.Random(seed)
        interval = Prediction(1, options.u)
        requests = [
            Request(0, options.prompt, rng.randint(1, options.u), predicted=interval)
            for _ in range(options.n)
        ]
        count(run(Instance(options.memory, requests), f"a-min:seed={seed}"), begun, completed)
    total = options.n * options.draws / options.u
    print("| belief i | output j | tries | completed | Lemma 1 | of all with j | Proposition 1 |")
    print("|---|---|---|---|---|---|---|")
    s = options.prompt
    for i in (1, 2, 5, 10):
        for j in (5, 10, 20):
            if j < i:
                continue
            share = completed[i, j] / begun[i, j] if begun[i, j] else float("nan")
            claim = (s + 1 if i == 1 else 1) / (s + j)
            print(
                f"| {i} | {j} | {begun[i, j]:,} | {share:.3f} | {(s + i) / (s + j):.3f} | "
                f"{completed[i, j] / total:.3f} | {claim:.3f} |"
            )


def count(
    found: PolicyRun, begun: Counter[tuple[int, int]], completed: Counter[tuple[int, int]]
) -> None:
    """Add the tries of one run by belief at their start and true output."""
    losses: dict[int, list[int]] = defaultdict(list)
    for piece in found.lost:
        losses[piece.request].append(piece.end - piece.start)
    for position, request in enumerate(found.instance):
        belief = 1
        for tokens in losses[position]:
            begun[belief, request.output] += 1
            belief = max(belief, tokens)
        begun[belief, request.output] += 1
        completed[belief, request.output] += 1


if __name__ == "__main__":
    main()
