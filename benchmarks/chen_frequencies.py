"""How often a-min finishes what it starts, beside Lemma 1 and Proposition 1 of chen-2025.

    python benchmarks/chen_frequencies.py [--n 4000] [--memory 2000] [--u 20] [--draws 5]

Outputs are uniform on 1..u and the interval of all is [1, u].  Lemma 1 says that of the tries
that begin with belief i, a share (s + i) / (s + j) of those with true output j completes;
Proposition 1 that of the requests with output j a share (s + 1) / (s + j) completes at belief 1
and 1 / (s + j) at each later one.
"""

from __future__ import annotations

import argparse

from kvopt.experiments.theory.formulas import lemma_1
from kvopt.experiments.theory.simulations import counted
from kvopt.kernels.pipes import ended_by_reader


def main() -> None:
    """Print the shares for a few pairs of belief and output."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=4000)
    parser.add_argument("--memory", type=int, default=2000)
    parser.add_argument("--u", type=int, default=20)
    parser.add_argument("--prompt", type=int, default=1)
    parser.add_argument("--draws", type=int, default=5)
    options = parser.parse_args()
    s = options.prompt
    tries = counted(options.n, options.memory, options.u, s, options.draws)
    total = options.n * options.draws / options.u
    print("| belief i | output j | tries | completed | Lemma 1 | of all with j | Proposition 1 |")
    print("|---|---|---|---|---|---|---|")
    for i in (1, 2, 5, 10):
        for j in (5, 10, 20):
            if j < i:
                continue
            share = tries.share(i, j)
            completed = "-" if share is None else f"{share:.3f}"
            claim = (s + 1 if i == 1 else 1) / (s + j)
            print(
                f"| {i} | {j} | {tries.begun[i, j]:,} | {completed} | "
                f"{lemma_1(s, i, j):.3f} | {tries.completed[i, j] / total:.3f} | {claim:.3f} |"
            )


if __name__ == "__main__":
    with ended_by_reader():
        main()
