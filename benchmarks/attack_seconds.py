"""Compare bounds in seconds with exhaustive optima of tiny instances: none may be above.

Instances have shared prefixes, weights, limits of active requests and two machines now and then,
and scopes have pauses and prompts in pieces.  Of each the bounds of the package are compared, and
proofs with any prices.

    nice python benchmarks/attack_seconds.py --instances 10000
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "bounds"))

from brute_force import Server
from strategies import batch_time, drawn_in_seconds, optimum_of
from test_seconds_bounds import SCOPES, covering
from test_shared_rounds import random_proof, with_block_shares

from kvopt import BatchTime, Instance, Scope
from kvopt.bounds.seconds import seconds_bound
from kvopt.bounds.shared_rounds import shared_rounds_value
from kvopt.bounds.shared_rounds_ascent import shared_rounds_bound

PROOFS = 12
"""Proofs with any prices for each instance."""


def bounds(
    instance: Instance, server: Server, model: BatchTime, scope: Scope, source: random.Random
) -> Iterator[tuple[str, int]]:
    """Yield bounds with their names."""
    has_prefixes = "prefix" in instance.extras
    yield "shares of the machine", seconds_bound(instance, model, scope=scope).value_ns
    best = shared_rounds_bound(instance, model, scope=scope)
    if best is not None:
        yield "shared rounds", best.value_ns
    for _ in range(PROOFS):
        proof = random_proof(source, server, instance, chunks=True)
        if has_prefixes:
            proof = with_block_shares(source, instance, proof)
        value = shared_rounds_value(instance, model, proof, chunks=True)
        yield "any prices", value


def main() -> None:
    """Compare as many instances as are wanted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    chosen = parser.parse_args()
    counts: Counter[str] = Counter()
    for seed in range(chosen.first, chosen.first + chosen.instances):
        source = random.Random(seed)
        instance, server = drawn_in_seconds(seed, source.choice((2, 3, 3)))
        scope, model = source.choice(SCOPES), batch_time(server)
        best, covered = optimum_of(instance, server=server, scope=scope), covering(scope, instance)
        for name, value in bounds(instance, server, model, covered, source):
            counts[name] += 1
            counts[f"{name}, above 0.9 of the optimum"] += 10 * value > 9 * best
            if value > best:
                sys.exit(f"seed {seed}, scope {scope}: {name} {value} is above {best}: {instance}")
        if seed % 500 == 499:
            print(seed + 1, dict(counts), flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main()
